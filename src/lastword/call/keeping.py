"""Taking the content out of what a tool returned: what is to be kept, what it is, and what is too large to keep.

Nothing is cut. A result that does not fit is told as one that was not kept, although its tool ran.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from lastword import values
from lastword.consent import Kept, clean_alt, clean_name, size_in_words
from lastword.errors import ToolError
from lastword.tools import content as tool_content

log = logging.getLogger("lastword")


class Taken(msgspec.Struct, frozen=True):
    """What a tool returned, in two: the value, and what goes with it."""

    value: Any
    has_value: bool
    kept: tuple[Kept, ...]
    contents: tuple[bytes, ...]
    """The bytes of what was kept, in its order."""
    texts: tuple[str, ...]


def take(tool: str, returned: Any) -> Taken | None:
    """The content of what a tool returned; None when it is a value and nothing else. ToolError when it cannot be."""
    try:
        return _take(tool, returned)
    except ToolError:
        raise
    except Exception as problem:  # A block or a list of the tool's own class is the tool's code.
        log.error("what %s returned could not be kept", tool, exc_info=problem)
        raise ToolError(f"{tool} ran, but what it returned could not be kept: {type(problem).__name__}") from None


def _take(tool: str, returned: Any) -> Taken | None:
    if isinstance(returned, tool_content.ToolResult):
        content = () if returned.content is None else returned.content
        blocks = [content] if isinstance(content, (tool_content.Block, str)) else content
        if not isinstance(blocks, (list, tuple)):
            raise ToolError(
                f"{tool} ran, but the content of its result is a {type(content).__name__}, where a list of blocks and "
                "texts belongs. Its author must mend it."
            )
        return _taken(tool, returned.value, returned.value is not None or not blocks, blocks)
    if isinstance(returned, tool_content.Block):
        return _taken(tool, None, False, [returned])
    if isinstance(returned, (list, tuple)) and any(isinstance(item, tool_content.Block) for item in returned):
        return _taken(tool, None, False, returned)
    return None


def _taken(tool: str, value: Any, has_value: bool, given: Sequence[Any]) -> Taken:
    for item in given:
        if not isinstance(item, (tool_content.Block, str)):
            raise ToolError(
                f"{tool} ran, but returned content with a {type(item).__name__} in it, which is neither a block nor "
                "text. Its author must mend it: a value and content go together as ToolResult(value, content)."
            )
    if len(given) > tool_content.MAX_BLOCKS:
        raise _too_large(tool, f"it holds {len(given)} blocks, and {tool_content.MAX_BLOCKS} are the most")
    blocks = [tool_content.Text(item) if isinstance(item, str) else item for item in given]
    total = 0
    kept: list[Kept] = []
    for block in blocks:
        if block.data is None:
            name = clean_name(block.name, block.kind, block.media_type or "")
            raise _too_large(
                tool, f"{name} has more than {size_in_words(tool_content.MAX_BLOCK_BYTES)}, the most for one block"
            )
        total += len(block.data)
        if total > tool_content.MAX_RESULT_BYTES:
            raise _too_large(tool, f"its blocks have more than {size_in_words(tool_content.MAX_RESULT_BYTES)} together")
        kept.append(_keep(block, block.data))
    texts = tuple(block.data.decode() for block in blocks if block.data is not None and block.kind == "text")
    return Taken(value, has_value, tuple(kept), tuple(block.data for block in blocks if block.data is not None), texts)


def _keep(block: tool_content.Block, data: bytes) -> Kept:
    kind, media_type = tool_content.true_kind(block.kind, data, block.media_type, block.name)
    name = clean_name(block.name, kind, media_type)
    return Kept(kind, values.digest(data), media_type, len(data), name, clean_alt(block.alt))


def _too_large(tool: str, why: str) -> ToolError:
    return ToolError(
        f"{tool} ran, but its result was too large to keep: {why}. Nothing of the result was kept, and what the tool "
        "did stays done. Ask for less, or for a part at a time."
    )
