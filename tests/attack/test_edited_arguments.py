"""A person changes the arguments: then they are the author, and see what they have not seen."""

from pathlib import Path
from typing import Any

import pytest

from lastword import ApprovalRequest, Session, ToolRegistry, UserAction
from lastword.consent import ALLOWED, DENIED, Secrets
from lastword.editor import ProjectEditor
from lastword.errors import SessionError
from lastword.journal import Journal, data_of
from lastword.testing import FixedApprover, memory_journal
from requirements import requirement
from sending import CALL


@requirement("TOOL-47")
async def test_edited_arguments_run_and_the_model_is_told(registry: ToolRegistry, send, effects, history):
    """A new sealed request, with the person as its author, in the journal."""
    journal = memory_journal()
    approver = FixedApprover(lambda request: request.edit(amount=1))
    session = Session(registry, approver=approver, journal=journal)
    outcome = await session.call("send", CALL)
    assert outcome.kind == "succeeded"
    assert effects == [{"to": "Ann", "amount": 1}]
    assert outcome.message.startswith(
        'The person changed the arguments of send before approving. What ran: {"to":"Ann","amount":1}'
    )
    assert outcome.arguments == {"to": "Ann", "amount": 1}
    asked = [data for kind, data in await history(journal, session.id) if kind == "asked"]
    assert [(facts["author"], facts["arguments"]["amount"]) for facts in asked] == [("model", 5), ("person", 1)]
    assert asked[0]["nonce"] != asked[1]["nonce"]
    burned = await journal.history(session.id, kind="burned")
    assert [data_of(record)["nonce"] for record in burned] == [asked[1]["nonce"]]


@requirement("TOOL-47")
async def test_the_same_arguments_are_a_plain_confirmation(registry: ToolRegistry, send, effects):
    """Opening the editor and closing it again changes nothing; 5.0 is 5."""
    approver = FixedApprover(lambda request: UserAction(True, False, arguments={"amount": 5.0, "to": "Ann"}))
    outcome = await Session(registry, approver=approver).call("send", CALL)
    assert outcome.message == "Sent to Ann."
    assert outcome.arguments is None
    assert len(approver.requests) == 1
    assert effects == [CALL]


@requirement("TOOL-47")
async def test_edited_arguments_that_do_not_fit_are_asked_again(registry: ToolRegistry, send, effects):
    """Nothing is lost: the person reads what is wrong, on a card with what was asked first."""
    approver = FixedApprover([lambda request: request.edit(amount="much", tip=1), DENIED])
    outcome = await Session(registry, approver=approver).call("send", CALL)
    assert outcome.kind == "denied"
    again = approver.requests[1]
    assert again.arguments == CALL
    assert again.author == "model"
    assert again.problem is not None
    assert "the argument amount must be a number" in again.problem
    assert "unknown argument tip" in again.problem
    assert effects == []


@requirement("TOOL-47", "TOOL-46")
async def test_an_edit_that_changes_what_would_be_written_is_shown_first(
    registry: ToolRegistry, assistant, tmp_path: Path
):
    """The person saw one diff and changed the arguments: the diff that follows from it is put before them."""
    assistant(*_writer(), parameters=_TEXT)
    approver = FixedApprover([lambda request: request.edit(text="by the person"), ALLOWED])
    outcome = await Session(registry, approver=approver, editor=ProjectEditor(tmp_path)).call("send", {"text": "x"})
    assert [request.preview[0].proposed for request in approver.requests] == ["X", "BY THE PERSON"]
    assert approver.requests[1].author == "person"
    assert approver.requests[1].problem == "you changed the arguments, and this is what would happen now"
    assert "The person changed the arguments" in outcome.message
    assert (tmp_path / "a.txt").read_text() == "BY THE PERSON"


@requirement("TOOL-47", "TOOL-6")
async def test_an_edit_of_the_previewed_text_itself_needs_no_second_card(
    registry: ToolRegistry, assistant, tmp_path: Path
):
    """With contentParameter what they wrote is what the diff shows, so they have seen it."""
    assistant(*_writer(shout=False), parameters=_TEXT, contentParameter="text")
    approver = FixedApprover(lambda request: request.edit(text="by the person"))
    await Session(registry, approver=approver, editor=ProjectEditor(tmp_path)).call("send", {"text": "x"})
    assert len(approver.requests) == 1
    assert (tmp_path / "a.txt").read_text() == "by the person"


@requirement("TOOL-47", "TOOL-46")
async def test_an_edit_of_a_call_whose_file_changed_is_void(registry: ToolRegistry, assistant, tmp_path: Path):
    """Drawing the edited call anew must not take the new file for the one that was shown."""
    (tmp_path / "a.txt").write_text("old")

    def meanwhile(request: ApprovalRequest) -> UserAction:
        (tmp_path / "a.txt").write_text("somebody else's work")
        return request.edit(text="by the person")

    assistant(*_writer(shout=False), parameters=_TEXT, contentParameter="text")
    approver = FixedApprover([meanwhile, DENIED])
    outcome = await Session(registry, approver=approver, editor=ProjectEditor(tmp_path)).call("send", {"text": "x"})
    assert outcome.kind == "denied"
    assert (tmp_path / "a.txt").read_text() == "somebody else's work"


async def test_an_edited_call_that_cannot_be_drawn_is_refused(registry: ToolRegistry, assistant, effects):
    """A request function that fails on the person's arguments leaves nothing to agree to."""

    def request(params):
        return {"message": "?"} if params["to"] == "Ann" else {}

    assistant(request)
    approver = FixedApprover(lambda request: request.edit(to="Bob"))
    outcome = await Session(registry, approver=approver).call("send", CALL)
    assert outcome.kind == "refused"
    assert effects == []


@requirement("TOOL-47")
async def test_the_dict_of_an_edit_is_copied_when_it_is_given(registry: ToolRegistry, send, effects):
    """The approver keeps the dict and changes it once the answer is out."""
    edited: dict[str, Any] = {"to": "Ann", "amount": 1}

    class Late(Journal):
        async def answered(self, *args: Any) -> bool:
            edited["to"] = "Mallory"
            return bool(await super().answered(*args))

    approver = FixedApprover(UserAction(True, False, arguments=edited))
    await Session(registry, approver=approver, journal=Late()).call("send", CALL)
    assert effects == [{"to": "Ann", "amount": 1}]


@requirement("TOOL-47")
async def test_a_no_from_elsewhere_while_the_edit_is_sealed_is_heard(registry: ToolRegistry, send, effects):
    """Between the new question and its answer another process can answer it. Then the person is asked again."""

    class Racing(Journal):
        async def asked(self, request: ApprovalRequest, *facts: Any) -> bool:  # type: ignore[override]
            written = await super().asked(request, *facts)
            if request.author == "person" and request.problem is None:
                assert await self.answer(request.facts(), DENIED, "somebody else")
            return written

    approver = FixedApprover([lambda request: request.edit(amount=1), DENIED])
    outcome = await Session(registry, approver=approver, journal=Racing()).call("send", CALL)
    assert outcome.kind == "denied"
    assert effects == []


SECRET = [
    {"name": "to", "type": "string"},
    {"name": "pin", "type": "string", "secret": True, "schema": {"minLength": 4}},
]


@requirement("TOOL-2", "TOOL-47")
@pytest.mark.parametrize("shown", ["mask", "digest"])
async def test_a_secret_that_was_only_seen_masked_is_kept_by_an_edit(
    registry: ToolRegistry, assistant, effects, shown: str
):
    """A form that shows dots sends dots back. They are not the new secret."""
    assistant(parameters=SECRET)

    def edit(request: ApprovalRequest) -> UserAction:
        seen = request.shown_arguments if shown == "mask" else request.facts()["arguments"]
        return UserAction(True, False, arguments=seen | {"to": "Bob"})

    await Session(registry, approver=FixedApprover(edit)).call("send", {"to": "Ann", "pin": "hunter2"})
    assert effects == [{"to": "Bob", "pin": "hunter2"}]


@requirement("TOOL-2")
async def test_a_secret_does_not_pass_through_the_journal(registry: ToolRegistry, assistant, effects):
    """Another process may edit what it can see, and may not write a secret where all can read it."""
    assistant(parameters=SECRET)
    journal = memory_journal()
    errors = []

    async def elsewhere(request: ApprovalRequest) -> UserAction:
        [facts] = await journal.waiting()
        try:
            await journal.answer(facts, UserAction(True, False, arguments={"to": "Bob", "pin": "stolen"}), "phone")
        except SessionError as problem:
            errors.append(problem)
        kept = UserAction(True, False, arguments={"to": "Bob", "pin": Secrets.MASK})
        assert await journal.answer(facts, kept, "phone")
        return DENIED

    session = Session(registry, approver=elsewhere, journal=journal)
    outcome = await session.call("send", {"to": "Ann", "pin": "hunter2"})
    assert outcome.kind == "succeeded"
    assert effects == [{"to": "Bob", "pin": "hunter2"}]
    assert len(errors) == 1
    assert "hunter2" not in outcome.message
    for record in await journal.history(session.id):
        assert b"hunter2" not in (record.data or b"")
        assert b"stolen" not in (record.data or b"")


_TEXT = [{"name": "text", "type": "string"}]


def _writer(shout: bool = True) -> tuple[Any, Any]:
    """A tool that writes its argument, loudly or as it is."""

    def content(params: dict[str, Any]) -> str:
        return str(params["text"]).upper() if shout else str(params["text"])

    def request(params, editor):
        def show() -> None:
            editor.open_diff_editor("a.txt", content(params))

        return {"message": "Write it?", "preview_button": {"label": "Preview", "action": show}}

    async def execute(params, user_action, editor):
        if user_action.primary_confirmed:
            await editor.write_to_file("a.txt", content(params))
        return {"success": True, "message": "Written."}

    return request, execute
