"""The terminal that a command was started in: whether a person is at it, and a chat with them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from lastword.lazily import load_later
from lastword.store import default_path
from lastword.terminal import is_dumb, is_interactive

if TYPE_CHECKING:
    from lastword.terminal import Window, chat, composer
else:
    # The doctor asks only where files lie.
    chat, composer = load_later("lastword.terminal.chat"), load_later("lastword.terminal.composer")


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
        talk = chat.TerminalChat(
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
            until.add_done_callback(lambda done: talk.leave())
        await talk.talk(self._composer(talk))

    def _composer(self, talk: chat.TerminalChat) -> composer.Composer:
        if not sys.stdin.isatty():
            return composer.PipeComposer(sys.stdin)
        if self.plain:
            return composer.FlatComposer(sys.stdin, sys.stdout)
        return composer.LineComposer(talk.words, data_file().with_name("chat_history"))


def model_file() -> Path:
    """Where a model that was chosen on the page is kept, with its key."""
    return data_file().with_name("model.json")


def data_file() -> Path:
    """The store that is used when none is configured."""
    return default_path(sys.platform, os.environ, Path.home())
