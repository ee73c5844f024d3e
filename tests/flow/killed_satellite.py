"""Satellites that are killed with SIGKILL and come back: run as a program, `killed_satellite.py FOLDER ROUNDS`.

Each round is a conversation about one payment. A child process is killed at one moment of it: before or after one of
its commits, so that every gap between two durable steps is hit. Then a second child comes back to the session. What
the rounds left behind is printed, one JSON object a line.

The processes are forked from this one, which has everything imported and nothing open: starting Python for each would
take a minute.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from lastword import Session, ToolRegistry
from lastword.consent import ALLOWED
from lastword.journal import Journal, data_of
from lastword.server import build_app
from lastword.store import Entry, SqliteStore
from lastword.talk import Api, InProcessWire, Satellite
from lastword.talk.rehearsal import Rehearsal
from lastword.testing import FixedApprover

SAID = "/pay to=Ann"


class Mortal(SqliteStore):
    """A store whose process dies at a commit: at `when`, counted in halves, before an odd one and after an even one."""

    def __init__(self, path: Path, when: int | None) -> None:
        super().__init__(path)
        self._left = when

    async def commit(self, *entries: Entry) -> bool:
        self._tick()
        done = await super().commit(*entries)
        self._tick()
        return done

    def _tick(self) -> None:
        if self._left is not None:
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1


async def live(folder: Path, session_id: str, when: int | None) -> dict[str, Any]:
    """One process of a round: speak, or go on where the one before was killed."""
    registry = ToolRegistry()

    @registry.tool(effect="irreversible")
    def pay(to: str) -> str:
        """Pays somebody."""
        with (folder / f"{session_id}.paid").open("a") as file:
            file.write(f"{to}\n")
        return f"Paid {to}."

    store = Mortal(folder / "store.db", when)
    app = build_app(store, Rehearsal(), log=lambda line: None)
    async with InProcessWire.alive(app):
        journal = Journal(store)
        async with Session(registry, id=session_id, approver=FixedApprover(ALLOWED), journal=journal) as session:
            api = Api(InProcessWire(app))
            satellite = Satellite(session, api)
            ended = await satellite.resume()
            conversation = await api.conversation(session_id)
            if ended is None and conversation is None:
                ended = await satellite.say(SAID)
            conversation = await api.conversation(satellite.conversation_id)
            assert conversation is not None
            records = await journal.history(session_id)
            found = {
                "session": session_id,
                "said": [(m["role"], m["content"]) for m in conversation["messages"]],
                "pending": len(conversation["pending"]),
                "kinds": [record.kind for record in records],
                "outcomes": [data_of(record)["kind"] for record in records if record.kind == "finished"],
                "in_doubt": len(await session.in_doubt()),
            }
    await store.close()
    return found


def in_child(work: Any) -> int:
    """Do the work in a process of its own; how that ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException as problem:
            sys.stderr.write(f"{type(problem).__name__}: {problem}\n")
            os._exit(1)
    return os.waitpid(child, 0)[1]


def play(folder: Path, session_id: str, when: int) -> None:
    """One round: a child that is killed, and one that comes back and prints what it found."""
    paid = folder / f"{session_id}.paid"
    ended = in_child(lambda: asyncio.run(live(folder, session_id, when)))
    facts = {"when": when, "killed": os.WIFSIGNALED(ended), "paid_when_killed": count(paid)}

    def come_back() -> None:
        found = asyncio.run(live(folder, session_id, None))
        sys.stdout.write(json.dumps(facts | found | {"paid": count(paid)}) + "\n")
        sys.stdout.flush()

    if in_child(come_back) != 0:
        sys.exit(f"{session_id} did not come back")


def count(paid: Path) -> int:
    """How often it was paid."""
    return len(paid.read_text().splitlines()) if paid.exists() else 0


def main() -> None:
    for number, when in enumerate(sys.argv[2].split(",")):
        play(Path(sys.argv[1]), f"round{number}", int(when))


if __name__ == "__main__":
    main()
