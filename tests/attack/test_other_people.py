"""Several people on one memory: nobody sees or answers what is another person's, unless somebody configured it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lastword
from lastword.call import stop
from lastword.cli import run
from lastword.config import load
from lastword.consent import ALLOWED, DENIED, Answerer, People
from lastword.errors import ConfigError, SessionError
from lastword.journal import Journal, OnceKey, ToolQuestions
from lastword.journal.call_life import AnsweredFacts, data_of
from lastword.server import Tokens
from lastword.store import Entry, Store, StoreAddress
from lastword.testing import FixedApprover
from lastword.tools import questions
from requirements import requirement

LEAD = {"lead": ("*",), "deputy": ("ann",)}
PATIENCE_SECONDS = 60


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shared.db"
    return str(request.getfixturevalue("postgres").new_store())


@pytest.fixture
async def store(address: str) -> AsyncIterator[Store]:
    opened = StoreAddress(address).open()
    yield opened
    await opened.close()


@pytest.fixture
def paid() -> list[int]:
    return []


@pytest.fixture
def tools(paid: list[int]) -> lastword.ToolRegistry:
    registry = lastword.ToolRegistry()

    @registry.tool
    async def pay(amount: int) -> str:
        """Pays."""
        paid.append(amount)
        return "paid"

    @registry.tool(require_approval=False)
    async def survey(context: Any = None) -> Any:
        """Asks something."""
        heard = await context.ask("How many?", {"type": "object", "properties": {"count": {"type": "integer"}}})
        return type(heard).__name__

    return registry


@pytest.fixture
async def at(store: Store) -> AsyncIterator[Callable[..., Journal]]:
    """The journal of somebody's process on the shared memory."""
    made: list[Journal] = []

    def open_for(who: str, answers: Any = LEAD) -> Journal:
        made.append(Journal(store, people=People(who, answers)))
        return made[-1]

    yield open_for
    for journal in made:
        await journal.close()


@pytest.fixture
async def ann(at: Callable[..., Journal], tools: lastword.ToolRegistry) -> AsyncIterator[lastword.Session]:
    session = lastword.Session(tools, id="work", approver=lastword.wait_for_answer, journal=at("ann"))
    async with session:
        yield session


async def until(session: lastword.Session, condition: Callable[[], Any]) -> Any:
    """Wait for something that a session tells of."""
    happened = asyncio.Event()
    stop = session.listen(lambda event: happened.set())
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not (found := condition()):
                await happened.wait()
                happened.clear()
    finally:
        stop()
    return found


async def card(session: lastword.Session) -> tuple["asyncio.Task[lastword.Outcome]", dict[str, Any]]:
    """A call of a session that waits, and the facts of its card as the memory has them."""
    call = asyncio.ensure_future(session.call("pay", {"amount": 7}))
    await until(session, lambda: session.pending())
    [facts] = await session.journal.waiting()
    return call, facts


async def ended(call: "asyncio.Task[lastword.Outcome]") -> str:
    return (await asyncio.wait_for(call, PATIENCE_SECONDS)).kind


@requirement("TEAM-3")
async def test_a_card_is_seen_and_answered_by_its_own_person(ann, at, store, paid):
    """The other half of a promise that is all about who said yes."""
    call, facts = await card(ann)
    assert ann.principal == facts["principal"] == "ann"
    elsewhere = at("ann", {})
    assert [one["call_id"] for one in (await elsewhere.questions())[0]] == [facts["call_id"]]
    assert await elsewhere.answer(facts, ALLOWED, "on the phone")
    assert await ended(call) == "succeeded"
    assert paid == [7]
    [answer] = await store.read(kind="answered")
    assert data_of(answer)["approver"]["principal"] == "ann"


@requirement("TEAM-3")
@pytest.mark.parametrize("who", ["bob", ""])
@pytest.mark.parametrize("action", [ALLOWED, DENIED])
async def test_a_card_of_another_person_is_neither_seen_nor_answered(ann, at, store, paid, who, action):
    """By default everybody answers only their own; whoever gives no name is nobody who could."""
    call, facts = await card(ann)
    other = at(who, {})
    assert (await other.questions())[0] == []
    for forged in (facts, facts | {"principal": who}, facts | {"principal": ""}):
        with pytest.raises(SessionError, match="another person's to answer"):
            await other.answer(forged, action, Answerer.person("ann", "page"))
    assert await store.read(kind="answered") == []
    assert not call.done()
    await at("ann").answer(facts, DENIED, "ann")
    assert await ended(call) == "denied"
    assert paid == []


@requirement("TEAM-3")
@pytest.mark.parametrize("who", ["lead", "deputy"])
async def test_whoever_is_named_for_it_answers_for_another(ann, at, store, paid, who):
    """Who may answer whose cards is configured."""
    call, facts = await card(ann)
    other = at(who)
    assert len((await other.questions())[0]) == 1
    assert await other.answer(facts, ALLOWED, "")
    assert await ended(call) == "succeeded"
    assert paid == [7]


@requirement("TEAM-3")
async def test_a_yes_that_was_written_past_the_rules_starts_nothing(ann, store, paid):
    """A program with rules of its own shares the memory. Whoever asked goes by theirs, and asks again."""
    call, facts = await card(ann)
    by = Answerer("person", "ann", "page", principal="bob")
    data = msgspec.json.encode(AnsweredFacts(True, False, None, None, facts["digest"], by, ann.journal.clock()))
    forged = Entry("work", "answered", facts["call_id"], 1, data, OnceKey.answer(facts["nonce"]))
    assert await store.commit(forged)
    again = await until(ann, lambda: [one for one in ann.pending() if one.nonce != facts["nonce"]])
    assert again[0].problem == "ann on the page had said yes, and may not answer for ann"
    assert paid == []
    assert ann.answer(facts["call_id"], again[0].deny())
    assert await ended(call) == "denied"


@requirement("TEAM-3")
async def test_what_a_tool_asks_is_for_its_own_person(ann, at, store):
    """A question of a running tool may be as private as a card."""
    call = asyncio.ensure_future(ann.call("survey"))
    mine, theirs = at("ann"), at("bob")
    await until(ann, lambda: ann.questions())
    found, _ = await ToolQuestions(mine).standing()
    assert await ToolQuestions(theirs).standing() == ([], {})
    with pytest.raises(SessionError, match="another person's to answer"):
        await ToolQuestions(theirs).answer_from_elsewhere(
            found[0], questions.Given({"count": 3}), Answerer.person("ann", "page")
        )
    assert await ToolQuestions(mine).answer_from_elsewhere(
        found[0], questions.Given({"count": 3}), Answerer.person(where="page")
    )
    assert (await asyncio.wait_for(call, PATIENCE_SECONDS)).value == "Given"


@requirement("TEAM-3")
async def test_a_session_is_opened_by_its_own_person(ann, at, store, tools, paid):
    """Whoever reopens it would go on with its runs, settle its doubts, and ask in its name."""
    run_record = await ann.run_script('PRINT "hello"')
    assert data_of((await store.read(subject=run_record.run_id, kind="run_started"))[0])["principal"] == "ann"
    for who in ("bob", ""):
        other = lastword.Session(tools, id="work", approver=FixedApprover(), journal=at(who))
        with pytest.raises(SessionError, match="this session is another person's"):
            await other.call("pay", {"amount": 1})
        with pytest.raises(SessionError, match="this session is another person's"):
            await other.resume(run_record.run_id)
    lead = lastword.Session(tools, id="work", approver=FixedApprover(), journal=at("lead"))
    assert (await lead.call("pay", {"amount": 2})).success
    assert lead.principal == "ann"
    assert paid == [2]


@requirement("TEAM-3")
async def test_a_stop_is_anybodys(ann, at, store, paid):
    """The brake must not be out of reach for whoever sees that something goes wrong."""
    call, _ = await card(ann)
    stopped = await (await stop(at("bob", {}), Answerer.person(where="command"))).settled()
    assert [one.tool for one in stopped.denied] == ["pay"]
    assert await ended(call) in ("denied", "cancelled")
    assert paid == []


async def test_one_person_alone_notices_nothing(at, store, tools, paid):
    """Without names there is not a byte about them, and everything is everybody's as it was."""
    async with lastword.Session(tools, approver=FixedApprover(), journal=at("", {})) as session:
        assert (await session.call("pay", {"amount": 1})).success
        await session.run_script("CALL pay { amount: 2 }")
    records = await store.read()
    assert not any(b"principal" in (record.data or b"") or record.kind == "belongs" for record in records)
    named = lastword.Session(tools, id=session.id, approver=FixedApprover(), journal=at("ann"))
    assert (await named.call("pay", {"amount": 3})).success
    assert paid == [1, 2, 3]


@requirement("TEAM-3")
async def test_the_command_line_answers_for_whoever_it_is_told(ann, address, capsys, monkeypatch, tmp_path):
    """LASTWORD_PERSON and lastword.toml say who sits here; a file that was merely found says nothing."""
    monkeypatch.chdir(tmp_path)
    call, facts = await card(ann)

    def told(*words: str, who: str) -> tuple[int, str]:
        monkeypatch.setenv("LASTWORD_PERSON", who)
        code = run([*words, "--store", address])
        said = capsys.readouterr()
        return code, said.out + said.err

    id = facts["call_id"]
    assert json.loads((await asyncio.to_thread(told, "approvals", "--json", who="bob"))[1]) == []
    code, words = await asyncio.to_thread(told, "answer", id, "--allow", who="bob")
    assert (code, "no such question waits" in words) == (2, True)
    (tmp_path / "lastword.toml").write_text('[people]\nanswer = { bob = ["*"] }\n')
    assert (await asyncio.to_thread(told, "answer", id, "--allow", who="bob"))[0] == 2, "a found file gave rights"
    assert (await asyncio.to_thread(told, "answer", id, "--deny", who="ann"))[0] == 0
    assert await ended(call) == "denied"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('[people]\nme = "a\\nb"', "is no name of a person"),
        ('[people]\nme = "*"', "is no name of a person"),
        ('[people]\nanswer = { "" = ["ann"] }', "is no name of a person"),
        ('[people]\nwho = "ann"', "unknown field people.who"),
        ('[people]\nanswer = { lead = "*" }', "people.answer"),
    ],
)
def test_a_mistake_about_people_is_named(tmp_path, text, fact):
    """A right that was misspelt must not be silently another one."""
    file = tmp_path / "lastword.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=fact):
        load(file, environ={})


def test_people_come_from_a_file_that_was_named(tmp_path):
    """And LASTWORD_PERSON comes later, so it wins."""
    file = tmp_path / "lastword.toml"
    file.write_text('[people]\nme = "ann"\n[people.answer]\nlead = ["*"]\n')
    assert load(file, environ={}).people.me == "ann"
    config = load(file, environ={"LASTWORD_PERSON": "bob"})
    assert (config.people.me, config.people.answer) == ("bob", {"lead": ["*"]})


@requirement("TEAM-3")
async def test_a_token_has_a_person_and_what_it_opens_is_theirs(store):
    """A client that comes by a token of ann's asks ann, whoever runs the server."""
    tokens = Tokens(store)
    hers, _ = await tokens.create("agent", ["tools"], "ann")
    nobodys, _ = await tokens.create("kitchen", ["tools"])
    again = Tokens(store)
    assert (await again.person_of(hers.id), await again.person_of(nobodys.id)) == ("ann", "")
    assert await again.person_of("unknown") == ""
