"""A program that pays until it is killed: half of its journal has reached the file, the rest is in the log.

python tests/crash/payer.py FOLDER
"""

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path

import apsw

import lastword
from lastword.call.events import Finished
from lastword.journal import Journal
from lastword.store import SqliteStore

PAYMENTS = 12
SCRIPT = "FOR i IN RANGE(0, 1000) DO\n  CALL pay { amount: i }\nEND"


def tools(folder: Path) -> lastword.ToolRegistry:
    """One tool, whose effect is a line outside the journal. It kills its process in the middle of a payment, once."""
    registry = lastword.ToolRegistry()

    @registry.tool
    async def pay(amount: float, context=None) -> float:
        """Pays."""
        descriptor = os.open(folder / "paid", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, f"{context.call_id}\n".encode())
        os.close(descriptor)
        paid = (folder / "paid").read_text().count("\n")
        if paid == PAYMENTS:
            os.kill(os.getpid(), signal.SIGKILL)
        if paid > PAYMENTS:
            raise lastword.ToolError("it went on paying")
        return amount

    return registry


async def allow(request: lastword.ApprovalRequest) -> lastword.UserAction:
    return request.allow()


async def live(folder: Path) -> None:
    store = SqliteStore(folder / "journal.db")
    session = lastword.Session(tools(folder), id="s", approver=allow, journal=Journal(store))

    def empty_the_log(event: object) -> None:
        if isinstance(event, Finished) and event.outcome.call_id == f"bills.{PAYMENTS // 2}":
            raw = apsw.Connection(str(store.path))
            raw.pragma("wal_checkpoint", "truncate")
            raw.close()
            shutil.copy(store.path, folder / "copy.db")

    session.listen(empty_the_log)
    await session.run_script(SCRIPT, run_id="bills")


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1])))
