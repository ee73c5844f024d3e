"""Records, the chain that they make, and which of them still count. Nothing here knows of a store.

A record's digest covers the digest before it, its own head and the digest of its data. Data can therefore be forgotten
without breaking the chain, and nothing else can change unseen. Whoever kept a head can prove that nothing was cut off.

Whoever looks at what waits, such as questions without an end, must not read everything that was ever written. So a
driver keeps, beside its list, where the records are that still count. Which ones do follows from the rules here and
from the records alone: it can always be worked out anew, and `examine` does so and compares. A record counts until a
later one of its stream and kind has the same name, or until something ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Literal

import msgspec

# What a store refuses with is a part of what it offers.
from lastword.errors import MayNotForget as MayNotForget
from lastword.errors import NewerStore as NewerStore
from lastword.errors import Overtaken as Overtaken
from lastword.errors import StoreError as StoreError
from lastword.errors import Tampered as Tampered

GENESIS = "0" * 64
"""The digest before the first record."""
INVESTIGATE = "restore the journal from a copy, and keep both for whoever investigates"

_encode = msgspec.json.Encoder().encode


class Entry(msgspec.Struct, frozen=True, gc=False):
    """Something to remember, before the store has put it in its place."""

    stream: str
    """The session or conversation it belongs to."""
    kind: str
    subject: str
    """The call, run or message it is about."""
    at: int
    """Microseconds since the epoch. Only for people: order is the store's, whatever the clock did."""
    data: bytes
    """Canonical JSON."""
    once: str | None = None
    """A key that only one record of the store may ever have."""
    irrevocable: bool = False
    """Whether something happens once it is durable that nobody can take back. It is written only to a store that holds
    everything that was ever seen of it, and where the store then ends is kept outside before the commit returns."""
    contents: tuple[bytes, ...] = ()
    """What it holds beside its data. The chain covers them if the data names their digests."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """An entry in its place. `data` is None when it was pruned."""

    seq: int
    stream: str
    kind: str
    subject: str
    at: int
    data: bytes | None
    once: str | None
    data_digest: str
    digest: str


class Head(msgspec.Struct, frozen=True):
    """The end of the chain. Whoever keeps one can prove later that nothing before it was changed or cut off."""

    seq: int
    digest: str

    def __str__(self) -> str:
        """The form in which a person keeps it and gives it back: `SEQ:DIGEST`."""
        return f"{self.seq}:{self.digest}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read a head as `str(head)` writes it."""
        found = re.fullmatch(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})", text.strip(), re.ASCII)
        if found is None:
            raise StoreError(
                f"{text.strip()!r} is not the head of a journal",
                hint="a head is a number, a colon and 64 hexadecimal digits, as `lastword journal verify` prints it",
            )
        return cls(int(found[1]), found[2])


class Pruned(msgspec.Struct, frozen=True):
    """What is gone."""

    records: int = 0
    """How many lost their data."""
    contents: int = 0
    """How many contents nobody holds any more."""
    content_bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.records + other.records,
            self.contents + other.contents,
            self.content_bytes + other.content_bytes,
        )


class Behind(msgspec.Struct, frozen=True):
    """A store that does not hold what was seen of it: its log was lost, it was restored from a copy, it is another."""

    fact: str
    """What does not fit, in words."""
    found: Head
    """Where the store ends."""
    seen: Head | None
    """Where it was last seen to end; None when that is not known any more."""


def link(previous: str, seq: int, entry: Entry) -> Record:
    """Put an entry behind the record whose digest is `previous`."""
    of_data = sha256(entry.data).hexdigest()
    chained = digest(previous, seq, entry, of_data)
    return Record(seq, entry.stream, entry.kind, entry.subject, entry.at, entry.data, entry.once, of_data, chained)


def digest(previous: str, seq: int, head: Entry | Record, of_data: str) -> str:
    """The digest of a record: of the one before, its head and the digest of its data."""
    covered = (previous, seq, head.stream, head.kind, head.subject, head.at, head.once, of_data)
    return sha256(_encode(covered)).hexdigest()


def chain(previous: str, seq: int, entries: Iterable[Entry]) -> list[str]:
    """The digests of entries that are put, one after the other, behind the record whose digest is `previous`.

    The same as `digest` for each, in one loop: a memory of calls that need no approval does little else.
    """
    sha, encode = sha256, _encode
    digests = []
    for entry in entries:
        of_data = sha(entry.data).hexdigest()
        covered = (previous, seq, entry.stream, entry.kind, entry.subject, entry.at, entry.once, of_data)
        previous = sha(encode(covered)).hexdigest()
        digests.append(previous)
        seq += 1
    return digests


def verify(records: Iterable[Record], *, start: Head | None = None, head: Head | None = None) -> Head:
    """Walk the chain and return its end; raise Tampered at the first record that does not fit.

    A chain alone cannot know that its tail was cut off: pass a `head` kept elsewhere to prove that it was not.
    """
    last = start or Head(0, GENESIS)
    compare(last, head)
    for record in records:
        last = follow(last, record)
        compare(last, head)
    if head is not None and head.seq > last.seq:
        raise cut_off(last.seq, head)
    return last


def follow(last: Head, record: Record) -> Head:
    """Where the chain ends after one more record."""
    if record.seq != last.seq + 1:
        raise Tampered(
            f"record {last.seq + 1} is missing or out of place (found {record.seq})",
            hint=INVESTIGATE,
        )
    if not follows(last.digest, record):
        raise tampered(record)
    return Head(record.seq, record.digest)


def follows(previous: str, record: Record) -> bool:
    """Whether a record is as it was written, if the one before it has this digest."""
    if record.data is not None and sha256(record.data).hexdigest() != record.data_digest:
        return False
    return digest(previous, record.seq, record, record.data_digest) == record.digest


def compare(here: Head, pin: Head | None) -> None:
    """Raise Tampered when another record stands where a head that somebody kept names one."""
    if pin is not None and pin.seq == here.seq and pin.digest != here.digest:
        raise Tampered(
            f"record {here.seq} is not the one that the given head names",
            hint="this is another journal, or one that was written anew from some record on",
        )


def cut_off(end: int, head: Head) -> Tampered:
    """The chain ends before a head that somebody kept."""
    return Tampered(
        f"the journal ends at record {end}, but the given head is record {head.seq}: its tail was cut off",
        hint=INVESTIGATE,
    )


def tampered(record: Record, how: str | None = None) -> Tampered:
    """A record that does not fit where it stands."""
    return Tampered(
        f"record {record.seq} ({record.kind}) was changed after it was written{f': {how}' if how else ''}",
        hint="everything before it is as it was written; restore from a copy to see what it said",
    )


def not_held(head: Head) -> StoreError:
    """Somebody accepts what is not there."""
    return StoreError(f"this journal does not hold the head {head}", hint="look at it again, and accept what is there")


def check_content(digest: str, data: object) -> bytes:
    """The bytes that were kept under this digest, if they are those."""
    if type(data) is not bytes or sha256(data).hexdigest() != digest:
        raise Tampered(
            "what a record holds was changed after it was written",
            place=digest,
            hint="restore the journal from a copy to see what it was",
        )
    return data


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


def kinds_of(kind: str | Sequence[str]) -> Sequence[str]:
    """Several kinds, or one."""
    return (kind,) if isinstance(kind, str) else kind


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
