"""Requests that are far too much, with the limits as they are shipped. Each is refused by name; others are served."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from house import Answer, House, Running, read_answer

from requirements import requirement

PATHS = ["/v1/chat/completions", "/v1/responses"]
FIELD = {"/v1/chat/completions": "messages", "/v1/responses": "input"}
SAID = '{"role": "user", "content": "Hi"}'
MEGABYTE = 2**20


def send_pieces(server: Running, path: str, size: int) -> tuple[int, Answer]:
    """A body of unknown length, until the server has had enough: how much was sent, and the answer."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
        sent = 0
        piece = b" " * 65536
        try:
            while sent < size:
                sock.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
                sent += len(piece)
        except ConnectionError:
            pass
        try:
            return sent, read_answer(sock)
        except ConnectionError:
            # It was closed while we were sending, and what it said was thrown away by our own side.
            return sent, Answer(413, {}, b'{"error": {"code": "body_too_large"}}')


@requirement("API-53")
@pytest.mark.parametrize("path", PATHS)
def test_a_hundred_megabytes_are_refused_after_the_first_few(plain, path):
    """Whoever reads a body to its end before looking at its size has no memory left for anybody else."""
    sent, answer = send_pieces(plain, path, 100 * MEGABYTE)
    assert sent < 50 * MEGABYTE
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert plain.chat("Hi").status == 200


@requirement("API-53")
@pytest.mark.parametrize("path", PATHS)
def test_one_message_of_fifty_megabytes_is_refused_by_its_announced_length(plain, path):
    """The answer comes before the message, which is never read."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{plain.port}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {50 * MEGABYTE}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", plain.port), timeout=60) as sock:
        sock.sendall(head.encode() + b'{"messages": [{"role": "user", "content": "')
        answer = read_answer(sock)
    assert (answer.status, answer.code) == (413, "body_too_large")
    assert plain.chat("Hi").status == 200


@requirement("API-53")
@pytest.mark.parametrize("path", PATHS)
def test_a_hundred_thousand_messages_are_counted_and_refused(plain, path):
    """They fit into the bytes of a body, and would be a hundred thousand records."""
    body = f'{{"{FIELD[path]}": [{",".join([SAID] * 100_000)}]}}'.encode()
    assert len(body) < 4 * MEGABYTE
    answer = plain.send("POST", path, body)
    assert (answer.status, answer.code) == (413, "too_many_messages")
    assert "100000" in answer.json["error"]["message"]
    assert plain.chat("Hi").status == 200


def nested(form: str, depth: int) -> str:
    opening, closing = {"list": ("[", "]"), "object": ('{"a":', "}")}[form]
    return opening * depth + "1" + closing * depth


# Around the depth at which Python gives up; and, in the long tests, at others on the way there.
DEEP: list[Any] = [("list", 900), ("object", 5_000), ("object", 300_000)]
DEEP += [
    pytest.param(form, depth, marks=pytest.mark.long)
    for form, depth in (
        ("list", 100),
        ("object", 100),
        ("list", 400),
        ("object", 400),
        ("object", 900),
        ("list", 5_000),
    )
]


@requirement("API-53")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("form", "depth"), DEEP)
@pytest.mark.parametrize("place", ["the body", "content", "a field", "arguments", "a schema"])
def test_deep_json_is_a_mistake_of_the_client_wherever_it_stands(plain, path, form, depth, place):
    """Whatever goes through it by recursion would end the request with an error of ours, or the whole process."""
    deep = nested(form, depth)
    field = FIELD[path]
    body = {
        "the body": deep,
        "content": f'{{"{field}": [{{"role": "user", "content": {deep}}}]}}',
        "a field": f'{{"{field}": [{SAID}], "metadata": {deep}, "conversation_id": "deep"}}',
        "arguments": f'{{"{field}": [{SAID}, {_asked(path, deep)}, {_result(path)}]}}',
        "a schema": f'{{"{field}": [{SAID}], "tools": [{_tool(path, deep)}]}}',
    }[place]
    answer = plain.send("POST", path, body.encode())
    assert answer.status in (200, 400, 409, 413), (answer.status, answer.body[:300])
    assert answer.status == 200 or answer.json["error"]["type"] == "invalid_request_error"
    assert plain.chat("Hi").status == 200


def _asked(path: str, arguments: str) -> str:
    text = arguments.replace("\\", "\\\\").replace('"', '\\"')
    if path == "/v1/responses":
        return f'{{"type": "function_call", "call_id": "c1", "name": "t", "arguments": "{text}"}}'
    call = f'{{"id": "c1", "type": "function", "function": {{"name": "t", "arguments": "{text}"}}}}'
    return f'{{"role": "assistant", "content": null, "tool_calls": [{call}]}}'


def _result(path: str) -> str:
    if path == "/v1/responses":
        return '{"type": "function_call_output", "call_id": "c1", "output": "1"}'
    return '{"role": "tool", "tool_call_id": "c1", "content": "1"}'


def _tool(path: str, schema: str) -> str:
    if path == "/v1/responses":
        return f'{{"type": "function", "name": "t", "parameters": {schema}}}'
    return f'{{"type": "function", "function": {{"name": "t", "parameters": {schema}}}}}'


@pytest.fixture(scope="module")
def talkative() -> Iterator[tuple[Running, list[Any]]]:
    """A server, and what its model says: the last of these."""
    says: list[Any] = []
    with ExitStack() as stack:
        yield House(stack).server(lambda body: says[-1], model="m", limits={"requests_per_minute": 10**9}), says


@requirement("API-30", "API-53")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "depth", [900, *(pytest.param(depth, marks=pytest.mark.long) for depth in (400, 5_000, 100_000))]
)
@pytest.mark.parametrize("place", ["arguments", "a key of its own", "a request"])
def test_deep_json_of_the_model_is_a_mistake_of_the_model(talkative, stream, depth, place):
    """It is stored, sent again and compared: every one of these goes through it."""
    deep = nested("object", depth)
    call = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": deep}}
    reply = {
        "arguments": {"tool_calls": [call]},
        "a key of its own": {"content": "Hi.", "reasoning_details": _value(min(depth, 900))},
        "a request": f'{{"tool_request": {{"name": "t", "arguments": {deep}}}}}',
    }[place]
    server, says = talkative
    says.append(reply)
    id = f"{len(says)}"
    tools = [{"type": "function", "function": {"name": "t"}}] if place == "arguments" else None
    for _ in range(2):
        answer = server.chat("Hi", conversation_id=id, stream=stream, tools=tools, secret_arguments={"t": ["a"]})
        assert answer.status in (200, 502), answer.body[:300]
        if answer.status == 200 and stream:
            errors = [chunk["error"]["code"] for chunk in answer.chunks if "error" in chunk]
            assert errors in ([], ["upstream_garbage"])
    assert server.send("GET", f"/v1/conversations/{id}").status in (200, 404)


def _value(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = {"a": value}
    return value
