"""Finding text in a project: literally unless told otherwise, and never without bounds.

A pattern comes from a model and may be hostile, or merely unlucky. Regular expressions are therefore matched line by
line by the engine that checks the patterns of JSON Schemas here: its time is linear in the line, whatever the pattern.
The price is that there is no look-around and no back reference. Python's own engine can take for ever on thirty
characters, and cannot be stopped while it does.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jsonschema_rs
import msgspec

from lastword.editor.provider import GONE, NOT_TEXT, EditError, LeftOut, why_unread
from lastword.editor.text import decode

# What a model can still make use of; a search with more hits is too wide.
MAX_MATCHES = 500
# A line beyond this is generated, and its beginning says as much.
MAX_SHOWN_CHARACTERS = 300
MAX_QUERY_CHARACTERS = 1_000
# Somebody is waiting. What was found until then is still true.
SEARCH_TIMEOUT_SECONDS = 10.0
# The memory that one compiled pattern may take.
MAX_PATTERN_BYTES = 1_000_000

STOPPED = "not searched: the search had stopped"


class Match(msgspec.Struct, frozen=True):
    """A line that matches. `line` counts from 1."""

    path: str
    line: int
    text: str


class Found(msgspec.Struct, frozen=True):
    """What a search found, in the order of the files."""

    matches: list[Match]
    searched: int
    """How many files were looked at."""
    stopped: str | None = None
    """Why there may be more, in words; None when everything was searched."""
    left_out: tuple[LeftOut, ...] = ()
    """The files that were not looked at."""


def search(
    files: Iterable[str],
    read: Callable[[str], bytes | None],
    query: str,
    *,
    regex: bool = False,
    ignore_case: bool = False,
    max_matches: int = MAX_MATCHES,
    timeout_seconds: float = SEARCH_TIMEOUT_SECONDS,
) -> Found:
    """The lines of these files that hold the query. Files that cannot be read as text are named with the reason."""
    find = _finder(query, regex=regex, ignore_case=ignore_case)
    files = list(files)
    deadline = time.monotonic() + timeout_seconds
    matches: list[Match] = []
    left_out: list[LeftOut] = []
    searched = 0
    stopped: str | None = None
    for place, path in enumerate(files):
        if time.monotonic() > deadline:
            stopped = f"stopped after {timeout_seconds:g} seconds; search in fewer files"
            left_out += [LeftOut(rest, STOPPED) for rest in files[place:]]
            break
        text = _text_to_search(path, read, left_out)
        if text is None:
            continue
        searched += 1
        found = list(itertools.islice(find(text), max_matches - len(matches) + 1))
        room = max_matches - len(matches)
        matches += [Match(path, line, _shown(text)) for line, text in found[:room]]
        if len(found) > room:
            stopped = f"stopped at {max_matches} matches; search for something rarer"
            left_out += [LeftOut(rest, STOPPED) for rest in files[place + 1 :]]
            break
    return Found(matches, searched, stopped, tuple(left_out))


def _text_to_search(path: str, read: Callable[[str], bytes | None], left_out: list[LeftOut]) -> str | None:
    """The text of a file; None, and a word on why, when there is none."""
    try:
        data = read(path)
    except EditError as problem:
        left_out.append(LeftOut(path, why_unread(problem)))
        return None
    text = None if data is None else decode(data)
    if text is None:
        left_out.append(LeftOut(path, GONE if data is None else NOT_TEXT))
    return text


Finder = Callable[[str], Iterator[tuple[int, str]]]


def _finder(query: str, *, regex: bool, ignore_case: bool) -> Finder:
    """A function from the text of a file to the lines that match."""
    if not query or len(query) > MAX_QUERY_CHARACTERS:
        raise EditError(f"a search takes 1 to {MAX_QUERY_CHARACTERS} characters, not {len(query)}")
    try:
        query.encode()
    except UnicodeEncodeError:
        raise EditError("the search holds half a character", hint="send the whole one") from None
    if regex:
        return _by_line(_pattern(f"(?i){query}" if ignore_case else query))
    literal = _by_place(re.compile(re.escape(query), re.IGNORECASE if ignore_case else 0).finditer)
    if ignore_case:
        return literal
    # Most files do not hold the query, and that is quickly seen.
    return lambda text: literal(text) if query in text else iter(())


def _pattern(expression: str) -> Callable[[Any], bool]:
    try:
        return jsonschema_rs.validator_for(
            {"pattern": expression},
            pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES),
        ).is_valid
    except jsonschema_rs.ValidationError:
        raise EditError(
            f"{expression!r} is not a regular expression that can be searched for",
            hint="look-around and back references are not known, and repetitions must be small; or search literally",
        ) from None


def _by_line(matches: Callable[[str], bool]) -> Finder:
    def find(text: str) -> Iterator[tuple[int, str]]:
        if text:
            for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
                line = line.removesuffix("\r")
                if matches(line):
                    yield number, line

    return find


def _by_place(places: Callable[[str], Iterator[re.Match[str]]]) -> Finder:
    def find(text: str) -> Iterator[tuple[int, str]]:
        number, counted = 1, 0
        last = 0
        for place in places(text):
            number, counted = number + text.count("\n", counted, place.start()), place.start()
            if number != last:
                start = text.rfind("\n", 0, counted) + 1
                end = text.find("\n", counted)
                yield number, text[start : end if end >= 0 else len(text)].removesuffix("\r")
            last = number

    return find


def _shown(line: str) -> str:
    if len(line) <= MAX_SHOWN_CHARACTERS:
        return line
    return f"{line[:MAX_SHOWN_CHARACTERS]}… ({len(line) - MAX_SHOWN_CHARACTERS} more characters)"
