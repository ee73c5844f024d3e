"""`lastword demo`: six calls played in a terminal, without a model, a network or a keypress.

The session, the cards and the outcomes are the real ones; only the fingers are scripted. Everything happens in a
temporary folder.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Set
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TextIO

from msgspec.structs import replace

from lastword.call.events import Event, Reported
from lastword.display import visible
from lastword.editor import ProjectEditor
from lastword.session import Session
from lastword.talk import Tour
from lastword.terminal import PROMPT, CardDialogue, Progress, wrap
from lastword.tools import ToolContext, ToolRegistry

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest, UserAction

# Long enough to follow, short enough that all six are over within seconds.
PAUSE_SECONDS = 0.35
WIDTH = 78

Step = str | Callable[[], None]
"""A key, a line of text that ends with a line break, or something that happens while the card waits."""


async def play(screen: TextIO | None = None) -> None:
    """Play every scene, and say at the end what to try next."""
    with TemporaryDirectory(prefix="lastword-demo-") as folder:
        await Stage(Path(folder), screen or sys.stdout).play()


class Stage:
    """A session on a temporary project, and somebody whose fingers are scripted."""

    def __init__(self, folder: Path, screen: TextIO) -> None:
        self._folder = folder
        self._screen = screen
        self._pause = PAUSE_SECONDS if screen.isatty() else 0.0
        self._scene = 0
        self._script: list[Step] = []
        self._notes = folder / "notes.md"
        self._session = Session(_tools(), approver=self._approve, editor=ProjectEditor(folder, "demo"))

    async def play(self) -> None:
        self._say(
            "lastword gives an assistant tools and leaves the last word with you. Six calls, played by themselves:"
        )
        self._notes.write_text("# Notes\n- water the plants\n")
        async with self._session:
            await self._allowed()
            await self._auto_approved()
            await self._denied()
            await self._edited()
            await self._stale()
            await self._cancelled()
        self._say("")
        self._say("Your turn: lastword new tool hello, lastword test, lastword call hello.")

    async def _allowed(self) -> None:
        self._title("You see exactly what will happen, and allow it.")
        await self._call("add_note", {"path": "notes.md", "text": "- call Ada"}, "a")
        self._say(f"notes.md now ends with {self._notes.read_text().splitlines()[-1]!r}.")

    async def _auto_approved(self) -> None:
        self._title("Your preset auto-approves and the tool allows it: no card. One of the two alone would not do.")
        asks = self._session.preset
        self._session.preset = replace(asks, auto_approve=True)
        await self._call("where_am_i", {})
        self._session.preset = asks

    async def _denied(self) -> None:
        self._title("You deny, and say why. The assistant reads your reason.")
        await self._call("publish", {"version": "1.4.0", "index": "main"}, "r", "wrong index, use the test one\n")

    async def _edited(self) -> None:
        self._title("You change an argument first. What runs is what you wrote, and the assistant is told.")
        await self._call("remind", {"what": "call Ada", "hour": 7}, "e", "hour=10\n", "\n", "a")

    async def _stale(self) -> None:
        self._title("The file changes while the card waits. Your yes was to something else: you are asked again.")

        def somebody_else_writes() -> None:
            self._notes.write_text(self._notes.read_text() + "- feed the cat\n")
            self._say(f"{PROMPT}(meanwhile another program adds a line to notes.md)")

        await self._call("add_note", {"path": "notes.md", "text": "- buy milk"}, somebody_else_writes, "a", "d")
        self._say(f"notes.md still ends with {self._notes.read_text().splitlines()[-1]!r}.")

    async def _cancelled(self) -> None:
        self._title("A long search is stopped half-way, as Ctrl+C does. What it has found is kept.")
        progress = Progress(self._screen, in_place=self._screen.isatty())

        def watch(event: Event) -> None:
            progress.show(event)
            if isinstance(event, Reported) and event.fraction is not None and event.fraction >= 0.5:
                progress.release()
                self._say("Ctrl+C")
                self._session.cancel(event.call_id)

        stop = self._session.listen(watch)
        await self._call("search_years", {"word": "Ada"})
        stop()

    async def _call(self, tool: str, arguments: dict[str, Any], *script: Step) -> None:
        self._script = list(script)
        outcome = await self._session.call(tool, arguments, origin="the demo")
        assert not self._script, "a scene ended before its script did"
        self._say(f"→ {outcome.kind} (approval: {outcome.approval}). The assistant reads:")
        for line in visible(outcome.message).splitlines():
            for piece in wrap(line, WIDTH - 4):
                self._screen.write(f"    {piece}\n")
        self._screen.flush()
        await asyncio.sleep(self._pause)

    async def _approve(self, request: ApprovalRequest) -> UserAction:
        return await CardDialogue(request, ScriptedKeys(self._script, self._screen, self._pause), self._screen).hold()

    def _title(self, words: str) -> None:
        self._scene += 1
        self._say("")
        self._say(f"{self._scene}. {words}")

    def _say(self, words: str) -> None:
        for line in wrap(words, WIDTH):
            self._screen.write(line + "\n")
        self._screen.flush()


class ScriptedKeys:
    """Presses the keys of a script, and shows which."""

    def __init__(self, script: list[Step], screen: TextIO, pause: float) -> None:
        self._script = script
        self._screen = screen
        self._pause = pause

    def taken(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def wait_until_quiet(self, disturbed: Callable[[], None]) -> bool:
        await asyncio.sleep(self._pause)
        return True

    async def key(self, wanted: Set[str]) -> str:
        key = await self._next()
        self._show(f"{PROMPT}[{key}] is pressed")
        return key

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        typed = await self._next()
        self._show(words + typed.rstrip("\n"))
        return typed.rstrip("\n")

    async def word(self, words: str) -> str | None:
        return await self.line(words)

    async def _next(self) -> str:
        while True:
            await asyncio.sleep(self._pause)
            step = self._script.pop(0)
            if isinstance(step, str):
                return step
            self._show("", end="")
            step()

    def _show(self, words: str, end: str = "\n") -> None:
        # Over the prompt, which a real key would not leave behind either.
        self._screen.write(("\r" if self._screen.isatty() else "") + words + end)
        self._screen.flush()


def _tools() -> ToolRegistry:
    registry = ToolRegistry()
    registry.add(Tour.note_tool("add_note", "Add Note", "Adds a line to a file of notes."))

    @registry.tool(icon="location.fill", auto_approve=True, effect="none", display_name="Where Am I")
    def where_am_i() -> str:
        """Tells where this computer is."""
        return "52.52 north, 13.40 east"

    @registry.tool(icon="paperplane", color="orange", effect="irreversible", display_name="Publish")
    def publish(version: str, index: str) -> str:
        """Uploads a release to a package index."""
        return f"Published {version} to {index}."

    @registry.tool(icon="bell", color="purple", effect="reversible", display_name="Remind")
    def remind(what: str, hour: int) -> str:
        """Sets a reminder for today."""
        return f"Will remind you at {hour}:00: {what}"

    @registry.tool(icon="magnifyingglass", require_approval=False, effect="none", display_name="Search Years")
    async def search_years(word: str, context: ToolContext[Any]) -> str:
        """Searches the letters of many years for a word."""
        found: list[int] = []
        context.on_cancel = lambda: f"{word} in {', '.join(map(str, found))}; later years were not searched."
        for year in range(1990, 2030):
            context.report(f"letters of {year}", "search", fraction=(year - 1990) / 40)
            if year % 4 == 0:
                found.append(year)
            await asyncio.sleep(0.06)
        return f"{word} in {', '.join(map(str, found))}"

    return registry
