"""The one door: who decides, what a person is asked, what comes back, and what the journal says."""

import asyncio
import logging
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from lastword import Preset, Session, ToolError, wait_for_answer
from lastword.call.events import Answered, Asked, Finished, Started
from lastword.consent import ALLOWED, DENIED, UserAction, deciders
from lastword.consent.outcome import MAX_MESSAGE
from lastword.editor import ProjectEditor
from lastword.errors import LastWordError
from lastword.rules import Policy
from lastword.store.chain import verify
from lastword.testing import FixedApprover, memory_journal
from lastword.values import written
from requirements import requirement
from sending import CALL, until

SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


@requirement("TOOL-41")
@pytest.mark.parametrize(
    ("preset", "tool", "asked", "missing"),
    [
        (False, False, True, ("preset", "tool")),
        (False, True, True, ("preset",)),
        (True, False, True, ("tool",)),
        (True, True, False, ()),
    ],
    ids=["neither", "tool only", "preset only", "both"],
)
async def test_auto_approval_needs_both_keys(registry, assistant, effects, history, preset, tool, asked, missing):
    """The truth table of the seeds. A person who is asked is told which half is missing."""
    answers = []

    def execute(params, user_action):
        answers.append((user_action.primary_confirmed, user_action.secondary_confirmed))
        effects.append(params)
        return {"success": True, "message": "Sent."}

    drawn = []

    def request(params):
        drawn.append(params)
        return {"message": "Send it, really?"}

    assistant(request, execute, autoApprove=tool)
    approver = FixedApprover()
    journal = memory_journal()
    session = Session(registry, approver=approver, preset=Preset(auto_approve=preset, name="fast"), journal=journal)
    outcome = await session.call("send", CALL)
    assert outcome.kind == "succeeded"
    assert outcome.approval == ("person" if asked else "auto")
    assert len(approver.requests) == asked
    assert answers == [(True, False)]
    assert drawn == [CALL]
    records = dict(await history(journal, session.id))
    assert records["asked"]["message"] == "Send it, really?"
    assert tuple(records["asked"]["missing"]) == missing
    person, preset = {"kind": "person", "where": "program"}, {"kind": "preset", "where": None}
    assert records["answered"]["approver"] == (
        person | {"name": "fixed approver"} if asked else preset | {"name": "fast"}
    )
    assert effects == [CALL]


@requirement("TOOL-41")
async def test_with_one_key_and_nobody_to_ask_nothing_runs(registry, assistant, effects):
    """The preset's key alone opens nothing."""
    assistant()
    outcome = await Session(registry, preset=Preset(auto_approve=True)).call("send", CALL)
    assert outcome.kind == "no_approver"
    assert effects == []


@requirement("TOOL-41")
def test_who_decides_is_a_rule_of_two_keys_and_nothing_else(send):
    """Pure, and typed: a text that says false is no key."""
    manifest = send.manifest
    assert Policy.by_keys(manifest, Preset()) == deciders.Person(("preset", "tool"))
    allowed = msgspec.structs.replace(manifest, auto_approve=True)
    assert Policy.by_keys(allowed, Preset(True)) == deciders.Auto()
    free = msgspec.structs.replace(manifest, require_approval=False)
    assert Policy.by_keys(free, Preset()) == deciders.Nobody()
    with pytest.raises(LastWordError):
        Preset(auto_approve="false")  # type: ignore[arg-type]


@requirement("TOOL-40")
@pytest.mark.parametrize(
    ("action", "heard", "kind"),
    [
        (ALLOWED, (True, False), "succeeded"),
        (DENIED, (False, True), "denied"),
        (UserAction.CLOSED, (False, False), "denied"),
    ],
)
async def test_the_execute_function_hears_every_answer(registry, assistant, action, heard, kind):
    """Primary, secondary, and a dialog that was closed; exactly once."""
    answers = []

    def execute(user_action):
        answers.append((user_action.primary_confirmed, user_action.secondary_confirmed))
        return {"success": True, "message": "own words"}

    assistant(None, execute)
    outcome = await Session(registry, approver=FixedApprover(action)).call("send", CALL)
    assert answers == [heard]
    assert outcome.kind == kind
    assert "own words" in outcome.message


@requirement("TOOL-40")
async def test_a_card_is_what_the_request_function_said(registry, assistant):
    """Title, message and labels; the defaults are Allow and Cancel."""
    said = {"message": "Send it?", "title": "Money", "primary_button_label": "Send", "secondary_button_label": "Keep"}
    assistant(lambda params: said)
    assistant(lambda params: {"message": "?"}, id="other")
    approver = FixedApprover()
    session = Session(registry, approver=approver)
    await session.call("send", CALL, origin="line 3 of report.nuwa")
    await session.call("other", CALL)
    first, second = approver.requests
    assert (first.title, first.message) == ("Money", "Send it?")
    assert (first.primary_button_label, first.secondary_button_label) == ("Send", "Keep")
    assert (second.primary_button_label, second.secondary_button_label) == ("Allow", "Cancel")
    assert first.origin == "line 3 of report.nuwa"
    assert first.session_id == session.id


@requirement("TOOL-14")
async def test_a_tool_without_a_request_function_gets_a_default_card(registry, send):
    """Its name, its description, its arguments, Allow and Cancel."""
    approver = FixedApprover()
    await Session(registry, approver=approver).call("send", CALL)
    request = approver.requests[0]
    assert (request.title, request.message) == ("Send money", "Sends money to somebody.")
    assert request.arguments == CALL
    assert (request.primary_button_label, request.secondary_button_label) == ("Allow", "Cancel")
    assert request.preview == ()


@requirement("TOOL-32")
@pytest.mark.parametrize(
    ("returned", "kind", "message", "value"),
    [
        (None, "succeeded", "null", None),
        ("text", "succeeded", "text", "text"),
        ({"b": 1, "a": [None]}, "succeeded", '{"b":1,"a":[null]}', {"b": 1, "a": [None]}),
        ({"success": False, "message": "a value"}, "succeeded", None, {"success": False, "message": "a value"}),
        (object(), "failed", None, None),
        (float("nan"), "failed", None, None),
        ("\ud800", "failed", None, None),
    ],
)  # fmt: skip
async def test_a_registry_style_tool_returns_any_json_value(registry, returned, kind, message, value):
    """It travels as `value` and is rendered into the message; what JSON cannot hold is a failed call."""
    registry.register("work", SCHEMA, lambda args, context: returned)
    outcome = await Session(registry).call("work")
    assert (outcome.kind, outcome.value) == (kind, value)
    assert outcome.result() == {"success": kind == "succeeded", "message": outcome.message}
    if message is not None:
        assert outcome.message == message
    outcome.message.encode()


@requirement("TOOL-32")
@pytest.mark.parametrize(
    "returned", [None, "done", {"success": True}, {"success": 1, "message": ""}, {"success": True, "message": 5},
                 {"success": True, "message": "", "more": 1}, (True, "done")],
)  # fmt: skip
async def test_an_assistant_tool_that_returns_something_else_has_failed(registry, assistant, returned):
    """The contract of the seeds is `{success, message}`."""
    assistant(None, lambda params: returned)
    outcome = await Session(registry, approver=FixedApprover()).call("send", CALL)
    assert outcome.kind == "failed"
    assert "returned something other than {success, message}" in outcome.message


@requirement("TOOL-32")
@pytest.mark.parametrize("success", [True, False])
async def test_an_assistant_tool_says_itself_whether_it_succeeded(registry, assistant, success):
    """Failed is the tool's own no: neither an exception nor a denial."""
    assistant(None, lambda params: {"success": success, "message": "Well."})
    outcome = await Session(registry, approver=FixedApprover()).call("send", CALL)
    assert (outcome.kind, outcome.success) == ("succeeded" if success else "failed", success)
    assert outcome.result() == {"success": success, "message": "Well."}


@requirement("TOOL-32")
@pytest.mark.parametrize(
    ("returns", "value", "fits"),
    [("number", 1, True), ("number", True, False), ("string", 1, False), ("object", [], False), ("array", [], True),
     ("null", None, True), ("boolean", 0, False), ("any", [1], True), ("string", None, False)],
)  # fmt: skip
async def test_a_declared_return_type_is_checked(registry, returns, value, fits):
    """A mismatch is a failed call, and says what was promised."""
    registry.register("work", {**SCHEMA, "returns": returns}, lambda args, context: value)
    outcome = await Session(registry).call("work")
    assert outcome.kind == ("succeeded" if fits else "failed")
    if not fits:
        article = "an" if returns in ("array", "object") else "a"
        assert f"promised to return {article} {returns} and returned " in outcome.message
        assert " a array" not in outcome.message
        assert outcome.value is None


@requirement("TOOL-33")
@pytest.mark.parametrize(
    ("problem", "advice"),
    [
        (ValueError("the password is hunter2"), None),
        (FileNotFoundError("/home/ann/secret"), "check names and paths"),
        (PermissionError("/root"), "grant it"),
        (ConnectionRefusedError("10.0.0.1"), "try again later"),
        (TimeoutError(), "try again later"),
    ],
)
async def test_an_exception_becomes_a_failed_result_without_internals(registry, caplog, problem, advice):
    """With advice where there is any; the traceback is in the log under the call's id."""

    def work(args, context):
        raise problem

    registry.register("work", SCHEMA, work)
    with caplog.at_level(logging.ERROR, "lastword"):
        outcome = await Session(registry).call("work")
    assert (outcome.kind, outcome.success) == ("raised", False)
    assert type(problem).__name__ in outcome.message
    for internal in ("hunter2", "/home", "/root", "10.0.0.1", "Traceback", "test_door"):
        assert internal not in outcome.message
    if advice:
        assert advice in outcome.message
    assert outcome.call_id in outcome.message
    assert outcome.call_id in caplog.text
    assert "Traceback" in caplog.text


@requirement("TOOL-33")
async def test_a_tools_own_error_speaks_to_the_model(registry, caplog):
    """ToolError is for words that are meant to be read."""

    def work(args, context):
        raise ToolError("The shop is closed.", hint="ask again on Monday")

    registry.register("work", SCHEMA, work)
    outcome = await Session(registry).call("work")
    assert (outcome.kind, outcome.message) == ("failed", "The shop is closed.\nhint: ask again on Monday")
    assert caplog.text == ""


@requirement("TOOL-33")
@pytest.mark.parametrize("how", ["result", "error", "assistant"])
async def test_a_result_larger_than_a_limit_is_cut_and_says_so(registry, assistant, how):
    """Whoever asked learns that there was more."""
    text = "x" * (MAX_MESSAGE + 1)

    def work(args, context):
        if how == "error":
            raise ToolError(text)
        return text

    registry.register("work", SCHEMA, work)
    assistant(None, lambda params: {"success": True, "message": text})
    session = Session(registry, approver=FixedApprover())
    outcome = await (session.call("send", CALL) if how == "assistant" else session.call("work"))
    assert outcome.message.startswith("x" * MAX_MESSAGE + "\n[cut here: ")
    assert f"{MAX_MESSAGE} of {MAX_MESSAGE + 1} characters" in outcome.message


@requirement("TOOL-34")
async def test_an_editor_tool_needs_an_editor_and_always_receives_one(registry, assistant, tmp_path):
    """Without one it is as good as unknown; other tools may get none."""
    seen = []

    def execute(editor):
        seen.append(editor)
        return {"success": True, "message": ""}

    assistant(None, execute, scriptEditorOnly=True, parameters=[])
    assistant(None, execute, id="other", parameters=[])
    approver = FixedApprover()
    without = Session(registry, approver=approver)
    outcome = await without.call("send")
    assert outcome.kind == "unknown_tool"
    assert "works only on a project in an editor" in outcome.message
    assert seen == []
    assert approver.requests == []
    assert (await without.call("other")).kind == "succeeded"
    assert seen == [None]
    await Session(registry, approver=approver, editor=ProjectEditor(tmp_path)).call("send")
    assert seen[1] is not None


@requirement("TOOL-30", "TOOL-45")
async def test_the_journal_tells_the_life_of_a_call_in_order(registry, send, effects, history):
    """Asked, answered, burned and started before it ran, finished after; chained, so that no edit stays unseen."""
    order: list[Any] = []
    journal = memory_journal()

    async def execute(params, user_action, context):
        order.extend(record.kind for record in await journal.store.read())
        return {"success": True, "message": "Sent."}

    registry.unregister("send")
    registry.add(replace(send, execute=execute))
    session = Session(registry, approver=FixedApprover(), journal=journal)
    outcome = await session.call("send", CALL, origin="a test")
    assert order == ["asked", "answered", "burned", "started"]
    records = await history(journal, session.id)
    assert [kind for kind, _ in records] == [*order, "finished"]
    facts = dict(records)
    assert facts["asked"]["arguments"] == facts["started"]["arguments"] == CALL
    assert facts["burned"]["nonce"] == facts["asked"]["nonce"]
    assert facts["started"]["approval"] == facts["finished"]["approval"] == "person"
    assert facts["started"]["tool_digest"] == registry.lookup("send").digest != send.digest
    assert facts["started"]["origin"] == "a test"
    assert (facts["finished"]["kind"], facts["finished"]["message"]) == ("succeeded", outcome.message)
    stored = await journal.store.read()
    assert {record.subject for record in stored} == {outcome.call_id}
    assert verify(stored) == await journal.store.head()


@requirement("TOOL-30")
async def test_a_call_that_needs_nobody_is_journaled_too(registry, history):
    """Started and finished, without waiting."""
    registry.register("work", SCHEMA, lambda args, context: 1)
    session = Session(registry)
    await session.call("work")
    records = await history(session.journal, session.id)
    assert [kind for kind, _ in records] == ["started", "finished"]
    assert dict(records)["started"]["approval"] == "not_needed"


def exchange_for_one_that_asks_nobody(registry, execute):
    """While the card waits, the application replaces the tool by one that needs no approval; then comes the yes."""

    def answer(request):
        registry.unregister("work")
        registry.register("work", SCHEMA, execute)
        return request.allow()

    registry.register("work", SCHEMA, lambda args, context: "old", require_approval=True)
    return FixedApprover([answer])


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_needs_no_yes_any_longer_runs_and_its_caller_hears_how_it_ended(registry, history, is_async):
    """The yes was given to another tool and starts nothing. The new one runs as any call of it would, once, and to a
    caller who got an error instead it would look as if it had not."""

    async def on_the_loop(args, context):
        return "new"

    approver = exchange_for_one_that_asks_nobody(registry, on_the_loop if is_async else lambda args, context: "new")
    session = Session(registry, approver=approver)
    outcome = await session.call("work")
    assert (outcome.kind, outcome.value, outcome.approval) == ("succeeded", "new", "not_needed")
    kinds = [kind for kind, _ in await history(session.journal, session.id)]
    assert kinds == ["asked", "answered", "started", "finished"]
    assert (await session.call("work")).value == "new"


@pytest.mark.parametrize("leaves", [False, True])
async def test_a_tool_that_needs_no_yes_any_longer_has_one_end_when_it_is_cut_short(registry, history, leaves):
    """It is the same call as the one that was asked about, and a second end would contradict the first."""
    begun = asyncio.Event()

    async def wait(args, context):
        begun.set()
        await asyncio.Event().wait()

    session = Session(registry, approver=exchange_for_one_that_asks_nobody(registry, wait))
    task = asyncio.create_task(session.call("work", call_id="mine"))
    await begun.wait()
    if leaves:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        session.cancel("mine")
        assert (await task).kind == "cancelled"
    kinds = [kind for kind, _ in await history(session.journal, session.id)]
    assert kinds == ["asked", "answered", "started", "finished"]


@requirement("TOOL-47")
async def test_several_cards_are_answered_at_once_by_call_id(registry, send, effects):
    """A person says yes to three, and one of them is gone already."""
    session = Session(registry, approver=wait_for_answer)
    calls = [asyncio.create_task(session.call("send", {"to": name})) for name in ("Ann", "Bob", "Cid")]
    await until(lambda: len(session.pending()) == 3)
    ids = [request.call_id for request in session.pending()]
    assert session.answer(ids[1], DENIED) == [ids[1]]
    assert session.answer([*ids, "unknown"], ALLOWED) == [ids[0], ids[2]]
    assert [(await call).kind for call in calls] == ["succeeded", "denied", "succeeded"]
    assert sorted(params["to"] for params in effects) == ["Ann", "Cid"]


@pytest.mark.parametrize("who", ["the approver itself", "a listener"])
async def test_an_approver_whose_card_was_answered_as_it_was_asked_is_told(registry, send, effects, who: str):
    """Somebody answers before the approver first waits. It does not go on showing a card that has its answer."""
    told: list[Any] = []

    async def ask(request):
        if who == "the approver itself":
            session.answer(request.call_id, ALLOWED)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append("over")
            raise

    def listen(event):
        if who == "a listener" and isinstance(event, Asked):
            session.answer(event.request.call_id, ALLOWED)

    session = Session(registry, approver=ask)
    session.listen(listen)
    assert (await session.call("send", CALL)).kind == "succeeded"
    await until(lambda: told)
    assert (told, effects) == (["over"], [CALL])


@requirement("TOOL-30")
async def test_whoever_listens_hears_the_life_of_a_call(registry, send):
    """Cards, answers, starts and ends, as they happen."""
    session = Session(registry, approver=FixedApprover())
    heard: list[Any] = []
    stop = session.listen(heard.append)
    outcome = await session.call("send", CALL)
    stop()
    await session.call("send", CALL)
    asked, answered, started, finished = heard
    assert isinstance(asked, Asked)
    assert isinstance(answered, Answered)
    assert (answered.call_id, str(answered.by)) == (outcome.call_id, "fixed approver")
    assert started == Started(outcome.call_id, "send", written(CALL))
    assert finished == Finished(outcome)
