"""The commands of the chat that begin with a slash. Whatever else begins with one is for the model to understand."""

from __future__ import annotations

from typing import Protocol, get_args

from lastword.call.recovery import Decision
from lastword.card.face import one_line
from lastword.card.items import CallItem, ScriptItem
from lastword.display import visible
from lastword.errors import LastWordError, did_you_mean
from lastword.terminal.picture import Picture
from lastword.terminal.transcript import Transcript, preset_status
from lastword.terminal.window import Window

COMMANDS = {
    "help": "what can be typed",
    "tools": "the tools that the model may ask for",
    "state": "what the tools of this session know",
    "preset": "the presets; /preset NAME works under another one",
    "runs": "what was called and run in this session",
    "answer": "show the card of another program that waits; /answer CALL for a certain one",
    "undo": "take back what the last call changed; /undo CALL for another",
    "resolve": "decide about a call of which nobody knows how it ended: /resolve CALL again, done or abandon",
    "quit": "leave; the session stays",
}

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

    async def obey(self, name: str, rest: str) -> bool:
        """Do it. False when the person wants to leave."""
        if name == "quit":
            return False
        try:
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

    async def _runs(self, rest: str) -> None:
        told = await self._chat.window.timeline()
        rows = [_call_row(call) for call in told.calls] + [_script_row(script) for script in told.runs]
        lines = [line for _, line in sorted(rows, key=lambda row: row[0])]
        if len(lines) > MAX_RUNS:
            lines = [f"… {len(lines) - MAX_RUNS} earlier", *lines[-MAX_RUNS:]]
        self._screen.print(*(lines or ["Nothing was called in this session yet."]))

    async def _answer(self, rest: str) -> None:
        waiting = [call for call in self._chat.picture.waiting_elsewhere() if rest in ("", call.id)]
        if not waiting:
            raise LastWordError("no other program asks for this" if rest else "no other program asks for anything")
        if len(waiting) > 1:
            self._screen.print(*(f"/answer {call.id}  {call.name} ({call.tool})" for call in waiting))
        else:
            self._chat.invite(waiting[0].id)

    async def _undo(self, rest: str) -> None:
        self._screen.quote(await self._chat.window.undo(rest or None))
        self._screen.print("The model hears of it with your next message.")

    async def _resolve(self, rest: str) -> None:
        call_id, _, decision = rest.partition(" ")
        decided = next((known for known in get_args(Decision) if known == decision), None)
        if decided is None:
            raise LastWordError("say which call and what to do about it", hint="/resolve CALL again, done or abandon")
        self._screen.quote(await self._chat.window.resolve(call_id, decided))


def _call_row(call: CallItem) -> tuple[float, str]:
    """When a call began, and a line about it."""
    began = call.asked_at or call.started_at or call.ended_at or 0.0
    if call.status == "doubt":
        return began, f"{call.id}  {call.tool}: outcome unknown; /resolve {call.id} decides"
    if call.end is None:
        return began, f"{call.id}  {call.tool}: {call.status}"
    can = f"  undone by {call.undone_by}" if call.undone_by else "  can be undone" if call.changed else ""
    first = call.end.message.split("\n", 1)[0][:80]
    return began, f"{call.id}  {call.tool}: {call.end.kind}{can}  {first}"


def _script_row(script: ScriptItem) -> tuple[float, str]:
    return script.at, f"{script.id}  script: {script.status}"
