"""Structured edits of a text: insert and replace, by line number.

Pure functions. All line numbers refer to the text as it was, so the order in which operations are given means nothing;
where it would have to mean something (two insertions before one line, overlapping replacements) the batch is refused.
All operations apply or none, and a refusal names every problem at once, so that a model can repair it in one go.

A line ends with `\\n` and includes its `\\r\\n` or `\\n`; a text of three lines has three with or without a last line
ending. Contents are lines too: `a` and `a\\n` are both one line, and an empty content is none, which is refused. New
lines take the line ending of the place they go to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from lastword.editor.provider import Operation
from lastword.errors import EditError

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
