"""A program that was cut off from the journal's server, and somebody who goes on in its place."""

import asyncio
from pathlib import Path

import lastword
from cutting import CuttingProxy, cutting_proxy
from lastword.errors import Overtaken, SessionError, StoreError
from lastword.journal.journal import Journal
from lastword.store.postgres import PostgresStore
from lastword.testing import FixedApprover
from requirements import requirement


class Worker:
    """A program with one tool that pays, and takes as long as the test wants."""

    def __init__(self, address: str, folder: Path) -> None:
        self.paid: list[str] = []
        self.began = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.journal = Journal(PostgresStore(address, heads=folder))
        registry = lastword.ToolRegistry()

        @registry.tool
        async def pay(context=None) -> str:
            """Pays."""
            self.began.set()
            await self.goes_on.wait()
            self.paid.append(context.call_id)
            return "paid"

        self.session = lastword.Session(registry, id="s", approver=FixedApprover(), journal=self.journal)

    async def end(self) -> None:
        try:
            await self.session.close()
            await self.journal.close()
        except Overtaken:
            await self.journal.close()


def cut_off(proxy: CuttingProxy) -> None:
    proxy.refuses = True
    proxy.cut_all()


async def decided(other: Worker, call_id: str) -> lastword.Outcome:
    """Decide as soon as the server has let go of what the other program held."""
    for _ in range(6000):
        try:
            return await other.session.resolve(call_id, "done", by="ann")
        except SessionError as problem:
            if "still running" not in problem.fact:
                raise
            await asyncio.sleep(0.01)
    raise AssertionError("it never came free")


async def refused_as_overtaken(worker: Worker) -> None:
    """Once it reaches the server again it hears what has become of it."""
    for _ in range(100):
        try:
            await worker.session.call("pay", call_id="another bill")
        except Overtaken:
            return
        except StoreError:
            await asyncio.sleep(0.05)
    raise AssertionError("it was never told")


@requirement("TEAM-4")
async def test_whoever_decides_about_a_call_ends_the_program_that_was_thought_dead(postgres, tmp_path):
    """A free lock is no proof of death. The call was taken as done by a person, and its own program says no other."""
    postgres.settle()
    address = postgres.new_store()
    with cutting_proxy(postgres.port) as proxy:
        cut = Worker(address.replace(f":{postgres.port}/", f":{proxy.port}/"), tmp_path / "cut")
        other = Worker(address, tmp_path / "other")
        calling = asyncio.ensure_future(cut.session.call("pay", call_id="bill"))
        await cut.began.wait()
        cut_off(proxy)
        assert (await decided(other, "bill")).kind == "succeeded"
        proxy.refuses = False
        cut.goes_on.set()
        assert (await calling).kind == "outcome_unknown"
        await refused_as_overtaken(cut)
        assert cut.paid == ["bill"], "nothing new is begun"
        records = [(r.kind, r.subject) for r in await other.journal.store.read() if r.kind in ("finished", "settled")]
        assert records == [("settled", "bill"), ("finished", "bill")]
        assert await other.journal.in_doubt() == []
        await other.journal.store.verify()
        await other.end()
        await cut.end()


@requirement("TEAM-4", "NUWA-62")
async def test_a_run_that_another_went_on_with_is_not_gone_on_with_here(postgres, tmp_path):
    """The script's owner was cut off between two calls. The rest of the script belongs to whoever resumed it."""
    postgres.settle()
    address = postgres.new_store()
    with cutting_proxy(postgres.port) as proxy:
        cut = Worker(address.replace(f":{postgres.port}/", f":{proxy.port}/"), tmp_path / "cut")
        other = Worker(address, tmp_path / "other")
        running = asyncio.ensure_future(cut.session.run_script("CALL pay {}\nCALL pay {}", run_id="bills"))
        await cut.began.wait()
        cut_off(proxy)
        await decided(other, "bills.0")
        other.goes_on.set()
        assert (await other.session.resume("bills")).status == "done"
        proxy.refuses = False
        cut.goes_on.set()
        run = await running
        assert (run.status, run.in_doubt) == ("waiting", "bills.0"), "it says what it knows, and goes no further"
        assert (cut.paid, other.paid) == (["bills.0"], ["bills.1"])
        await other.journal.store.verify()
        await other.end()
        await cut.end()
