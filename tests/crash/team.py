"""One process of a team: a satellite whose cards wait, or somebody who answers whatever waits.

    python tests/crash/team.py satellite ADDRESS FOLDER NAME COUNT
    python tests/crash/team.py answerer ADDRESS FOLDER NAME COUNT

A satellite asks for COUNT payments at once, and prints how each ended. A payment is a line in a file outside of the
journal. Somebody who answers says yes or no to everything, as fast as the others do.
"""

import asyncio
import json
import os
import random
import sys
from pathlib import Path

import lastword
from lastword.consent import ALLOWED, DENIED
from lastword.errors import StoreError
from lastword.store.postgres import PostgresStore

# How long to leave a server alone that is away.
PAUSE_SECONDS = 0.2


def say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


async def satellite(journal: lastword.Journal, folder: Path, name: str, count: int) -> None:
    registry = lastword.ToolRegistry()

    @registry.tool
    async def pay(context=None) -> str:
        """Pays: a line outside the journal."""
        descriptor = os.open(folder / "paid", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, f"{context.call_id}\n".encode())
        os.close(descriptor)
        return "paid"

    session = lastword.Session(registry, id=name, approver=lastword.wait_for_answer, journal=journal)

    async def one(call_id: str) -> None:
        while True:
            try:
                outcome = await session.call("pay", call_id=call_id)
            except (StoreError, lastword.errors.SessionError):
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            say(call=call_id, kind=outcome.kind)
            return

    await asyncio.gather(*(one(f"{name}-{number}") for number in range(count)))


async def answerer(journal: lastword.Journal, folder: Path, name: str, count: int) -> None:
    chance = random.Random(name)
    seen: set[str] = set()
    while True:
        try:
            head = await journal.store.head()
            waiting = [facts for facts in await journal.waiting() if facts["nonce"] not in seen]
            chance.shuffle(waiting)
            for facts in waiting:
                yes = chance.random() < 0.7
                won = await journal.answer(facts, ALLOWED if yes else DENIED, name)
                seen.add(facts["nonce"])
                say(call=facts["call_id"], nonce=facts["nonce"], yes=yes, won=won)
            if not waiting:
                await journal.store.changed(head.seq)
        except StoreError:
            await asyncio.sleep(PAUSE_SECONDS)


async def main() -> None:
    role, address, folder, name, count = sys.argv[1:]
    journal = lastword.Journal(PostgresStore(address, heads=Path(folder) / "heads"))
    await {"satellite": satellite, "answerer": answerer}[role](journal, Path(folder), name, int(count))
    await journal.close()


if __name__ == "__main__":
    asyncio.run(main())
