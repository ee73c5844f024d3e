"""Whether a model's message is a script, whole or so far. It is read, never run."""

from __future__ import annotations


def is_script(text: str) -> bool:
    """Whether the entire message is a script that does something."""
    return False


class ScriptOpening:
    """Watches a message arrive and says whether it could still turn out to be a script."""

    def feed(self, piece: str) -> bool:
        return True
