"""Whoever should have been asked raises, hangs, talks nonsense or asks for more. Nothing runs."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from lastword import ApprovalRequest, LastWordError, Limits, Session, ToolRegistry, UserAction, wait_for_answer
from lastword.call.events import Asked
from lastword.consent import ALLOWED
from lastword.testing import FixedApprover, memory_journal
from requirements import requirement
from sending import CALL

pytestmark = pytest.mark.usefixtures("collected")


@requirement("TOOL-49")
async def test_nobody_to_ask(registry: ToolRegistry, send, effects):
    """Its own outcome, and words that tell it from a refusal."""
    outcome = await Session(registry).call("send", CALL)
    assert (outcome.kind, outcome.success, outcome.approval) == ("no_approver", False, "none")
    assert "This is not a refusal" in outcome.message
    assert effects == []


class Cancelled:
    async def __call__(self, request: ApprovalRequest) -> UserAction:
        raise asyncio.CancelledError


async def raising(request: ApprovalRequest) -> UserAction:
    raise RuntimeError("the password is hunter2")


class Outcast(BaseException):
    """What a test framework or another loop raises, and no `except Exception` catches."""


async def raising_more(request: ApprovalRequest) -> UserAction:
    raise Outcast


def nods_at_once(request: ApprovalRequest) -> Any:
    return True


def saying(answer: Callable[[], Any]) -> Any:
    async def approver(request: ApprovalRequest) -> Any:
        return answer()

    return approver


class Nameless:
    """One who says yes, and raises when asked for their name."""

    async def __call__(self, request: ApprovalRequest) -> UserAction:
        return request.allow()

    @property
    def name(self) -> str:
        raise LookupError("nobody is signed in")


BAD: dict[str, Any] = {
    "raises": raising,
    "raises more": raising_more,
    "is cancelled": Cancelled(),
    "nods at once": nods_at_once,
    "nods": saying(lambda: True),
    "a dict": saying(lambda: {"primary_confirmed": True, "secondary_confirmed": False}),
    "both": saying(lambda: UserAction(True, True)),
    "not quite true": saying(lambda: UserAction(1, 0)),  # type: ignore[arg-type]
    "no JSON": saying(lambda: UserAction(True, False, arguments={"to": object()})),
    "no reason": saying(lambda: UserAction(False, True, reason=5)),  # type: ignore[arg-type]
    "a number": 5,
    "nameless": Nameless(),
}


@requirement("TOOL-40", "TOOL-49")
@pytest.mark.parametrize("approver", BAD.values(), ids=BAD)
async def test_an_approver_that_fails_is_nobody(registry: ToolRegistry, send, effects, caplog, approver):
    """What is wrong with it goes to the log; the model hears that nobody could be asked."""
    caplog.set_level(logging.CRITICAL, "lastword")
    outcome = await asyncio.wait_for(Session(registry, approver=approver).call("send", CALL), 30)
    assert outcome.kind == "no_approver"
    assert "hunter2" not in outcome.message
    assert effects == []


@requirement("TOOL-45", "TOOL-48")
async def test_an_approver_that_hangs_expires_when_a_limit_is_set(registry: ToolRegistry, send, effects, history):
    """Expired is neither a denial nor nobody."""
    journal = memory_journal()
    limits = Limits(approval_timeout_seconds=0.02)
    session = Session(registry, approver=wait_for_answer, journal=journal, limits=limits)
    outcome = await session.call("send", CALL)
    assert outcome.kind == "expired"
    assert "nobody answered within 0.02 seconds" in outcome.message
    assert session.pending() == []
    records = await history(journal, session.id)
    assert [kind for kind, _ in records] == ["asked", "finished"]
    assert await journal.waiting() == []
    assert not await journal.answer(records[0][1], ALLOWED, "a phone that was in a pocket")
    assert effects == []


@requirement("TOOL-45")
async def test_an_approver_that_hangs_is_waited_for_without_a_limit(registry: ToolRegistry, send, effects):
    """A question waits without limit unless configured, and can still be answered elsewhere."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.create_task(session.call("send", CALL))
    done, _ = await asyncio.wait({call}, timeout=0.05)
    assert not done
    [request] = session.pending()
    session.answer(request.call_id, request.allow())
    assert (await call).kind == "succeeded"
    assert effects == [CALL]


@requirement("TOOL-45")
async def test_an_approver_that_does_not_stop_when_its_time_is_up_is_not_heard(registry: ToolRegistry, send, effects):
    """It swallows its cancellation and says yes, too late."""
    said = asyncio.Event()

    async def stubborn(request: ApprovalRequest) -> UserAction:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            said.set()
        return request.allow()

    session = Session(registry, approver=stubborn, limits=Limits(approval_timeout_seconds=0.01))
    outcome = await session.call("send", CALL)
    await said.wait()
    assert outcome.kind == "expired"
    assert effects == []


@requirement("TOOL-30", "TOOL-45")
async def test_an_approver_that_calls_the_tool_itself_needs_another_yes(registry: ToolRegistry, send, effects):
    """A call inside an answer is a call like any other. The inner one is denied, the outer one allowed."""
    inner: list[Any] = []

    async def recursive(request: ApprovalRequest) -> UserAction:
        if request.arguments["to"] == "inner":
            return request.deny()
        inner.append(await session.call("send", {"to": "inner"}))
        return request.allow()

    session = Session(registry, approver=recursive)
    assert (await session.call("send", CALL)).kind == "succeeded"
    assert inner[0].kind == "denied"
    assert effects == [CALL]


@requirement("TOOL-45", "TOOL-47")
async def test_two_calls_at_once_with_one_approver_get_their_own_answers(registry: ToolRegistry, send, effects):
    """Answers arrive in the other order, and each finds its own call."""
    cards: list[tuple[ApprovalRequest, asyncio.Future[UserAction]]] = []
    both_wait = asyncio.Event()

    async def approver(request: ApprovalRequest) -> UserAction:
        answer: asyncio.Future[UserAction] = asyncio.get_running_loop().create_future()
        cards.append((request, answer))
        if len(cards) == 2:
            both_wait.set()
        return await answer

    session = Session(registry, approver=approver)
    calls = [asyncio.create_task(session.call("send", {"to": name})) for name in ("Ann", "Bob")]
    await both_wait.wait()
    for request, answer in reversed(cards):
        answer.set_result(request.allow() if request.arguments["to"] == "Bob" else request.deny())
    assert [(await call).kind for call in calls] == ["denied", "succeeded"]
    assert effects == [{"to": "Bob"}]


@requirement("TOOL-45")
async def test_two_answers_in_the_wrong_hands_start_nothing(registry: ToolRegistry, send, effects):
    """The approver mixes the two cards up: each gets the yes of the other."""
    cards: list[ApprovalRequest] = []
    both_wait = asyncio.Event()

    async def approver(request: ApprovalRequest) -> UserAction:
        cards.append(request)
        if len(cards) == 2:
            both_wait.set()
        await both_wait.wait()
        other = next(card for card in cards if card.call_id != request.call_id)
        return other.allow()

    session = Session(registry, approver=approver)
    outcomes = await asyncio.gather(*(session.call("send", {"to": name}) for name in ("Ann", "Bob")))
    assert [outcome.kind for outcome in outcomes] == ["stale", "stale"]
    assert effects == []


@requirement("TOOL-40")
@pytest.mark.parametrize("wrong", [(True, True), (1, False), (None, None), ("yes", "no")])
def test_an_action_is_made_of_booleans_and_not_of_both(wrong):
    """(true, true) is refused, and so is anything that is only as good as true."""
    with pytest.raises(LastWordError):
        UserAction(*wrong)


async def test_a_fixed_approver_that_runs_out_of_answers_is_nobody(registry: ToolRegistry, send, effects, caplog):
    """A test that is asked more often than it foresaw must not pass by running the tool."""
    caplog.set_level(logging.CRITICAL, "lastword")
    session = Session(registry, approver=FixedApprover([ALLOWED]))
    assert [(await session.call("send", CALL)).kind for _ in range(2)] == ["succeeded", "no_approver"]


async def test_an_approver_that_ends_the_program_leaves_no_card_behind(registry: ToolRegistry, send, effects, caplog):
    """Whoever catches the end, a test or a notebook, finds no card on the desk that nobody will take away."""
    caplog.set_level(logging.CRITICAL, "lastword")

    async def leave(request: ApprovalRequest) -> UserAction:
        raise SystemExit(3)

    session = Session(registry, approver=leave)
    with pytest.raises(SystemExit):
        await session.call("send", CALL)
    assert session.pending() == []
    assert effects == []


async def test_half_a_character_in_a_name_does_not_lose_the_answer(registry: ToolRegistry, send, effects):
    """Names come from other systems. The journal writes one as a person may see it."""
    session = Session(registry, approver=wait_for_answer)

    def answer(event: object) -> None:
        if isinstance(event, Asked):
            session.answer(event.request.call_id, ALLOWED, "\ud800")

    session.listen(answer)
    assert (await session.call("send", CALL)).kind == "succeeded"
    assert effects == [CALL]
