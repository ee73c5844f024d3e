"""The inbox in a terminal: what waits in all programs as lines, and one line of news however many cards there are.

Entries are numbered as they were listed last, so that a number means the card that was read beside it. What does not
live here: the commands (slash.py), and the conversation about one card (dialogue.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lastword.card import views
from lastword.errors import LastWordError

# More than a screen holds is searched, and not read.
MAX_LISTED = 60
MAX_MISSED = 10
# Fewer than these are quicker read one by one than as a group.
MIN_GROUP = 4
# A filter is a name of these with a value, or a word that has to be in the entry.
FILTERS = ("tool", "program", "effect", "newer", "older")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Ask(NamedTuple):
    """A question that waits: of which call, and which one of it."""

    id: str
    digest: str


class News:
    """What was said of the cards of other programs. One line is enough for many of them."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._said = 0
        """How many waited when it was said last."""

    def line(self, entries: Sequence[views.InboxEntry]) -> str | None:
        """What there is to say of those that wait now; None when it was said, or the last line still tells enough."""
        alive = [entry for entry in entries if entry.asker != "ended"]
        self._told &= {entry.digest for entry in alive}
        # Those that were told and are gone make no noise in which a new one could be missed.
        self._said = min(self._said, len(self._told))
        fresh = [entry for entry in alive if entry.digest not in self._told]
        if not fresh or (self._told and len(alive) < 2 * self._said):
            return None
        if len(alive) == 1:
            return f"Another program asks: {alive[0].name} ({alive[0].tool}). /answer shows the card."
        programs = len({entry.program for entry in alive})
        whose = "another program" if programs == 1 else f"{programs} other programs"
        return f"{len(alive)} cards of {whose} wait. /inbox lists them."

    def say(self, entries: Sequence[views.InboxEntry]) -> None:
        """It was said of these."""
        alive = [entry for entry in entries if entry.asker != "ended"]
        self._told |= {entry.digest for entry in alive}
        self._said = len(alive)


class NumberedInbox:
    """The entries as they were listed last, with their numbers."""

    def __init__(self) -> None:
        self._listed: list[views.InboxEntry] = []

    def lines(
        self,
        entries: Iterable[views.InboxEntry],
        wanted: str,
        missed: Iterable[views.InboxMissed] = (),
        now: float | None = None,
    ) -> list[str]:
        """What waits and fits, numbered, those alike in one line; apart from them those of programs that ended, and
        without numbers, because they are over, those that nobody answered in time."""
        words = wanted.split()
        whole = "all" in words
        fits = _Filter([word for word in words if word != "all"], time.time() if now is None else now)
        found = [entry for entry in entries if fits(entry)]
        alive = [entry for entry in found if entry.asker != "ended"]
        ended = [entry for entry in found if entry.asker == "ended"]
        self._listed = []
        lines = self._list(alive, whole=whole)
        if ended:
            lines += ["Of these the program that asked has ended, and an answer starts nothing by itself:"]
            lines += self._list(ended, whole=whole)
        over = [each for each in missed if fits(each.entry)]
        late = ["Nobody answered these in time. They are over, and nothing of them was done:"] if over else []
        late += _missed_lines(over)
        if not found:
            return ["Nothing waits that fits." if words else "Nothing waits for an answer.", *late]
        how = "/answer 1 shows a card, /answer 2-5 one after the other; /deny 2-5 REASON denies them all."
        return [*lines, how, *late]

    def _list(self, entries: Sequence[views.InboxEntry], *, whole: bool) -> list[str]:
        lines: list[str] = []
        gathered = [[entry] for entry in entries] if whole else groups(entries)
        for members in gathered[:MAX_LISTED]:
            first = len(self._listed) + 1
            self._listed += members
            entry, count = members[0], len(members)
            numbers = str(first) if count == 1 else f"{first}-{first + count - 1}"
            alike = f"{count} alike: " if count > 1 else ""
            who = entry.program or "this conversation"
            unknown = ", of which nobody knows whether it lives" if entry.asker == "unknown" else ""
            lines.append(f"{numbers:>7}  {alike}{entry.name} ({entry.tool}), {who}{unknown}. {entry.effect_words}.")
            lines.append(f"{'':9}{entry.summary}{'; …' if count > 1 else ''}")
        if len(gathered) > MAX_LISTED:
            lines.append(f"… {len(gathered) - MAX_LISTED} more lines: /inbox WORDS finds those with these words.")
        return lines

    def pick(self, numbers: str) -> list[views.InboxEntry]:
        """The entries with these numbers: `3`, `2-5`, `1,4-6`."""
        picked: dict[str, views.InboxEntry] = {}
        for part in numbers.split(","):
            found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
            if found is None:
                raise LastWordError(f"{part or numbers} is no number of the list", hint="/inbox lists what waits")
            first, last = int(found[1]), int(found[2] or found[1])
            if not 1 <= first <= last <= len(self._listed):
                raise LastWordError(f"there is no {part} in the last list", hint="/inbox lists what waits")
            picked |= {entry.id: entry for entry in self._listed[first - 1 : last]}
        return list(picked.values())


def groups(entries: Iterable[views.InboxEntry]) -> list[list[views.InboxEntry]]:
    """The entries in their order, those alike together where there are enough of them."""
    found: dict[str, list[views.InboxEntry]] = {}
    for entry in entries:
        found.setdefault(entry.alike, []).append(entry)
    gathered: list[list[views.InboxEntry]] = []
    for members in found.values():
        gathered += [members] if len(members) >= MIN_GROUP else [[entry] for entry in members]
    return sorted(gathered, key=lambda members: (members[0].asked_at, members[0].id))


def _missed_lines(missed: Sequence[views.InboxMissed]) -> list[str]:
    lines: list[str] = []
    for each in missed[-MAX_MISSED:]:
        when = time.strftime("%H:%M", time.localtime(each.at))
        who = each.entry.program or "this conversation"
        lines.append(f"{when:>7}  {each.entry.name} ({each.entry.tool}), {who}. {each.entry.summary}")
    if len(missed) > MAX_MISSED:
        lines.insert(0, f"{'':9}… {len(missed) - MAX_MISSED} earlier ones")
    return lines


def is_numbers(text: str) -> bool:
    """Whether this names entries by their numbers."""
    return re.fullmatch(r"[\d,-]{1,60}", text) is not None


class _Filter:
    def __init__(self, words: Sequence[str], now: float) -> None:
        self._words = [word.casefold() for word in words if "=" not in word]
        self._values: dict[str, str] = {}
        for name, _, value in (word.partition("=") for word in words if "=" in word):
            if name not in FILTERS or not value:
                raise LastWordError(f"there is no filter {name}=", hint="/inbox tool= program= effect= newer= older=")
            self._values[name] = value.casefold()
        self._newer, self._older = (
            now - _seconds(self._values.pop(name)) if name in self._values else None for name in ("newer", "older")
        )

    def __call__(self, entry: views.InboxEntry) -> bool:
        own = "this conversation"
        told = {"tool": f"{entry.tool} {entry.name}", "program": entry.program or own, "effect": entry.effect_words}
        text = " ".join([*told.values(), entry.sentence, entry.summary]).casefold()
        return (
            all(word in text for word in self._words)
            and all(value in told[name].casefold() for name, value in self._values.items())
            and (self._newer is None or entry.asked_at >= self._newer)
            and (self._older is None or entry.asked_at <= self._older)
        )


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise LastWordError(f"{text} is no time", hint="10m, 2h and 1d are")
    return int(found[1]) * UNITS[found[2]]
