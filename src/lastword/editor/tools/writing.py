"""Tools that change a project: each asks first, with the diff of every file, and writes what was shown.

A tool here is a manifest, a way from arguments to steps (planning.py), and words. The request function plans and shows;
the execute function plans again and writes, and the sealed editor lets through what was shown and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lastword import values
from lastword.editor.diff import summary
from lastword.editor.looking import LookingEditor
from lastword.editor.offloop import off_loop
from lastword.editor.paths import with_plain_paths
from lastword.editor.recording import RecordingEditor, SealedEditor
from lastword.editor.tools.planning import MAX_EDITS, EditStep, PrivateMisfit, apply, plan, plan_fixes, show
from lastword.editor.tools.reading import CODE, in_words
from lastword.errors import ArgumentsError, EditError
from lastword.tools import Manifest, Parameter, Tool

# Findings that are told after a fix; lint_files has all of them.
MAX_TOLD = 10

Params = dict[str, Any]
Plan = Callable[[LookingEditor, Params], Awaitable[list[EditStep]]]
Afterwards = Callable[[SealedEditor, Sequence[EditStep]], Awaitable[list[str]]]
"""What is worth saying once it is done."""
Steps = Callable[[Params], Iterable[tuple[Tool, Params]]]
"""The tools that a batch names, each with its own arguments."""


def _writer(
    manifest: Manifest, planned: Plan, afterwards: Afterwards | None = None, consists_of: Steps | None = None
) -> Tool:
    async def request(params: Params, editor: RecordingEditor) -> dict[str, Any]:
        with _in_words():
            try:
                steps = await planned(editor, params)
            except PrivateMisfit as problem:
                return _misfit(problem)
        said = _proposal(steps[0]) if len(steps) == 1 else f"{summary([step.diff for step in steps])}."
        return {
            "title": _title(steps),
            "message": "\n".join([said, *(step.note for step in steps if step.note)]),
            "preview_button": {"label": "Show the change", "action": lambda: _show(editor, steps)},
            "primary_button_label": _verb(steps),
        }

    async def execute(params: Params, editor: SealedEditor) -> dict[str, Any]:
        with _in_words():
            steps = await planned(editor, params)
            if not editor.shown:
                # The person was told that nothing would change, and the file has become another since.
                raise EditError("the change was not shown, so nothing was changed", hint="ask for it again")
            await apply(editor, steps)
        said = [_report(step) for step in steps]
        if len(steps) > 1:
            said.insert(0, f"Changed {summary([step.diff for step in steps])}.")
        if any(step.base and step.proposed and step.diff.added != step.diff.removed for step in steps):
            said.append("Lines have moved: read a file again before you edit it by line number.")
        if afterwards is not None:
            said += await afterwards(editor, steps)
        return {"success": True, "message": "\n".join(said)}

    return Tool(
        manifest, "assistant", execute, request=request, code=CODE, consists_of=consists_of, spell=with_plain_paths
    )


def _misfit(problem: PrivateMisfit) -> dict[str, Any]:
    """The card for an edit that does not fit a private file: the person decides whether the model learns why."""
    return {
        "title": f"Tell the assistant about {problem.path}",
        "message": f"It wants to change {problem.path}, which is private ({problem.why_private}), and the change does "
        f"not fit: {problem.fact}. Nothing would be changed. If you allow it, the assistant is told this much.",
        "primary_button_label": "Tell it",
    }


def _show(editor: RecordingEditor, steps: Sequence[EditStep]) -> None:
    with _in_words():
        show(editor, steps)


@contextmanager
def _in_words() -> Iterator[None]:
    """A refusal of the editor is a result that the model can read, and no fault of the tool."""
    try:
        yield
    except EditError as problem:
        raise in_words(problem) from problem


def _title(steps: Sequence[EditStep]) -> str:
    if len(steps) > 1:
        return f"Change {len(steps)} files"
    step = steps[0]
    if step.renamed_to is not None:
        return f"Rename {step.path} to {step.renamed_to}"
    return f"{_KINDS[step.diff.kind]} {step.path}"


_KINDS = {"changed": "Change", "created": "Create", "deleted": "Delete", "renamed": "Rename"}


def _verb(steps: Sequence[EditStep]) -> str:
    return f"Change {len(steps)} files" if len(steps) > 1 else f"{_KINDS[steps[0].diff.kind]} file"


def _proposal(step: EditStep) -> str:
    """One file in the tool's words on the card."""
    diff = step.diff
    if diff.kind == "renamed":
        return f"{step.path} would become {step.renamed_to}, with the same content."
    if diff.kind == "deleted":
        return f"{step.path} would be gone{_with_lines(step)}."
    if diff.kind == "created":
        return f"{step.path} would be new{_with_lines(step)}."
    return f"{step.path}: {_counted(step)}."


def _report(step: EditStep) -> str:
    """What happened to one file, for the model."""
    diff = step.diff
    if diff.kind == "renamed":
        return f"Renamed {step.path} to {step.renamed_to}."
    if diff.kind == "deleted":
        return f"Deleted {step.path}{_with_lines(step)}."
    if diff.kind == "created":
        return f"Created {step.path}{_with_lines(step)}."
    return f"Changed {step.path}: {_counted(step)}. It has {_lines(step.line_count)} now."


def _with_lines(step: EditStep) -> str:
    if step.base is None and step.proposed is None:
        return ", which is not text"
    return f", with {_lines(step.line_count)}"


def _counted(step: EditStep) -> str:
    return f"{_lines(step.diff.added)} added, {step.diff.removed} removed"


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"


def _one(action: str) -> Plan:
    """The plan of a tool that is one edit."""

    async def planned(editor: LookingEditor, params: Params) -> list[EditStep]:
        return await plan(editor, [{"action": action, **params}])

    return planned


async def _batch(editor: LookingEditor, params: Params) -> list[EditStep]:
    """Every edit is held to the arguments of the tool that it names, in that tool's words."""
    edits = []
    for number, (tool, given) in enumerate(_steps(params), 1):
        try:
            arguments = tool.validate(given)
        except ArgumentsError as problem:
            said = [f"{one.fact} ({one.hint})" if one.hint else one.fact for one in problem.problems]
            raise EditError(
                "; ".join(said), place=f"edit {number} ({tool.name})", hint="nothing was changed; correct this edit"
            ) from None
        edits.append({"action": tool.name, **values.decode(arguments)})
    return await plan(editor, edits)


def _steps(params: Params) -> Iterator[tuple[Tool, Params]]:
    for edit in params["edits"]:
        yield _SINGLE[edit["action"]], {name: value for name, value in edit.items() if name != "action"}


async def _fixes(editor: LookingEditor, params: Params) -> list[EditStep]:
    return await plan_fixes(editor, params["path"])


async def _left_to_fix(editor: SealedEditor, steps: Sequence[EditStep]) -> list[str]:
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


def _manifest(id: str, display_name: str, description: str, *parameters: Parameter, **facts: Any) -> Manifest:
    return Manifest(
        id=id,
        display_name=display_name,
        description=description,
        parameters=parameters,
        script_editor_only=True,
        effect="reversible",
        **facts,
    )


_PATH = Parameter("path", "string", "The file, relative to the project, such as src/main.py.")
_OPERATION = {
    "type": "object",
    "properties": {
        "start_line": {"type": "integer", "minimum": 1, "description": "A line of the file as it is now, from 1."},
        "content": {"type": "string", "minLength": 1, "description": "One or more whole lines."},
    },
    "required": ["start_line", "content"],
    "additionalProperties": False,
}


def _operations(description: str) -> Parameter:
    return Parameter("operations", "array", description, schema={"type": "array", "items": _OPERATION, "minItems": 1})


_INSERTIONS = _operations(
    "A list of {start_line, content}. The content goes before that line; one past the last line appends. All line "
    "numbers are those of the file before the first operation."
)
_REPLACEMENTS = _operations(
    "A list of {start_line, content}. The lines of the content take the place of as many lines from start_line on; to "
    "add or remove lines, use insert_lines or replace_text. All line numbers are those of the file before the first "
    "operation."
)
_OLD = Parameter("old", "string", "The text to replace, exactly as it stands in the file.", schema={"minLength": 1})
_NEW = Parameter("new", "string", "What takes its place; empty to remove it.")
_COUNT = Parameter(
    "count",
    "number",
    "How often the text must occur; if it does not, nothing is changed.",
    required=False,
    schema={"type": "integer", "minimum": 1, "default": 1},
)
_ALL = Parameter(
    "all", "boolean", "Replace every occurrence, however many there are.", required=False, schema={"default": False}
)
_WHOLE_WORDS = Parameter(
    "whole_words",
    "boolean",
    "Only where no letter, digit or underscore stands beside the text: for renaming.",
    required=False,
    schema={"default": False},
)
_TEXT = Parameter("text", "string", "The whole text of the file.")
_NEW_PATH = Parameter("new_path", "string", "Its new name, relative to the project. It must be free.")

_ARGUMENTS: dict[str, tuple[Parameter, ...]] = {
    "replace_text": (_PATH, _OLD, _NEW, _COUNT, _ALL, _WHOLE_WORDS),
    "insert_lines": (_PATH, _INSERTIONS),
    "replace_lines": (_PATH, _REPLACEMENTS),
    "write_file": (_PATH, _TEXT),
    "rename_file": (_PATH, _NEW_PATH),
    "delete_file": (_PATH,),
}


def _edit_schema() -> dict[str, Any]:
    """One edit of a batch. What each action needs is said here, and checked by the tool of that name."""
    properties: dict[str, Any] = {"action": {"enum": list(_ARGUMENTS)}}
    for action, parameters in _ARGUMENTS.items():
        for parameter in parameters:
            known = properties.setdefault(parameter.name, {"type": parameter.type, "description": ""})
            if parameter is not _PATH:
                known["description"] = f"{known['description']} For {action}: {parameter.description}".strip()
    return {"type": "object", "properties": properties, "required": ["action", "path"]}


_EDITS = Parameter(
    "edits",
    "array",
    "The edits: each an object with `action` (replace_text, insert_lines, replace_lines, write_file, rename_file or "
    "delete_file) and the arguments of the tool of that name. Only replace_text may name the same file several times.",
    schema={"type": "array", "minItems": 1, "maxItems": MAX_EDITS, "items": _edit_schema()},
)

_EDITORS = (
    _writer(
        _manifest(
            "replace_text",
            "Replace text",
            "Replaces a text in a file. It must occur exactly once, or as often as count says.",
            *_ARGUMENTS["replace_text"],
            icon="pencil",
            color="systemBlue",
        ),
        _one("replace_text"),
    ),
    _writer(
        _manifest(
            "insert_lines",
            "Insert lines",
            "Inserts lines into a file, by line number.",
            *_ARGUMENTS["insert_lines"],
            icon="text.insert",
            color="systemBlue",
        ),
        _one("insert_lines"),
    ),
    _writer(
        _manifest(
            "replace_lines",
            "Replace lines",
            "Replaces lines of a file by as many others, by line number.",
            *_ARGUMENTS["replace_lines"],
            icon="pencil",
            color="systemBlue",
        ),
        _one("replace_lines"),
    ),
    _writer(
        _manifest(
            "write_file",
            "Write file",
            "Creates a file, with its folders, or replaces the whole text of one.",
            *_ARGUMENTS["write_file"],
            icon="square.and.pencil",
            color="systemBlue",
            content_parameter="text",
        ),
        _one("write_file"),
    ),
    _writer(
        _manifest(
            "rename_file",
            "Rename file",
            "Moves a file to another name or folder. Nothing is overwritten.",
            *_ARGUMENTS["rename_file"],
            icon="arrow.right",
            color="systemOrange",
        ),
        _one("rename_file"),
    ),
    _writer(
        _manifest(
            "delete_file",
            "Delete file",
            "Deletes a file.",
            *_ARGUMENTS["delete_file"],
            icon="trash",
            color="systemRed",
        ),
        _one("delete_file"),
    ),
)
_SINGLE = {tool.name: tool for tool in _EDITORS}

WRITERS = (
    *_EDITORS,
    _writer(
        _manifest(
            "fix_lint",
            "Fix lint",
            "Applies the safe fixes of the linter to Python files: one, or every file that has findings.",
            Parameter(
                "path",
                "string",
                "A file or a folder; without it, all files.",
                required=False,
                schema={"default": ""},
            ),
            icon="wand.and.stars",
            color="systemTeal",
        ),
        _fixes,
        _left_to_fix,
    ),
    _writer(
        _manifest(
            "edit_files",
            "Edit files",
            "Makes several edits in several files as one step: one question with every change, all of them or none, "
            "one undo.",
            _EDITS,
            icon="doc.on.doc",
            color="systemBlue",
        ),
        _batch,
        consists_of=_steps,
    ),
)
