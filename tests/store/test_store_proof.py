"""Records are proven before they are acted upon: between their neighbours, or from there to the head."""

import msgspec
import pytest
from samples import entry

from lastword.errors import Tampered
from lastword.store.chain import Entry, Record, link
from lastword.store.memory import MemoryStore
from requirements import requirement

COUNT = 1200


class Edited(MemoryStore):
    """A store in which somebody has written: some records are others than they were, and some are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.edits: dict[int, Record | None] = {}

    async def read(self, **wanted) -> list[Record]:
        return self._edited(await super().read(**wanted))

    async def links(self, seqs) -> list[Record]:
        return [msgspec.structs.replace(link, data=None) for link in self._edited(await super().links(seqs))]

    def _edited(self, records) -> list[Record]:
        found = [self.edits.get(record.seq, record) for record in records]
        return [record for record in found if record is not None]


@pytest.fixture
async def store() -> Edited:
    made = Edited()
    await made.commit(*(entry(number) for number in range(1, COUNT + 1)))
    return made


async def one(store: Edited, seq: int) -> Record:
    [record] = await store.read(after=seq - 1, limit=1)
    return record


def rewritten(record: Record, before: str) -> Record:
    """The record with other words, and a digest that follows from the one before: no secret is needed for that."""
    said = Entry(record.stream, record.kind, record.subject, record.at, b'"forged"', record.once)
    return link(before, record.seq, said)


async def test_records_as_they_were_written_are_proven(store: Edited):
    """The first has none before it and the last none behind it; all, some and none."""
    records = await store.read()
    for some in (records, records[:1], records[-1:], records[::7], records[5:9], []):
        await store.prove(some)
    for seq in (1, 2, COUNT - 500, COUNT):
        assert await store.prove_from(seq) == await store.head()
    await store.forget([2, 5])
    await store.prove(await store.read(limit=10))


@requirement("TOOL-45")
@pytest.mark.parametrize("seq", [1, 2, 700, COUNT])
@pytest.mark.parametrize("change", [{"data": b'"forged"'}, {"subject": "another call"}, {"once": "a key"}, {"at": 5}])
async def test_a_record_that_was_edited_is_named(store: Edited, seq: int, change: dict):
    """Whatever is changed of it, alone or among others."""
    store.edits[seq] = msgspec.structs.replace(await one(store, seq), **change)
    for some in ([await one(store, seq)], await store.read()):
        with pytest.raises(Tampered, match=rf"record {seq} \((asked|answered|finished)\) was changed"):
            await store.prove(some)


@requirement("TOOL-45")
@pytest.mark.parametrize("seq", [1, 2, 700, COUNT - 1])
async def test_a_record_that_was_written_anew_with_its_digest_is_named_by_the_next(store: Edited, seq: int):
    """Anybody can compute a digest. That the record follows from the one before it is no proof."""
    before = (await one(store, seq - 1)).digest if seq > 1 else "0" * 64
    store.edits[seq] = rewritten(await one(store, seq), before)
    with pytest.raises(Tampered, match=rf"record {seq} \(.*\) was changed .*: the next one does not follow"):
        await store.prove([await one(store, seq)])
    with pytest.raises(Tampered, match=rf"record {seq + 1} \(.*\) was changed"):
        await store.prove(await store.read(after=seq - 1, limit=2))


@requirement("TOOL-45")
async def test_a_record_whose_neighbour_was_taken_out_is_not_believed(store: Edited):
    """Somebody took out what came next: that the approval was spent."""
    store.edits[700] = None
    for seq in (699, 701):
        with pytest.raises(Tampered, match="record 700 is missing"):
            await store.prove([await one(store, seq)])
    await store.prove([await one(store, 702)])


@requirement("TOOL-45")
@pytest.mark.parametrize("what", ["gone", "edited", "hidden", "rewritten", "a page of them"])
async def test_whatever_was_done_behind_a_record_is_found_on_the_way_to_the_head(store: Edited, what: str):
    """An answer may be spent only if nothing that came after it was hidden: not by any edit, wherever it is."""
    record = await one(store, 600)
    match what:
        case "gone":
            store.edits[600] = None
        case "edited":
            store.edits[600] = msgspec.structs.replace(record, digest="0" * 64)
        case "hidden":
            store.edits[600] = msgspec.structs.replace(record, subject="nobody asks for this")
        case "rewritten":
            store.edits[600] = rewritten(record, (await one(store, 599)).digest)
        case "a page of them":
            store.edits = dict.fromkeys(range(600, COUNT))
    for seq in (1, 500, 599, 600):
        with pytest.raises(Tampered, match=r"record 60[01] "):
            await store.prove_from(seq)
    if what != "a page of them":
        await store.prove_from(602)


async def test_somebody_who_writes_meanwhile_is_no_damage(store: Edited):
    """The end that is asked for last may be further than what was read before."""

    class Growing(Edited):
        async def head(self):
            await self.commit(entry(1))
            return await super().head()

    growing = Growing()
    await growing.commit(entry(1), entry(2))
    records = await growing.read()
    await growing.prove(records)
    assert (await growing.prove_from(1)).seq == (await growing.head()).seq - 1
