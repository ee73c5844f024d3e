"""A disk that is full, broken or unsure. Each ends in a clear error or in recovery; nothing is lost, nothing twice."""

import asyncio
import shutil

import apsw
import pytest
from disk import failing_disk
from samples import entry

from lastword.errors import StoreError
from lastword.store.sqlite import SqliteStore

COMMITTED = f"control {apsw.SQLITE_FCNTL_COMMIT_PHASETWO}"


@pytest.fixture
def disk():
    with failing_disk() as made:
        yield made


@pytest.fixture
async def store(disk, path):
    opened = SqliteStore(path)
    assert await opened.commit(entry(1))
    yield opened
    disk.replace()
    await opened.close()


def fail(*operations: str, on: str = "", after: int = 0, times: int = 10**9, with_: type[apsw.Error] = apsw.IOError):
    """A fault: these operations on files whose name ends so fail, after some that did not."""
    seen = 0

    def fault(operation: str, name: str) -> None:
        nonlocal seen
        if operation in operations and name.endswith(on):
            seen += 1
            if after < seen <= after + times:
                raise with_("as the test asked for")

    return fault


async def subjects(store: SqliteStore) -> list[str]:
    return [record.subject for record in await store.read()]


@pytest.mark.parametrize("written", range(12))
async def test_a_full_disk_is_named_and_nothing_of_the_group_is_written(store, disk, path, written):
    """Whichever write it is that no longer fits."""
    store.append(entry(2))
    disk.fault = fail("write", after=written, with_=apsw.FullError)
    with pytest.raises(StoreError) as caught:
        await store.commit(entry(3), entry(4, data=b"1" * 30_000))
    assert str(caught.value) == (
        f"{path}: the disk is full; 1 entry accepted before wait to be written\nhint: make room and try again"
    )
    disk.replace()
    assert await store.commit(entry(5))
    assert await subjects(store) == ["call-1", "call-2", "call-5"]
    await store.verify()


async def test_entries_nobody_waited_for_are_tried_again_without_being_asked(store, disk, path, opened):
    """Once there is room again, what was accepted is written though nobody commits."""
    disk.fault = fail("write", with_=apsw.FullError)
    for number in range(2, 30):
        store.append(entry(number))
    with pytest.raises(StoreError, match="28 entries accepted before"):
        await store.commit()
    disk.replace()
    copy = opened(path)
    await asyncio.wait_for(copy.changed(1), 30)
    assert await subjects(copy) == [f"call-{number}" for number in range(1, 30)]


async def test_a_store_that_cannot_be_closed_stays_open_until_it_can(store, disk):
    """Closing is the last moment at which a loss can be reported, so it is, and can be tried again."""
    disk.fault = fail("write", with_=apsw.FullError)
    store.append(entry(2))
    with pytest.raises(StoreError, match="the disk is full; 1 entry accepted before"):
        await store.close()
    disk.replace()
    await store.close()
    assert await subjects(store) == ["call-1", "call-2"]


async def test_an_error_of_the_disk_is_named_and_the_next_commit_goes_on(store, disk, path):
    """A sync that fails has written nothing that may be relied on."""
    disk.fault = fail("sync", on="-wal", times=1)
    with pytest.raises(StoreError, match="the disk reported an error"):
        await store.commit(entry(2, once="key"))
    assert await subjects(store) == ["call-1"]
    assert await store.taken("key") is None
    assert await store.commit(entry(3, once="key"))
    assert await subjects(store) == ["call-1", "call-3"]
    await store.verify()


async def test_everybody_in_a_failed_transaction_hears_of_it(store, disk):
    """Many share one transaction. Each of them must know."""
    disk.fault = fail("sync", on="-wal")
    told = await asyncio.gather(*(store.commit(entry(n)) for n in range(2, 30)), return_exceptions=True)
    assert all(isinstance(problem, StoreError) for problem in told)
    assert len({id(problem) for problem in told}) == len(told)
    assert await subjects(store) == ["call-1"]


async def test_a_refused_commit_does_not_rise_again_after_a_crash(store, disk, path, tmp_path, opened):
    """A failed sync can leave the whole transaction in the log. A crash right then must not bring it to life.

    Somebody was told that nothing happened, and may have done it again by other means.
    """
    disk.fault = fail("sync", on="-wal", times=1)
    with pytest.raises(StoreError):
        await store.commit(entry(2))
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("journal.db", "journal.db-wal"):
        shutil.copy(path.parent / name, crashed)
    found = opened(crashed / "journal.db")
    assert await subjects(found) == ["call-1"]


async def test_a_commit_that_happened_though_it_failed_is_acknowledged(store, disk):
    """The error came after the deed. Looking shows it, and saying no would invite a repetition."""
    disk.fault = fail(COMMITTED, times=1)
    store.append(entry(2))
    assert await store.commit(entry(3, once="key"))
    assert await store.commit(entry(4))
    assert not await store.commit(entry(5, once="key"))
    assert await subjects(store) == ["call-1", "call-2", "call-3", "call-4"]
    await store.verify()


@pytest.mark.parametrize("happened", [True, False])
async def test_an_unknown_end_is_called_unknown_and_nothing_is_written_twice(store, disk, happened):
    """The disk fails in COMMIT and again when it is asked. The entries that are kept must not be written again."""
    fails_in_commit = fail(COMMITTED if happened else "sync")
    cannot_be_read = fail("read")
    in_commit = False

    def fault(operation: str, name: str) -> None:
        nonlocal in_commit
        in_commit |= operation == (COMMITTED if happened else "sync")
        fails_in_commit(operation, name)
        if in_commit:
            cannot_be_read(operation, name)

    # A reader of its own would have read the pages before; here the writer must fetch them.
    store.append(entry(2))
    disk.fault = fault
    with pytest.raises(StoreError, match="it is not known whether it was; 1 entry accepted before"):
        await store.commit(entry(3))
    store.append(entry(4))
    with pytest.raises(StoreError):
        await store.commit(entry(5))
    disk.replace()
    assert await store.commit(entry(6))
    assert await subjects(store) == ["call-1", "call-2", *(["call-3"] if happened else []), "call-4", "call-6"]
    await store.verify()


async def test_a_page_that_cannot_be_read_is_reported(store, disk):
    """To the reader and to whoever waits, and both can try again."""
    await store.commit(*(entry(number, data=b"1" * 3000) for number in range(2, 2000)))
    disk.fault = fail("read")
    with pytest.raises(StoreError, match="the disk reported an error"):
        await store.read()
    disk.replace()
    assert len(await store.read()) == 1999


async def test_a_file_that_could_not_be_made_is_made_later(disk, path, opened):
    """The first use meets a full disk; the next one does not."""
    store = opened(path)
    disk.fault = fail("write", with_=apsw.FullError)
    store.append(entry(1))
    with pytest.raises(StoreError, match="the disk is full"):
        await store.commit(entry(2))
    with pytest.raises(StoreError, match="the disk is full"):
        await store.changed(0)
    disk.replace()
    assert await store.commit(entry(3))
    assert await subjects(store) == ["call-1", "call-3"]
