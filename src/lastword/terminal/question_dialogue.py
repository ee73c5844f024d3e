"""The conversation about a question of a running tool: fill it in, send it, or leave it.

It has a frame, a colour and keys of its own, so that nobody takes it for a card that asks for consent: none of the keys
that answer a card answers this, and nothing is sent before the person has seen what is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

import msgspec
from rich.text import Text

from lastword.consent import Secrets
from lastword.display import first_units
from lastword.terminal.card_layout import Sheet
from lastword.terminal.keyboard import CLOSE, ENTER, LISTENING, Crowded, Keyboard, Keys, Listener, WordReader
from lastword.terminal.tty import MIN_WIDTH, no_echo, wrap

if TYPE_CHECKING:
    from lastword.card import views

BAR = "┆ "
PROMPT = "┆ ? "
COLOR = "magenta"
CLOSED, DECLINED, GIVEN = "Closed without an answer.", "You would rather not say.", "Your answer was sent."
# None of these is a word of a card that asks for consent.
GIVE, DECLINE = "Send answer", "Rather not say"


class QuestionReply(msgspec.Struct, frozen=True):
    """What the person did."""

    action: str
    values: dict[str, str] = {}


Send = Callable[[QuestionReply], Awaitable[str | None]]
"""Hands the answer on. Gives back, in words, what does not fit; None when it was taken."""


Line = tuple[str, str, str]
"""What stands before every piece of a line, its text, and its style."""


def words_of(tool: str, name: str, question: views.QuestionView, *, whole: bool = False) -> Iterator[Line]:
    """The lines of the question: ours, and the tool's own words as a quotation."""
    yield "", f"? {name} wants to know something", f"bold {COLOR}"
    yield "", f"{tool}: {question.about}", "dim"
    yield "", "", ""
    yield "", "The tool asks:", "bold"
    fold = None if whole else question.message_fold
    shown = question.message if fold is None else first_units(question.message, fold)
    yield from (("  “ ", line, "") for line in shown.split("\n"))
    if len(shown) < len(question.message):
        yield "  ", f"… {len(question.message) - len(shown):,} more characters: m shows them", "italic"
    yield "", "", ""
    yield "", "Its form:", "bold"
    for number, field in enumerate(question.fields, 1):
        yield "  ", f"{number}. “{field.label}” ({_kind(field)})", ""
        if field.about:
            yield "     “ ", field.about, "dim"
        yield from (("     - ", choice.label, "") for choice in field.choices)
    yield "", "", ""
    yield "", question.goes_to, "italic"


def _kind(field: views.FormField) -> str:
    kind = "secret" if field.secret else field.kind_words
    return kind if field.required else f"{kind}, optional"


class Form:
    """A question, and what was filled in so far."""

    def __init__(self, tool: str, name: str, question: views.QuestionView, send: Send) -> None:
        """`name`: what its tool is called on a screen."""
        self.question = question
        self.fields = question.fields
        self.send = send
        self.texts: dict[str, str] = {}
        self._tool, self._name = tool, name

    def set(self, field: views.FormField, typed: str) -> None:
        """Take a text; the label of a choice stands for its value, and an empty text for nothing."""
        named = typed.strip()
        alike = [choice for choice in field.choices if choice.label.casefold() == named.casefold()]
        meant = [choice for choice in alike if choice.label == named] or alike
        # Where several are meant as much as each other, none is.
        chosen = meant[0].value if len(meant) == 1 else typed
        if chosen:
            self.texts[field.name] = chosen
        else:
            self.texts.pop(field.name, None)

    def words(self, *, whole: bool = False) -> Iterator[Line]:
        """The lines of the question."""
        return words_of(self._tool, self._name, self.question, whole=whole)

    @property
    def reply(self) -> QuestionReply:
        """What would be sent."""
        return QuestionReply("give", dict(self.texts))

    def lines(self) -> Iterator[str]:
        """The same, to be read."""
        for field in self.fields:
            text = self.texts.get(field.name)
            yield f"{field.label}: {'(nothing)' if text is None else Secrets.MASK if field.secret else text}"

    @property
    def lacks(self) -> views.FormField | None:
        """The first field that has to be filled in and is not."""
        return next((f for f in self.fields if f.required and f.name not in self.texts), None)


class QuestionDialogue:
    """A question that is answered with keys."""

    def __init__(self, form: Form, keys: Keys, screen: TextIO) -> None:
        self.form = form
        self._keys = keys
        self._sheet = Sheet(COLOR, screen, PROMPT)
        self._listener = Listener(keys, self._sheet)

    async def hold(self) -> QuestionReply:
        """Show the question and talk until it was answered."""
        with self._keys.taken():
            self._print(self.form.words())
            try:
                await self._listen()
                while True:
                    key = await self._listener.key(self._menu.keys() | {CLOSE, ENTER})
                    if key == ENTER:
                        await self._listener.again("Enter alone sends nothing: press one of the keys above.")
                        self._sheet.hint(LISTENING)
                    elif (reply := await self._step(key)) is not None:
                        return reply
            except EOFError:
                return await self._over(QuestionReply("close"), CLOSED)

    def count(self, waiting: int) -> None:
        """How many cards wait is said by them."""

    def say(self, words: str) -> None:
        """One last line about this question, when it was taken away."""
        self._print([("", words, "bold")])

    async def _step(self, key: str) -> QuestionReply | None:
        if key == CLOSE:
            return await self._over(QuestionReply("close"), CLOSED)
        if key == "k":
            return await self._over(QuestionReply("decline"), DECLINED)
        if key == "f":
            await self._fill()
        elif key == "m":
            self._print(self.form.words(whole=True))
        elif key == "s":
            if (missing := self.form.lacks) is not None:
                self.say(f"“{missing.label}” has to be filled in first: f does.")
            else:
                reply = self.form.reply
                problem = await self.form.send(reply)
                self.say(GIVEN if problem is None else f"Not sent: {problem}")
                if problem is None:
                    return reply
        await self._listen()
        return None

    async def _over(self, reply: QuestionReply, words: str) -> QuestionReply:
        await self.form.send(reply)
        self.say(words)
        return reply

    async def _fill(self) -> None:
        for number, field in enumerate(self.form.fields, 1):
            before = "" if field.secret else self.form.texts.get(field.name, "")
            words = f"{number}. {field.label[:40]} ({_kind(field)}): "
            typed = await self._listener.line(words, before, secret=field.secret)
            if typed is None:
                break  # Esc goes back to the menu, with what is there so far.
            self.form.set(field, typed)
        self._print([("", "What would be sent:", "bold"), *(("  ", line, "") for line in self.form.lines())])

    @property
    def _menu(self) -> dict[str, str]:
        items = {"f": "fill in", "s": GIVE.casefold()} if self.form.question.can_give else {}
        items["k"] = DECLINE.casefold()
        if self.form.question.message_fold is not None:
            items["m"] = "whole message"
        return items

    async def _listen(self) -> None:
        await self._listener.quiet()
        keys = "   ".join(f"[{key}] {words}" for key, words in [*self._menu.items(), ("Esc", "close")])
        self._print([("", "", ""), ("", keys, "")])
        self._sheet.hint("")

    def _print(self, lines: Iterable[Line]) -> None:
        room = max(MIN_WIDTH, self._sheet.width) - len(BAR) - 1
        # Whatever a line of the tool's looks like, it comes behind a bar of ours.
        self._sheet.print(
            Text(BAR, COLOR).append(lead, "default").append(piece, style or "default")
            for lead, text, style in lines
            for piece in wrap(text, room - len(lead))
        )


def question_dialogue(
    form: Form, stdin: TextIO, screen: TextIO, *, plain: bool
) -> QuestionDialogue | PlainQuestionDialogue:
    """The conversation about a question at this terminal."""
    if plain:
        return PlainQuestionDialogue(form, WordReader(stdin, screen))
    return QuestionDialogue(form, Keyboard(stdin, screen), screen)


class PlainQuestionDialogue:
    """A question that is read aloud and answered with words."""

    def __init__(self, form: Form, words: WordReader) -> None:
        self.form = form
        self._words = words
        self.say = words.say

    async def hold(self) -> QuestionReply:
        """Say the question and talk until it was answered."""
        for lead, text, _ in self.form.words(whole=True):
            self.say(lead + text)
        while True:
            await self._words.wait_until_quiet()
            ways = ["fill NUMBER", "send"] if self.form.question.can_give else []
            self.say(f"Type one of these and press Enter: {', '.join([*ways, 'rather not say', 'close'])}.")
            typed = await self._line()
            reply = QuestionReply("close") if typed is None else await self._understood(typed.strip().casefold())
            if reply is None:
                continue
            if (problem := await self.form.send(reply)) is None:
                self.say({"give": GIVEN, "decline": DECLINED}.get(reply.action, CLOSED))
                return reply
            self.say(f"Not sent: {problem}")

    def count(self, waiting: int) -> None:
        """Says nothing, as a card that is read aloud does not."""

    async def _line(self) -> str | None:
        try:
            return await self._words.line()
        except Crowded:
            self.say("That came together with other keys, and answers nothing.")
            return ""

    async def _understood(self, typed: str) -> QuestionReply | None:
        fields = self.form.fields
        word, _, number = typed.partition(" ")
        if typed == "close":
            return QuestionReply("close")
        if typed == DECLINE.casefold():
            return QuestionReply("decline")
        if typed == "send" and self.form.question.can_give:
            if (missing := self.form.lacks) is None:
                return self.form.reply
            self.say(f"“{missing.label}” has to be filled in first.")
        elif word == "fill" and number.isdigit() and 0 < int(number) <= len(fields):
            await self._fill(fields[int(number) - 1])
        else:
            self.say("That is not one of the answers." if typed else "An empty line does not answer.")
        return None

    async def _fill(self, field: views.FormField) -> None:
        self.say(f"“{field.label}” ({_kind(field)}):")
        if field.secret:
            with no_echo(self._words.stdin):
                typed = await self._line()
        else:
            typed = await self._line()
        self.form.set(field, typed or "")
        for line in self.form.lines():
            self.say(line)
