"""Which records still count: questions without an end, the last value of a state, the windows that are open.

Whoever looks at what waits must not read everything that was ever written. So a driver keeps, beside its list, where
the records are that still count. Which ones do follows from the rules here and from the records alone: it can always be
worked out anew, and `examine` does so and compares.

A record counts until a later one of its stream and kind has the same name, or until something ends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

Name = Literal["subject", "key", "stream"]


class CurrentRule(msgspec.Struct, frozen=True, gc=False):
    """How long the records of one kind count."""

    name: Name
    """What two records have in common of which only the later one counts: the subject, the `key` in their data, or
    nothing but the stream."""
    ended_by: str | None = None
    """A kind whose records end those of the same stream and subject."""
    all_ended_by: str | None = None
    """A kind whose records end all of the stream."""


RULES: dict[str, CurrentRule] = {
    "asked": CurrentRule("subject", ended_by="finished"),
    "question_asked": CurrentRule("subject", ended_by="finished"),
    "burned": CurrentRule("subject", ended_by="finished"),
    "run_started": CurrentRule("subject", ended_by="run_finished"),
    "state_set": CurrentRule("key", all_ended_by="state_cleared"),
    "state_described": CurrentRule("key", all_ended_by="state_cleared"),
    "conversation": CurrentRule("stream"),
    "granted": CurrentRule("subject", ended_by="revoked"),
    "left_off": CurrentRule("subject"),
    "belongs": CurrentRule("stream"),
    "page.session": CurrentRule("stream"),
    "page.window": CurrentRule("subject", all_ended_by="page.closed"),
}

_ENDED = {rule.ended_by: tuple(k for k, r in RULES.items() if r.ended_by == rule.ended_by) for rule in RULES.values()}
_ALL_ENDED = {
    rule.all_ended_by: tuple(k for k, r in RULES.items() if r.all_ended_by == rule.all_ended_by)
    for rule in RULES.values()
}
KINDS = frozenset(kind for kind in (*RULES, *_ENDED, *_ALL_ENDED) if kind is not None)
"""The kinds that change what counts. Records of all others are passed over."""
NAMED_BY_DATA = frozenset(kind for kind, rule in RULES.items() if rule.name == "key")
"""Of these nobody knows any more which they are once their data is forgotten, so they stop counting."""


CurrentRow = tuple[str, str, str, int, int]
"""Where a record is that counts: kind, stream and name, the first record of that name, and the one that counts."""


class CurrentStep(msgspec.Struct, frozen=True, gc=False):
    """What one record changes."""

    begins: str | None = None
    """The name under which it counts from now on, among its kind and stream."""
    ends: tuple[str, ...] = ()
    """Kinds of which the ones named by its subject count no more."""
    ends_all: tuple[str, ...] = ()
    """Kinds of which none of its stream count any more."""


_NOTHING = CurrentStep()


def step(kind: str, subject: str, data: bytes | None) -> CurrentStep:
    """What a record of this kind changes."""
    if kind not in KINDS:
        return _NOTHING
    rule = RULES.get(kind)
    name = None
    if rule is not None:
        name = subject if rule.name == "subject" else "" if rule.name == "stream" else _key(data)
    return CurrentStep(name, _ENDED.get(kind, ()), _ALL_ENDED.get(kind, ()))


class _Keyed(msgspec.Struct, frozen=True, gc=False):
    key: str


_decode = msgspec.json.Decoder(_Keyed).decode


def _key(data: bytes | None) -> str | None:
    """The key that data names; None when it names none, or was forgotten."""
    if data is None:
        return None
    try:
        return _decode(data).key
    except ValueError:
        return None


class _Place(msgspec.Struct, gc=False):
    """Where a record is that counts."""

    since: int
    """The first record of that name. It gives the order: setting a value again does not move it to the end."""
    seq: int


class Current:
    """The places of everything that counts, worked out record by record."""

    def __init__(self) -> None:
        # By kind, stream and name. What is empty is taken out, so that looking costs what there is to see.
        self._places: dict[str, dict[str, dict[str, _Place]]] = {kind: {} for kind in RULES}

    def take(self, seq: int, stream: str, kind: str, subject: str, data: bytes | None) -> None:
        """Take one more record, in order."""
        change = step(kind, subject, data)
        for ended in change.ends:
            self._remove(ended, stream, subject)
        for ended in change.ends_all:
            self._places[ended].pop(stream, None)
        if change.begins is not None:
            names = self._places[kind].setdefault(stream, {})
            names.setdefault(change.begins, _Place(seq, seq)).seq = seq

    def drop(self, seq: int, stream: str, kind: str) -> None:
        """The data of a record was forgotten."""
        if kind in NAMED_BY_DATA:
            names = self._places[kind].get(stream, {})
            for name in [name for name, place in names.items() if place.seq == seq]:
                self._remove(kind, stream, name)

    def seqs(self, kinds: Iterable[str], stream: str | None) -> list[int]:
        """The numbers of the records of these kinds that count, in the order in which each began to."""
        streams = [self._places[kind] for kind in set(kinds)]
        if stream is None:
            found = [names for known in streams for names in known.values()]
        else:
            found = [known.get(stream, {}) for known in streams]
        places = sorted((place.since, place.seq) for names in found for place in names.values())
        return [seq for _, seq in places]

    def rows(self) -> Iterator[CurrentRow]:
        """Kind, stream, name, since and number of each."""
        for kind, streams in self._places.items():
            for stream, names in streams.items():
                for name, place in names.items():
                    yield kind, stream, name, place.since, place.seq

    def _remove(self, kind: str, stream: str, name: str) -> None:
        names = self._places[kind].get(stream)
        if names is not None and names.pop(name, None) is not None and not names:
            del self._places[kind][stream]


def contradicted(kept: Iterable[CurrentRow], true: Iterable[CurrentRow], unsure: set[tuple[str, str]]) -> str | None:
    """What a driver says of a record that still counts, or does not, and the records say otherwise. None: they agree.

    `unsure` are the kinds and streams of which something was forgotten.
    """
    said = {row[:3]: row[3:] for row in kept}
    meant = {row[:3]: row[3:] for row in true}
    for what in said.keys() | meant.keys():
        kind, stream, _ = what
        if said.get(what) == meant.get(what):
            continue
        is_forgotten = kind in NAMED_BY_DATA and (kind, stream) in unsure
        if is_forgotten and (what not in said or (what in meant and said[what][1] == meant[what][1])):
            continue
        seq = (said.get(what) or meant[what])[1]
        return f"what it says of record {seq} ({kind}), whether it still counts, is not what the records say"
    return None
