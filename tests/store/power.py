"""One life of a store that ends when the power goes, and what must be there when it is back."""

import asyncio
import math
import random
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from disk import Disk, failing_disk
from samples import entry

from lastword.errors import StoreError
from lastword.store.chain import Entry, Record
from lastword.store.memory import MemoryStore
from lastword.store.sqlite import SqliteStore

# A life is cut after at most this many operations of the disk: a few hundred commits, some prunings and reopenings.
MAX_OPERATIONS = 5000


class Life:
    """Does things to a store, and remembers what was acknowledged."""

    def __init__(self, store: SqliteStore, chance: random.Random) -> None:
        self.store = store
        self.chance = chance
        self.said = MemoryStore()
        """Everything in the order of acceptance, whether or not it was acknowledged."""
        self.ends = {0}
        """Where a group ends: a store may not end elsewhere."""
        self.acknowledged = 0
        self.forgotten: set[int] = set()
        self.keys = 0
        self.held: list[tuple[bytes, ...]] = []
        """What each record holds, in order."""

    async def go_on_until(self, disk: Disk) -> None:
        """Live until the power is gone, and hear of it in words."""
        try:
            while True:
                await self.step()
        except StoreError:
            assert disk.found is not None, "the store failed, but the power was not cut"

    async def step(self) -> None:
        match self.chance.choices(["append", "commit", "several", "forget", "close"], [30, 50, 10, 4, 4])[0]:
            case "append":
                said = self.entry()
                self.store.append(said)
                await self.say(said)
            case "commit":
                group = [self.entry(key=True) for _ in range(self.chance.randint(1, 3))]
                await self.say(*group)
                assert await self.store.commit(*group)
                await self.hear()
            case "several":
                groups = [[self.entry(key=True)] for _ in range(5)]
                for group in groups:
                    await self.say(*group)
                assert all(await asyncio.gather(*(self.store.commit(*group) for group in groups)))
                await self.hear()
            case "forget":
                seqs = {self.chance.randint(1, max(1, self.acknowledged)) for _ in range(3)}
                await self.store.forget(seqs)
                self.forgotten |= {seq for seq in seqs if seq <= (await self.said.head()).seq}
                await self.hear()
            case "close":
                await self.store.close()
                await self.hear()

    def entry(self, *, key: bool = False) -> Entry:
        self.keys += 1
        size = self.chance.choice([0, 10, 500, 5000, 60_000])
        once = f"key-{self.keys}" if key and self.chance.random() < 0.5 else None
        # Some hold the same as others: what one of them lets go of must stay for the rest.
        held = (
            [b"%d" % self.chance.randint(1, 9) * self.chance.choice([10, 9000])] if self.chance.random() < 0.3 else []
        )
        return entry(self.keys, data=b'"%s"' % (b"%d" % self.keys * size), once=once, contents=tuple(held))

    async def say(self, *entries: Entry) -> None:
        self.held += [entry.contents for entry in entries]
        await self.said.commit(*entries)
        self.ends.add((await self.said.head()).seq)

    async def hear(self) -> None:
        self.acknowledged = (await self.said.head()).seq

    async def judge(self, found: SqliteStore) -> None:
        """Compare what was found with what was said."""
        records = await found.read()
        expected = (await self.said.read())[: len(records)]
        assert len(records) >= self.acknowledged, f"{self.acknowledged - len(records)} acknowledged records are lost"
        assert len(records) in self.ends, "a group was torn"
        for record, said in zip(records, expected, strict=True):
            assert without_data(record) == without_data(said)
            assert record.data in (None, said.data)
            if record.seq in self.forgotten:
                assert record.data is None, "what was pruned came back"
            if record.once is not None:
                assert await found.taken(record.once) == record
            if record.data is not None:
                for data in self.held[record.seq - 1]:
                    assert await found.content(sha256(data).hexdigest()) == data, "what a record holds is lost"
        kept = {data for record in records if record.data is not None for data in self.held[record.seq - 1]}
        for data in {data for held in self.held for data in held} - kept:
            assert await found.content(sha256(data).hexdigest()) is None, "a content outlived all that held it"
        await found.verify()
        assert await found.commit(entry(0, once="after"))
        await found.verify()


def without_data(record: Record) -> tuple[object, ...]:
    return (record.seq, record.stream, record.kind, record.subject, record.at, record.once, record.digest)


async def survive(seed: int) -> int:
    """Live, lose power, look. Returns how many records had been acknowledged."""
    chance = random.Random(seed)
    cut = round(math.exp(chance.uniform(0, math.log(MAX_OPERATIONS))))
    with TemporaryDirectory() as folder:
        with failing_disk() as disk:
            disk.cut_power_at(cut, seed)
            life = Life(SqliteStore(Path(folder) / "journal.db"), chance)
            await life.go_on_until(disk)
            disk.replace()
            await life.store.close()
        assert disk.found is not None
        after = Path(folder) / "after"
        after.mkdir()
        for name, content in disk.found.items():
            (after / name).write_bytes(content)
        store = SqliteStore(after / "journal.db")
        try:
            await life.judge(store)
        finally:
            await store.close()
    return life.acknowledged
