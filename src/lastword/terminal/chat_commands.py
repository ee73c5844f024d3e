"""The commands of the chat that begin with a slash, and the inbox that some of them number.

Whatever else begins with a slash is for the model to understand. Entries of the inbox are numbered as they were listed
last, so that a number means the card that was read beside it; news of them is one line, however many cards there are.
What does not live here: the conversation about one card (chat_cards.py).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from lastword.card import Face, one_line, responses
from lastword.errors import LastWordError, did_you_mean
from lastword.terminal.transcript import Transcript, preset_status
from lastword.tools.guard import refuse_below

if TYPE_CHECKING:
    from lastword.card import views
    from lastword.terminal.window import Replica, Window

COMMANDS = {
    "help": "what can be typed",
    "tools": "the tools that the model may ask for",
    "state": "what the tools of this session know",
    "preset": "the presets; /preset NAME works under another one",
    "runs": "what was called and run in this session",
    "tokens": "what the model's server counted for the answers of this conversation",
    "new": "begin another conversation",
    "conversations": "those that there are; /conversations WORDS finds some",
    "open": "come back to a conversation: /open ID",
    "inbox": "what waits in all programs; /inbox WORDS, tool= program= effect= newer=10m older=1h find some of it",
    "answer": "show the card of another program; /answer CALL, /answer 2 or /answer 2-5 as /inbox numbers them",
    "deny": "deny several cards of the last /inbox at once: /deny 2-5 REASON",
    "grants": "what you have granted from cards; /grants revoke ID takes one back",
    "undo": "take back what the last call changed; /undo CALL for another",
    "resolve": "decide about a call of which nobody knows how it ended: /resolve CALL done, abandon or again TOOL",
    "stop": "stop everything, also in other programs: deny what waits, cancel what runs, revoke every grant",
    "quit": "leave; the session stays",
}

# What is a person's to decide. A tool can write into a chat that it started, through a pipe.
DECIDING = ("answer", "deny", "undo", "resolve")

# What fits a screen. The whole list is in the journal.
MAX_RUNS = 20
# More than a screen holds is searched, and not read.
MAX_LISTED = 60
MAX_MISSED = 10
# Fewer than these are quicker read one by one than as a group.
MIN_GROUP = 4
# A filter is a name of these with a value, or a word that has to be in the entry.
FILTERS = ("tool", "program", "effect", "newer", "older")
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Talk(Protocol):
    """What the commands need of the chat."""

    window: Window
    replica: Replica
    transcript: Transcript

    async def until_seen(self, event: str) -> None: ...

    def invite(self, call_id: str) -> None: ...


class ChatCommands:
    """Obeys them."""

    def __init__(self, chat: Talk) -> None:
        self._chat = chat
        self._window = chat.window
        self._screen = chat.transcript
        self._listing = NumberedInbox()

    async def obey(self, name: str, rest: str) -> bool:
        """Do it. False when the person wants to leave."""
        if name == "quit":
            return False
        try:
            if name in DECIDING or (name == "grants" and rest):
                refuse_below(f"/{name}")
            if name == "stop":
                refuse_below("/stop", hint="lastword stop does it, and says that a tool did")
            await getattr(self, f"_{name}")(rest)
        except LastWordError as problem:
            self._screen.complain(problem)
        return True

    async def _do(self, path: str, **body: Any) -> None:
        """Have the server do something, and wait until what it did can be seen here."""
        await self._chat.until_seen((await self._window.do(path, responses.Done, **body)).event)

    async def _help(self, rest: str) -> None:
        width = max(map(len, COMMANDS)) + 2
        self._screen.print(
            *(f"/{name:<{width}}{words}" for name, words in COMMANDS.items()),
            "Anything else goes to the model. A line that ends with \\ goes on in the next, where there is no editor.",
            "Ctrl+C cancels the running call and keeps what it has; again, it stops the turn. Ctrl+D leaves.",
        )

    async def _tools(self, rest: str) -> None:
        tools = self._chat.replica.settings.tools
        for tool in tools:
            names = " ".join(name if name in tool.required else f"[{name}]" for name in tool.parameters)
            asks = "asks first" if tool.asks else "runs without asking"
            self._screen.print(f"{tool.tool} {names}".rstrip(), f"    {tool.about} ({asks})")
        if not tools:
            self._screen.print("There are no tools. `lastword new tool NAME` makes one; --tools DIR names a folder.")

    async def _state(self, rest: str) -> None:
        self._screen.quote((await self._window.read("shared", responses.SharedText)).text)

    async def _preset(self, rest: str) -> None:
        chat = self._chat
        names = [preset.name for preset in chat.replica.settings.presets]
        if rest and rest not in names:
            raise LastWordError(
                f"there is no preset {one_line(rest, 60)}",
                hint=did_you_mean(rest, names) or f"the presets are: {', '.join(names)}",
            )
        if rest:
            await self._do("preset", name=rest)
        for preset in chat.replica.settings.presets:
            mark = "*" if preset.name == chat.replica.settings.preset else " "
            self._screen.print(f"{mark} {preset_status(preset)}; protocol {preset.protocol}; model {preset.model}")

    async def _tokens(self, rest: str) -> None:
        self._screen.print((await self._window.read("tokens", responses.TokenTotal)).words)

    async def _runs(self, rest: str) -> None:
        told = await self._window.read("timeline", responses.SessionTimeline)
        rows = [(script.at, f"{script.id}  script: {script.status}") for script in told.runs]
        rows = [*map(_call_row, told.calls), *rows]
        lines = [line for _, line in sorted(rows, key=lambda row: row[0])]
        if len(lines) > MAX_RUNS:
            lines = [f"… {len(lines) - MAX_RUNS} earlier", *lines[-MAX_RUNS:]]
        self._screen.print(*(lines or ["Nothing was called in this session yet."]))

    async def _new(self, rest: str) -> None:
        await self._do("new")
        self._screen.print("A new conversation. /conversations lists the others.")

    async def _conversations(self, rest: str) -> None:
        told = await self._window.read(f"conversations?{urlencode({'words': rest})}", responses.ConversationsFound)
        found = told.conversations
        for entry in found[:MAX_RUNS]:
            self._screen.print(f"{'*' if entry.is_open else ' '} {entry.id}  {entry.title}")
            if entry.found:
                self._screen.print(f"{'':22}{entry.found}")
        if len(found) > MAX_RUNS:
            self._screen.print(f"… {len(found) - MAX_RUNS} more; /conversations WORDS finds them")
        if not found:
            self._screen.print("No conversation has these words." if rest else "There is none yet.")
        if told.unsearched:
            left = f"Of {told.unsearched} older ones only the titles were searched so far."
            self._screen.print(f"{left} The same again looks further.")

    async def _open(self, rest: str) -> None:
        if not rest:
            raise LastWordError("say which conversation", hint="/conversations lists them")
        await self._do("open", id=rest)
        self._screen.print(f"This is conversation {rest}.")

    async def _answer(self, rest: str) -> None:
        waiting = self._chat.replica.waiting_elsewhere()
        if re.fullmatch(r"[\d,-]{1,60}", rest):
            numbered = {entry.id for entry in self._listing.pick(rest)}
            waiting = [entry for entry in waiting if entry.id in numbered]
        elif rest:
            waiting = [entry for entry in waiting if entry.id == rest]
        elif len(waiting) > 1:
            await self._inbox("")
            waiting = []
        elif not waiting:
            raise LastWordError("no other program asks for anything")
        if rest and not waiting:
            raise LastWordError("no other program asks for this")
        for entry in waiting:
            self._chat.invite(entry.id)

    async def _inbox(self, rest: str) -> None:
        replica = self._chat.replica
        self._screen.print(*self._listing.lines(replica.inbox.values(), rest, replica.missed))

    async def _deny(self, rest: str) -> None:
        numbers, _, reason = rest.partition(" ")
        if not numbers:
            raise LastWordError("say which cards", hint="/deny 2-5 REASON, with the numbers of the last /inbox")
        waiting = self._chat.replica.inbox
        cards = [{"call_id": e.id, "digest": e.digest} for e in self._listing.pick(numbers) if e.id in waiting]
        results: tuple[responses.AnswerResult, ...] = ()
        if cards:
            body = {"cards": cards, "action": "deny", "reason": reason.strip() or None}
            done = await self._window.do("answers", responses.DoneSeverally, **body)
            await self._chat.until_seen(done.event)
            results = done.results
        for refused in (result for result in results if result.code is not None):
            self._screen.quote(f"{refused.call_id}: {refused.message}")
        self._screen.print(f"{sum(result.code is None for result in results)} denied.")

    async def _grants(self, rest: str) -> None:
        word, _, grant_id = rest.partition(" ")
        if word and (word != "revoke" or not grant_id.strip()):
            raise LastWordError("say which grant to take back", hint="/grants revoke ID; /grants lists them")
        if word:
            await self._window.do("grant_revoke", responses.Done, id=grant_id.strip())
            self._screen.print("Taken back. What it has started goes on; nothing more starts by it.")
            return
        found = (await self._window.read("grants", responses.GrantsFound)).grants
        for grant in found:
            self._screen.print(f"{grant.id}  {grant.sentence}")
            self._screen.print(f"    {grant.used}{f'; over: {grant.over}' if grant.over else ''}")
        if not found:
            self._screen.print(Face.NO_GRANTS)

    async def _undo(self, rest: str) -> None:
        before = self._chat.replica.undone()
        done = await self._window.do("undo", responses.DoneInWords, call_id=rest or None)
        await self._chat.until_seen(done.event)
        self._screen.told_undone |= self._chat.replica.undone() - before
        self._screen.quote(done.message)
        self._screen.print("The model hears of it with your next message.")

    async def _stop(self, rest: str) -> None:
        self._screen.quote((await self._window.do("stop_everything", responses.DoneInWords)).message)

    async def _resolve(self, rest: str) -> None:
        call_id, _, said = rest.partition(" ")
        decision, _, word = said.partition(" ")
        if decision not in ("again", "done", "abandon"):
            raise LastWordError(
                "say which call and what to do about it", hint="/resolve CALL done, abandon or again TOOL"
            )
        if decision == "again" and not word:
            raise LastWordError(
                "nobody knows whether it happened, so running it again takes the name of its tool as well",
                hint=f"/resolve {call_id} again TOOL",
            )
        body = {"call_id": call_id, "decision": decision, "word": word or None}
        self._screen.quote((await self._window.do("resolve", responses.DoneInWords, **body)).message)


def _call_row(call: views.CallItem) -> tuple[float, str]:
    """When a call began, and a line about it."""
    began = call.asked_at or call.started_at or call.ended_at or 0.0
    if call.status == "doubt":
        return began, f"{call.id}  {call.tool}: outcome unknown; /resolve {call.id} decides"
    if call.end is None:
        return began, f"{call.id}  {call.tool}: {call.status}"
    can = f"  undone by {call.undone_by}" if call.undone_by else "  can be undone" if call.changed else ""
    first = call.end.message.split("\n", 1)[0][:80]
    return began, f"{call.id}  {call.tool}: {call.end.kind}{can}  {first}"


class News:
    """What was said of the cards of other programs. One line is enough for many of them."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._said = 0
        """How many waited when it was said last."""

    def line(self, entries: Sequence[views.InboxEntry]) -> str | None:
        """What there is to say of those that wait now; None when it was said, or the last line still tells enough."""
        alive = [entry for entry in entries if entry.asker != "ended"]
        self._told &= {entry.digest for entry in alive}
        # Those that were told and are gone make no noise in which a new one could be missed.
        self._said = min(self._said, len(self._told))
        fresh = [entry for entry in alive if entry.digest not in self._told]
        if not fresh or (self._told and len(alive) < 2 * self._said):
            return None
        if len(alive) == 1:
            return f"Another program asks: {alive[0].name} ({alive[0].tool}). /answer shows the card."
        programs = len({entry.program for entry in alive})
        whose = "another program" if programs == 1 else f"{programs} other programs"
        return f"{len(alive)} cards of {whose} wait. /inbox lists them."

    def say(self, entries: Sequence[views.InboxEntry]) -> None:
        """It was said of these."""
        alive = [entry for entry in entries if entry.asker != "ended"]
        self._told |= {entry.digest for entry in alive}
        self._said = len(alive)


class NumberedInbox:
    """The entries as they were listed last, with their numbers."""

    def __init__(self) -> None:
        self._listed: list[views.InboxEntry] = []

    def lines(
        self,
        entries: Iterable[views.InboxEntry],
        wanted: str,
        missed: Iterable[views.InboxMissed] = (),
        now: float | None = None,
    ) -> list[str]:
        """What waits and fits, numbered, those alike in one line; apart from them those of programs that ended, and
        without numbers, because they are over, those that nobody answered in time."""
        words = wanted.split()
        whole = "all" in words
        fits = _Filter([word for word in words if word != "all"], time.time() if now is None else now)
        found = [entry for entry in entries if fits(entry)]
        alive = [entry for entry in found if entry.asker != "ended"]
        ended = [entry for entry in found if entry.asker == "ended"]
        self._listed = []
        lines = self._list(alive, whole=whole)
        if ended:
            lines += ["Of these the program that asked has ended, and an answer starts nothing by itself:"]
            lines += self._list(ended, whole=whole)
        over = [each for each in missed if fits(each.entry)]
        late = ["Nobody answered these in time. They are over, and nothing of them was done:"] if over else []
        late += _missed_lines(over)
        if not found:
            return ["Nothing waits that fits." if words else "Nothing waits for an answer.", *late]
        how = "/answer 1 shows a card, /answer 2-5 one after the other; /deny 2-5 REASON denies them all."
        return [*lines, how, *late]

    def _list(self, entries: Sequence[views.InboxEntry], *, whole: bool) -> list[str]:
        lines: list[str] = []
        gathered = [[entry] for entry in entries] if whole else groups(entries)
        for members in gathered[:MAX_LISTED]:
            first = len(self._listed) + 1
            self._listed += members
            entry, count = members[0], len(members)
            numbers = str(first) if count == 1 else f"{first}-{first + count - 1}"
            alike = f"{count} alike: " if count > 1 else ""
            who = entry.program or "this conversation"
            unknown = ", of which nobody knows whether it lives" if entry.asker == "unknown" else ""
            lines.append(f"{numbers:>7}  {alike}{entry.name} ({entry.tool}), {who}{unknown}. {entry.effect_words}.")
            lines.append(f"{'':9}{entry.summary}{'; …' if count > 1 else ''}")
        if len(gathered) > MAX_LISTED:
            lines.append(f"… {len(gathered) - MAX_LISTED} more lines: /inbox WORDS finds those with these words.")
        return lines

    def pick(self, numbers: str) -> list[views.InboxEntry]:
        """The entries with these numbers: `3`, `2-5`, `1,4-6`."""
        picked: dict[str, views.InboxEntry] = {}
        for part in numbers.split(","):
            found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
            if found is None:
                raise LastWordError(f"{part or numbers} is no number of the list", hint="/inbox lists what waits")
            first, last = int(found[1]), int(found[2] or found[1])
            if not 1 <= first <= last <= len(self._listed):
                raise LastWordError(f"there is no {part} in the last list", hint="/inbox lists what waits")
            picked |= {entry.id: entry for entry in self._listed[first - 1 : last]}
        return list(picked.values())


def groups(entries: Iterable[views.InboxEntry]) -> list[list[views.InboxEntry]]:
    """The entries in their order, those alike together where there are enough of them."""
    found: dict[str, list[views.InboxEntry]] = {}
    for entry in entries:
        found.setdefault(entry.alike, []).append(entry)
    gathered: list[list[views.InboxEntry]] = []
    for members in found.values():
        gathered += [members] if len(members) >= MIN_GROUP else [[entry] for entry in members]
    return sorted(gathered, key=lambda members: (members[0].asked_at, members[0].id))


def _missed_lines(missed: Sequence[views.InboxMissed]) -> list[str]:
    lines: list[str] = []
    for each in missed[-MAX_MISSED:]:
        when = time.strftime("%H:%M", time.localtime(each.at))
        who = each.entry.program or "this conversation"
        lines.append(f"{when:>7}  {each.entry.name} ({each.entry.tool}), {who}. {each.entry.summary}")
    if len(missed) > MAX_MISSED:
        lines.insert(0, f"{'':9}… {len(missed) - MAX_MISSED} earlier ones")
    return lines


class _Filter:
    def __init__(self, words: Sequence[str], now: float) -> None:
        self._words = [word.casefold() for word in words if "=" not in word]
        self._values: dict[str, str] = {}
        for name, _, value in (word.partition("=") for word in words if "=" in word):
            if name not in FILTERS or not value:
                raise LastWordError(f"there is no filter {name}=", hint="/inbox tool= program= effect= newer= older=")
            self._values[name] = value.casefold()
        self._newer, self._older = (
            now - _seconds(self._values.pop(name)) if name in self._values else None for name in ("newer", "older")
        )

    def __call__(self, entry: views.InboxEntry) -> bool:
        own = "this conversation"
        told = {"tool": f"{entry.tool} {entry.name}", "program": entry.program or own, "effect": entry.effect_words}
        text = " ".join([*told.values(), entry.sentence, entry.summary]).casefold()
        return (
            all(word in text for word in self._words)
            and all(value in told[name].casefold() for name, value in self._values.items())
            and (self._newer is None or entry.asked_at >= self._newer)
            and (self._older is None or entry.asked_at <= self._older)
        )


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise LastWordError(f"{text} is no time", hint="10m, 2h and 1d are")
    return int(found[1]) * UNITS[found[2]]
