"""The conversation about one card: draw it, wait for what means something, say what was answered.

Enter never approves. Esc closes the card. What cannot be undone, or does not say, wants two different acts, and to have
been seen whole: nothing of it may be folded away unopened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from lastword.card import Draft, Face, SecondAct, one_line
from lastword.terminal.card_layout import PLAIN_GRANT, Sheet, accent, plain_card, plain_diff, plain_ways
from lastword.terminal.grant_dialogue import GrantDialogue, PlainGrantDialogue, Steps
from lastword.terminal.keyboard import CLOSE, ENTER, Crowded, Keyboard, Keys, Listener, WordReader

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest, UserAction

CLOSED = "Closed without an answer."
EDITED = " (edited)"
# Beside the first button, and not beside the letters of the others: it is a yes.
SECOND = "2"
SECOND_WORDS = "allow the second"
SECOND_AS_IT_IS = "The second button takes the call as it was asked for, without your changes."
GRANT = "g"
GRANT_AS_IT_IS = "A grant is for the call as it was asked for, without your changes."
UNSEEN = "Not all of this is shown: {} shows it."


class _Conversation:
    """What the conversation about a card knows, whether it is drawn or read aloud."""

    def __init__(self, request: ApprovalRequest, waiting: int, steps: Steps | None) -> None:
        """`steps` says what could be granted from the card, where that can be found out."""
        self._request = request
        self._face = face = Face.of(request)
        self._draft = Draft(request)
        self._waiting = waiting
        is_folded = face.arguments_hidden or face.message.hidden or any(p.hidden for _, p in face.arguments)
        self._unseen = {key for key, hidden in (("v", is_folded), ("p", face.diff_hidden)) if hidden}
        """The keys that show what the face folds away."""
        self._why_no_step = "" if steps is None else steps.why_none
        self._steps = None if self._why_no_step else steps

    @property
    def edits(self) -> dict[str, str]:
        """What the person changed before they answered, as they typed it."""
        return self._draft.edits

    @property
    def _primary(self) -> str:
        return self._face.primary + (EDITED if self._draft.is_changed else "")

    async def _allow(self) -> UserAction | None:
        """Yes, if it is meant. None when the card still waits, here and below."""
        return self._chosen(self._primary, self._draft.allow()) if await self._is_meant() else None

    async def _allow_second(self) -> UserAction | None:
        """Yes, with the second button."""
        if self._draft.is_changed:
            await self._refuse(SECOND_AS_IT_IS)
        elif await self._is_meant():
            return self._chosen(self._face.second, self._request.allow_second())
        return None

    async def _allow_all_like_it(self, steps: Steps) -> UserAction | None:
        """The second step: what else would be allowed, with this call."""
        if self._draft.is_changed or self._unseen:
            await self._refuse(GRANT_AS_IT_IS if self._draft.is_changed else UNSEEN.format(self._way_to_see()))
            return None
        action = await self._step_dialogue(steps).hold()
        if action is None:
            await self._go_on()
            return None
        return self._chosen(Face.GRANT_WORDS["title"], action)

    async def _is_meant(self) -> bool:
        """Whether saying yes is enough, or what else it takes was done."""
        if (second_act := self._face.second_act) is None:
            return True
        if self._unseen:
            await self._refuse(UNSEEN.format(self._way_to_see()))
        elif await self._is_done(second_act):
            return True
        else:
            await self._go_on()
        return False

    def _chosen(self, words: str, action: UserAction) -> UserAction:
        return self._answer(f"You chose: {words}", action)

    def _answer(self, words: str, action: UserAction, end: str = ".") -> UserAction:
        """Say what was answered. `end`: of the sentence, where it is read aloud."""
        raise NotImplementedError

    async def _refuse(self, words: str) -> None:
        """Say why that answers nothing."""
        raise NotImplementedError

    async def _is_done(self, second_act: SecondAct) -> bool:
        """Whether what a yes takes besides the press was done, by hand."""
        raise NotImplementedError

    def _way_to_see(self) -> str:
        """What shows the rest of the card."""
        raise NotImplementedError

    def _step_dialogue(self, steps: Steps) -> GrantDialogue | PlainGrantDialogue:
        """The conversation about the second step."""
        raise NotImplementedError

    async def _go_on(self) -> None:
        """The card still waits."""

    def _whole(self, *, exact: bool = False) -> Face:
        """The face with nothing folded away."""
        return Face.of(self._request, fold=False, exact=exact)


class CardDialogue(_Conversation):
    """A card that is answered with keys."""

    def __init__(
        self,
        request: ApprovalRequest,
        keys: Keys,
        screen: TextIO,
        waiting: int = 0,
        steps: Steps | None = None,
        close_words: str = "close",
    ) -> None:
        """`close_words`: what Esc does."""
        super().__init__(request, waiting, steps)
        self._close_words = close_words
        self._sheet = Sheet(accent(self._face), screen)
        self._keyboard = keys
        self._listener = Listener(keys, self._sheet)

    async def hold(self) -> UserAction:
        """Draw the card and talk until there is an answer."""
        with self._keyboard.taken():
            self._sheet.card(self._face, self._waiting, self._why_no_step)
            try:
                await self._go_on()
                while True:
                    key = await self._listener.key(self._menu.keys() | {CLOSE, ENTER})
                    if (action := await self._step(key)) is not None:
                        return action
            except EOFError:
                return self._answer(CLOSED, self._request.close())

    async def confirm(self) -> bool:
        """Draw the card whole and ask for the second act alone: the first was done elsewhere, by a command."""
        with self._keyboard.taken():
            self._sheet.card(self._whole(), self._waiting)
            try:
                return self._face.second_act is None or await self._is_done(self._face.second_act)
            except EOFError:
                return False

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
        request = self._request
        if key == CLOSE:
            return self._answer(CLOSED, request.close())
        if key == ENTER:
            await self._listener.again("Enter alone does not answer: press one of the keys above.")
        elif key == "a":
            return await self._allow()
        elif key == SECOND and self._face.second:
            return await self._allow_second()
        elif key == GRANT and self._steps is not None:
            return await self._allow_all_like_it(self._steps)
        elif key == "d":
            return self._chosen(self._face.secondary, request.deny())
        elif key == "n" and self._face.offers_rest:
            return self._answer("Denied, and so is the rest of the script", request.deny_rest())
        elif key == "r":
            if reason := (await self._listener.line("Your reason, for the assistant: ") or "").strip():
                return self._answer(f"Denied: {one_line(reason)}", request.deny(reason))
            await self._go_on()
        elif key == "e":
            await self._edit()
            await self._go_on()
        elif key == "p":
            self._sheet.preview(self._whole())
            self._unseen.discard(key)
            await self._go_on()
        elif key == "v":
            self._sheet.card(self._whole(exact=True))
            self._unseen.clear()
            await self._go_on()
        return None

    async def _is_done(self, second_act: SecondAct) -> bool:
        word = second_act.word
        self._sheet.say(f"{second_act.why.capitalize()}.")
        if await self._listener.is_word(word, f"Type {word} and press Enter to go on: "):
            return True
        self._sheet.say(f"Not approved: the word {word} was not typed, alone and by hand.")
        return False

    async def _refuse(self, words: str) -> None:
        await self._listener.again(words)

    def _way_to_see(self) -> str:
        return min(self._unseen)

    def _step_dialogue(self, steps: Steps) -> GrantDialogue:
        return GrantDialogue(steps, self._listener, self._sheet)

    async def _go_on(self) -> None:
        """Show the keys as soon as they count."""
        await self._listener.quiet()
        self._sheet.menu([*self._menu.items(), ("Esc", self._close_words)], self._others)

    async def _edit(self) -> None:
        """Take changes until an empty line; then the menu says what would be approved now."""
        draft = self._draft
        self._sheet.say(f"Edit: {', '.join(one_line(name) for name in draft.names)}.")
        self._sheet.say("Type a name to change its value, or NAME=VALUE. An empty line goes back to the menu.")
        while typed := (await self._listener.line("Edit: ") or "").strip():
            name, equals, text = typed.partition("=")
            name = name.strip()
            if not equals:
                begin = draft.text_of(name)
                given = await self._listener.line(f"{one_line(name)} = ", begin, secret=draft.is_secret(name))
                if given is None or (given == begin and not draft.is_secret(name)):
                    continue
                text = given
            for line in draft.tell_change(name, text):
                self._sheet.say(line)
        if not draft.is_changed:
            self._sheet.say("Nothing was changed.")

    def _answer(self, words: str, action: UserAction, end: str = ".") -> UserAction:
        self._sheet.answer(words)
        return action

    @property
    def _menu(self) -> dict[str, str]:
        """The keys that mean something, with what they do."""
        shown = self._face
        # The dots say that this key asks once more.
        more = "…" if shown.second_act else ""
        items = {"a": self._primary + more}
        if shown.second:
            items[SECOND] = shown.second + more
        items["d"] = shown.secondary
        items["r"] = "deny with a reason"
        if shown.offers_rest:
            items["n"] = "deny the rest of the script"
        if self._steps is not None:
            items[GRANT] = Face.GRANT_WORDS["ask"][:1].lower() + Face.GRANT_WORDS["ask"][1:]
        if shown.editable:
            items["e"] = "edit"
        if shown.preview_label:
            items["p"] = shown.preview_label
        if shown.folded or shown.arguments:
            items["v"] = "show all" if shown.folded else "exact values"
        return items

    @property
    def _others(self) -> str:
        return f"({self._waiting} more waiting)" if self._waiting else ""


def card_dialogue(
    request: ApprovalRequest,
    stdin: TextIO,
    screen: TextIO,
    *,
    plain: bool,
    waiting: int = 0,
    steps: Steps | None = None,
    close_words: str = "close",
) -> CardDialogue | PlainCardDialogue:
    """The conversation about a card at this terminal."""
    if plain:
        return PlainCardDialogue(request, WordReader(stdin, screen), waiting, steps)
    return CardDialogue(request, Keyboard(stdin, screen), screen, waiting, steps, close_words)


class PlainCardDialogue(_Conversation):
    """A card that is read aloud and answered with words."""

    def __init__(
        self, request: ApprovalRequest, words: WordReader, waiting: int = 0, steps: Steps | None = None
    ) -> None:
        super().__init__(request, waiting, steps)
        self._words = words
        self.say = words.say

    def count(self, waiting: int) -> None:
        """Says nothing: a card that is read aloud is not interrupted, and the next one says that it waited."""

    async def hold(self) -> UserAction:
        """Say the card and talk until there is an answer."""
        self._say_all(plain_card(self._face, self._waiting, self._why_no_step))
        while True:
            ways = plain_ways(self._face, edited=self._draft.is_changed, grants=self._steps is not None)
            typed = await self._words.ask(ways, "answers nothing")
            if typed is None:
                return self._answer(CLOSED, self._request.close(), end="")
            action = await self._understood(typed)
            if action is not None:
                return action

    async def confirm(self) -> bool:
        """Say the card whole and ask for the second act alone: the first was done elsewhere, by a command."""
        self._unseen.clear()
        self._say_all(plain_card(self._whole()))
        return await self._is_meant()

    async def _understood(self, typed: str) -> UserAction | None:
        """What one line does: an answer, or None when the card still waits."""
        request, shown = self._request, self._face
        word, _, rest = typed.partition(" ")
        word, rest = word.casefold(), rest.strip()
        if word == "allow" and not rest:
            return await self._allow()
        if typed.casefold() == SECOND_WORDS and shown.second:
            return await self._allow_second()
        if self._steps is not None and _plain_words(typed) == _plain_words(PLAIN_GRANT):
            return await self._allow_all_like_it(self._steps)
        if word == "deny" and rest.casefold() == "the rest" and shown.offers_rest:
            return self._answer("Denied, and so is the rest of the script", request.deny_rest())
        if word == "deny":
            reason = rest[len("because") :].strip() if rest.casefold().startswith("because") else rest
            if not reason:
                return self._chosen(shown.secondary, request.deny())
            return self._answer(f"Denied: {one_line(reason)}", request.deny(reason), end="")
        if word == "edit" and shown.editable:
            self._edit(rest)
        elif word == "preview" and shown.preview_label:
            self._unseen.discard("p")
            self._say_all(plain_diff(self._whole()))
        elif word in ("all", "exactly"):
            self._unseen.clear()
            self._say_all(plain_card(self._whole(exact=True)))
        else:
            self.say("That is not one of the answers." if typed else "An empty line does not answer.")
        return None

    async def _is_done(self, second_act: SecondAct) -> bool:
        tool = self._request.tool
        await self._words.wait_until_quiet()
        self.say(f"{second_act.why.capitalize()}. Type the name of the tool, {tool}, and press Enter to go on.")
        try:
            typed = await self._words.line()
        except Crowded:
            typed = ""
        if typed is not None and typed.strip() == tool:
            return True
        self.say(f"Not approved: that was not {tool}, alone.")
        return False

    def _answer(self, words: str, action: UserAction, end: str = ".") -> UserAction:
        self.say(words + end)
        return action

    async def _refuse(self, words: str) -> None:
        self.say(words)

    def _way_to_see(self) -> str:
        return f"the answer {'all' if 'v' in self._unseen else 'preview'}"

    def _step_dialogue(self, steps: Steps) -> PlainGrantDialogue:
        return PlainGrantDialogue(self._request.tool, steps, self._words)

    def _edit(self, pair: str) -> None:
        name, equals, text = pair.partition("=")
        if not equals:
            self.say(f"An edit is: edit NAME=VALUE. The names are: {', '.join(self._draft.names)}.")
            return
        self._say_all(self._draft.tell_change(name.strip(), text))

    def _say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)


def _plain_words(typed: str) -> str:
    """Words as they are meant: a keyboard may have another apostrophe, or none."""
    return " ".join(typed.casefold().replace("'", "").replace("’", "").split())
