"""Values in sentences of ours: what a bound says, and why a value does not fit. Whatever others wrote is marked.

A sentence to which somebody agrees must not go on in words that stood in a value, nor end before the value does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from lastword import values
from lastword.display import visible
from lastword.errors import NotJSON

# How much of a value is repeated to whoever asks why it does not fit.
MAX_SHOWN = 60
# How much of one is told to whoever agrees to it. Two commands, or two folders, are often alike for longer than a line.
MAX_AGREED = 400
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
_IN_QUOTES = str.maketrans({"“": "‹U+201C›", "”": "‹U+201D›", "\n": "⏎", "⏎": "‹U+23CE›"})


def shown(value: Any, most: int = MAX_SHOWN) -> str:
    """A value in a sentence of ours; of a long one its beginning, and how much more of it there is."""
    if isinstance(value, str):
        return _begun(value, most, quoted)
    if type(value) is int:
        return _begun(str(value), most, str)
    try:
        plain = values.plain(value)
    except NotJSON:
        return f"a {type(value).__name__}"
    # With quotes around every text inside: without them a list goes on as if it were our words, or a longer list.
    text = json.dumps(plain, ensure_ascii=False) if isinstance(plain, (list, dict)) else values.text(plain)
    return _begun(text, most, _unquoting)


def _begun(text: str, most: int, drawn: Callable[[str], str]) -> str:
    more = len(text) - most
    return drawn(text) if more <= 0 else f"{drawn(text[:most])}… ({more:,} more characters)"


def quoted(text: str) -> str:
    """A text in a sentence of ours, all of it."""
    if text.isascii() and text.isprintable():
        return f"“{text}”"
    return f"“{_unquoting(text)}”"


def _unquoting(text: str) -> str:
    """A text as it may be seen. One that closes our quotes, or begins a line, could go on as if it were our words."""
    return visible(text).translate(_IN_QUOTES)


def shown_name(name: str) -> str:
    """The name of an argument in a sentence of ours. One that a model made up may be a sentence itself."""
    return name if _NAME.fullmatch(name) else quoted(brief(name))


def call_words(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call in a sentence of ours, with the beginning of what is long."""
    return ", ".join([visible(tool), *(f"{shown_name(name)} {shown(value)}" for name, value in arguments.items())])


def brief(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def listed(known: list[Any], most: int = MAX_SHOWN) -> str:
    said = ", ".join(shown(value, most) for value in known[:5])
    return f"{said} and {len(known) - 5} more" if len(known) > 5 else said
