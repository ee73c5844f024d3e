"""What was asked for already for the person's present message: nobody is asked twice for what they have refused.

What does not live here: what a person is asked, and what a call does (the session's one door).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.errors import ArgumentsError
from lastword.journal import Journal, Life, data_of

if TYPE_CHECKING:
    from lastword.consent import Outcome
    from lastword.tools import ToolRegistry

JUST_DONE = "the same was just done"
"""On the card of a request that repeats the one before it."""

WENT_BACK = "went_back"
"""The kind of the records that say from which turn on a conversation does not count any more."""

# What does not fit fits no better when it is sent again at once.
_USELESS = ("invalid_arguments", "unknown_tool")


class Repetition:
    """The requests and scripts of one message of the person, and what became of them."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._denied: dict[tuple[str, bytes], Outcome] = {}
        self._scripts: dict[str, str] = {}
        self._last: tuple[tuple[str, bytes], Outcome] | None = None

    def outcome(self, name: str, arguments: dict[str, Any]) -> Outcome | None:
        """What became of an equal request that is not to be carried out again."""
        key = self._key(name, arguments)
        if (denied := self._denied.get(key)) is not None:
            return denied
        last = self._last
        return last[1] if last is not None and last[0] == key and last[1].kind in _USELESS else None

    def problem(self, name: str, arguments: dict[str, Any]) -> str | None:
        """What the card of a request has to say of the one before it."""
        key, last = self._key(name, arguments), self._last
        return JUST_DONE if last is not None and last[0] == key and last[1].success else None

    def remember(self, name: str, arguments: dict[str, Any], outcome: Outcome) -> None:
        """A request was carried out."""
        key = self._key(name, arguments)
        self._last = key, outcome
        if outcome.kind == "denied":
            self._denied[key] = outcome

    def script_result(self, script: str) -> str | None:
        """The result of an equal script of which the person denied a call."""
        return self._scripts.get(script.strip())

    async def remember_script(self, script: str, result: str, calls: list[Outcome], journal: Journal) -> None:
        """A script was run."""
        if any(call.kind == "denied" for call in calls):
            self._scripts[script.strip()] = result
        for call in calls:
            self._take(await journal.life(call.call_id))

    async def recall(self, journal: Journal, session_id: str, conversation_id: str, turn: int) -> None:
        """What was denied since this turn, in a process that has died meanwhile."""
        for record in await journal.history(session_id, kind=("requested", WENT_BACK)):
            facts = data_of(record)
            if record.kind == WENT_BACK:
                self._denied.clear()  # Turns that were given out anew begin with nothing.
                continue
            if facts["conversation"] != conversation_id or facts["turn"] < turn:
                continue
            life = await journal.life(record.subject)
            self._take(life)
            number = 0  # Of a script, its calls; they are numbered.
            while (call := await journal.life(f"{record.subject}.{number}")).asked or call.started or call.finished:
                self._take(call)
                number += 1

    def _take(self, life: Life) -> None:
        asked = life.asked
        if asked is not None and life.finished is not None and (outcome := life.outcome()).kind == "denied":
            self._denied[self._key(asked["tool"], asked["arguments"])] = outcome

    @property
    def denied(self) -> frozenset[tuple[str, bytes]]:
        """The calls that the person said no to, as tools and their arguments in canonical form."""
        return frozenset(self._denied)

    def _key(self, name: str, arguments: Any) -> tuple[str, bytes]:
        """What makes two requests the same: what would be shown and run, whether a default was written out or not."""
        tool = self._registry.find(name)
        try:
            return name, values.canonical(arguments if tool is None else values.decode(tool.validate(arguments)))
        except ArgumentsError:
            return name, values.canonical(arguments)
