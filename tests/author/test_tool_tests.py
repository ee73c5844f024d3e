"""What `lastword test` finds out about a tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from lastword.author.tool_tests import RESPECTS_A_DENIAL, Checked, run_tool_tests, sample_arguments
from lastword.tools import Manifest, Parameter, Tool
from requirements import requirement

APPROVED = "AssistantTool.register_execute_tool_with_approval(execute)\n"
FREE = "AssistantTool.register_execute_tool(execute)\n"
GOOD = 'def execute(params):\n    return {"success": True, "message": "ok"}\n'


@pytest.fixture
def make(tmp_path: Path) -> Any:
    def make(code: str, tests: str = "", **manifest: Any) -> dict[str, Checked]:
        folder = tmp_path / "tool"
        folder.mkdir()
        facts = {"displayName": "T", "id": "t", "description": "d", "parameters": []} | manifest
        (folder / "assistant_tool.json").write_text(json.dumps(facts))
        (folder / "assistant_tool.py").write_text(f"from lastword import AssistantTool\n{code}")
        if tests:
            (folder / "test_t.py").write_text(tests)
        return {result.name: result for result in run_tool_tests(tmp_path)}

    return make


@requirement("TOOL-50")
def test_sync_and_async_tests_run_without_pytest(make: Any) -> None:
    """In the tool's own file and beside it."""
    results = make(
        GOOD + "def test_inside(): assert True\n" + FREE,
        "async def test_async(): assert 1 == 1\ndef test_sync(): pass\ndef helper(): raise ValueError\n",
        requireApproval=False,
    )
    assert {name for name in results if name.startswith("test_")} == {"test_inside", "test_async", "test_sync"}
    assert all(result.passed for result in results.values())


CLASSES = """
class TestC:
    seen = 0
    def test_in_class(self):
        self.seen += 1
        assert self.seen == 1
    def test_again(self):
        self.test_in_class()
    async def test_async(self):
        raise KeyError("k")
    def helper(self):
        raise AssertionError
class Other:
    def test_not_one(self):
        raise AssertionError
"""


@requirement("TOOL-50")
def test_tests_in_a_class_run_each_on_an_instance_of_its_own(make: Any) -> None:
    """As pytest does it. A test that is neither run nor named looks like one that passed."""
    results = make(GOOD + FREE, CLASSES, requireApproval=False)
    found = {name: result.passed for name, result in results.items() if "test_" in name}
    assert found == {"TestC.test_in_class": True, "TestC.test_again": True, "TestC.test_async": False}


@requirement("TOOL-50")
@pytest.mark.parametrize(
    ("head", "needs"),
    [
        ("class TestC:\n    def setup_method(self): pass\n", "setup_method"),
        ("class TestC:\n    def __init__(self, more): pass\n", "arguments"),
        ("import unittest\nclass Checks(unittest.TestCase):\n", "setUp"),
    ],
)
def test_a_class_that_needs_more_than_we_do_is_named(make: Any, head: str, needs: str) -> None:
    """And its tests do not count as passed."""
    results = make(GOOD + FREE, head + "    def test_x(self): pass\n", requireApproval=False)
    [problem] = [result.problem for name, result in results.items() if name.endswith(".test_x")]
    assert problem == f"its class needs {needs}, which lastword test does not call\nhint: run it with pytest"


@requirement("TOOL-50")
def test_the_test_functions_of_a_registration_are_not_tests(make: Any) -> None:
    """`test_execute = register_execute_tool(…)` begins like a test and is a tool for writing one."""
    tests = "from os.path import samefile as test_of_somebody_else"
    results = make(GOOD + "test_execute = " + FREE, tests, requireApproval=False)
    assert not [name for name in results if name.startswith("test_")]


@requirement("TOOL-50")
def test_a_failing_test_says_where_and_with_what(make: Any) -> None:
    """File, line, source and the values in sight: enough to mend it without running it again."""
    results = make(GOOD + FREE, "def test_sum():\n    total = 1 + 1\n    assert total == 3\n", requireApproval=False)
    problem = results["test_sum"].problem
    assert problem is not None
    assert problem.splitlines()[0].endswith("tool/test_t.py:3: AssertionError")
    assert problem.splitlines()[1:] == ["  assert total == 3", "  total = 2"]


@pytest.mark.parametrize(
    ("tests", "name", "words"),
    [
        ("async def test_x(): raise KeyError('k')", "test_x", "KeyError: 'k'"),
        ("def test_x(tmp_path): pass", "test_x", "it takes tmp_path, and lastword test passes nothing"),
        ("def test_x(:", "test_t.py", "test_t.py:1: invalid syntax"),
        ("import nothing_here", "test_t.py", "ModuleNotFoundError"),
    ],
)
def test_every_way_to_fail_is_told(make: Any, tests: str, name: str, words: str) -> None:
    """A test that cannot run has not passed."""
    result = make(GOOD + FREE, tests, requireApproval=False)[name]
    assert not result.passed
    assert words in str(result.problem)


@requirement("TOOL-43", "TOOL-50")
@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("open('made', 'w')", "it tried to write made although the person had said no"),
        ("import os; os.mkdir('made')", "it tried to make a folder although"),
        ("import subprocess; subprocess.run(['true'])", "it tried to run a program although"),
    ],
)
def test_a_tool_that_acts_after_a_no_is_found_out(
    make: Any, body: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The most dangerous mistake in a tool is one that no call of its own would show."""
    monkeypatch.chdir(tmp_path)
    code = f"def execute(params, user_action):\n    {body}\n    return {{'success': True, 'message': ''}}\n{APPROVED}"
    result = make(code)[RESPECTS_A_DENIAL]
    assert not result.passed
    assert words in str(result.problem)
    assert not (tmp_path / "made").exists()


@requirement("TOOL-50")
def test_a_card_that_cannot_be_drawn_is_found_out(make: Any) -> None:
    """Arguments that fit the manifest must lead to a card; else nobody can ever approve the tool."""
    code = (
        "def execute(params, user_action): return {'success': False, 'message': ''}\n"
        "def request(params): return params['path'][99]\n"
        "AssistantTool.register_approval_request(request)\n" + APPROVED
    )
    result = make(code, parameters=[{"name": "path", "type": "string"}])[RESPECTS_A_DENIAL]
    assert "IndexError" in str(result.problem)


def test_arguments_that_cannot_be_made_up_are_asked_for(make: Any) -> None:
    """The author knows an example; the schema has a place for it."""
    parameters = [{"name": "code", "type": "string", "schema": {"pattern": "^[A-Z]{3}-[0-9]{7}$"}}]
    code = "def execute(params, user_action): return {'success': False, 'message': ''}\n" + APPROVED
    result = make(code, parameters=parameters)[RESPECTS_A_DENIAL]
    assert not result.passed
    assert '"schema": {"examples": [...]}' in str(result.problem)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("string", None), ("number", None), ("boolean", None), ("null", None), ("array", None), ("object", None),
        ("any", None), ("string", {"enum": ["b", "a"]}), ("string", {"minLength": 30}), ("string", {"maxLength": 1}),
        ("number", {"minimum": 7}), ("number", {"maximum": -7}), ("number", {"type": "integer"}),
        ("array", {"default": [1]}), ("string", {"pattern": "^x+$", "examples": ["xx"]}),
    ],
)  # fmt: skip
def test_sample_arguments_fit_the_manifest(kind: str, schema: dict[str, Any] | None) -> None:
    """Made up, and valid."""
    manifest = Manifest(
        id="t",
        display_name="T",
        description="d",
        parameters=(Parameter("value", kind, schema=schema), Parameter("other", "string", required=False)),
    )
    arguments = sample_arguments(manifest)
    assert set(arguments) == {"value"}
    Tool(manifest, "assistant", None).validate(arguments)


def test_one_broken_tool_does_not_hide_the_others(tmp_path: Path) -> None:
    """Everything that can be known is told in one run."""
    for name, text in {"bad": "{}", "good": None}.items():
        folder = tmp_path / name
        folder.mkdir()
        facts = {"displayName": name, "id": name, "description": "d", "parameters": [], "requireApproval": False}
        (folder / "assistant_tool.json").write_text(text or json.dumps(facts))
        (folder / "assistant_tool.py").write_text(f"from lastword import AssistantTool\n{GOOD}{FREE}")
    results = run_tool_tests(tmp_path)
    assert [(result.tool, result.passed) for result in results] == [("bad", False), ("good", True), ("good", True)]


@requirement("TOOL-50", "TOOL-62")
def test_trying_a_denial_runs_nothing_that_a_rule_would_let_pass(make: Any, tmp_path: Path) -> None:
    """`lastword test` says no to arguments that it made up. A rule that waives them must not let the tool act."""
    effect = tmp_path / "effect.txt"
    acts = (
        "from pathlib import Path\n"
        "def execute(params, user_action):\n"
        f"    Path({str(effect)!r}).touch()\n"
        "    return {'success': True, 'message': ''}\n"
    )
    results = make(acts + "AssistantTool.register_needs_approval(lambda params: False)\n" + APPROVED)
    assert not results[RESPECTS_A_DENIAL].passed
    assert not effect.exists()


@requirement("TOOL-50")
def test_a_denial_that_could_not_be_tried_is_not_called_respected(make: Any) -> None:
    """A request function that finds nothing to ask about for made-up arguments shows no card to deny."""
    asks = "from lastword import ToolError\ndef request(params):\n    raise ToolError('nobody is signed in')\n"
    results = make(asks + "AssistantTool.register_approval_request(request)\n" + GOOD + APPROVED)
    assert RESPECTS_A_DENIAL not in results
    assert results["a denial could not be tried: nobody is signed in"].passed
