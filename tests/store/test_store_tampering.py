"""Somebody edits the file. Whatever they change, `verify` says where; what the chain cannot see, a kept head can."""

import asyncio
import random

import apsw
import msgspec
import pytest
from samples import entry

from lastword.errors import StoreError, Tampered
from lastword.store.chain import Entry, Head, Record, link
from lastword.store.sqlite import SqliteStore
from requirements import requirement
from tries import often

COUNT = 8
COLUMNS = {
    "seq": 99,
    "stream": "'else'",
    "kind": "'answered yes'",
    "subject": "'other'",
    "at": 5,
    "data": "x'7b7d'",
    "once": "'key'",
    "data_digest": f"'{'0' * 64}'",
    "digest": f"'{'0' * 64}'",
}


@pytest.fixture
async def store(path, opened):
    made = opened(path)
    await made.commit(*(entry(number, once=f"key-{number}" if number % 2 else None) for number in range(1, COUNT + 1)))
    return made


def edit(path, *statements: str) -> None:
    """What anybody can do who can write the file."""
    raw = apsw.Connection(str(path))
    raw.pragma("ignore_check_constraints", True)
    for statement in statements:
        raw.execute(statement)
    raw.close()


async def first_bad(store: SqliteStore, **pinned: Head) -> str:
    with pytest.raises(Tampered) as caught:
        await store.verify(**pinned)
    return caught.value.fact


@pytest.mark.parametrize("column", COLUMNS)
async def test_a_changed_column_of_any_record_is_named(store, path, column):
    """No column is outside the digest."""
    for seq in range(1, COUNT + 1):
        edit(path, f"CREATE TABLE was AS SELECT * FROM records WHERE seq = {seq}")
        edit(path, f"UPDATE records SET {column} = {COLUMNS[column]} WHERE seq = {seq}")
        said = await first_bad(store)
        assert said.startswith(f"record {seq} ")
        number = COLUMNS["seq"] if column == "seq" else seq
        edit(
            path, f"DELETE FROM records WHERE seq = {number}", "INSERT INTO records SELECT * FROM was", "DROP TABLE was"
        )
    assert (await store.verify()).seq == COUNT


async def test_a_key_that_is_taken_away_or_given_is_named(store, path):
    """To free a key is to allow an approval to be spent again."""
    edit(path, "UPDATE records SET once = NULL WHERE seq = 3")
    assert (await first_bad(store)).startswith("record 3 ")


async def test_a_deleted_record_is_named(store, path):
    """All but the last leave a gap; the last is missed by whoever kept the head."""
    head = await store.head()
    for seq in range(1, COUNT):
        edit(
            path,
            f"CREATE TABLE was AS SELECT * FROM records WHERE seq = {seq}",
            f"DELETE FROM records WHERE seq = {seq}",
        )
        assert await first_bad(store) == f"record {seq} is missing or out of place (found {seq + 1})"
        edit(path, "INSERT INTO records SELECT * FROM was", "DROP TABLE was")
    edit(path, f"DELETE FROM records WHERE seq = {COUNT}")
    assert (await store.verify()).seq == COUNT - 1
    assert "its tail was cut off" in await first_bad(store, head=head)


async def test_records_that_changed_places_are_named(store, path):
    """Asked after answered would be another story told by the same records."""
    for left in range(1, COUNT):
        for right in range(left + 1, COUNT + 1):
            swap = (
                f"UPDATE records SET seq = 1000 WHERE seq = {left}",
                f"UPDATE records SET seq = {left} WHERE seq = {right}",
                f"UPDATE records SET seq = {right} WHERE seq = 1000",
            )
            edit(path, *swap)
            assert (await first_bad(store)).startswith(f"record {left} ")
            edit(path, *swap)
    await store.verify()


@pytest.mark.parametrize(("place", "named"), [(COUNT + 1, COUNT + 1), (COUNT + 2, COUNT + 1), (0, 1), (-3, 1)])
async def test_an_inserted_record_is_named(store, path, place, named):
    """Also where nobody would look for it: a number that no record ever has could still hold a key."""
    forged = ", ".join(f"'{'0' * 64}'" for _ in range(2))
    edit(path, f"INSERT INTO records VALUES ({place}, 's', 'burned', 'c', 1, x'7b7d', 'forged', {forged})")
    assert (await first_bad(store)).startswith(f"record {named} ")


async def test_a_record_that_was_forged_with_its_digest_is_caught_by_the_next(store, path):
    """Who knows the format can compute one digest. All the later ones would have to be computed too."""
    records = await store.read()
    forged = link(records[2].digest, 4, Entry("s", "answered", "c", 1, b'"yes"'))
    write_over(path, [forged])
    assert (await first_bad(store)).startswith("record 5 ")


async def test_a_chain_that_was_written_anew_is_caught_by_a_kept_head(store, path):
    """Whoever computes them all leaves a chain that holds. Only a head kept elsewhere shows that it is another one."""
    head = await store.head()
    last, forged = "0" * 64, []
    for record in await store.read():
        assert record.data is not None
        data = b'"yes"' if record.seq == 4 else record.data
        said = Entry(record.stream, record.kind, record.subject, record.at, data, record.once)
        forged.append(link(last, record.seq, said))
        last = forged[-1].digest
    write_over(path, forged)
    assert (await store.verify()).seq == COUNT
    assert await first_bad(store, head=head) == f"record {COUNT} is not the one that the given head names"


def write_over(path, records: list[Record]) -> None:
    raw = apsw.Connection(str(path))
    for record in records:
        raw.execute("REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(record))
    raw.close()


@pytest.mark.parametrize("value", ["CAST(x'ff' AS TEXT)", "'text'"])
async def test_a_value_of_the_wrong_kind_is_named_and_not_an_accident(store, path, value):
    """A verifier that stumbles over what an attacker wrote proves nothing."""
    edit(
        path,
        "ALTER TABLE records RENAME TO strict",
        "CREATE TABLE records AS SELECT * FROM strict",
        f"UPDATE records SET data = {value} WHERE seq = 3",
    )
    with pytest.raises(Tampered):
        await store.verify()


async def test_a_key_that_was_hidden_from_the_index_is_found(store, path):
    """The record stands, but nobody who asks for its key finds it: an approval could be spent again."""
    edit(
        path,
        "CREATE TABLE empty (once TEXT)",
        "CREATE UNIQUE INDEX hollow ON empty (once)",
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name = 'hollow')"
        " WHERE name = 'records_by_once'",
        "DELETE FROM sqlite_schema WHERE name IN ('hollow', 'empty')",
    )
    await store.close()
    assert await store.taken("key-3") is None
    with pytest.raises(Tampered, match="contradicts itself"):
        await store.verify()


async def test_a_trigger_swallows_no_record_and_is_found(store, path):
    """Left in the file by somebody, it would let a commit say yes and write nothing."""
    edit(path, "CREATE TRIGGER silence BEFORE INSERT ON records BEGIN SELECT RAISE(IGNORE); END")
    assert await store.commit(entry(COUNT + 1))
    assert (await store.head()).seq == COUNT + 1
    with pytest.raises(Tampered, match="tables, indexes or triggers"):
        await store.verify()


@requirement("TEAM-8")
@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM standing WHERE name = 'call-1'",
        "INSERT INTO standing VALUES ('asked', 'session-2', 'call-2', 2, 2)",
        "UPDATE standing SET seq = 1 WHERE name = 'call-4'",
        "UPDATE standing SET since = 2 WHERE name = 'call-4'",
        "UPDATE standing SET name = 'call-0' WHERE name = 'call-4'",
    ],
    ids=["hidden", "put in", "led elsewhere", "moved", "renamed"],
)
async def test_what_is_said_to_count_must_follow_from_the_records(store, path, change):
    """A waiting question that nobody finds is a question that nobody answers."""
    assert [record.seq for record in await store.current("asked")] == [1, 4, 7]
    edit(path, change)
    assert "whether it still counts, is not what the records say" in await first_bad(store)


@requirement("TEAM-8")
async def test_a_record_that_counts_and_is_gone_or_another_is_not_passed_over(store, path):
    """Nobody may be shown fewer questions than wait, or another one in their place."""
    edit(path, "CREATE TABLE was AS SELECT * FROM records", "DELETE FROM records WHERE seq = 4")
    with pytest.raises(Tampered, match=r"record 4 \(asked\), which still counts, is missing or was changed"):
        await store.current("asked")
    edit(path, "INSERT INTO records SELECT * FROM was WHERE seq = 4", "DROP TABLE was")
    assert len(await store.current("asked")) == 3
    edit(path, "UPDATE standing SET seq = 5 WHERE name = 'call-4'")
    with pytest.raises(Tampered, match=r"record 5 \(asked\), which still counts, is missing or was changed"):
        await store.current("asked")


def test_no_byte_of_the_file_can_be_flipped_so_that_it_tells_another_story(path):
    """Free space may change and headers may break, but what is read is what was written, or an error in words."""

    async def look(check: bool) -> list[Record]:
        store = SqliteStore(path)
        try:
            if check:
                await store.verify()
            return list(await store.read())
        finally:
            await store.close()

    async def fill() -> None:
        store = SqliteStore(path)
        await store.commit(*(entry(number, once=f"key-{number}") for number in range(1, 40)))
        await store.close()

    asyncio.run(fill())
    written = asyncio.run(look(check=False))
    content = path.read_bytes()
    chance = random.Random(4)
    errors = 0
    for place in [*range(100), *(chance.randrange(len(content)) for _ in range(often(100)))]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        for left in path.parent.iterdir():
            left.unlink()
        path.write_bytes(flipped)
        try:
            assert asyncio.run(look(check=True)) == written, f"byte {place}"
        except StoreError:
            errors += 1
    assert errors > 30
