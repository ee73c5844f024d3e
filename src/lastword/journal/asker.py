"""Whether the program that asked a question still waits for the answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any, Literal

from lastword.store import Store

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
        return "waits" if is_held(store, f"call:{facts['call_id']}") else "ended"
    run_id = facts["call_id"].rpartition(".")[0]
    if run_id and await store.read(subject=run_id, kind="run_started", limit=1):
        # A program may go on living after it has left a run with its card waiting.
        return "waits" if is_held(store, f"run:{run_id}") else "ended"
    return "waits" if process else "unknown"


def does_live(store: Store, process: str) -> bool:
    """Whether the process that journals call by this name still lives."""
    return is_held(store, f"process:{process}")


def is_held(store: Store, name: str) -> bool:
    """Whether somebody holds this name. Whoever does loses it by dying."""
    return store.is_held(name)


def this_program() -> str:
    """What a person knows this program by."""
    return program_name(getattr(sys, "argv", []), os.getpid())


def program_name(command: Sequence[str], process_id: int) -> str:
    """The name of a program, the command where it is ours, and the number of its process.

    Nothing else of the command line: it may hold what is nobody's business.
    """
    path = PurePath(command[0] if command else "")
    name = path.parent.name if path.name == "__main__.py" else path.name
    ours = name == "lastword" and len(command) > 1 and command[1].isalpha()
    words = "a program" if not name or name.startswith("-") else f"lastword {command[1]}" if ours else name
    return f"{words}, process {process_id}"
