"""One of the processes of races.py: reads what to do, one JSON object a line, and prints what came of it.

    python tests/crash/racer.py FOLDER NAME

A command with `at` is carried out at that moment of the machine's clock, which all processes share, so that they meet.
"""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from worlds import store_in

import lastword
from lastword.call.events import Asked
from lastword.consent import ALLOWED, DENIED, Answerer, Call, LiveCall
from lastword.errors import SessionError
from lastword.runs import LANGUAGE_VERSION

# A sleep may end that much too late.
SPINS_SECONDS = 0.0005


class Racer:
    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.paid = 0
        self.registry = lastword.ToolRegistry()
        self.registry.tool(self.pay)
        self.journal = lastword.Journal(store_in(folder))
        self.calls: dict[str, asyncio.Task[lastword.Outcome]] = {}
        self.waiting = self.session(lastword.wait_for_answer)

    def session(self, approver) -> lastword.Session:
        limits = lastword.Limits(watch_after_seconds=0)
        return lastword.Session(self.registry, id="s", approver=approver, journal=self.journal, limits=limits)

    async def pay(self, context=None) -> str:
        """Pays: a line outside the journal."""
        self.paid += 1
        descriptor = os.open(self.folder / "paid", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(descriptor, f"{context.call_id}\n".encode())
        os.close(descriptor)
        return "paid"

    async def do(self, command: dict) -> object:
        await asyncio.sleep(max(0.0, command.get("at", 0) - time.monotonic() - SPINS_SECONDS))
        while time.monotonic() < command.get("at", 0):
            pass
        match command:
            case {"do": "interrupted run", "run": run}:
                facts: dict[str, object] = {"text": "CALL pay {}", "name": None, "variables": {}, "checked": True}
                self.journal.note("s", "run_started", run, facts | {"version": LANGUAGE_VERSION})
                await self.journal.store.commit()
                return None
            case {"do": "call in doubt", "call": call_id}:
                return await self.leave_in_doubt(call_id)
            case {"do": "ask", "call": call_id}:
                shown = asyncio.get_running_loop().create_future()
                stop = self.waiting.listen(
                    lambda event: shown.set_result(event.request) if isinstance(event, Asked) else None
                )
                self.calls[call_id] = asyncio.create_task(self.waiting.call("pay", call_id=call_id))
                request = await shown
                stop()
                return request.facts()
            case {"do": "answer", "facts": facts, "yes": yes}:
                return await self.journal.answer(facts, ALLOWED if yes else DENIED, self.name)
            case {"do": "press", "call": call_id, "yes": yes}:
                self.waiting.answer(call_id, ALLOWED if yes else DENIED, by=self.name)
                return (await self.calls.pop(call_id)).kind
            case {"do": "resume", "run": run}:
                return await self.count(self.session(allow).resume(run))
            case {"do": "resolve", "call": call_id}:
                return await self.count(self.session(None).resolve(call_id, "again", by=self.name))
            case {"do": "answered", "nonce": nonce}:
                records = [r for r in await self.journal.store.read(kind="answered") if r.once == f"answer:{nonce}"]
                return [json.loads(record.data or b"")["approver"]["name"] for record in records]
        raise AssertionError(command)

    async def count(self, work) -> list[object]:
        """How often this process paid while it did this, and what it was told."""
        before = self.paid
        try:
            found = await work
        except SessionError as problem:
            return [self.paid - before, problem.fact]
        return [self.paid - before, found.status if isinstance(found, lastword.Run) else found.kind]

    async def leave_in_doubt(self, call_id: str) -> None:
        """What a process leaves that was killed while the tool ran."""
        dead = lastword.Journal(store_in(self.folder))
        request: Any = None

        async def keep(shown):
            nonlocal request
            request = shown
            return shown.close()

        other = lastword.Session(self.registry, id="s", approver=keep, journal=lastword.Journal())
        await other.call("pay", call_id=call_id)
        sealed = ALLOWED.sealed(request, Answerer.person("somebody"), time.time())
        tool = self.registry.lookup("pay")
        assert await dead.burn_and_start("s", Call(call_id, "pay", b"{}"), tool, sealed, "person", LiveCall())
        await dead.close()


async def allow(request):
    return request.allow()


async def main() -> None:
    racer = Racer(Path(sys.argv[1]), sys.argv[2])
    await racer.waiting.open()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        sys.stdout.write(json.dumps(await racer.do(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
