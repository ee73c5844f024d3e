"""The names of MCP servers. How the ids of their tools are made of them is told in tools/foreign.py."""

from __future__ import annotations

from lastword.config import MCP_NAME
from lastword.errors import ConfigError
from lastword.tools import tool_id

__all__ = ["check_server_name", "tool_id"]


def check_server_name(name: str, place: str = "mcp") -> str:
    """The name, if a server may have it."""
    if not MCP_NAME.fullmatch(name):
        hint = "small letters, digits and hyphens, at most 32 of them"
        raise ConfigError(f"{name[:60]!r} is no name of an MCP server", place=place, hint=hint)
    return name
