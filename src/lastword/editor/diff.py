"""What would change in a file, as data: hunks with line numbers for a page, unified lines for a terminal.

Drawn from a `Preview` alone, so that every surface shows the same, also long afterwards. The text in it is raw: whoever
draws it marks what is invisible (display.py) and chooses the colours.

A diff is bounded in every direction: in the time that comparing takes (compare.py), in its lines, and in the length of
one line. Whatever is not shown is counted, and the diff says so. Of a long line that changed, the part that differs is
the part that is shown.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import msgspec

from lastword.editor.compare import EqualRun, compare
from lastword.editor.text import keep_newlines, lines_of, uniform_newline

if TYPE_CHECKING:
    from lastword.editor.provider import Preview

# The unchanged lines around a change, as in every diff that people know.
CONTEXT_LINES = 3
# The lines of one diff, on any surface. Who must know more than the first of them has to read the whole text.
MAX_DIFF_LINES = 20_000
# A line of prose is shorter; what is longer was written by a program, and fills the screen.
MAX_LINE_CHARACTERS = 2_000
# What is shown of a long line on either side of what differs.
AROUND_CHARACTERS = 200
# What fits on a card before it folds.
FOLD_LINES = 80
# So far down a block the line is looked for that a line became, when others were added or taken away between them.
NEAR_LINES = 8
# Below this, and unless so many quarters of its lines have found their line, a block of which some have is shown whole.
LEAST_PAIRED_LINES, LEAST_PAIRED_QUARTERS = 4, 3
# What comparing the words of all lines of a diff may cost, as words times words: about a second. Beyond it a line has
# one mark, from the first word that differs to the last.
MAX_WORD_STEPS = 2_000_000
# Diffs of texts that are longer than this, together, are kept, for as many characters as the second says.
KEPT_FROM_CHARACTERS = 20_000
KEPT_CHARACTERS = 32_000_000

Made = TypeVar("Made")

LineKind = Literal["same", "added", "removed"]
FileKind = Literal["changed", "created", "deleted", "renamed", "unchanged"]


class DiffLine(msgspec.Struct, frozen=True, gc=False):
    """One line of a hunk. `old` and `new` are its numbers, from 1, in the texts that have it."""

    kind: LineKind
    text: str
    """The line without its ending; of one that is too long, the part that is shown."""
    old: int | None = None
    new: int | None = None
    no_newline: bool = False
    """Whether the text ends here, without a line ending."""
    hidden_before: int = 0
    """How many characters of the line come before the part that is shown."""
    hidden_after: int = 0
    """How many come after it."""
    changed: tuple[tuple[int, int], ...] = ()
    """Of a line that became another one: from and to, in the part that is shown, of what the other has not."""


_SIGNS = {"same": " ", "added": "+", "removed": "-"}


class Hunk(msgspec.Struct, frozen=True):
    """Changes that stand close together, with the lines around them."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]


class Row(msgspec.Struct, frozen=True, gc=False):
    """One line of a unified diff for a terminal. It is legible without the colour its kind may get."""

    kind: Literal["file", "note", "hunk", "same", "added", "removed", "fold"]
    text: str
    old: int | None = None
    new: int | None = None
    """The numbers of a line in the texts that have it."""
    changed: tuple[tuple[int, int], ...] = ()
    """Of a line that became another one: from and to, in the row, of what the other has not."""


class FileDiff(msgspec.Struct, frozen=True):
    """Everything that would change in one file."""

    path: str
    kind: FileKind
    added: int = 0
    removed: int = 0
    hunks: tuple[Hunk, ...] = ()
    renamed_to: str | None = None
    note: str | None = None
    """What the lines do not show, in words."""
    coarse: bool = False
    """Whether comparing would have taken too long, so that some block is shown as replaced whole."""

    @classmethod
    def of(cls, preview: Preview) -> FileDiff:
        """What a preview would change."""
        return _KEPT.of(preview)

    def rows(self, *, fold_lines: int | None = FOLD_LINES) -> list[Row]:
        """The rows of a unified diff; beyond `fold_lines` one row says how much is not shown."""
        rows = [Row("file", _title(self))]
        if self.note:
            rows.append(Row("note", self.note))
        body: list[Row] = []
        for hunk in self.hunks:
            where = f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
            body.append(Row("hunk", where))
            for line in hunk.lines:
                changed = tuple((start + 1, end + 1) for start, end in line.changed)  # behind the sign
                body.append(Row(line.kind, _SIGNS[line.kind] + line.text, line.old, line.new, changed))
                if line.hidden_before or line.hidden_after:
                    body.append(Row("fold", _hidden(line)))
                if line.no_newline:
                    body.append(Row("note", "\\ no line ending at the end of the file"))
        if fold_lines is not None and len(body) > fold_lines:
            hidden = body[fold_lines:]
            added, removed = (sum(row.kind == kind for row in hidden) for kind in ("added", "removed"))
            said = f"… {len(hidden)} more rows, with {added} lines added and {removed} removed"
            body = [*body[:fold_lines], Row("fold", said)]
        return rows + body


def _diff(preview: Preview) -> FileDiff:
    path, base, proposed = preview.path, preview.base, preview.proposed
    if preview.renamed_to is not None:
        return FileDiff(path, "renamed", renamed_to=preview.renamed_to)
    if proposed is None and base is None:
        return FileDiff(path, "deleted", note="the file is not text, so its content is not shown")
    old = base or ""
    new = "" if proposed is None else keep_newlines(old, proposed)
    kind: FileKind = "created" if base is None else "deleted" if proposed is None else "changed"
    if kind == "changed" and old == new:
        return FileDiff(path, "unchanged", note="the file would stay as it is")
    old_lines, new_lines = lines_of(old), lines_of(new)
    runs, coarse = compare(old_lines, new_lines)
    notes = []
    if kind != "deleted" and not new:
        notes.append("the file would be empty")
    ending = "\n"
    # Whether each text that has line endings has the same kind throughout, and it is not the usual one.
    if {uniform_newline(text) for text in (old, new) if "\n" in text} == {"\r\n"}:
        ending = "\r\n"
        notes.append("lines end with CR LF")
    hunks = tuple(_hunks(old_lines, new_lines, runs, ending))
    added, removed = (sum(run.lines for run in runs if run.kind == which) for which in ("added", "removed"))
    if coarse:
        notes.append("too much differs to compare every line, so whole blocks are shown as replaced")
    shown = sum(line.kind != "same" for hunk in hunks for line in hunk.lines)
    if shown < added + removed:
        notes.append(f"{added + removed - shown} more changed lines are too many to show")
    return FileDiff(path, kind, added, removed, hunks, note="; ".join(notes) or None, coarse=coarse)


class DrawnOnce(Generic[Made]):
    """What is made of previews, the last of long texts once. The tool that proposes a change, the card and each window
    that draws it want the same, and comparing megabytes while others wait for the loop is worth doing once."""

    def __init__(self, make: Callable[[Preview], Made], most_characters: int) -> None:
        self._make = make
        self.most_characters = most_characters
        self._found: OrderedDict[Preview, tuple[Made, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def of(self, preview: Preview) -> Made:
        """What is made of a preview."""
        size = len(preview.base or "") + len(preview.proposed or "")
        if size < KEPT_FROM_CHARACTERS:
            return self._make(preview)
        with self._lock:
            if preview in self._found:
                self._found.move_to_end(preview)
                return self._found[preview][0]
        made = self._make(preview)
        with self._lock:
            if preview not in self._found:
                self._found[preview] = made, size
                self._size += size
            while self._size > self.most_characters:
                self._size -= self._found.popitem(last=False)[1][1]
        return made


_KEPT = DrawnOnce(_diff, KEPT_CHARACTERS)


def _hidden(line: DiffLine) -> str:
    hidden = [(line.hidden_before, "before"), (line.hidden_after, "after")]
    said = " and ".join(f"{count:,} {where} it" for count, where in hidden if count)
    whole = line.hidden_before + len(line.text) + line.hidden_after
    return f"… a part of a line of {whole:,} characters: {said} are not shown"


def _title(diff: FileDiff) -> str:
    if diff.kind == "renamed":
        return f"rename {diff.path} to {diff.renamed_to}"
    verb = {"created": "create", "deleted": "delete", "changed": "change", "unchanged": "leave"}[diff.kind]
    counts = f" (+{diff.added} -{diff.removed})" if diff.hunks else ""
    return f"{verb} {diff.path}{counts}"


def _hunks(old: list[str], new: list[str], runs: Sequence[EqualRun], ending: str) -> Iterable[Hunk]:
    """The changed lines with those around them; changes whose surroundings touch share a hunk."""
    at_old = at_new = total = 0
    lines: list[DiffLine] = []
    words = _WordMarks()

    def take(kind: LineKind, count: int, others: Sequence[str] = ()) -> None:
        """Take the next lines of a kind. `others` are those in whose place they come, or that come in theirs."""
        nonlocal at_old, at_new, total
        for number in range(min(count, MAX_DIFF_LINES - total)):
            text = new[at_new] if kind == "added" else old[at_old]
            at_old += kind != "added"
            at_new += kind != "removed"
            total += 1
            line = DiffLine(
                kind,
                text.removesuffix(ending),
                old=None if kind == "added" else at_old,
                new=None if kind == "removed" else at_new,
                no_newline=not text.endswith("\n"),
            )
            if len(line.text) > MAX_LINE_CHARACTERS:
                line = _folded(line, others[number].removesuffix(ending) if number < len(others) else "")
            lines.append(line)

    def take_pair() -> None:
        """Take a line and the one that it became, one below the other."""
        one, other = old[at_old], new[at_new]
        take("removed", 1, [other])
        take("added", 1, [one])
        if lines[-2:] and lines[-2].kind == "removed" and lines[-1].kind == "added":
            lines[-2:] = words.compared(lines[-2], lines[-1])

    paired = -1
    for index, (kind, count) in enumerate(runs):
        if index == paired:
            continue
        if kind == "removed" and runs[index + 1].kind == "added":
            ends = at_old + count, at_new + runs[index + 1].lines
            if pairs := _pairs(old[at_old : ends[0]], new[at_new : ends[1]]):
                paired = index + 1
                starts = at_old, at_new
                for left, right in pairs:
                    take("removed", starts[0] + left - at_old)
                    take("added", starts[1] + right - at_new)
                    if total + 2 > MAX_DIFF_LINES:
                        break
                    take_pair()
                take("removed", ends[0] - at_old)
                take("added", ends[1] - at_new)
                continue
        if kind == "removed":
            take(kind, count, new[at_new : at_new + runs[index + 1].lines])
            continue
        if kind == "added":
            take(kind, count, old[at_old - runs[index - 1].lines : at_old])
            continue
        before = 0 if index == 0 else min(count, CONTEXT_LINES)
        after = 0 if index == len(runs) - 1 else min(count - before, CONTEXT_LINES)
        take("same", before)
        hidden = count - before - after
        if (hidden or index == len(runs) - 1) and lines:
            yield _hunk(lines, at_old, at_new)
            lines = []
        if total >= MAX_DIFF_LINES:
            return
        at_old, at_new = at_old + hidden, at_new + hidden
        take("same", after)


def _pairs(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Which line became which, in order: then a person compares the two, and not two blocks.

    Nothing where that cannot be told: a pair that is none would have them compare what has nothing in common.
    """
    old, new = old[:MAX_DIFF_LINES], new[:MAX_DIFF_LINES]
    # One line in the place of one is hardly another one by accident, and stands below it anyhow.
    if len(old) == len(new) == 1:
        return [(0, 0)] if _is_alike(old[0], new[0], share=0.25) else []
    if len(old) == len(new) and all(map(_is_alike, old, new)):
        return [(place, place) for place in range(len(old))]
    least = min(len(old), len(new))
    if least < LEAST_PAIRED_LINES:
        return []
    found: list[tuple[int, int]] = []
    wanted = least * LEAST_PAIRED_QUARTERS / 4
    at_old = at_new = 0
    while at_old < len(old) and at_new < len(new):
        if len(found) + min(len(old) - at_old, len(new) - at_new) < wanted:
            return []
        ahead = next(
            (
                (at_old + left, at_new + far - left)
                for far in range(NEAR_LINES)
                for left in sorted({0, far})
                if at_old + left < len(old)
                and at_new + far - left < len(new)
                and _is_alike(old[at_old + left], new[at_new + far - left])
            ),
            None,
        )
        if ahead is not None:
            found.append(ahead)
            at_old, at_new = ahead
        at_old, at_new = at_old + 1, at_new + 1
    return found if len(found) >= wanted else []


def _is_alike(old: str, new: str, share: float = 0.5) -> bool:
    """Whether at least half of a line, or another share, is in the other, before and after what differs."""
    old, new = old.strip(), new.strip()
    start = _common(old, new)
    end = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - start)
    return start + end >= share * min(len(old), len(new)) and bool(start + end)


_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


class _WordMarks:
    """Which words of two lines are only in one of them. What all lines of a diff may cost together is bounded."""

    def __init__(self) -> None:
        self._budget = MAX_WORD_STEPS

    def compared(self, removed: DiffLine, added: DiffLine) -> tuple[DiffLine, DiffLine]:
        """A line and the one that it became, each with what the other has not."""
        old, new = _WORDS.findall(removed.text), _WORDS.findall(added.text)
        start = _common(old, new)
        end = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - start)
        middles = old[start : len(old) - end], new[start : len(new) - end]
        steps = len(middles[0]) * len(middles[1])
        self._budget -= steps
        runs = [EqualRun("removed", len(middles[0])), EqualRun("added", len(middles[1]))]
        if steps and self._budget > 0:
            runs = compare(*middles).runs
        at = len("".join(old[:start]))
        marked = msgspec.structs.replace
        return (
            marked(removed, changed=tuple(_spans(runs, "removed", middles[0], at))),
            marked(added, changed=tuple(_spans(runs, "added", middles[1], at))),
        )


def _spans(runs: Iterable[EqualRun], kind: LineKind, words: Sequence[str], at: int) -> Iterator[tuple[int, int]]:
    """From and to of the runs of a kind, in characters."""
    place = 0
    for run in runs:
        if run.kind not in ("same", kind) or not run.lines:
            continue
        size = sum(map(len, words[place : place + run.lines]))
        if run.kind == kind:
            yield at, at + size
        at, place = at + size, place + run.lines


def _folded(line: DiffLine, other: str) -> DiffLine:
    """A long line as the part of it that the other one has not; its beginning when there is no other."""
    text = line.text
    start = _common(text, other)
    end = len(text) - _common(text[start:][::-1], other[start:][::-1])
    first = max(0, start - AROUND_CHARACTERS)
    last = min(len(text), end + AROUND_CHARACTERS, first + MAX_LINE_CHARACTERS)
    if line.kind == "same" or not other:
        first, last = 0, AROUND_CHARACTERS if line.kind == "same" else MAX_LINE_CHARACTERS
    return msgspec.structs.replace(line, text=text[first:last], hidden_before=first, hidden_after=len(text) - last)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many characters two texts begin with alike, or words two lists. Halving finds it without
    a step for each of them."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _hunk(lines: list[DiffLine], at_old: int, at_new: int) -> Hunk:
    """A hunk that ends where both texts are now. A side without lines stands after the line before it, as it does in
    every unified diff."""
    old_count = sum(line.old is not None for line in lines)
    new_count = sum(line.new is not None for line in lines)
    return Hunk(
        at_old - old_count + bool(old_count),
        old_count,
        at_new - new_count + bool(new_count),
        new_count,
        tuple(lines),
    )
