"""Programs of their own that ask for things on a shared journal, and wait.

`Asker` starts one: a real process with a session, so that it has a name, can be killed, and hears its answers through
the journal and through nothing else. Run as a program it is that process.
"""

import asyncio
import json
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any

import lastword
from lastword import Session, ToolRegistry
from lastword.call import wait_for_answer
from warm import PATIENCE_SECONDS, WarmProgram


class Asker:
    """A program that asks for these calls at once: pairs of a tool and its arguments."""

    def __init__(self, folder: Path, store: str, name: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self.name = name
        self._done = folder / f"{name}.done"
        script = folder / f"{name}.py"
        script.write_text("from surfaces.askers import main\n\nmain()\n")
        plan = folder / f"{name}.json"
        plan.write_text(json.dumps(calls))
        near, far = os.pipe()
        words = [str(script), store, str(plan), str(self._done)]
        self._program = WarmProgram(words, folder, os.environ, loads=["surfaces.askers"], printed=far)
        os.close(far)
        self.pid = self._program.pid
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._hearing = threading.Thread(target=self._hear, args=[near], daemon=True)
        self._hearing.start()

    def _hear(self, near: int) -> None:
        with os.fdopen(near) as printed:
            for line in printed:
                self._said.put(line)

    @property
    def label(self) -> str:
        """What the inbox calls it."""
        return f"{self.name}.py, process {self.pid}"

    def until_asked(self) -> "Asker":
        """Wait until all of its cards wait."""
        assert self._said.get(timeout=2 * PATIENCE_SECONDS) == "asked\n"
        return self

    def next_end(self) -> tuple[str, dict[str, Any], str]:
        """Wait for the end of a call: its tool, its arguments, and how it ended."""
        tool, arguments, kind = json.loads(self._said.get(timeout=PATIENCE_SECONDS))
        return tool, arguments, kind

    @property
    def done(self) -> list[dict[str, Any]]:
        """The arguments of what was really done."""
        return [json.loads(line) for line in self._done.read_text().splitlines()] if self._done.exists() else []

    def kill(self) -> None:
        """Let it die without a word."""
        self._program.close()

    def close(self) -> None:
        """End it, however it stands."""
        self.kill()
        self._hearing.join(PATIENCE_SECONDS)


def tools_of_an_asker(done: Path) -> ToolRegistry:
    """Tools with every kind of effect. What they do is a line in a file."""
    registry = ToolRegistry()

    def note(**given: Any) -> str:
        with done.open("a") as file:
            file.write(json.dumps(given) + "\n")
        return "Done."

    @registry.tool(icon="pencil", color="blue", effect="reversible", display_name="Add note")
    def add_note(page: str, text: str) -> str:
        """Adds a line to a page of the notebook."""
        return note(page=page, text=text)

    @registry.tool(icon="number", color="purple", effect="none", display_name="Look up")
    def look_up(word: str) -> str:
        """Looks a word up in the catalogue."""
        return note(word=word)

    @registry.tool(icon="paperplane", color="orange", effect="irreversible", display_name="Send letter")
    def send_letter(to: str, text: str) -> str:
        """Sends a letter by post."""
        return note(to=to, text=text)

    @registry.tool(display_name="<img src=x onerror=alert(1)> **Bold** \u202eevil")
    def odd_one(text: str) -> str:
        """<script>alert('description')</script> [a link](https://evil.example) &lt;b&gt;"""
        return note(text=text)

    return registry


async def _ask(store: str, calls: list[tuple[str, dict[str, Any]]], done: Path) -> None:
    journal = lastword.open_journal(store)
    async with Session(tools_of_an_asker(done), approver=wait_for_answer, journal=journal) as session:
        tasks = []
        for tool, arguments in calls:
            # One after the other, so that they are asked in this order.
            tasks.append(asyncio.ensure_future(_one(session, tool, arguments)))
            await until_pending(session, len(tasks))
        _say("asked")
        await asyncio.gather(*tasks)
    await journal.close()


async def _one(session: Session, tool: str, arguments: dict[str, Any]) -> None:
    outcome = await session.call(tool, arguments, origin="the agent")
    _say(json.dumps([tool, arguments, outcome.kind]))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def until_pending(session: Session, count: int) -> None:
    """Wait until a session has so many cards that wait."""
    happened = asyncio.Event()
    stop = session.listen(lambda event: happened.set())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(session.pending()) < count:
                await happened.wait()
                happened.clear()
    finally:
        stop()


def main() -> None:
    """What the process does."""
    store, plan, done = sys.argv[1:]
    asyncio.run(_ask(store, json.loads(Path(plan).read_text()), Path(done)))
