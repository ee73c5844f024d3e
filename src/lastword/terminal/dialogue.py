"""The conversation about one card: draw it, wait for what means something, say what was answered.

Enter never approves. Esc closes the card. A tool that cannot be undone wants a word typed out.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Protocol, TextIO

from rich.console import Console
from rich.text import Text

from lastword.card.draft import Draft
from lastword.card.face import Face, face, one_line
from lastword.consent.approval import ApprovalRequest, UserAction
from lastword.errors import Problem
from lastword.terminal import card
from lastword.terminal.flat import flat, flat_diff, question
from lastword.terminal.keys import CLOSE, ENTER, forget_typed, read_line
from lastword.terminal.screen import size_of

# What must be typed for a tool that cannot be undone. No key and no default can do it by accident.
WORD = "allow"
CLOSED = "Closed without an answer."
EDITED = " (edited)"


class Keys(Protocol):
    """Where a card's keys come from: the person's keyboard, or a script that shows how it is done."""

    def taken(self) -> AbstractContextManager[None]:
        """Hold the keyboard for this card."""

    async def wait_until_quiet(self) -> None:
        """Throw away what was typed for something else."""

    async def key(self) -> str:
        """The next key."""

    async def line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        """A line of text."""


class CardDialogue:
    """A card that is answered with keys."""

    def __init__(self, request: ApprovalRequest, keys: Keys, screen: TextIO, waiting: int = 0) -> None:
        self._request = request
        self._face = face(request)
        self._draft = Draft(request)
        self._sheet = Sheet(self._face, screen)
        self._keyboard = keys
        self._waiting = waiting

    async def hold(self) -> UserAction:
        """Draw the card and talk until there is an answer."""
        with self._keyboard.taken():
            self._sheet.card(self._face, self._waiting)
            await self._keyboard.wait_until_quiet()
            self._show_menu()
            while True:
                try:
                    action = await self._step(await self._keyboard.key())
                except EOFError:
                    action = self._answer(CLOSED, self._request.close())
                if action is not None:
                    return action

    @property
    def edits(self) -> dict[str, str]:
        """What the person changed before they answered, as they typed it."""
        return self._draft.edits

    def count(self, waiting: int) -> None:
        """Say how many cards wait after this one, while this one waits itself."""
        self._waiting = waiting
        if self._sheet.is_at_prompt:
            self._sheet.hint(self._others)

    def say(self, words: str) -> None:
        """One last line about this card, when it was taken away."""
        self._sheet.answer(words)

    async def _step(self, key: str) -> UserAction | None:
        """What one key does: an answer, or None when the card still waits."""
        shown, request = self._face, self._request
        if key == CLOSE:
            return self._answer(CLOSED, request.close())
        if key == "a":
            if not shown.irreversible or await self._typed_out():
                return self._answer(f"You chose: {self._primary}", self._draft.allow())
        elif key == "d":
            return self._answer(f"You chose: {shown.secondary}", request.deny())
        elif key == "r":
            if reason := (await self._line("Your reason, for the assistant: ") or "").strip():
                return self._answer(f"Denied: {one_line(reason)}", request.deny(reason))
            self._show_menu()
        elif key == "e" and shown.editable:
            await self._edit()
        elif key == "p" and shown.preview_label:
            self._sheet.preview(face(request, fold=False))
            self._show_menu()
        elif key == "v" and shown.folded:
            self._sheet.card(face(request, fold=False))
            self._show_menu()
        elif key == ENTER:
            self._sheet.hint("Enter alone does not answer: press one of the keys above.")
        return None

    async def _typed_out(self) -> bool:
        self._sheet.say("This cannot be undone.")
        typed = await self._line(f"Type {WORD} and press Enter to go on: ")
        if typed is not None and typed.strip().casefold() == WORD:
            return True
        self._sheet.say(f"Not approved: that was not the word {WORD}.")
        self._show_menu()
        return False

    async def _edit(self) -> None:
        """Take changes until an empty line; then the menu says what would be approved now."""
        draft = self._draft
        self._sheet.say(f"Edit: {', '.join(one_line(name) for name in draft.names)}.")
        self._sheet.say("Type a name to change its value, or NAME=VALUE. An empty line goes back to the menu.")
        while typed := (await self._line("Edit: ") or "").strip():
            name, equals, text = typed.partition("=")
            name = name.strip()
            if not equals:
                begin = draft.text_of(name)
                given = await self._line(f"{one_line(name)} = ", begin, secret=draft.is_secret(name))
                if given is None or (given == begin and not draft.is_secret(name)):
                    continue
                text = given
            try:
                draft.change(name, text)
            except Problem as problem:
                self._sheet.say(str(problem))
            else:
                for line in draft.changes():
                    self._sheet.say(line)
        if not draft.is_changed:
            self._sheet.say("Nothing was changed.")
        self._show_menu()

    async def _line(self, words: str, text: str = "", *, secret: bool = False) -> str | None:
        self._sheet.clear_prompt()
        return await self._keyboard.line(card.PROMPT + words, text, secret=secret)

    def _answer(self, words: str, action: UserAction) -> UserAction:
        self._sheet.answer(words)
        return action

    @property
    def _primary(self) -> str:
        return self._face.primary + (EDITED if self._draft.is_changed else "")

    def _show_menu(self) -> None:
        shown = self._face
        # The dots say that this key asks once more.
        items = [("a", self._primary + ("…" if shown.irreversible else "")), ("d", shown.secondary)]
        items.append(("r", "deny with a reason"))
        if shown.editable:
            items.append(("e", "edit"))
        if shown.preview_label:
            items.append(("p", shown.preview_label))
        if shown.folded:
            items.append(("v", "show all"))
        items.append(("Esc", "close"))
        self._sheet.menu(items, self._others)

    @property
    def _others(self) -> str:
        return f"({self._waiting} more waiting)" if self._waiting else ""


class Sheet:
    """Where a card is printed, line by line; only the last line, the prompt, is ever written over."""

    def __init__(self, shown: Face, screen: TextIO) -> None:
        self._face = shown
        # Nothing in a text is ever read as markup.
        self._console = Console(file=screen, highlight=False, markup=False, emoji=False)
        # A pipe and a dumb terminal cannot write over a line: there the prompt appears with its answer.
        self._can_rewrite = self._console.is_terminal and not self._console.is_dumb_terminal
        self.is_at_prompt = False

    @property
    def _width(self) -> int:
        return size_of(self._console.file)[0]

    def card(self, shown: Face, waiting: int = 0) -> None:
        self._print(card.draw(shown, self._width, waiting))

    def preview(self, shown: Face) -> None:
        self._print(card.barred(self._face, line) for line in card.diff(shown, self._width - len(card.BAR) - 1))

    def menu(self, items: list[tuple[str, str]], hint: str) -> None:
        self._print(card.menu(self._face, self._width, items))
        self.hint(hint)

    def say(self, words: str) -> None:
        room = self._width - len(card.BAR) - 1
        self._print(
            card.barred(self._face, Text(piece))
            for line in words.split("\n")
            for piece in card.wrap(line, max(card.MIN_WIDTH, room))
        )

    def hint(self, words: str) -> None:
        """Beside the prompt, in place of the last hint: Enter pressed ten times must not scroll the card away."""
        self._prompt(Text(words, "italic"))

    def answer(self, words: str) -> None:
        self._prompt(Text(words, "bold"), ends=True)

    def clear_prompt(self) -> None:
        if self.is_at_prompt:
            self._write("\r\x1b[K")
            self.is_at_prompt = False

    def _prompt(self, words: Text, *, ends: bool = False) -> None:
        self.clear_prompt()
        line = card.prompt(self._face).append_text(words)
        if ends:
            self._console.print(line, soft_wrap=True)
        elif self._can_rewrite:
            line.truncate(self._width - 1, overflow="ellipsis")
            self._console.print(line, end="", soft_wrap=True)
            self.is_at_prompt = True

    def _print(self, lines: Iterable[Text]) -> None:
        self.clear_prompt()
        for line in lines:
            self._console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def _write(self, codes: str) -> None:
        self._console.file.write(codes)
        self._console.file.flush()


class FlatDialogue:
    """A card that is read aloud and answered with words."""

    def __init__(self, request: ApprovalRequest, stdin: TextIO, screen: TextIO, waiting: int = 0) -> None:
        self._request = request
        self._face = face(request)
        self._draft = Draft(request)
        self._stdin = stdin
        self._screen = screen
        self._waiting = waiting

    @property
    def edits(self) -> dict[str, str]:
        """What the person changed before they answered, as they typed it."""
        return self._draft.edits

    def count(self, waiting: int) -> None:
        """Says nothing: a card that is read aloud is not interrupted, and the next one says that it waited."""

    async def hold(self) -> UserAction:
        """Say the card and talk until there is an answer."""
        self._say_all(flat(self._face, self._waiting))
        forget_typed(self._stdin.fileno())  # what was typed before the question answers nothing
        while True:
            self._say_all(question(self._face, edited=self._draft.is_changed))
            typed = await read_line(self._stdin)
            if typed is None:
                self.say(CLOSED)
                return self._request.close()
            action = self._understood(typed.strip())
            if action is not None:
                return action

    def say(self, words: str) -> None:
        """Print one line."""
        self._screen.write(words + "\n")
        self._screen.flush()

    def _understood(self, typed: str) -> UserAction | None:
        """What one line does: an answer, or None when the card still waits."""
        request, shown = self._request, self._face
        word, _, rest = typed.partition(" ")
        word, rest = word.casefold(), rest.strip()
        if word == WORD and not rest:
            self.say(f"You chose: {shown.primary}{EDITED if self._draft.is_changed else ''}.")
            return self._draft.allow()
        if word == "deny":
            reason = rest[len("because") :].strip() if rest.casefold().startswith("because") else rest
            self.say(f"Denied: {one_line(reason)}" if reason else f"You chose: {shown.secondary}.")
            return request.deny(reason or None)
        if word == "edit" and shown.editable:
            self._edit(rest)
        elif word == "preview" and shown.preview_label:
            self._say_all(flat_diff(face(request, fold=False)))
        elif word == "all":
            self._say_all(flat(face(request, fold=False)))
        else:
            self.say("That is not one of the answers." if typed else "An empty line does not answer.")
        return None

    def _edit(self, pair: str) -> None:
        name, equals, text = pair.partition("=")
        if not equals:
            self.say(f"An edit is: edit NAME=VALUE. The names are: {', '.join(self._draft.names)}.")
            return
        try:
            self._draft.change(name.strip(), text)
        except Problem as problem:
            self.say(str(problem))
        else:
            self._say_all(self._draft.changes())

    def _say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)
