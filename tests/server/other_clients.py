"""What clients of others are let loose on: a model that knows their programme, and where they are installed.

`./test --long` installs them (tests/clients), in a cache folder; what could not be had is named in its last lines.
"""

import os
from pathlib import Path
from typing import Any

from lastword.testing.scripted import Fault, Pause, Reply

CLIENTS = Path(__file__).parent.parent / "clients"
INSTALLED = Path(
    os.environ.get("LASTWORD_TEST_CLIENTS")
    or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lastword-clients"
)
NODE = INSTALLED / "node"
PYTHON = INSTALLED / "python" / "bin" / "python"

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'}}

# What a client sees that carries out the programme.
PROGRAMME = {
    "chat": "Hello.",
    "stream": ["One ", "two ", "three."],
    "tools": ["weather", {"city": "Lisbon"}, "It is clear."],
    "at_once": ["Done.", "Opened.", "One two"],
}


class Friend:
    """A model that answers each step of the programme. What is slow waits until somebody has it opened."""

    def __init__(self) -> None:
        self._gates: dict[str, Pause] = {}

    def reply(self, body: dict[str, Any]) -> Reply:
        last = body["messages"][-1]
        if last["role"] == "tool":
            return "It is clear."
        said = words(last["content"])
        kind, _, rest = said.rstrip(".").partition(" ")
        gate = self._gates.setdefault(rest, Pause())
        if kind == "Open":
            # Whatever is slow was asked before, and is still not answered.
            gate.open()
        history = [words(message["content"]) for message in body["messages"]]
        replies: dict[str, Reply] = {
            "Say hello": "Hello.",
            "Again": "Hello again." if history[:2] == ["Say hello.", "Hello."] else "Who are you?",
            "Count": "One two three.",
            "Weather?": {"tool_calls": [CALL]},
            "Fast": "Done.",
            "Open": "Opened.",
            "Slow": ["One", gate, " two"],
            "Too": Fault("status", status=400, code="context_length_exceeded"),
        }
        return replies.get(said.rstrip("."), replies.get(kind, f"You said {said}"))


def words(content: Any) -> str:
    """Content as a text; some clients send parts."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content or ())
