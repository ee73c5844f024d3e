"""Folder tools: two files, registered through AssistantTool, tried without a model, a person or a journal."""

import json
import textwrap
from pathlib import Path

import pytest

from lastword import AssistantTool, Session, ToolError, ToolRegistry, UserAction
from lastword.consent import DENIED
from lastword.editor import ProjectEditor
from lastword.errors import ManifestError, ToolLoadError
from lastword.testing import FixedApprover, load_tool
from lastword.tools import ToolFolder
from requirements import requirement
from sending import MANIFEST
from warm import run_python

APPROVED = """
from lastword import AssistantTool

@AssistantTool.register_approval_request
def request(params):
    return {"message": f"Send to {params['to']}?", "primary_button_label": "Send"}

@AssistantTool.register_execute_tool_with_approval
async def execute(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Then not."}
    return {"success": True, "message": f"Sent to {params['to']}."}
"""
FREE = """
from lastword import AssistantTool

@AssistantTool.register_execute_tool
def execute(params):
    return {"success": True, "message": "Done."}
"""


def write_tool(folder: Path, code: str = APPROVED, **fields) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "assistant_tool.json").write_text(json.dumps(MANIFEST | fields))
    (folder / "assistant_tool.py").write_text(textwrap.dedent(code))
    return folder


@requirement("TOOL-10", "TOOL-11")
async def test_a_folder_with_two_files_is_a_tool(registry: ToolRegistry, tmp_path: Path):
    """Loaded, asked about, carried out."""
    [tool] = registry.load(write_tool(tmp_path / "send"))
    assert tool.name == "send"
    approver = FixedApprover()
    outcome = await Session(registry, approver=approver).call("send", {"to": "Ann"})
    assert (outcome.kind, outcome.message) == ("succeeded", "Sent to Ann.")
    assert (approver.requests[0].message, approver.requests[0].primary_button_label) == ("Send to Ann?", "Send")


@requirement("TOOL-11")
def test_a_folder_of_folders_is_loaded_whole(registry: ToolRegistry, tmp_path: Path):
    """In the order of their names; what is no tool is passed over."""
    write_tool(tmp_path / "b", id="two")
    write_tool(tmp_path / "a", id="one")
    (tmp_path / "notes").mkdir()
    assert [tool.name for tool in registry.load(tmp_path)] == ["one", "two"]
    assert [folder.path.name for folder in ToolFolder.all_in(tmp_path)] == ["a", "b"]
    with pytest.raises(ToolLoadError, match="there is no such folder"):
        registry.load(tmp_path / "nothing")


@requirement("TOOL-4", "TOOL-11")
def test_every_broken_manifest_is_told_before_any_code_runs(registry: ToolRegistry, tmp_path: Path):
    """One pass over all of them."""
    ran = tmp_path / "ran"
    write_tool(tmp_path / "a", f"open({str(ran)!r}, 'w')")
    write_tool(tmp_path / "b", id="2")
    write_tool(tmp_path / "c", returns="nothing")
    with pytest.raises(ManifestError) as refusal:
        registry.load(tmp_path)
    assert len(refusal.value.problems) == 2
    assert str(tmp_path / "c" / "assistant_tool.json") in str(refusal.value)
    assert not ran.exists()


CONTRADICTIONS = [
    (FREE, {}, "requireApproval is true, but the code registers register_execute_tool"),
    (APPROVED, {"requireApproval": False}, "requireApproval is false, but the code registers"),
    (
        FREE + "\n@AssistantTool.register_approval_request\ndef r(): ...\n",
        {"requireApproval": False},
        "it registers an approval request, but requireApproval is false",
    ),
    ("", {}, "it registers no execute function"),
    (APPROVED + "\nAssistantTool.register_approval_request(lambda: 1)\n", {}, "is registered already"),
    (APPROVED + "\nAssistantTool.register_execute_tool(lambda: 1)\n", {}, "is registered already"),
    ("import no_such_module_anywhere", {}, "ModuleNotFoundError"),
    ("x = 1\nx +\n", {}, "SyntaxError"),
    ("\n\n1 / 0\n", {}, "ZeroDivisionError"),
    ("import sys; sys.exit(3)", {}, "SystemExit"),
]


@requirement("TOOL-11")
@pytest.mark.parametrize(("code", "fields", "fact"), CONTRADICTIONS, ids=[fact[-40:] for _, _, fact in CONTRADICTIONS])
def test_a_tool_that_contradicts_its_manifest_or_fails_is_refused_at_load(
    registry: ToolRegistry, tmp_path: Path, code, fields, fact
):
    """With its file, and the line where there is one."""
    write_tool(tmp_path / "t", code, **fields)
    with pytest.raises(ToolLoadError) as refusal:
        registry.load(tmp_path / "t")
    assert fact in str(refusal.value)
    assert str(tmp_path / "t") in str(refusal.value)
    if "ZeroDivisionError" in fact:
        assert "assistant_tool.py:3" in str(refusal.value)
    assert registry.get_all_schemas() == []


@requirement("TOOL-11")
def test_a_missing_python_file_is_named(registry: ToolRegistry, tmp_path: Path):
    """A tool is two files."""
    (write_tool(tmp_path / "t") / "assistant_tool.py").unlink()
    with pytest.raises(ToolLoadError, match=r"assistant_tool\.py is missing"):
        registry.load(tmp_path / "t")


@requirement("TOOL-5")
def test_the_digest_of_a_folder_tool_covers_its_code(registry: ToolRegistry, tmp_path: Path):
    """The same folder loads twice; one changed byte is another tool."""
    folder = write_tool(tmp_path / "t")
    [first] = registry.load(folder)
    assert registry.load(folder) == [first]
    write_tool(folder, APPROVED + "# more\n")
    with pytest.raises(ToolLoadError, match="there is another tool called send"):
        registry.load(folder)
    other = ToolRegistry()
    assert other.load(folder)[0].digest != first.digest


def test_the_bytes_that_are_digested_are_the_bytes_that_run(registry: ToolRegistry, tmp_path: Path):
    """Code that was changed on disk after it was loaded is not the tool that was agreed to."""
    folder = write_tool(tmp_path / "t", FREE, requireApproval=False)
    registry.load(folder)
    (folder / "assistant_tool.py").write_text("raise SystemExit")
    session = Session(registry)
    assert session.call_sync("send", {"to": "x"}).message == "Done."
    session.close_sync()


@requirement("TOOL-11")
def test_registering_outside_of_a_tool_says_what_to_do():
    """There is no manifest beside this file."""
    with pytest.raises(ToolLoadError, match="was called outside of a tool"):
        AssistantTool.register_execute_tool(lambda: None)


@pytest.mark.parametrize(
    "speak",
    [lambda: AssistantTool.report("hello"), lambda: AssistantTool.is_cancelled, lambda: AssistantTool.on_cancel],
    ids=["report", "is_cancelled", "on_cancel"],
)
def test_speaking_for_a_tool_while_none_runs_is_refused(speak):
    """In words, instead of doing nothing."""
    with pytest.raises(ToolError, match="while no tool runs"):
        speak()


@requirement("TOOL-50", "TOOL-11")
def test_registration_gives_test_functions_that_run_the_real_code(tmp_path: Path):
    """The card for some parameters, and the result for some answer."""
    tool = load_tool(write_tool(tmp_path / "send"))
    card = tool.test_approval({"to": "Ann"})
    assert (card["message"], card["primary_button_label"], card["arguments"]) == ("Send to Ann?", "Send", {"to": "Ann"})
    assert tool.test_execute({"to": "Ann"}) == {"success": True, "message": "Sent to Ann."}
    denied = tool.test_execute({"to": "Ann"}, {"primary_confirmed": False, "secondary_confirmed": True})
    assert denied["success"] is False
    assert "Then not." in denied["message"]
    assert not tool.test_execute({"to": "Ann"}, UserAction.CLOSED)["success"]
    assert "amount" in tool.test_execute({"to": "Ann", "amount": "x"})["message"]
    assert tool.manifest.id == "send"
    assert load_tool(tmp_path / "send" / "test_send.py").tool.digest == tool.tool.digest
    with pytest.raises(ToolLoadError, match="there is no"):
        load_tool(tmp_path)


@requirement("TOOL-50", "TOOL-42")
def test_test_functions_keep_the_guard(tmp_path: Path):
    """An effect in the request function fails its test, as it would fail a call."""
    effect = f"def request(params):\n    open({str(tmp_path / 'x')!r}, 'w')"
    code = APPROVED.replace("def request(params):", effect)
    tool = load_tool(write_tool(tmp_path / "send", code))
    with pytest.raises(ToolError, match="it tried to write"):
        tool.test_approval({"to": "Ann"})
    assert not (tmp_path / "x").exists()


@requirement("TOOL-50")
def test_an_editor_can_be_passed_to_test_functions(tmp_path: Path):
    """For tools that only work on a project."""
    code = """
    from lastword import AssistantTool

    @AssistantTool.register_approval_request
    async def request(params, editor):
        return {"message": str(await editor.get_file_content("a.txt"))}

    @AssistantTool.register_execute_tool_with_approval
    async def execute(params, user_action, editor):
        done = user_action.primary_confirmed and await editor.write_to_file("a.txt", "new")
        return {"success": bool(done), "message": ""}
    """
    tool = load_tool(write_tool(tmp_path / "tool", code, scriptEditorOnly=True))
    (tmp_path / "a.txt").write_text("old")
    editor = ProjectEditor(tmp_path)
    assert tool.test_approval({"to": "x"}, editor=editor)["message"] == "old"
    assert not tool.test_execute({"to": "x"}, DENIED, editor=editor)["success"]
    assert (tmp_path / "a.txt").read_text() == "old"
    assert tool.test_execute({"to": "x"}, UserAction(True, False), editor=editor)["success"]
    assert (tmp_path / "a.txt").read_text() == "new"
    with pytest.raises(ToolError, match="works only on a project in an editor"):
        tool.test_approval({"to": "x"})


@requirement("TOOL-50")
@pytest.mark.parametrize("how", ["plain Python", "inside a running loop"])
def test_test_functions_work_where_the_author_is(tmp_path: Path, how):
    """`python assistant_tool.py`, without pytest and without loading anything."""
    call = "print(execute({'to': 'Ann'})['message'], request({'to': 'Bob'})['message'])"
    if how == "inside a running loop":
        call = f"import asyncio\nasync def main():\n    {call}\nasyncio.run(main())"
    folder = write_tool(tmp_path / "send", APPROVED + call + "\n")
    ended = run_python("-W", "error", str(folder / "assistant_tool.py"), cwd=tmp_path)
    assert ended.stdout == "Sent to Ann. Send to Bob?\n", ended.stderr
    assert ended.stderr == ""


@requirement("TOOL-50")
def test_a_test_function_is_named_after_what_it_tests(tmp_path: Path):
    """It is no test of pytest's, although its class begins like one."""
    tool = load_tool(write_tool(tmp_path / "send"))
    assert tool.test_execute.__name__ == "execute"
    assert tool.test_approval.__wrapped__ is tool.tool.request
    assert tool.test_execute.__test__ is False


RULED = """
from pathlib import Path
from lastword import AssistantTool

AssistantTool.register_needs_approval(lambda amount: amount > 100)
test_approval = AssistantTool.register_approval_request(lambda params: {"message": f"Pay {params['amount']}?"})


@AssistantTool.register_execute_tool_with_approval
def pay(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "kept"}
    Path(EFFECT).touch()
    return {"success": True, "message": "paid"}
"""


@requirement("TOOL-50", "TOOL-62")
def test_a_test_function_shows_the_card_that_a_rule_would_spare(tmp_path: Path):
    """Drawing a card, or saying no to it, must not pay because the sum is small."""
    effect = tmp_path / "effect.txt"
    parameters = [{"name": "amount", "type": "number", "description": "how much"}]
    manifest = {"displayName": "Pay", "id": "pay", "description": "Pays.", "requireApproval": True}
    (tmp_path / "assistant_tool.json").write_text(json.dumps(manifest | {"parameters": parameters}))
    (tmp_path / "assistant_tool.py").write_text(RULED.replace("EFFECT", repr(str(effect))))
    tool = load_tool(tmp_path)
    assert tool.test_approval({"amount": 5})["message"] == "Pay 5?"
    assert tool.test_execute({"amount": 5}, {"secondaryConfirmed": True}) == {"success": False, "message": "kept"}
    assert not effect.exists()
    assert tool.test_execute({"amount": 5})["success"]
    assert effect.exists()
