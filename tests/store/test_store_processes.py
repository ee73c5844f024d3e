"""What every store promises that several processes share, in a file or on a server."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from other_process import OtherProcess, other_process
from samples import entry, until

from lastword.store import StoreAddress
from lastword.store.postgres_ledger import PostgresLedger
from requirements import requirement


class Place:
    """Where a store lies, and how another process is begun on it, whose heads are its own."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address, self._folder = address, folder
        self.is_file = address.startswith("sqlite:")

    def beside(self, address: str | None = None):
        return other_process(address or self.address, {"XDG_DATA_HOME": str(self._folder)})


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if request.param == "sqlite":
        return Place(f"sqlite:///{tmp_path}/journal.db", tmp_path)
    return Place(request.getfixturevalue("postgres").new_store(), tmp_path)


@pytest.fixture
async def store(place):
    opened = StoreAddress(place.address).open()
    yield opened
    await opened.close()


def both_at_once(left: OtherProcess, right: OtherProcess, do: str, **what: object) -> tuple[Any, Any]:
    for other in (left, right):
        other.send(do, **what)
    return left.receive(), right.receive()


@requirement("TEAM-2")
@pytest.mark.parametrize("keys", [150, pytest.param(1000, marks=pytest.mark.long)])
async def test_two_processes_race_for_keys_and_each_has_one_winner(store, place, keys):
    """Two terminals, or two machines, answer one approval, or claim one run, at the same moment."""
    with place.beside() as left, place.beside() as right:
        results = [both_at_once(left, right, "commit", number=n, once=f"approval-{n}") for n in range(keys)]
    assert all(sorted(result) == [False, True] for result in results)
    if place.is_file:
        assert len(set(results)) == 2, "the race was none: one side always came first"
    assert (await store.verify()).seq == keys


@requirement("TEAM-2")
async def test_processes_that_write_at_once_make_one_chain(store, place):
    """The head is read again in every transaction, since it may be another process's."""
    with place.beside() as other:
        for number in range(60):
            other.send("append", number=number)
            other.send("commit", number=number + 1000, once=None)
            store.append(entry(number + 2000))
            assert await store.commit(entry(number + 3000))
        for _ in range(120):
            await asyncio.to_thread(other.receive)
        assert other.ask("head") == str(await store.head())
    assert (await store.verify()).seq == 240
    numbers = [int(record.subject[5:]) for record in await store.read()]
    for ours in ([n for n in numbers if n >= 2000], [n for n in numbers if n < 2000]):
        assert all(after in (before + 1000, before - 999) for before, after in pairwise(ours))


@requirement("TEAM-1")
async def test_a_waiter_hears_of_another_process(store, place, monkeypatch):
    """A person answers in another terminal, and the run goes on here. By a server's word, and not because it looks
    again and again: the look is put off for the test."""
    monkeypatch.setattr(PostgresLedger, "poll_seconds", 3600.0)
    await store.commit(entry(1))
    with place.beside() as other:
        for number in range(1, 12):
            waiting = asyncio.ensure_future(store.changed(number))
            assert await asyncio.to_thread(other.ask, "commit", number=number, once=None) is True
            await asyncio.wait_for(waiting, 30)
        other.send("changed", after=12)
        await store.commit(entry(13))
        assert await asyncio.to_thread(other.receive) is None


@pytest.mark.parametrize("stores", [8, pytest.param(150, marks=pytest.mark.long)])
def test_processes_that_make_a_store_at_once_agree(place, tmp_path, request, stores):
    """The first start of two terminals at the same moment: one makes the tables, the other finds them."""

    def new(number: int) -> str:
        return f"sqlite:///{tmp_path}/{number}.db" if place.is_file else request.getfixturevalue("postgres").new_store()

    with place.beside() as left, place.beside() as right:
        for number in range(stores):
            assert sorted(both_at_once(left, right, "make", path=new(number))) == [False, True]


@requirement("TEAM-4")
async def test_what_a_dead_process_held_can_be_taken(store, place, request):
    """The system, or the server, lets go for whoever dies, and the next one goes on."""
    if not place.is_file:
        request.getfixturevalue("postgres").settle()
    with place.beside() as other:
        assert other.ask("hold", name="run:1") is True
        assert store.hold("run:1") is None
        assert store.is_held("run:1")
        other.kill()
        release = await until(lambda: store.hold("run:1"))
    assert (await store.head()).seq == 0
    release()
