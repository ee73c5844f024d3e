"""Whether a model's server lists the model that somebody named, and which one they may have meant.

A name that is not listed is no mistake for certain: some servers answer to names that they do not list, and some list
nothing. So it is said, and nobody is refused for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from lastword.display import visible
from lastword.errors import did_you_mean

# Of the names, what a sentence shows.
MAX_SHOWN = 6
MAX_NAME = 80
# A server may list any number; the nearest is looked for among so many.
MAX_LOOKED_AT = 1_000

# Ollama lists `llama3.2:latest`, and answers to `llama3.2`.
LATEST = ":latest"


def unlisted_words(name: str | None, models: Sequence[str]) -> str | None:
    """What there is to say of a name that the server does not list; None when it does, or lists nothing."""
    if name is None or not models or name in models or f"{name}{LATEST}" in models:
        return None
    near = did_you_mean(shown_name(name), [shown_name(model) for model in models[:MAX_LOOKED_AT]])
    said = f"the model's server does not list {shown_name(name)}"
    return f"{said}; {near}" if near else f"{said}; it lists {shown_names(models)}"


def shown_names(models: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(models) - MAX_SHOWN} more" if len(models) > MAX_SHOWN else ""
    return ", ".join(map(shown_name, models[:MAX_SHOWN])) + more


def shown_name(name: str) -> str:
    """A name as a server wrote it, for a line on a screen: nothing in it is obeyed, and it does not fill the screen."""
    seen = visible(name).replace("\n", "⏎")
    return seen if len(seen) <= MAX_NAME else f"{seen[:MAX_NAME]}…"
