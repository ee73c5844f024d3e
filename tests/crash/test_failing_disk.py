"""A session at work on a disk that is full, broken, read-only or locked, under a clock that goes back.

Each ends in a clear error or in recovery; nothing is lost, nothing is done twice, what is unknown is called unknown.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from lastword import Session, ToolRegistry
from lastword.consent import DENIED
from lastword.errors import StoreError
from lastword.journal import Journal, timeline
from lastword.store import SqliteStore
from lastword.testing import FixedApprover
from requirements import requirement
from sending import CALL
from store.disk import Disk, failing_disk

# What breaks: which operations of the disk, with which error, and what the person reads.
TROUBLES = {
    "full": ("write", apsw.FullError, "the disk is full"),
    "broken": ("sync", apsw.IOError, "the disk reported an error"),
    "read-only": ("write", apsw.ReadOnlyError, "cannot be written"),
}


class Fragile(SqliteStore):
    """A store whose disk fails from the moment on at which a record of one kind is written, until it is replaced."""

    def __init__(self, path: Path, disk: Disk) -> None:
        super().__init__(path)
        self.disk = disk
        self.breaks_at = ""
        self.fault: Callable[[str, str], None] | None = None

    async def commit(self, *entries: Any) -> bool:
        if any(entry.kind == self.breaks_at for entry in entries):
            self.disk.fault = self.fault
        return await super().commit(*entries)

    def break_at(self, kind: str, operation: str, problem: type[apsw.Error]) -> None:
        def fault(done: str, name: str) -> None:
            if done == operation:
                raise problem("as the test asked for")

        self.breaks_at, self.fault = kind, fault

    def mend(self) -> None:
        self.breaks_at = ""
        self.disk.replace()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Fragile]:
    with failing_disk() as disk:
        opened = Fragile(tmp_path / "journal.db", disk)
        await opened.head()
        yield opened
        opened.mend()
        await opened.close()


def a_session(registry: ToolRegistry, store: SqliteStore, approver: Any = None) -> Session:
    return Session(registry, id="s", approver=approver or FixedApprover(), journal=Journal(store))


@requirement("TOOL-45", "TOOL-48")
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("kind", ["asked", "burned"])
async def test_what_cannot_be_written_before_a_call_keeps_it_from_running(
    registry: ToolRegistry, send, effects, store: Fragile, kind: str, trouble: str
):
    """The question, the answer or the start: without its record nothing may happen. Later it may, once."""
    operation, problem, words = TROUBLES[trouble]
    store.break_at(kind, operation, problem)
    approver = FixedApprover()
    session = a_session(registry, store, approver)
    with pytest.raises(StoreError, match=words):
        await session.call("send", CALL, call_id="c")
    assert effects == []
    assert len(approver.requests) == (0 if kind == "asked" else 1)
    store.mend()
    assert await session.in_doubt() == []
    assert (await session.call("send", CALL, call_id="c")).kind == "succeeded"
    assert (await session.call("send", CALL, call_id="c")).kind == "succeeded"
    assert effects == [CALL]
    await store.verify()


@requirement("TOOL-45", "TOOL-48")
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_a_call_whose_end_cannot_be_written_is_in_doubt(
    registry: ToolRegistry, send, effects, store: Fragile, trouble: str, caplog
):
    """It ran. Its caller hears that its end is unknown, as everybody will who looks into the journal."""
    operation, problem, words = TROUBLES[trouble]
    store.break_at("finished", operation, problem)
    session = a_session(registry, store)
    heard: list[Any] = []
    session.listen(heard.append)
    outcome = await session.call("send", CALL, call_id="c")
    assert outcome.kind == "outcome_unknown"
    assert "ran, but how it ended could not be written down" in outcome.message
    assert words in outcome.message
    assert "lastword resolve c" in outcome.message
    assert heard[-1].outcome == outcome
    store.mend()
    assert [life.call_id for life in await session.in_doubt()] == ["c"]
    assert (await session.call("send", CALL, call_id="c")).kind == "outcome_unknown"
    looking = Journal(SqliteStore(store.path))
    assert [life.call_id for life in await looking.in_doubt()] == ["c"], "although the process that ran it lives"
    await looking.close()
    assert effects == [CALL]
    assert (await session.resolve("c", "done")).kind == "succeeded"
    assert (await session.call("send", CALL, call_id="c")).kind == "succeeded"
    assert effects == [CALL]
    await store.verify()


@requirement("NUWA-62", "TOOL-48")
async def test_a_run_stops_at_a_call_whose_end_cannot_be_written_and_goes_on_when_somebody_looked(
    registry: ToolRegistry, effects, store: Fragile, caplog
):
    """It must not go on as if the call had failed, and a second process must find what the first one left."""

    @registry.tool
    async def pay(amount: float) -> float:
        """Pays."""
        effects.append(amount)
        return amount

    session = a_session(registry, store)
    store.break_at("finished", *TROUBLES["full"][:2])
    run = await session.run_script("CALL pay { amount: 1 }\nCALL pay { amount: 2 }", run_id="night.run")
    assert (run.status, effects) == ("waiting", [1])
    store.mend()
    assert (await session.resume("night.run")).status == "waiting"
    await session.resolve("night.run.0", "done")
    assert (await session.resume("night.run")).status == "done"
    assert effects == [1, 2]


@requirement("TOOL-45")
@pytest.mark.parametrize("kind", ["burned", "finished"])
async def test_a_commit_that_happened_though_it_failed_counts(
    registry: ToolRegistry, send, effects, store: Fragile, kind: str
):
    """The error came after the deed. The approval is spent and the call runs; or it is over."""
    store.break_at(kind, f"control {apsw.SQLITE_FCNTL_COMMIT_PHASETWO}", apsw.IOError)
    session = a_session(registry, store)
    outcome = await session.call("send", CALL, call_id="c")
    store.mend()
    assert outcome.kind in ("succeeded", "outcome_unknown")
    assert effects == [CALL]
    assert (await session.call("send", CALL, call_id="c")).kind == outcome.kind
    assert effects == [CALL]
    await store.verify()


@requirement("TOOL-45", "TOOL-48")
async def test_a_start_of_which_nobody_knows_whether_it_was_written_runs_nothing(
    registry: ToolRegistry, send, effects, store: Fragile
):
    """The disk fails in the commit and again when it is asked. The tool was not called, and that is in doubt too."""
    failing = False

    def fault(operation: str, name: str) -> None:
        nonlocal failing
        failing |= operation == f"control {apsw.SQLITE_FCNTL_COMMIT_PHASETWO}"
        if failing:
            raise apsw.IOError("as the test asked for")

    store.breaks_at, store.fault = "burned", fault
    session = a_session(registry, store)
    with pytest.raises(StoreError, match="it is not known whether it was"):
        await session.call("send", CALL, call_id="c")
    assert effects == []
    store.mend()
    assert [life.call_id for life in await session.in_doubt()] == ["c"]
    assert (await session.resolve("c", "again")).kind == "succeeded"
    assert effects == [CALL]


@requirement("TOOL-45")
async def test_a_journal_locked_by_another_process_is_named_and_nothing_runs(
    registry: ToolRegistry, send, effects, tmp_path: Path, monkeypatch
):
    """Somebody has the file open in a transaction by hand."""
    monkeypatch.setattr("lastword.store.sqlite_file.BUSY_SECONDS", 0.05)
    store = SqliteStore(tmp_path / "journal.db")
    session = a_session(registry, store)
    await store.head()
    holder = apsw.Connection(str(store.path))
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process has been writing to it"):
        await session.call("send", CALL, call_id="c")
    assert effects == []
    holder.execute("ROLLBACK")
    holder.close()
    assert (await session.call("send", CALL, call_id="c")).kind == "succeeded"
    assert effects == [CALL]
    await store.close()


async def test_a_free_call_on_a_full_disk_is_told_and_its_loss_is_reported(
    registry: ToolRegistry, effects, store: Fragile
):
    """It needs nobody's yes and no record; that the records could not be kept is said by whoever closes the journal."""
    registry.register("look", {"description": "Looks.", "parameters": []}, lambda args, context: effects.append(1))
    store.break_at("", "write", apsw.FullError)
    store.disk.fault = store.fault
    session = a_session(registry, store)
    assert (await session.call("look")).kind == "succeeded"
    with pytest.raises(StoreError, match="the disk is full; 2 entries accepted before"):
        await session.journal.close()
    store.mend()
    await session.journal.close()
    assert [record.kind for record in await store.read()] == ["started", "finished"]


@requirement("TOOL-45")
async def test_a_clock_that_goes_back_loses_nothing_and_is_asked_about_again(
    registry: ToolRegistry, send, effects, tmp_path: Path
):
    """Order is the journal's, not the clock's. An answer that seems to come from the future is put again."""
    times = iter([2000.0, 2000.0, 1000.0])
    now = 1000.0

    def clock() -> float:
        nonlocal now
        now = next(times, now)
        return now

    store = SqliteStore(tmp_path / "journal.db")
    approver = FixedApprover()
    session = Session(registry, id="s", approver=approver, journal=Journal(store, clock=clock))
    assert (await session.call("send", CALL)).kind == "succeeded"
    assert [request.problem for request in approver.requests] == [
        None,
        "the answer is from the future: a clock was set back",
    ]
    assert effects == [CALL]
    records = await store.read()
    assert [r.kind for r in records] == ["asked", "answered", "asked", "answered", "burned", "started", "finished"]
    assert records[0].at > records[-1].at
    assert "-" not in " ".join(line.partition("  ")[2].partition("[")[0] for line in timeline(records))
    assert "clock set back 17 min" in "\n".join(timeline(records))
    await store.verify()
    await store.close()


@requirement("TOOL-48")
async def test_a_session_that_hears_no_more_because_of_the_disk_hears_again_later(
    registry: ToolRegistry, send, effects, store: Fragile, monkeypatch, caplog
):
    """A card waits, the disk fails for a while, and then somebody answers from another process."""
    monkeypatch.setattr("lastword.call.stop_all.DEAF_SECONDS", 0.01)
    deaf = asyncio.Event()

    class Deaf(SqliteStore):
        async def changed(self, after: int) -> None:
            if not deaf.is_set():
                deaf.set()
                raise StoreError("the disk reported an error")
            await super().changed(after)

    listening = Deaf(store.path)

    async def wait(request: Any) -> Any:
        await deaf.wait()
        [facts] = await phone.waiting()
        assert await phone.answer(facts, DENIED, "phone")
        await asyncio.Event().wait()

    phone = Journal(store)
    session = a_session(registry, listening, wait)
    assert (await asyncio.wait_for(session.call("send", CALL), 30)).kind == "denied"
    await listening.close()
    assert effects == []
