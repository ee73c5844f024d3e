"""The commands of the chat that begin with a slash. Whatever else begins with one is for the model to understand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, get_args

from assent.errors import AssentError, SessionError, did_you_mean
from assent.journal import data_of
from assent.recovery import Decision
from assent.satellite import Satellite
from assent.session import Session
from assent.terminal.face import one_line
from assent.ways import Way

COMMANDS = {
    "help": "what can be typed",
    "tools": "the tools that the model may ask for",
    "state": "what the tools of this session know",
    "preset": "the presets; /preset NAME works under another one",
    "runs": "what was called and run in this session",
    "undo": "take back what the last call changed; /undo CALL for another",
    "resolve": "decide about a call of which nobody knows how it ended: /resolve CALL again, done or abandon",
    "quit": "leave; the session stays",
}

BY = "the person in the chat"
# What fits a screen. The whole list is in the journal.
MAX_RUNS = 20


class Talk(Protocol):
    """What the commands need of the chat."""

    satellite: Satellite
    ways: Mapping[str, Way]
    way: Way

    def choose(self, name: str) -> None: ...

    def print(self, *lines: str) -> None: ...

    def quote(self, text: str) -> None: ...


class Slash:
    """Obeys them."""

    def __init__(self, chat: Talk) -> None:
        self._chat = chat

    async def obey(self, name: str, rest: str) -> bool:
        """Do it. False when the person wants to leave."""
        if name == "quit":
            return False
        await getattr(self, f"_{name}")(rest)
        return True

    async def _help(self, rest: str) -> None:
        width = max(map(len, COMMANDS)) + 2
        self._chat.print(
            *(f"/{name:<{width}}{words}" for name, words in COMMANDS.items()),
            "Anything else goes to the model. A line that ends with \\ goes on in the next, where there is no editor.",
            "Ctrl+C cancels the running call and keeps what it has; again, it stops the turn. Ctrl+D leaves.",
        )

    async def _tools(self, rest: str) -> None:
        session = self._chat.satellite.session
        tools = session.registry.all(with_editor=session.editor is not None)
        for tool in tools:
            manifest = tool.manifest
            names = " ".join(p.name if p.required else f"[{p.name}]" for p in manifest.parameters)
            asks = "asks first" if manifest.require_approval else "runs without asking"
            self._chat.print(f"{tool.name} {names}".rstrip(), f"    {one_line(manifest.description, 200)} ({asks})")
        if not tools:
            self._chat.print("There are no tools. `assent new tool NAME` makes one; --tools DIR names a folder.")

    async def _state(self, rest: str) -> None:
        self._chat.quote(self._chat.satellite.session.format_state_for_prompt())

    async def _preset(self, rest: str) -> None:
        chat = self._chat
        if rest and rest not in chat.ways:
            raise AssentError(
                f"there is no preset {one_line(rest, 60)}",
                hint=did_you_mean(rest, chat.ways) or f"the presets are: {', '.join(chat.ways)}",
            )
        if rest:
            chat.choose(rest)
        for way in chat.ways.values():
            mark = "*" if way is chat.way else " "
            chat.print(f"{mark} {way.status()}; protocol {way.protocol}; model {one_line(way.model, 60)}")

    async def _runs(self, rest: str) -> None:
        session = self._chat.satellite.session
        lines: list[str] = []
        changed: set[str] = set()
        for record in await session.journal.history(session.id):
            data = data_of(record)
            if record.kind == "changed_file":
                changed.add(record.subject)
            elif record.kind == "undone":
                changed.discard(record.subject)
                lines.append(f"{record.subject}  undone: {', '.join(data.get('paths', ()))}")
            elif record.kind == "finished" and data:
                can = "  can be undone" if record.subject in changed else ""
                first = one_line(data["message"].split("\n", 1)[0], 80)
                lines.append(f"{record.subject}  {one_line(data['tool'], 60)}: {data['kind']}{can}  {first}")
            elif record.kind == "run_finished" and data:
                lines.append(f"{record.subject}  script: {data['status']}")
        doubtful = await session.in_doubt()
        lines += [f"{life.call_id}  outcome unknown; /resolve {life.call_id} decides" for life in doubtful]
        if len(lines) > MAX_RUNS:
            lines = [f"… {len(lines) - MAX_RUNS} earlier", *lines[-MAX_RUNS:]]
        self._chat.print(*(lines or ["Nothing was called in this session yet."]))

    async def _undo(self, rest: str) -> None:
        session = self._chat.satellite.session
        call_id = rest or await last_changed(session)
        if call_id is None:
            raise SessionError("no call of this session has changed a file that is not restored already")
        undone = await session.undo(call_id, by=BY)
        self._chat.satellite.tell(f"The person undid a call. {undone.message}")
        self._chat.quote(undone.message)
        self._chat.print("The model hears of it with your next message.")

    async def _resolve(self, rest: str) -> None:
        call_id, _, decision = rest.partition(" ")
        decided = next((known for known in get_args(Decision) if known == decision), None)
        if decided is None:
            raise AssentError("say which call and what to do about it", hint="/resolve CALL again, done or abandon")
        outcome = await self._chat.satellite.session.resolve(call_id, decided, by=BY)
        self._chat.satellite.tell(f"A person looked at the call of {outcome.tool} in doubt. {outcome.message}")
        self._chat.print(one_line(outcome.message, 300))


async def last_changed(session: Session) -> str | None:
    """The last call of the session that changed a file and was not taken back."""
    changed: dict[str, None] = {}
    for record in await session.journal.history(session.id):
        if record.kind == "changing_file":
            changed.pop(record.subject, None)
            changed[record.subject] = None
        elif record.kind == "undone":
            changed.pop(record.subject, None)
    return next(reversed(changed), None)
