"""The model's server, when it is well and when it is not."""

import json
import re
import socket
import threading
import time

import openai
import pytest
from house import read_answer

from lastword.errors import ConfigError
from lastword.server.upstream import HttpUpstream
from lastword.testing.scripted import Fault, Pause
from requirements import requirement

BUSY = Fault("status", status=429)
BROKEN = Fault("status", status=500)
RESET = Fault("reset")


@requirement("API-30")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("faults", [[BUSY], [BROKEN], [RESET], [BROKEN, BUSY], [Fault("status", status=503), RESET]])
def test_what_may_pass_is_tried_again_before_the_first_byte(house, faults, stream):
    """retries: busy, failing, gone. Nothing of an answer has arrived, so asking again repeats nothing."""
    model = house.model([*faults, "Hello."])
    answer = house.server(model).chat("Hi", stream=stream)
    assert answer.status == 200
    assert b"Hello." in answer.body
    assert len(model.requests) == len(faults) + 1
    assert all(request == model.requests[0] for request in model.requests)


@requirement("API-30")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "status", "code", "asked"),
    [
        (BUSY, 429, "upstream_busy", 3),
        (BROKEN, 502, "upstream_failed", 3),
        (RESET, 502, "upstream_unreachable", 3),
        (Fault("status", status=504), 504, "upstream_slow", 3),
        (Fault("status", status=400, body=b"context too long"), 400, "upstream_refused", 1),
        (Fault("status", status=404, body=b"no such model"), 404, "upstream_refused", 1),
        (Fault("status", status=401), 502, "upstream_key", 1),
        (Fault("status", status=403), 502, "upstream_key", 1),
        (Fault("status", status=302), 502, "upstream_failed", 1),
        (Fault("status", status=418), 502, "upstream_failed", 1),
        (Fault("garbage", body=b"<html>"), 502, "upstream_garbage", 1),
        (Fault("garbage", body=b"{}"), 502, "upstream_garbage", 1),
        (Fault("garbage", body=b"[]"), 502, "upstream_garbage", 1),
        (Fault("garbage", body=b"null"), 502, "upstream_garbage", 1),
        (Fault("garbage", body=b"[" * 100_000), 502, "upstream_garbage", 1),
        (Fault("garbage", body=b'{"choices": [{}]}'), 502, "upstream_garbage", 1),
        (Fault("garbage", body=b'{"choices": [{"message": {"content": 1}, "delta": {"content": 1}}]}'), 502,
         "upstream_garbage", 1),
        (Fault("garbage", body=b'{"choices": [{"message": {"tool_calls": [1]}, "delta": {"tool_calls": [1]}}]}'), 502,
         "upstream_garbage", 1),
        (Fault("garbage", body=b"\xff\xfe"), 502, "upstream_garbage", 1),
    ],
)  # fmt: skip
def test_a_failure_is_openais_error_with_our_status(house, fault, status, code, asked, stream):
    """502 when it is broken, 504 when it is slow, 429 when it is busy; and the turn never was."""
    model = house.model(lambda _: fault)
    server = house.server(model)
    answer = server.chat("Hi", stream=stream, conversation_id="c")
    assert (answer.status, answer.code) == (status, code)
    assert answer.json["error"]["message"]
    assert len(model.requests) == asked
    assert server.send("GET", "/v1/conversations/c").status == 404


@requirement("API-30")
def test_what_the_models_server_says_about_a_refusal_is_passed_on(house):
    """A context that is too long has to be named, or nobody can shorten it."""
    server = house.server([Fault("status", status=400, body=b"context too long: 9000 tokens")])
    assert "context too long: 9000 tokens" in server.chat("Hi").json["error"]["message"]
    server = house.server([Fault("status", status=400, body=b"x" * 5000)])
    assert len(server.chat("Hi").json["error"]["message"]) < 500


@requirement("API-30")
def test_retry_after_is_obeyed_when_short_and_passed_on_when_long(house):
    """retry_after_seconds: within it we wait; beyond it the client is told, and no attempt is made."""
    model = house.model([Fault("status", status=429, retry_after="0.3"), "Hello."])
    start = time.monotonic()
    assert house.server(model).chat("Hi").status == 200
    assert time.monotonic() - start >= 0.3
    model = house.model([Fault("status", status=429, retry_after="30"), "Hello."])
    answer = house.server(model).chat("Hi")
    assert (answer.status, answer.headers["retry-after"], len(model.requests)) == (429, "30", 1)


@requirement("API-30")
def test_a_reply_that_dies_whole_is_a_502(house):
    """Without a stream the client has seen nothing, and gets a status."""
    assert house.server(lambda _: Fault("die")).chat("Hi").code == "upstream_unreachable"


@requirement("API-30")
@pytest.mark.parametrize("stream", [False, True])
def test_ten_megabytes_are_refused_without_harm(house, stream):
    """The server stays responsive, and the next turn works."""
    server = house.server([Fault("huge", size=10 * 1024 * 1024), "Fresh."])
    answer = server.chat("Hi", conversation_id="c", stream=stream)
    error = answer.chunks[-1]["error"] if answer.status == 200 else answer.json["error"]
    assert error["code"] == "upstream_too_large"
    assert server.chat("Hi", conversation_id="c").json["choices"][0]["message"]["content"] == "Fresh."


@requirement("API-30")
def test_a_server_that_is_not_there_is_named(house):
    """connect_seconds and retries are soon over when nobody listens."""
    server = house.server(None, upstream="http://127.0.0.1:9/v1")
    answer = server.chat("Hi")
    assert (answer.status, answer.code) == (502, "upstream_unreachable")
    assert "lastword doctor" in answer.json["error"]["message"]
    assert server.send("GET", "/readyz").status == 200, "we are well; the model is not"


@requirement("API-30")
def test_a_stream_that_comes_in_one_piece_is_still_a_stream(house):
    """Some servers ignore `stream`. The client asked for events and gets them."""
    model = house.model(lambda _: Fault("whole", after=["Hello."]))
    chunks = house.server(model).chat("Hi", stream=True, stream_options={"include_usage": True}).chunks
    assert "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks[:-1]) == "Hello."
    assert chunks[-2]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["usage"]["total_tokens"] == 10


@requirement("API-30")
def test_the_key_goes_to_the_models_server_and_redirects_are_not_followed(house):
    """A redirect could carry the key to another host."""
    model = house.model(["Hello."], key="sk-right")
    assert house.server(model, key="sk-right").chat("Hi").status == 200
    elsewhere = house.model(lambda _: "Thank you for the key.")
    for status in (301, 302, 307, 308):
        redirect = Fault("status", status=status, location=f"{elsewhere.url}/chat/completions")
        assert house.server(lambda _, redirect=redirect: redirect, key="sk-right").chat("Hi").status == 502
    assert elsewhere.requests == []


@requirement("API-27", "API-30")
def test_models_are_ours_and_the_upstreams(house):
    """`lastword` is the configured one; the others can be asked for by name."""
    model = house.model(lambda body: f"I am {body['model']}", models=["small", "large"])
    server = house.server(model, model="large")
    client = server.client()
    assert [entry.id for entry in client.models.list()] == ["lastword", "small", "large"]
    for asked, got in (("lastword", "large"), ("small", "small"), ("unheard-of", "unheard-of")):
        assert server.chat("Who?", model=asked).json["choices"][0]["message"]["content"] == f"I am {got}"
    assert server.chat("Who?").json["choices"][0]["message"]["content"] == "I am large"
    first = house.server(model)
    assert first.chat("Who?").json["choices"][0]["message"]["content"] == "I am small", "without a name: the first"
    lonely = house.server(None, upstream="http://127.0.0.1:9/v1")
    assert [entry["id"] for entry in lonely.send("GET", "/v1/models").json["data"]] == ["lastword"]


@requirement("API-27")
def test_health_metrics_and_unknown_paths(house):
    """What a machine asks for, and what it gets when it asks for something else."""
    server = house.server(lambda _: "Hello.")
    server.chat("Hi")
    assert server.send("GET", "/healthz").json == {"status": "ok"}
    assert server.send("GET", "/readyz").json == {"status": "ok"}
    metrics = server.send("GET", "/metrics")
    assert metrics.headers["content-type"].startswith("text/plain")
    text = metrics.body.decode()
    assert 'lastword_requests_total{method="POST",route="/v1/chat/completions",status="200"} 1.0' in text
    assert 'lastword_replies_total{kind="text"} 1.0' in text
    assert 'lastword_tokens_total{kind="prompt"} 7.0' in text
    for path in ("/", "/v1", "/v1/chat/completions/", "/v1/conversations/a/b", "/v1/conversations/", "/%00"):
        assert server.send("GET", path).code == "unknown_path"
    answer = server.send("PUT", "/v1/conversations/a")
    assert (answer.status, answer.headers["allow"]) == (405, "DELETE, GET")
    assert server.send("POST", "/v1/chat/completions", HI, {"Content-Type": "text/plain"}).code == "not_json"


HI = {"messages": [{"role": "user", "content": "Hi"}]}


def until(happened):
    """Whether it happens soon: another thread is about to do it."""
    for _ in range(1000):
        if happened():
            return True
        threading.Event().wait(0.01)
    return False


@requirement("API-20")
def test_the_server_stops_gracefully(house):
    """stop_seconds: what can finish finishes; what cannot is told, and nothing of it is stored."""
    gates = {"quick": Pause(), "slow": Pause()}
    model = house.model(lambda body: ["One", gates[body["messages"][-1]["content"]], " two"])
    server = house.server(model, limits={"stop_seconds": 3.0})
    answers = {}

    def ask(name, stream):
        answers[name, stream] = server.chat(name, stream=stream)

    threads = [threading.Thread(target=ask, args=(n, s)) for n in gates for s in (True, False)]
    for thread in threads:
        thread.start()
    for gate in gates.values():
        assert gate.reached.wait(10)
    assert until(lambda: len(model.requests) == 4)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    gates["quick"].open()
    for thread in [*threads, stopping]:
        thread.join()
    assert answers["quick", True].body.endswith(b"data: [DONE]\n\n")
    assert answers["quick", False].json["choices"][0]["message"]["content"] == "One two"
    assert answers["slow", True].chunks[-1]["error"]["code"] == "server_stopping"
    assert (answers["slow", False].status, answers["slow", False].code) == (503, "server_stopping")


@requirement("API-20", "API-27")
def test_a_stopping_server_takes_no_new_turn(house):
    """A request whose body arrives after the signal is told to come back; and whoever balances load sees it."""
    model = house.model(lambda _: "Hello.")
    server = house.server(model)
    body = json.dumps(HI).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(head.encode() + body[:5])
        assert server.send("GET", "/readyz").status == 200
        server.serving.should_exit = True
        assert until(lambda: server.stopping.begun)
        sock.sendall(body[5:])
        answer = read_answer(sock)
    assert (answer.status, answer.code) == (503, "server_stopping")
    assert answer.headers["retry-after"] == "5"
    assert model.requests == []
    other = house.server(model)
    other.stopping.begin()
    assert other.send("GET", "/readyz").code == "server_stopping"
    assert other.send("GET", "/healthz").status == 200


@requirement("API-30")
@pytest.mark.parametrize("url", ["", "localhost:11434", "ftp://x/v1", "http://", "127.0.0.1"])
def test_an_address_that_is_none_is_refused_at_once(url):
    """Before the first request, with an example of a good one."""
    with pytest.raises(ConfigError, match=r"like http://127\.0\.0\.1:11434/v1"):
        HttpUpstream(url)


@requirement("API-30")
@pytest.mark.parametrize("url", ["http://me:sk-secret@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?key=sk-secret"])
def test_an_address_with_a_key_in_it_is_refused_without_repeating_it(url):
    """The address is said at every start, on the page and by doctor. A key would be said with it."""
    with pytest.raises(ConfigError, match="LASTWORD_UPSTREAM_KEY") as refused:
        HttpUpstream(url)
    assert "sk-secret" not in str(refused.value)


def counted(server, name: str) -> dict[str, float]:
    """A counter of /metrics, by the value of its one label."""
    found = re.findall(rf'^{name}_total(?:{{\w+="(\w+)"}})? (\S+)$', server.send("GET", "/metrics").body.decode(), re.M)
    return {label: float(value) for label, value in found}


@requirement("API-30", "API-70")
@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Fault("die", after=["One "]), "upstream_died"),
        (Fault("hang", after=["One "]), "upstream_slow"),
        (Fault("error_event", after=["One "], body=b"oops"), "upstream_failed"),
        (Fault("short", after=["One "]), "upstream_died"),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_a_stream_that_dies_ends_with_an_error_without_a_turn_and_counts_as_broken(house, fault, code):
    """No further attempt: the first words are with the client already. Its status was 200 long before it broke, and log
    and metrics called it a success."""
    model = house.model([fault, "Fresh.", fault])
    server = house.server(model, limits={"idle_seconds": 0.2})
    answer = server.chat("Hi", stream=True, conversation_id="c")
    assert answer.chunks[0]["choices"][0]["delta"]["content"] == "One "
    assert answer.chunks[-1]["error"]["code"] == code
    assert b"[DONE]" not in answer.body
    assert len(model.requests) == 1
    assert until(lambda: server.log)
    assert json.loads(server.log[0])["problem"] == code
    assert counted(server, "lastword_broken_streams") == counted(server, "lastword_upstream_failures") == {code: 1}
    assert server.send("GET", "/v1/conversations/c").status == 404
    assert server.chat("Hi", conversation_id="c").status == 200
    with server.client() as client, pytest.raises(openai.APIError):
        list(client.chat.completions.create(model="m", messages=HI["messages"], stream=True))


@requirement("API-70")
def test_a_stream_whose_client_left_is_counted_as_broken(house):
    """Nobody heard the end of it, whoever is to blame."""
    gate = Pause()
    server = house.server([["One", gate, " two"]])
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        body = json.dumps({**HI, "stream": True, "tool_protocol": "native"}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        sock.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        assert gate.reached.wait(10)
        assert sock.recv(65536)
    assert until(lambda: server.log)
    gate.open()
    assert json.loads(server.log[0])["problem"] == "client_gone"
    assert counted(server, "lastword_broken_streams") == {"client_gone": 1}


@requirement("API-70")
def test_failures_and_retries_of_the_models_server_are_counted(house):
    """Whoever looks after the server sees trouble before the people do: also the kind that a retry hides."""
    server = house.server([BROKEN, BUSY, "Hello.", *[BROKEN] * 3, Fault("status", status=400)])
    assert counted(server, "lastword_upstream_retries") == {"": 0}
    assert server.chat("Hi").status == 200
    assert counted(server, "lastword_upstream_retries") == {"": 2}
    assert counted(server, "lastword_upstream_failures") == {}
    assert server.chat("Hi").status == 502
    assert server.chat("Hi").status == 400
    assert counted(server, "lastword_upstream_retries") == {"": 4}
    assert counted(server, "lastword_upstream_failures") == {"upstream_failed": 1, "upstream_refused": 1}
    assert counted(server, "lastword_broken_streams") == {}


@requirement("API-30")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("context_length_exceeded", "context_length_exceeded"),
        ("model_not_found", "model_not_found"),
        (400, "upstream_refused"),
        (None, "upstream_refused"),
        ("no code at all, but a sentence", "upstream_refused"),
        ("sk-live-0123456789abcdef", "upstream_refused"),
        ("x" * 100, "upstream_refused"),
    ],
)
def test_the_code_of_a_refusal_of_the_models_server_reaches_the_client_unchanged(house, said, code, stream):
    """Clients know some of them by name and cut their history. Only what is a word is handed on."""
    server = house.server([Fault("status", status=400, body=b"too much", code=said)])
    with server.client() as client, pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="lastword", messages=[{"role": "user", "content": "Hi"}], stream=stream)
    assert raised.value.code == code
    assert counted(server, "lastword_upstream_failures") == {"upstream_refused": 1}


@requirement("API-65")
def test_a_stream_that_begins_with_a_refusal_for_length_is_asked_again_with_less(house):
    """Some servers have said 200 before they count. The turn is not lost to that."""
    too_long = Fault("error_event", body=b"the maximum context length is 600 tokens")
    model = house.model(["One.", too_long, "Two."])
    server = house.server(model)
    assert server.chat("x" * 8_000, conversation_id="c").status == 200
    answer = server.chat("Go on", conversation_id="c", stream=True)
    assert answer.status == 200
    assert "error" not in answer.chunks[-1]
    assert [message["content"] for message in model.requests[-1]["messages"]] == ["Go on"]
    assert len(model.requests) == 3
