"""One answer, one card, one call, one session, one minute, one tool."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from lastword import ApprovalRequest, Limits, Outcome, Session, ToolRegistry, UserAction, wait_for_answer
from lastword.consent import ALLOWED, DENIED, Answerer, Call, LiveCall
from lastword.editor import Preview
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.journal.call_life import OnceKey, data_of
from lastword.store import MemoryStore
from lastword.testing import FixedApprover, memory_journal
from lastword.tools.guard import Observation
from lastword.values import canonical
from requirements import requirement
from sending import CALL, asked, until


@requirement("TOOL-45")
async def test_a_yes_is_kept_and_given_to_a_later_call(registry: ToolRegistry, send, effects):
    """The same call, word for word, needs a yes of its own."""
    kept: list[UserAction] = []

    def keep(request: ApprovalRequest) -> UserAction:
        kept.append(request.allow())
        return kept[0]

    session = Session(registry, approver=FixedApprover(keep))
    first = await session.call("send", CALL)
    assert first.kind == "succeeded"
    second = await session.call("send", CALL)
    assert second.kind == "stale"
    assert "another request" in second.message
    assert effects == [CALL]


@requirement("TOOL-45")
async def test_a_yes_to_another_call_or_session_starts_nothing(registry: ToolRegistry, send, effects):
    """Its digest covers the call and the session."""
    other = Session(registry, approver=wait_for_answer)
    call, request = await asked(other)
    outcome = await Session(registry, approver=FixedApprover(request.allow())).call("send", {"to": "Mallory"})
    assert outcome.kind == "stale"
    assert effects == []
    assert other.answer(request.call_id, request.deny()) == [request.call_id]
    assert (await call).kind == "denied"


@requirement("TOOL-45")
async def test_another_session_cannot_answer_this_ones_card(registry: ToolRegistry, send, effects):
    """A session answers its own cards."""
    here = Session(registry, approver=wait_for_answer)
    call, request = await asked(here)
    elsewhere = Session(registry, approver=wait_for_answer)
    await elsewhere.open()
    assert elsewhere.answer(request.call_id, ALLOWED) == []
    here.answer(request.call_id, DENIED)
    assert (await call).kind == "denied"
    assert effects == []


@requirement("TOOL-45", "TOOL-47")
async def test_a_yes_to_another_card_is_void_although_it_brings_arguments(registry: ToolRegistry, send, effects):
    """Sealing the edited call anew must not wash off that the answer was given to something else."""
    kept = UserAction(True, False, arguments={"to": "Mallory"}, answers="0" * 64)
    outcome = await Session(registry, approver=FixedApprover(kept)).call("send", CALL)
    assert outcome.kind == "stale"
    assert effects == []


@requirement("TOOL-45")
async def test_two_windows_answer_at_once_and_one_wins(registry: ToolRegistry, send, effects):
    """Whichever comes first counts, and the other is told that it did not."""
    session = Session(registry, approver=wait_for_answer)
    call, request = await asked(session)
    won = [session.answer(request.call_id, request.deny("window 1"), by="window 1")]
    won += [session.answer(request.call_id, request.allow(), by="window 2")]
    assert won == [[request.call_id], []]
    outcome = await call
    assert outcome.kind == "denied"
    assert "window 1" in outcome.message
    assert session.answer(request.call_id, request.allow()) == []
    assert effects == []


@requirement("TOOL-45")
async def test_a_yes_that_names_no_card_does_not_answer_the_one_that_took_its_place(
    registry: ToolRegistry, send, effects
):
    """The person clicks on the card they see, and in that moment the call is asked again under the same id."""
    session = Session(registry, approver=wait_for_answer)
    call, request = await asked(session)
    session.answer(request.call_id, UserAction(True, False, answers="0" * 64))
    await until(lambda: session.pending() and session.pending()[0].nonce != request.nonce)
    [again] = session.pending()
    assert again.call_id == request.call_id
    assert session.answer(request.call_id, ALLOWED) == []
    assert session.answer(request.call_id, again.allow()) == [request.call_id]
    assert (await call).kind == "succeeded"
    assert effects == [CALL]


@requirement("TOOL-45", "TOOL-47")
@pytest.mark.parametrize("journal_first", [True, False])
async def test_a_window_and_another_process_answer_at_once_and_one_wins(
    registry: ToolRegistry, send, effects, journal_first: bool
):
    """The journal decides: an answer is written once, and whoever comes second takes what stands there."""
    journal = memory_journal()
    session = Session(registry, approver=wait_for_answer, journal=journal)
    call, request = await asked(session)
    [facts] = await journal.waiting()
    if journal_first:
        assert await journal.answer(facts, DENIED, by="another process")
        session.answer(request.call_id, request.allow(), by="window")
    else:
        session.answer(request.call_id, request.deny(), by="window")
        await asyncio.sleep(0)
        assert not await journal.answer(facts, ALLOWED, by="another process")
    assert (await call).kind == "denied"
    assert effects == []
    answers = await journal.history(session.id, kind="answered")
    names = [data_of(answer)["approver"]["name"] for answer in answers]
    assert names == ["another process" if journal_first else "window"]


@requirement("TOOL-45")
async def test_two_answers_through_the_journal_and_one_wins(registry: ToolRegistry, send, effects):
    """Two other processes press their button in the same moment."""
    journal = memory_journal()
    session = Session(registry, approver=wait_for_answer, journal=journal, limits=Limits(watch_after_seconds=0))
    call, _ = await asked(session)
    [facts] = await journal.waiting()
    won = await asyncio.gather(*(journal.answer(facts, action, "phone") for action in (ALLOWED, DENIED, ALLOWED)))
    assert sorted(won) == [False, False, True]
    assert (await call).kind == "succeeded"
    assert effects == [CALL]


@requirement("TOOL-45")
async def test_an_answer_through_the_journal_for_another_card_is_void(registry: ToolRegistry, send, effects):
    """The facts say which card was seen; the action may say it as well, and then that counts."""
    journal = memory_journal()
    first, second = (
        Session(
            registry, approver=wait_for_answer, journal=journal, limits=Limits(watch_after_seconds=0, times_asked=1)
        )
        for _ in range(2)
    )
    one, request = await asked(first)
    two, other = await asked(second)
    waiting = {facts["call_id"]: facts for facts in await journal.waiting()}
    assert await journal.answer(waiting[other.call_id], request.allow(), "phone")
    forged = waiting[request.call_id] | {"digest": "0" * 64}
    assert await journal.answer(forged, ALLOWED, "phone")
    assert [(await call).kind for call in (one, two)] == ["stale", "stale"]
    assert effects == []


@requirement("TOOL-45")
async def test_an_approval_that_was_spent_is_asked_for_again(registry: ToolRegistry, send, effects):
    """Another process that holds the same journal burns the nonce first. Then it is burned."""

    class Racing(Journal):
        async def answer_and_start(
            self, request: Any, action: Any, call: Any, tool: Any, sealed: Any, how: str, live: LiveCall, *use: Any
        ) -> bool:
            if not self.raced:
                self.raced = True
                answered = self._answered(request, action, sealed)
                facts = {"seal": sealed.digest, "nonce": sealed.nonce}
                burned = self.entry(request.session_id, "burned", call.id, facts, OnceKey.burn(sealed.nonce))
                assert await self.store.commit(answered, burned)
            return await super().answer_and_start(request, action, call, tool, sealed, how, live, *use)

        raced = False

    approver = FixedApprover()
    session = Session(registry, approver=approver, journal=Racing())
    outcome = await session.call("send", CALL)
    assert outcome.kind == "succeeded"
    assert [request.problem for request in approver.requests] == [None, "the approval was already spent"]
    assert effects == [CALL]


@requirement("TOOL-45")
@pytest.mark.parametrize("ended", [False, True])
async def test_a_call_that_another_process_started_is_not_started_again(registry: ToolRegistry, send, effects, ended):
    """Not with the same yes and not with another: whoever was faster carries it out, and says how it ended."""

    class Racing(Journal):
        async def answer_and_start(self, request: Any, action: Any, call: Any, *args: Any) -> bool:
            assert await super().answer_and_start(request, action, call, *args)
            if ended:
                words = Outcome(kind="succeeded", message="Sent over there.", call_id=call.id, tool=call.tool)
                assert await self.finished(request.session_id, words)
            return await super().answer_and_start(request, action, call, *args)

    approver = FixedApprover()
    session = Session(registry, approver=approver, journal=Racing())
    outcome = await session.call("send", CALL)
    if ended:
        assert (outcome.kind, outcome.message) == ("succeeded", "Sent over there.")
    else:
        assert outcome.kind == "outcome_unknown"
        assert "still being carried out" in outcome.message
    assert len(approver.requests) == 1
    assert effects == []


@requirement("TOOL-45")
async def test_another_yes_to_a_call_that_was_started_starts_nothing(registry: ToolRegistry, send, effects):
    """Two cards for one call, drawn apart, each with a nonce and a yes of its own: the call itself starts once."""
    journal = memory_journal()
    approver = FixedApprover()
    session = Session(registry, approver=approver, journal=journal)
    await session.call("send", CALL)
    request = approver.requests[0]
    [started] = await journal.store.read(kind="started")
    assert started.once == OnceKey.start(request.call_id, 0)
    again = msgspec.structs.replace(request, nonce="another")
    sealed = again.allow().sealed(again, Answerer.person("a second person"), journal.clock())
    call = Call(request.call_id, "send", canonical(CALL))
    assert not await journal.answer_and_start(again, again.allow(), call, send, sealed, "person", LiveCall())
    assert len(await journal.store.read(kind="started")) == 1


@requirement("TOOL-45")
async def test_a_copied_session_cannot_spend_an_approval_again(registry: ToolRegistry, send, effects):
    """The same session id in a second object: nonces live in the journal, not in the session."""
    journal = memory_journal()
    approver = FixedApprover()
    original = Session(registry, id="one", approver=approver, journal=journal)
    await original.call("send", CALL)
    request = approver.requests[0]
    sealed = request.allow().sealed(request, Answerer.person("a thief"), journal.clock())
    call_of = type("Call", (), {"id": request.call_id, "tool": "send", "arguments": b"{}", "origin": ""})
    assert not await journal.burn_and_start("one", call_of, send, sealed, "person", LiveCall())  # type: ignore[arg-type]


@requirement("TOOL-45")
@pytest.mark.parametrize("seconds", [60.0, 61.0, -1.0])
async def test_an_answer_must_start_its_call_within_a_minute(registry: ToolRegistry, send, effects, seconds: float):
    """A yes given to yesterday's world is no consent to today's; nor is one from the future."""

    store = MemoryStore()
    phone = Journal(store, clock=lambda: 1000.0 - seconds)
    cards: list[ApprovalRequest] = []

    async def answer_by_phone(request: ApprovalRequest) -> UserAction:
        cards.append(request)
        assert await phone.answer(request.facts(), ALLOWED, "phone")
        return await wait_for_answer(request)

    limits = Limits(watch_after_seconds=0)
    journal = Journal(store, clock=lambda: 1000.0)
    outcome = await Session(registry, approver=answer_by_phone, journal=journal, limits=limits).call("send", CALL)
    if seconds == 60.0:
        assert outcome.kind == "succeeded"
        assert effects == [CALL]
    else:
        assert outcome.kind == "stale"
        assert len(cards) == 3
        since = "older than 60 seconds" if seconds > 0 else "from the future: a clock was set back"
        assert cards[1].problem == f"the answer is {since}"
        assert effects == []


@requirement("TOOL-45")
@pytest.mark.parametrize("what", ["manifest", "code", "function", "gone"])
async def test_a_tool_that_changed_while_the_card_waited_is_asked_for_again(
    registry: ToolRegistry, send, effects, what: str
):
    """Consent was given to the tool that was there, not to whatever goes by its name now."""

    def exchange(request: ApprovalRequest) -> UserAction:
        registry.unregister("send")
        if what == "manifest":
            registry.add(replace(send, manifest=_described(send.manifest, "Now it does something else.")))
        elif what == "code":
            registry.add(replace(send, code=b"other"))
        elif what == "function":
            registry.add(replace(send, execute=lambda params: effects.append("the other one")))
        return request.allow()

    approver = FixedApprover([exchange, ApprovalRequest.deny])
    outcome = await Session(registry, approver=approver).call("send", CALL)
    assert effects == []
    if what == "gone":
        assert outcome.kind == "unknown_tool"
    else:
        assert outcome.kind == "denied"
        assert approver.requests[1].problem == "the tool changed while the question waited"


def _described(manifest: Any, description: str) -> Any:
    return msgspec.structs.replace(manifest, description=description)


@requirement("TOOL-45")
async def test_three_void_answers_are_stale_and_nothing_ran(registry: ToolRegistry, send, effects, history):
    """Asked again at most three times; the model is told why."""
    approver = FixedApprover(UserAction(True, False, answers="f" * 64))
    journal = memory_journal()
    session = Session(registry, approver=approver, journal=journal)
    outcome = await session.call("send", CALL)
    assert (outcome.kind, outcome.approval, len(approver.requests)) == ("stale", "none", 3)
    assert len({request.nonce for request in approver.requests}) == 3
    assert "3 times in a row" in outcome.message
    kinds = [kind for kind, _ in await history(journal, session.id)]
    assert kinds == ["asked", "answered"] * 3 + ["finished"]
    assert effects == []


IN_THE_DIGEST_OF_THE_TOOL = ("tool", "manifest", "digest")


@requirement("TOOL-45")
@pytest.mark.parametrize("field", [f for f in ApprovalRequest.__struct_fields__ if f not in IN_THE_DIGEST_OF_THE_TOOL])
async def test_the_seal_covers_everything_that_was_shown_or_would_run(registry: ToolRegistry, send, field: str):
    """An answer to a request that differs in any of it is an answer to another request.

    Every field there is: why it is asked, and asked again, is on the card, too.
    """
    approver = FixedApprover(ApprovalRequest.deny)
    await Session(registry, approver=approver).call("send", CALL)
    request = approver.requests[0]
    other: dict[str, Any] = {
        "argument_bytes": b'{"to":"Mallory"}',
        "preview": (Preview("a.txt", None, None, "x"),),
        "reads": (("a.txt", None),),
        "looked_at": (Observation("state", "a", "x"),),
        "missing": ("the tool",),
        "author": "person",
    }
    changed = msgspec.structs.replace(request, **{field: other.get(field, "other")})
    sealed = request.allow().sealed(request, Answerer.person("somebody"), 0.0)
    assert sealed.why_void(request, tool_digest=request.tool_digest, now=0, valid_seconds=60) is None
    assert sealed.why_void(changed, tool_digest=changed.tool_digest, now=0, valid_seconds=60) is not None


@requirement("TOOL-71")
@pytest.mark.parametrize("other", [{"to": "Eve", "amount": 5}, {"to": "Ann", "amount": 6}, {"to": "Ann"}, {}])
async def test_an_id_that_was_used_does_not_answer_for_other_arguments(
    registry: ToolRegistry, send, effects, other: dict[str, Any]
):
    """It would say that Eve was paid because Ann was."""
    session = Session(registry, approver=FixedApprover())
    assert (await session.call("send", CALL, call_id="mine")).success
    with pytest.raises(SessionError, match="this id was given to another call: send with other arguments"):
        await session.call("send", other, call_id="mine")
    assert (await session.call("send", dict(reversed(CALL.items())), call_id="mine")).success
    assert len(effects) == 1


@requirement("TOOL-71")
async def test_an_id_that_was_used_does_not_answer_for_another_tool(registry: ToolRegistry, send, effects):
    """Also when that tool is not there any more."""
    schema = {"description": "Waits.", "parameters": []}
    registry.register("wait", schema, lambda args, context: 1, inline=True)
    session = Session(registry, approver=FixedApprover())
    assert (await session.call("wait", call_id="mine")).success
    with pytest.raises(SessionError, match="this id was given to another call: a call of wait, and not of send"):
        await session.call("send", CALL, call_id="mine")
    registry.unregister("send")
    with pytest.raises(SessionError, match="this id was given to another call: a call of wait"):
        await session.call("send", CALL, call_id="mine")
    assert effects == []


@requirement("TOOL-71")
async def test_a_card_that_waits_is_not_asked_again_with_other_arguments(registry: ToolRegistry, send, effects):
    """The person who answers the first must not have answered the second."""
    journal = Journal()
    session = Session(registry, "s", approver=FixedApprover(lambda request: request.close()), journal=journal)
    assert (await session.call("send", CALL, call_id="mine")).kind == "denied"
    with pytest.raises(SessionError, match="this id was given to another call"):
        await session.call("send", {"to": "Eve"}, call_id="mine")
    assert effects == []
