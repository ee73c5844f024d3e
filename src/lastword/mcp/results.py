"""What a server answers, as what our tools return: a value, and content beside it.

Nothing that an answer links to is fetched. Secrets that the server was given are taken out of every text.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any

from lastword.display import left_out
from lastword.errors import ToolError
from lastword.mcp.definitions import marked
from lastword.mcp.secrets import Hide, hide_in
from lastword.tools import content as tool_content

# Of what a server says went wrong. A model reads it, and a person may.
MAX_QUOTED = 4_000


def result_of(server: str, answer: dict[str, Any], hide: Hide) -> Any:
    """What a call of a server's tool gave. ToolError, with its words quoted, when the server says that it failed."""
    content = answer.get("content") or []
    if answer.get("isError"):
        words = "\n".join(block["text"] for block in content if block.get("type") == "text")
        raise ToolError(f"the MCP server {server} says that it failed: {quoted(words or 'nothing more', hide)}")
    blocks = _joined([_block(block, hide) for block in content])
    if "structuredContent" in answer:
        value = hide_in(answer["structuredContent"], hide)
        # Servers repeat the value as text for clients that know no better.
        rest = [block for block in blocks if not (isinstance(block, str) and _is_json_of(block, value))]
        return tool_content.ToolResult(value, _texts(rest)) if rest or value is None else value
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return blocks[0]
    return tool_content.ToolResult(None, _texts(blocks)) if blocks else "The server gave nothing back."


def quoted(words: str, hide: Hide) -> str:
    """A server's words, as its words."""
    words = hide(words)  # All of it, before it is cut: half a secret is one, too.
    return f"“{marked(words[:MAX_QUOTED])}”" + (left_out(len(words) - MAX_QUOTED) if len(words) > MAX_QUOTED else "")


def _block(block: dict[str, Any], hide: Hide) -> tool_content.Block | str:
    kind = block.get("type")
    if kind == "text":
        return hide(str(block.get("text", "")))
    if kind in ("image", "audio"):
        data, claimed = _bytes(block.get("data")), block.get("mimeType")
        return (tool_content.Image if kind == "image" else tool_content.Audio)(data, media_type=claimed)
    if kind == "resource_link":
        about = f": {block['description']}" if block.get("description") else ""
        return hide(f"[A link, which was not followed] {block.get('name', '')} {block.get('uri', '')}{about}")
    if kind == "resource":
        resource = block.get("resource") or {}
        name = hide(str(resource.get("uri", "")))
        if "text" in resource:
            return tool_content.Text(hide(str(resource["text"])), name=name)
        return tool_content.File(_bytes(resource.get("blob")), media_type=resource.get("mimeType"), name=name)
    return f"[A block of the kind {str(kind)[:60]}, which is not known here]"


def _bytes(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ToolError("the server ran, but what it returned as base64 is none; what it did stays done") from None


def _joined(blocks: Sequence[tool_content.Block | str]) -> list[tool_content.Block | str]:
    """Texts that follow each other, as one: some servers send a block for every line."""
    joined: list[tool_content.Block | str] = []
    for block in blocks:
        if joined and isinstance(block, str) and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n{block}"
        else:
            joined.append(block)
    return joined


def _texts(blocks: Sequence[tool_content.Block | str]) -> list[tool_content.Block | str]:
    return [tool_content.Text(block) if isinstance(block, str) else block for block in blocks]


def _is_json_of(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False
