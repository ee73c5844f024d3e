"""Questions about history cost what they return, not what was ever written: counted in steps of SQLite, not in time."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from lastword import Session, ToolRegistry
from lastword.journal.call_life import data_of
from lastword.journal.journal import Journal
from lastword.store import Entry, Record, SqliteStore, Store
from lastword.testing import FixedApprover
from lastword.web import PageGate, PageRecord, left_unfinished
from requirements import requirement

FEW, MANY = 200, 5_000
MAX_GROWTH = 1.5


class Steps:
    """Counts what the connections of this test do, in tens of SQLite's own steps."""

    def __init__(self) -> None:
        self.taken = 0

    def watch(self, connection: apsw.Connection) -> None:
        def tick() -> bool:
            self.taken += 1
            return False

        connection.set_progress_handler(tick, 10)


@pytest.fixture
def steps() -> Iterator[Steps]:
    counted = Steps()
    apsw.connection_hooks.append(counted.watch)
    yield counted
    apsw.connection_hooks.remove(counted.watch)


def a_session(journal: Journal) -> Session:
    registry = ToolRegistry()

    @registry.tool
    async def pay(amount: float, context: Any = None) -> float:
        """Pays."""
        context.set_state("count", amount)
        return amount

    return Session(registry, id="s", approver=FixedApprover(), journal=journal)


async def fill(store: Store, calls: int) -> None:
    """A session as old as the journal is long, with a card that waits and a call in doubt from its beginning."""
    assert (await a_session(Journal(store)).call("pay", {"amount": 1})).success
    life = await store.read()
    nonce, old_id = data_of(life[0])["nonce"], life[0].subject

    def again(record: Record, call_id: str) -> Entry:
        """The same of another call."""
        once = record.once and record.once.replace(nonce, call_id + nonce).replace(old_id, call_id)
        assert record.data is not None
        data = record.data.replace(nonce.encode(), f"{call_id}{nonce}".encode()).replace(
            old_id.encode(), call_id.encode()
        )
        return Entry(record.stream, record.kind, call_id, record.at, data, once)

    begun = [record for record in life if record.kind in ("asked", "answered", "burned", "started")]
    await store.commit(again(life[0], "waits"))
    await store.commit(*(again(record, "doubt") for record in begun))
    await store.commit(Entry(PageRecord.STREAM, PageRecord.WINDOW, "a cookie", 1, b"{}"))
    for number in range(calls):
        last = store.commit(
            *(again(record, f"call-{number}") for record in life),
            Entry(PageRecord.STREAM, PageRecord.SESSION, f"session-{number}", number, b"{}"),
        )
        await last if number % 200 == 199 else asyncio.ensure_future(last)
    await store.commit()


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("journals")

    async def make(calls: int) -> None:
        store = SqliteStore(folder / f"{calls}.db")
        await fill(store, calls)
        await store.close()

    for calls in (FEW, MANY):
        asyncio.run(make(calls))
    return {calls: folder / f"{calls}.db" for calls in (FEW, MANY)}


async def reopen(journal: Journal) -> Any:
    async with a_session(journal) as session:
        return session.get_all_state()


async def call(journal: Journal) -> Any:
    async with a_session(journal) as session:
        return (await session.call("pay", {"amount": 1})).kind


async def ids(asked: Awaitable[list[Any]]) -> list[str]:
    return [one["call_id"] if isinstance(one, dict) else one.call_id for one in await asked]


async def recent(journal: Journal) -> tuple[int, set[str]]:
    found = await journal.recent("s", 500)
    return len(found), {record.subject for record in found[:5]}


QUESTIONS: dict[str, tuple[Callable[[Journal], Awaitable[Any]], Any]] = {
    "what waits": (lambda journal: ids(journal.waiting()), ["waits"]),
    "what is in doubt": (lambda journal: ids(journal.in_doubt()), ["doubt"]),
    "what is in doubt in a session": (lambda journal: ids(journal.in_doubt("s")), ["doubt"]),
    "the last calls of a session": (recent, (503, {"waits", "doubt"})),
    "the state of a session": (reopen, {"count": 1}),
    "whether the page was left": (lambda journal: left_unfinished(journal.store), None),
    "the windows of the page": (lambda journal: PageGate(journal.store).open(), None),
    "one more call": (call, "succeeded"),
}


@requirement("TEAM-8")
@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_question_costs_what_it_returns(question: str, steps: Steps, journals: dict[int, Path], tmp_path: Path):
    """A page asks some of these twice a second, of a journal that grows for years."""
    ask, expected = QUESTIONS[question]
    spent = {}
    for calls, made in journals.items():
        for end in ("", "-head"):
            shutil.copy(f"{made}{end}", tmp_path / f"{made.name}{end}")
        journal = Journal(SqliteStore(tmp_path / made.name))
        await ask(journal)  # The first time opens connections.
        before = steps.taken
        assert await ask(journal) == expected
        spent[calls] = steps.taken - before
        await journal.close()
    assert spent[FEW] > 0
    assert spent[MANY] <= spent[FEW] * MAX_GROWTH + 3, f"tens of steps, by the number of calls: {spent}"
