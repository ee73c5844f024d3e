"""What waits for an answer, and which programs live: those that asked and wait for it, and those that could give one.

A program holds names in the store for as long as it lives, and loses them by dying: one under which its journal writes,
and one for each call and run that it carries out. A program that shows the questions of all others takes one of a few
seats besides; who would rather refuse than let a question wait for nobody looks there first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal

from lastword import values
from lastword.errors import Tampered
from lastword.journal.records import OnceKey, data_of
from lastword.tools.guard import host_name

if TYPE_CHECKING:
    from lastword.consent import People
    from lastword.store import Record, Store

Asker = Literal["waits", "ended", "unknown"]
"""`waits`: it lives and hears the answer. `ended`: nobody hears it by itself. `unknown`: the question is of an earlier
version, which did not say who asked."""


async def asker_of(store: Store, facts: dict[str, Any], lives: Callable[[str], bool] | None = None) -> Asker:
    """How it stands with whoever asked this question. `lives` may remember which processes do, for many questions."""
    process = facts.get("process")
    if process and not (lives(process) if lives else does_live(store, process)):
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


def does_live(store: Store, process: str) -> bool:
    """Whether the process that journals call by this name still lives."""
    return store.is_held(f"process:{process}")


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


# Nobody has more pages open on one memory. Whoever comes later is not counted, and the others are.
SEATS = 8


@contextmanager
def attending(store: Store) -> Iterator[None]:
    """Show the questions of others for as long as this lasts."""
    taken = (store.hold(_seat(number)) for number in range(SEATS))
    release = next((release for release in taken if release is not None), None)
    try:
        yield
    finally:
        if release is not None:
            release()


def is_attended(store: Store) -> bool:
    """Whether any program shows the questions of others now."""
    return any(store.is_held(_seat(number)) for number in range(SEATS))


def _seat(number: int) -> str:
    return f"queue:{number}"


async def waiting_cards(store: Store, people: People | None) -> tuple[list[dict[str, Any]], dict[str, Tampered]]:
    """The cards that nobody has answered, oldest first, of some people or of all: their facts, and how it stands with
    whoever asked. Apart from them, by call, those that are not what was written."""
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
    # Looked at once for each process: a thousand cards of one program are no reason to look a thousand times.
    lives = cache(partial(does_live, store))
    return [facts | {"asker": await asker_of(store, facts, lives)} for facts in whole], damaged


async def waits_elsewhere(store: Store, session_id: str, own: str) -> bool:
    """Whether another program than the one of this name waits for an answer in this session."""
    for record in await store.current("asked", stream=session_id):
        facts = data_of(record)
        if not facts or facts.get("process") in ("", None, own):
            continue
        if await store.taken(OnceKey.answer(facts["nonce"])) is None and await asker_of(store, facts) == "waits":
            return True
    return False


class OwnName:
    """The name of this process in the records of what it asked and started, and the names that it holds besides."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.current = ""
        """Empty until it was needed."""
        self.program = ""
        """What a person knows this program by: it stands on every card."""
        self._let_go: list[Callable[[], None]] = []

    def get(self) -> str:
        """Held from now on until it is let go of, or we die."""
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
