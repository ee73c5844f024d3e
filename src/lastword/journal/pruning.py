"""What of a journal is old enough to be forgotten."""

from __future__ import annotations

from lastword.journal.records import SESSION_KINDS
from lastword.store import PAGE_RECORDS, Store


async def old_records(store: Store, kept: set[str], before: float) -> list[int]:
    """The records of sessions of which nothing is younger than this, but for those that are kept."""
    kept = set(kept)
    old: dict[str, list[int]] = {}
    after = 0
    while page := await store.read(after=after, limit=PAGE_RECORDS):
        after = page[-1].seq
        for record in page:
            if record.at >= before * 1_000_000:
                # One record of today keeps its session, whatever the clock said before and after it.
                kept.add(record.stream)
            elif record.kind in SESSION_KINDS and record.data is not None:
                old.setdefault(record.stream, []).append(record.seq)
    return [seq for stream, seqs in old.items() if stream not in kept for seq in seqs]
