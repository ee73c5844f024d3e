"""The programs on one memory: which of them live, what waits for an answer of whom, and who could give one.

A program holds names in the store for as long as it lives, and loses them by dying: one under which its journal writes,
and one for each call and run that it carries out. A program that shows the questions of all others takes one of a few
seats besides; who would rather refuse than let a question wait for nobody looks there first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from lastword import values
from lastword.errors import Tampered
from lastword.journal.call_life import OnceKey, data_of
from lastword.tools.guard import host_name

if TYPE_CHECKING:
    from lastword.consent import People
    from lastword.store import Record, Store

Asker = Literal["waits", "ended", "unknown"]
"""`waits`: it lives and hears the answer. `ended`: nobody hears it by itself. `unknown`: the question is of an earlier
version, which did not say who asked."""


# Nobody has more pages open on one memory. Whoever comes later is not counted, and the others are.
SEATS = 8


class Programs:
    """The programs on one store. This one has a name from when it first needs it until it lets go of it, or dies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.current = ""
        """Our name in the records of what we asked and started. Empty until it was needed."""
        self.program = ""
        """What a person knows this program by: it stands on every card."""
        self._let_go: list[Callable[[], None]] = []

    def own_name(self) -> str:
        """Under which name this program holds what it asked and started, for as long as it lives."""
        if not self._let_go:
            self.current, self.program = values.new_id(), this_program()
            release = self._store.hold(f"process:{self.current}")
            assert release is not None, "a name that nobody can guess was held"
            # None when another journal of this process holds it: whoever runs below finds it all the same.
            self._let_go = [release, *filter(None, [self._store.hold(host_name())])]
        return self.current

    def let_go(self) -> None:
        for release in self._let_go:
            release()
        self.current, self._let_go = "", []

    def does_live(self, name: str) -> bool:
        """Whether the program that journals call by this name still lives."""
        return self._store.is_held(f"process:{name}")

    def is_another(self, name: str) -> bool:
        """Whether this is the name of another program, dead or alive."""
        return name not in ("", self.current)

    # Who could answer.

    @contextmanager
    def attending(self) -> Iterator[None]:
        """Show the questions of others for as long as this lasts."""
        taken = (self._store.hold(_seat(number)) for number in range(SEATS))
        release = next((release for release in taken if release is not None), None)
        try:
            yield
        finally:
            if release is not None:
                release()

    def is_attended(self) -> bool:
        """Whether any program shows the questions of others now."""
        return any(self._store.is_held(_seat(number)) for number in range(SEATS))

    # Who asked.

    async def asker_of(self, facts: dict[str, Any], lives: Callable[[str], bool] | None = None) -> Asker:
        """How it stands with whoever asked this question. `lives` may remember which live, for many questions."""
        store, process = self._store, facts.get("process")
        if process and not (lives or self.does_live)(process):
            return "ended"
        last = await store.read(subject=facts["call_id"], kind=("asked", "detached"), last=1)
        if last and last[0].kind == "detached":
            # A program may go on living after it has left a question to others. Whoever asks again by its id holds it.
            return "waits" if store.is_held(f"call:{facts['call_id']}") else "ended"
        run_id = facts["call_id"].rpartition(".")[0]
        if run_id and await store.read(subject=run_id, kind="run_started", limit=1):
            # A program may go on living after it has left a run with its card waiting.
            return "waits" if store.is_held(f"run:{run_id}") else "ended"
        return "waits" if process else "unknown"

    async def waiting_cards(self, people: People | None) -> tuple[list[dict[str, Any]], dict[str, Tampered]]:
        """The cards that nobody has answered, oldest first, of some people or of all: their facts, and how it stands
        with whoever asked. Apart from them, by call, those that are not what was written."""
        store = self._store
        waiting: list[tuple[Record, dict[str, Any]]] = []
        damaged: dict[str, Tampered] = {}
        # A call that is asked for again waits for an answer to its last question alone: nobody hears one to the others.
        for record in await store.current("asked"):
            try:
                facts = data_of(record)
            except Tampered as problem:
                damaged[record.subject] = problem
                continue
            is_shown = people is None or people.sees(facts.get("principal", ""))
            if facts and is_shown and await store.taken(OnceKey.answer(facts["nonce"])) is None:
                waiting.append((record, facts))
        # Somebody will say yes to what they are shown, so it must be what was written.
        try:
            await store.prove([record for record, _ in waiting])
        except Tampered:
            for record, _ in waiting:
                try:
                    await store.prove([record])
                except Tampered as problem:
                    damaged[record.subject] = problem
        whole = [facts for record, facts in waiting if record.subject not in damaged]
        # Looked at once for each program: a thousand cards of one are no reason to look a thousand times.
        lives = cache(self.does_live)
        return [facts | {"asker": await self.asker_of(facts, lives)} for facts in whole], damaged

    async def waits_elsewhere(self, session_id: str) -> bool:
        """Whether another program waits for an answer in this session."""
        for record in await self._store.current("asked", stream=session_id):
            facts = data_of(record)
            if not facts or not self.is_another(facts.get("process") or ""):
                continue
            unanswered = await self._store.taken(OnceKey.answer(facts["nonce"])) is None
            if unanswered and await self.asker_of(facts) == "waits":
                return True
        return False


def _seat(number: int) -> str:
    return f"queue:{number}"


def this_program() -> str:
    """What a person knows this program by."""
    return program_name(getattr(sys, "argv", ()), os.getpid())


def program_name(command: Sequence[str], process_id: int) -> str:
    """The name of a program, the command where it is ours, and the number of its process.

    Nothing else of the command line: it may hold what is nobody's business.
    """
    path = PurePath(command[0] if command else "")
    name = path.parent.name if path.name == "__main__.py" else path.name
    ours = name == "lastword" and len(command) > 1 and command[1].isalpha()
    words = "a program" if not name or name.startswith("-") else f"lastword {command[1]}" if ours else name
    return f"{words}, process {process_id}"
