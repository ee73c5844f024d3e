"""Tools that change a project: each asks first, with the diff of every file, and writes what was shown.

A tool here is a manifest, a way from arguments to steps (edit_plan.py), and words. The request function plans and
shows; the execute function plans again and writes, and the sealed editor lets through what was shown and nothing else.

With those that only look (read_tools.py) they are the tools that come with the editor. All of them need one: a session
without an editor does not offer them.

    registry = ToolRegistry()
    editor_tools(registry)
    session = Session(registry, editor=ProjectEditor("project"), approver=…)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from lastword.editor.edit_plan import (
    MAX_EDITS,
    EditStep,
    PrivateMisfit,
    apply,
    left_to_fix,
    plan,
    plan_fixes,
    show,
    summary,
)
from lastword.editor.read_tools import OURS, READERS
from lastword.errors import ArgumentsError, EditError
from lastword.tools import Manifest, Parameter, Tool

if TYPE_CHECKING:
    from lastword.editor.recording import LookingEditor, RecordingEditor
    from lastword.editor.sealed import SealedEditor
    from lastword.tools import ToolRegistry

Params = dict[str, Any]
Plan = Callable[["LookingEditor", Params], Awaitable[list[EditStep]]]
Afterwards = Callable[["SealedEditor", Sequence[EditStep]], Awaitable[list[str]]]
"""What is worth saying once it is done."""


def _writer(
    manifest: Manifest,
    planned: Plan,
    afterwards: Afterwards | None = None,
    consists_of: Callable[[Params], Iterable[tuple[Tool, Params]]] | None = None,
) -> Tool:
    async def request(params: Params, editor: RecordingEditor) -> dict[str, Any]:
        with _in_words():
            try:
                steps = await planned(editor, params)
            except PrivateMisfit as problem:
                return _misfit(problem)
        said = _said(steps[0])[0] if len(steps) == 1 else f"{summary(steps)}."
        return {
            "title": _title(steps),
            "message": "\n".join([said, *(step.note for step in steps if step.note)]),
            "preview_button": {"label": "Show the change", "action": lambda: _show(editor, steps)},
            "primary_button_label": _title(steps) if len(steps) > 1 else f"{_KINDS[steps[0].diff.kind]} file",
        }

    async def execute(params: Params, editor: SealedEditor) -> dict[str, Any]:
        with _in_words():
            steps = await planned(editor, params)
            if not editor.shown:
                # The person was told that nothing would change, and the file has become another since.
                raise EditError("the change was not shown, so nothing was changed", hint="ask for it again")
            await apply(editor, steps)
        said = [_said(step)[1] for step in steps]
        if len(steps) > 1:
            said.insert(0, f"Changed {summary(steps)}.")
        if any(step.base and step.proposed and step.diff.added != step.diff.removed for step in steps):
            said.append("Lines have moved: read a file again before you edit it by line number.")
        if afterwards is not None:
            said += await afterwards(editor, steps)
        return {"success": True, "message": "\n".join(said)}

    return Tool(manifest, "assistant", execute, request=request, consists_of=consists_of, **OURS)


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
        raise problem.as_tool_error() from problem


def _title(steps: Sequence[EditStep]) -> str:
    if len(steps) > 1:
        return f"Change {len(steps)} files"
    step = steps[0]
    if step.renamed_to is not None:
        return f"Rename {step.path} to {step.renamed_to}"
    return f"{_KINDS[step.diff.kind]} {step.path}"


_KINDS = {"changed": "Change", "created": "Create", "deleted": "Delete", "renamed": "Rename"}


def _said(step: EditStep) -> tuple[str, str]:
    """One file in the tool's words: on the card, and for the model once it happened."""
    path, diff = step.path, step.diff
    counted = f"{_lines(diff.added)} added, {diff.removed} removed"
    is_text = step.base is not None or step.proposed is not None
    holding = f", with {_lines(step.line_count)}" if is_text else ", which is not text"
    match diff.kind:
        case "renamed":
            return (
                f"{path} would become {step.renamed_to}, with the same content.",
                f"Renamed {path} to {step.renamed_to}.",
            )
        case "deleted":
            return f"{path} would be gone{holding}.", f"Deleted {path}{holding}."
        case "created":
            return f"{path} would be new{holding}.", f"Created {path}{holding}."
        case _:
            return f"{path}: {counted}.", f"Changed {path}: {counted}. It has {_lines(step.line_count)} now."


def _lines(count: int) -> str:
    return f"{count} line" if count == 1 else f"{count} lines"


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
        edits.append({"action": tool.name, **msgspec.json.decode(arguments)})
    return await plan(editor, edits)


def _steps(params: Params) -> Iterator[tuple[Tool, Params]]:
    """The tools that a batch names, each with its own arguments."""
    for edit in params["edits"]:
        yield _SINGLE[edit["action"]], {name: value for name, value in edit.items() if name != "action"}


def _manifest(id: str, description: str, *parameters: Parameter, **facts: Any) -> Manifest:
    return Manifest(
        id=id,
        display_name=id.replace("_", " ").capitalize(),
        description=description,
        parameters=parameters,
        script_editor_only=True,
        effect="reversible",
        **facts,
    )


def _edit(action: str, description: str, icon: str, color: str, *parameters: Parameter, **facts: Any) -> Tool:
    """A tool that is one edit."""

    async def planned(editor: LookingEditor, params: Params) -> list[EditStep]:
        return await plan(editor, [{"action": action, **params}])

    return _writer(_manifest(action, description, *parameters, icon=icon, color=color, **facts), planned)


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

_EDITS = (
    _edit(
        "replace_text",
        "Replaces a text in a file. It must occur exactly once, or as often as count says.",
        "pencil",
        "systemBlue",
        *(_PATH, _OLD, _NEW, _COUNT, _ALL, _WHOLE_WORDS),
    ),
    _edit(
        "insert_lines",
        "Inserts lines into a file, by line number.",
        "text.insert",
        "systemBlue",
        *(_PATH, _INSERTIONS),
    ),
    _edit(
        "replace_lines",
        "Replaces lines of a file by as many others, by line number.",
        "pencil",
        "systemBlue",
        *(_PATH, _REPLACEMENTS),
    ),
    _edit(
        "write_file",
        "Creates a file, with its folders, or replaces the whole text of one.",
        "square.and.pencil",
        "systemBlue",
        *(_PATH, _TEXT),
        content_parameter="text",
    ),
    _edit(
        "rename_file",
        "Moves a file to another name or folder. Nothing is overwritten.",
        "arrow.right",
        "systemOrange",
        *(_PATH, _NEW_PATH),
    ),
    _edit("delete_file", "Deletes a file.", "trash", "systemRed", _PATH),
)
_SINGLE = {tool.name: tool for tool in _EDITS}


def _edit_schema() -> dict[str, Any]:
    """One edit of a batch. What each action needs is said here, and checked by the tool of that name."""
    properties: dict[str, Any] = {"action": {"enum": list(_SINGLE)}}
    for tool in _EDITS:
        for parameter in tool.manifest.parameters:
            known = properties.setdefault(parameter.name, {"type": parameter.type, "description": ""})
            if parameter is not _PATH:
                known["description"] = f"{known['description']} For {tool.name}: {parameter.description}".strip()
    return {"type": "object", "properties": properties, "required": ["action", "path"]}


_FIX_LINT = _manifest(
    "fix_lint",
    "Applies the safe fixes of the linter to Python files: one, or every file that has findings.",
    Parameter("path", "string", "A file or a folder; without it, all files.", required=False, schema={"default": ""}),
    icon="wand.and.stars",
    color="systemTeal",
)
_EDIT_FILES = _manifest(
    "edit_files",
    "Makes several edits in several files as one step: one question with every change, all of them or none, one undo.",
    Parameter(
        "edits",
        "array",
        "The edits: each an object with `action` (replace_text, insert_lines, replace_lines, write_file, rename_file "
        "or delete_file) and the arguments of the tool of that name. Only replace_text may name the same file several "
        "times.",
        schema={"type": "array", "minItems": 1, "maxItems": MAX_EDITS, "items": _edit_schema()},
    ),
    icon="doc.on.doc",
    color="systemBlue",
)

EDITOR_TOOLS: tuple[Tool, ...] = (
    *READERS,
    *_EDITS,
    _writer(_FIX_LINT, lambda editor, params: plan_fixes(editor, params["path"]), left_to_fix),
    _writer(_EDIT_FILES, _batch, consists_of=_steps),
)
"""Every editor tool, in the order in which a model is told of them."""


def editor_tools(registry: ToolRegistry) -> list[Tool]:
    """Register the editor tools. An application's own tool of the same name stays, in the place of ours."""
    return [registry.add(tool) for tool in EDITOR_TOOLS if not registry.is_registered(tool.name)]
