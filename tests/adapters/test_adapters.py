"""A session's tools in three frameworks, each the real package with the fake model that it ships."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents.exceptions import ModelBehaviorError
from frameworks import FRAMEWORKS, Framework, Wanted, change_kept
from paying_host import allow, open_session

from lastword import ApprovalRequest, Detached, Session, ToolRegistry, editor_tools, wait_for_answer
from lastword.consent import ALLOWED
from lastword.errors import SessionError
from lastword.testing import FixedApprover
from requirements import requirement
from sending import until
from warm import WarmProgram

HOST = Path(__file__).parent / "paying_host.py"


@pytest.fixture(params=list(FRAMEWORKS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def framework(name: str) -> Framework:
    return FRAMEWORKS[name]


@pytest.fixture
def registry(registry: ToolRegistry, effects: list[Any]) -> ToolRegistry:
    @registry.tool
    async def pay(to: str, amount: float) -> dict[str, float]:
        """Send money to somebody."""
        effects.append((to, amount))
        return {"paid": amount}

    @registry.tool(require_approval=False)
    def balance() -> int:
        """Say what is left."""
        effects.append("looked")
        return 100

    return registry


PAY = Wanted("pay", {"to": "Ada", "amount": 5}, "call-1")


@requirement("TOOL-70")
async def test_a_call_that_is_allowed_runs_and_its_words_are_the_result(framework, registry, effects):
    """The card shows the model's arguments, and says where the call comes from."""
    approver = FixedApprover()
    async with Session(registry, id="desk", approver=approver) as session:
        [result] = await framework.run(session, PAY)
        life = await session.journal.life("desk:call-1")
    assert result.words == '{"paid":5}'
    assert result.status in ("success", "text")
    assert effects == [("Ada", 5)]
    [card] = approver.requests
    assert card.arguments == {"to": "Ada", "amount": 5}
    assert card.origin in ("Pydantic AI", "OpenAI Agents", "LangChain")
    assert life.finished is not None


# What is answered to the card, what the model asked for, what is done, and what it reads then.
ENDS: dict[str, tuple[Any, Wanted, list[Any], list[str]]] = {
    "denied": (
        lambda card: card.deny("that is too much"), PAY, [],
        ["pay was not run: the person denied it.", "that is too much"],
    ),
    "edited": (
        [lambda card: card.edit(amount=3), ALLOWED], PAY, [("Ada", 3)],
        ["The person changed the arguments of pay", '{"paid":3}'],
    ),
    "nobody to ask": (None, PAY, [], ["there is nobody to ask"]),
    "arguments that do not fit": ([], Wanted("pay", {"to": 3, "sum": 5}, "call-1"), [], ["amount", "sum"]),
}  # fmt: skip


@requirement("TOOL-70")
@pytest.mark.parametrize("end", ENDS)
async def test_a_call_that_does_not_run_as_it_was_asked_for_is_told_and_the_run_goes_on(
    framework, registry, effects, end
):
    """The model reads why, or what was done instead of it, and the run comes to its end."""
    answer, wanted, done, words = ENDS[end]
    approver = None if answer is None else FixedApprover(answer)
    async with Session(registry, approver=approver) as session:
        [result] = await framework.run(session, wanted)
    assert effects == done
    assert [part for part in words if part not in result.words] == []
    if end == "denied":
        assert result.status in ("denied", "failed", "text")
    if approver is not None:
        assert bool(approver.requests) == (wanted == PAY)


@requirement("TOOL-70")
async def test_a_run_that_is_cancelled_closes_its_question(framework, registry, effects):
    """A card that nobody waits for would be answered into the void. It has an end, and a late yes is none."""
    session = Session(registry, id="desk", approver=wait_for_answer)
    async with session:
        running = asyncio.create_task(framework.run(session, PAY))
        card = await session.card_for("desk:call-1")
        assert isinstance(card, ApprovalRequest)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        ended = await session.card_for("desk:call-1")
        assert not isinstance(ended, ApprovalRequest)
        assert ended.kind == "cancelled"
        assert session.answer("desk:call-1", card.allow()) == []
        [told] = await framework.run(session, PAY)
    assert "stopped waiting" in told.words
    assert effects == []


@requirement("TOOL-70")
async def test_a_run_that_is_cancelled_stops_its_tool(framework, registry):
    """The framework's cancellation reaches the code that runs, and the journal says how far it came."""
    began, stopped = asyncio.Event(), asyncio.Event()

    @registry.tool
    async def wait() -> str:
        """Wait."""
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with Session(registry, id="desk", approver=FixedApprover()) as session:
        running = asyncio.create_task(framework.run(session, Wanted("wait", {}, "call-1")))
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await stopped.wait()
        ended = await session.card_for("desk:call-1")
    assert not isinstance(ended, ApprovalRequest)
    assert ended.kind in ("cancelled", "outcome_unknown")


@requirement("TOOL-70")
async def test_a_person_who_cancels_the_call_leaves_the_run_alive(framework, registry):
    """`session.cancel` stops the tool; the model hears of it and may go on."""

    @registry.tool
    async def wait() -> str:
        """Wait."""
        session.cancel("desk:call-1")
        await asyncio.Event().wait()
        return "never"

    async with Session(registry, id="desk", approver=FixedApprover()) as session:
        [result] = await framework.run(session, Wanted("wait", {}, "call-1"))
    assert "wait was cancelled by the person while it ran" in result.words


@requirement("TOOL-70")
async def test_several_calls_of_one_message_are_asked_about_one_by_one(framework, registry, effects):
    """A yes to one is none to the other, also when they run side by side."""
    approver = FixedApprover(lambda card: card.allow() if card.arguments["to"] == "Ada" else card.deny())
    async with Session(registry, approver=approver) as session:
        results = await framework.run(session, PAY, Wanted("pay", {"to": "Bo", "amount": 5}, "call-2"))
    assert effects == [("Ada", 5)]
    assert ["denied" in result.words for result in results] == [False, True]


async def test_a_tool_that_asks_nobody_is_told_again_as_well(framework, registry, effects):
    """Whatever the journal has under this id is what happened."""
    async with Session(registry) as session:
        for _ in range(2):
            [result] = await framework.run(session, Wanted("balance", {}, "call-1"))
            assert result.words == "100"
    assert effects == ["looked"]


@requirement("TOOL-70", "TOOL-71")
async def test_an_id_that_is_used_for_something_else_is_refused_in_words(framework, registry, effects):
    """A model that counts its calls from one in every answer must not be told that the second was done as the first."""
    async with Session(registry, approver=FixedApprover()) as session:
        await framework.run(session, PAY)
        [result] = await framework.run(session, Wanted("pay", {"to": "Bo", "amount": 70}, "call-1"))
    assert effects == [("Ada", 5)]
    assert "pay was not run for this request" in result.words
    assert "this id was given to another call" in result.words


@pytest.mark.parametrize(
    "ids", [(("one", "call-1"), ("two", "call-1")), (("desk", "two:call-1"), ("desk:two", "call-1"))]
)
async def test_no_id_of_one_session_is_that_of_another(framework, registry, effects, tmp_path, ids):
    """Some models number the calls of every conversation from nought, and a model could take the id that a session with
    a longer name will need. All conversations share one journal."""
    journal = open_session(tmp_path, allow).journal
    for session_id, given in ids:
        async with Session(registry, id=session_id, approver=FixedApprover(), journal=journal) as session:
            [result] = await framework.run(session, PAY._replace(id=given))
            assert result.words == '{"paid":5}'
    assert effects == [("Ada", 5)] * 2
    await journal.close()


async def test_a_strange_id_is_harmless(framework, name, registry, effects):
    """Models choose them, and they are written on screens, into commands and into the journal."""
    ids = ["a/b?c#d", "x" * 5000, "\ud800", "line\nbreak", "\u202eevil"]
    if name == "openai_agents":
        ids.remove("\ud800")  # Their own records refuse a lone surrogate before any tool is asked.
    async with Session(registry, id="desk", approver=(approver := FixedApprover())) as session:
        for strange in [*ids, *ids]:
            [result] = await framework.run(session, PAY._replace(id=strange))
            assert result.words == '{"paid":5}'
    assert effects == [("Ada", 5)] * len(ids)
    assert all(card.call_id.isascii() and len(card.call_id) < 100 for card in approver.requests)


async def test_a_closed_session_is_the_hosts_mistake_and_ends_the_run(framework, registry):
    """No model can mend that, and none should go on for hours with tools that are gone."""
    session = Session(registry, approver=FixedApprover())
    await session.open()
    await session.close()
    with pytest.raises(Exception, match="the session is closed") as problem:
        await framework.run(session, PAY)
    assert isinstance(problem.value, SessionError) or isinstance(problem.value.__cause__, SessionError)


async def test_tools_that_need_an_editor_are_not_offered_without_one(framework, registry):
    """As everywhere else. What is offered is otherwise what the registry has."""
    assert len(editor_tools(registry)) > 2
    async with Session(registry) as session:
        assert set(await framework.offered(session)) == {"pay", "balance"}


@requirement("TOOL-70", "TOOL-61")
async def test_the_schema_is_the_one_that_was_registered(framework, registry):
    """Whole, with what our parameters cannot say: the door checks against the very same."""
    schema = {
        "type": "object",
        "properties": {"whom": {"oneOf": [{"type": "string"}, {"type": "integer", "minimum": 1}]}},
        "required": ["whom"],
        "additionalProperties": False,
    }
    registry.register("greet", schema, lambda args, context: f"Hello, {args['whom']}")
    async with Session(registry) as session:
        assert (await framework.offered(session))["greet"] == schema
        [result] = await framework.run(session, Wanted("greet", {"whom": 3}, "call-1"))
        assert "Hello, 3" in result.words
        [result] = await framework.run(session, Wanted("greet", {"whom": 0}, "call-2"))
        assert "Hello" not in result.words


@requirement("TOOL-70", "TOOL-71")
async def test_a_question_that_the_host_leaves_is_gone_on_with_by_its_own_state(framework, registry, effects, tmp_path):
    """The host goes home, the card stays. Two at once: what becomes of one must not end the other."""
    kept = tmp_path / "kept"
    kept.mkdir()
    calls = PAY, Wanted("pay", {"to": "Bo", "amount": 7}, "call-2")
    journal = open_session(tmp_path, allow).journal
    async with Session(registry, id="desk", approver=wait_for_answer, journal=journal) as session:
        await framework.keep(session, kept, *calls)
        running = asyncio.create_task(framework.go_on(session, kept))
        for call_id in ("desk:call-1", "desk:call-2"):
            assert isinstance(await session.card_for(call_id), ApprovalRequest)
        for card in session.pending():
            assert session.detach(card.call_id)
        with pytest.raises(Exception, match="the question was left waiting") as left:
            await running
        assert isinstance(left.value, Detached) or isinstance(left.value.__cause__, Detached)
    assert effects == []
    waiting, _ = await journal.questions()
    assert sorted(facts["call_id"] for facts in waiting) == ["desk:call-1", "desk:call-2"]
    for facts in waiting:
        assert await journal.answer(facts, ApprovalRequest.from_facts(facts).allow(), "colleague")
    async with Session(registry, id="desk", approver=wait_for_answer, journal=journal) as session:
        results = await framework.go_on(session, kept)
    assert sorted(result.words for result in results) == ['{"paid":5}', '{"paid":7}']
    assert sorted(effects) == [("Ada", 5), ("Bo", 7)]
    await journal.close()


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    (tmp_path / "kept").mkdir()
    return tmp_path / "kept"


async def prepare(framework: Framework, folder: Path) -> None:
    """A run that stopped before its call, kept in the framework's own form."""
    async with open_session(folder, allow) as session:
        await framework.keep(session, folder / "kept", PAY)
        await session.journal.close()


def paid(folder: Path) -> list[str]:
    file = folder / "paid"
    return file.read_text().splitlines() if file.exists() else []


def host(name: str, folder: Path, fate: str) -> WarmProgram:
    return WarmProgram([str(HOST), name, str(folder), fate], folder, os.environ, loads=["frameworks"])


@requirement("TOOL-70")
async def test_a_host_that_is_killed_between_question_and_answer_asks_no_second_time(name, framework, tmp_path, kept):
    """The question outlives it. Somebody says yes while nobody runs, and the next host carries it out, once."""
    await prepare(framework, tmp_path)
    with closing(host(name, tmp_path, "waits")) as program:
        await until(program.printed)
        assert program.printed() == "desk:call-1\n"
    assert paid(tmp_path) == []

    never = FixedApprover([])
    async with open_session(tmp_path, never) as session:
        [facts], _ = await session.journal.questions()
        assert await session.journal.answer(facts, ApprovalRequest.from_facts(facts).allow(), "colleague")
        [result] = await framework.go_on(session, kept)
        await session.journal.close()
    assert result.words == '{"paid":5}'
    assert paid(tmp_path) == ["5 to Ada"]
    assert never.requests == []


@requirement("TOOL-70")
async def test_a_host_that_is_killed_while_the_tool_runs_leaves_a_call_in_doubt(name, framework, tmp_path, kept):
    """The framework would run it again. Here the model is told that nobody knows, and a person decides."""
    await prepare(framework, tmp_path)
    with closing(host(name, tmp_path, "dies")) as program:
        assert (await program.heard(), program.wait()) == ((b"desk:call-1\n", b""), -9)
    assert paid(tmp_path) == ["5 to Ada"]

    async with open_session(tmp_path, FixedApprover([])) as session:
        [result] = await framework.go_on(session, kept)
        assert [life.call_id for life in await session.in_doubt()] == ["desk:call-1"]
        await session.journal.close()
    assert "It is not known whether pay was carried out" in result.words
    assert paid(tmp_path) == ["5 to Ada"]


@requirement("TOOL-70")
async def test_a_state_that_is_restored_twice_runs_its_tool_once(framework, tmp_path, kept):
    """A backup, a retried job, a worker that took the same state: the second is told what the first one did."""
    await prepare(framework, tmp_path)
    copies = [shutil.copytree(kept, tmp_path / f"copy-{n}") for n in (1, 2)]
    approver = FixedApprover([ALLOWED])
    for copy in copies:
        async with open_session(tmp_path, approver) as session:
            [result] = await framework.go_on(session, copy)
            await session.journal.close()
        assert result.words == '{"paid":5}'
    assert paid(tmp_path) == ["5 to Ada"]
    assert len(approver.requests) == 1


@requirement("TOOL-70")
async def test_a_state_that_is_changed_after_the_yes_runs_nothing(name, framework, tmp_path, kept):
    """The yes was to what was shown. The framework's file is nobody's seal."""
    await prepare(framework, tmp_path)
    async with open_session(tmp_path, wait_for_answer) as session:
        running = asyncio.create_task(framework.go_on(session, Path(shutil.copytree(kept, tmp_path / "first"))))
        card = await session.card_for("desk:call-1")
        assert isinstance(card, ApprovalRequest)
        session.detach("desk:call-1")
        with pytest.raises(Exception, match="the question was left waiting"):
            await running
        [facts], _ = await session.journal.questions()
        assert await session.journal.answer(facts, card.allow(), "colleague")
        await session.journal.close()
    change_kept(kept, "Ada", "Eve")
    async with open_session(tmp_path, FixedApprover([])) as session:
        if name == "openai_agents":  # It keeps a fingerprint of its own beside the arguments, and refuses by itself.
            with pytest.raises(ModelBehaviorError):
                await framework.go_on(session, kept)
        else:
            [result] = await framework.go_on(session, kept)
            assert "this id was given to another call" in result.words
        await session.journal.close()
    assert paid(tmp_path) == []


MISSING = """
import sys
for missing, adapter in ("pydantic_ai", "pydantic_ai"), ("agents", "openai_agents"), ("langchain_core", "langchain"):
    sys.modules[missing] = None
    try:
        __import__(f"lastword.adapters.{adapter}")
    except Exception as problem:
        print(problem)
"""


@requirement("TOOL-70")
def test_a_framework_that_is_missing_says_which_extra_brings_it():
    """At the import of its adapter, and in the words of an installer."""
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, timeout=60)
    extras = {"pydantic_ai": "pydantic-ai", "agents": "openai-agents", "langchain_core": "langchain"}
    assert done.stdout == "".join(
        f"this needs the package {missing}, which is not installed\nhint: pip install 'lastword[{extra}]'\n"
        for missing, extra in extras.items()
    )
