"""A conversation as lines on a screen: what was said, what tools reported and how they ended, each once.

What has changed comes in (window.py) and lines go out. Most changes have nothing to show. Texts are marked by the
server; here each line that is not ours gets a bar, so that none can pass for one of ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TextIO

from lastword.card import views, visible
from lastword.consent import Outcome
from lastword.terminal.model_words import ModelWords
from lastword.terminal.tty import MIN_WIDTH, fit, size_of, wrap

if TYPE_CHECKING:
    from lastword.terminal.progress import Progress
    from lastword.terminal.window import ItemChange, Replica

# What stands before words that a script wrote, or that came with an error.
OUTPUT = "┊ "
SAID = "  "
# Of a result, what a line on the screen shows. The model gets all of it, and /runs has it too.
MAX_RESULT = 200
# What a window that comes later is shown of the conversation so far. The page and the journal have all of it.
MAX_PAST = 8
# Changes that wait to be drawn, while a card has the screen to itself. More than this are drawn item by item.
MAX_PENDING = 1_000

_HOW = {
    "allowed": "allowed",
    "second": "allowed, with the second button,",
    "edited": "changed and allowed",
    "denied": "denied",
    "closed": "closed without an answer",
}

# Where no person answered; the page has the same words.
STANDING = {"auto": "auto-approved by", "standing": "not asked:", "ruled": "denied by"}

Act = Callable[[], None]


class Pending:
    """What has changed and was not drawn yet, in its order. It holds no more than the replica does."""

    def __init__(self) -> None:
        self._changes: deque[ItemChange | str] = deque()

    def __iter__(self) -> Iterator[ItemChange | str]:
        return iter(self._changes)

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add(self, changes: Iterable[ItemChange | str]) -> None:
        """Something has happened. What goes on about the same item is one change of it."""
        for change in changes:
            last = self._changes[-1] if self._changes else None
            if isinstance(change, tuple) and isinstance(last, tuple) and _id(last) == _id(change):
                self._changes[-1] = (last[0], change[1])
            else:
                self._changes.append(change)
        if len(self._changes) > MAX_PENDING:
            self._gather()

    def take(self) -> ItemChange | str:
        """The oldest, which is drawn now."""
        return self._changes.popleft()

    def _gather(self) -> None:
        """One change for each item, where its first one was."""
        gathered: dict[str, ItemChange | str] = {}
        for place, change in enumerate(self._changes):
            if isinstance(change, str):
                gathered[f"line {place}"] = change
                continue
            known = gathered.get(id := f"item {_id(change)}", change)
            assert isinstance(known, tuple)
            gathered[id] = (known[0], change[1])
        self._changes = deque(change for change in gathered.values() if change != (None, None))


def _id(change: ItemChange) -> str:
    item = change[1] or change[0]
    return "" if item is None else item.id


class Transcript:
    """What one window has shown of its conversation."""

    def __init__(self, replica: Replica, screen: TextIO, progress: Progress, *, plain: bool, can_answer: bool) -> None:
        self.told: set[str] = set()
        """Calls whose answer was given at this terminal, or said here already."""
        self.told_undone: set[str] = set()
        """Calls that were taken back at this terminal."""
        self._replica = replica
        self._screen = screen
        self._plain = plain
        self._can_answer = can_answer
        self._speech = ModelWords(screen, plain=plain)
        self.progress = progress

    @property
    def is_in_line(self) -> bool:
        """Whether the model is in the middle of a line."""
        return self._speech.is_in_line

    def finish(self) -> None:
        """End the line that is being written: something else is about to be."""
        self._speech.finish()
        self.progress.release()

    def print(self, *lines: str) -> None:
        """Lines of our own, between the model's words."""
        self._speech.finish()
        width = max(MIN_WIDTH, size_of(self._screen)[0] - 1)
        for line in lines:
            for piece in [line] if self._plain else wrap(line, width):
                self._screen.write(f"{piece}\n")
        self._screen.flush()

    def quote(self, text: str) -> None:
        """Marked words that are not ours, each line behind a bar, so that none can pass for one of ours."""
        bar = SAID if self._plain else OUTPUT
        width = max(MIN_WIDTH, size_of(self._screen)[0] - 1 - len(bar))
        for line in text.split("\n"):
            self.print(*(f"{bar}{piece}" for piece in ([line] if self._plain else wrap(line, width))))

    def complain(self, problem: Exception) -> None:
        """What could not be done, and why: its words may be a tool's or a server's."""
        self.quote(marked(problem))

    def greet(self, words: Iterable[str]) -> None:
        """The first lines, and the end of what was there before."""
        replica = self._replica
        tools = len(replica.settings.tools)
        self.print(
            *words,
            f"This is {preset_status(replica.preset)}.",
            f"{tools} tool{'' if tools == 1 else 's'}; session {replica.session}. /help says what else can be typed.",
        )
        past = [
            i
            for i in replica.items.values()
            if not isinstance(i, views.CallItem) or (i.card is None and i.session is None)
        ]
        for item in past[-MAX_PAST:]:
            for act in self._acts((None, item), is_past=True):
                act()

    def show(self, change: ItemChange | str) -> None:
        """Write what there is to show of a change, or a line of ours."""
        for act in self._acts(change):
            act()

    def has_to_show(self, change: ItemChange | str) -> bool:
        """Whether that would be anything."""
        return bool(self._acts(change))

    def _acts(self, change: ItemChange | str, *, is_past: bool = False) -> list[Act]:
        """What there is to show of a change: nothing of most."""
        if isinstance(change, str):
            return [lambda: self.print(change)]
        before, after = change
        match after:
            case views.MessageItem():
                return self._acts_of_message(before, after, is_past=is_past)
            case views.ScriptItem():
                printed = before.printed if isinstance(before, views.ScriptItem) else 0
                new = () if is_past or after.printed <= printed else after.lines[printed - after.printed :]
                missed = 0 if is_past else after.printed - printed - len(new)
                words = f"({missed:,} lines of the script's output are not shown here.)"
                return [
                    *([partial(self.print, words)] if missed > 0 else []),
                    *(partial(self.quote, line) for line in new),
                ]
            case views.CallItem():
                return self._acts_of_call(
                    before if isinstance(before, views.CallItem) else None, after, is_past=is_past
                )
        return [self._speech.finish] if isinstance(before, views.MessageItem) and before.open else []

    def _acts_of_message(self, before: views.Item | None, message: views.MessageItem, *, is_past: bool) -> list[Act]:
        if message.by == "assistant":
            if message.open:
                return [lambda: self._speech.say(message.id, message.text)]
            is_new = before is None or (isinstance(before, views.MessageItem) and before.open)
            if not is_new:
                return []
            acts: list[Act] = [lambda: self._speech.say(message.id, message.text, is_whole=True)]
            if message.reasoning:
                count = len(message.reasoning.split())
                acts.append(lambda: self.print(f"(It thought first, in {count} words; the page shows them.)"))
            if message.used:
                acts.append(lambda: self.print(f"({message.used}.)"))
            return acts
        if before is not None:
            return []
        if message.by == "lastword":
            return [lambda: self.quote(message.text) if message.problem else self.print(message.text)]
        if message.window == self._replica.window and not is_past:
            return []
        # A server that was started again does not know in which window something was said.
        words = "You said" if is_past or not message.window else "You, in another window"
        return [lambda: self._show_said(words, message.text)]

    def _show_said(self, words: str, text: str) -> None:
        if "\n" in text:
            self.print(f"{words}:")
            self.quote(text)
        else:
            self.print(f"{words}: {text}" if self._plain else f"{words} ▸ {text}")

    def _acts_of_call(self, before: views.CallItem | None, call: views.CallItem, *, is_past: bool) -> list[Act]:
        acts: list[Act] = []
        if call.session is not None:
            return acts  # What a tool of another program asks is answered there, on the page, or by its id.
        if before is None or before.status != call.status:
            acts.append(self._speech.finish)
        if call.card is not None and (before is None or before.card != call.card) and not self._can_answer:
            acts.append(lambda: self.print(f"{call.name} ({call.tool}) waits for an answer in another window."))
        reply = None if is_past or (before is not None and before.reply == call.reply) else call.reply
        if reply is not None and reply.how not in STANDING and call.id not in self.told:
            acts.append(partial(self.print, f"{call.name}: {answer_words(reply)}"))
        seen = before.reported_so_far if before is not None else 0
        for report in () if is_past else call.reports:
            if report.number > seen:
                acts.append(partial(self._report, call.id, report))
        if call.end is not None and (before is None or before.end is None):
            acts.append(lambda: self.print(self._ended(call)))
            if call.content:
                acts.append(lambda: self._tell_content(call))
            if call.changed and not is_past and call.undone_by is None:
                acts.append(lambda: self._tell_undo(call))
        was_undone = before is not None and before.undone_by is not None
        if call.undone_by is not None and not is_past and not was_undone and call.id not in self.told_undone:
            words = f"{call.name}: taken back by {call.undone_by}. As before: {', '.join(call.changed)}."
            acts.append(lambda: self.print(words))
        return acts

    def _report(self, call_id: str, report: views.CallReport) -> None:
        self._speech.finish()
        self.progress.report(call_id, report.text, report.id, report.fraction)

    def _ended(self, call: views.CallItem) -> str:
        assert call.end is not None
        how = "closed" if call.reply is not None and call.reply.how == "closed" else Outcome.IN_A_WORD[call.end.kind]
        if call.reply is not None and call.reply.how in STANDING and call.reply.how != "ruled":  # Its message says it.
            how += f", {STANDING[call.reply.how]} {call.reply.by}"
        first = call.end.message.split("\n", 1)[0]
        words = f"{call.tool} ({how}): {first[:MAX_RESULT]}{'…' if len(first) > MAX_RESULT else ''}"
        if self._plain:
            return words
        return fit(f"{'✓' if call.end.success else '✗'} {words}", size_of(self._screen)[0] - 1)

    def _tell_content(self, call: views.CallItem) -> None:
        """Name what it returned, and how to get it. A terminal draws no pictures."""
        for content in call.content:
            about = f": {content.alt}" if content.alt else ""
            self.quote(f"{content.kind} {content.name}, {content.media_type}, {content.size}{about}")
        self.print(f"{SAID}To keep: lastword show {call.id} --save DIR")

    def _tell_undo(self, call: views.CallItem) -> None:
        """Say how to take the changes back: the id has to be seen to be typed."""
        first, more = call.changed[0], len(call.changed) - 1
        what = f"{first} and {more} more" if more else first
        self.progress.report(call.id, f"{what} changed. To take it back: /undo {call.id}")


def marked(problem: Exception) -> str:
    """Why something could not be done. The words may be a tool's or a server's."""
    return visible(str(problem))


def preset_mark(preset: views.PresetChoice) -> str:
    """Whether it auto-approves, in two words: before every line of the person, where it stays while a turn runs."""
    return f"{preset.name}, {'AUTO-APPROVES' if preset.auto_approve else 'asks'}"


def preset_status(preset: views.PresetChoice) -> str:
    """The same, longer."""
    keys = "AUTO-APPROVES what tools allow" if preset.auto_approve else "asks before what needs approval"
    return f"preset {preset.name}: {keys}"


def answer_words(reply: views.CallReply) -> str:
    """Who answered, and what."""
    if reply.how in STANDING:
        return f"{STANDING[reply.how]} {reply.by}."
    words = f"answered by {reply.by}: {_HOW.get(reply.how, reply.how)}"
    return f"{words}, because: {reply.reason}" if reply.reason else f"{words}."
