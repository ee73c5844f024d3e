"""The terminal that a command was started in: whether a person is at it, and a chat with them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from lastword.store.address import default_path
from lastword.terminal.chat import TerminalChat
from lastword.terminal.composer import Composer, FlatComposer, LineComposer, PipeComposer
from lastword.terminal.screen import is_dumb, is_interactive
from lastword.terminal.window import Window


class Seat:
    """The terminal, and whether a person is at it."""

    def __init__(self, *, plain: bool) -> None:
        self.is_attended = is_interactive()
        self.plain = plain or is_dumb() or not (sys.stdin.isatty() and sys.stdout.isatty())

    async def talk(
        self,
        window: Window,
        *,
        words: Iterable[str] = (),
        farewell: Callable[[str], str],
        until: asyncio.Future[None] | None = None,
    ) -> None:
        """Chat in this window until the person leaves, or `until` is done."""
        chat = TerminalChat(
            window,
            words=words,
            farewell=farewell,
            can_answer=self.is_attended,
            stdin=sys.stdin,
            screen=sys.stdout,
            cards=sys.stderr,
            plain=self.plain,
        )
        if until is not None:
            until.add_done_callback(lambda done: chat.leave())
        await chat.talk(self._composer(chat))

    def _composer(self, chat: TerminalChat) -> Composer:
        if not sys.stdin.isatty():
            return PipeComposer(sys.stdin)
        if self.plain:
            return FlatComposer(sys.stdin, sys.stdout)
        return LineComposer(chat.words, data_file().with_name("chat_history"))


def model_file() -> Path:
    """Where a model that was chosen on the page is kept, with its key."""
    return data_file().with_name("model.json")


def data_file() -> Path:
    """The store that is used when none is configured."""
    return default_path(sys.platform, os.environ, Path.home())
