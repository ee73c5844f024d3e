"""What only the driver for SQLite promises: the file, its owner, other processes, and refusals in words."""

import asyncio
import gc
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from threading import enumerate as threads

import apsw
import pytest
from disk import failing_disk
from other_process import LOADS, other_process
from samples import entry, make_old

from lastword.errors import NewerStore, StoreError
from lastword.store import group_commit, sqlite_file
from lastword.store.chain import Pruned
from lastword.store.sqlite import SqliteStore
from requirements import requirement
from warm import run_python

FILES = ("journal.db", "journal.db-wal", "journal.db-shm")


@pytest.fixture
async def store(path, opened):
    return opened(path)


def subjects(path: Path) -> list[str]:
    """What a store that is opened afterwards holds."""

    async def look() -> list[str]:
        store = SqliteStore(path)
        found = [record.subject for record in await store.read()]
        await store.verify()
        await store.close()
        return found

    return asyncio.run(look())


def modes(folder: Path) -> dict[str, int]:
    return {found.name: stat.S_IMODE(found.stat().st_mode) for found in folder.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_only_the_owner_can_read_the_files(tmp_path, umask):
    """The journal holds arguments and results. It is nobody else's business, whatever the umask is."""
    before = os.umask(umask)
    try:
        store = SqliteStore(tmp_path / "data" / "lastword" / "journal.db")
        await store.commit(entry(1))
        assert modes(tmp_path / "data" / "lastword") == dict.fromkeys(FILES, 0o600)
        assert modes(tmp_path) == {"data": 0o700}
        assert modes(tmp_path / "data") == {"lastword": 0o700}
        await store.close()
    finally:
        os.umask(before)


def test_holding_a_name_makes_no_folder_that_others_can_look_into(tmp_path):
    """A name can be held before anything was written, and then this makes the folder of the journal."""
    before = os.umask(0)
    try:
        release = SqliteStore(tmp_path / "data" / "lastword" / "journal.db").hold("run")
        assert release is not None
        assert modes(tmp_path) == {"data": 0o700}
        assert modes(tmp_path / "data") == {"lastword": 0o700}
        assert modes(tmp_path / "data" / "lastword") == {"journal.db.holds": 0o700}
        release()
    finally:
        os.umask(before)


async def test_nothing_is_made_before_the_first_use(path, monkeypatch, tmp_path, opened):
    """Asking for a journal is no reason to write one; and the file meant is the one meant when it was asked for."""
    monkeypatch.chdir(tmp_path)
    store = opened("journal.db")
    await store.close()
    assert not path.exists()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.commit(entry(1))
    assert path.exists()


async def test_a_commit_is_in_the_file_when_it_returns(store, path, opened):
    """Durable means that another process finds it, with everything that was accepted before."""
    store.append(entry(1))
    await store.commit(entry(2))
    copy = opened(path)
    assert [record.subject for record in await copy.read()] == ["call-1", "call-2"]
    store.append(entry(3))
    await store.commit()
    assert (await copy.head()).seq == 3


async def test_what_nobody_waits_for_is_written_soon(store, path, opened):
    """Without a commit it may wait for others, but not for ever."""
    copy = opened(path)
    store.append(entry(1))
    await asyncio.wait_for(copy.changed(0), 30)


async def test_closing_leaves_one_file(store, path):
    """Who copies or deletes a closed journal handles one file."""
    await store.commit(entry(1))
    await store.close()
    assert [found.name for found in path.parent.iterdir()] == ["journal.db"]


def test_a_process_that_ends_in_order_keeps_what_nobody_waited_for(path):
    """A script that forgets to close loses nothing: only a crash may."""
    program = f"""
from samples import entry
from lastword.store.sqlite import SqliteStore
store = SqliteStore({str(path)!r})
for number in range(50):
    store.append(entry(number))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent)
    assert subjects(path) == [f"call-{number}" for number in range(50)]


async def test_a_store_that_is_dropped_lets_go_of_its_thread_and_file(path, opened):
    """Nobody should have to close what they only looked at, but a server that forgets must not grow."""
    before = set(threads())
    store = SqliteStore(path)
    store.append(entry(1))
    (started,) = (thread for thread in set(threads()) - before if thread.name == "lastword-store")
    del store
    gc.collect()
    started.join(10)
    assert not started.is_alive()
    copy = opened(path)
    assert (await copy.head()).seq == 1


def test_a_forked_process_is_refused(path):
    """SQLite's locks do not survive a fork, so a shared connection would damage the file."""
    program = f"""
import asyncio, os
from samples import entry
from lastword.errors import StoreError
from lastword.store.sqlite import SqliteStore
store = SqliteStore({str(path)!r})
async def write():
    await store.commit(entry(1))
asyncio.run(write())
if child := os.fork():
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    store.append(entry(2))
except StoreError as problem:
    os._exit(7 if "forked" in str(problem) else 8)
os._exit(9)
"""
    ended = run_python("-c", program, cwd=path.parent, loads=LOADS)
    assert ended.returncode == 7


async def test_a_waiter_hears_when_the_store_is_closed(store):
    """A task that waits for ever on a closed store could never be told to end."""
    waiting = asyncio.ensure_future(store.changed(0))
    await store.commit()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await asyncio.wait_for(waiting, 30)


async def test_a_locked_file_is_waited_for(store, path):
    """Another process that writes is the normal case, and no error."""
    await store.commit(entry(1))
    holder = apsw.Connection(str(path))
    holder.execute("BEGIN IMMEDIATE")
    release = Timer(0.05, lambda: holder.execute("COMMIT"))
    release.start()
    assert await store.commit(entry(2))
    release.join()
    holder.close()


async def test_a_file_that_stays_locked_is_reported_and_nothing_is_lost(path, monkeypatch, opened):
    """A process that hangs in a transaction must not hang every other one, nor make them forget."""
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    store = opened(path)
    await store.commit(entry(1))
    with other_process(path) as other:
        other.ask("lock")
        store.append(entry(2))
        with pytest.raises(StoreError) as caught:
            await store.commit(entry(3))
        assert str(caught.value) == (
            f"{path}: another process has been writing to it for more than 0.05 seconds; "
            "1 entry accepted before wait to be written\n"
            "hint: end the other process, or wait for it and try again"
        )
        with pytest.raises(StoreError):
            await store.read()
        with pytest.raises(StoreError):
            await store.close()
        other.ask("unlock")
        assert await store.commit(entry(4))
    assert [record.subject for record in await store.read()] == ["call-1", "call-2", "call-4"]


async def test_a_full_backlog_makes_append_wait_and_a_failing_disk_makes_it_fail(path, monkeypatch, opened):
    """Memory is no place to keep an endless journal."""
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(group_commit, "MAX_BACKLOG_BYTES", 20_000)
    store = opened(path)
    for number in range(500):
        store.append(entry(number, data=b"1" * 1000))
    assert (await store.head()).seq == 500
    with other_process(path) as other:
        other.ask("lock")
        refusals = 0
        for number in range(50):
            try:
                store.append(entry(number, data=b"1" * 1000))
            except StoreError as problem:
                refusals += "another process has been writing" in str(problem)
        assert 10 < refusals < 50
        other.ask("unlock")
        await store.commit()
    assert (await store.head()).seq == 500 + 50 - refusals
    store.append(entry(1))
    assert (await store.head()).seq == 501 + 50 - refusals


async def test_a_newer_file_is_refused_in_words_and_left_alone(store, path):
    """A later version may mean something else by the same columns. Guessing could lose an approval."""
    await store.commit(entry(1))
    await store.close()
    raw = apsw.Connection(str(path))
    raw.pragma("user_version", 999)
    raw.close()
    before = path.read_bytes()
    for attempt in (store.commit(entry(2)), store.read(), store.head(), store.taken("k"), store.changed(0)):
        with pytest.raises(NewerStore) as caught:
            await attempt
    assert str(caught.value) == (
        f"{path}: written by a later version of lastword (its form is 999, this version knows 3)\n"
        "hint: upgrade lastword, or name another file"
    )
    assert path.read_bytes() == before


async def test_a_file_that_is_upgraded_while_in_use_is_not_written_any_more(store, path):
    """Two terminals, one upgraded: the old one must notice before it writes in the old form."""
    await store.commit(entry(1))
    raw = apsw.Connection(str(path))
    raw.pragma("user_version", 999)
    raw.close()
    with pytest.raises(NewerStore):
        await store.commit(entry(2))
    raw = apsw.Connection(str(path))
    assert raw.execute("SELECT count(*) FROM records").get == 1
    raw.pragma("user_version", len(sqlite_file.MIGRATIONS))
    raw.close()


STORY = [
    entry(1, kind="asked", subject="a", stream="s"),
    entry(2, kind="asked", subject="b", stream="s", once="key"),
    entry(3, kind="state_set", stream="s", data=b'{"key":"k","value":1}'),
    entry(4, kind="state_set", stream="s", data=b'{"key":"l","value":1}'),
    entry(5, kind="finished", subject="a", stream="s"),
    entry(6, kind="state_set", stream="s", data=b'{"key":"k","value":2}'),
    entry(7, kind="burned", subject="b", stream="s"),
]


@requirement("TEAM-8")
async def test_a_file_of_the_first_form_is_brought_up_to_date_and_tells_the_same(path, opened):
    """What still counts is worked out once, from all that was ever written; not a byte of the chain changes."""
    make_old(path, *STORY)
    old, new = opened(path), opened(path.with_name("new.db"))
    assert await new.commit(*STORY)
    assert await old.head() == await new.head()
    for kinds in ("asked", ("asked", "burned"), "state_set", "run_started"):
        assert await old.current(kinds) == await new.current(kinds)
    assert [r.seq for r in await old.current(("asked", "state_set"))] == [2, 6, 4]
    assert await old.verify() == await new.verify()
    assert await old.commit(entry(8, kind="finished", subject="b", stream="s"))
    assert await old.current(("asked", "burned")) == []
    await old.verify()


@pytest.mark.parametrize("content", [b"Dear diary,\n" * 400, b"\0" * 5000, b"SQLite format 3\0" + b"\xff" * 4080])
async def test_a_file_that_is_no_database_is_refused_and_left_alone(store, path, content):
    """A typing mistake in a path must not cost somebody a file."""
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"not a journal of lastword|is damaged") as caught:
        await store.commit(entry(1))
    assert caught.value.place == str(path)
    assert caught.value.hint
    assert path.read_bytes() == content


async def test_somebody_elses_database_is_refused_and_left_alone(store, path):
    """Browsers and mail programs keep such files in the same folders."""
    raw = apsw.Connection(str(path))
    raw.execute("CREATE TABLE bookmarks (url)")
    raw.pragma("user_version", 999)
    raw.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="a database, but not one of lastword"):
        await store.read()
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == ["journal.db"]


async def test_a_folder_in_the_files_place_is_reported(store, path):
    """The commonest mistake with --store."""
    path.mkdir()
    with pytest.raises(StoreError, match="cannot be opened"):
        await store.commit(entry(1))


async def test_a_file_in_the_folders_place_is_reported(tmp_path, opened):
    """It cannot be made, and the words say where."""
    (tmp_path / "data").write_text("")
    store = opened(tmp_path / "data" / "journal.db")
    with pytest.raises(StoreError, match="cannot be made"):
        await store.commit(entry(1))
    (tmp_path / "data").unlink()
    assert await store.commit(entry(1))


async def test_a_file_that_was_deleted_while_in_use_is_not_written_into_the_void(store, path):
    """SQLite goes on writing to a file without a name. Everything acknowledged after that would be lost."""
    await store.commit(entry(1))
    path.rename(path.with_suffix(".old"))
    with pytest.raises(StoreError, match="moved, replaced or deleted"):
        await store.commit(entry(2))
    path.with_suffix(".old").rename(path)
    assert await store.commit(entry(3))


# Some user who is not the superuser: that one may write everything.
NOBODY = 65534
READ_ONLY = """
import asyncio, os, sys
from samples import entry
from lastword.errors import StoreError
from lastword.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    assert len(await store.read()) == 1
    store.append(entry(2))
    try:
        await store.commit(entry(3))
    except StoreError as problem:
        print(problem, flush=True)
    try:
        await store.close()
    except StoreError:
        os._exit(0)

if os.geteuid() == 0:
    os.seteuid(int(sys.argv[2]))
asyncio.run(main())
"""


def test_a_read_only_file_can_be_read_and_says_why_it_is_not_written():
    """A backup is looked at; a wrong mode is named; and what was accepted is not dropped in silence."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "journal.db"
        with other_process(path) as other:
            other.ask("commit", number=1, once=None)
        path.chmod(0o400)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, -1)
            os.chown(folder, NOBODY, -1)
        said = run_python("-c", READ_ONLY, str(path), str(NOBODY), cwd=Path("/"), loads=LOADS)
        assert said.returncode == 0, said.stderr
        assert said.stdout == (
            f"{path}: the file, one beside it (-wal, -shm) or their folder cannot be written; "
            "1 entry accepted before wait to be written\n"
            "hint: check owner and mode, or name another file\n"
        )
        assert subjects(path) == ["call-1"]


LOOKING = """
import asyncio, os, sys
import lastword.commands.journal
from lastword.cli import run
from lastword.store.sqlite import SqliteStore

async def count():
    store = SqliteStore(sys.argv[1])
    print(len(await store.current("asked")), "asked")
    await store.close()

asyncio.run(asyncio.to_thread(int))  # whatever is imported on the way is there before it cannot be read any more
if os.geteuid() == 0:
    os.seteuid(int(sys.argv[2]))
code = run(["journal", "verify", "--store", f"sqlite:///{sys.argv[1]}"])
asyncio.run(count())
sys.exit(code)
"""


@pytest.mark.parametrize("left", ["closed in order", "killed", "still open", "of the first form"])
def test_a_journal_on_a_read_only_disk_can_be_verified(left):
    """A backup, a disk that is kept as evidence: nothing can be made beside the file, and its newest records count."""
    with TemporaryDirectory() as folder:
        used, path = Path(folder) / "used.db", Path(folder) / "disk" / "journal.db"
        path.parent.mkdir()
        if left == "of the first form":
            make_old(used, *STORY[:4])
            shutil.copy(used, path)
        else:
            with other_process(used) as other:
                for number in range(1, 5):
                    other.ask("commit", number=number, once=None)
                if left == "killed":
                    shutil.copy(used, path)
                    shutil.copy(f"{used}-wal", f"{path}-wal")
                elif left == "still open":
                    for end in ("", "-wal", "-shm"):
                        shutil.copy(f"{used}{end}", f"{path}{end}")
            if left == "closed in order":
                shutil.copy(used, path)
        before = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
        for file in (*path.parent.iterdir(), path.parent, Path(folder)):
            file.chmod(0o500 if file.is_dir() else 0o400)
            if os.geteuid() == 0:
                os.chown(file, NOBODY, -1)
        said = run_python("-c", LOOKING, str(path), str(NOBODY), cwd=Path("/"), loads=["lastword.commands.journal"])
        for file in (path.parent, Path(folder)):
            file.chmod(0o700)
        assert (said.stderr, said.returncode) == ("", 0)
        assert said.stdout.startswith("4 records, each as it was written.\n")
        assert said.stdout.endswith("2 asked\n"), "worked out where it is not kept"
        after = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
        assert after == before


async def test_an_error_of_the_disk_while_a_file_is_opened_is_the_one_that_is_told(path):
    """SQLite gives up the transaction by itself then; that there is none to give up is no news."""
    store = SqliteStore(path)
    await store.commit(entry(1))
    await store.close()
    with failing_disk() as disk:
        left = 0

        def fault(operation: str, name: str) -> None:
            nonlocal left
            left -= operation == "read"
            if operation == "read" and left < 0:
                raise apsw.IOError("as the test asked for")

        told = []
        for reads in range(20):
            left, disk.fault = reads, fault
            try:
                await store.head()
            except StoreError as problem:
                told.append(problem.fact)
            disk.replace()
            await store.close()
    assert len(told) > 3
    assert {fact.partition(" (")[0] for fact in told} == {"the disk reported an error"}


async def test_forgotten_data_is_in_no_file_any_more(store, path):
    """Who prunes a password expects that it cannot be found with a hex editor."""
    secret = b'"correct horse battery staple"'
    await store.commit(*(entry(number, data=secret * 200) for number in range(20)))
    await store.commit(entry(21))
    assert any(secret in found.read_bytes() for found in path.parent.iterdir())
    assert await store.forget(range(1, 21)) == Pruned(20)
    assert not any(secret in found.read_bytes() for found in path.parent.iterdir())
    await store.verify()


async def test_the_file_says_what_it_is(store, path):
    """The mark and the form, where file(1) and every later version look for them."""
    await store.commit(entry(1))
    await store.close()
    header = path.read_bytes()[:100]
    assert header[68:72] == b"ASST"
    assert int.from_bytes(header[60:64], "big") == len(sqlite_file.MIGRATIONS) == 3
