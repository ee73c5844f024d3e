"""A model on loopback for real agents: it asks for one tool, and then says what it was told about it.

It speaks as much of three APIs as Claude Code, Codex and Gemini CLI need for one turn: Anthropic's messages, OpenAI's
responses and Google's generateContent, each as a stream of events.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Events = list[tuple[str, dict[str, Any]]]


class FakeModel:
    """What it asks for, and what it was told."""

    def __init__(self, tool: str, given: dict[str, Any]) -> None:
        self.tool = tool
        self.given = given
        self.told: list[str] = []
        self.offered: set[str] = set()
        self.address = ""

    def reply(self, path: str, body: dict[str, Any]) -> Events | dict[str, Any]:
        if "count_tokens" in path or "countTokens" in path:
            return {"input_tokens": 5, "totalTokens": 5}
        if "/responses" in path:
            return self._responses(body)
        if "enerateContent" in path:
            return self._gemini(path, body)
        return self._messages(body)

    def _messages(self, body: dict[str, Any]) -> Events:
        last = body["messages"][-1]["content"]
        results = [part for part in last if isinstance(part, dict) and part.get("type") == "tool_result"]
        self.told += [json.dumps(result.get("content")) for result in results]
        self.offered |= {str(tool.get("name")) for tool in body.get("tools", [])}
        asks = not results and self.tool in {tool.get("name") for tool in body.get("tools", [])}
        kind = {"type": "tool_use", "id": "toolu_01", "name": self.tool, "input": {}}
        text = {"type": "text", "text": ""}
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(self.given)}
            if asks
            else {"type": "text_delta", "text": f"told: {self.told}"}
        )
        message: dict[str, Any] = {
            "id": "m", "type": "message", "role": "assistant", "model": body.get("model"), "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        stop = {"stop_reason": "tool_use" if asks else "end_turn", "stop_sequence": None}
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": kind if asks else text},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ]
        return [(str(event["type"]), event) for event in events]

    def _responses(self, body: dict[str, Any]) -> Events:
        results = [part for part in body.get("input", []) if str(part.get("type", "")).endswith("call_output")]
        self.told += [json.dumps(result.get("output")) for result in results]
        self.offered |= {str(tool.get("name") or tool.get("type")) for tool in body.get("tools", [])}
        item: dict[str, Any]
        if results:
            text = [{"type": "output_text", "text": f"told: {self.told}", "annotations": []}]
            item = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": text}
        elif self.tool == "apply_patch":
            item = {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": self.tool,
                    "input": self.given["patch"], "status": "completed"}  # fmt: skip
        else:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": self.tool,
                    "arguments": json.dumps(self.given), "status": "completed"}  # fmt: skip
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
        done = response | {"status": "completed", "output": [item], "usage": usage}
        events: list[dict[str, Any]] = [
            {"type": "response.created", "response": response},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]
        return [(str(event["type"]), event) for event in events]

    def _gemini(self, path: str, body: dict[str, Any]) -> Events | dict[str, Any]:
        parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
        results = [part["functionResponse"] for part in parts if "functionResponse" in part]
        self.told += [json.dumps(result.get("response")) for result in results]
        declared = [each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])]
        self.offered |= {str(each.get("name")) for each in declared}
        if not results and self.tool in {each.get("name") for each in declared}:
            part: dict[str, Any] = {"functionCall": {"name": self.tool, "args": self.given}}
        else:
            part = {"text": f"told: {self.told}"}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        whole = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 2}}
        return [("", whole)] if "stream" in path else whole

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Answer on loopback for as long as this lasts."""
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *ignored: Any) -> None:
                """Nobody reads it."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
                reply = model.reply(self.path, body)
                kind = "application/json" if isinstance(reply, dict) else "text/event-stream"
                data = json.dumps(reply) if isinstance(reply, dict) else "".join(map(_event, reply))
                self._send(200, data.encode(), kind)

            def do_GET(self) -> None:
                self._send(404, b"{}", "application/json")

            do_HEAD = do_GET

            def _send(self, status: int, data: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.address = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield self.address
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def _event(event: tuple[str, dict[str, Any]]) -> str:
    name, data = event
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"
