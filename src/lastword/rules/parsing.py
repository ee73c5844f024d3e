"""The text of a policy file, down to tables: whatever TOML can hold and no rule can is refused here, with its line.

A cloned project brings a file along that nobody has looked at, and every command reads it. So it is also bounded what
reading may cost: each limit is far beyond what people write, and together they keep the time well below a second.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from lastword.errors import ConfigError
from lastword.rules.compiling import is_large_pattern

# Tables and lists inside of each other. A bound needs ten, and a parser that recurses has room for some hundreds.
MAX_LEVELS = 50
# As many as the largest number with a point has. Python takes too long to write down thousands.
MAX_DIGITS = 309
# The parts of one dotted name, `a.b.c`. The parser's time grows with their square.
MAX_PARTS = 50
# The longest name whose line is looked for by how it is written, and not just by where it stands.
MAX_FIELD = 200
# More than anybody writes by hand. Most take some hundredths of a millisecond, and are compiled a few times.
MAX_PATTERNS = 1_000
# Those that grow when they are compiled take up to 20 milliseconds each.
MAX_LARGE_PATTERNS = 20
# How often an example of a test is compared with a value of a bound: about a microsecond each.
MAX_COMPARISONS = 300_000

_NAME = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_-]){_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{MAX_PARTS}}}")
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{1000}")
_BRACKET = re.compile(r"[\[{]")

Names = tuple[str, ...]
"""Of the fields and tables that lead to a value, from the outermost on."""


def tables_in(text: str, file: Path) -> dict[str, Any]:
    """What a file says in TOML. A ConfigError says where it is wrong."""
    if text.startswith("\ufeff"):
        refuse(file, 1, "it begins with a byte order mark, which nobody sees", "save it as UTF-8 without one")
    if found := _LONG_NAME.search(text):
        line = text.count("\n", 0, found.start()) + 1
        refuse(file, line, f"a name has more than {MAX_PARTS} parts", "as in [rule.where], or to.is")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        fact, _, where = str(problem).partition(" (at line ")
        line = int(where.partition(",")[0]) if where[:1].isdigit() else text.count("\n") + 1
        hint = 'texts stand in quotes, lists in [ ], tables in { }, each closed on its line: to = { in = ["Ada"] }'
        refuse(file, line, f"not TOML: {fact[:1].lower()}{fact[1:]}", hint)
    except RecursionError:
        refuse(file, _most(text, _BRACKET), *_too_deep())
    except ValueError:  # Python's own limit for the digits of a number; all else that is no TOML is told above.
        refuse(file, _most(text, _LONG_NUMBER), *_too_long())


def _most(text: str, what: re.Pattern[str]) -> int:
    """The first line that has the most of something."""
    counts = [len(what.findall(line)) for line in text.split("\n")]
    return counts.index(max(counts)) + 1


def _too_deep() -> tuple[str, str]:
    return f"lists and tables stand inside of each other more than {MAX_LEVELS} times", "write fewer levels"


def _too_long() -> tuple[str, str]:
    return f"a number has more than {MAX_DIGITS} digits", "no argument is compared with such a one; leave it out"


class Room:
    """How much of what takes time the rules of one file may still hold."""

    def __init__(self) -> None:
        self._patterns, self._large, self._comparisons = MAX_PATTERNS, MAX_LARGE_PATTERNS, MAX_COMPARISONS

    def take(self, rule: dict[str, Any]) -> tuple[Names, str, str] | None:
        """Make room for a rule. Where that cannot be: the names that lead to what is too much, a fact and a hint."""
        values = 0
        for path, value, level in _walk(rule):
            values += path[:1] == ("where",)
            if level > MAX_LEVELS:
                return path, *_too_deep()
            if type(value) is int and value.bit_length() > MAX_DIGITS * 3.33:
                return path, *_too_long()
            is_pattern = path[:1] == ("where",) and path[-1] in ("matches", "args") and isinstance(value, str)
            if is_pattern and (said := self._take_pattern(value)):
                return path, *said
        tests = rule.get("tests")
        lists = tests.values() if isinstance(tests, dict) else ()
        examples = sum(len(found) for found in lists if isinstance(found, list))
        self._comparisons -= examples * values
        if self._comparisons < 0:
            fact = f"to try the examples of this file takes more than {MAX_COMPARISONS:,} comparisons"
            return ("tests",), fact, "one example that matches and one that does not say enough, for most rules"
        return None

    def _take_pattern(self, text: str) -> tuple[str, str] | None:
        self._patterns -= 1
        if self._patterns < 0:
            return f"more than {MAX_PATTERNS:,} patterns in one file", "values that are known stand in a list, with in"
        self._large -= is_large_pattern(text)
        if self._large >= 0:
            return None
        hint = "length says how long a text may be; a class of letters that is repeated many times takes the most"
        return f"more than {MAX_LARGE_PATTERNS} patterns that are large when they are compiled", hint


def _walk(rule: dict[str, Any]) -> Iterator[tuple[Names, Any, int]]:
    """Every value of a rule with the names that lead to it, and how deep it lies. No deeper than is allowed."""
    stack: list[tuple[Names, Any, int]] = [((), rule, 0)]
    while stack:
        path, value, level = stack.pop()
        yield path, value, level
        if isinstance(value, dict):
            stack += (((*path, name), inner, level + 1) for name, inner in reversed(value.items()))
        elif isinstance(value, list):
            stack += ((path, inner, level + 1) for inner in reversed(value))


def line_of(lines: list[str], field: str, begins: int = 1, ends: int | None = None) -> int:
    """The line on which a field is set, or its table begins; the first line looked at when it is not found."""
    if len(field) > MAX_FIELD:  # To compile a pattern of it would take longer than all the rest.
        return next(
            (number for number in range(begins, (ends or len(lines)) + 1) if field in lines[number - 1]), begins
        )
    name = re.escape(field)
    found = re.compile(rf"""\s*(?:\[+[^\[\]]*\b{name}\s*\]|(?:[\w."'-]+\.)?["']?{name}["']?\s*(?:=|\.))""")
    for number in range(begins, (len(lines) if ends is None else ends) + 1):
        if found.match(lines[number - 1]):
            return number
    return begins


def refuse(file: Path, line: int, fact: str, hint: str) -> NoReturn:
    """Nothing starts while a file says this."""
    raise ConfigError(fact, place=f"{file}:{line}", hint=hint)
