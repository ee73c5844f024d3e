"""What a list of edits would make of a project: worked out before anything is written, and before anybody is asked.

The card and the execution both call `plan`, so they cannot disagree. An edit is the arguments of the tool of that name
with its name as `action`; the tools for one file are batches of one.

Several replacements of text in one file are applied in the order they are given, each to what the one before left.
Every other edit must be the only one of its file: two lists of line numbers, or an edit of a file that is also renamed,
would mean something else to whoever wrote them than to whoever reads them.

A private file is edited like any other, with its change on the card. But whether an edit fits it is a fact about what
is in it: a model that may try texts until one of them fits has read the file. So the edits of private files are worked
out last, after everything else about the batch is known to be in order, and what is wrong with them is put to the
person, who decides whether the model is told (`PrivateMisfit`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from lastword.editor.diff import FileDiff
from lastword.editor.provider import EditError, Preview, is_below, off_loop, plain, spelt
from lastword.editor.text import count_lines, insert, replace, uniform_newline

if TYPE_CHECKING:
    from lastword.editor.recording import LookingEditor, RecordingEditor
    from lastword.editor.sealed import SealedEditor

# A card that shows more files than this is not read.
MAX_FILES = 100
# A batch with more edits is a program, and should be a script with a card for each file.
MAX_EDITS = 500
# Findings that are told after a fix; lint_files has all of them.
MAX_TOLD = 10
# Linters that are waited for at the same time. Each of them keeps a core busy.
AT_ONCE = 4

Edit = Mapping[str, Any]
Step = Callable[["LookingEditor", Edit, "EditStep | None"], Awaitable["EditStep"]]
"""What becomes of one file by an edit, after another edit of it."""

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
    note: str = ""
    """What it means for what is private, in words for the card."""

    @cached_property
    def diff(self) -> FileDiff:
        """The change itself. Comparing long texts takes a moment, so it is done once."""
        return FileDiff.of(Preview(self.path, None, self.base, self.proposed, self.renamed_to))

    @property
    def line_count(self) -> int:
        """How many lines the file has afterwards, or had before it was deleted."""
        return count_lines((self.base if self.proposed is None else self.proposed) or "")


def summary(steps: Sequence[EditStep]) -> str:
    """A batch in one line: how many files, how many lines."""
    files = f"{len(steps)} file" + ("" if len(steps) == 1 else "s")
    added, removed = sum(step.diff.added for step in steps), sum(step.diff.removed for step in steps)
    return f"{files}, {added} lines added, {removed} removed"


class PrivateMisfit(EditError):
    """An edit does not fit a private file. A person decides whether the model is told that much."""

    def __init__(self, path: str, why_private: str, fact: str) -> None:
        super().__init__(fact, place=path, hint="nothing was changed")
        self.path = path
        self.why_private = why_private


async def plan(editor: LookingEditor, edits: Sequence[Edit]) -> list[EditStep]:
    """One step for each file, in the order in which they are first named; refuses the whole batch or nothing."""
    if not edits:
        raise EditError("there are no edits", hint="give at least one")
    if len(edits) > MAX_EDITS:
        raise EditError(f"{len(edits)} edits; at most {MAX_EDITS} are taken at once", hint="split them")
    named: list[tuple[int, Edit]] = [(number, spelt(edit)) for number, edit in enumerate(edits, 1)]
    paths = list(dict.fromkeys(edit["path"] for _, edit in named))
    if len(paths) > MAX_FILES:
        raise EditError(f"{len(paths)} files; at most {MAX_FILES} are shown on one card", hint="split the batch")
    _refuse_twice(named)
    _refuse_crossing([edit for _, edit in named])
    private = await _private(editor, paths)
    steps: dict[str, EditStep] = {}
    for number, edit in [one for one in named if one[1]["path"] not in private]:
        try:
            steps[edit["path"]] = await _STEPS[edit["action"]](editor, edit, steps.get(edit["path"]))
        except EditError as problem:
            if len(edits) > 1:
                problem.fact = f"{problem.fact} (edit {number} of {len(edits)}; nothing was changed)"
            raise
    for _, edit in [one for one in named if one[1]["path"] in private]:
        path = edit["path"]
        try:
            steps[path] = await _STEPS[edit["action"]](editor, edit, steps.get(path))
        except EditError as problem:
            raise PrivateMisfit(path, private[path], problem.fact) from problem
    noted = [replace_fields(steps[path], note=_note(steps[path], private, editor)) for path in paths]
    return await _changing(noted, private)


async def plan_fixes(editor: LookingEditor, path: str) -> list[EditStep]:
    """What the safe fixes of the linters would change: in one file, or in every file that has findings."""
    path = plain(path)
    private = await _private(editor, [path]) if path else {}
    if private:
        return await _fix_private(editor, path, private[path])
    if path and not editor.exists(path):
        raise await editor.no_such_file(path)
    if path and path in await off_loop(editor.get_all_files):
        paths = [path]
    else:
        report = await off_loop(editor.lint_report)
        paths = [file for file in report.fixable if is_below(file, path)]
    if len(paths) > MAX_FILES:
        raise EditError(
            f"{len(paths)} files can be fixed; at most {MAX_FILES} at once", hint="name a file or a folder, by path"
        )
    steps = [step for step in await _fixed(editor, paths) if step is not None]
    if not steps:
        raise EditError(
            "there is nothing that can be fixed by itself",
            place=path or None,
            hint="lint_files says what is found; what is left needs an edit",
        )
    return steps


async def _fix_private(editor: LookingEditor, path: str, why: str) -> list[EditStep]:
    try:
        (step,) = await _fixed(editor, [path])
    except EditError as problem:
        raise PrivateMisfit(path, why, problem.fact) from problem
    if step is None:
        raise PrivateMisfit(path, why, "there is nothing that can be fixed by itself")
    return [step]


async def _fixed(editor: LookingEditor, paths: Sequence[str]) -> list[EditStep | None]:
    """A step for each of these files; None for one that would stay as it is."""
    texts = [await editor.text_of(path) for path in paths]
    fixed = await off_loop(_each_fixed, editor, paths)
    steps = [
        None if new is None or new == old else EditStep(path, old, new)
        for path, old, new in zip(paths, texts, fixed, strict=True)
    ]
    await _compare([step for step in steps if step is not None])
    return steps


def _each_fixed(editor: LookingEditor, paths: Sequence[str]) -> list[str | None]:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(editor.get_fixed_content, paths))


async def _private(editor: LookingEditor, paths: Sequence[str]) -> dict[str, str]:
    """Those of these files that are there and private, with the reason."""
    there = [path for path in paths if editor.exists(path)]

    def judge() -> dict[str, str]:
        why_private = editor.privacy()
        return {path: why for path in there if (why := why_private(path)) is not None}

    return await off_loop(judge)


def _note(step: EditStep, private: Mapping[str, str], editor: LookingEditor) -> str:
    if step.path.rpartition("/")[2] == ".gitignore":
        return "What git ignores is private, so this also decides which files the assistant reads without asking."
    if step.path not in private:
        return ""
    note = f"{step.path} is private: {private[step.path]}."
    if step.renamed_to is None:
        return f"{note} The assistant is not told what is in it."
    if editor.privacy()(step.renamed_to) is not None:
        return note
    return f"{note} As {step.renamed_to} it would not be, and the assistant could read it without asking."


def _refuse_twice(named: Sequence[tuple[int, Edit]]) -> None:
    """Only replacements of text say what they mean when another edit of the same file came before."""
    actions: dict[str, str] = {}
    for number, edit in named:
        path, action = edit["path"], edit["action"]
        if path in actions and {action, actions[path]} != {"replace_text"}:
            raise EditError(
                f"{actions[path]} and {action} both name this file "
                f"(edit {number} of {len(named)}; nothing was changed)",
                place=path,
                hint="only replace_text may name a file several times; join the others into one edit",
            )
        actions[path] = action


def show(editor: RecordingEditor, steps: Sequence[EditStep]) -> None:
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


async def _replaced_text(editor: LookingEditor, edit: Edit, before: EditStep | None) -> EditStep:
    path = edit["path"]
    base = before.base if before is not None else await editor.text_of(path)
    text = before.proposed if before is not None else base
    assert text is not None
    return EditStep(path, base, await off_loop(_replace_text, text, edit))


def _replace_text(text: str, edit: Edit) -> str:
    path, old, new = edit["path"], edit["old"], edit["new"]
    if not old:
        raise EditError("the text to replace is empty", place=path, hint="give a text that occurs in the file")
    if uniform_newline(text) == "\r\n":
        # Models write \n. In a file with \r\n such a text means the lines it looks like.
        old, new = _BARE_NEWLINE.sub("\r\n", old), _BARE_NEWLINE.sub("\r\n", new)
    if edit.get("whole_words"):
        result, found = re.subn(rf"(?<!\w){re.escape(old)}(?!\w)", lambda _: new, text)
    else:
        result, found = text.replace(old, new), text.count(old)
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
    return result


def _by_line(change: Callable[..., str]) -> Step:
    async def step(editor: LookingEditor, edit: Edit, before: EditStep | None) -> EditStep:
        text = await editor.text_of(edit["path"])
        changed = partial(change, text, edit["operations"], path=edit["path"])
        return EditStep(edit["path"], text, await off_loop(changed))

    return step


async def _written(editor: LookingEditor, edit: Edit, before: EditStep | None) -> EditStep:
    base = await editor.text_of(edit["path"]) if editor.exists(edit["path"]) else None
    return EditStep(edit["path"], base, edit["text"])


async def _renamed(editor: LookingEditor, edit: Edit, before: EditStep | None) -> EditStep:
    path, new_path = edit["path"], edit["new_path"]
    if not editor.exists(path):
        raise await editor.no_such_file(path)
    if editor.exists(new_path):
        raise EditError("there is something of that name already", place=new_path, hint="choose a name that is free")
    return EditStep(path, await editor.get_file_content(path), None, new_path)


async def _deleted(editor: LookingEditor, edit: Edit, before: EditStep | None) -> EditStep:
    if not editor.exists(edit["path"]):
        raise await editor.no_such_file(edit["path"])
    return EditStep(edit["path"], await editor.get_file_content(edit["path"]), None)


_STEPS: dict[str, Step] = {
    "replace_text": _replaced_text,
    "insert_lines": _by_line(insert),
    "replace_lines": _by_line(replace),
    "write_file": _written,
    "rename_file": _renamed,
    "delete_file": _deleted,
}


def _refuse_crossing(edits: Sequence[Edit]) -> None:
    """A name that one edit frees or fills and another uses: which comes first would decide what is lost."""
    taken = {edit["path"] for edit in edits}
    for edit in edits:
        if edit["action"] == "rename_file":
            if edit["new_path"] in taken - {edit["path"]}:
                raise EditError(
                    "two edits use this name; nothing was changed", place=edit["new_path"], hint="split them"
                )
            taken.add(edit["new_path"])


async def _changing(steps: Sequence[EditStep], private: Mapping[str, str]) -> list[EditStep]:
    """The steps that change something; nobody is asked about a batch without any."""
    await _compare(steps)
    kept = [step for step in steps if step.renamed_to is not None or step.diff.kind != "unchanged"]
    for step in steps:
        # To drop it in silence would tell that the file is like that already.
        if step.path in private and step not in kept:
            raise PrivateMisfit(step.path, private[step.path], "nothing would change: the file is like that already")
    if not kept:
        raise EditError(
            "nothing would change: the file is like that already"
            if len(steps) == 1
            else "nothing would change: the files are like that already",
            place=steps[0].path if len(steps) == 1 else None,
        )
    return kept


async def _compare(steps: Sequence[EditStep]) -> None:
    """Have every diff ready, so that nobody works one out on the loop."""
    await off_loop(lambda: [step.diff for step in steps])


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


async def left_to_fix(editor: SealedEditor, steps: Sequence[EditStep]) -> list[str]:
    """What the linters still find in the files of these steps, in words."""
    report = await off_loop(editor.lint_report)
    left = [
        f"{step.path}:{one['line']}: {one['message']}" for step in steps for one in report.findings.get(step.path, [])
    ]
    unseen = {one.path: one.why for one in report.left_out}
    said = [f"{step.path} was not checked again: {unseen[step.path]}." for step in steps if step.path in unseen]
    if not left:
        return said or ["The linters find nothing more there."]
    more = [f"and {len(left) - MAX_TOLD} more, which lint_files names"] if len(left) > MAX_TOLD else []
    return [*said, "Left, and not to be fixed by itself:", *left[:MAX_TOLD], *more]
