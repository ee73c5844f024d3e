"""Taking back what a call of a session changed in its project, and remembering that it was taken back."""

from __future__ import annotations

import msgspec

from assent.editor import Change, ProjectProvider
from assent.editor.undo import undo
from assent.errors import EditError
from assent.journal import data_of
from assent.session import Session


class TakenBack(msgspec.Struct, frozen=True):
    """Which call, and which files are as they were before it."""

    call_id: str
    tool: str
    paths: tuple[str, ...]


async def take_back(session: Session, call_id: str | None = None) -> TakenBack:
    """Undo what one call changed: the one that is named, or the last that is not undone yet."""
    changes: dict[str, list[Change]] = {}
    undone: set[str] = set()
    for record in await session.journal.history(session.id):
        if record.kind == "changed_file" and record.data is not None:
            changes.setdefault(record.subject, []).append(msgspec.convert(data_of(record), Change))
        elif record.kind == "undone":
            undone.add(record.subject)
    open_calls = [id for id in changes if id not in undone]
    chosen = call_id or (open_calls[-1] if open_calls else None)
    if chosen is None:
        raise EditError("no call of this session has changed a file, or all are undone", hint="/runs lists the calls")
    if chosen not in open_calls:
        fact = "this call is undone already" if chosen in undone else "this call changed no file"
        raise EditError(fact, place=chosen, hint="/runs lists the calls")
    editor = session.editor
    if not isinstance(editor, ProjectProvider):
        raise EditError("there is no project open in which it could be undone", place=chosen)
    paths = await undo(editor, changes[chosen])
    session.journal.note(session.id, "undone", chosen, {"paths": paths})
    life = await session.journal.life(chosen)
    return TakenBack(chosen, (life.started or {}).get("tool", "the call"), tuple(paths))
