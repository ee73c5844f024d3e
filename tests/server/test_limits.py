"""Every limit by its name: what is just allowed, and what happens one beyond it."""

import json
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from house import Answer, exchange, read_answer

from lastword.server.api_types import Refusal
from lastword.server.auth import Rates
from lastword.server.http_server import network_of
from lastword.server.server_limits import ServerLimits
from lastword.store import MemoryStore
from lastword.testing.scripted import Fault, Pause
from requirements import requirement


def body_of(size: int) -> bytes:
    """A chat request of exactly so many bytes."""
    frame = json.dumps({"messages": [{"role": "user", "content": ""}]})
    return json.dumps({"messages": [{"role": "user", "content": "x" * (size - len(frame))}]}).encode()


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
LONG = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: "
FITS = HEAD + b"Connection: close\r\nContent-Length: 1000\r\n\r\n" + body_of(1000)
# By limit: what is just allowed; and what is beyond it, with the answer to that.
TOO_MUCH = [
    ("body_bytes", 1000, FITS, HEAD + b"Content-Length: 1001\r\n\r\n" + body_of(1001), "body_too_large"),
    # Also when its length was not announced; and before it is sent, when it was.
    ("body_bytes", 1000, FITS, HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + body_of(1001), "body_too_large"),
    ("body_bytes", 1000, FITS, HEAD + b"Content-Length: 1001\r\n\r\n", "body_too_large"),
    # A body that never ends is told so, and its connection closed.
    ("body_seconds", 0.2, FITS, HEAD + b"Content-Length: 100\r\n\r\n{", "body_too_slow"),
    # A client that says nothing, or half of its headers, does not hold a connection for ever.
    ("header_seconds", 0.2, FITS, b"", "headers_too_slow"),
    ("header_seconds", 0.2, FITS, b"GET /healthz HTTP/1.1\r\nHost: local", "headers_too_slow"),
    # All headers together, whether they come to an end or not, and the path with them.
    ("header_bytes", 2000, LONG + b"x" * 1500 + b"\r\n\r\n", LONG + b"x" * 2000 + b"\r\n\r\n", "headers_too_large"),
    ("header_bytes", 2000, LONG + b"x" * 1500 + b"\r\n\r\n", LONG + b"x" * 2000, "headers_too_large"),
    ("header_bytes", 2000, FITS, b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", "headers_too_large"),
]
STATUS = {"body_too_large": 413, "body_too_slow": 408, "headers_too_slow": 408, "headers_too_large": 431}


@requirement("API-53")
@pytest.mark.parametrize(("limit", "most", "fits", "beyond", "code"), TOO_MUCH, ids=range(len(TOO_MUCH)))
def test_what_a_request_may_be_and_take(house, limit, most, fits, beyond, code):
    """What fits is answered; what is larger or slower is refused by name."""
    server = house.server(lambda _: "Hello.", limits={limit: most})
    assert exchange(server.port, fits).status == 200
    answer = exchange(server.port, beyond)
    assert (answer.status, answer.code) == (STATUS[code], code)


@requirement("API-53")
def test_header_seconds_counts_for_the_second_request_too(house):
    """A connection that behaved once can still be slow the next time. While it is idle it may stay."""
    server = house.server(lambda _: "Hello.", limits={"header_seconds": 1.5})
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock:
        sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in sock.recv(65536)
        start = time.monotonic()
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        answer = read_answer(sock)
        assert (answer.status, answer.code) == (408, "headers_too_slow")
        assert time.monotonic() - start >= 1.3


@requirement("API-53")
def test_header_seconds_does_not_touch_a_slow_answer(house):
    """Only headers are in a hurry. The model may think."""
    gate = Pause()
    server = house.server([["One", gate, " two"]], limits={"header_seconds": 1.5, "stop_seconds": 5})
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.chat("Hi")))
    thread.start()
    assert gate.reached.wait(10)
    assert exchange(server.port, b"GET ").code == "headers_too_slow", "by now the limit has passed for the first too"
    gate.open()
    thread.join()
    assert answers[0].json["choices"][0]["message"]["content"] == "One two"


@requirement("API-53")
@pytest.mark.parametrize("finished", [True, False])
def test_header_bytes(house, finished):
    """All headers together, whether they come to an end or not."""
    server = house.server(lambda _: "Hello.", limits={"header_bytes": 2000})
    head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: "
    assert exchange(server.port, head + b"x" * 1500 + b"\r\n\r\n").status == 200
    answer = exchange(server.port, head + b"x" * 2000 + (b"\r\n\r\n" if finished else b""))
    assert (answer.status, answer.code) == (431, "headers_too_large")
    answer = exchange(server.port, b"GET /" + b"x" * 3000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.status == 431


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


# What a connection may have sent that asks for nothing yet, or nothing any more.
UNFINISHED = {
    "nothing": b"",
    "a request that was answered": HEALTH,
    "half a head": b"GET /healthz HTTP/1.1\r\nHo",
    "half a body": b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{",
}


def connect(stack: ExitStack, port: int, source: str = "127.0.0.1") -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), 20, source_address=(source, 0)))


def asks(sock: socket.socket) -> bool:
    """Whether a connection is still served."""
    try:
        sock.sendall(HEALTH)
        return b"200 OK" in sock.recv(65536)
    except ConnectionError:
        return False


@requirement("API-53")
def test_connections(house):
    """A house is full when everybody in it is being answered. Who comes then is told so; the others are served."""
    gates = [Pause(), Pause()]
    server = house.server([["One", gate, " two"] for gate in gates], limits={"connections": 2, "stop_seconds": 5})
    answers: list[Answer] = []
    busy = [threading.Thread(target=lambda: answers.append(server.chat("Hi", stream=True))) for _ in gates]
    for thread, gate in zip(busy, gates, strict=True):
        thread.start()
        assert gate.reached.wait(10)
    answer = exchange(server.port, b"")
    assert (answer.status, answer.code) == (503, "too_many_connections")
    for gate in gates:
        gate.open()
    for thread in busy:
        thread.join()
    assert [answer.status for answer in answers] == [200, 200]


@requirement("API-53")
@pytest.mark.parametrize("sent", UNFINISHED)
def test_connections_that_ask_for_nothing_keep_nobody_out(house, sent):
    """A thousand of them are made in a moment, and gave everybody else 503 for as long as they were held."""
    server = house.server(lambda _: "Hello.", limits={"connections": 20})
    with ExitStack() as stack:
        idle = [connect(stack, server.port) for _ in range(20)]
        for sock in idle:
            sock.sendall(UNFINISHED[sent])
        for _ in range(30):
            assert server.chat("Hi").status == 200
        late = connect(stack, server.port)
        assert asks(late)


@requirement("API-53")
def test_the_connection_that_waited_longest_goes_first(house):
    """A client between two requests should find its connection, as long as there are older ones."""
    server = house.server(lambda _: "Hello.", limits={"connections": 4})
    with ExitStack() as stack:
        kept = [connect(stack, server.port) for _ in range(4)]
        assert all(asks(sock) for sock in kept)  # in this order, so the first has waited longest
        assert asks(connect(stack, server.port))
        assert [asks(sock) for sock in kept] == [False, True, True, True]


@requirement("API-53")
def test_one_address_takes_its_own_place_and_nobody_elses(house):
    """Whoever holds half of the house and wants more loses an idle one of theirs; the neighbours keep theirs."""
    server = house.server(lambda _: "Hello.", limits={"connections": 8, "connections_per_address": 4})
    with ExitStack() as stack:
        neighbour = connect(stack, server.port, "127.0.0.2")
        assert asks(neighbour)
        crowd = [connect(stack, server.port, "127.0.0.3") for _ in range(12)]
        assert asks(crowd[-1])
        assert sum(asks(sock) for sock in crowd) == 4
        assert asks(neighbour)


@requirement("API-53")
@pytest.mark.parametrize(
    ("host", "network"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_a_household_is_one_neighbour(host, network):
    """It has as many addresses of the newer kind as it likes."""
    assert network_of(host) == network


@requirement("API-53")
def test_messages(house):
    """The number of messages in one request."""
    server = house.server(lambda _: "Hello.", limits={"messages": 3})
    assert server.chat("1", "2", "3").status == 200
    answer = server.chat("1", "2", "3", "4")
    assert (answer.status, answer.code) == (413, "too_many_messages")


@requirement("API-53")
def test_streams_per_token(house):
    """One caller's turns at the same time; another caller is not touched, and a place that is left is free."""
    gate = Pause()
    server = house.server(
        lambda body: [gate, "Slow."] if body["messages"][-1]["content"] == "slow" else "Fast.",
        limits={"streams_per_token": 1, "stop_seconds": 5},
    )
    answers = []
    thread = threading.Thread(target=lambda: answers.append(server.chat("slow", stream=True)))
    thread.start()
    assert gate.reached.wait(10)
    answer = server.chat("fast")
    assert (answer.status, answer.code) == (429, "too_many_streams")
    assert answer.headers["retry-after"] == "1"
    assert server.send("GET", "/v1/conversations").status == 200
    gate.open()
    thread.join()
    assert answers[0].status == 200
    assert server.chat("fast").status == 200


@requirement("API-53")
def test_requests_per_minute(house):
    """A burst of a tenth of a minute's worth, then the rate; Retry-After says when."""
    server = house.server(lambda _: "Hello.", limits={"requests_per_minute": 20})
    answers = [server.send("GET", "/v1/conversations") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[2].code == "too_many_requests"
    assert 1 <= int(answers[2].headers["retry-after"]) <= 4
    assert server.send("GET", "/healthz").status == 200, "whoever checks its health is not counted"


@requirement("API-53")
def test_requests_per_minute_is_counted_for_each_caller_and_fills_up_again(monkeypatch):
    """A bucket a caller; time fills it and no further than its size."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    rates = Rates(60)
    for _ in range(6):
        rates.spend("ana")
    with pytest.raises(Refusal):
        rates.spend("ana")
    rates.spend("ben")
    now[0] += 2
    rates.spend("ana")
    rates.spend("ana")
    with pytest.raises(Refusal):
        rates.spend("ana")
    now[0] += 1000
    for _ in range(6):
        rates.spend("ana")
    with pytest.raises(Refusal):
        rates.spend("ana")


@requirement("API-53", "API-30")
@pytest.mark.parametrize("stream", [False, True])
def test_reply_bytes(house, stream):
    """A model that does not stop talking is stopped, and nothing of it is stored."""
    store = MemoryStore()
    server = house.server(
        lambda body: "x" * 50_000 if body["messages"][-1]["content"] == "long" else "Short.",
        limits={"reply_bytes": 40_000},
        store=store,
    )
    answer = server.chat("long", conversation_id="c", stream=stream)
    error = answer.chunks[-1]["error"] if stream and answer.status == 200 else answer.json["error"]
    assert error["code"] == "upstream_too_large"
    assert server.send("GET", "/v1/conversations/c").status == 404
    assert server.chat("short", conversation_id="c", stream=stream).status == 200


@requirement("API-53", "API-30")
@pytest.mark.parametrize(
    "reply",
    [
        {"tool_calls": [{"id": "c1", "function": {"name": "t", "arguments": json.dumps({"x": "y" * 50_000})}}]},
        {"tool_calls": [{"id": f"c{n}", "function": {"name": "t", "arguments": ""}} for n in range(2_000)]},
        {"content": "Hi", "annotated": [{"x": "y" * 50_000}]},
    ],
    ids=["long arguments", "many calls", "a key that we do not know"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_reply_bytes_are_counted_wherever_they_stand(house, reply, stream):
    """A call can be as long as an answer, and would be stored and sent again with every turn."""
    server = house.server([reply], limits={"reply_bytes": 40_000})
    tools = [{"type": "function", "function": {"name": "t"}}]
    answer = server.chat("go", conversation_id="c", stream=stream, tools=tools)
    error = answer.chunks[-1]["error"] if stream and answer.status == 200 else answer.json["error"]
    assert error["code"] == "upstream_too_large"
    assert server.send("GET", "/v1/conversations/c").status == 404


@requirement("API-53", "API-30")
@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ({"first_byte_seconds": 1.5}, Fault("hang")),
        ({"idle_seconds": 1.5}, Fault("hang", after=["One"])),
    ],
)
def test_first_byte_seconds_and_idle_seconds(house, limits, fault):
    """A model that never begins is a 504; one that stops in the middle is an event that says so."""
    server = house.server([fault, "Fresh."], limits=limits)
    answer = server.chat("Hi", stream=True, conversation_id="c")
    error = answer.json["error"] if answer.status == 504 else answer.chunks[-1]["error"]
    assert error["code"] == "upstream_slow"
    assert (answer.status == 200) == bool(fault.after)
    assert server.chat("Hi", conversation_id="c").status == 200


def test_every_limit_has_words_and_a_test():
    """A limit that nobody explains, or that no test reaches, is a surprise."""
    source = "".join(path.read_text() for path in Path(__file__).parent.glob("*.py"))
    for name in ServerLimits.__struct_fields__:
        assert name in source, name
