"""A conversation in a terminal: the person writes, the model's words stream, cards are answered, progress is shown.

Ctrl+C closes a card or cancels the running call and keeps what it has; a second one stops the turn. What does not live
here: reading a line (composer.py), the commands that begin with a slash (slash.py), and cards (approver.py).
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TextIO

from assent.bounds import Ended
from assent.display import visible
from assent.errors import AssentError
from assent.events import Asked, Event, Finished, Printed, Reported, Started
from assent.outcome import Kind, Outcome
from assent.satellite import Forgotten, Heard, Repairing, Retrying, Said, Satellite
from assent.terminal.approver import TerminalApprover
from assent.terminal.attendance import attend
from assent.terminal.card import MIN_WIDTH, wrap
from assent.terminal.composer import Composer, Left
from assent.terminal.face import one_line
from assent.terminal.progress import fit
from assent.terminal.screen import size_of
from assent.terminal.slash import COMMANDS, Slash
from assent.terminal.speech import Speech
from assent.ways import Way

# What stands before words that a script wrote, or that came with an error.
OUTPUT = "┊ "
SAID = "  "
# Of a result, what a line on the screen shows. The model gets all of it, and /runs has it too.
MAX_RESULT = 200

_WORDS: dict[Kind, str] = {
    "succeeded": "done",
    "failed": "failed",
    "raised": "failed",
    "invalid_arguments": "wrong arguments",
    "unknown_tool": "no such tool",
    "denied": "not allowed",
    "no_approver": "nobody to ask",
    "expired": "nobody answered",
    "stale": "out of date",
    "refused": "no card",
    "cancelled": "cancelled",
    "timed_out": "took too long",
    "outcome_unknown": "outcome unknown",
}


class Chat:
    """One person at one terminal."""

    def __init__(
        self,
        satellite: Satellite,
        ways: Mapping[str, Way],
        chosen: str,
        *,
        words: str,
        command: str,
        approver: TerminalApprover | None,
        screen: TextIO,
        plain: bool,
    ) -> None:
        self.satellite = satellite
        self.ways = ways
        self.way = ways[chosen]
        self._opening_words = words
        self._command = command
        self._approver = approver
        self._screen = screen
        self._plain = plain
        self._speech = Speech(screen, plain=plain)
        self._slash = Slash(self)

    async def talk(self, composer: Composer) -> None:
        """Hear the person and the model, in turn, until the person leaves."""
        self.choose(self.way.preset.name)
        # Before anybody else: a report or a card must find the model's last line finished.
        stop = self.satellite.session.listen(self._hear_session)
        try:
            self._greet()
            # Only if there is something: a turn throws away what is typed meanwhile, and many type before the prompt.
            if await self.satellite.is_unfinished():
                self.print("Going on with what was interrupted.")
                await self._turn(self.satellite.resume())
            while await self._next(composer):
                pass
        except Left:
            pass
        finally:
            stop()
        self.print(f"Left. `{self._command} --session {self.satellite.session.id}` comes back to it.")

    def choose(self, name: str) -> None:
        """Work under this preset from now on."""
        self.way = self.ways[name]
        self.way.apply(self.satellite)

    def hear(self, heard: Heard) -> None:
        """What the satellite has to say while it works."""
        match heard:
            case Said(text):
                self._speech.say(text)
            case Retrying(problem, attempt):
                self.print(f"Trying again ({attempt}): {one_line(problem.fact, 200)}")
            case Repairing(reason):
                self.print(f"The model is told what was wrong: {one_line(reason, 200)}")
            case Forgotten():
                self.print("The server has forgotten this conversation. A new one begins; tools and state stay.")

    def print(self, *lines: str) -> None:
        """Lines of our own, between the model's words."""
        self._speech.finish()
        width = max(MIN_WIDTH, size_of(self._screen)[0] - 1)
        for line in lines:
            for piece in [line] if self._plain else wrap(line, width):
                self._screen.write(f"{piece}\n")
        self._screen.flush()

    def quote(self, text: str) -> None:
        """Words that are not ours, each line behind a bar, so that none can pass for one of ours."""
        bar = SAID if self._plain else OUTPUT
        width = max(MIN_WIDTH, size_of(self._screen)[0] - 1 - len(bar))
        for line in visible(text).split("\n"):
            self.print(*(f"{bar}{piece}" for piece in ([line] if self._plain else wrap(line, width))))

    def words(self) -> dict[str, Iterable[str]]:
        """What can be typed after a slash, and what may follow it."""
        known: dict[str, Iterable[str]] = {f"/{name}": () for name in COMMANDS}
        known["/preset"] = list(self.ways)
        session = self.satellite.session
        for tool in session.registry.all(with_editor=session.editor is not None):
            known.setdefault(f"/{tool.name}", [f"{p.name}=" for p in tool.manifest.parameters])
        return known

    async def _next(self, composer: Composer) -> bool:
        typed = (await composer.read(self.way.mark())).strip()
        if not typed:
            return True
        name, _, rest = typed.removeprefix("/").partition(" ")
        if typed.startswith("/") and name in COMMANDS:
            return await self._obey(name, rest.strip())
        await self._turn(self.satellite.say(typed))
        return True

    async def _obey(self, name: str, rest: str) -> bool:
        try:
            return await self._slash.obey(name, rest)
        except AssentError as problem:
            self.quote(str(problem))
            return True

    async def _turn(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        """Do something that the person may stop, and say how it ended."""
        try:
            ended = await attend(
                self.satellite.session, work, approver=self._approver, plain=self._plain, again="stops the turn"
            )
        except KeyboardInterrupt:
            await self.satellite.leave_off()
            self.print("Stopped. What was done is kept, and the model hears of it with your next message.")
        except AssentError as problem:
            self.quote(str(problem))
        else:
            self._speech.finish()
            if ended is not None and ended.bound is not None:
                self.print(ended.words)

    def _hear_session(self, event: Event) -> None:
        match event:
            case Asked() | Started() | Reported():
                self._speech.finish()
            case Printed(_, line):
                self.quote(line)
            case Finished(outcome):
                self.print(self._told(outcome))

    def _told(self, outcome: Outcome) -> str:
        how = _WORDS[outcome.kind]
        if outcome.approval == "auto":
            how += f", auto-approved by preset {self.way.preset.name}"
        first = outcome.message.split("\n", 1)[0]
        words = f"{one_line(outcome.tool, 80)} ({how}): {one_line(first, MAX_RESULT)}"
        if self._plain:
            return words
        return fit(f"{'✓' if outcome.success else '✗'} {words}", size_of(self._screen)[0] - 1)

    def _greet(self) -> None:
        session = self.satellite.session
        tools = len(session.registry.all(with_editor=session.editor is not None))
        self.print(
            self._opening_words,
            f"This is {self.way.status()}.",
            f"{tools} tools; session {session.id}. /help says what else can be typed.",
        )
