"""How far a call walks: the modules that it enters and the hops between them, for three calls that everybody makes.

`python tests/walk.py` prints the table, with -v every hop. A module counts when a function of it runs. A hop is a
function that begins in another module of ours than the one before it, in the order in which they run: what a reader
turns to who follows along. The journal is a file, and the tools are async, so that all of it happens in one thread.
What Python calls when it frees an object is no part of the way: nobody wrote that call.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import lastword
from lastword.testing import FixedApprover

PACKAGE = str(Path(lastword.__file__).parent)
SCRIPT = """
LET first = CALL look { name: "a" }
CALL look { name: first }
"""


class Walk(NamedTuple):
    """What one call passed through."""

    hops: list[tuple[str, str]]
    modules: set[str]


async def traced(call: Callable[[], Awaitable[Any]]) -> Walk:
    """The walk of a call, in all tasks of this thread until it is over."""
    entered: list[str] = []

    def step(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE) and frame.f_code.co_name != "__del__":
            entered.append(name.removeprefix(PACKAGE + "/").removesuffix(".py"))

    sys.setprofile(step)
    try:
        await call()
    finally:
        sys.setprofile(None)
    return Walk([step for step in pairwise(entered) if step[0] != step[1]], set(entered))


def _registry() -> lastword.ToolRegistry:
    registry = lastword.ToolRegistry()

    @registry.tool(require_approval=False)
    async def look(name: str) -> str:
        """Looks."""
        return name

    @registry.tool
    async def change(name: str) -> str:
        """Changes."""
        return name

    return registry


async def walks() -> dict[str, Walk]:
    """The three calls, each made once before it is traced: what is loaded at the first use is not walked again."""
    approver = FixedApprover([lastword.UserAction(True, False)] * 4)
    with tempfile.TemporaryDirectory() as folder:
        journal = lastword.open_journal(f"sqlite:///{folder}/memory.db")
        async with lastword.Session(_registry(), approver=approver, journal=journal) as session:
            found = await _walks_of(session)
        await journal.close()
        return found


async def _walks_of(session: lastword.Session) -> dict[str, Walk]:
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "allowed": lambda: session.call("look", {"name": "a"}),
        "with a card": lambda: session.call("change", {"name": "a"}),
        "script of two": lambda: session.run_script(SCRIPT),
    }
    found = {}
    for name, call in calls.items():
        await call()
        # The shortest of a few: on a busy machine a call takes long enough to be listened for.
        found[name] = min([await traced(call) for _ in range(3)], key=lambda walk: len(walk.hops))
    return found


if __name__ == "__main__":
    for name, walk in asyncio.run(walks()).items():
        sys.stdout.write(f"{name}: {len(walk.hops)} hops, {len(walk.modules)} modules\n")
        if "-v" in sys.argv:
            for before, here in walk.hops:
                sys.stdout.write(f"    {before} -> {here}\n")
