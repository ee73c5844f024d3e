"""What somebody who writes tools or embeds a session needs, through the public names alone."""

import asyncio
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lastword import (
    ApprovalRequest,
    Asked,
    Detached,
    Outcome,
    OutcomeUnknown,
    Session,
    ToolChanged,
    ToolContext,
    ToolRegistry,
    UserAction,
    wait_for_answer,
)
from lastword.consent import ALLOWED, DENIED
from lastword.errors import LastWordError, ManifestError, SessionError, ToolLoadError
from lastword.journal import Journal
from lastword.store import MemoryStore
from lastword.testing import FixedApprover, load_tool
from requirements import requirement
from sending import CALL


@dataclass
class Bank:
    """A host's own connection: nothing that JSON could hold."""

    balance: float


@requirement("TOOL-63")
async def test_a_tool_reaches_what_the_host_gave_and_whom_it_acts_for(registry: ToolRegistry):
    """Also while its card is drawn. Two sessions on one registry never see each other's."""

    def request(context: ToolContext[Bank]) -> dict[str, str]:
        return {"message": f"{context.user} has {context.deps.balance}"}

    @registry.tool(request=request)
    def pay(amount: float, context: ToolContext[Bank]) -> float:
        """Pay."""
        context.deps.balance -= amount
        return context.deps.balance

    ada, bo = Bank(100), Bank(5)
    approver = FixedApprover()
    sessions = [Session(registry, approver=approver, deps=d, user=u) for d, u in ((ada, "ada"), (bo, "bo"))]
    assert [(await session.call("pay", {"amount": 1})).value for session in sessions] == [99, 4]
    assert [card.message for card in approver.requests] == ["ada has 100", "bo has 5"]


@requirement("TOOL-63")
async def test_what_the_host_gave_is_written_down_nowhere(registry: ToolRegistry):
    """Neither in the journal nor in what a script, a prompt or an event can see."""

    class Secret:
        def __repr__(self) -> str:
            return "hunter2"

    @registry.tool
    def look(context: ToolContext[Secret]) -> str:
        """Look."""
        return context.session_id

    store = MemoryStore()
    seen: list[Any] = []
    session = Session(registry, approver=FixedApprover(), journal=Journal(store), deps=Secret(), user="user-7f3a")
    session.listen(seen.append)
    assert (await session.call("look")).success
    run = await session.run_script("LET x = CALL look {}\nPRINT(x)")
    assert run.status == "done"
    written = str([bytes(record.data or b"") for record in await store.read()]) + str(seen)
    written += session.format_state_for_prompt()
    assert "hunter2" not in written
    assert "user-7f3a" not in written
    failed = await session.run_script("PRINT(deps)")
    assert failed.status == "failed"


@requirement("TOOL-65")
async def test_a_tool_that_does_not_know_leaves_its_call_in_doubt(registry: ToolRegistry, effects):
    """As a crash would: nothing starts it again but a person's word."""

    @registry.tool
    def pay(amount: float) -> str:
        """Pay."""
        effects.append(amount)
        if len(effects) == 1:
            raise OutcomeUnknown("the connection broke after the request")
        return "paid"

    journal = Journal()
    session = Session(registry, approver=FixedApprover(), journal=journal)
    seen: list[Any] = []
    session.listen(seen.append)
    outcome = await session.call("pay", {"amount": 5}, call_id="one")
    assert outcome.kind == "outcome_unknown"
    assert "the connection broke after the request" in outcome.message
    assert "lastword resolve one" in outcome.message
    assert [life.call_id for life in await session.in_doubt()] == ["one"]
    again = await session.call("pay", {"amount": 5}, call_id="one")
    assert again.kind == "outcome_unknown"
    assert effects == [5]
    settled = await session.resolve("one", "again")
    assert settled.success
    assert effects == [5, 5]
    assert await session.in_doubt() == []


@requirement("TOOL-65")
async def test_a_script_stops_at_a_call_that_does_not_know_and_goes_on_after_the_decision(registry, effects):
    """The run waits for a person's word, and pays once."""

    @registry.tool
    def pay(amount: float) -> str:
        """Pay."""
        effects.append(amount)
        raise OutcomeUnknown("no answer came")

    session = Session(registry, approver=FixedApprover())
    run = await session.run_script('CALL pay { amount: 5 }\nPRINT("after")')
    assert run.status == "waiting"
    [life] = await session.in_doubt()
    await session.resolve(life.call_id, "done", value="paid")
    finished = await session.resume(run.run_id)
    assert (finished.status, finished.output, effects) == ("done", ["after"], [5])


@requirement("TOOL-65")
async def test_a_free_call_that_does_not_know_says_so_and_holds_nothing_up(registry: ToolRegistry):
    """What asks nobody may run again by definition, so there is nothing to decide."""

    @registry.tool(require_approval=False)
    def ping() -> str:
        """Ping."""
        raise OutcomeUnknown("no answer came")

    session = Session(registry)
    assert (await session.call("ping")).kind == "outcome_unknown"
    assert await session.in_doubt() == []
    assert (await session.run_script("CALL ping {}")).status == "failed"


@requirement("TOOL-68")
async def test_a_plain_function_approves_beside_the_loop(registry: ToolRegistry, send, effects):
    """It may block for as long as a person thinks; the loop goes on."""
    asked, answer = threading.Event(), threading.Event()
    where: list[threading.Thread] = []

    def approver(request: ApprovalRequest) -> UserAction:
        where.append(threading.current_thread())
        asked.set()
        assert answer.wait(30)
        return request.allow()

    session = Session(registry, approver=approver)
    call = asyncio.create_task(session.call("send", CALL))
    assert await asyncio.to_thread(asked.wait, 30)
    assert effects == []
    answer.set()
    assert (await call).success
    assert where[0] is not threading.main_thread()


@requirement("TOOL-68")
@pytest.mark.parametrize("answer", [None, True, "yes", {"primary_confirmed": True}, 1])
async def test_a_plain_approver_that_says_something_else_is_nobody(
    registry: ToolRegistry, send, effects, caplog, answer: Any
):
    """Only an action is an answer; true is not yes. Whoever wrote it reads what to return."""
    session = Session(registry, approver=lambda request: answer)
    assert (await session.call("send", CALL)).kind == "no_approver"
    assert effects == []
    assert "return request.allow() or request.deny(reason)" in caplog.text


@requirement("TOOL-68")
def test_a_session_can_be_used_with_with(registry: ToolRegistry, send, effects):
    """Sync code opens and closes it like a file."""
    with Session(registry, approver=lambda request: request.allow()) as session:
        assert session.call_sync("send", CALL).success
    with pytest.raises(SessionError, match="the session is closed"):
        session.call_sync("send", CALL)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@requirement("TOOL-68")
async def test_the_types_that_people_use_arrive_as_such(registry: ToolRegistry, tmp_path: Path):
    """From JSON to the type, and back in what a tool returns."""
    got: list[Any] = []

    @registry.tool(require_approval=False)
    def keep(
        path: Path,
        at: datetime,
        amount: Decimal,
        id: UUID,
        colour: Colour,
        others: list[Path],
        spare: Path = Path("a"),
    ) -> dict[str, Any]:
        """Keep."""
        got.extend([path, at, amount, id, colour, others, spare])
        return {"path": path, "amount": amount}

    arguments = {
        "path": "notes/a.txt",
        "at": "2026-01-02T03:04:05Z",
        "amount": 12.5,
        "id": "12345678-1234-5678-1234-567812345678",
        "colour": "red",
        "others": ["b"],
    }
    session = Session(registry)
    outcome = await session.call("keep", arguments)
    assert outcome.value == {"path": "notes/a.txt", "amount": "12.5"}, outcome.message
    assert got == [
        Path("notes/a.txt"),
        datetime.fromisoformat("2026-01-02T03:04:05+00:00"),
        Decimal("12.5"),
        UUID("12345678-1234-5678-1234-567812345678"),
        Colour.RED,
        [Path("b")],
        Path("a"),
    ]
    for name, wrong in {"path": 3, "at": "soon", "amount": "much", "id": "x", "colour": "green"}.items():
        refused = await session.call("keep", arguments | {name: wrong})
        assert refused.kind == "invalid_arguments"
        assert name in refused.message
    assert len(got) == 7


def _pieces(amount: float) -> Iterator[int]:
    yield 1


async def _async_pieces(amount: float) -> Any:
    yield 1


class NoSchema:
    def __init__(self, anything: Any) -> None: ...


def _untold(thing: NoSchema) -> int:
    return 1


@requirement("TOOL-68")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_pieces, "a generator gives no result"),
        (_async_pieces, "a generator gives no result"),
        (functools.partial(print, "x"), "has no name that a tool could have"),
        (_untold, "the type of thing cannot be described"),
    ],
)
def test_what_cannot_work_is_refused_with_a_hint(registry: ToolRegistry, function: Any, words: str):
    """At registration, and not in the middle of the first call."""
    with pytest.raises((ManifestError, ToolLoadError), match=words) as refusal:
        registry.add(function)
    assert "hint:" in str(refusal.value)
    with pytest.raises((ManifestError, ToolLoadError)):
        registry.register("it", {"type": "object"}, _pieces)
    assert registry.all() == []


@pytest.fixture
def folder_tool(tmp_path: Path) -> Any:
    (tmp_path / "assistant_tool.json").write_text(
        '{"displayName": "Pay", "id": "pay", "description": "Pays.", "requireApproval": true, "parameters": []}'
    )
    (tmp_path / "assistant_tool.py").write_text(
        "from lastword import AssistantTool\n"
        "@AssistantTool.register_execute_tool_with_approval\n"
        "def pay(user_action):\n"
        "    if user_action.secondary_confirmed:\n"
        "        return {'success': False, 'message': 'kept your money'}\n"
        "    if not user_action.primary_confirmed:\n"
        "        return {'success': False, 'message': 'you closed it'}\n"
        "    return {'success': True, 'message': 'paid'}\n"
    )
    return load_tool(tmp_path)


@requirement("TOOL-69")
@pytest.mark.parametrize(
    ("action", "result"),
    [
        (None, (True, "paid")),
        ({"primaryConfirmed": True}, (True, "paid")),
        ({"primary_confirmed": True, "secondary_confirmed": False}, (True, "paid")),
        ({"secondaryConfirmed": True}, (False, "kept your money")),
        ({"primaryConfirmed": False, "secondaryConfirmed": True, "reason": "no"}, (False, "kept your money")),
        ({}, (False, "you closed it")),
        (DENIED, (False, "kept your money")),
    ],
)
def test_a_test_function_takes_the_seeds_actions_and_gives_the_tools_own_result(folder_tool, action, result):
    """Also after a no: an author tests what their own tool says then."""
    success, message = result
    assert folder_tool.test_execute({}, action) == {"success": success, "message": message}


@requirement("TOOL-69")
@pytest.mark.parametrize(
    ("action", "words"),
    [
        ({"primaryConfirm": True}, "did you mean primaryConfirmed?"),
        ({"zzz": True}, "an action has primaryConfirmed, secondaryConfirmed"),
        ({"primaryConfirmed": "yes"}, "made of booleans"),
        ({"primaryConfirmed": True, "secondaryConfirmed": True}, "choose one"),
        (True, "is Allow"),
    ],
)
def test_what_is_wrong_with_an_action_is_said(folder_tool, action: Any, words: str):
    with pytest.raises(LastWordError) as refusal:
        folder_tool.test_execute({}, action)
    assert words in str(refusal.value)


@requirement("TOOL-71")
async def test_a_tool_that_is_replaced_while_its_card_waits_is_asked_about_again(registry: ToolRegistry, effects):
    """The yes was for the old one. Whoever listens hears of the change."""

    def first() -> str:
        """Do it."""
        effects.append("first")
        return "first"

    def second() -> str:
        """Do it."""
        effects.append("second")
        return "second"

    heard: list[ToolChanged] = []
    stop = registry.listen(heard.append)
    registry.tool(id="work")(first)
    new = ToolRegistry()
    new.tool(id="work")(second)

    def answer(request: ApprovalRequest) -> UserAction:
        if request.problem is None:
            registry.replace(new.lookup("work"))
            return ALLOWED
        return request.allow()

    approver = FixedApprover(answer)
    outcome = await Session(registry, approver=approver).call("work")
    assert (outcome.value, effects) == ("second", ["second"])
    assert [card.problem for card in approver.requests] == [None, "the tool changed while the question waited"]
    registry.unregister("work")
    assert [(change.what, change.tool) for change in heard] == [
        ("added", "work"),
        ("replaced", "work"),
        ("removed", "work"),
    ]
    stop()
    registry.add(first)
    assert len(heard) == 3


@requirement("TOOL-71")
def test_nothing_can_be_replaced_that_is_not_there(registry: ToolRegistry, send):
    """A misspelled name would otherwise add a second tool in silence."""

    def sent() -> str:
        """Send."""
        return ""

    with pytest.raises(Exception, match="did you mean send"):
        registry.replace(sent)


@requirement("TOOL-71")
async def test_a_card_can_be_awaited(registry: ToolRegistry, send):
    """Before or after it was asked for; a call that never asks gives its end."""
    registry.register("free", {"type": "object"}, lambda args, context: 7)
    session = Session(registry, approver=wait_for_answer)
    early = asyncio.create_task(session.card_for("one"))
    call = asyncio.create_task(session.call("send", CALL, call_id="one"))
    card = await early
    late = await session.card_for("one")
    assert isinstance(card, ApprovalRequest)
    assert isinstance(late, ApprovalRequest)
    assert card.digest == late.digest
    session.answer("one", card.allow())
    assert (await call).success
    ended = await session.card_for("one")
    assert isinstance(ended, Outcome)
    assert ended.success
    free = asyncio.create_task(session.card_for("two"))
    await session.open()
    await asyncio.sleep(0)
    await session.call("free", call_id="two")
    found = await free
    assert isinstance(found, Outcome)
    assert found.value == 7


@requirement("TOOL-71")
async def test_a_question_that_is_left_goes_on_waiting_and_is_answered_later(registry: ToolRegistry, send, effects):
    """The host goes. Its call has no end, the card still waits, and the same id goes on with it, once."""
    journal = Journal()
    session = Session(registry, id="s", approver=wait_for_answer, journal=journal)
    call = asyncio.create_task(session.call("send", CALL, call_id="one"))
    await session.card_for("one")
    assert session.detach("one")
    with pytest.raises(Detached, match="left waiting"):
        await call
    assert not session.detach("one")
    assert session.pending() == []
    assert effects == []
    [facts] = await journal.waiting()
    assert (facts["call_id"], facts["asker"]) == ("one", "ended")
    assert await journal.answer(facts, ALLOWED, "somebody")
    outcome = await session.call("send", CALL, call_id="one")
    assert outcome.success
    assert len(effects) == 1
    again = await session.call("send", CALL, call_id="one")
    assert again.success
    assert len(effects) == 1


@requirement("TOOL-71")
async def test_a_question_that_is_asked_for_again_waits_again(registry: ToolRegistry, send, effects):
    """Left, then asked for again without an answer: it is the same card, and its asker lives."""
    journal = Journal()
    session = Session(registry, id="s", approver=wait_for_answer, journal=journal)
    first = asyncio.create_task(session.call("send", CALL, call_id="one"))
    card = await session.card_for("one")
    session.detach("one")
    with pytest.raises(Detached):
        await first
    second = asyncio.create_task(session.call("send", CALL, call_id="one"))
    same = await session.card_for("one")
    assert isinstance(card, ApprovalRequest)
    assert isinstance(same, ApprovalRequest)
    assert same.digest == card.digest
    [facts] = await journal.waiting()
    assert facts["asker"] == "waits"
    session.answer("one", same.deny())
    assert (await second).kind == "denied"
    assert effects == []


async def test_events_are_public(registry: ToolRegistry, send):
    """A host that draws its own surface names what it hears."""
    heard: list[Any] = []
    session = Session(registry, approver=FixedApprover())
    session.listen(heard.append)
    await session.call("send", CALL)
    assert isinstance(heard[0], Asked)
