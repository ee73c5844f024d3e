"""A running tool asks the person something: given, declined, closed; it approves nothing and costs the tool no time."""

import asyncio
import itertools
import queue
import threading
from typing import Any

import pytest

from lastword import (
    Closed,
    Declined,
    Given,
    Journal,
    Limits,
    QuestionAnswered,
    QuestionAsked,
    Session,
    ToolContext,
    ToolQuestion,
    ToolRegistry,
    open_journal,
    wait_for_answer,
)
from lastword.call.desk import MAX_QUESTIONS
from lastword.consent import Answerer
from lastword.errors import ArgumentsError, LastWordError, NotAllowedNow, QuestionError, SessionError, ToolError
from lastword.journal import ToolQuestions, timeline
from lastword.testing import FixedAnswers, FixedApprover
from requirements import requirement

CITY = {"type": "object", "properties": {"city": {"type": "string", "title": "Which city?"}}, "required": ["city"]}
PIN = {"type": "object", "properties": {"pin": {"type": "string", "secret": True}}}


@pytest.fixture
def heard() -> list[Any]:
    return []


@pytest.fixture
def arrived() -> queue.SimpleQueue[Any]:
    """What tools heard, for whoever waits for it: code that was cancelled goes on after its call is over."""
    return queue.SimpleQueue()


@pytest.fixture
def travel(registry: ToolRegistry, heard: list[Any], arrived: queue.SimpleQueue[Any]) -> None:
    @registry.tool(require_approval=False)
    async def travel(context: ToolContext) -> str:
        """Book a journey."""
        heard.append(await context.ask("Where to?", CITY))
        arrived.put(heard[-1])
        return "done"

    @registry.tool(require_approval=False)
    def travel_by_thread(context: ToolContext) -> str:
        """Book a journey, in a thread."""
        heard.append(context.ask_sync("Where to?", CITY))
        arrived.put(heard[-1])
        return "done"


async def asked(session: Session, but: Any = None) -> Any:
    """The question that waits, as soon as one does."""
    found = asyncio.Event()
    stop = session.listen(lambda event: found.set() if isinstance(event, QuestionAsked) else None)
    try:
        if not session.questions() or session.questions()[0] == but:
            await found.wait()
    finally:
        stop()
    return session.questions()[0]


@requirement("TOOL-66")
@pytest.mark.parametrize("tool", ["travel", "travel_by_thread"])
@pytest.mark.parametrize("answer", [Given({"city": "Rome"}), Declined(), Closed("not now")])
async def test_given_declined_and_closed_are_three_results(registry, travel, heard, tool, answer):
    """A tool that cannot tell a no from nobody there would do the wrong thing in one of the cases."""
    answers = FixedAnswers(answer)
    outcome = await Session(registry, on_question=answers).call(tool)
    assert (outcome.kind, heard) == ("succeeded", [answer])
    question = answers.questions[0]
    assert (question.tool, question.display_name, question.message) == (tool, question.display_name, "Where to?")
    assert [(f.name, f.title, f.required) for f in question.fields] == [("city", "Which city?", True)]


async def test_an_object_that_holds_nothing_yet_is_still_who_answered(registry, travel):
    """Of a method, the object says who answered, also one that counts as false."""

    class Answers(list[Any]):
        name = "Ada"

        def on_question(self, question: ToolQuestion) -> Declined:
            return Declined()

    events: list[Any] = []
    session = Session(registry, on_question=Answers().on_question)
    session.listen(events.append)
    await session.call("travel")
    assert [event.by.name for event in events if isinstance(event, QuestionAnswered)] == ["Ada"]


@requirement("TOOL-66")
async def test_with_nobody_to_ask_the_question_is_closed_at_once_in_words(registry, travel, heard):
    """A call on a machine without a person must not hang, and its tool can say why it stopped."""
    await Session(registry).call("travel")
    await Session(registry, approver=FixedApprover()).call("travel")
    assert heard == [Closed("there is nobody here to ask")] * 2


@requirement("TOOL-66")
async def test_whoever_answers_and_fails_is_nobody(registry, travel, heard):
    """The trouble of a surface is not for the tool."""

    async def broken(question):
        raise RuntimeError("secret trouble")

    await Session(registry, on_question=broken).call("travel")
    assert heard == [Closed("the one who should have been asked failed (RuntimeError)")]


@requirement("TOOL-66")
async def test_the_time_of_a_question_is_not_the_time_of_the_tool(registry, heard):
    """A person who reads takes longer than a tool may; what the tool itself does after it still counts."""

    @registry.tool(require_approval=False, timeout_seconds=0.2)
    async def slow(context: ToolContext) -> str:
        """Ask, and then hang."""
        heard.append(await context.ask("Where to?", CITY))
        await asyncio.Event().wait()
        return "never"

    async def reads_slowly(question):
        await asyncio.sleep(0.5)
        return Given({"city": "Rome"})

    outcome = await Session(registry, on_question=reads_slowly).call("slow")
    assert (outcome.kind, heard) == ("timed_out", [Given({"city": "Rome"})])


@requirement("TOOL-66")
@pytest.mark.parametrize("tool", ["travel", "travel_by_thread"])
async def test_cancelling_the_call_closes_its_question(registry, travel, arrived, tool):
    """Nobody must be left with a form that goes nowhere, nor a thread with nobody to wake it."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.ensure_future(session.call(tool))
    question = await asked(session)
    session.cancel(question.call_id)
    assert (await call).kind == "cancelled"
    assert session.questions() == []
    assert not session.answer_question(question.id, Given({"city": "Rome"}))
    assert await asyncio.to_thread(arrived.get, timeout=20) == Closed("the call was cancelled")
    assert await ToolQuestions(session.journal).standing() == ([], {})


@requirement("TOOL-66")
async def test_stopping_everything_closes_what_is_asked(registry, travel, heard):
    """Stop means stop, also while a form waits."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.ensure_future(session.call("travel"))
    await asked(session)
    await session.stop()
    assert (await call).kind == "cancelled"
    assert heard == [Closed("the call was cancelled")]


@requirement("TOOL-66")
async def test_a_tool_that_stops_waiting_leaves_no_question_behind(registry, heard):
    """`asyncio.timeout` around a question is the tool's right, and the card must go with it."""

    @registry.tool(require_approval=False)
    async def impatient(context: ToolContext) -> str:
        """Ask for a moment."""
        try:
            async with asyncio.timeout(0.05):
                await context.ask("Where to?", CITY)
        except TimeoutError:
            return "went on"
        return "answered"

    session = Session(registry, approver=wait_for_answer)
    events: list[Any] = []
    session.listen(events.append)
    outcome = await session.call("impatient")
    assert outcome.value == "went on"
    assert [event.how for event in events if isinstance(event, QuestionAnswered)] == ["closed"]
    assert session.questions() == []


@requirement("TOOL-66")
async def test_an_answer_that_does_not_fit_leaves_the_question_waiting(registry, travel, heard):
    """A typing mistake must neither reach the tool nor cost the person the question."""
    session = Session(registry, approver=wait_for_answer)
    call = asyncio.ensure_future(session.call("travel"))
    question = await asked(session)
    for wrong in (Given({}), Given({"city": 3}), Given({"city": "Rome", "more": 1}), Given({"city": None})):
        with pytest.raises(ArgumentsError):
            session.answer_question(question.id, wrong)
    with pytest.raises(QuestionError):
        session.answer_question(question.id, True)  # type: ignore[arg-type]
    assert session.answer_question(question.id, Given({"city": "Rome"}))
    assert not session.answer_question(question.id, Declined()), "it is answered once"
    await call
    assert heard == [Given({"city": "Rome"})]


@requirement("TOOL-66")
async def test_a_question_approves_nothing(registry, effects, heard):
    """An answered form in one call is no yes for the next, nor for the same tool."""

    @registry.tool
    async def pay(context: ToolContext) -> str:
        """Pay."""
        heard.append(await context.ask("Allow all payments?", CITY))
        effects.append("paid")
        return "paid"

    approver = FixedApprover()
    session = Session(registry, approver=approver, on_question=FixedAnswers({"city": "Rome"}))
    await session.call("pay")
    await session.call("pay")
    assert len(approver.requests) == 2
    kinds = [record.kind for record in await session.journal.store.read(subject=approver.requests[0].call_id)]
    assert kinds[:4] == ["asked", "answered", "burned", "started"]
    assert kinds[4:] == ["question_asked", "question_answered", "finished"]


@requirement("TOOL-66")
async def test_nothing_that_only_looks_may_ask(registry, effects):
    """A question while the card is drawn, in a waiver rule, or after a no would come before anybody agreed."""
    answers, refused = FixedAnswers({"city": "Rome"}), []

    def request(context: ToolContext):
        try:
            context.ask_sync("Where to?", CITY)
        except NotAllowedNow as problem:
            refused.append(problem)
            raise
        return {"message": "?"}

    async def rule(to: str) -> bool:
        return False

    @registry.tool(request=request)
    def send(to: str) -> str:
        """Send."""
        effects.append(to)
        return "sent"

    outcome = await Session(registry, approver=FixedApprover(), on_question=answers).call("send", {"to": "a"})
    assert (outcome.kind, effects, answers.questions) == ("refused", [], [])
    assert "ask the person something" in refused[0].fact


@requirement("TOOL-66")
async def test_a_context_that_was_kept_asks_for_nobody_while_a_card_is_drawn(registry, effects):
    """A tool that keeps the context of an earlier call must not ask through it out of a phase that may only look."""
    kept: list[ToolContext] = []
    answers = FixedAnswers({"city": "Rome"})

    @registry.tool(require_approval=False)
    def keep(context: ToolContext) -> str:
        """Keep its context."""
        kept.append(context)
        return "kept"

    def request():
        kept[0].ask_sync("Where to?", CITY)
        return {"message": "?"}

    @registry.tool(request=request)
    def send() -> str:
        """Send."""
        effects.append(1)
        return "sent"

    session = Session(registry, approver=FixedApprover(), on_question=answers)
    await session.call("keep")
    assert (await session.call("send")).kind == "refused"
    assert kept[0]._questions is None
    assert await asyncio.to_thread(kept[0].ask_sync, "Where to?", CITY) == Closed("there is nobody here to ask")
    assert answers.questions == []


@requirement("TOOL-66")
async def test_a_secret_reaches_the_tool_and_not_the_journal(registry, heard):
    """The journal is kept, exported and shown."""

    @registry.tool(require_approval=False)
    async def unlock(context: ToolContext) -> str:
        """Unlock."""
        heard.append(await context.ask("Your pin?", PIN))
        return "open"

    session = Session(registry, on_question=FixedAnswers({"pin": "hunter2-very-secret"}))
    events: list[Any] = []
    session.listen(events.append)
    await session.call("unlock")
    assert heard == [Given({"pin": "hunter2-very-secret"})]
    for record in await session.journal.store.read():
        assert b"hunter2" not in (record.data or b"")
    assert "hunter2" not in repr(events)
    assert [type(e) for e in events if isinstance(e, (QuestionAsked, QuestionAnswered))] == [
        QuestionAsked,
        QuestionAnswered,
    ]


@requirement("TOOL-66")
async def test_another_program_may_answer_once_but_give_no_secret(registry, travel, heard, tmp_path):
    """Answers pass through the journal, where a secret must not."""

    @registry.tool(require_approval=False)
    async def unlock(context: ToolContext) -> str:
        """Unlock."""
        heard.append(await context.ask("Your pin?", PIN))
        return "open"

    address = f"sqlite:///{tmp_path}/journal.db"
    here, there = open_journal(address), open_journal(address)
    try:
        session = Session(registry, approver=wait_for_answer, journal=here)
        call = asyncio.ensure_future(session.call("travel"))
        await asked(session)
        (waiting,), _ = await ToolQuestions(there).standing()
        assert not waiting.is_dead
        with pytest.raises(ArgumentsError):
            await ToolQuestions(there).answer_from_elsewhere(waiting, Given({"city": 3}), Answerer.person("Ann"))
        assert await ToolQuestions(there).answer_from_elsewhere(
            waiting, Given({"city": "Rome"}), Answerer.person("Ann")
        )
        assert not await ToolQuestions(there).answer_from_elsewhere(waiting, Declined(), Answerer.person("Bob"))
        await call
        call = asyncio.ensure_future(session.call("unlock"))
        await asked(session)
        (waiting,), _ = await ToolQuestions(there).standing()
        with pytest.raises(SessionError, match="secret pin"):
            await ToolQuestions(there).answer_from_elsewhere(waiting, Given({"pin": "1"}), Answerer.person("Ann"))
        assert await ToolQuestions(there).answer_from_elsewhere(waiting, Declined(), Answerer.person("Ann"))
        await call
        assert heard == [Given({"city": "Rome"}), Declined()]
    finally:
        await here.close()
        await there.close()


@requirement("TOOL-66")
async def test_the_question_of_a_program_that_died_is_dead(registry, heard, tmp_path):
    """Its call is in doubt. A form that goes nowhere must not take an answer."""

    @registry.tool
    async def pay(context: ToolContext) -> str:
        """Pay."""
        heard.append(await context.ask("Where to?", CITY))
        return "paid"

    address = f"sqlite:///{tmp_path}/journal.db"
    here = open_journal(address)

    def wait(question: Any) -> Any:
        return threading.Event().wait()

    session = Session(registry, approver=FixedApprover(), journal=here, on_question=wait)
    call = asyncio.ensure_future(session.call("pay", call_id="pay-1"))
    await asked(session)
    here.programs.let_go()  # As the system does for a process that died.
    there = open_journal(address)
    try:
        (waiting,), _ = await ToolQuestions(there).standing()
        assert waiting.is_dead
        with pytest.raises(SessionError, match="has ended"):
            await ToolQuestions(there).answer_from_elsewhere(waiting, Given({"city": "Rome"}), Answerer.person("Ann"))
        assert [life.call_id for life in await there.in_doubt()] == ["pay-1"]
    finally:
        call.cancel()
        await asyncio.wait({call})
        await here.close()
        await there.close()


@requirement("TOOL-66")
async def test_questions_of_one_call_come_one_after_the_other(registry, heard):
    """Two forms of one call at once: nobody could tell which answer goes where."""

    @registry.tool(require_approval=False)
    async def both(context: ToolContext) -> str:
        """Ask twice at once."""
        heard.extend(await asyncio.gather(context.ask("First?", CITY), context.ask("Second?", CITY)))
        return "done"

    session = Session(registry, approver=wait_for_answer)
    call = asyncio.ensure_future(session.call("both"))
    first = await asked(session)
    assert [question.message for question in session.questions()] == ["First?"]
    session.answer_question(first.id, Given({"city": "Rome"}))
    session.answer_question((await asked(session, but=first)).id, Declined())
    await call
    assert heard == [Given({"city": "Rome"}), Declined()]


@requirement("TOOL-66")
async def test_a_call_that_does_not_stop_asking_is_stopped(registry, heard, caplog):
    """A loop that asks until it likes the answer holds a person for ever, and each form makes the next one slower."""

    @registry.tool(require_approval=False)
    async def nag(context: ToolContext) -> str:
        """Ask until somebody gives in."""
        while not isinstance(await context.ask("Where to?", CITY), Given):
            heard.append("no")
        return "done"

    async def no(question: Any) -> Declined | Given:
        # So that a tool that nobody stops ends all the same, with another end.
        return Declined() if len(heard) < 2 * MAX_QUESTIONS else Given({"city": "Rome"})

    outcome = await Session(registry, on_question=no).call("nag")
    assert outcome.kind == "raised"
    assert f"at most {MAX_QUESTIONS} questions" in caplog.text
    assert len(heard) == MAX_QUESTIONS


@requirement("TOOL-66")
async def test_a_question_on_the_loop_itself_is_refused_in_words(registry):
    """It would wait for ever, and everybody with it."""

    @registry.tool(require_approval=False, inline=True)
    def inline(context: ToolContext) -> str:
        """Ask where nobody can wait."""
        context.ask_sync("Where to?", CITY)
        return "never"

    outcome = await Session(registry, on_question=FixedAnswers({"city": "Rome"})).call("inline")
    assert outcome.kind == "failed"
    assert "await context.ask" in outcome.message


BAD_FORMS: list[Any] = [
    None,
    [],
    {},
    {"type": "object", "properties": {}},
    {"type": "array", "items": {}},
    {"properties": {"a": {"type": "object", "properties": {}}}},
    {"properties": {"a": {"type": "array"}}},
    {"properties": {"a": {"type": "string", "pattern": "(a+)+$"}}},
    {"properties": {"a": {"type": "string", "enum": []}}},
    {"properties": {"a": {"type": "string", "enum": ["x", "x"]}}},
    {"properties": {"a": {"type": "string", "enum": ["x"], "enumNames": ["X", "Y"]}}},
    {"properties": {"a": {"type": "string", "format": "ipv4"}}},
    {"properties": {"a": {"type": "string", "secret": "yes"}}},
    {"properties": {"a": {"type": "string", "title": 3}}},
    {"properties": {"a": {"type": "string", "minLength": -1}}},
    {"properties": {"a": {"type": "string"}}, "required": ["b"]},
    {"properties": {"a" * 101: {"type": "string"}}},
    {"properties": {f"a{n}": {"type": "string"} for n in range(31)}},
    {"properties": {"a": {"type": "string", "default": object()}}},
    {"properties": {"a": {"type": "string"}}, "required": [{}]},
    {"properties": {"a": {"type": "string", "title": "x" * 10_001}}},
    {"properties": {"a": {"type": "string", "description": "x" * 10_001}}},
    {"properties": {"a": {"type": "string", "enum": ["x" * 10_001]}}},
    {"properties": {"a": {"type": "string", "enum": ["x", "y"], "enumNames": ["Yes", "Yes"]}}},
]


@requirement("TOOL-66")
@pytest.mark.parametrize("form", BAD_FORMS, ids=itertools.count())
async def test_a_form_that_cannot_be_shown_is_refused_before_anybody_sees_it(registry, form):
    """The author's mistake is told to the author, and never to the person."""
    raised: list[LastWordError] = []

    @registry.tool(require_approval=False)
    async def ask(context: ToolContext) -> str:
        """Ask badly."""
        try:
            await context.ask("?", form)
        except QuestionError as problem:
            raised.append(problem)
            raise ToolError("bad form") from None
        return "never"

    answers = FixedAnswers({"a": "x"})
    await Session(registry, on_question=answers).call("ask")
    assert raised
    assert answers.questions == []


@requirement("TOOL-66")
@pytest.mark.parametrize("message", ["", "  \n", None, 3, "x" * 100_001])
async def test_a_question_without_bearable_words_is_refused(registry, message):
    """An empty card says nothing, and an endless one hides what it says."""

    @registry.tool(require_approval=False)
    async def ask(context: ToolContext) -> str:
        """Ask badly."""
        with pytest.raises(QuestionError):
            await context.ask(message, CITY)
        return "refused"

    assert (await Session(registry, on_question=FixedAnswers({"city": "x"})).call("ask")).value == "refused"


@requirement("TOOL-66")
async def test_a_default_is_given_in_nobodys_name(registry, heard):
    """What a person did not fill in they have not said."""
    form = {"properties": {"a": {"type": "string", "default": "everything"}, "b": {"type": "boolean", "default": True}}}

    @registry.tool(require_approval=False)
    async def ask(context: ToolContext) -> str:
        """Ask."""
        heard.append(await context.ask("?", form))
        return "done"

    answers = FixedAnswers({})
    await Session(registry, on_question=answers).call("ask")
    assert heard == [Given({})]
    assert "everything" not in repr(answers.questions)


@requirement("TOOL-66")
async def test_a_journal_says_who_was_asked_what_and_what_they_said(registry, travel):
    """It is remembered."""
    journal = Journal()
    await Session(registry, journal=journal, on_question=FixedAnswers({"city": "Rome"})).call("travel")
    told = "\n".join(timeline(await journal.store.read()))
    assert "travel asked: Where to?" in told
    assert 'its question was answered by fixed answers: {"city":"Rome"}' in told


@requirement("TOOL-66")
async def test_an_unanswered_question_is_closed_after_the_time_that_cards_have(registry, travel, heard):
    """One setting for everything that waits for a person."""
    session = Session(registry, approver=wait_for_answer, limits=Limits(approval_timeout_seconds=0.05))
    await session.call("travel")
    assert heard == [Closed("nobody answered within 0.05 seconds")]
