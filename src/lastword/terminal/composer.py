"""Where the person writes: a line with history and completion, a flat line for screen readers, or a pipe.

What does not live here: what a line means (chat.py).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TextIO

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.shortcuts import CompleteStyle

from lastword.store import make_private
from lastword.terminal.keyboard import output_on, read_line

# A message of several lines where a line is all that can be read.
CONTINUES = "\\"


class Left(Exception):
    """The person is done: Ctrl+D, or the end of the input."""


class Composer(Protocol):
    """A way to hear from the person."""

    async def read(self, mark: str) -> str:
        """The next message; `mark` stands before it, and stays on the screen. Raises `Left` at the end.

        It can be cancelled after `put_aside`. What was typed by then is there again the next time.
        """

    def put_aside(self) -> None:
        """Make room for something else: the line is about to leave the screen."""

    def keep(self, text: str) -> bool:
        """Have a message there again the next time, since it could not be sent. False when that is not possible."""


class LineComposer:
    """A line that can be edited. Enter sends it; a pasted text may have several lines."""

    def __init__(self, words: Callable[[], Mapping[str, Iterable[str]]], history: Path | None) -> None:
        """`words` gives what may be typed first, and what may follow it."""
        self._session: PromptSession[str] = PromptSession(
            history=open_history(history),
            completer=_Completer(words),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            enable_open_in_editor=True,
            mouse_support=False,
            output=output_on(sys.stdout),
        )
        self._kept = ""

    async def read(self, mark: str) -> str:
        kept, self._kept = self._kept, ""
        self._session.app.erase_when_done = False
        try:
            return await self._session.prompt_async(f"{mark} ▸ ", default=kept, handle_sigint=False)
        except asyncio.CancelledError:
            self._kept = self._session.default_buffer.text
            raise
        except KeyboardInterrupt:
            # Ctrl+C empties the line, as in a shell.
            if not self._session.default_buffer.text:
                sys.stdout.write("Ctrl+D leaves.\n")
            return ""
        except EOFError:
            raise Left from None

    def put_aside(self) -> None:
        self._session.app.erase_when_done = True

    def keep(self, text: str) -> bool:
        self._kept = text
        return True


class UnfinishedMessage:
    """A message that may have several lines, as they come."""

    def __init__(self) -> None:
        self._typed = ""

    def add(self, line: str | None) -> str | None:
        """The message, when this line ends it; None is the end of all lines. Raises `Left` when nothing was begun."""
        if line is None and not self._typed:
            raise Left
        self._typed += line or ""
        if line is not None and line.endswith(CONTINUES):
            self._typed = f"{self._typed[:-1]}\n"
            return None
        typed, self._typed = self._typed, ""
        return typed


class PlainComposer:
    """A line as the terminal itself edits it."""

    def __init__(self, stdin: TextIO, screen: TextIO) -> None:
        self._stdin = stdin
        self._screen = screen
        self._draft = UnfinishedMessage()

    async def read(self, mark: str) -> str:
        self._screen.write(f"You ({mark}): ")
        self._screen.flush()
        while True:
            line = await read_line(self._stdin)
            if (message := self._draft.add(line)) is not None:
                return message

    def put_aside(self) -> None:
        self._screen.write("\n")  # Nothing that was said is taken back.

    def keep(self, text: str) -> bool:
        return False  # The terminal itself edits the line, and nothing can be put into it.


class PipeComposer:
    """Lines from a program or a file, without a person at a terminal."""

    def __init__(self, stdin: TextIO) -> None:
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._draft = UnfinishedMessage()
        self._kept = ""
        self._loop = asyncio.get_running_loop()
        # A daemon thread: a pipe that stays open must not keep a program alive that wants to leave.
        threading.Thread(target=self._read_all, args=(stdin,), name="lastword-stdin", daemon=True).start()

    async def read(self, mark: str) -> str:
        if self._kept:
            kept, self._kept = self._kept, ""
            return kept
        while True:
            line = await self._lines.get()
            if line is None:
                self._lines.put_nowait(None)  # The end stays the end, however often it is read.
            if (message := self._draft.add(line)) is not None:
                return message

    def put_aside(self) -> None:
        """Nothing is on the screen."""

    def keep(self, text: str) -> bool:
        self._kept = text
        return True

    def _read_all(self, stdin: TextIO) -> None:
        with suppress(ValueError, RuntimeError):  # The input or the loop was closed while we waited.
            for line in stdin:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.rstrip("\n"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)


def open_history(path: Path | None) -> History:
    """What was typed before, from a file that only its owner can read; in memory where there can be none."""
    if path is None:
        return InMemoryHistory()
    try:
        make_private(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)


class _Completer(Completer):
    """The first word, then the names of its arguments."""

    def __init__(self, words: Callable[[], Mapping[str, Iterable[str]]]) -> None:
        self._words = words

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if not before.startswith("/") or "\n" in before:
            return
        words = self._words()
        first, space, rest = before.partition(" ")
        if not space:
            options: Iterable[str] = words
            typed = first
        else:
            given = {word.partition("=")[0] for word in rest.split(" ")[:-1]}
            typed = rest.rpartition(" ")[2]
            options = (option for option in words.get(first, ()) if option.rstrip("=") not in given)
        for option in options:
            if option.startswith(typed):
                yield Completion(option, start_position=-len(typed))
