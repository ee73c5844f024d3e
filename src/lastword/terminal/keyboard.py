"""What a person types: one key, one line or one word, and nothing that was typed for something else.

A card listens after a quiet moment. A key that means nothing here, or keys that come together, end the listening until
it is quiet again: somebody is typing, a text is pasted, or the terminal answers a program that asked it something. A
press counts when nothing else came soon after it, so the first letter of a word is never taken for an answer. `Arming`
decides that from when keys come and from nothing else; `Keyboard` and `WordReader` bring terminal and clock.

What does not live here: what a key means (card_dialogue.py, grant_dialogue.py, question_dialogue.py).
"""

from __future__ import annotations

import asyncio
import os
import select
from bisect import bisect_right
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, Protocol, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.input.typeahead import clear_typeahead, get_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys as KeyNames
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output.vt100 import Vt100_Output

from lastword.display import marks
from lastword.terminal import tty
from lastword.terminal.tty import MAX_READ, forget_typed, size_of, unlined

if TYPE_CHECKING:
    from lastword.terminal.card_layout import Sheet

# Whoever types a word presses its second letter within this time, and the rest of a paste or of a terminal's reply
# comes much sooner. Longer, a deliberate press would seem to be ignored.
ALONE_SECONDS = 0.25

# A lone Esc is told from an arrow key by what does not follow it.
ESCAPE_SECONDS = 0.1
# Nobody types a word and Enter in less; a paste is there at once.
FAST_SECONDS = 0.25
# Fingers may be ahead of a busy program by a key or two; of a paste all the rest is there with the first key.
MAX_TOGETHER = 2

# Short enough for forty columns beside the prompt.
UNQUIET = "Waiting until the keys are quiet."
LISTENING = "Listening again: press one key."
CLOSE = "close"
"""What Esc, Ctrl+C and Ctrl+D mean to a card."""
ENTER = "enter"

INTERRUPT = b"\x03"
_NAMES = {b"\x1b": CLOSE, b"\x04": CLOSE, b"\r": ENTER, b"\n": ENTER}
_MARK_STYLE = "bold fg:ansiyellow reverse"


class Arming:
    """Whether the card listens now, and which press counts."""

    def __init__(self, wanted: Set[str], now: float, *, is_armed: bool = False) -> None:
        """`wanted`: the keys that mean something, by their character or name."""
        self._wanted = wanted
        self._since = now
        self._state: Literal["unquiet", "armed", "held"] = "armed" if is_armed else "unquiet"
        self._held = ""

    @property
    def is_armed(self) -> bool:
        """Whether a press would be considered now."""
        return self._state == "armed"

    @property
    def is_unquiet(self) -> bool:
        """Whether keys are thrown away until none have come for a while."""
        return self._state == "unquiet"

    @property
    def due(self) -> float | None:
        """When to `look`, if nothing comes before; None when only a key can change anything."""
        if self._state == "armed":
            return None
        return self._since + (ALONE_SECONDS if self._state == "held" else tty.ARMING_SECONDS)

    def hear(self, data: bytes, now: float) -> None:
        """Something came: bytes as they were read, which are one key at most if a person presses keys one by one."""
        key = _NAMES.get(data) or (data.decode("ascii", "replace") if len(data) == 1 else "")
        is_first = self._state == "armed"
        self._state = "held" if is_first and key in self._wanted else "unquiet"
        self._held, self._since = key, now

    def look(self, now: float) -> str | None:
        """Nothing is there to be read. Gives the press that counts, if that makes it one."""
        if self.due is None or now < self.due:
            return None
        is_press = self._state == "held"
        # After a press the card changes or is gone: whatever comes next has to be meant for what is there then.
        self._state = "unquiet" if is_press else "armed"
        return self._held if is_press else None


class Keys(Protocol):
    """Where a card's keys come from: the person's keyboard, or a script that shows how it is done."""

    def taken(self) -> AbstractContextManager[None]:
        """Hold the keyboard for this card."""

    async def wait_until_quiet(self, disturbed: Callable[[], None]) -> bool:
        """Throw away what was typed for something else. False when the person wants to get out meanwhile."""

    async def key(self, wanted: Set[str]) -> str | None:
        """The next key that counts; None when others came, and it has to be quiet again."""

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text."""

    async def word(self, words: str) -> str | None:
        """A line that was typed by hand."""


class Listener:
    """The keys of one card, and what is said beside its prompt about them. `EOFError`: the person wants to get out."""

    def __init__(self, keys: Keys, sheet: Sheet) -> None:
        self._keys = keys
        self._sheet = sheet

    async def key(self, wanted: Set[str]) -> str:
        """The next key that counts."""
        while (key := await self._keys.key(wanted)) is None:
            await self.again()
        return key

    async def again(self, words: str = UNQUIET) -> None:
        """Keys came that answer nothing, and the menu is still there."""
        self._sheet.hint(words)
        was_disturbed = await self.quiet()
        if was_disturbed or words == UNQUIET:
            self._sheet.hint(LISTENING)

    async def quiet(self) -> bool:
        """Wait until keys count, and say whether others came meanwhile."""
        disturbances: list[None] = []

        def disturbed() -> None:
            disturbances.append(None)
            self._sheet.hint(UNQUIET)

        if not await self._keys.wait_until_quiet(disturbed):
            raise EOFError
        return bool(disturbances)

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text below the card; None when the person changed their mind."""
        self._sheet.clear_prompt()
        return await self._keys.line(self._sheet.prompt + words, text, secret=secret)

    async def is_word(self, word: str, words: str) -> bool:
        """Whether the person types this word, alone and by hand."""
        await self.quiet()
        self._sheet.clear_prompt()
        typed = await self._keys.word(self._sheet.prompt + words)
        return typed is not None and typed.strip().casefold() == word


class Keyboard:
    """The keys of one terminal, while a card has it."""

    def __init__(self, stdin: TextIO, screen: TextIO) -> None:
        self._input = Vt100Input(stdin)
        self._screen = screen

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the terminal: nothing is echoed, and Ctrl+C is a key."""
        with self._input.raw_mode():
            try:
                yield
            finally:
                self.forget()

    async def wait_until_quiet(self, disturbed: Callable[[], None]) -> bool:
        """Throw away what is typed, until nothing comes any more; `disturbed` hears of the first of it.

        False when the person pressed Ctrl+C meanwhile, which is never taken for anything but a wish to get out.
        """
        self.forget()
        return await _wait_until_quiet(self._input.fileno(), disturbed)

    async def key(self, wanted: Set[str]) -> str | None:
        """The next press that counts: a character, `close` or `enter`. None when keys came that answer nothing."""
        loop, fd = asyncio.get_running_loop(), self._input.fileno()
        ear = Arming(wanted, loop.time(), is_armed=True)
        while not ear.is_unquiet:
            data = await _next_bytes(fd, ear.due)
            if data == INTERRUPT:
                return CLOSE
            if data:
                ear.hear(data, loop.time())
            elif press := ear.look(loop.time()):
                return press
        return None

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text; None when the person changed their mind (Esc), and `EOFError` when they left (Ctrl+C)."""
        self.forget()
        return await self._read(self._session(KeyBindings(), secret=secret), words, text)

    async def word(self, words: str) -> str | None:
        """A line that was typed key by key, with nothing after it. Empty for a paste and for a piece of a text."""
        loop, fd = asyncio.get_running_loop(), self._input.fileno()
        came: list[float] = []
        together = 0
        bindings = KeyBindings()

        @bindings.add(KeyNames.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            """Nobody means it who does not type it."""

        session = self._session(bindings)

        def heard(_: object) -> None:
            nonlocal together
            came.append(loop.time())
            # A busy program takes its time over each key, so that a paste seems slow. It is there already, though.
            together += bool(session.app.key_processor.input_queue or select.select([fd], [], [], 0)[0])

        session.default_buffer.on_text_changed += heard
        self.forget()
        typed = await self._read(session, words, "")
        was_pasted = together > MAX_TOGETHER or (bool(came) and loop.time() - came[0] < FAST_SECONDS)
        is_followed = bool(get_typeahead(self._input)) or await _is_followed(fd)
        return "" if typed and (was_pasted or is_followed) else typed

    def _session(self, bindings: KeyBindings, *, secret: bool = False) -> PromptSession[str | None]:
        @bindings.add("escape", eager=True)
        def _(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        # What was typed leaves the screen again: it may be a secret, and what came of it is said below the card.
        session: PromptSession[str | None] = PromptSession(
            input=self._input, output=output_on(self._screen), key_bindings=bindings, is_password=secret,
            erase_when_done=True, enable_open_in_editor=not secret, mouse_support=False,
            input_processors=None if secret else [_Marks()],
        )  # fmt: skip
        session.app.ttimeoutlen = ESCAPE_SECONDS
        return session

    async def _read(self, session: PromptSession[str | None], words: str, text: str) -> str | None:
        try:
            return await session.prompt_async(words, default=text, handle_sigint=False)
        except KeyboardInterrupt:
            raise EOFError from None

    def forget(self) -> None:
        """Throw away everything that was typed and not read."""
        forget_typed(self._input.fileno())
        self._input.flush_keys()
        clear_typeahead(self._input)


def output_on(screen: TextIO) -> Vt100_Output:
    """How a line that is edited is drawn."""

    def size() -> Size:
        columns, rows = size_of(screen)
        return Size(rows=rows, columns=columns)

    # Without asking the terminal where its cursor is: many do not answer, and would be scolded on the screen.
    return Vt100_Output(screen, size, term=os.environ.get("TERM"), enable_cpr=False)


class WordReader:
    """Lines as the terminal itself edits them, for the plain mode: with the same rules for what counts."""

    def __init__(self, stdin: TextIO, screen: TextIO) -> None:
        self.stdin = stdin
        self._screen = screen

    def say(self, words: str) -> None:
        """Print one line."""
        self._screen.write(words + "\n")
        self._screen.flush()

    async def ask(self, words: str, does: str) -> str | None:
        """What is typed after a question, alone; None at the end. `does`: what an answer does that came with others."""
        while True:
            await self.wait_until_quiet()
            self.say(words)
            try:
                typed = await self.line()
            except Crowded:
                self.say(f"That came together with other keys, and {does}. {UNQUIET}")
            else:
                return None if typed is None else typed.strip()

    async def wait_until_quiet(self) -> None:
        """Throw away what is typed, until nothing comes any more, and say so."""
        forget_typed(self.stdin.fileno())
        with unlined(self.stdin):
            await _wait_until_quiet(self.stdin.fileno(), lambda: self.say(UNQUIET))

    async def line(self) -> str | None:
        """The next line; None at the end. Raises `Crowded` when more came right behind it: that was no answer."""
        typed = await read_line(self.stdin)
        if typed is None:
            return None
        with unlined(self.stdin):  # or what follows would only be seen when it ends with Enter
            if await _is_followed(self.stdin.fileno()):
                raise Crowded
        return typed


class Crowded(Exception):
    """A line that came with others: of a paste, or of somebody who goes on typing."""


async def read_line(stdin: TextIO) -> str | None:
    """A line as the terminal itself edits it, for the plain mode; None when there is no more."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not ready.done():
            try:
                ready.set_result(os.read(stdin.fileno(), 65536))
            except OSError:
                ready.set_result(b"")  # the terminal is gone

    loop.add_reader(stdin.fileno(), read)
    try:
        data = await ready
    finally:
        loop.remove_reader(stdin.fileno())
    return data.decode("utf-8", "replace").rstrip("\n") if data else None


async def _wait_until_quiet(fd: int, disturbed: Callable[[], None]) -> bool:
    """Read and forget until nothing comes any more. False as soon as it is Ctrl+C."""
    loop = asyncio.get_running_loop()
    ear = Arming(frozenset(), loop.time())
    is_disturbed = False
    while not ear.is_armed:
        data = await _next_bytes(fd, ear.due)
        if data == INTERRUPT:
            return False
        if not data:
            ear.look(loop.time())
            continue
        ear.hear(data, loop.time())
        if not is_disturbed:
            is_disturbed = True
            disturbed()
    return True


async def _is_followed(fd: int) -> bool:
    """Whether anything comes so soon after what was read last that it belongs to it."""
    return bool(await _next_bytes(fd, asyncio.get_running_loop().time() + ALONE_SECONDS))


async def _next_bytes(fd: int, until: float | None) -> bytes:
    """What comes next; nothing when nothing has come until then."""
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(fd, came.set)
    try:
        async with asyncio.timeout_at(until):
            await came.wait()
    except TimeoutError:
        # A program that was busy hears of the time and of the keys at once, and the keys were first.
        if not select.select([fd], [], [], 0)[0]:
            return b""
    finally:
        loop.remove_reader(fd)
    data = os.read(fd, MAX_READ)
    if not data:
        raise OSError("the terminal is gone")  # an approver that raises counts as none
    return data


class _Marks(Processor):
    """Draws the line in which a value is edited, with marks where the text has what cannot be seen.

    The text itself stays what it is, as on the card. The cursor passes a mark in one step.
    """

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """One line of the field, with every mark in the place of its character."""
        fragments = explode_text_fragments(transformation_input.fragments)
        found = dict(marks(fragment_list_to_text(fragments)))
        if not found:
            return Transformation(transformation_input.fragments)
        drawn = [(_MARK_STYLE, found[place]) if place in found else (f[0], f[1]) for place, f in enumerate(fragments)]
        # Where each character begins on the screen, and where the line ends.
        starts = [0, *accumulate(len(text) for _, text in drawn)]

        def to_screen(place: int) -> int:
            last = len(starts) - 1
            return starts[min(place, last)] + max(0, place - last)

        def to_text(column: int) -> int:
            return max(0, bisect_right(starts, column) - 1)

        return Transformation(list(drawn), source_to_display=to_screen, display_to_source=to_text)
