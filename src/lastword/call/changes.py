"""What calls change in files: in the journal before it happens, and taken back when somebody wants it.

Before a tool's write, its call, its path, what the file holds and what it will hold are on disk; afterwards a short
record says that it happened. So whoever finds the journal after a crash knows what may have been written, and the file
itself says whether it was: it holds the one or the other. If it holds anything else, somebody has worked on it since,
and nothing is taken back. Neither is it when a record is not what was written: an undo writes what the journal says,
so whoever edits the journal could have it write anything.

What does not live here: restoring a file (editor/sealed.py, editor/project.py), and who may ask for it (session.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.consent import Outcome, outcome
from lastword.editor import Change, ProjectProvider, ScriptEditorProvider, folder_of
from lastword.errors import EditError, SessionError, StoreError
from lastword.journal import Journal, Life, data_of

if TYPE_CHECKING:
    from lastword.store import Record

# What one call may make the journal keep: files before and after, in base64. A tool that rewrites more than this in one
# call is a migration, and belongs into version control.
MAX_CALL_BYTES = 64_000_000


class Undone(msgspec.Struct, frozen=True):
    """A call whose changes were taken back."""

    call_id: str
    tool: str
    paths: tuple[str, ...]
    """The files that were restored; none when the call had not got so far as to change any."""
    message: str


async def last_changed(journal: Journal, session_id: str) -> str | None:
    """The last call of a session that changed a file and was not taken back."""
    changed: dict[str, None] = {}
    for record in await journal.history(session_id, kind=("changing_file", "undone")):
        if record.kind == "changing_file":
            changed.pop(record.subject, None)
            changed[record.subject] = None
        elif record.kind == "undone":
            changed.pop(record.subject, None)
    return next(reversed(changed), None)


class ChangeLog:
    """Keeps what one call changes. An approved call's changes are durable before they happen."""

    __slots__ = ("_bytes", "_call_id", "_durable", "_intended", "_journal", "_project", "_session_id")

    def __init__(
        self, journal: Journal, session_id: str, call_id: str, editor: ScriptEditorProvider, *, durable: bool
    ) -> None:
        self._journal = journal
        self._session_id = session_id
        self._call_id = call_id
        folder = folder_of(editor)
        self._project = None if folder is None else str(folder)
        self._durable = durable
        self._intended: dict[str, bytes | None] = {}
        self._bytes = 0

    async def will_change(self, change: Change) -> None:
        self._bytes += len(change.before or b"") + len(change.after or b"")
        if self._bytes > MAX_CALL_BYTES:
            raise EditError(
                f"one call has changed more than the {MAX_CALL_BYTES:,} bytes that can be kept for undo",
                place=change.path,
                hint="this file was not changed; split the work into several calls",
            )
        self._intended[change.path] = change.after
        facts = {"project": self._project, "change": msgspec.to_builtins(change)}
        if not self._durable:
            self._journal.note(self._session_id, "changing_file", self._call_id, facts)
            return
        try:
            await self._journal.changing_file(self._session_id, self._call_id, facts)
        except StoreError as problem:
            raise EditError(
                f"the change could not be written down before it happens, so it does not ({problem.fact})",
                place=change.path,
                hint=problem.hint,
            ) from problem

    def has_changed(self, change: Change) -> None:
        facts: dict[str, Any] = {"path": change.path, "left_mode": change.left_mode}
        if change.after != self._intended.get(change.path):
            # Another end than the intended one: an editor with a will of its own, or a call that took its part back.
            facts["after"] = msgspec.to_builtins(change.after)
            facts["made_folders"] = list(change.made_folders)
        self._journal.note(self._session_id, "changed_file", self._call_id, facts)


class KnownCall(msgspec.Struct):
    """A change as the journal knows it."""

    change: Change
    happened: bool = False
    """False when only the intention is on record."""


class Past(msgspec.Struct):
    """Everything the journal holds that an undo needs."""

    life: Life
    session_id: str
    tool: str
    project: str | None
    changes: list[KnownCall]


async def take_back(
    journal: Journal, open_editor: Callable[[Path | None], ScriptEditorProvider | None], call_id: str, *, by: str
) -> Undone:
    """Restore what a call changed, all of it or none, once. `open_editor` is told which folder the call worked in."""
    past = await _read(journal, call_id)
    editor = open_editor(None if past.project is None else Path(past.project))
    if not isinstance(editor, ProjectProvider):
        raise SessionError("there is no project here to restore files in", place=call_id, hint="--project DIR names it")
    if journal.is_running(past.life):
        raise SessionError("this call is still running", place=call_id, hint="cancel it, then undo it")
    steps = _what_happened(past, editor)
    if past.life.finished is not None and not Change.fold(steps):
        raise _changed_nothing(call_id)
    paths = tuple(await Change.take_back(editor, steps))
    result = None
    words = outcome.taken_back(past.tool, paths, _renames(steps))
    if past.life.in_doubt:
        assert past.life.started is not None
        result = Outcome(
            kind="cancelled",
            message=outcome.taken_back_in_doubt(past.tool, by, paths),
            call_id=call_id,
            tool=past.tool,
            approval=past.life.started["approval"],
        )
    if not await journal.undone(past.session_id, call_id, past.life, {"by": by, "paths": list(paths)}, result):
        raise SessionError(
            "somebody else has just decided about this call", place=call_id, hint="lastword show says how it stands"
        )
    return Undone(call_id, past.tool, paths, words)


async def _read(journal: Journal, call_id: str) -> Past:
    """The changes of a call, in order; refuses when there is nothing to take back."""
    past = Past(Life(call_id), "", "", None, [])
    pruned = False
    records = await journal.store.read(subject=call_id)
    # The very records that are acted upon: what is read a second time may be something else by then.
    await journal.store.prove(records)
    for record in records:
        past.session_id = record.stream
        pruned = pruned or (record.kind == "changing_file" and record.data is None)
        _add(past, record)
    past.tool = (past.life.started or past.life.finished or {}).get("tool", "")
    if not past.session_id:
        raise SessionError(
            "there is no such call in this journal", place=call_id, hint="--store names another journal, if it is there"
        )
    done = await journal.undone_already(call_id)
    if done is not None:
        raise SessionError(f"this call was taken back already, by {done['by']}", place=call_id)
    if pruned:
        raise SessionError("what this call changed was pruned from the journal, so it cannot be undone", place=call_id)
    if not past.changes:
        raise _changed_nothing(call_id)
    return past


def _changed_nothing(call_id: str) -> SessionError:
    return SessionError("this call changed no files", place=call_id, hint="there is nothing to take back")


def _add(past: Past, record: Record) -> None:
    past.life.add(record)
    facts = data_of(record)
    if not facts:
        return
    if record.kind == "changing_file":
        past.project = facts["project"]
        past.changes.append(KnownCall(msgspec.convert(facts["change"], Change)))
    elif record.kind == "changed_file":
        known = next((k for k in reversed(past.changes) if k.change.path == facts["path"]), None)
        if known is None:  # Its intention was pruned, which is told elsewhere.
            return
        known.change = msgspec.structs.replace(known.change, left_mode=facts["left_mode"])
        if "after" in facts:
            after = msgspec.convert(facts["after"], bytes | None)
            known.change = msgspec.structs.replace(known.change, after=after, made_folders=tuple(facts["made_folders"]))
        known.happened = True


def _what_happened(past: Past, editor: ProjectProvider) -> list[Change]:
    """The changes as they really were: where only the intention is on record, the file itself says how far it got."""
    by_path: dict[str, list[KnownCall]] = {}
    for known in past.changes:
        by_path.setdefault(known.change.path, []).append(known)
    result: list[Change] = []
    for path, chain in by_path.items():
        result += _reached(chain, editor.read_bytes(path), finished=past.life.finished is not None)
    return result


def _renames(steps: Sequence[Change]) -> dict[str, str]:
    """The new names of files that were moved, with their old ones: a rename is two changes, and one file."""
    found: dict[str, str] = {}
    gone = [step for step in Change.fold(steps) if step.after is None]
    for step in Change.fold(steps):
        if step.before is None and step.after is not None:
            old = next((one for one in gone if one.before == step.after), None)
            if old is not None:
                found[step.path] = old.path
                gone.remove(old)
    return found


def _reached(chain: Sequence[KnownCall], current: bytes | None, *, finished: bool) -> list[Change]:
    """The part of a file's changes that happened."""
    sure = max((number for number, known in enumerate(chain, 1) if known.happened), default=0)
    changes = [known.change for known in chain]
    for reached in range(len(chain), sure, -1):
        if changes[reached - 1].after == current:
            return changes[:reached]
    if sure or finished:
        # The last intentions came to nothing. What became of the file since then is for the undo to judge.
        return changes[:sure]
    if changes[0].before != current:
        return changes
    # Nothing was written, and yet folders may have been made for it.
    return [msgspec.structs.replace(changes[0], after=changes[0].before, left_mode=changes[0].mode)]
