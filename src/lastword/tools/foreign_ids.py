"""The id of a tool of somebody else's: one function, and no two pairs of owner and tool have one id. An owner is an
MCP server, or an agent whose hook asks here.

A name that can be an id is kept whole: `files__read_file`. In such an id two underscores follow each other where the
first one stands, since the name of a server has none. Every other name is made readable and ends with a digest of the
pair; there a letter or digit follows the first underscore, so that neither form can pass for the other.
"""

from __future__ import annotations

import re
from hashlib import sha256

from lastword.tools.manifest import MAX_ID_LENGTH

# Enough that nobody finds a second name for somebody else's id; a registry holds each id once in any case.
DIGEST_DIGITS = 16

_PLAIN_SERVER = re.compile(r"[a-z][a-z0-9]*")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9_]+")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def tool_id(server: str, tool: str) -> str:
    """The id under which a tool of a server is registered."""
    plain = f"{server}__{tool}"
    if _PLAIN_SERVER.fullmatch(server) and _PLAIN_TOOL.fullmatch(tool) and len(plain) <= MAX_ID_LENGTH:
        return plain
    # The length stands before the server's name, so that no pair can be read as another one.
    pair = f"{len(server)}:{server}:{tool}".encode("utf-8", "surrogatepass")
    digest = sha256(pair).hexdigest()[:DIGEST_DIGITS]
    readable = _OTHER.sub("_", tool).strip("_") or "tool"
    head = f"{_letters(server)}_{readable}"[: MAX_ID_LENGTH - DIGEST_DIGITS - 1]
    return f"{head}_{digest}"


def _letters(server: str) -> str:
    """The name of a server without what no id may hold."""
    kept = server.replace("-", "")
    return kept if kept[:1].isalpha() else f"mcp{kept}"
