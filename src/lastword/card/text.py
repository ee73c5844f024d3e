"""Texts and values as every surface shows them: what a person reads, marked, and folded where it is long.

A value stands as people read it: a text as it is, a list with a line for each of its items, an object with one for each
of its names. What could be taken for something else keeps its quotes: no two values read the same, so whoever agrees to
what they read agrees to one value alone. The exact form, JSON, is one key away on every surface.

What does not live here: which characters are marked (display.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lastword.consent import Secrets
from lastword.display import shortened as shortened
from lastword.display import units
from lastword.display import visible as visible

# A card that fills more than a screen hides its own question. Longer texts fold, and say how much is folded.
FOLD_LINES = 10
FOLD_CHARACTERS = 600

NOTHING = "(nothing)"
NO_ITEMS = "(an empty list)"
NO_NAMES = "(empty)"
_OURS = frozenset({NOTHING, NO_ITEMS, NO_NAMES})
ITEM = "• "
# Before each line of a text of several that stands among others.
LINE = "┊"
# Deeper than this nobody follows the steps; what is there is JSON again.
MAX_STEPS = 4
# Nor is so much read item by item, and laying it out would keep every other card waiting.
MAX_LAID_OUT = 100_000
# A name that cannot be mistaken for the text after it; every other one has quotes.
_NAME = re.compile(r"[^\W\d][\w.-]{0,59}", re.ASCII)
_NAMED_LINE = re.compile(rf"{_NAME.pattern}:( |\Z)", re.ASCII)
_IN_A_SCRIPT = re.compile(r"line ([1-9][0-9]{0,8}) of ")


@dataclass(frozen=True, slots=True)
class Passage:
    """A text as it may be shown, and how many characters of it are not."""

    text: str
    hidden: int = 0


def passage(text: str, *, fold: bool = True) -> Passage:
    """A text with its marks, folded to its beginning when it is long."""
    kept = beginning(text) if fold else text
    return Passage(visible(kept), len(text) - len(kept))


def beginning(text: str) -> str:
    """What is shown of a text at first."""
    return "\n".join(text.split("\n", FOLD_LINES)[:FOLD_LINES])[:FOLD_CHARACTERS]


def fold_of(text: str) -> int | None:
    """Where a marked text folds, in units of sixteen bits; None when all of it is shown."""
    kept = beginning(text)
    return None if kept == text else units(kept)


def one_line(text: str, limit: int = 120) -> str:
    """A text for a place with one line. A line break is shown as such; a longer text says how much longer it is."""
    kept = visible(text[:limit].replace("\n", "⏎"))
    return kept if len(text) <= limit else f"{kept}… ({len(text) - limit} more characters)"


def script_line(origin: str) -> int | None:
    """The line that the origin of a script's call names (`script_origin` in runs.py); None for any other origin."""
    found = _IN_A_SCRIPT.match(origin)
    return int(found[1]) if found else None


def readable(value: Any) -> str:
    """A value as a person reads it, in as many lines as it has items."""
    if isinstance(value, str):
        return literal(value) if _is_like_another(value) or _is_like_names(value) else value
    if isinstance(value, (list, dict)) and value:
        if len(json.dumps(value, ensure_ascii=False)) > MAX_LAID_OUT:
            return literal(value)
        return "\n".join(_lines(value, 1))
    return _single(value)


def in_one_line(value: Any) -> str:
    """A value for a row that helps to find it: items with commas between them. Nobody decides by it."""
    if isinstance(value, list) and value:
        return ", ".join(_within(item) for item in value)
    if isinstance(value, dict) and value:
        return ", ".join(f"{_name(name)} {_within(item)}" for name, item in value.items())
    # Dots without quotes are a secret's. Nobody decides here by a text that looks like one.
    return Secrets.MASK if value == Secrets.MASK else readable(value)


def literal(value: Any) -> str:
    """A value as a JSON literal. A line break in a text also breaks the line, after its `\\n`; nothing else does."""
    if isinstance(value, str):
        # In one go, with a sign for each line break that JSON passes on and the text has not: a million lines one by
        # one would keep every other card waiting.
        sign = next((sign for sign in _SIGNS if sign not in value), None)
        if sign is not None:
            return json.dumps(value.replace("\n", sign), ensure_ascii=False).replace(sign, "\\n\n")
        # No string of JSON holds the character that separates them here.
        lines = json.dumps(value.split("\n"), ensure_ascii=False, separators=("\0", ":"))
        return '"' + lines[2:-2].replace('"\0"', "\\n\n") + '"'
    short = json.dumps(value, ensure_ascii=False)
    return short if len(short) <= 60 else json.dumps(value, ensure_ascii=False, indent=2)


# Characters for nobody's texts.
_SIGNS = ("\ufdd0", "\ufdd1", "\ufdd2")


def _lines(value: list[Any] | dict[str, Any], step: int) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            inner = _inner(item, step)
            yield f"{ITEM}{inner[0]}"
            yield from (f"  {line}" for line in inner[1:])
        return
    for name, item in value.items():
        inner = _inner(item, step)
        if _is_laid_out(item, step):
            yield f"{_name(name)}:"
            yield from (f"  {line}" for line in inner)
        else:
            yield f"{_name(name)}: {inner[0]}"
            yield from (f"  {line}" for line in inner[1:])


def _inner(value: Any, step: int) -> list[str]:
    """The lines of a value within another one."""
    if _is_text_of_lines(value):
        return [f"{LINE} {line}" if line else LINE for line in value.split("\n")]
    if _is_laid_out(value, step):
        return [*_lines(value, step + 1)]
    if isinstance(value, (list, dict)) and value:
        return [json.dumps(value, ensure_ascii=False)]
    return _single(value).split("\n")


def _is_laid_out(value: Any, step: int) -> bool:
    """Whether a value within another one begins on a line of its own."""
    return _is_text_of_lines(value) or (isinstance(value, (list, dict)) and bool(value) and step < MAX_STEPS)


def _is_text_of_lines(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value and not _is_like_another(value)


def _single(value: Any) -> str:
    """A value without items, where it may stand beside others."""
    if isinstance(value, str):
        is_safe = "\n" not in value and not _is_like_another(value) and not _NAMED_LINE.match(value)
        return value if is_safe else literal(value)
    if value is None:
        return NOTHING
    if isinstance(value, (list, dict)):
        return NO_ITEMS if isinstance(value, list) else NO_NAMES
    return literal(value)


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _within(value: Any) -> str:
    if isinstance(value, (list, dict)) and value:
        return f"({in_one_line(value)})"
    said = _single(value)
    return literal(value) if isinstance(value, str) and "," in value else said


def _is_like_another(text: str) -> bool:
    """Whether a text would be read as a value of another type, or its ends would not be seen."""
    return not text or text != text.strip(" \t") or text[0] in "\"'[{‹•┊" or text in _OURS or _is_json(text)


def _is_json(text: str) -> bool:
    """Whether a text would be read as a number, true, false or null."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_like_names(text: str) -> bool:
    """Whether each line of a text would be read as a name with its value."""
    lines = text.split("\n")
    return _NAMED_LINE.match(lines[0]) is not None and all(
        line.startswith(("  ", '"')) or _NAMED_LINE.match(line) for line in lines
    )
