"""The commands of the chat that begin with a slash. Whatever else begins with one is for the model to understand."""

from __future__ import annotations

from typing import Protocol, get_args

from lastword.call import Decision
from lastword.card import one_line, responses, views
from lastword.display import visible
from lastword.errors import LastWordError, did_you_mean
from lastword.terminal.inbox import NumberedInbox, is_numbers
from lastword.terminal.picture import Picture
from lastword.terminal.transcript import Transcript, preset_status
from lastword.terminal.window import Window
from lastword.tools.guard import refuse_below

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


class Talk(Protocol):
    """What the commands need of the chat."""

    window: Window
    picture: Picture
    transcript: Transcript

    async def until_seen(self, event: str) -> None: ...

    def invite(self, call_id: str) -> None: ...


class Slash:
    """Obeys them."""

    def __init__(self, chat: Talk) -> None:
        self._chat = chat
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
            self._screen.quote(visible(str(problem)))
        return True

    async def _help(self, rest: str) -> None:
        width = max(map(len, COMMANDS)) + 2
        self._screen.print(
            *(f"/{name:<{width}}{words}" for name, words in COMMANDS.items()),
            "Anything else goes to the model. A line that ends with \\ goes on in the next, where there is no editor.",
            "Ctrl+C cancels the running call and keeps what it has; again, it stops the turn. Ctrl+D leaves.",
        )

    async def _tools(self, rest: str) -> None:
        tools = self._chat.picture.settings.tools
        for tool in tools:
            names = " ".join(name if name in tool.required else f"[{name}]" for name in tool.parameters)
            asks = "asks first" if tool.asks else "runs without asking"
            self._screen.print(f"{tool.tool} {names}".rstrip(), f"    {tool.about} ({asks})")
        if not tools:
            self._screen.print("There are no tools. `lastword new tool NAME` makes one; --tools DIR names a folder.")

    async def _state(self, rest: str) -> None:
        self._screen.quote(await self._chat.window.shared())

    async def _preset(self, rest: str) -> None:
        chat = self._chat
        names = [preset.name for preset in chat.picture.settings.presets]
        if rest and rest not in names:
            raise LastWordError(
                f"there is no preset {one_line(rest, 60)}",
                hint=did_you_mean(rest, names) or f"the presets are: {', '.join(names)}",
            )
        if rest:
            await chat.until_seen(await chat.window.choose(rest))
        for preset in chat.picture.settings.presets:
            mark = "*" if preset.name == chat.picture.settings.preset else " "
            self._screen.print(f"{mark} {preset_status(preset)}; protocol {preset.protocol}; model {preset.model}")

    async def _tokens(self, rest: str) -> None:
        self._screen.print((await self._chat.window.tokens()).words)

    async def _runs(self, rest: str) -> None:
        told = await self._chat.window.timeline()
        rows = [_call_row(call) for call in told.calls] + [_script_row(script) for script in told.runs]
        lines = [line for _, line in sorted(rows, key=lambda row: row[0])]
        if len(lines) > MAX_RUNS:
            lines = [f"… {len(lines) - MAX_RUNS} earlier", *lines[-MAX_RUNS:]]
        self._screen.print(*(lines or ["Nothing was called in this session yet."]))

    async def _new(self, rest: str) -> None:
        await self._chat.until_seen(await self._chat.window.new())
        self._screen.print("A new conversation. /conversations lists the others.")

    async def _conversations(self, rest: str) -> None:
        told = await self._chat.window.conversations(rest)
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
        await self._chat.until_seen(await self._chat.window.open(rest))
        self._screen.print(f"This is conversation {rest}.")

    async def _answer(self, rest: str) -> None:
        waiting = self._chat.picture.waiting_elsewhere()
        if rest and is_numbers(rest):
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
        picture = self._chat.picture
        self._screen.print(*self._listing.lines(picture.inbox.values(), rest, picture.missed))

    async def _deny(self, rest: str) -> None:
        numbers, _, reason = rest.partition(" ")
        if not numbers:
            raise LastWordError("say which cards", hint="/deny 2-5 REASON, with the numbers of the last /inbox")
        waiting = self._chat.picture.inbox
        cards = [(e.id, e.digest) for e in self._listing.pick(numbers) if e.id in waiting]
        done = await self._chat.window.answers(cards, "deny", reason.strip() or None) if cards else None
        await self._chat.until_seen(done.event) if done is not None else None
        results = () if done is None else done.results
        for refused in (result for result in results if result.code is not None):
            self._screen.quote(f"{refused.call_id}: {refused.message}")
        self._screen.print(f"{sum(result.code is None for result in results)} denied.")

    async def _grants(self, rest: str) -> None:
        word, _, grant_id = rest.partition(" ")
        if word and (word != "revoke" or not grant_id.strip()):
            raise LastWordError("say which grant to take back", hint="/grants revoke ID; /grants lists them")
        if word:
            await self._chat.window.revoke_grant(grant_id.strip())
            self._screen.print("Taken back. What it has started goes on; nothing more starts by it.")
            return
        found = (await self._chat.window.grants()).grants
        for grant in found:
            self._screen.print(f"{grant.id}  {grant.sentence}")
            self._screen.print(f"    {grant.used}{f'; over: {grant.over}' if grant.over else ''}")
        if not found:
            self._screen.print(responses.NO_GRANTS)

    async def _undo(self, rest: str) -> None:
        before = self._chat.picture.undone()
        done = await self._chat.window.undo(rest or None)
        await self._chat.until_seen(done.event)
        self._screen.told_undone |= self._chat.picture.undone() - before
        self._screen.quote(done.message)
        self._screen.print("The model hears of it with your next message.")

    async def _stop(self, rest: str) -> None:
        self._screen.quote(await self._chat.window.stop_everything())

    async def _resolve(self, rest: str) -> None:
        call_id, _, said = rest.partition(" ")
        decision, _, word = said.partition(" ")
        decided = next((known for known in get_args(Decision) if known == decision), None)
        if decided is None:
            raise LastWordError(
                "say which call and what to do about it", hint="/resolve CALL done, abandon or again TOOL"
            )
        if decided == "again" and not word:
            raise LastWordError(
                "nobody knows whether it happened, so running it again takes the name of its tool as well",
                hint=f"/resolve {call_id} again TOOL",
            )
        self._screen.quote(await self._chat.window.resolve(call_id, decided, word or None))


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


def _script_row(script: views.ScriptItem) -> tuple[float, str]:
    return script.at, f"{script.id}  script: {script.status}"
