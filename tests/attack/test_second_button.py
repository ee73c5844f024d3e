"""A second button that is a consent of its own: pressed by a person, on this very card, or it is a no."""

import asyncio
from typing import Any

import pytest

from lastword import ApprovalRequest, OutcomeUnknown, Preset, Session, ToolRegistry, UserAction, wait_for_answer
from lastword.consent import Answerer
from lastword.errors import LastWordError
from lastword.journal import Journal
from lastword.testing import FixedApprover
from requirements import requirement


@pytest.fixture
def heard() -> list[Any]:
    return []


@pytest.fixture
def publish(registry: ToolRegistry, effects: list[Any], heard: list[Any]) -> None:
    def request() -> dict[str, str]:
        return {"message": "Publish it?", "primary_button_label": "Publish", "secondary_button_label": "Save a draft"}

    @registry.tool(secondary_acts=True, request=request)
    def publish(text: str, user_action: UserAction) -> str:
        """Publish a text, or keep it as a draft."""
        heard.append((user_action.primary_confirmed, user_action.secondary_confirmed))
        if user_action.primary_confirmed:
            effects.append(("published", text))
            return "published"
        if user_action.secondary_confirmed:
            effects.append(("draft", text))
            return "saved as a draft"
        return "kept"


@requirement("TOOL-67")
async def test_the_second_button_runs_the_tool_as_the_first_would(registry, publish, effects, heard):
    """It is asked, answered, burned and started like any yes, and the tool hears which button it was."""
    journal = Journal()
    session = Session(registry, approver=FixedApprover(lambda card: card.allow_second()), journal=journal)
    outcome = await session.call("publish", {"text": "hi"})
    assert (outcome.kind, outcome.approval, outcome.value) == ("succeeded", "person", "saved as a draft")
    assert (effects, heard) == ([("draft", "hi")], [(False, True)])
    kinds = [record.kind for record in await journal.store.read(subject=outcome.call_id)]
    assert kinds == ["asked", "answered", "burned", "started", "finished"]


PRESSES: dict[str, dict[str, Any]] = {
    "bare": {},
    "with the digest": {"answers": "this"},
    "without the digest": {"acts": "secondary"},
    "of another card": {"answers": "0" * 64, "acts": "secondary"},
}


@requirement("TOOL-67")
@pytest.mark.parametrize("press", PRESSES.values(), ids=PRESSES)
async def test_any_other_second_press_is_a_no(registry, publish, effects, heard, press):
    """A surface that knows nothing of such tools says (false, true) for Deny, and must not act by that."""

    def answer(card: ApprovalRequest) -> UserAction:
        return UserAction(False, True, **press | ({"answers": card.digest} if press.get("answers") == "this" else {}))

    outcome = await Session(registry, approver=FixedApprover(answer)).call("publish", {"text": "hi"})
    assert (outcome.kind, effects) == ("denied", [])
    assert heard == [(False, False)], "a no must not look to the tool like its second button"


@requirement("TOOL-67")
async def test_a_tool_that_did_not_say_so_takes_the_second_button_as_a_no(registry, send, effects):
    """Secondary is a no, as the seeds have it."""
    session = Session(registry, approver=FixedApprover(lambda card: card.allow_second()))
    assert (await session.call("send", {"to": "ada@example.org", "subject": "x"})).kind in (
        "denied",
        "invalid_arguments",
    )
    assert effects == []


@requirement("TOOL-67")
@pytest.mark.parametrize("kind", ["preset", "rule", "grant", "client", "waiver", "line"])
async def test_nobody_but_a_person_presses_it(registry, publish, effects, kind):
    """No preset, rule, grant or dialogue: they would choose between two acts that only the person can tell apart."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.create_task(session.call("publish", {"text": "hi"}, call_id="one"))
    card = await session.card_for("one")
    assert isinstance(card, ApprovalRequest)
    session.answer("one", card.allow_second(), by=Answerer(kind, "x"))
    outcome = await call
    assert (outcome.kind, effects) == ("denied", [])


@requirement("TOOL-67")
async def test_auto_approval_presses_the_first_button(registry, effects):
    """Both keys are for what the card is about, and that is its first button."""

    @registry.tool(secondary_acts=True, auto_approve=True)
    def keep(user_action: UserAction) -> str:
        """Keep."""
        return "first" if user_action.primary_confirmed else "second"

    assert (await Session(registry, preset=Preset(True)).call("keep")).value == "first"


@requirement("TOOL-67")
async def test_an_answer_from_another_process_needs_the_digest_as_well(registry, publish, effects):
    """Written into the journal by somebody who saw the card's facts."""
    journal = Journal()
    session = Session(registry, id="s", approver=wait_for_answer, journal=journal)
    call = asyncio.create_task(session.call("publish", {"text": "hi"}, call_id="one"))
    await session.card_for("one")
    [facts] = await journal.waiting()
    assert facts["secondary_acts"] is True
    request = ApprovalRequest.from_facts(facts)
    assert request.manifest.secondary_acts
    assert await journal.answer(facts, request.allow_second(), "somebody")
    assert (await call).value == "saved as a draft"


@requirement("TOOL-67")
async def test_the_second_button_is_spent_once(registry, publish, effects):
    """Asked again by its id, the call tells how it ended."""
    session = Session(registry, approver=FixedApprover(lambda card: card.allow_second()))
    for _ in range(2):
        assert (await session.call("publish", {"text": "hi"}, call_id="one")).value == "saved as a draft"
    assert effects == [("draft", "hi")]


@requirement("TOOL-67")
@pytest.mark.parametrize(
    "facts",
    [
        {"primary_confirmed": True, "secondary_confirmed": False, "acts": "secondary"},
        {"primary_confirmed": False, "secondary_confirmed": False, "acts": "secondary"},
        {"primary_confirmed": False, "secondary_confirmed": True, "acts": "secondary", "arguments": {"text": "x"}},
        {"primary_confirmed": False, "secondary_confirmed": True, "acts": "primary"},
    ],
)
def test_an_action_that_contradicts_itself_is_refused(facts):
    with pytest.raises(LastWordError, match="second button"):
        UserAction(**facts)


@requirement("TOOL-67")
async def test_everything_that_was_stopped_stays_stopped(registry, publish, effects):
    """A yes by the second button that waits in the journal is voided by a stop like any other yes."""
    journal = Journal()
    session = Session(registry, id="s", approver=wait_for_answer, journal=journal)
    call = asyncio.create_task(session.call("publish", {"text": "hi"}, call_id="one"))
    await session.card_for("one")
    session.detach("one")
    with pytest.raises(LastWordError):
        await call
    [facts] = await journal.waiting()
    assert await journal.answer(facts, ApprovalRequest.from_facts(facts).allow_second(), "somebody")
    await Session(registry, id="other", journal=journal).stop()
    later = Session(registry, id="s", approver=FixedApprover(lambda card: card.deny()), journal=journal)
    assert (await later.call("publish", {"text": "hi"}, call_id="one")).kind == "denied"
    assert effects == []


@requirement("TOOL-67")
async def test_a_call_in_doubt_is_run_again_with_the_button_that_was_pressed(registry, effects):
    """Whoever saved a draft and decides to run it again must not publish."""

    @registry.tool(secondary_acts=True)
    def publish(user_action: UserAction) -> str:
        """Publish, or keep a draft."""
        effects.append("published" if user_action.primary_confirmed else "draft")
        if len(effects) == 1:
            raise OutcomeUnknown("the connection broke")
        return effects[-1]

    session = Session(registry, approver=FixedApprover(lambda card: card.allow_second()))
    assert (await session.call("publish", call_id="one")).kind == "outcome_unknown"
    assert (await session.resolve("one", "again")).value == "draft"
    assert effects == ["draft", "draft"]


@requirement("TOOL-67")
async def test_a_second_press_with_arguments_does_not_press_the_first_button(registry, publish, effects):
    """An empty change is a change. It used to be carried out as one, by the first button, with other arguments than
    those on the card.
    """
    with pytest.raises(LastWordError, match="acts goes with the second button"):
        UserAction(False, True, arguments={}, acts="secondary")
    answer = FixedApprover(lambda card: UserAction(False, True, arguments={}, acts="secondary", answers=card.digest))
    assert (await Session(registry, approver=answer).call("publish", {"text": "hi"})).kind == "no_approver"
    assert effects == []
