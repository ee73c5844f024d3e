"""What a store is asked to do in one step, what came of it, and who carries it out: the contract below a writer.

A ledger is the part of a driver that writes. It knows nothing of threads, queues or waiting: that is `writer`'s, which
every driver shares that writes beyond its own process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lastword.errors import StoreError
from lastword.store.contract import Entry, Head, Pruned, Record, follows
from lastword.store.standing import StandingRow


class Adopted(msgspec.Struct, frozen=True):
    """Something of another store, to be written as it is there."""

    records: tuple[Record, ...] = ()
    """What follows the records that are here. What they say may be forgotten already."""
    contents: tuple[tuple[str, bytes, int], ...] = ()
    """What they hold: digest, bytes, and the number of the record."""
    standing: tuple[StandingRow, ...] = ()
    """Where the records are that still count: the last thing to be taken over."""
    ended: tuple[StandingRow, ...] = ()
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

    @property
    def is_empty(self) -> bool:
        return not self.entries and not self.prune and self.accept is None and self.adopted is None


class Applied(msgspec.Struct, frozen=True):
    """A change that was carried out."""

    forgotten: Pruned = Pruned()


APPLIED = Applied()
TAKEN = Applied()
"""Nothing was written, since a key was taken. This very object."""


class InDoubt(Exception):
    """COMMIT failed, and so did asking whether it happened. `Ledger.happened` asks once more."""

    words = "the disk failed while this was written, and it is not known whether it was"
    hint = "check the disk, and look into the journal before you repeat anything"


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
