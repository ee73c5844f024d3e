"""Which lines two texts have in common: the shortest way from the one to the other, as far as a budget goes.

The lines are compared by Myers' algorithm: the shortest way is found by trying all ways of 0, 1, 2… differences at
once. Its cost grows with the square of the number of differences, so it has a budget. When that runs out, the lines
that occur once in each text are taken as fixed points, and only what lies between them is compared, with as much again
for all of it. A block on which that runs out too is taken as replaced whole. That is less helpful and just as true, and
whoever is shown it is told.

The budget is counted in steps and not in seconds, so that the same two texts look the same everywhere and always.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

# Steps of one comparison: a tenth of a second, and some hundred changed lines.
MAX_STEPS = 200_000
# So many equal lines in a row count as one step: it is the differences that cost, and a large file has few of them.
CHEAP = 16
# Steps that a block between two fixed points gets for each of its lines, also when the budget is used up, and no more
# than a whole comparison: a block of a million lines would take as many seconds, and a gigabyte.
FEW = 8

Lines = Sequence[str]
Matches = list[tuple[int, int]]
"""The indexes, in both texts, of the lines that are kept."""


class EqualRun(NamedTuple):
    """So many lines that fare alike."""

    kind: Literal["same", "added", "removed"]
    lines: int


class Comparison(NamedTuple):
    """What is the same, removed and added, in turn."""

    runs: list[EqualRun]
    coarse: bool
    """Whether the budget ran out, so that some block is replaced whole although it may have lines that stay."""


def compare(old: Lines, new: Lines) -> Comparison:
    """Compare two texts line by line."""
    start = _alike(zip(old, new, strict=False))
    most = min(len(old), len(new)) - start
    end = min(most, _alike(zip(reversed(old), reversed(new), strict=False)))
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    matches, _ = _shortest(left, right, MAX_STEPS)
    coarse = False
    if matches is None:
        matches, coarse = _between_fixed_points(left, right)
    return Comparison(list(_runs(start, matches, len(left), len(right), end)), coarse)


def _alike(pairs: Iterator[tuple[str, str]]) -> int:
    """How many pairs are equal before the first that is not."""
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count


def _runs(start: int, matches: Matches, old_count: int, new_count: int, end: int) -> Iterator[EqualRun]:
    same, at_old, at_new = start, 0, 0
    for kept_old, kept_new in [*matches, (old_count, new_count)]:
        if kept_old > at_old or kept_new > at_new:
            yield EqualRun("same", same)
            yield EqualRun("removed", kept_old - at_old)
            yield EqualRun("added", kept_new - at_new)
            same = 0
        same, at_old, at_new = same + 1, kept_old + 1, kept_new + 1
    # The last pair was the end of both texts, and no line.
    yield EqualRun("same", same - 1 + end)


def _between_fixed_points(old: Lines, new: Lines) -> tuple[Matches, bool]:
    """What a comparison of the parts between the fixed points keeps, and whether one of them was given up."""
    matches: Matches = []
    coarse = False
    budget = MAX_STEPS
    at_old = at_new = 0
    for fixed_old, fixed_new in [*_fixed_points(old, new), (len(old), len(new))]:
        left, right = old[at_old:fixed_old], new[at_new:fixed_new]
        # What is left, and always enough for a few differences: one bad block must not spoil all that come after it.
        own = max(budget, min(FEW * (len(left) + len(right)), MAX_STEPS))
        found, left_over = _shortest(left, right, own)
        budget -= own - left_over
        if found is None:
            coarse = coarse or not _share_nothing(left, right)
        else:
            matches += [(at_old + one, at_new + other) for one, other in found]
        matches.append((fixed_old, fixed_new))
        at_old, at_new = fixed_old + 1, fixed_new + 1
    matches.pop()  # The end of both texts.
    return matches, coarse


def _fixed_points(old: Lines, new: Lines) -> Matches:
    """Lines that occur once in each text, as many of them as stand in the same order in both."""
    in_old, in_new = _once(old), _once(new)
    pairs = [(place, in_new[line]) for line, place in in_old.items() if line in in_new]
    # The longest increasing sequence: for each length the smallest end so far, and for each pair the one before it.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    points: Matches = []
    number = last[-1] if last else -1
    while number >= 0:
        points.append(pairs[number])
        number = before[number]
    points.reverse()
    return points


def _once(lines: Lines) -> dict[str, int]:
    """The lines that occur once, with their places, in order."""
    places: dict[str, int] = {}
    again: set[str] = set()
    for place, line in enumerate(lines):
        if line in places:
            again.add(line)
        else:
            places[line] = place
    return {line: place for line, place in places.items() if line not in again}


def _share_nothing(old: Lines, new: Lines) -> bool:
    # A loop of our own: one call that does it all would hold the interpreter for as long as it takes.
    known = {line for line in old}  # noqa: C416
    return all(line not in known for line in new)


def _shortest(old: Lines, new: Lines, budget: int) -> tuple[Matches | None, int]:
    """The pairs at which a shortest diff keeps a line, and what is left of the budget; None when it was not enough.

    A diagonal is an index in `old` less an index in `new`. With d differences one can be on the diagonals −d, −d + 2 …
    d; `rounds[d]` holds how far into `old` one gets on each of them. Walked backwards, the rounds are the way.
    """
    if not old or not new:
        return [], budget
    rounds: list[list[int]] = []
    old_count, new_count = len(old), len(new)
    for differences in range(old_count + new_count + 1):
        reached = []
        for index in range(differences + 1):
            x = _enter(rounds[-1], index)[0] if rounds else 0
            y = x - (2 * index - differences)
            start = x
            while x < old_count and y < new_count and old[x] == new[y]:
                x += 1
                y += 1
            reached.append(x)
            budget -= 1 + (x - start) // CHEAP
            if x >= old_count and y >= new_count:
                rounds.append(reached)
                return _walk_back(rounds, old_count, new_count), budget
        if budget < 0:
            break
        rounds.append(reached)
    return None, budget


def _enter(before: list[int], index: int) -> tuple[int, int]:
    """Where a diagonal is entered from the round before, and from which: by a removed line, or by an added one."""
    if index == 0 or (index < len(before) and before[index - 1] < before[index]):
        return before[index], index
    return before[index - 1] + 1, index - 1


def _walk_back(rounds: list[list[int]], x: int, y: int) -> Matches:
    kept: Matches = []
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
