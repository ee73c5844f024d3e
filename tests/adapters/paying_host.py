"""A program that goes on with a kept run of a framework, and is killed: while its card waits, or in the tool itself.

python tests/adapters/paying_host.py FRAMEWORK FOLDER waits|dies
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import lastword
from lastword.call.events import Asked


def tools(folder: Path, *, dies: bool = False) -> lastword.ToolRegistry:
    """One tool, whose effect is a line in a file that no journal knows."""
    registry = lastword.ToolRegistry()

    @registry.tool
    async def pay(to: str, amount: float) -> dict[str, float]:
        """Send money to somebody."""
        with (folder / "paid").open("a") as paid:
            paid.write(f"{amount} to {to}\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"paid": amount}

    return registry


def open_session(folder: Path, approver: lastword.Approver, *, dies: bool = False) -> lastword.Session:
    journal = lastword.open_journal(f"sqlite:///{folder / 'journal.db'}")
    # Looks at once for answers that other processes gave.
    limits = lastword.Limits(watch_after_seconds=0)
    return lastword.Session(tools(folder, dies=dies), id="desk", approver=approver, journal=journal, limits=limits)


async def allow(request: lastword.ApprovalRequest) -> lastword.UserAction:
    return request.allow()


async def live(name: str, folder: Path, fate: str) -> None:
    from frameworks import FRAMEWORKS

    approver = allow if fate == "dies" else lastword.wait_for_answer
    async with open_session(folder, approver, dies=fate == "dies") as session:

        def hear(event: object) -> None:
            if isinstance(event, Asked):
                sys.stdout.write(f"{event.request.call_id}\n")
                sys.stdout.flush()

        session.listen(hear)
        await FRAMEWORKS[name].go_on(session, folder / "kept")


if __name__ == "__main__":
    asyncio.run(live(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
