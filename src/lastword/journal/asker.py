"""Whether the program that asked a question still waits for the answer."""

from __future__ import annotations

from typing import Any, Literal

from lastword.store import Store

Asker = Literal["waits", "ended", "unknown"]
"""`waits`: it lives and hears the answer. `ended`: nobody hears it by itself. `unknown`: the question is of an earlier
version, which did not say who asked."""


async def asker_of(store: Store, facts: dict[str, Any]) -> Asker:
    """How it stands with whoever asked this question."""
    process = facts.get("process")
    if process and not is_held(store, f"process:{process}"):
        return "ended"
    run_id = facts["call_id"].rpartition(".")[0]
    if run_id and await store.read(subject=run_id, kind="run_started", limit=1):
        # A program may go on living after it has left a run with its card waiting.
        return "waits" if is_held(store, f"run:{run_id}") else "ended"
    return "waits" if process else "unknown"


def is_held(store: Store, name: str) -> bool:
    """Whether somebody holds this name. Whoever does loses it by dying."""
    release = store.hold(name)
    if release is not None:
        release()
    return release is None
