"""The text of a file: from bytes and back, by its lines, and with structured edits.

What a tool reads is the text as it stands in the file, without a byte order mark. What is written keeps the form of the
file: its byte order mark, and its line endings where the file uses one kind throughout and the new text uses the other
kind throughout. Models write `\\n`; a file with `\\r\\n` stays one. Mixed endings, on either side, are left as they
are given, since nobody can say which were meant. UTF-8 only: guessing another encoding would now and then write back
something else than was read.

A line ends with `\\n` and includes its `\\r\\n` or `\\n`; a text of three lines has three with or without a last line
ending. Contents of edits are lines too: `a` and `a\\n` are both one line, and an empty content is none, which is
refused. New lines take the line ending of the place they go to. All line numbers refer to the text as it was, so the
order in which operations are given means nothing; where it would have to mean something (two insertions before one
line, overlapping replacements) the batch is refused. All operations apply or none, and a refusal names every problem at
once, so that a model can repair it in one go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TypedDict

import msgspec

from lastword.errors import EditError, NotText

BOM = b"\xef\xbb\xbf"
BOM_CHARACTER = "\ufeff"


def decode(data: bytes, *, strip: bool = True) -> str | None:
    """The text of a file without its byte order mark; None when it is not text in UTF-8.

    A part of a file has no such mark, and what looks like one is text: `strip=False` leaves it there.
    """
    if b"\0" in data:
        return None
    try:
        return (data.removeprefix(BOM) if strip else data).decode("utf-8")
    except UnicodeDecodeError:
        return None


def encode(content: str, like: bytes | None, *, path: str) -> bytes:
    """The bytes to write for `content` over a file that holds `like` (None: a new file).

    `encode(decode(data), data) == data` for everything that decodes.
    """
    if "\0" in content:
        raise NotText(
            "the new content holds a NUL character, and text has none",
            place=path,
            hint="the editor writes text only",
        )
    old = None if like is None else decode(like)
    if like is not None and old is None:
        raise NotText(
            "the file is binary or not UTF-8, so it can be neither edited nor replaced as text",
            place=path,
            hint="convert it to UTF-8 first, or leave it alone",
        )
    if old is not None:
        content = keep_newlines(old, content)
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError as problem:
        raise NotText(
            f"the new content holds the lone surrogate U+{ord(problem.object[problem.start]):04X}",
            place=path,
            hint="a surrogate is half a character; send the whole one",
        ) from None
    if like is not None and old is not None and like.startswith(BOM):
        # A caller who sent the mark along meant the same one, unless the file's text itself starts with a second.
        sent_along = content.startswith(BOM_CHARACTER) and not old.startswith(BOM_CHARACTER)
        return data if sent_along else BOM + data
    return data


def keep_newlines(old: str, new: str) -> str:
    """`new` with the line endings of `old`, where both are uniform and they differ."""
    had, has = uniform_newline(old), uniform_newline(new)
    if had is None or has is None or had == has:
        return new
    return new.replace(has, had)


def uniform_newline(text: str) -> str | None:
    """The line ending that a text uses throughout, or None when it has none or several."""
    if "\r" not in text:  # Nearly always, and megabytes are looked through faster than their lines are counted.
        return "\n" if "\n" in text else None
    newlines = text.count("\n")
    windows = text.count("\r\n")
    if newlines and windows == newlines:
        return "\r\n"
    return "\n" if newlines and not windows else None


# A batch beyond this is a new file, and should be written and shown as one.
MAX_OPERATIONS = 10_000

# How much is cut into lines in one go. Nobody else gets to run meanwhile, and a megabyte can hold a million lines.
BLOCK_CHARACTERS = 64_000

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def lines_of(text: str) -> list[str]:
    """The lines of a text with their endings. Only `\\n` ends a line, as in every diff and linter."""
    lines: list[str] = []
    start = 0
    while start < len(text):
        end = text.find("\n", start + BLOCK_CHARACTERS) + 1 or len(text)
        lines += _LINE.findall(text, start, end)
        start = end
    return lines


def count_lines(text: str) -> int:
    """How many lines a text has."""
    return text.count("\n") + (not text.endswith("\n") and text != "")


class Operation(TypedDict):
    """One structured edit. `start_line` counts from 1 in the file as it was before the first operation."""

    start_line: int
    content: str


def insert(text: str, operations: Sequence[Operation], *, path: str = "") -> str:
    """Put each content before the line it names; one past the last line appends."""
    lines = lines_of(text)
    edits, problems = _read(operations, path)
    problems += [problem for start, _ in edits if (problem := _insert_problem(start, len(lines)))]
    _refuse(problems + _twins(edits), path)
    for start, block in reversed(edits):
        at = start - 1
        ending = _ending_near(lines, at) or _ending(block[0]) or "\n"
        if at < len(lines):
            lines[at:at] = _with_ending(block, ending)
        elif lines and _ending(lines[-1]):
            lines += _with_ending(block, ending)
        else:
            # A file without a last line ending goes on without one, unless the content brings its own.
            last = _bare(block[-1]) + (ending if _ending(block[-1]) else "")
            if lines:
                lines[-1] += ending
            lines += [*_with_ending(block[:-1], ending), last]
    return "".join(lines)


def replace(text: str, operations: Sequence[Operation], *, path: str = "") -> str:
    """Put the lines of each content in the place of as many lines, which lend them their endings."""
    lines = lines_of(text)
    edits, problems = _read(operations, path)
    problems += [problem for start, block in edits if (problem := _replace_problem(start, len(block), len(lines)))]
    _refuse(problems + _twins(edits) + _overlaps(edits), path)
    for start, block in edits:
        for index, line in enumerate(block, start - 1):
            lines[index] = _bare(line) + _ending(lines[index])
    return "".join(lines)


Edits = list[tuple[int, list[str]]]
"""Line numbers with the lines that go there, sorted."""


def _read(operations: Sequence[Operation], path: str) -> tuple[Edits, list[str]]:
    """What the operations ask for, and what is wrong with each by itself."""
    if len(operations) > MAX_OPERATIONS:
        raise EditError(f"{len(operations)} operations; at most {MAX_OPERATIONS} are taken at once", place=path or None)
    edits: Edits = []
    problems: list[str] = []
    for number, operation in enumerate(operations, 1):
        # The type promises more than a tool's arguments, which come from a model, can keep.
        given: Mapping[str, object] = operation if isinstance(operation, Mapping) else {}
        start, content = given.get("start_line"), given.get("content")
        if not isinstance(start, int) or isinstance(start, bool):
            problems.append(f"operation {number}: start_line must be a whole number, not {start!r}")
        elif not isinstance(content, str):
            problems.append(f"operation {number}: content must be a string, not {content!r}")
        elif not content:
            problems.append(f'operation {number}: the content is empty; an empty line is "\\n"')
        else:
            edits.append((start, lines_of(content)))
    return sorted(edits), problems


def _refuse(problems: list[str], path: str) -> None:
    if problems:
        raise EditError(
            "; ".join(problems),
            place=path or None,
            hint="nothing was changed; all line numbers refer to the file before the first operation",
        )


def _twins(edits: Edits) -> list[str]:
    return [
        f"two operations name line {start}; join them into one"
        for (start, _), (following, _) in pairwise(edits)
        if following == start
    ]


def _overlaps(edits: Edits) -> list[str]:
    return [
        f"the {len(block)} lines from line {start} overlap those from line {following}"
        for (start, block), (following, _) in pairwise(edits)
        if start < following < start + len(block)
    ]


def _insert_problem(start: int, count: int) -> str | None:
    if 1 <= start <= count + 1:
        return None
    return f"line {start} is out of range; the file has {count} lines, so 1 to {count + 1} can be inserted before"


def _replace_problem(start: int, count: int, have: int) -> str | None:
    if start >= 1 and start + count - 1 <= have:
        return None
    return f"lines {start} to {start + count - 1} are out of range; the file has {have}"


def _ending_near(lines: list[str], at: int) -> str:
    """How the line at this index ends, or failing that the nearest one before it: only the last line may lack one."""
    return next((ending for line in reversed(lines[max(0, at - 2) : at + 1]) if (ending := _ending(line))), "")


def _ending(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def _bare(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r") if line.endswith("\n") else line


def _with_ending(block: list[str], ending: str) -> list[str]:
    return [_bare(line) + ending for line in block]


BLOCK_BYTES = 1_000_000
# UTF-8 needs no more for one character.
_MOST_BYTES = 4


class Part(msgspec.Struct, frozen=True):
    """Some lines of a file."""

    lines: list[str]
    """With their endings; none beyond the characters that were asked for."""
    is_whole: bool
    """Whether these are all the lines that were asked for."""
    total: int | None
    """How many lines the file has, if its end was reached."""


def read_lines(
    read: Callable[[int], bytes], first_line: int, last_line: int | None, max_characters: int, *, path: str
) -> Part:
    """The lines from `first_line` to `last_line`, as many as fit, without the rest of the file in memory.

    `read` gives the next bytes of a file, from its beginning: nobody knows where a line starts.
    """
    count = 0  # lines that are over
    block = read(len(BOM)).removeprefix(BOM) + read(BLOCK_BYTES)
    ends_open = False  # whether the last line has no line ending
    while block and count + (newlines := block.count(b"\n")) < first_line - 1:
        count += newlines
        ends_open = not block.endswith(b"\n")
        block = read(BLOCK_BYTES)
    if not block:
        return Part([], is_whole=first_line == 1 and last_line is None, total=count + ends_open)
    start = 0
    while count < first_line - 1:
        start = block.index(b"\n", start) + 1
        count += 1
    wanted = bytearray(block[start:])
    lines_wanted = None if last_line is None else last_line - count
    # One character more than fits: a line that is cut here must be seen to be too long, also when the cut fell inside
    # of a character and its bytes are left out.
    enough = (max_characters + 1) * _MOST_BYTES
    while block and len(wanted) <= enough and (lines_wanted is None or wanted.count(b"\n") < lines_wanted):
        block = read(BLOCK_BYTES)
        wanted += block
    lines = lines_of(_text(bytes(wanted), path, is_cut=bool(block)))
    total = None if block else count + len(lines)
    if last_line is not None:
        lines = lines[: last_line - count]
    fitting = 0
    for line in lines:
        max_characters -= len(line)
        if max_characters < 0:
            break
        fitting += 1
    reached = len(lines) == lines_wanted if lines_wanted is not None else total is not None
    is_whole = reached and fitting == len(lines) and (first_line == 1 or bool(lines))
    return Part(lines[:fitting], is_whole=is_whole, total=total)


def _text(data: bytes, path: str, *, is_cut: bool) -> str:
    """What the bytes say. What was cut may end in the middle of a character, which then belongs to the rest."""
    if is_cut:
        for missing in range(_MOST_BYTES):
            if (text := decode(data[: len(data) - missing], strip=False)) is not None:
                return text
    elif (text := decode(data, strip=False)) is not None:
        return text
    raise NotText("the file is binary or not UTF-8, and cannot be read as text", place=path)
