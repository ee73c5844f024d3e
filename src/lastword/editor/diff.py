"""What would change in a file, as data: hunks with line numbers for a page, unified lines for a terminal.

Drawn from a `Preview` alone, so that every surface shows the same, also long afterwards. The text in it is raw: whoever
draws it marks what is invisible (display.py) and chooses the colours.

The lines are compared by Myers' algorithm: the shortest way from the old text to the new, found by trying all ways of
0, 1, 2… differences at once. Its cost grows with the square of the number of differences, so it has a budget: beyond
it the texts have little in common, and the whole old middle is shown as removed and the whole new one as added. That is
less helpful and just as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from lastword.editor import Preview
from lastword.editor.edits import lines_of
from lastword.editor.encoding import keep_newlines, uniform_newline

# The unchanged lines around a change, as in every diff that people know.
CONTEXT_LINES = 3
# Steps of the comparison: about half a second, and some thousand changed lines.
MAX_STEPS = 1_000_000
# The lines of one diff, on any surface. Who must know more than the first of them has to read the whole text.
MAX_DIFF_LINES = 20_000
# What fits on a card before it folds.
FOLD_LINES = 80

LineKind = Literal["same", "added", "removed"]
FileKind = Literal["changed", "created", "deleted", "renamed", "unchanged"]


class DiffLine(msgspec.Struct, frozen=True):
    """One line of a hunk. `old` and `new` are its numbers, from 1, in the texts that have it."""

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None
    no_newline: bool = False
    """Whether the text ends here, without a line ending."""


class Hunk(msgspec.Struct, frozen=True):
    """Changes that stand close together, with the lines around them."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]


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


class Row(msgspec.Struct, frozen=True):
    """One line of a unified diff for a terminal. It is legible without the colour its kind may get."""

    kind: Literal["file", "note", "hunk", "same", "added", "removed", "fold"]
    text: str


def diff_of(preview: Preview) -> FileDiff:
    """What a preview would change."""
    if preview.renamed_to is not None:
        return FileDiff(preview.path, "renamed", renamed_to=preview.renamed_to)
    if preview.proposed is None and preview.base is None:
        return FileDiff(preview.path, "deleted", note="the file is not text, so its content is not shown")
    old = preview.base or ""
    new = "" if preview.proposed is None else keep_newlines(old, preview.proposed)
    kind: FileKind = "created" if preview.base is None else "deleted" if preview.proposed is None else "changed"
    old_lines, new_lines = lines_of(old), lines_of(new)
    if kind == "changed" and old_lines == new_lines:
        return FileDiff(preview.path, "unchanged", note="the file would stay as it is")
    runs = list(_compare(old_lines, new_lines))
    notes = []
    if kind != "deleted" and not new:
        notes.append("the file would be empty")
    ending = "\n"
    if _all_windows(old, new):
        ending = "\r\n"
        notes.append("lines end with CR LF")
    hunks = tuple(_hunks(old_lines, new_lines, runs, ending))
    added, removed = (sum(count for run, count in runs if run == which) for which in ("added", "removed"))
    shown = sum(line.kind != "same" for hunk in hunks for line in hunk.lines)
    if shown < added + removed:
        notes.append(f"{added + removed - shown} more changed lines are too many to show")
    return FileDiff(preview.path, kind, added, removed, hunks, note="; ".join(notes) or None)


def summary(diffs: Sequence[FileDiff]) -> str:
    """A batch in one line: how many files, how many lines."""
    files = f"{len(diffs)} file" + ("" if len(diffs) == 1 else "s")
    return f"{files}, {sum(d.added for d in diffs)} lines added, {sum(d.removed for d in diffs)} removed"


def unified(diff: FileDiff, *, fold_lines: int | None = FOLD_LINES) -> list[Row]:
    """The rows of a unified diff; beyond `fold_lines` one row says how much is not shown."""
    rows = [Row("file", _title(diff))]
    if diff.note:
        rows.append(Row("note", diff.note))
    body: list[Row] = []
    for hunk in diff.hunks:
        where = f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
        body.append(Row("hunk", where))
        for line in hunk.lines:
            body.append(Row(line.kind, _SIGNS[line.kind] + line.text))
            if line.no_newline:
                body.append(Row("note", "\\ no line ending at the end of the file"))
    if fold_lines is not None and len(body) > fold_lines:
        hidden = body[fold_lines:]
        added, removed = (sum(row.kind == kind for row in hidden) for kind in ("added", "removed"))
        said = f"… {len(hidden)} more rows, with {added} lines added and {removed} removed"
        body = [*body[:fold_lines], Row("fold", said)]
    return rows + body


_SIGNS = {"same": " ", "added": "+", "removed": "-"}


def _title(diff: FileDiff) -> str:
    if diff.kind == "renamed":
        return f"rename {diff.path} to {diff.renamed_to}"
    verb = {"created": "create", "deleted": "delete", "changed": "change", "unchanged": "leave"}[diff.kind]
    counts = f" (+{diff.added} -{diff.removed})" if diff.hunks else ""
    return f"{verb} {diff.path}{counts}"


def _all_windows(*texts: str) -> bool:
    """Whether every text that has line endings has the same kind, and it is not the usual one."""
    return {uniform_newline(text) for text in texts if "\n" in text} == {"\r\n"}


def _compare(old: list[str], new: list[str]) -> Iterable[tuple[LineKind, int]]:
    """How many lines are the same, removed and added, in turn."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    same, at_old, at_new = start, 0, 0
    for kept_old, kept_new in [*_matches(left, right), (len(left), len(right))]:
        if kept_old > at_old or kept_new > at_new:
            yield "same", same
            yield "removed", kept_old - at_old
            yield "added", kept_new - at_new
            same = 0
        same, at_old, at_new = same + 1, kept_old + 1, kept_new + 1
    # The last pair was the end of both texts, and no line.
    yield "same", same - 1 + end


def _matches(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The pairs of indexes at which a shortest diff keeps a line; none when it would cost more than the budget.

    A diagonal is an index in `old` less an index in `new`. With d differences one can be on the diagonals −d, −d + 2 …
    d; `rounds[d]` holds how far into `old` one gets on each of them. Walked backwards, the rounds are the way.
    """
    rounds: list[list[int]] = []
    budget = MAX_STEPS
    for differences in range(len(old) + len(new) + 1):
        reached = []
        for index in range(differences + 1):
            x = _enter(rounds[-1], index)[0] if rounds else 0
            y = x - (2 * index - differences)
            start = x
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x += 1
                y += 1
            reached.append(x)
            budget -= x - start + 1
            if x >= len(old) and y >= len(new):
                rounds.append(reached)
                return _walk_back(rounds, len(old), len(new))
        if budget < 0:
            break
        rounds.append(reached)
    return []


def _enter(before: list[int], index: int) -> tuple[int, int]:
    """Where a diagonal is entered from the round before, and from which: by a removed line, or by an added one."""
    if index == 0 or (index < len(before) and before[index - 1] < before[index]):
        return before[index], index
    return before[index - 1] + 1, index - 1


def _walk_back(rounds: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for differences in range(len(rounds) - 1, -1, -1):
        index = (x - y + differences) // 2
        entered, came_from = _enter(rounds[differences - 1], index) if differences else (0, 0)
        while x > entered:
            x, y = x - 1, y - 1
            kept.append((x, y))
        # An added line moves down, a removed one to the right.
        if came_from == index:
            y -= 1
        else:
            x -= 1
    kept.reverse()
    return kept


def _hunks(old: list[str], new: list[str], runs: list[tuple[LineKind, int]], ending: str) -> Iterable[Hunk]:
    """The changed lines with those around them; changes whose surroundings touch share a hunk."""
    at_old = at_new = total = 0
    lines: list[DiffLine] = []

    def take(kind: LineKind, count: int) -> None:
        nonlocal at_old, at_new, total
        for _ in range(min(count, MAX_DIFF_LINES - total)):
            text = new[at_new] if kind == "added" else old[at_old]
            at_old += kind != "added"
            at_new += kind != "removed"
            total += 1
            lines.append(
                DiffLine(
                    kind,
                    text.removesuffix(ending),
                    old=None if kind == "added" else at_old,
                    new=None if kind == "removed" else at_new,
                    no_newline=not text.endswith("\n"),
                )
            )

    for index, (kind, count) in enumerate(runs):
        if kind != "same":
            take(kind, count)
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
