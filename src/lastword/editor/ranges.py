"""Some lines of a file of any size, without the rest of it in memory.

The file is read from its beginning in blocks, since nobody knows where a line starts. What comes before the first line
that is wanted is counted and let go.
"""

from __future__ import annotations

from collections.abc import Callable

from lastword.editor.edits import lines_of
from lastword.editor.encoding import BOM, decode
from lastword.editor.provider import Part
from lastword.errors import NotText

BLOCK_BYTES = 1_000_000
# UTF-8 needs no more for one character.
_MOST_BYTES = 4


def read_lines(
    read: Callable[[int], bytes], first_line: int, last_line: int | None, max_characters: int, *, path: str
) -> Part:
    """The lines from `first_line` to `last_line`, as many as fit. `read` gives the next bytes of a file."""
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
