"""One key or one line from the person, and nothing that was typed for something else.

Which press counts is decided in arming.py; here are the terminal and the clock for it.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.typeahead import clear_typeahead, get_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from lastword.terminal import arming
from lastword.terminal.arming import CLOSE, INTERRUPT, Arming
from lastword.terminal.marks import Marks
from lastword.terminal.quiet import MAX_READ, forget_typed, unlined
from lastword.terminal.screen import size_of

# A lone Esc is told from an arrow key by what does not follow it.
ESCAPE_SECONDS = 0.1
# Nobody types a word and Enter in less; a paste is there at once.
FAST_SECONDS = 0.25
# Fingers may be ahead of a busy program by a key or two; of a paste all the rest is there with the first key.
MAX_TOGETHER = 2


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

        @bindings.add(Keys.BracketedPaste)
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

        # Without asking the terminal where its cursor is: many do not answer, and would be scolded on the screen.
        output = Vt100_Output(self._screen, self._size, term=os.environ.get("TERM"), enable_cpr=False)
        # What was typed leaves the screen again: it may be a secret, and what came of it is said below the card.
        session: PromptSession[str | None] = PromptSession(
            input=self._input, output=output, key_bindings=bindings, is_password=secret, erase_when_done=True,
            enable_open_in_editor=not secret, mouse_support=False, input_processors=None if secret else [Marks()],
        )  # fmt: skip
        session.app.ttimeoutlen = ESCAPE_SECONDS
        return session

    async def _read(self, session: PromptSession[str | None], words: str, text: str) -> str | None:
        try:
            return await session.prompt_async(words, default=text, handle_sigint=False)
        except KeyboardInterrupt:
            raise EOFError from None

    def _size(self) -> Size:
        columns, rows = size_of(self._screen)
        return Size(rows=rows, columns=columns)

    def forget(self) -> None:
        """Throw away everything that was typed and not read."""
        forget_typed(self._input.fileno())
        self._input.flush_keys()
        clear_typeahead(self._input)


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
    return bool(await _next_bytes(fd, asyncio.get_running_loop().time() + arming.ALONE_SECONDS))


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


class WordReader:
    """Lines as the terminal itself edits them, for the flat mode: with the same rules for what counts."""

    def __init__(self, stdin: TextIO) -> None:
        self._stdin = stdin

    async def wait_until_quiet(self, disturbed: Callable[[], None]) -> None:
        """Throw away what is typed, until nothing comes any more; `disturbed` hears of the first of it."""
        forget_typed(self._stdin.fileno())
        with unlined(self._stdin):
            await _wait_until_quiet(self._stdin.fileno(), disturbed)

    async def line(self) -> str | None:
        """The next line; None at the end. Raises `Crowded` when more came right behind it: that was no answer."""
        typed = await read_line(self._stdin)
        if typed is None:
            return None
        with unlined(self._stdin):  # or what follows would only be seen when it ends with Enter
            if await _is_followed(self._stdin.fileno()):
                raise Crowded
        return typed


class Crowded(Exception):
    """A line that came with others: of a paste, or of somebody who goes on typing."""


async def read_line(stdin: TextIO) -> str | None:
    """A line as the terminal itself edits it, for the flat mode; None when there is no more."""
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
