"""What a client may do with its connection besides sending a request and reading the answer."""

import socket


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
            assert until_head_ends(sock).startswith(b"HTTP/1.1 200 ")


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
