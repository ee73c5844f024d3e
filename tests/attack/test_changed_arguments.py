"""What was shown is what runs, whoever still holds a copy of it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lastword import ApprovalRequest, Session, ToolRegistry, UserAction
from lastword.call.events import Asked
from lastword.editor import ProjectEditor
from lastword.testing import FixedApprover
from requirements import requirement
from sending import CALL


@requirement("TOOL-31", "TOOL-45")
async def test_the_caller_changes_what_it_sent_while_the_card_waits(registry: ToolRegistry, effects):
    """The caller keeps the dict, and all that is in it. What runs was copied, deeply, before anybody was asked."""
    parameters = [{"name": "rows", "type": "array"}, {"name": "to", "type": "string"}]
    schema = {"description": "Saves.", "parameters": parameters, "returns": "any"}
    registry.register("save", schema, lambda args, context: effects.append(args), require_approval=True)
    rows: list[Any] = [["a"], {"b": [1]}]
    arguments = {"rows": rows, "to": "Ann"}

    def meanwhile(request: ApprovalRequest) -> UserAction:
        arguments["to"] = "Mallory"
        rows[0].append("forged")
        rows[1]["b"].append(2)
        return request.allow()

    outcome = await Session(registry, approver=FixedApprover(meanwhile)).call("save", arguments)
    assert outcome.kind == "succeeded"
    assert effects == [{"rows": [["a"], {"b": [1]}], "to": "Ann"}]


@requirement("TOOL-31", "TOOL-45", "TOOL-46")
@pytest.mark.parametrize("listens", [False, True], ids=["approver", "listener"])
async def test_whoever_is_shown_a_request_changes_it(
    registry: ToolRegistry, assistant, effects, tmp_path: Path, listens: bool
):
    """Each look at the arguments is a fresh copy, and so is the request: not even force reaches what was sealed."""
    (tmp_path / "a.txt").write_text("old")

    def request(params, editor):
        show = {"label": "Show", "action": lambda: editor.open_diff_editor("a.txt", "shown")}
        return {"message": "?", "preview_button": show}

    async def execute(params, user_action, editor):
        effects.append(params)
        await editor.write_to_file("a.txt", "something else")
        return {"success": True, "message": ""}

    def meddle(request: ApprovalRequest) -> UserAction:
        yes = request.allow()
        request.arguments["to"] = "Mallory"
        request.facts()["arguments"]["to"] = "Mallory"
        with pytest.raises(AttributeError):
            request.preview = ()  # type: ignore[misc]
        for thing, name, value in (
            (request.preview[0], "proposed", "something else"),
            (request, "preview", ()),
            (request, "argument_bytes", b'{"to":"Mallory"}'),
        ):
            msgspec.structs.force_setattr(thing, name, value)
        return yes

    assistant(request, execute)
    approver = FixedApprover(ApprovalRequest.allow if listens else meddle)
    session = Session(registry, approver=approver, editor=ProjectEditor(tmp_path))
    if listens:

        def listener(event: object) -> None:
            if isinstance(event, Asked):
                meddle(event.request)

        session.listen(listener)
    outcome = await session.call("send", CALL)
    assert effects in ([CALL], [])
    assert not outcome.success
    assert (tmp_path / "a.txt").read_text() == "old"


@requirement("TOOL-31", "TOOL-42")
async def test_the_request_function_changes_its_parameters(registry: ToolRegistry, assistant, effects):
    """Neither at once nor through a reference that it keeps does it reach the card or the execution."""
    kept: list[dict[str, Any]] = []

    def request(params):
        params["to"] = "Mallory"
        kept.append(params)
        return {"message": "Send it?"}

    assistant(request)

    def later(request: ApprovalRequest) -> UserAction:
        kept[0]["amount"] = 1_000_000
        assert request.arguments == CALL
        return request.allow()

    await Session(registry, approver=FixedApprover(later)).call("send", CALL)
    assert effects == [CALL]


@requirement("TOOL-45")
async def test_a_question_put_again_is_the_same_question(registry: ToolRegistry, send, effects):
    """After a void answer the caller's own dict is not looked at a second time."""
    arguments: dict[str, Any] = dict(CALL)
    seen = []

    def answers(request: ApprovalRequest) -> UserAction:
        seen.append(request.arguments)
        arguments["to"] = "Mallory"
        return UserAction(True, False, answers="0" * 64) if len(seen) == 1 else request.allow()

    await Session(registry, approver=FixedApprover(answers)).call("send", arguments)
    assert seen == [CALL, CALL]
    assert effects == [CALL]


class Shifty(dict):
    """Says one thing to whoever checks and another to whoever runs."""

    def items(self) -> Any:
        return {"to": "Ann"}.items()


class Listish:
    def __iter__(self) -> Iterator[str]:
        return iter("ab")


class Name(str):
    """A string that could compare as it likes."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return True


@requirement("TOOL-31", "VAL-1")
@pytest.mark.parametrize(
    "arguments",
    [Shifty(to="Mallory"), {"to": Name("Mallory")}, {Name("to"): "Ann"}, {"to": Listish()}, {"to": ("Ann",)}, [], "to"],
    ids=["dict subclass", "str subclass", "key subclass", "iterable", "tuple", "list", "text"],
)
async def test_a_value_that_could_change_between_check_and_use_is_refused(
    registry: ToolRegistry, send, effects, arguments
):
    """Only exact JSON types have no behaviour of their own."""
    approver = FixedApprover()
    outcome = await Session(registry, approver=approver).call("send", arguments)
    assert outcome.kind == "invalid_arguments"
    assert approver.requests == []
    assert effects == []


@requirement("TOOL-31", "TOOL-44")
async def test_texts_that_look_alike_are_different_arguments(registry: ToolRegistry, send, effects):
    """Composed and decomposed letters have different bytes, so a yes to one is no yes to the other."""
    composed, decomposed = "Ren\u00e9", "Rene\u0301"
    first = FixedApprover(ApprovalRequest.deny)
    session = Session(registry, approver=first)
    await session.call("send", {"to": composed})
    again = Session(registry, approver=FixedApprover(first.requests[0].allow()))
    outcome = await again.call("send", {"to": decomposed})
    assert outcome.kind == "stale"
    assert effects == []


@requirement("TOOL-5", "TOOL-31")
async def test_a_tool_that_changes_its_own_manifest_changes_nothing_that_counts(registry: ToolRegistry, effects):
    """A schema is a dict inside a frozen manifest. What is checked and sealed was fixed at registration."""
    tool = registry.register(
        "save",
        {
            "description": "Saves.",
            "parameters": [{"name": "n", "type": "number", "schema": {"maximum": 10, "default": 1}, "required": False}],
            "returns": "any",
        },
        lambda args, context: context.manifest.parameters[0].schema.clear() or effects.append(args),
        require_approval=True,
    )
    before = tool.digest
    session = Session(registry, approver=FixedApprover())
    await session.call("save", {})
    assert effects == [{"n": 1}]
    assert (await session.call("save", {"n": 11})).kind == "invalid_arguments"
    assert registry.lookup("save").digest == before
    assert effects == [{"n": 1}]
