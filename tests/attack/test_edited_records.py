"""Somebody edits the journal's file, and lastword reads it: what is not as it was written is refused, and nothing runs.

Each record is edited in two ways: as an ignorant would, with SQL; and as somebody does who knows the format, with the
digests of that record computed anew. Records are also taken out of the middle, and hidden there under another name.
What nobody can tell who has only the file is in docs/journal.md: a whole chain that was written anew.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from lastword import Limits, Preset, Session, ToolRegistry, wait_for_answer
from lastword.consent import ALLOWED, DENIED
from lastword.errors import StoreError, Tampered
from lastword.journal import Journal
from lastword.store import Entry, SqliteStore
from lastword.store.chain import link
from lastword.testing import FixedApprover
from lastword.web import PageGate, PageRecord
from requirements import requirement
from sending import ended, until

SCRIPT = 'LET p = CALL price { of: "rent" }\nCALL pay { amount: p }\nPRINT(p)'
FORGERIES = ["edited", "with its digests"]


class World:
    """A journal in a file, tools that leave a trace, and an attacker who can write the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.paid: list[float] = []
        self.registry = ToolRegistry()
        self.registry.tool(self.pay)
        self.registry.tool(require_approval=False)(self.price)
        self.journal = Journal(SqliteStore(path))

    async def pay(self, amount: float) -> float:
        """Pays."""
        self.paid.append(amount)
        return amount

    async def price(self, of: str) -> float:
        """Looks up a price."""
        return 7

    def session(self, approver: Any = None, **more: Any) -> Session:
        return Session(
            self.registry,
            id="s",
            approver=approver or FixedApprover(),
            journal=self.journal,
            limits=Limits(watch_after_seconds=0),
            **more,
        )

    async def restart(self) -> None:
        """Everything that a process knew is gone."""
        await self.journal.close()
        self.journal = Journal(SqliteStore(self.path))

    async def killed_while_it_waits(self, run_id: str | None) -> None:
        """A run, or a call alone, whose card waits, and whose process died."""
        session = self.session(wait_for_answer)
        going = asyncio.create_task(self.going_on(session, run_id))
        await until(session.pending)
        if run_id is None:
            session.detach("c")
        else:
            going.cancel()
        await asyncio.gather(going, return_exceptions=True)
        await session.close()

    async def going_on(self, session: Session, run_id: str | None) -> Any:
        """What a process begins, and the next one goes on with."""
        if run_id is None:
            return await session.call("pay", {"amount": 7}, call_id="c")
        begun = await self.journal.store.read(subject=run_id, kind="run_started")
        return await (session.resume(run_id) if begun else session.run_script(SCRIPT, run_id=run_id))

    async def forge(self, kind: str, old: bytes, new: bytes, how: str) -> None:
        """Change what the first record of a kind says."""
        [record] = await self.journal.store.read(kind=kind, limit=1)
        assert record.data is not None
        assert old in record.data
        said = Entry(record.stream, kind, record.subject, record.at, record.data.replace(old, new), record.once)
        before = next(iter(await self.journal.store.links([record.seq - 1])), None)
        forged = link("0" * 64 if before is None else before.digest, record.seq, said)
        await self.restart()
        if how == "edited":
            self.write("UPDATE records SET data = ? WHERE seq = ?", forged.data, record.seq)
        else:
            columns = (forged.data, forged.data_digest, forged.digest)
            self.write("UPDATE records SET data = ?, data_digest = ?, digest = ? WHERE seq = ?", *columns, record.seq)

    def write(self, sql: str, *values: int | float | str | bytes | None) -> None:
        file = apsw.Connection(str(self.path))
        file.execute(sql, values)
        assert file.changes() >= 1
        file.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path / "journal.db")
    yield made
    await made.journal.close()


def refused(kind: str, how: str = "edited") -> Any:
    """It is said which record it was; or, if its digests were computed anew, that the next one does not follow."""
    named = kind if how == "edited" else ".*"
    return pytest.raises(Tampered, match=rf"record \d+ \({named}\) was changed")


NO = b'"primary_confirmed":false,"secondary_confirmed":true'
YES = b'"primary_confirmed":true,"secondary_confirmed":false'
# The record, what stood there, what stands there now, how far it came, and the run, or none for a call alone.
EDITED = {
    "a price that the script would go on with": ("finished", b'"value":7', b'"value":9', "over", "rent"),
    "a price that would be asked about and paid": ("finished", b'"value":7', b'"value":9', "waits", "rent"),
    "a script under the name of another": ("run_started", b"PRINT(p)", b"CALL pay { amount: 1000 }", "waits", "rent"),
    "a no that was given": ("answered", NO, YES, "denied", "rent"),
    "a no that was given to a call": ("answered", NO, YES, "denied", None),
    "a card that somebody would say yes to": ("asked", b'"amount":7', b'"amount":9', "waits", "rent"),
    "a card of a call": ("asked", b'"amount":7', b'"amount":9', "waits", None),
}


@requirement("TOOL-45", "NUWA-62")
@pytest.mark.parametrize("how", FORGERIES)
@pytest.mark.parametrize("what", EDITED)
async def test_nothing_goes_on_from_what_was_edited(world: World, what: str, how: str):
    """What would be asked next, and paid, hangs on it. Neither shown, nor asked about, nor run."""
    kind, old, new, state, run_id = EDITED[what]
    if state == "over":
        await world.session().run_script(SCRIPT, run_id=run_id)
    else:
        await world.killed_while_it_waits(run_id)
    if state == "denied":
        [facts] = await world.journal.waiting()
        assert await world.journal.answer(facts, DENIED, "phone")
    await world.session().call("price", {"of": "bread"})
    paid = list(world.paid)
    await world.forge(kind, old, new, how)
    if kind == "asked":
        with refused(kind, how):
            await world.journal.waiting()
    approver = FixedApprover()
    with refused(kind, how):
        await world.going_on(world.session(approver), run_id)
    assert (world.paid, approver.requests) == (paid, [])


@requirement("TOOL-45")
@pytest.mark.parametrize("how", FORGERIES)
async def test_an_end_that_was_edited_is_not_told(world: World, how: str):
    """Whoever asks again under the same id would hear that it failed, and pay by other means."""
    session = world.session()
    assert (await session.call("pay", {"amount": 5}, call_id="c")).kind == "succeeded"
    await session.call("price", {"of": "rent"})
    await world.forge("finished", b'"succeeded"', b'"raised"   ', how)
    with refused("finished", how):
        await world.session().call("pay", {"amount": 5}, call_id="c")
    assert world.paid == [5]


@requirement("TOOL-22", "TOOL-45")
@pytest.mark.parametrize("kind", ["state_set", "state_described"])
@pytest.mark.parametrize("how", FORGERIES)
async def test_a_state_that_was_edited_is_not_brought_back(world: World, kind: str, how: str):
    """Tools act upon what they find there: an account, a limit."""
    async with world.session() as session:
        session.set_state("account", "Ann's", {"description": "whom to pay"})
        session.set_state("visits", 1)
    await world.forge(kind, b"Ann" if kind == "state_set" else b"pay", b"Bob", how)
    with refused(kind, how):
        await world.session().open()
    with refused(kind, how):
        await world.session().call("pay", {"amount": 5})
    assert world.paid == []


@requirement("API-52", "TOOL-45")
@pytest.mark.parametrize("change", ["subject = 'the digest of my cookie'", "at = at + 1000000000000"])
async def test_a_window_that_was_edited_does_not_open_the_page(world: World, change: str):
    """Whoever can write the file must not come in with a cookie of their own, or with an old one."""
    gate = PageGate(world.journal.store)
    await gate.enter(gate.make_key())
    await world.restart()
    await PageGate(world.journal.store).open()
    await world.restart()
    world.write(f"UPDATE records SET {change} WHERE kind = '{PageRecord.WINDOW}'")
    with refused(PageRecord.WINDOW):
        await PageGate(world.journal.store).open()


@requirement("API-52", "TOOL-45")
async def test_a_window_that_was_put_in_does_not_open_the_page(world: World):
    """With everything that belongs to it, but for a digest that follows."""
    await world.session().call("price", {"of": "rent"})
    head = await world.journal.store.head()
    await world.restart()
    stream, kind = PageRecord.STREAM, PageRecord.WINDOW
    forged = link("f" * 64, head.seq + 1, Entry(stream, kind, "the digest of my cookie", 1, b"{}"))
    row = (forged.seq, forged.stream, forged.kind, forged.subject, 1, b"{}", None, forged.data_digest, forged.digest)
    world.write("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *row)
    world.write("INSERT INTO standing VALUES (?, ?, ?, ?, ?)", kind, stream, forged.subject, forged.seq, forged.seq)
    with refused(PageRecord.WINDOW):
        await PageGate(world.journal.store).open()


@requirement("TOOL-45")
@pytest.mark.parametrize("how", FORGERIES)
async def test_a_card_that_was_edited_does_not_hide_the_others(world: World, how: str):
    """Whoever damages one question must not silence those of all other programs."""
    await world.killed_while_it_waits("rent")
    await world.session().call("price", {"of": "bread"})
    await world.killed_while_it_waits("water")
    await world.session().call("price", {"of": "bread"})
    before, none = await world.journal.questions()
    assert (sorted(facts["call_id"] for facts in before), none) == (["rent.1", "water.1"], {})
    await world.forge("asked", b'"amount":7', b'"amount":9', how)
    found, damaged = await world.journal.questions()
    assert [facts["call_id"] for facts in found] == ["water.1"]
    assert list(damaged) == ["rent.1"]


def apart(session: Session) -> Session:
    """Let something of others come between all that happens, as it does in a journal that many use.

    What is hidden then has no neighbour among what is read: only the whole way to the head shows that it is gone.
    """
    session.listen(lambda event: session.journal.store.append(Entry("others", "note", "", 1, b"{}")))
    return session


async def paid_once(world: World, session: Session, run_id: str | None) -> None:
    """A card that was answered from elsewhere, a moment ago, and what it started."""
    going = asyncio.create_task(world.going_on(apart(session), run_id))
    await until(session.pending)
    [facts] = await world.journal.waiting()
    assert await world.journal.answer(facts, ALLOWED, "phone")
    await going
    assert world.paid == [7]
    await session.call("price", {"of": "bread"})
    await session.close()
    await world.restart()


HIDING = {
    "taken out": "DELETE FROM records WHERE {}",
    "renamed": "UPDATE records SET subject = 'x' WHERE {}",
    "moved to another session": "UPDATE records SET stream = 'x' WHERE {}",
    "called something else": "UPDATE records SET kind = 'reported' WHERE {}",
}


@requirement("TOOL-45", "NUWA-62")
@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("run_id", ["rent", None], ids=["in a run", "alone"])
async def test_an_answer_is_not_spent_again_when_its_spending_was_hidden(world: World, hiding: str, run_id: str | None):
    """Within its minute, with the key that would have stopped it gone from the file: the money would leave twice."""
    await paid_once(world, world.session(wait_for_answer), run_id)
    call_id = f"{run_id}.1" if run_id else "c"
    spent = f"subject = '{call_id}' AND kind IN ('burned', 'started', 'finished')"
    if hiding != "taken out":
        world.write(f"UPDATE records SET once = NULL WHERE {spent} AND once IS NOT NULL")
    world.write(HIDING[hiding].format(spent))
    for _ in range(2):
        with pytest.raises(Tampered, match=r"record \d+ .*(is missing|was changed)"):
            await world.going_on(world.session(), run_id)
    assert world.paid == [7]


@requirement("TOOL-45", "NUWA-62")
@pytest.mark.parametrize("hiding", HIDING)
async def test_a_call_that_was_hidden_whole_is_not_made_again(world: World, hiding: str):
    """The script would ask for it as if for the first time, and a preset would say yes at once."""
    world.registry.unregister("pay")
    world.registry.tool(auto_approve=True)(world.pay)
    auto = Preset(auto_approve=True)
    await paid_once(world, world.session(wait_for_answer), "rent")
    spent = "subject = 'rent.1'"
    if hiding != "taken out":
        world.write(f"UPDATE records SET once = NULL WHERE {spent} AND once IS NOT NULL")
    world.write(HIDING[hiding].format(spent))
    with pytest.raises(Tampered, match=r"record \d+ .*(is missing|was changed)"):
        await world.session(preset=auto).resume("rent")
    assert world.paid == [7]


@requirement("TEAM-10", "TOOL-45")
async def test_a_tail_that_was_cut_off_is_missed_by_the_head(world: World):
    """A chain cannot see its own end cut off. The file beside it can."""
    await paid_once(world, world.session(wait_for_answer), "rent")
    world.write("DELETE FROM records WHERE seq >= (SELECT min(seq) FROM records WHERE kind = 'burned')")
    with pytest.raises(StoreError, match=r"nothing approved starts here: .* missing: it ends at record"):
        await world.session().resume("rent")
    assert world.paid == [7]


@pytest.fixture
async def doubtful(world: World) -> AsyncIterator[World]:
    """What a process left that was killed while it paid, beside the living one."""
    running = asyncio.Event()

    async def stuck(amount: float) -> float:
        """Pays; the first time it hangs."""
        world.paid.append(amount)
        if not running.is_set():
            running.set()
            await asyncio.Event().wait()
        return amount

    world.registry.tool(stuck)
    session = apart(world.session())
    call = asyncio.create_task(session.call("stuck", {"amount": 7}, call_id="c"))
    await running.wait()
    await world.journal.store.commit()
    left = World(world.path.with_name("left.db"))
    await copied(world.path, left.path)
    left.registry, left.paid = world.registry, world.paid
    yield left
    await left.journal.close()
    await ended(call)


@requirement("TOOL-45")
@pytest.mark.parametrize("how", FORGERIES)
async def test_a_call_in_doubt_is_not_decided_by_what_was_edited(doubtful: World, how: str):
    """What they mean who say: again, is what was agreed to."""
    await doubtful.forge("started", b'"amount":7', b'"amount":9', how)
    for decision in ("again", "done", "abandon"):
        with refused("started", how):
            await doubtful.session().resolve("c", decision)
    assert doubtful.paid == [7]


@requirement("TOOL-45")
@pytest.mark.parametrize("hiding", HIDING)
async def test_a_decision_that_was_hidden_is_not_made_again(doubtful: World, hiding: str):
    """Somebody looked and said: again. It was done, and the file was made to forget it."""
    session = apart(doubtful.session())
    await session.journal.store.commit(Entry("others", "note", "", 1, b"{}"))
    assert (await session.resolve("c", "again")).success
    assert doubtful.paid == [7, 7]
    [restarted] = await doubtful.journal.store.read(kind="restarted")
    await doubtful.restart()
    decided = f"subject = 'c' AND seq >= {restarted.seq}"
    if hiding != "taken out":
        doubtful.write(f"UPDATE records SET once = NULL WHERE {decided} AND once IS NOT NULL")
    doubtful.write(HIDING[hiding].format(decided))
    with pytest.raises(Tampered, match=r"record \d+ .*(is missing|was changed)"):
        await doubtful.session().resolve("c", "again")
    assert doubtful.paid == [7, 7]


async def copied(path: Path, to: Path) -> None:
    """What the disk holds of a journal that is in use."""
    for end in ("", "-wal", "-head"):
        Path(f"{to}{end}").write_bytes(Path(f"{path}{end}").read_bytes())
