"""Arguments: validated in words a model can repair from, reduced to bytes, bound by name."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword import Session, ToolRegistry
from lastword.errors import ArgumentsError, ManifestError, ToolLoadError
from lastword.testing import FixedApprover
from lastword.tools.manifest import parse_manifest
from lastword.tools.tool import MAX_PROBLEMS, Tool
from lastword.values import canonical, decode, written
from requirements import requirement
from sending import CALL, MANIFEST

GOLDEN = Path(__file__).parent.parent / "golden" / "arguments"


def tool_with(parameters, execute=lambda params: None, **fields) -> Tool:
    return Tool(parse_manifest(canonical(MANIFEST | {"parameters": parameters} | fields)), "assistant", execute)


@requirement("TOOL-31")
@pytest.mark.parametrize("case", sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "tool.parameters"))
def test_wrong_arguments_are_told_all_at_once_in_words_to_repair_from(case, golden):
    """Missing, unknown and wrong ones together; a secret is told to nobody, also when it is wrong."""
    tool = tool_with(json.loads((GOLDEN / "tool.parameters.json").read_text()))
    with pytest.raises(ArgumentsError) as refusal:
        tool.validate(json.loads((GOLDEN / f"{case}.json").read_text()))
    golden(GOLDEN / f"{case}.txt", str(refusal.value) + "\n")


@requirement("TOOL-31")
async def test_wrong_arguments_stop_at_the_door(registry: ToolRegistry, send, effects):
    """Before any card; the words are the outcome's message."""
    approver = FixedApprover()
    outcome = await Session(registry, approver=approver).call("send", {"amount": "5"})
    assert outcome.kind == "invalid_arguments"
    assert outcome.message == (
        "the arguments do not fit send:\n"
        "the argument to (string) is missing: Who gets it\n"
        'the argument amount must be a number, found the string "5"\n'
        "hint: nothing was done; correct the arguments and ask again"
    )
    assert approver.requests == []
    assert effects == []


@requirement("TOOL-31")
async def test_a_flood_of_wrong_arguments_is_answered_shortly_and_soon(registry: ToolRegistry, send):
    """A model's mistake must cost neither a megabyte of words nor seconds of everybody's loop."""
    began = time.process_time()
    outcome = await Session(registry).call("send", {f"key{i}": i for i in range(200_000)})
    assert outcome.kind == "invalid_arguments"
    assert outcome.message.count("unknown argument") < MAX_PROBLEMS
    assert "there is more" in outcome.message
    assert len((await Session(registry).call("x" * 1_000_000)).message) < 110_000
    assert time.process_time() - began < 5


@requirement("TOOL-31")
@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers() | st.floats() | st.text()))
def test_every_reader_gets_a_fresh_decoding_of_the_same_bytes(arguments):
    """Nobody can change what another sees."""

    def execute(params):
        pass

    tool = tool_with([], execute, additionalParameters=True)
    try:
        data = tool.validate(arguments)
    except ArgumentsError:
        return
    given = {"user_action": None, "editor": None, "context": None}
    first = tool.bind(data, given)[1]["params"]
    first["forged"] = first.clear()
    second = tool.bind(data, given)[1]["params"]
    assert written(second) == data
    assert second is not first


@requirement("TOOL-31")
async def test_numbers_are_the_same_number_to_every_reader(registry: ToolRegistry, assistant, effects):
    """5.0 is 5 on the card, in the request function and in the execution, and a large integer keeps its digits."""
    seen = []

    def request(params):
        seen.append(params["amount"])
        return {"message": "?"}

    assistant(request)
    approver = FixedApprover()
    session = Session(registry, approver=approver)
    await session.call("send", {"to": "Ann", "amount": 5.0})
    await session.call("send", {"to": "Ann", "amount": 2**70})
    values = [request.arguments["amount"] for request in approver.requests]
    assert seen == values == [params["amount"] for params in effects] == [5, 2**70]
    assert [type(value) for value in values] == [int, int]


@requirement("TOOL-15")
async def test_a_function_declares_what_it_needs_and_gets_it_by_name(registry: ToolRegistry, assistant):
    """In any order; `params` is a plain dict."""
    got: dict[str, Any] = {}

    def execute(context, params, user_action):
        got.update(params=params, call_id=context.call_id, primary=user_action.primary_confirmed)
        return {"success": True, "message": ""}

    assistant(None, execute)
    outcome = await Session(registry, approver=FixedApprover()).call("send", CALL)
    assert got == {"params": CALL, "call_id": outcome.call_id, "primary": True}
    assert type(got["params"]) is dict


@requirement("TOOL-15", "TOOL-11")
def test_a_function_that_wants_what_nobody_passes_is_refused_when_it_is_loaded():
    """A typing mistake in a name would otherwise be found at the first call, after somebody agreed."""
    with pytest.raises(ToolLoadError) as refusal:
        tool_with([], lambda parms: None)
    assert "declares the argument parms, which nobody will pass" in str(refusal.value)
    assert "did you mean params?" in str(refusal.value)
    with pytest.raises(ToolLoadError, match="declares the argument who"):
        Tool(parse_manifest(canonical(MANIFEST)), "assistant", lambda params: None, request=lambda who: None)


@pytest.mark.parametrize("flag", ["require_approval", "auto_approve", "script_editor_only"])
@pytest.mark.parametrize("value", [None, 0, "false"])
def test_a_flag_that_is_neither_true_nor_false_is_refused(registry: ToolRegistry, flag, value):
    """None is false to Python, and a tool must not lose its approval by a variable that was never set."""
    with pytest.raises(ManifestError, match="expected True or False"):
        registry.tool(**{flag: value})(lambda: None)


def test_two_shapes_of_one_name_in_one_tool_are_refused():
    """Their definitions are shared, and one would silently stand for both."""
    one, other = ({"$ref": "#/$defs/P", "$defs": {"P": {"type": kind}}} for kind in ("object", "array"))
    with pytest.raises(ManifestError, match="two different shapes are both called P"):
        tool_with([{"name": "a", "type": "any", "schema": one}, {"name": "b", "type": "any", "schema": other}])


@requirement("TOOL-2")
def test_a_default_is_fresh_each_time():
    """A list as a default would otherwise be shared by all calls."""
    schema = {"type": "array", "default": []}
    tool = tool_with([{"name": "a", "type": "array", "required": False, "schema": schema}])
    first = decode(tool.validate({}))
    first["a"].append(1)
    assert decode(tool.validate({})) == {"a": []}
    assert decode(tool.validate({"a": [2]})) == {"a": [2]}
