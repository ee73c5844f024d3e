"""The conversation about a question of a running tool: fill it in, send it, or leave it.

It has a frame, a colour and keys of its own, so that nobody takes it for a card that asks for consent: none of the keys
that answer a card answers this, and nothing is sent before the person has seen what is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

import msgspec
from rich.console import Console
from rich.text import Text

from lastword.consent import MASK
from lastword.display import first_units
from lastword.terminal.card_layout import MIN_WIDTH
from lastword.terminal.keyboard import CLOSE, ENTER, LISTENING, UNQUIET, Crowded, Keyboard, Keys, WordReader
from lastword.terminal.tty import no_echo, size_of, wrap

if TYPE_CHECKING:
    from lastword.card import views

BAR = "┆ "
PROMPT = "┆ ? "
COLOR = "magenta"
CLOSED = "Closed without an answer."
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


def words_of(call: views.CallItem, question: views.QuestionView, *, whole: bool = False) -> Iterator[Line]:
    """The lines of the question: ours, and the tool's own words as a quotation."""
    yield "", f"? {call.name} wants to know something", f"bold {COLOR}"
    yield "", f"{call.tool}: {question.about}", "dim"
    yield "", "", ""
    yield "", "The tool asks:", "bold"
    shown = question.message if whole else _beginning(question)
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


def _beginning(question: views.QuestionView) -> str:
    fold = question.message_fold
    return question.message if fold is None else first_units(question.message, fold)


def _kind(field: views.FormField) -> str:
    kind = "secret" if field.secret else field.kind_words
    return kind if field.required else f"{kind}, optional"


class _Answers:
    """What was filled in so far."""

    def __init__(self, fields: Iterable[views.FormField]) -> None:
        self.fields = tuple(fields)
        self.texts: dict[str, str] = {}

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

    def lines(self) -> Iterator[str]:
        """What would be sent."""
        for field in self.fields:
            text = self.texts.get(field.name)
            yield f"{field.label}: {'(nothing)' if text is None else MASK if field.secret else text}"

    @property
    def lacks(self) -> views.FormField | None:
        """The first field that has to be filled in and is not."""
        return next((f for f in self.fields if f.required and f.name not in self.texts), None)


class QuestionDialogue:
    """A question that is answered with keys."""

    def __init__(self, call: views.CallItem, keys: Keys, screen: TextIO, send: Send) -> None:
        assert call.question is not None
        self._call = call
        self._question = call.question
        self._keys = keys
        self.send = send
        self._answers = _Answers(call.question.fields)
        self._console = Console(file=screen, highlight=False, markup=False, emoji=False)
        self._is_at_prompt = False

    async def hold(self) -> QuestionReply:
        """Show the question and talk until it was answered."""
        with self._keys.taken():
            self._print(words_of(self._call, self._question))
            try:
                await self._listen()
                while True:
                    key = await self._keys.key(self._menu.keys() | {CLOSE, ENTER})
                    if key is None or key == ENTER:
                        self._hint(
                            UNQUIET if key is None else "Enter alone sends nothing: press one of the keys above."
                        )
                        await self._quiet()
                        self._hint(LISTENING)
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
            return await self._over(QuestionReply("decline"), "You would rather not say.")
        if key == "f":
            await self._fill()
        elif key == "m":
            self._print(words_of(self._call, self._question, whole=True))
        elif key == "s":
            if (missing := self._answers.lacks) is not None:
                self._print([("", f"“{missing.label}” has to be filled in first: f does.", "bold")])
            else:
                reply = QuestionReply("give", dict(self._answers.texts))
                problem = await self.send(reply)
                if problem is None:
                    self._print([("", "Your answer was sent.", "bold")])
                    return reply
                self._print([("", f"Not sent: {problem}", "bold")])
        await self._listen()
        return None

    async def _over(self, reply: QuestionReply, words: str) -> QuestionReply:
        await self.send(reply)
        self._print([("", words, "bold")])
        return reply

    async def _fill(self) -> None:
        for number, field in enumerate(self._answers.fields, 1):
            words = f"{PROMPT}{number}. {field.label[:40]} ({_kind(field)}): "
            self._clear()
            before = "" if field.secret else self._answers.texts.get(field.name, "")
            typed = await self._keys.line(words, before, secret=field.secret)
            if typed is None:
                break  # Esc goes back to the menu, with what is there so far.
            self._answers.set(field, typed)
        self._print([("", "What would be sent:", "bold"), *(("  ", line, "") for line in self._answers.lines())])

    @property
    def _menu(self) -> dict[str, str]:
        items = {"f": "fill in", "s": GIVE.casefold()} if self._question.can_give else {}
        items["k"] = DECLINE.casefold()
        if self._question.message_fold is not None:
            items["m"] = "whole message"
        return items

    async def _listen(self) -> None:
        await self._quiet()
        keys = "   ".join(f"[{key}] {words}" for key, words in [*self._menu.items(), ("Esc", "close")])
        self._print([("", "", ""), ("", keys, "")])
        self._hint("")

    async def _quiet(self) -> None:
        if not await self._keys.wait_until_quiet(lambda: self._hint(UNQUIET)):
            raise EOFError

    def _print(self, lines: Iterable[Line]) -> None:
        self._clear()
        room = max(MIN_WIDTH, size_of(self._console.file)[0]) - len(BAR) - 1
        for lead, text, style in lines:
            for piece in wrap(text, room - len(lead)):
                # Whatever a line of the tool's looks like, it comes behind a bar of ours.
                line = Text(BAR, COLOR).append(lead, "default").append(piece, style or "default")
                self._console.print(line, no_wrap=True, overflow="ignore", crop=False)

    def _hint(self, words: str) -> None:
        if not self._console.is_terminal or self._console.is_dumb_terminal:
            return
        self._clear()
        self._console.print(Text(PROMPT, COLOR).append(words, "italic default"), end="", soft_wrap=True)
        self._is_at_prompt = True

    def _clear(self) -> None:
        if self._is_at_prompt:
            self._console.file.write("\r\x1b[K")
            self._console.file.flush()
            self._is_at_prompt = False


def question_dialogue(
    call: views.CallItem, stdin: TextIO, screen: TextIO, send: Send, *, plain: bool
) -> QuestionDialogue | PlainQuestionDialogue:
    """The conversation about a question at this terminal."""
    if plain:
        return PlainQuestionDialogue(call, stdin, screen, send)
    return QuestionDialogue(call, Keyboard(stdin, screen), screen, send)


class PlainQuestionDialogue:
    """A question that is read aloud and answered with words."""

    def __init__(self, call: views.CallItem, stdin: TextIO, screen: TextIO, send: Send) -> None:
        assert call.question is not None
        self._call = call
        self._question = call.question
        self._stdin = stdin
        self._words = WordReader(stdin)
        self._screen = screen
        self.send = send
        self._answers = _Answers(call.question.fields)

    async def hold(self) -> QuestionReply:
        """Say the question and talk until it was answered."""
        for lead, text, _ in words_of(self._call, self._question, whole=True):
            self.say(lead + text)
        while True:
            await self._words.wait_until_quiet(lambda: self.say(UNQUIET))
            ways = ["fill NUMBER", "send"] if self._question.can_give else []
            self.say(f"Type one of these and press Enter: {', '.join([*ways, 'rather not say', 'close'])}.")
            typed = await self._line()
            reply = QuestionReply("close") if typed is None else await self._understood(typed.strip().casefold())
            if reply is None:
                continue
            if (problem := await self.send(reply)) is None:
                self.say(
                    {"give": "Your answer was sent.", "decline": "You would rather not say."}.get(reply.action, CLOSED)
                )
                return reply
            self.say(f"Not sent: {problem}")

    def count(self, waiting: int) -> None:
        """Says nothing, as a card that is read aloud does not."""

    def say(self, words: str) -> None:
        """Print one line."""
        self._screen.write(words + "\n")
        self._screen.flush()

    async def _line(self) -> str | None:
        try:
            return await self._words.line()
        except Crowded:
            self.say("That came together with other keys, and answers nothing.")
            return ""

    async def _understood(self, typed: str) -> QuestionReply | None:
        fields = self._answers.fields
        word, _, number = typed.partition(" ")
        if typed == "close":
            return QuestionReply("close")
        if typed == DECLINE.casefold():
            return QuestionReply("decline")
        if typed == "send" and self._question.can_give:
            if (missing := self._answers.lacks) is None:
                return QuestionReply("give", dict(self._answers.texts))
            self.say(f"“{missing.label}” has to be filled in first.")
        elif word == "fill" and number.isdigit() and 0 < int(number) <= len(fields):
            await self._fill(fields[int(number) - 1])
        else:
            self.say("That is not one of the answers." if typed else "An empty line does not answer.")
        return None

    async def _fill(self, field: views.FormField) -> None:
        self.say(f"“{field.label}” ({_kind(field)}):")
        if field.secret:
            with no_echo(self._stdin):
                typed = await self._line()
        else:
            typed = await self._line()
        self._answers.set(field, typed or "")
        for line in self._answers.lines():
            self.say(line)
