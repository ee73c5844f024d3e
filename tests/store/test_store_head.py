"""A store that lacks what was seen of it: its log was lost, it is an old copy, it is another. Nothing irrevocable is
written to it until a person has accepted that, and everything else goes on."""

import asyncio
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import apsw
import pytest
from disk import failing_disk
from other_process import LOADS, other_process
from samples import entry, make_old

from lastword.errors import StoreError
from lastword.store import head_file
from lastword.store.chain import Head
from lastword.store.head_file import SLOT_BYTES, HeadFile
from lastword.store.sqlite import SqliteStore
from requirements import requirement
from warm import run_python

Damage = Callable[[Path], None]


def beside(path: Path) -> Path:
    return path.with_name(f"{path.name}-head")


def kept(path: Path) -> Head | None:
    return HeadFile(beside(path)).read()


def seq_of(head: Head | None) -> int:
    assert head is not None
    return head.seq


@pytest.fixture
async def store(path):
    """A store with a spent approval in its file, and a later one that is only in its log."""
    opened = SqliteStore(path)
    await opened.commit(entry(1), entry(2, once="spent", irrevocable=True))
    raw = apsw.Connection(str(path))
    raw.pragma("wal_checkpoint", "truncate")
    raw.close()
    await opened.commit(entry(3, once="spent later", irrevocable=True))
    opened.append(entry(4))
    await opened.commit()
    yield opened
    await opened.close()


@pytest.fixture
async def crashed(store, path, tmp_path):
    """What the disk holds of it at this moment: file, log and head."""
    folder = tmp_path / "crashed"
    folder.mkdir()
    for end in ("", "-wal", "-head"):
        shutil.copy(f"{path}{end}", folder)
    return folder / path.name


def lose_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def cut_log(path: Path) -> None:
    os.truncate(f"{path}-wal", 100)


def damage_log(path: Path) -> None:
    content = bytearray(Path(f"{path}-wal").read_bytes())
    content[60] ^= 1
    Path(f"{path}-wal").write_bytes(content)


def lose_file(path: Path) -> None:
    path.unlink()
    Path(f"{path}-wal").unlink()


def replace_by_another(path: Path) -> None:
    lose_file(path)
    write_elsewhere(path, range(1, 10))


def replace_by_an_old_copy(path: Path) -> None:
    """The copy was made between the two spendings and was used since: it is as long, and another."""
    lose_log(path)
    write_elsewhere(path, range(5, 9))


def lose_head(path: Path) -> None:
    beside(path).unlink()


def garble_head(path: Path) -> None:
    beside(path).write_bytes(os.urandom(2 * SLOT_BYTES))


def empty_head(path: Path) -> None:
    os.truncate(beside(path), 0)


def edit_head(path: Path) -> None:
    """Somebody writes another head with an editor, and does not know that it is sealed."""
    beside(path).write_text(re.sub("[0-9]:", "1:", beside(path).read_text()))


def link_head(path: Path) -> None:
    """It would be moved by whoever moves its target."""
    beside(path).rename(path.with_name("elsewhere"))
    beside(path).symlink_to(path.with_name("elsewhere"))


def pipe_head(path: Path) -> None:
    beside(path).unlink()
    os.mkfifo(beside(path))


def folder_head(path: Path) -> None:
    beside(path).unlink()
    beside(path).mkdir()


DAMAGES: dict[Damage, str] = {
    lose_log: "at least 1 record is missing: it ends at record 2, and record 3 was seen",
    cut_log: "at least 1 record is missing: it ends at record 2, and record 3 was seen",
    damage_log: "at least 1 record is missing: it ends at record 2, and record 3 was seen",
    lose_file: "at least 3 records are missing: it ends at record 0, and record 3 was seen",
    replace_by_another: "record 3 is not the one that was seen",
    replace_by_an_old_copy: "record 3 is not the one that was seen",
    lose_head: "the file beside it that says how far it went is gone",
    garble_head: "cannot be read or kept: it holds no head",
    empty_head: "cannot be read or kept: it holds no head",
    edit_head: "cannot be read or kept: it holds no head",
    link_head: "cannot be read or kept: it is a link",
    pipe_head: "cannot be read or kept: it is not a file",
    folder_head: "cannot be read or kept: it is not a file",
}


def write_elsewhere(path: Path, numbers: range) -> None:
    """Let another store object, on a loop of its own, write to a file and close it."""

    async def write() -> None:
        store = SqliteStore(path)
        await store.commit(*(entry(number, at=number) for number in numbers))
        await store.close()

    writer = Thread(target=lambda: asyncio.run(write()))
    writer.start()
    writer.join()


@requirement("TEAM-10")
async def test_the_head_is_kept_beside_the_store_for_its_owner_alone(store, path):
    """As of the last record that cannot be taken back; what came after it may be lost without harm."""
    assert kept(path) == Head(3, (await store.read())[2].digest)
    assert stat.S_IMODE(beside(path).stat().st_mode) == 0o600
    assert str(kept(path)) in beside(path).read_text(), "for a person who looks"
    await store.commit(entry(5))
    assert seq_of(kept(path)) == 3
    await store.commit(entry(6, irrevocable=True))
    assert kept(path) == await store.head()


@requirement("TEAM-10")
async def test_a_store_that_never_had_anything_irrevocable_has_no_head(path):
    """A conversation, a free call, a look: nothing that could be done twice."""
    store = SqliteStore(path)
    await store.commit(entry(1))
    await store.close()
    assert [found.name for found in path.parent.iterdir()] == [path.name]


@requirement("TEAM-10")
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
async def test_a_store_that_lacks_what_was_seen_of_it_writes_nothing_irrevocable(crashed, damage):
    """Not once, not later, not from another process; the key stays free, and what is needed to look goes on."""
    damage(crashed)
    store = SqliteStore(crashed)
    words = DAMAGES[damage]
    before = await store.head()
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            await store.commit(entry(9, once="new"), entry(10, irrevocable=True))
        assert words in caught.value.fact
        assert caught.value.place == str(crashed)
        assert "lastword journal accept" in (caught.value.hint or "")
    assert await store.head() == before
    assert await store.taken("new") is None, "the approval is not burned"
    behind = await store.behind()
    assert behind is not None
    assert (words in behind.fact, behind.found) == (True, before)
    await store.close()
    store = SqliteStore(crashed)
    with pytest.raises(StoreError, match=r"nothing approved starts here"):
        await store.commit(entry(11, irrevocable=True))
    store.append(entry(12))
    assert await store.commit(entry(13, once="an answer"))
    assert (await store.verify()).seq == before.seq + 2
    await store.close()


@requirement("TEAM-10")
@pytest.mark.parametrize(
    "damage", [damage for damage in DAMAGES if damage is not folder_head], ids=lambda damage: damage.__name__
)
async def test_what_a_person_accepted_counts_from_then_on(crashed, damage):
    """And what is lost after that is missed again."""
    damage(crashed)
    store = SqliteStore(crashed)
    await store.commit(entry(8))
    head = await store.head()
    await store.accept(head)
    assert await store.behind() is None
    assert kept(crashed) == head
    assert stat.S_IMODE(beside(crashed).lstat().st_mode) == 0o600
    assert await store.commit(entry(9, irrevocable=True))
    assert kept(crashed) == await store.head()
    await store.close()
    beside(crashed).unlink()
    store = SqliteStore(crashed)
    with pytest.raises(StoreError, match="is gone"):
        await store.commit(entry(10, irrevocable=True))
    await store.close()


async def test_a_folder_in_the_place_of_the_head_is_named_and_left_alone(crashed, opened):
    """Nothing of ours, so it is not ours to remove."""
    folder_head(crashed)
    store = opened(crashed)
    with pytest.raises(StoreError, match="Is a directory") as caught:
        await store.accept(await store.head())
    assert caught.value.place == str(beside(crashed))
    assert "move it away" in (caught.value.hint or "")
    beside(crashed).rmdir()
    await store.accept(await store.head())
    assert await store.commit(entry(9, irrevocable=True))


async def test_accepting_leaves_what_a_link_led_to_alone(crashed):
    """The link is replaced, not followed."""
    link_head(crashed)
    before = crashed.with_name("elsewhere").read_bytes()
    store = SqliteStore(crashed)
    await store.accept(await store.head())
    await store.commit(entry(9, irrevocable=True))
    await store.close()
    assert not beside(crashed).is_symlink()
    assert crashed.with_name("elsewhere").read_bytes() == before


@requirement("TEAM-10")
async def test_others_in_the_same_transaction_are_not_refused(crashed, opened):
    """They share a commit with one that is, and have nothing to do with it."""
    lose_log(crashed)
    store = opened(crashed)
    await store.head()
    told = await asyncio.gather(
        *(store.commit(entry(n, once=f"key-{n}", irrevocable=n % 2 == 0)) for n in range(10, 30)),
        return_exceptions=True,
    )
    assert [isinstance(one, StoreError) for one in told] == [n % 2 == 0 for n in range(10, 30)]
    assert len({id(one) for one in told if isinstance(one, StoreError)}) == 10
    assert (await store.verify()).seq == 2 + 10


@requirement("TEAM-10")
async def test_a_file_of_an_earlier_version_gets_its_head_without_a_question(path, opened):
    """It never had one that could be missing. From then on it has."""
    make_old(path, *(entry(number) for number in range(1, 6)))
    store = opened(path)
    assert await store.behind() is None
    assert await store.commit(entry(6, irrevocable=True))
    assert kept(path) == await store.head()
    await store.close()
    beside(path).unlink()
    with pytest.raises(StoreError, match="is gone"):
        await store.commit(entry(7, irrevocable=True))


@requirement("TEAM-10")
async def test_a_torn_write_of_the_head_costs_nothing(store, path):
    """The power went while it was written. The one before it is whole, and the store is further than that."""
    newest = beside(path).read_bytes().index(b"3:") // SLOT_BYTES
    content = bytearray(beside(path).read_bytes())
    content[newest * SLOT_BYTES : newest * SLOT_BYTES + 450] = b"\0" * 450
    beside(path).write_bytes(content)
    assert seq_of(kept(path)) == 2
    assert await store.commit(entry(5, irrevocable=True))
    assert kept(path) == await store.head()


@requirement("TEAM-10")
async def test_the_head_never_goes_back(store, path):
    """Of two processes that commit one after the other, the first may be the later one to keep its head."""
    file = HeadFile(beside(path))
    head = kept(path)
    for seq in (0, 1, 2, 3):
        file.advance(Head(seq, "f" * 64))
        assert kept(path) == head
    further = Head(70, "e" * 64)
    file.advance(further)
    file.advance(Head(69, "f" * 64))
    file.advance(Head(4, "f" * 64))
    assert kept(path) == further


@requirement("TEAM-10")
async def test_processes_share_one_head(store, path):
    """Each keeps what it saw, and none is refused because of what another wrote."""
    with other_process(path) as left, other_process(path) as right:
        for number in range(100, 150):
            for other in (left, right):
                other.send("commit", number=number, once=None, irrevocable=True)
            assert await store.commit(entry(number, irrevocable=True))
            assert left.receive() is True
            assert right.receive() is True
    assert kept(path) == await store.head()
    assert (await store.head()).seq == 4 + 150


@requirement("TEAM-10")
async def test_many_who_commit_at_once_share_one_sync_of_the_head(path, monkeypatch, opened):
    """Once per commit group: a hundred approvals must not cost a hundred syncs."""
    syncs = []
    real = os.fdatasync
    monkeypatch.setattr(head_file, "_sync", lambda descriptor: (syncs.append(1), real(descriptor)))
    store = opened(path)
    await store.commit(entry(0))
    told = await asyncio.gather(*(store.commit(entry(n, irrevocable=True)) for n in range(1, 201)))
    assert all(told)
    assert 1 < len(syncs) < 40
    assert kept(path) == await store.head()


@requirement("TEAM-10")
async def test_who_cannot_keep_the_head_is_told_and_may_not_act(store, path, monkeypatch):
    """The disk fails between the two. The record is there, and nobody acts upon it; others are not concerned."""

    def fail(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as disk:
        disk.setattr(head_file, "_sync", fail)
        results: tuple[Any, ...] = await asyncio.gather(
            store.commit(entry(5, once="start", irrevocable=True)), store.commit(entry(6)), return_exceptions=True
        )
    refused, other = results
    assert isinstance(refused, StoreError)
    assert "cannot be read or kept: Input/output error" in refused.fact
    assert refused.place == str(beside(path))
    assert other is True
    assert (await store.taken("start")).seq == 5
    assert await store.commit(entry(7, irrevocable=True))


@requirement("TEAM-10")
async def test_a_head_that_cannot_be_made_keeps_the_start_from_being_written(path, opened):
    """Found out before anything is burned, and not after."""
    store = opened(path)
    await store.commit(entry(1))
    (path.parent / f"{path.name}-head.new").mkdir()
    with pytest.raises(StoreError, match="cannot be read or kept: Is a directory"):
        await store.commit(entry(2, once="start", irrevocable=True))
    assert await store.taken("start") is None
    (path.parent / f"{path.name}-head.new").rmdir()
    assert await store.commit(entry(2, once="start", irrevocable=True))


KILLED = """
import asyncio, os, signal, sys
from samples import entry
from lastword.store.head_file import HeadFile
from lastword.store.sqlite import SqliteStore

async def main():
    store = SqliteStore(sys.argv[1])
    assert await store.commit(entry(1, irrevocable=True))
    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(HeadFile, sys.argv[2], die)
    await store.commit(entry(2, once="key", irrevocable=True))

asyncio.run(main())
"""


@requirement("TEAM-10")
@pytest.mark.parametrize("moment", ["advance", "read"])
async def test_a_process_that_dies_around_the_head_leaves_a_store_that_goes_on(path, moment, opened):
    """Between the commit and the head, the head is behind the store, which is no damage; before, nothing is there."""
    died = await asyncio.to_thread(run_python, "-c", KILLED, str(path), moment, cwd=path.parent, loads=LOADS)
    assert died.returncode == -9
    store = opened(path)
    assert (await store.head()).seq == (2 if moment == "advance" else 1)
    assert seq_of(kept(path)) == 1
    assert await store.behind() is None
    assert await store.commit(entry(2, once="key", irrevocable=True)) is (moment == "read")
    assert await store.commit(entry(3, irrevocable=True))
    assert kept(path) == await store.head()


@requirement("TEAM-10")
async def test_a_commit_that_failed_keeps_no_head(path):
    """What is not in the store must not be missed later."""
    with failing_disk() as disk:
        store = SqliteStore(path)
        await store.commit(entry(1, irrevocable=True))
        before = kept(path)

        def fault(operation: str, name: str) -> None:
            if operation == "sync":
                raise apsw.IOError("as the test asked for")

        disk.fault = fault
        with pytest.raises(StoreError, match="the disk reported an error"):
            await store.commit(entry(2, irrevocable=True))
        disk.replace()
        assert kept(path) == before
        assert await store.commit(entry(3, irrevocable=True))
        assert kept(path) == await store.head() == Head.parse(str(kept(path)))
        await store.close()
