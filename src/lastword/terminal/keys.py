"""One key or one line from the person, and nothing that was typed for something else.

A key counts only if it was pressed after the question could be read, and alone: what was typed ahead, what a held key
repeats, and what is pasted answers nothing.
"""

from __future__ import annotations

import asyncio
import os
import select
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from lastword.terminal.screen import size_of

# No person reads a question, understands it and presses a key within this time; keys that arrive sooner were meant for
# something else. Each of them starts the time again, so that neither a typist nor a held key can answer.
ARMING_SECONDS = 0.5
# A lone Esc is told from an arrow key by what does not follow it.
ESCAPE_SECONDS = 0.1

CLOSE = "close"
"""What Esc, Ctrl+C and Ctrl+D mean to a card."""
ENTER = "enter"

_NAMES = {
    Keys.Escape: CLOSE,
    Keys.ControlC: CLOSE,
    Keys.ControlD: CLOSE,
    Keys.ControlM: ENTER,
    Keys.ControlJ: ENTER,
}


class Keyboard:
    """The keys of one terminal, while a card has it."""

    def __init__(self, stdin: TextIO, screen: TextIO) -> None:
        self._input = Vt100Input(stdin)
        self._screen = screen
        self._arrived: asyncio.Queue[list[KeyPress]] = asyncio.Queue()
        self._escape: asyncio.TimerHandle | None = None
        self._is_closed = False

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the terminal: nothing is echoed, and Ctrl+C is a key."""
        with self._input.raw_mode():
            try:
                yield
            finally:
                self.forget()

    async def wait_until_quiet(self) -> None:
        """Throw away what was typed, until nothing more comes."""
        self.forget()
        with self._input.attach(self._read):
            while not self._is_closed:
                try:
                    await asyncio.wait_for(self._arrived.get(), ARMING_SECONDS)
                except TimeoutError:
                    break
        self.forget()

    async def key(self) -> str:
        """The next key that was pressed alone: a character, `close` or `enter`."""
        with self._input.attach(self._read):
            while True:
                if self._is_closed:
                    raise OSError("the terminal is gone")  # an approver that raises counts as none
                presses = await self._arrived.get()
                # Several at once come from a paste or were typed ahead; a person presses one, looks, and presses again.
                if len(presses) != 1:
                    continue
                key = presses[0].key
                name = _NAMES.get(key) if isinstance(key, Keys) else key
                if name:
                    return name

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text; None when the person changed their mind (Esc), and `EOFError` when they left (Ctrl+C)."""
        bindings = KeyBindings()

        @bindings.add("escape", eager=True)
        def _(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        self.forget()
        # Without asking the terminal where its cursor is: many do not answer, and would be scolded on the screen.
        output = Vt100_Output(self._screen, self._size, term=os.environ.get("TERM"), enable_cpr=False)
        # What was typed leaves the screen again: it may be a secret, and what came of it is said below the card.
        session: PromptSession[str | None] = PromptSession(
            input=self._input, output=output, key_bindings=bindings, is_password=secret, erase_when_done=True,
            enable_open_in_editor=not secret, mouse_support=False,
        )  # fmt: skip
        session.app.ttimeoutlen = ESCAPE_SECONDS
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
        while not self._arrived.empty():
            self._arrived.get_nowait()

    def _read(self) -> None:
        if self._escape is not None:
            self._escape.cancel()
        if _is_hung_up(self._input.fileno()):
            self._is_closed = True
        presses = [] if self._is_closed else self._input.read_keys()
        if presses or self._is_closed:
            self._arrived.put_nowait(presses)
        else:
            self._escape = asyncio.get_running_loop().call_later(ESCAPE_SECONDS, self._flush)

    def _flush(self) -> None:
        if presses := self._input.flush_keys():
            self._arrived.put_nowait(presses)


def _is_hung_up(fd: int) -> bool:
    """Whether the window was closed. Reading would fail for ever, and look like no key."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return any(event & (select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))


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


def forget_typed(fd: int) -> None:
    """Throw away what was typed and not read yet."""
    with suppress(termios.error):  # not a terminal: nothing is held
        termios.tcflush(fd, termios.TCIFLUSH)


@contextmanager
def no_echo(stdin: TextIO) -> Iterator[None]:
    """Keep what is typed meanwhile off the screen, where it would tear the progress lines. Ctrl+C still works."""
    if not stdin.isatty():
        yield
        return
    fd = stdin.fileno()
    before = termios.tcgetattr(fd)
    silent = termios.tcgetattr(fd)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, silent)
    try:
        yield
    finally:
        forget_typed(fd)
        termios.tcsetattr(fd, termios.TCSANOW, before)
