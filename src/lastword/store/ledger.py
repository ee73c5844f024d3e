"""What a driver has to offer that writes beyond its own process, and what two kinds of SQL have in common.

A ledger is the part of such a driver that writes. It knows nothing of threads, queues or waiting: that is what the
drivers share (group_commit.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from lastword.store.chain import (
    KINDS,
    CurrentRow,
    Entry,
    Head,
    NewerStore,
    Pruned,
    Record,
    StoreError,
    Tampered,
    follows,
    link,
    step,
)

if TYPE_CHECKING:
    from lastword.store.contract import Filter

COLUMNS = ("seq", "stream", "kind", "subject", "at", "data", "once", "data_digest", "digest")


class Adopted(msgspec.Struct, frozen=True):
    """Something of another store, to be written as it is there."""

    records: tuple[Record, ...] = ()
    """What follows the records that are here. What they say may be forgotten already."""
    contents: tuple[tuple[str, bytes, int], ...] = ()
    """What they hold: digest, bytes, and the number of the record."""
    current: tuple[CurrentRow, ...] = ()
    """Where the records are that still count: the last thing to be taken over."""
    ended: tuple[CurrentRow, ...] = ()
    """What an earlier part of the copy took over, and does not count any more."""

    def problem(self, last: Head) -> StoreError | None:
        """Why this cannot be put behind the record that is the last one."""
        for record in self.records:
            if record.seq != last.seq + 1 or not follows(last.digest, record):
                return StoreError(
                    f"record {record.seq} does not follow the last one here, record {last.seq}",
                    hint="somebody wrote into it meanwhile; copy into a store that nobody uses",
                )
            last = Head(record.seq, record.digest)
        return None


class StoreChange(msgspec.Struct, frozen=True, gc=False):
    """Entries to be written together, then records that shall lose their data, then a head that somebody accepts."""

    entries: tuple[Entry, ...] = ()
    prune: tuple[int, ...] = ()
    accept: Head | None = None
    adopted: Adopted | None = None

    @property
    def is_irrevocable(self) -> bool:
        return any(entry.irrevocable for entry in self.entries)

    def told(self, done: Applied | StoreError) -> bool | Pruned | StoreError:
        """What its waiter hears: whether it was written; of one that forgets, what is gone."""
        return done if isinstance(done, StoreError) else done.forgotten if self.prune else done is not TAKEN

    @property
    def is_empty(self) -> bool:
        return not self.entries and not self.prune and self.accept is None and self.adopted is None


class Applied(msgspec.Struct, frozen=True):
    """A change that was carried out."""

    forgotten: Pruned = Pruned()


APPLIED = Applied()
TAKEN = Applied()
"""Nothing was written, since a key was taken. This very object."""


Step = tuple[str, str, str, str, int]
"""What one record changes of what counts: `begins`, `ends` or `ends all`, kind, stream, name, number."""


class InDoubt(StoreError):
    """COMMIT failed, and so did asking whether it happened. `Ledger.happened` asks once more."""


class Ledger(Protocol):
    """What one writer's thread uses, one call at a time. It connects when it is first used."""

    poll_seconds: float
    """How often to look for what others wrote while somebody waits for it."""

    @property
    def is_open(self) -> bool:
        """Whether it was found or made, and is ours."""

    @property
    def place(self) -> str:
        """Where it is, in words that hold no secret."""

    def write(self, changes: Sequence[StoreChange]) -> list[Applied | StoreError]:
        """Carry out the changes in one transaction.

        Per change, what was forgotten; TAKEN when a key that it claims is taken, and an error when it was refused, and
        then nothing of it was written. When this raises, nothing of any change was written; except InDoubt, where that
        is unknown.
        """

    def happened(self) -> bool:
        """Whether the transaction whose COMMIT failed last was carried out. InDoubt when that is still unknown."""

    def keep_head(self) -> None:
        """Keep outside how far the last transaction brought the store. StoreError when that is not possible."""

    def last_seq(self) -> int | None:
        """The number of the last record; None when it cannot be said at this moment."""

    def in_words(self, problem: Exception) -> StoreError | None:
        """What went wrong, and what to do about it; None when this is not the driver's kind of problem."""

    def close(self) -> None:
        """Let go. Everything committed is durable already, so tidying up may fail."""


def load_migrations(folder: str) -> list[str]:
    """The steps from nothing to the present form. Step n is in the file whose name begins with n."""
    # By the package's resources it would cost the start of every hook.
    found = sorted(Path(__file__).with_name(folder).glob("*.sql"))
    for number, file in enumerate(found, start=1):
        assert file.name.startswith(f"{number:04d}_"), f"{file.name} is not step {number}"
    return [file.read_text(encoding="utf-8") for file in found]


def of_a_later_version(form: int, known: int, place: str, kind: str) -> NewerStore:
    """What was brought further than this version can follow."""
    return NewerStore(
        f"written by a later version of lastword (its form is {form}, this version knows {known})",
        place=place,
        hint=f"upgrade lastword, or name another {kind}",
    )


def joined(place: str, seq: int, kind: str | bytes, stream: str | bytes, row: Sequence[Any]) -> Sequence[Any]:
    """The columns of a record that is said to count, if they are those of that record."""
    if tuple(row[:3]) != (seq, stream, kind):
        what = kind.decode(errors="replace") if isinstance(kind, bytes) else kind
        raise Tampered(
            f"record {seq} ({what}), which still counts, is missing or was changed",
            place=place,
            hint="lastword journal verify finds the first record that does not fit; restore from a copy",
        )
    return row


WRONG_CONTENTS = """
SELECT h.digest, 'is missing' FROM holds AS h LEFT JOIN contents AS c USING (digest) WHERE c.digest IS NULL
UNION ALL SELECT h.digest, 'is held by a record that was forgotten' FROM holds AS h
    LEFT JOIN records AS r USING (seq) WHERE r.data IS NULL
UNION ALL SELECT c.digest, 'is held by no record' FROM contents AS c
    WHERE NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.digest = c.digest)
LIMIT 1"""
"""Finds a content that is missing, or is held by no record."""
RESTORE = "restore it from a copy, and keep both for whoever investigates"


class Batch:
    """What the changes of one transaction write, in the order in which it comes: records, what they change of what
    counts, and what they hold. Both kinds of SQL are handed the same."""

    def __init__(self, head: Head, is_taken: Callable[[str], object]) -> None:
        self.head = head
        """Where the store ends once this is written."""
        self.records: list[Record] = []
        self.steps: list[Step] = []
        self.contents: dict[str, bytes] = {}
        self.holds: list[tuple[str, int]] = []
        """Digest, and the number of the record that holds it."""
        self._is_taken = is_taken
        self._claimed: set[str] = set()

    def add(self, change: StoreChange) -> Applied | StoreError:
        """Put what a change writes behind the rest; nothing of it when a key is taken."""
        if change.adopted is not None:
            return self._adopt(change.adopted)
        claimed = [entry.once for entry in change.entries if entry.once is not None]
        if any(key in self._claimed or self._is_taken(key) for key in claimed):
            return TAKEN
        self._claimed.update(claimed)
        for entry in change.entries:
            record = link(self.head.digest, self.head.seq + 1, entry)
            self._put(record)
            if record.kind in KINDS:
                self._note(record)
            for data in entry.contents:
                self._hold(sha256(data).hexdigest(), data, record.seq)
        return APPLIED

    def _adopt(self, adopted: Adopted) -> Applied | StoreError:
        problem = adopted.problem(self.head)
        if problem is not None:
            return problem
        for record in adopted.records:
            self._put(record)
        for digest, data, seq in adopted.contents:
            self._hold(digest, data, seq)
        for kind, stream, name, _, seq in adopted.ended:
            self.steps.append(("ends", kind, stream, name, seq))
        for kind, stream, name, since, seq in adopted.current:
            # What began and was said once more: the first gives the order, the last one counts.
            self.steps += (("begins", kind, stream, name, since), ("begins", kind, stream, name, seq))
        return APPLIED

    def _put(self, record: Record) -> None:
        self.records.append(record)
        self.head = Head(record.seq, record.digest)

    def _hold(self, digest: str, data: bytes, seq: int) -> None:
        self.contents[digest] = data
        self.holds.append((digest, seq))

    def _note(self, record: Record) -> None:
        change = step(record.kind, record.subject, record.data)
        for ended in change.ends:
            self.steps.append(("ends", ended, record.stream, record.subject, record.seq))
        for ended in change.ends_all:
            self.steps.append(("ends all", ended, record.stream, "", record.seq))
        if change.begins is not None:
            self.steps.append(("begins", record.kind, record.stream, change.begins, record.seq))


class Dialect(NamedTuple):
    """What two kinds of SQL do not have in common."""

    mark: Callable[[int], str]
    """The place of the value of this number."""
    hidden: str
    """A column that the planner must not look up by an index. It would not know which of two is the narrower one."""
    text: Callable[[str], Any]
    """How a text is stored."""


class Conditions:
    """What follows WHERE. The first column that is named is looked up by its index, the others are not."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._conditions: list[str] = []
        self.values: list[Any] = []
        self.is_narrow = False
        """Whether a column was named."""

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or "true"

    def add(self, condition: str, *values: Any) -> None:
        """One more condition, with a pair of braces for each value."""
        first = len(self.values) + 1
        self._conditions.append(condition.format(*(self._dialect.mark(first + n) for n in range(len(values)))))
        self.values += values

    def select(self, wanted: Filter) -> None:
        """Everything that a filter says, but for the numbers of the records."""
        if wanted.below is not None:
            text, below = self._dialect.text, wanted.below
            column, hidden = self._column("subject"), self._dialect.hidden.format("subject")
            # The slash follows the dot, so this span of the index holds what is wanted and hardly anything else.
            self.add(f"{column} >= {{}} AND {column} < {{}}", text(below), text(f"{below}/"))
            start = text(f"{below}.")
            self.add(f"({hidden} = {{}} OR substr({hidden}, 1, {{}}) = {{}})", text(below), len(start), start)
        if wanted.subject is not None:
            self.only("subject", (wanted.subject,))
        if wanted.stream is not None:
            self.only("stream", (wanted.stream,))
        if wanted.kinds is not None:
            self.only("kind", wanted.kinds)

    def only(self, column: str, values: Sequence[str]) -> None:
        """Where a column has one of these values."""
        places = ", ".join(["{}"] * len(values)) or "NULL"
        self.add(f"{self._column(column)} IN ({places})", *map(self._dialect.text, values))

    def _column(self, name: str) -> str:
        found = self._dialect.hidden.format(name) if self.is_narrow else name
        self.is_narrow = True
        return found
