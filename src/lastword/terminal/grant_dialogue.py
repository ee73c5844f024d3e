"""The second step of a card at a terminal: what would be allowed without asking again, read whole before it is granted.

It begins with exactly this call; whatever is looser is chosen here, one by one, and the sentence says all of it. A word
that is typed and then a key grant it; each change puts both back to the beginning. What can be chosen and what it means
comes from rules/grant_step.py, through a session of this program or through a server: nothing here can ask for more.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec
from msgspec.structs import replace

from lastword.card import Face, visible
from lastword.errors import LastWordError
from lastword.rules import GrantChoice
from lastword.terminal.keyboard import CLOSE, ENTER, Listener, WordReader
from lastword.terminal.tty import ROWS, SmallestSize

if TYPE_CHECKING:
    from lastword.card import responses
    from lastword.consent import UserAction
    from lastword.terminal.card_layout import Sheet

# The keys of what can be chosen, in their order: without those that mean something else here or on the card.
OPTION_KEYS = "123456789bcfhijklmoqstuxyz"
BACK = Face.GRANT_WORDS["back"].casefold()
YES = "a"
TYPE = "w"
FIRST_THE_WORD = f"Before this grants anything, type the word first: {TYPE} does."
# Many terminals cut off what no longer fits, and what nobody can read any more nobody agrees to.
NARROWER = "The window became narrower. Here it is again:"
TOO_LOW = "The window was too low for what you would agree to. Here it is again:"
HIGHER = "Make the window higher to read it."
UNTYPED = "Nothing was granted: the word {} was not typed, alone and by hand."
CROWDED = "grants nothing"
NO_KEYS_LEFT = "There are more lines than keys. With --plain, and on the page, all of them can be chosen."
TAKE_BACK = "You can take it back at any time: lastword grants, or /grants in a chat. What was done by then stays done."

_WHOLE = re.compile(r"[1-9]\d{0,8}")


Said: TypeAlias = "UserAction | GrantChoice | None"
"""What came of talking about a step: the yes to it, another choice, or None for the way back."""


class Steps(Protocol):
    """Where the second step of one card comes from."""

    why_none: str
    """Why this card has none, in a sentence; empty where it has one."""
    session_ends: str
    """When the session is over that a grant for it ends with, where the person cannot know; else empty."""

    async def look(self, choice: GrantChoice) -> responses.GrantStep:
        """What this choice would grant. Nothing is. A LastWordError says why that cannot be told."""

    def agree(self, step: responses.GrantStep) -> UserAction:
        """The yes to the card and to this step, which was looked at last."""


class Option(msgspec.Struct, frozen=True):
    """A line of the step: something that can be chosen, or a limit that can be set."""

    words: str
    is_chosen: bool = True
    choice: GrantChoice | None = None
    """What is chosen after it; None where there is nothing else to choose."""
    limit: str | None = None
    """What is asked for: the number of calls where it is empty, else the sum of this argument."""

    @property
    def can_change(self) -> bool:
        return self.choice is not None or self.limit is not None


def options_of(step: responses.GrantStep, choice: GrantChoice) -> list[tuple[str, list[Option]]]:
    """All lines of a step, below their headings, in the order of every surface."""
    found: list[tuple[str, list[Option]]] = []
    for bound in step.bounds:
        chosen = choice.loosened.get(bound.name, 0)
        many = len(bound.choices) > 1
        options = [
            Option(
                words,
                place == chosen,
                replace(choice, loosened=choice.loosened | {bound.name: place}) if many else None,
            )
            for place, words in enumerate(bound.choices)
        ]
        found.append((bound.shown_name, options))
    scopes = [Option(words, scope == step.scope, replace(choice, scope=scope)) for scope, words in step.scopes]
    found.append((Face.GRANT_WORDS["how_long"], scopes))
    calls = "no limit for calls" if choice.calls is None else f"{choice.calls} call{'' if choice.calls == 1 else 's'}"
    limits = [Option(calls, limit="")]
    for each in step.sums:
        most = choice.sums.get(each.name, "").strip()
        words = f"{visible(most)} of {each.shown_name} in all" if most else f"no limit for {each.shown_name} in all"
        limits.append(Option(words, limit=each.name))
    return [*found, (Face.GRANT_WORDS["ends_after"], limits)]


def limited(choice: GrantChoice, limit: str, typed: str) -> GrantChoice | None:
    """The choice with a limit as it was typed; None when that is no number of calls."""
    text = typed.strip()
    if limit:
        return replace(choice, sums=choice.sums | {limit: text})
    if text and _WHOLE.fullmatch(text) is None:
        return None
    return replace(choice, calls=int(text) if text else None)


def limit_words(step: responses.GrantStep, limit: str) -> str:
    """The question for a limit."""
    named = next((each.shown_name for each in step.sums if each.name == limit), "")
    what = f"How much of {named} in all" if limit else "How many calls"
    return what if step.needs_limit and not limit else f"{what} (empty: no limit)"


def agreement(step: responses.GrantStep, session_ends: str) -> Iterator[tuple[str, str, str]]:
    """What a person reads last: all that they would agree to, or why that cannot be. Leads, words and styles."""
    if step.problem:
        yield "", step.problem, "bold yellow"
        return
    yield "", step.sentence, "bold"
    if step.settling:
        yield "", step.settling, ""
        yield from (("  - ", other.summary, "") for other in step.settles)
    ends = step.ends or (session_ends if step.scope == "session" else "")
    yield "", " ".join(filter(None, (step.counting, ends, step.past, TAKE_BACK))), "dim"


async def _held(
    steps: Steps, say: Callable[[str], None], talk: Callable[[responses.GrantStep, GrantChoice], Awaitable[Said]]
) -> UserAction | None:
    """Show step after step, and talk about each, until one is granted."""
    choice: GrantChoice | None = GrantChoice()
    while choice is not None:
        try:
            step = await steps.look(choice)
        except LastWordError as problem:
            say(visible(str(problem)))
            return None
        if step.why_none:
            say(step.why_none)
            return None
        said = await talk(step, choice)
        if said is not None and not isinstance(said, GrantChoice):
            return said
        choice = said
    return None


class GrantDialogue:
    """The second step, answered with keys."""

    def __init__(self, steps: Steps, listener: Listener, sheet: Sheet) -> None:
        self._steps = steps
        self._listener = listener
        self._sheet = sheet
        self._keys: dict[str, Option] = {}
        self._smallest = SmallestSize(sheet.size)
        self._drawn_width = 0
        self._agreement_from = 0
        """Below how many lines of the sheet it begins."""
        self._is_typed = False

    async def hold(self) -> UserAction | None:
        """Show it and talk until it is granted; None when the person goes back to the card."""
        with self._smallest.watched():
            return await _held(self._steps, self._sheet.say, self._talk)

    async def _talk(self, step: responses.GrantStep, choice: GrantChoice) -> Said:
        # Whatever was typed was for what stood there before.
        self._is_typed = False
        self._show(step, choice)
        await self._listen(step)
        while True:
            key = await self._listener.key(self._menu(step).keys() | self._keys.keys() | {YES, CLOSE, ENTER})
            if key == CLOSE:
                return None
            if words := self._why_unread():
                self._sheet.say(words)
                return choice
            if key == ENTER:
                await self._listener.again("Enter alone grants nothing: press one of the keys above.")
            elif key in self._keys:
                if (changed := await self._change(step, choice, self._keys[key])) is not None:
                    return changed
                await self._listen(step)
            elif key == YES:
                if self._is_typed and step.digest:
                    return self._steps.agree(step)
                await self._listener.again(FIRST_THE_WORD if step.digest else step.problem)
            else:
                self._is_typed = await self._listener.is_word(step.word, f"Type {step.word} and press Enter: ")
                if not self._is_typed:
                    self._sheet.say(UNTYPED.format(step.word))
                await self._listen(step)

    def _why_unread(self) -> str:
        """Why it may not be there to be read, so that it has to be drawn anew before a key counts; or nothing."""
        self._smallest.look()
        if self._smallest.columns < self._drawn_width:
            return NARROWER
        # The sentence says all that was chosen above it. One that is longer than a usual window is read by scrolling.
        needed = self._sheet.printed - self._agreement_from + 1  # and the prompt
        return TOO_LOW if self._smallest.rows < min(needed, ROWS) else ""

    async def _change(self, step: responses.GrantStep, choice: GrantChoice, option: Option) -> GrantChoice | None:
        if option.limit is None:
            return option.choice
        before = choice.sums.get(option.limit, "") if option.limit else str(choice.calls or "")
        typed = await self._listener.line(f"{limit_words(step, option.limit)}: ", before)
        if typed is None:
            return None  # They changed their mind.
        changed = limited(choice, option.limit, typed)
        if changed is None:
            self._sheet.say(Face.GRANT_WORDS["not_whole"])
        return changed

    def _show(self, step: responses.GrantStep, choice: GrantChoice) -> None:
        sheet, keys = self._sheet, iter(OPTION_KEYS)
        self._smallest.begin()
        self._keys, self._drawn_width = {}, self._smallest.columns
        is_short = False
        is_first = choice == GrantChoice()
        begins = [("", Face.GRANT_WORDS["title"], "bold"), ("", step.begins, "dim"), ("", "", "")]
        sheet.rows([("", "", ""), *(begins if is_first else ())])
        for heading, options in options_of(step, choice):
            sheet.rows([("  ", heading, "bold")])
            for option in options:
                key = next(keys, "") if option.can_change else ""
                if key:
                    self._keys[key] = option
                is_short |= option.can_change and not key
                mark = ("● " if option.is_chosen else "○ ") if option.choice is not None else ""
                sheet.rows([(f"    {f'[{key}]' if key else '   '} {mark}", option.words, "")])
        sheet.rows([("", "", ""), *([("", NO_KEYS_LEFT, ""), ("", "", "")] if is_short else ())])
        self._agreement_from = sheet.printed
        sheet.rows(agreement(step, self._steps.session_ends))

    def _menu(self, step: responses.GrantStep) -> dict[str, str]:
        if not step.digest:
            return {}
        return {YES: Face.GRANT_WORDS["title"]} if self._is_typed else {TYPE: f"type the word {step.word}"}

    async def _listen(self, step: responses.GrantStep) -> None:
        await self._listener.quiet()
        self._sheet.menu([*self._menu(step).items(), ("Esc", BACK)], "")
        if self._why_unread() == TOO_LOW:
            self._sheet.hint(HIGHER)


class PlainGrantDialogue:
    """The second step, read aloud and answered with words."""

    def __init__(self, tool: str, steps: Steps, words: WordReader) -> None:
        self._tool = tool
        self._steps = steps
        self._words = words
        self._say = words.say
        self._options: list[Option] = []

    async def hold(self) -> UserAction | None:
        """Say it and talk until it is granted; None when the person goes back to the card."""
        return await _held(self._steps, self._say, self._talk)

    async def _talk(self, step: responses.GrantStep, choice: GrantChoice) -> Said:
        self._say_all(step, choice)
        ways = ["a number, to choose what it stands for", *([step.word] if step.digest else []), BACK]
        while True:
            typed = await self._words.ask(f"Type one of these and press Enter: {', '.join(ways)}.", CROWDED)
            if typed is None or typed.casefold() in (BACK, "back"):
                return None
            if typed.isascii() and typed.isdigit() and len(typed) < 4 and 0 < int(typed) <= len(self._options):
                if (changed := await self._change(step, choice, self._options[int(typed) - 1])) is not None:
                    return changed
            elif typed.casefold() == step.word and step.digest:
                words = f"Type the name of the tool, {self._tool}, and press Enter to grant it."
                if await self._words.ask(words, CROWDED) == self._tool:
                    return self._steps.agree(step)
                self._say(f"Nothing was granted: that was not {self._tool}, alone.")
            else:
                self._say("That is not one of the answers." if typed else "An empty line grants nothing.")

    async def _change(self, step: responses.GrantStep, choice: GrantChoice, option: Option) -> GrantChoice | None:
        if option.limit is None:
            return option.choice
        typed = await self._words.ask(f"{limit_words(step, option.limit)}? Type it and press Enter.", CROWDED)
        if typed is None:
            return None
        changed = limited(choice, option.limit, typed)
        if changed is None:
            self._say(Face.GRANT_WORDS["not_whole"])
        return changed

    def _say_all(self, step: responses.GrantStep, choice: GrantChoice) -> None:
        rows = options_of(step, choice)
        # The numbers stay, and what is chosen is in the sentence: whoever listens hears the list once.
        if choice == GrantChoice():
            self._say(f"{Face.GRANT_WORDS['title']}.")
            self._say(step.begins)
            number = 0
            for heading, options in rows:
                said = []
                for option in options:
                    number += option.can_change
                    lead = f"{number}, " if option.can_change else ""
                    said.append(f"{lead}{option.words}{' (chosen)' if option.is_chosen and option.choice else ''}")
                self._say(f"  {heading}: {'; '.join(said)}.")
        self._options = [option for _, options in rows for option in options if option.can_change]
        for lead, words, _ in agreement(step, self._steps.session_ends):
            self._say(f"{lead}{words}")
