"""A model's server that sends exactly these bytes to whatever it is asked, and closes the connection."""

import json
import socketserver
import threading
from types import TracebackType
from typing import Any


def sent_events(*chunks: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


class ByteServer:
    def __init__(
        self, body: bytes, *, media: str = "text/event-stream", status: str = "200 OK", headers: str = ""
    ) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {media}\r\n{headers}Content-Length: {len(body)}\r\n"
        answer = f"{head}Connection: close\r\n\r\n".encode() + body

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                length = 0
                while (line := self.rfile.readline()).strip():
                    name, _, value = line.decode("latin-1").partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                self.rfile.read(length)
                self.wfile.write(answer)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> "ByteServer":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
