"""What a list of edits would make of a project: worked out before anything is written, and before anybody is asked.

The card and the execution both call `plan`, so they cannot disagree. An edit is the arguments of the tool of that name
with its name as `action`; the tools for one file are batches of one.

Several replacements of text in one file are applied in the order they are given, each to what the one before left.
Every other edit must be the only one of its file: two lists of line numbers, or an edit of a file that is also renamed,
would mean something else to whoever wrote them than to whoever reads them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lastword.editor import Preview, ProjectProvider, ScriptEditorProvider
from lastword.editor.diff import FileDiff, diff_of
from lastword.editor.edits import insert, lines_of, replace
from lastword.editor.encoding import uniform_newline
from lastword.editor.recording import SealedEditor
from lastword.editor.tools.reading import no_such_file, text_of
from lastword.errors import EditError

# A card that shows more files than this is not read.
MAX_FILES = 100
# A batch with more edits is a program, and should be a script with a card for each file.
MAX_EDITS = 500

Edit = Mapping[str, Any]

_BARE_NEWLINE = re.compile(r"(?<!\r)\n")


@dataclass(frozen=True)
class EditStep:
    """What would happen to one file."""

    path: str
    base: str | None
    """Its text now; None when it is absent, or not text."""
    proposed: str | None
    """Its text afterwards; None when it would be gone from this path."""
    renamed_to: str | None = None

    @cached_property
    def diff(self) -> FileDiff:
        """The change itself. Comparing long texts takes a moment, so it is done once."""
        return diff_of(Preview(self.path, None, self.base, self.proposed, self.renamed_to))

    @property
    def line_count(self) -> int:
        """How many lines the file has afterwards, or had before it was deleted."""
        return len(lines_of((self.base if self.proposed is None else self.proposed) or ""))


async def plan(editor: ScriptEditorProvider, edits: Sequence[Edit]) -> list[EditStep]:
    """One step for each file, in the order in which they are first named; refuses the whole batch or nothing."""
    if not edits:
        raise EditError("there are no edits", hint="give at least one")
    if len(edits) > MAX_EDITS:
        raise EditError(f"{len(edits)} edits; at most {MAX_EDITS} are taken at once", hint="split them")
    steps: dict[str, EditStep] = {}
    actions: dict[str, str] = {}
    for number, edit in enumerate(edits, 1):
        path, action = edit["path"], edit["action"]
        try:
            if path in actions and {action, actions[path]} != {"replace_text"}:
                raise EditError(
                    f"{actions[path]} and {action} both name this file",
                    place=path,
                    hint="only replace_text may name a file several times; join the others into one edit",
                )
            steps[path] = await _STEPS[action](editor, edit, steps.get(path))
        except EditError as problem:
            if len(edits) > 1:
                problem.fact = f"{problem.fact} (edit {number} of {len(edits)}; nothing was changed)"
            raise
        actions[path] = action
    _refuse_crossing(steps)
    if len(steps) > MAX_FILES:
        raise EditError(f"{len(steps)} files; at most {MAX_FILES} are shown on one card", hint="split the batch")
    return _changing(list(steps.values()))


async def plan_fixes(editor: ProjectProvider, path: str) -> list[EditStep]:
    """What the safe fixes of the linters would change: in one file, or in every file that has findings."""
    if path:
        await text_of(editor, path)
    paths = [path] if path else list(editor.get_lint_errors())
    steps = []
    for file in paths:
        fixed = editor.get_fixed_content(file)
        text = None if fixed is None else await editor.get_file_content(file)
        if fixed is not None and text is not None and fixed != text:
            steps.append(EditStep(file, text, fixed))
    if not steps:
        raise EditError(
            "there is nothing that can be fixed by itself",
            place=path or None,
            hint="lint_files says what is found; what is left needs an edit",
        )
    if len(steps) > MAX_FILES:
        raise EditError(f"{len(steps)} files can be fixed; at most {MAX_FILES} at once", hint="name one file, by path")
    return steps


def show(editor: ProjectProvider, steps: Sequence[EditStep]) -> None:
    """Put every step on the card."""
    for step in steps:
        if step.renamed_to is not None:
            editor.show_rename(step.path, step.renamed_to)
        elif step.proposed is None:
            editor.show_deletion(step.path)
        else:
            editor.open_diff_editor(step.path, step.proposed)


async def apply(editor: SealedEditor, steps: Sequence[EditStep]) -> None:
    """Write every step, or none: what was written before one that failed is taken back."""
    for step in steps:
        try:
            if not await _write(editor, step):
                raise EditError("the editor did not write it", place=step.path, hint="look whether it is still there")
        except EditError as problem:
            if editor.changes:
                await _take_back(editor, problem)
            raise


async def _write(editor: SealedEditor, step: EditStep) -> bool:
    if step.renamed_to is not None:
        return await editor.rename_file(step.path, step.renamed_to)
    if step.proposed is None:
        return await editor.delete_file(step.path)
    if step.base is None:
        return await editor.write_to_file(step.path, step.proposed)
    return await editor.update_file_content(step.path, step.proposed)


async def _take_back(editor: SealedEditor, problem: EditError) -> None:
    changed = ", ".join(dict.fromkeys(change.path for change in editor.changes))
    try:
        await editor.take_back()
    except EditError as obstacle:
        raise EditError(
            f"{problem.fact}; {changed} had been changed before, and could not be taken back ({obstacle.fact})",
            place=problem.place,
            hint="tell the person, who can look and undo this call",
        ) from problem
    problem.fact += f"; {changed} had been changed before, and was taken back: nothing is changed"


async def _replaced_text(editor: ScriptEditorProvider, edit: Edit, before: EditStep | None) -> EditStep:
    path, old, new = edit["path"], edit["old"], edit["new"]
    base = before.base if before is not None else await text_of(editor, path)
    text = before.proposed if before is not None else base
    assert text is not None
    if not old:
        raise EditError("the text to replace is empty", place=path, hint="give a text that occurs in the file")
    if uniform_newline(text) == "\r\n":
        # Models write \n. In a file with \r\n such a text means the lines it looks like.
        old, new = _BARE_NEWLINE.sub("\r\n", old), _BARE_NEWLINE.sub("\r\n", new)
    expression = re.escape(old)
    if edit.get("whole_words"):
        expression = rf"(?<!\w){expression}(?!\w)"
    result, found = re.subn(expression, lambda _: new, text)
    wanted = edit.get("count", 1)
    if not found:
        raise EditError(
            "the text to replace does not occur in the file",
            place=path,
            hint=_near(text, old) or "read the file: the text must be exactly as it stands there, with its spaces",
        )
    if not edit.get("all") and found != wanted:
        raise EditError(
            f"the text to replace occurs {_times(found)}, not {_times(wanted)}",
            place=path,
            hint=f"add lines around it until it is the only one, or say count: {found}, or all: true",
        )
    return EditStep(path, base, result)


async def _inserted(editor: ScriptEditorProvider, edit: Edit, before: EditStep | None) -> EditStep:
    text = await text_of(editor, edit["path"])
    return EditStep(edit["path"], text, insert(text, edit["operations"], path=edit["path"]))


async def _replaced_lines(editor: ScriptEditorProvider, edit: Edit, before: EditStep | None) -> EditStep:
    text = await text_of(editor, edit["path"])
    return EditStep(edit["path"], text, replace(text, edit["operations"], path=edit["path"]))


async def _written(editor: ScriptEditorProvider, edit: Edit, before: EditStep | None) -> EditStep:
    base = await text_of(editor, edit["path"]) if editor.exists(edit["path"]) else None
    return EditStep(edit["path"], base, edit["text"])


async def _renamed(editor: ScriptEditorProvider, edit: Edit, before: EditStep | None) -> EditStep:
    path, new_path = edit["path"], edit["new_path"]
    if not editor.exists(path):
        raise no_such_file(editor, path)
    if editor.exists(new_path):
        raise EditError("there is something of that name already", place=new_path, hint="choose a name that is free")
    return EditStep(path, await editor.get_file_content(path), None, new_path)


async def _deleted(editor: ScriptEditorProvider, edit: Edit, before: EditStep | None) -> EditStep:
    if not editor.exists(edit["path"]):
        raise no_such_file(editor, edit["path"])
    return EditStep(edit["path"], await editor.get_file_content(edit["path"]), None)


_STEPS: dict[str, Callable[[ScriptEditorProvider, Edit, EditStep | None], Awaitable[EditStep]]] = {
    "replace_text": _replaced_text,
    "insert_lines": _inserted,
    "replace_lines": _replaced_lines,
    "write_file": _written,
    "rename_file": _renamed,
    "delete_file": _deleted,
}


def _refuse_crossing(steps: Mapping[str, EditStep]) -> None:
    """A name that one edit frees or fills and another uses: which comes first would decide what is lost."""
    targets: set[str] = set()
    for step in steps.values():
        if step.renamed_to is None:
            continue
        if step.renamed_to in steps or step.renamed_to in targets:
            raise EditError("two edits use this name; nothing was changed", place=step.renamed_to, hint="split them")
        targets.add(step.renamed_to)


def _changing(steps: list[EditStep]) -> list[EditStep]:
    """The steps that change something; nobody is asked about a batch without any."""
    kept = [step for step in steps if step.renamed_to is not None or step.diff.kind != "unchanged"]
    if not kept:
        raise EditError(
            "nothing would change: the file is like that already"
            if len(steps) == 1
            else "nothing would change: the files are like that already",
            place=steps[0].path if len(steps) == 1 else None,
        )
    return kept


def _near(text: str, old: str) -> str | None:
    """Where the first line of a text that was not found almost stands: models get indentation wrong."""
    wanted = old.strip().split("\n")[0].strip()
    if not wanted:
        return None
    for number, line in enumerate(text.split("\n"), 1):
        if wanted in line:
            return (
                f"line {number} is almost it, and differs in spaces or in the lines around it: {line.rstrip()[:200]!r}"
            )
    return None


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
