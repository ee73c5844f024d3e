"""The tool by which Claude Code asks for permission, as an MCP server: `claude --permission-prompt-tool`.

It is called with the name of a tool, its input and the id of its use, and gives one text: JSON that allows, with the
input to use, or denies, with the reason. Whatever goes wrong here is a no; Claude Code takes all else that is not
such a text for one, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from lastword.errors import LastWordError
from lastword.lazily import brought_by

with brought_by("mcp", "mcp", "mcp_types", "cryptography"):
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

log = logging.getLogger("lastword.mcp")

TOOL = "approve"

Decide = Callable[[str, dict[str, Any], str | None], Awaitable[dict[str, Any] | str]]
"""Given a tool, its input and the id of its use: the input that was allowed, or why it was not."""

_FORM: dict[str, Any] = {
    "name": TOOL,
    "description": "Asks the person, on the page of lastword up, whether a tool may be used.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "tool_name": {"type": "string"},
            "input": {"type": "object"},
            "tool_use_id": {"type": "string"},
        },
        "required": ["tool_name", "input"],
    },
}


class PermissionServer:
    """A server with that one tool."""

    def __init__(self, decide: Decide) -> None:
        self._decide = decide
        self.protocol: Any = Server("lastword", on_list_tools=self._list, on_call_tool=self._call)

    async def run_over_stdio(self) -> None:
        """Serve Claude Code on our standard input and output, until it closes them."""
        async with stdio_server() as (read, write):
            await self.protocol.run(read, write, self.protocol.create_initialization_options())

    async def _list(self, context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(_FORM)])

    async def _call(self, context: Any, params: Any) -> types.CallToolResult:
        told = await self.answer(params.name, params.arguments or {})
        return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(told))])

    async def answer(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What Claude Code is told."""
        tool, given, tool_use = (arguments.get(key) for key in ("tool_name", "input", "tool_use_id"))
        if name != TOOL or not isinstance(tool, str) or not isinstance(given, dict):
            return _denied("the question has not the form that this tool answers")
        try:
            decided = await self._decide(tool, given, tool_use if isinstance(tool_use, str) else None)
        except LastWordError as problem:
            return _denied(str(problem))
        except Exception as problem:
            log.error("a question for permission failed", exc_info=problem)
            return _denied(f"lastword itself failed: {type(problem).__name__}")
        return _denied(decided) if isinstance(decided, str) else {"behavior": "allow", "updatedInput": decided}


def _denied(why: str) -> dict[str, Any]:
    return {"behavior": "deny", "message": why}
