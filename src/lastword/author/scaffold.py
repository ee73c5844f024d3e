"""A new tool: manifest, code and test, runnable at once. Each file says what its author should know next."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from lastword.errors import ToolLoadError
from lastword.tools import Effect, Manifest, ToolFolder

_WHEN_APPROVAL = """\
A tool needs approval when it
  - reads private data (location, photos, contacts, calendar, health),
  - makes the system ask for a permission,
  - changes or deletes files,
  - has effects that last or cannot be undone,
  - or does anything else that a person should understand first."""


@dataclass(frozen=True, slots=True)
class NewTool:
    """What is known of a tool before it is written."""

    name: str
    description: str
    approval: bool
    effect: Effect | None
    editor: bool = False

    WHEN_APPROVAL: ClassVar = _WHEN_APPROVAL

    def write(self, parent: Path) -> list[Path]:
        """Write the three files of a new tool. Refuses to touch anything that is there."""
        self.check_name(self.name, parent)
        folder = parent / self.name
        files = {
            folder / ToolFolder.MANIFEST_FILE: json.dumps(self._manifest(), indent=2, ensure_ascii=False) + "\n",
            folder / ToolFolder.CODE_FILE: self._code(),
            folder / f"test_{self.name}.py": self._test(),
        }
        folder.mkdir(parents=True)
        for file, text in files.items():
            file.write_text(text, encoding="utf-8")
        return list(files)

    @staticmethod
    def check_name(name: str, parent: Path) -> None:
        """Refuse a name that is taken, or that cannot be a tool's id, and suggest one that can."""
        if name in Manifest.RESERVED:
            hint = f"for instance {name.lower()}_tool"
            raise ToolLoadError(f"{name} is a keyword of scripts, so no CALL could name it", hint=hint)
        if Manifest.ID.match(name) and len(name) <= Manifest.MAX_ID_LENGTH:
            if (parent / name).exists():
                raise ToolLoadError(
                    "there is something of that name already", place=str(parent / name), hint="choose another name"
                )
            return
        better = (
            "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
            .strip("_")
            .lower()[: Manifest.MAX_ID_LENGTH]
        )
        better = f"tool_{better}" if better[:1].isdigit() else better
        raise ToolLoadError(
            f"{name[:80]!r} cannot be the name of a tool: letters, digits and underscores, not a digit first, at most "
            f"{Manifest.MAX_ID_LENGTH}",
            hint=f"for instance {better or 'my_tool'}",
        )

    def _manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = {
            "displayName": display_name(self.name),
            "id": self.name,
            "description": self.description,
            "icon": "pencil" if self.editor else "star",
            "color": "systemBlue",
            "parameters": _OF_A_FILE if self.editor else _OF_A_GREETING,
            "requireApproval": self.approval,
            "autoApprove": False,
            "scriptEditorOnly": self.editor,
        }
        if self.effect is not None:
            manifest["effect"] = self.effect
        return manifest

    def _code(self) -> str:
        body = _EDITOR_CODE if self.editor else _APPROVAL_CODE if self.approval else _FREE_CODE
        why = "This one asks first." if self.approval else "This one does not ask: it must stay free of all of these."
        return body.format(name=self.name, title=display_name(self.name), when=f"{_WHEN_APPROVAL}\n\n{why}")

    def _test(self) -> str:
        body = _EDITOR_TEST if self.editor else _APPROVAL_TEST if self.approval else _FREE_TEST
        return body.format(name=self.name)


def display_name(name: str) -> str:
    """`tidy_notes` is Tidy Notes to people."""
    return " ".join(word.capitalize() for word in name.split("_") if word) or name


_OF_A_FILE = (
    {"name": "path", "type": "string", "description": "The file to change.", "schema": {"examples": ["a.txt"]}},
    {"name": "text", "type": "string", "description": "The line to add at its end."},
)
_OF_A_GREETING = (
    {
        "name": "name",
        "type": "string",
        "description": "Whom to greet.",
        "required": False,
        "schema": {"default": "world"},
    },
)

_FREE_CODE = '''"""{title}.

{when}
If that changes, set requireApproval to true in assistant_tool.json, register with
register_execute_tool_with_approval, and describe each call in a function for register_approval_request.
"""

from lastword import AssistantTool


def execute(params):
    """Do the work. `params` has been checked against assistant_tool.json."""
    return {{"success": True, "message": f"Hello, {{params['name']}}!"}}


# What a registration returns is a test function: test_execute({{"name": "you"}}) runs the real thing.
test_execute = AssistantTool.register_execute_tool(execute)
'''

_FREE_TEST = '''"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_it_greets_by_name():
    result = tool.test_execute({{"name": "Ada"}})
    assert result == {{"success": True, "message": "Hello, Ada!"}}


def test_it_greets_the_world_by_itself():
    assert tool.test_execute({{}})["message"] == "Hello, world!"
'''

_APPROVAL_CODE = '''"""{title}.

{when}
"""

from lastword import AssistantTool


def request(params):
    """Say what is about to happen, for the card. This function may look and must not touch: that is checked."""
    return {{
        "message": f"The assistant wants to greet {{params['name']}}.",
        "primary_button_label": "Greet",
        "secondary_button_label": "Cancel",
    }}


def execute(params, user_action):
    """Do the work, once the person has said yes. It also hears a no, so that it can say so in its own words."""
    if not user_action.primary_confirmed:
        return {{"success": False, "message": "The greeting was cancelled."}}
    return {{"success": True, "message": f"Hello, {{params['name']}}!"}}


# What a registration returns is a test function: it runs the real thing without a model or a person.
test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
'''

_APPROVAL_TEST = '''"""Run by `lastword test`, and by pytest."""

from lastword.testing import tool_beside

tool = tool_beside(__file__)


def test_the_card_says_who_is_greeted():
    card = tool.test_approval({{"name": "Ada"}})
    assert card["message"] == "The assistant wants to greet Ada."


def test_it_greets_after_a_yes():
    result = tool.test_execute({{"name": "Ada"}}, {{"primary_confirmed": True, "secondary_confirmed": False}})
    assert result == {{"success": True, "message": "Hello, Ada!"}}


def test_a_no_is_respected():
    result = tool.test_execute({{"name": "Ada"}}, {{"primary_confirmed": False, "secondary_confirmed": True}})
    assert not result["success"]
'''

_EDITOR_CODE = '''"""{title}.

{when}
"""

from lastword import AssistantTool


async def request(params, editor):
    """Show the change before it happens. This function may look and must not touch: that is checked."""
    path = params["path"]
    proposed = await changed(params, editor)
    return {{
        "message": f"The assistant wants to add a line to {{path}}.",
        "primary_button_label": "Add line",
        "preview_button": {{"label": "Show the change", "action": lambda: editor.open_diff_editor(path, proposed)}},
    }}


async def execute(params, user_action, editor):
    """Make the change that was shown; anything else is refused."""
    if not user_action.primary_confirmed:
        return {{"success": False, "message": "The file was left as it is."}}
    path = params["path"]
    await editor.write_to_file(path, await changed(params, editor))
    return {{"success": True, "message": f"Added a line to {{path}}."}}


async def changed(params, editor):
    """The file as it would be."""
    before = await editor.get_file_content(params["path"]) or ""
    return before + params["text"] + "\\n"


# What a registration returns is a test function: it runs the real thing without a model or a person.
test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
'''

_EDITOR_TEST = '''"""Run by `lastword test`, and by pytest."""

from pathlib import Path
from tempfile import TemporaryDirectory

from lastword import ProjectEditor
from lastword.testing import tool_beside

tool = tool_beside(__file__)
PARAMS = {{"path": "a.txt", "text": "two"}}


def test_the_card_shows_the_change_and_makes_none():
    with TemporaryDirectory() as folder:
        file = Path(folder, "a.txt")
        file.write_text("one\\n")
        card = tool.test_approval(PARAMS, editor=ProjectEditor(folder))
        assert card["preview"][0]["proposed"] == "one\\ntwo\\n"
        assert file.read_text() == "one\\n"


def test_a_yes_makes_the_change():
    with TemporaryDirectory() as folder:
        file = Path(folder, "a.txt")
        file.write_text("one\\n")
        result = tool.test_execute(PARAMS, editor=ProjectEditor(folder))
        assert result["success"]
        assert file.read_text() == "one\\ntwo\\n"


def test_a_no_leaves_the_file_alone():
    no = {{"primary_confirmed": False, "secondary_confirmed": True}}
    with TemporaryDirectory() as folder:
        file = Path(folder, "a.txt")
        file.write_text("one\\n")
        assert not tool.test_execute(PARAMS, no, editor=ProjectEditor(folder))["success"]
        assert file.read_text() == "one\\n"
'''
