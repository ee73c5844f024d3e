"""Who may do what: tokens, scopes, addresses, Host and Origin."""

import asyncio
import contextlib
import hmac
import json

import openai
import pytest
from house import exchange

from lastword.errors import ConfigError
from lastword.server.api_types import Refusal
from lastword.server.auth import SCOPES, Tokens, is_loopback
from lastword.store import MemoryStore
from lastword.testing.scripted import Fault
from requirements import requirement


class Keys:
    """A store with tokens in it, by name."""

    def __init__(self, **scopes: str) -> None:
        self.store = MemoryStore()
        self.tokens = Tokens(self.store)
        self.ids: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        for name, given in scopes.items():
            token, text = asyncio.run(self.tokens.create(name, given.split()))
            self.ids[name], self.texts[name] = token.id, text

    def header(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.texts[name]}"}


@requirement("API-51")
def test_without_tokens_the_machine_itself_may_do_everything(house):
    """One person on one laptop needs nothing but pip."""
    server = house.server(lambda _: "Hello.")
    assert server.chat("Hi", conversation_id="c").status == 200
    for path in ("/v1/conversations", "/v1/conversations/c", "/v1/models", "/metrics"):
        assert server.send("GET", path).status == 200


NO_TOKENS = [
    None,
    "",
    "Bearer",
    "Bearer ",
    "Bearer none",
    "Bearer lastword_00000000_" + "A" * 43,
    "Basic YTpi",
    "{text}",
    "Token {text}",
    "Bearer {text}x",
    "Bearer x{text}",
    "Bearer {text} {text}",
    "Bearer {id_only}",
    "Bearer {other_secret}",
    "Bearer " + "é" * 60,
    "Bearer " + "x" * 5000,
]


@requirement("API-51")
def test_with_tokens_there_is_no_way_in_without_one(house):
    """Anything but the whole token, in the one form, is refused, with the same words."""
    keys = Keys(ana="chat", ben="chat")
    ana, ben = keys.texts["ana"], keys.texts["ben"]
    filled = {"{text}": ana, "{id_only}": ana[:15], "{other_secret}": ana[:16] + ben[16:]}
    server = house.server(store=keys.store)
    for header in NO_TOKENS:
        for name, text in filled.items():
            header = header.replace(name, text) if header is not None else None
        sent = {"Authorization": header} if header is not None else None
        for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/conversations"), ("GET", "/metrics")):
            answer = server.send(method, path, {"messages": []}, sent)
            assert answer.status == 401, header
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.json["error"]["type"] == "authentication_error"
    assert server.send("GET", "/healthz").status == 200, "whether it lives is nobody's secret"


@requirement("API-51")
def test_a_secret_is_compared_in_constant_time(monkeypatch):
    """hmac.compare_digest sees both sides, also when the id is unknown: time tells an attacker nothing."""
    seen = []

    def watched(left, right):
        seen.append((left, right))
        return compare(left, right)

    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", watched)
    keys = Keys(ana="chat")
    text = keys.texts["ana"]
    for header in (
        f"Bearer {text}",
        f"Bearer {text[:-1]}!",
        f"Bearer {text[:-4]}AAAA",
        "Bearer lastword_00000000_" + "A" * 43,
    ):
        with contextlib.suppress(Refusal):
            asyncio.run(keys.tokens.identify(header))
    assert len(seen) == 4
    assert all(len(left) == len(right) == 64 for left, right in seen)
    assert not any(text[16:] in side for pair in seen for side in pair)


@requirement("API-51", "API-54")
def test_the_store_never_holds_a_secret():
    """Whoever steals the file cannot call."""
    keys = Keys(ana="chat")
    secret = keys.texts["ana"].split("_", 2)[2]
    records = asyncio.run(keys.store.read())
    assert records
    assert not any(secret.encode() in (record.data or b"") + record.subject.encode() for record in records)


@requirement("API-51")
def test_a_revoked_token_ends_with_the_next_request(house):
    """Revoking is a record that another process may have written."""
    keys = Keys(ana="chat", ben="chat")
    server = house.server(lambda _: "Hello.", store=keys.store)
    assert server.chat("Hi", token=keys.texts["ana"]).status == 200
    asyncio.run(Tokens(keys.store).revoke(keys.ids["ana"]))
    assert server.chat("Hi", token=keys.texts["ana"]).status == 401
    assert server.chat("Hi", token=keys.texts["ben"]).status == 200
    asyncio.run(Tokens(keys.store).revoke(keys.ids["ben"]))
    assert server.chat("Hi").status == 401, "revoking the last token does not open the door"


@requirement("API-51")
@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/v1/chat/completions", {"chat", "admin"}),
        ("GET", "/v1/models", {"chat", "admin"}),
        ("GET", "/v1/conversations", {"chat", "admin", "read"}),
        ("GET", "/v1/conversations/c", {"chat", "admin", "read"}),
        ("DELETE", "/v1/conversations/c", {"chat", "admin"}),
        ("GET", "/metrics", {"read", "admin"}),
    ],
)
def test_a_wrong_scope_gets_403(house, method, path, allowed):
    """A token does what it was made for. An approver cannot chat, and a chat token cannot read the counters."""
    keys = Keys(**{scope: scope for scope in SCOPES})
    server = house.server(lambda _: "Hello.", store=keys.store)
    for scope in SCOPES:
        body = {"messages": [{"role": "user", "content": "Hi"}]} if method == "POST" else None
        answer = server.send(method, path, body, keys.header(scope))
        if scope in allowed:
            assert answer.status in (200, 404)
        else:
            assert (answer.status, answer.code) == (403, "wrong_scope")
            assert answer.json["error"]["type"] == "permission_error"


@requirement("API-21", "API-51")
def test_another_tokens_conversation_does_not_exist(house):
    """404 for everything one could do to it, so that its existence is not told either."""
    keys = Keys(ana="chat", ben="chat", eve="read", root="admin")
    model = house.model(lambda _: "Hello.")
    server = house.server(model, store=keys.store)
    server.chat("Mine", conversation_id="c", token=keys.texts["ana"])
    ben, missing = keys.header("ben"), "/v1/conversations/none"
    for method in ("GET", "DELETE"):
        answer = server.send(method, "/v1/conversations/c", headers=ben)
        assert answer.status == 404
        assert answer.json == server.send(method, missing, headers=ben).json
    assert server.chat("Mine too", conversation_id="c", token=keys.texts["ben"]).status == 404
    assert server.chat("Mine too", conversation_id="c", token=keys.texts["root"]).status == 404
    assert len(model.requests) == 1
    assert server.send("GET", "/v1/conversations", headers=ben).json["data"] == []
    assert server.send("GET", "/v1/conversations/c", headers=keys.header("ana")).status == 200
    for reader in ("eve", "root"):
        assert server.send("GET", "/v1/conversations/c", headers=keys.header(reader)).status == 200
        listed = server.send("GET", "/v1/conversations", headers=keys.header(reader)).json["data"]
        assert [entry["id"] for entry in listed] == ["c"]
    assert server.send("DELETE", "/v1/conversations/c", headers=keys.header("eve")).status == 403
    assert server.send("DELETE", "/v1/conversations/c", headers=keys.header("root")).status == 200


@requirement("API-51")
def test_the_official_client_sends_the_token(house):
    """It is the client's api_key, and nothing else has to be set."""
    keys = Keys(ana="chat")
    server = house.server(lambda _: "Hello.", store=keys.store)
    messages = [{"role": "user", "content": "Hi"}]
    answer = server.client(keys.texts["ana"]).chat.completions.create(model="m", messages=messages)
    assert answer.choices[0].message.content == "Hello."
    with pytest.raises(openai.AuthenticationError):
        server.client("wrong").chat.completions.create(model="m", messages=messages)


@requirement("API-51")
@pytest.mark.parametrize(
    ("name", "scopes", "words"),
    [
        ("x", ["chta"], "did you mean chat?"),
        ("x", ["chat", "root"], "the scopes are chat, approve, read, tools, admin"),
        ("x", [], "needs a scope"),
        ("", ["chat"], "1 to 100 printable characters"),
        ("a\nb", ["chat"], "printable"),
        ("x" * 101, ["chat"], "1 to 100"),
    ],
)
def test_a_token_that_makes_no_sense_is_not_created(name, scopes, words):
    """An operator's mistake says what to type."""
    store = MemoryStore()
    with pytest.raises(ConfigError, match=words):
        asyncio.run(Tokens(store).create(name, scopes))
    assert asyncio.run(store.read()) == []


@requirement("API-51")
def test_revoking_what_is_not_there_is_an_error():
    """A typing mistake must not look like a revocation."""
    keys = Keys(ana="chat")
    with pytest.raises(ConfigError, match="there is no token 12345678"):
        asyncio.run(keys.tokens.revoke("12345678"))
    asyncio.run(keys.tokens.revoke(keys.ids["ana"]))
    with pytest.raises(ConfigError):
        asyncio.run(keys.tokens.revoke(keys.ids["ana"]))


@requirement("API-50")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", "127.0.0.1.example.org", ""])
async def test_a_public_address_without_a_token_is_refused(host):
    """Nobody opens their assistant to the network by a slip of the hand."""
    store = MemoryStore()
    with pytest.raises(ConfigError, match="no token to keep them out"):
        await Tokens(store).check_address(host)
    token, _ = await Tokens(store).create("ana", ["chat"])
    await Tokens(store).check_address(host)
    await Tokens(store).revoke(token.id)
    with pytest.raises(ConfigError):
        await Tokens(store).check_address(host)


@requirement("API-50")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
async def test_loopback_needs_no_token(host):
    """The default, for the person at the machine."""
    assert is_loopback(host)
    await Tokens(MemoryStore()).check_address(host)


@requirement("API-53")
@pytest.mark.parametrize("path", ["/healthz", "/v1/models", "/v1/chat/completions", "/nowhere"])
@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", None, "[::2]:80", "127.0.0.1:80:80"],
)
def test_a_request_under_another_name_is_refused(plain, path, host):
    """DNS rebinding: a page whose name was pointed at this machine sends its own name, not ours."""
    answer = plain.send("GET", path, headers={"Host": host})
    assert (answer.status, answer.code) == (421, "host_refused")


@requirement("API-53")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Host", ("evil.example", "127.0.0.1")),
        ("Host", ("127.0.0.1", "evil.example")),
        ("Host", ("127.0.0.1", "127.0.0.1")),
        ("Origin", ("https://evil.example", "http://127.0.0.1")),
        ("Authorization", ("Bearer one", "Bearer two")),
    ],
)
def test_a_request_that_says_twice_who_it_is_gets_400(plain, name, values):
    """A proxy may believe the one, we the other; between the two readings somebody comes through."""
    lines = [f"{name}: {value}" for value in values] + ([] if name == "Host" else ["Host: 127.0.0.1"])
    head = "\r\n".join(["GET /v1/models HTTP/1.1", *lines, "Connection: close", "", ""])
    answer = exchange(plain.port, head.encode())
    assert (answer.status, answer.code) == (400, "repeated_header")
    assert name in answer.json["error"]["message"]


@requirement("API-53")
@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1234", "127.0.0.1", "[::1]:80", "Assistant.Home:80", "[FD00::1]:80", "[fd00::2]"]
)
def test_our_own_names_are_answered_to(house, host):
    """Loopback always, and the names that the operator adds."""
    server = house.server(lambda _: "Hello.", hosts=["assistant.home", "fd00::1", "[fd00::2]"])
    assert server.send("GET", "/healthz", headers={"Host": host}).status == 200


@requirement("API-53")
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "", "http://127.0.0.1:1", "http://127.0.0.1.evil.example", "file://"]
)
def test_a_page_of_another_site_is_refused(house, origin):
    """A browser says where the page came from, whatever the page wants."""
    model = house.model(lambda _: "Hello.")
    server = house.server(model)
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    answer = server.send("POST", "/v1/chat/completions", body, {"Origin": origin})
    assert (answer.status, answer.code) == (403, "origin_refused")
    assert "access-control-allow-origin" not in answer.headers
    assert model.requests == []


@requirement("API-53")
def test_pages_of_our_own_and_of_named_origins_are_let_in(house):
    """Same origin, or one that the operator names."""
    server = house.server(lambda _: "Hello.", origins=["https://desk.example"])
    for origin in (f"http://127.0.0.1:{server.port}", "https://desk.example"):
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        assert server.send("POST", "/v1/chat/completions", body, {"Origin": origin}).status == 200


@requirement("API-54")
def test_no_secret_reaches_log_error_metrics_or_store(house):
    """Keys and tokens go in with every request, and must come out nowhere."""
    keys = Keys(ana="chat read")
    token, upstream_key = keys.texts["ana"], "sk-upstream-0123456789abcdef"
    echo = f"Incorrect API key provided: {upstream_key}. Token {token}; sk-other-key-1234".encode()
    faults = [
        Fault("status", status=400, body=echo),
        Fault("status", status=500, body=echo),
        Fault("status", status=429, body=echo),
        Fault("error_event", after=["x"], body=echo),
    ]
    model = house.model(faults, key=upstream_key)
    server = house.server(model, store=keys.store, key=upstream_key, limits={"retries": 0})
    answers = [server.chat("Hi", token=token, conversation_id="c", stream=n == 3) for n in range(4)]
    answers.append(server.send("GET", f"/v1/{token}?key={token}", headers=keys.header("ana")))
    answers.append(server.send("POST", "/v1/chat/completions", {"messages": token}, keys.header("ana")))
    answers.append(server.send("GET", "/metrics", headers=keys.header("ana")))
    assert [answer.status for answer in answers] == [400, 502, 429, 200, 404, 400, 200]
    wrong = house.server(house.model([], key="another"), store=keys.store, key=upstream_key).chat("Hi", token=token)
    assert (wrong.status, wrong.code) == (502, "upstream_key")
    records = asyncio.run(keys.store.read())
    spoken = b"".join([answer.body for answer in [*answers, wrong]]) + "".join(server.log).encode()
    spoken += b"".join(record.data or b"" for record in records)
    secret = token.split("_", 2)[2]
    for hidden in (upstream_key, secret, "sk-other-key-1234"):
        assert hidden.encode() not in spoken
    assert len(server.log) == 7
    line = json.loads(server.log[0])
    assert line["caller"] == keys.ids["ana"]
    assert (line["route"], line["status"], line["problem"]) == ("/v1/chat/completions", 400, "upstream_refused")
    assert json.loads(server.log[4])["route"] == "unmatched"


@requirement("API-54")
def test_a_key_that_looks_like_no_key_is_removed_too(house):
    """Our own is known by heart, whatever it looks like."""
    model = house.model([Fault("status", status=400, body=b"bad key: swordfish")], key="swordfish")
    answer = house.server(model, key="swordfish").chat("Hi")
    assert answer.json["error"]["message"] == "the model's server refused the request: bad key: [removed]"


@requirement("API-54")
def test_an_unforeseen_error_tells_nobody_what_it_held(house):
    """Its text could hold anything. Where it happened is enough to find it."""

    class Broken(MemoryStore):
        async def read(self, **_):
            raise RuntimeError("the secret is swordfish")

    server = house.server(lambda _: "Hello.", store=MemoryStore())
    assert server.chat("Hi").status == 200
    server.store.__class__ = Broken
    answer = server.chat("Hi")
    assert (answer.status, answer.code) == (500, "internal_error")
    assert b"swordfish" not in answer.body
    assert "swordfish" not in server.log[-1]
    assert "RuntimeError at" in server.log[-1]
