"""The head of an answer travels with its body; what nothing follows travels alone, and at once."""

import asyncio
import socket

from lastword.server.serving import JoinedWrites


class Recorder(asyncio.Transport):
    """A transport that keeps what it is told."""

    def __init__(self):
        super().__init__()
        self.said = []

    def write(self, data):
        self.said.append(bytes(data))

    def close(self):
        self.said.append("closed")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def written(*pieces):
    """What reaches the network, write by write. A string names what is called between two writes."""
    recorder = Recorder()
    joined = JoinedWrites(recorder)
    for piece in pieces:
        if isinstance(piece, str):
            getattr(joined, piece)()
        else:
            joined.write(piece)
    return recorder.said


def test_a_head_waits_for_what_follows_it():
    """Every write wakes the client, and a head alone is nothing to wake up for."""
    assert written(HEAD, b"one", b"two") == [HEAD + b"one", b"two"]
    assert written(HEAD, b"") == [HEAD]
    assert written(HEAD, b"one", "flush", HEAD, b"two") == [HEAD + b"one", HEAD + b"two"]


def test_a_head_that_nothing_follows_is_not_kept():
    """The answer to HEAD ends with its head, and a connection may be closed after one."""
    assert written(HEAD, "flush") == [HEAD]
    assert written(HEAD, "close") == [HEAD, "closed"]
    assert written(b"one", "flush", "close") == [b"one", "closed"]


def test_the_head_of_a_stream_does_not_wait_for_its_first_piece():
    """A model may think for a minute, and a page that comes back may find nothing new."""
    assert written(STREAM) == [STREAM]
    assert written(STREAM, b"one", b"two") == [STREAM, b"one", b"two"]


def test_an_invitation_to_send_the_body_goes_out_at_once():
    """Whoever sends `Expect: 100-continue` waits for it, and we would wait for them."""
    assert written(b"HTTP/1.1 100 Continue\r\n\r\n") == [b"HTTP/1.1 100 Continue\r\n\r\n"]


def until_head_ends(sock):
    received = b""
    while b"\r\n\r\n" not in received:
        piece = sock.recv(65536)
        assert piece, received
        received += piece
    return received


def test_a_connection_lives_on_after_an_answer_without_a_body(house):
    """The client of a HEAD request gets its head without the server having anything else to say."""
    server = house.server()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        for _ in range(2):
            sock.sendall(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert until_head_ends(sock).startswith(b"HTTP/1.1 405 ")


def test_a_client_that_asks_before_it_sends_its_body_is_answered(house):
    """curl does so with large bodies."""
    server = house.server(house.model(["Hello."]))
    body = b'{"messages":[{"role":"user","content":"Hi"}]}'
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as sock:
        sock.sendall(head % len(body))
        assert until_head_ends(sock) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(body)
        assert until_head_ends(sock).startswith(b"HTTP/1.1 200 ")
