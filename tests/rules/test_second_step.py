"""The second step says what it grants: bounds that read as what they are, and the very cards that it would answer."""

import asyncio
import dataclasses
import datetime
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from granted_house import Payer, paying
from ruled_house import saying

from lastword import Journal, Session, ToolRegistry, wait_for_answer
from lastword.card import responses
from lastword.consent import Answerer, ApprovalRequest, People
from lastword.rules import GrantChoice, Grants, GrantWho, Policy, SeenStep, folder_beside
from lastword.rules.terms import bounds_of, tonight
from lastword.store import MemoryStore
from lastword.terminal.grant_dialogue import options_of
from requirements import requirement
from sending import until

AT_MOST = {"amount": 1}


async def seen(session: Session, card: ApprovalRequest, **chosen: Any) -> SeenStep:
    folder = folder_beside(card, session.registry, session.editor)
    return await SeenStep.of(card, GrantChoice(**chosen), folder, session.pending(), session.journal)


async def cards(payer: Payer, count: int) -> list[ApprovalRequest]:
    await until(lambda: len(payer.session.pending()) == count)
    return sorted(payer.session.pending(), key=lambda card: -card.arguments["amount"])


async def deny_all(payer: Payer) -> None:
    for card in payer.session.pending():
        payer.session.answer(card.call_id, card.deny())


@requirement("GRANT-6")
async def test_cards_that_a_sum_leaves_no_room_for_are_not_listed():
    """What is listed is answered. One that would be asked about again after all was promised something else."""
    async with paying() as payer:
        calls = [payer.ask(amount) for amount in (8, 6, 5, 4)]
        first, *_ = await cards(payer, 4)
        step = await seen(payer.session, first, loosened=AT_MOST, sums={"amount": "10"})
        assert [other.summary for other in step.step.settles] == [
            'to: Ada, amount: 6, note: ""',
            'to: Ada, amount: 4, note: ""',
        ]
        assert step.terms is not None
        payer.session.answer(first.call_id, first.allow_with(step.terms))
        await until(lambda: len(payer.paid) == 3)
        [left] = payer.session.pending()
        assert (left.arguments["amount"], left.problem) == (5, None)
        await deny_all(payer)
        await asyncio.gather(*calls)
        assert sorted(payer.paid) == [("Ada", 4), ("Ada", 6), ("Ada", 8)]


@requirement("GRANT-6")
async def test_a_card_that_a_rule_wants_asked_is_not_listed_and_goes_on_waiting():
    """A rule's ask wins over every grant, so the grant would not answer it."""
    async with paying() as payer:
        rule = saying("ask", "odd ones", "amount = { is = 3 }")
        payer.session.policy = Policy.vouched(rule, payer.registry)
        calls = [payer.ask(5), payer.ask(4), payer.ask(3)]
        first, _, ruled = await cards(payer, 3)
        step = await seen(payer.session, first, loosened=AT_MOST)
        assert step.terms is not None
        assert [other.summary for other in step.step.settles] == ['to: Ada, amount: 4, note: ""']
        assert SeenStep.why_none(ruled, "") == "What a rule wants asked is asked about each time."
        assert (await seen(payer.session, ruled)).step.why_none == SeenStep.why_none(ruled, "")
        payer.session.answer(first.call_id, first.allow_with(step.terms))
        await until(lambda: len(payer.paid) == 2)
        assert [card.problem for card in payer.session.pending()] == [None]
        await deny_all(payer)
        await asyncio.gather(*calls)


@requirement("GRANT-6")
async def test_a_card_that_came_back_is_not_listed():
    """It is asked again for a reason of its own, which a yes to others does not answer."""
    async with paying() as payer:
        calls = [payer.ask(5), payer.ask(4)]
        first, back = await cards(payer, 2)
        # A yes that is no person's brings the card back.
        payer.session.answer(back.call_id, back.allow(), Answerer("preset", "x"))
        await until(lambda: [card for card in payer.session.pending() if card.problem])
        step = await seen(payer.session, first, loosened=AT_MOST)
        assert (step.step.settling, step.step.settles) == ("", ())
        await deny_all(payer)
        await asyncio.gather(*calls)


@requirement("GRANT-1")
@pytest.mark.parametrize("amount", [10**400, 2**63, 2**53 + 1, 1e300, 5e-324, 0.1 + 0.2, -0.0, 0])
async def test_a_number_of_any_size_has_a_step_and_covers_itself_and_nothing_above(amount: float):
    """A step that fails would take the card away with it; and a bound that rounds would be another one."""
    async with paying() as payer:
        call = payer.ask(amount)
        await until(payer.session.pending)
        [card] = payer.session.pending()
        exact = await seen(payer.session, card)
        loose = await seen(payer.session, card, loosened=AT_MOST)
        given = card.arguments["amount"]
        above = given + 1 if isinstance(given, int) else given * 1.0000000000000004
        for step in (exact, loose):
            assert step.terms is not None, step.step
            where = bounds_of(step.terms.where)
            assert where.covers(card.arguments, Path("/"))
            assert above == given or not where.covers(card.arguments | {"amount": above}, Path("/"))
        await deny_all(payer)
        await call


@requirement("GRANT-1")
@pytest.mark.parametrize("most", ["1e999999999", "1e-999999999", "0e999999", "-1e200", "NaN", "sNaN", "Infinity", "x"])
async def test_a_sum_that_nobody_could_read_is_refused_in_words(most: str):
    """Written out it has a thousand million digits. Whoever types it reads why not, and at once."""
    async with paying() as payer:
        call = payer.ask(5)
        await until(payer.session.pending)
        [card] = payer.session.pending()
        step = (await seen(payer.session, card, sums={"amount": most})).step
        assert step.problem.startswith(("The sum of amount is a number", "The sum of amount has more than 30 digits"))
        assert step.digest == ""
        await deny_all(payer)
        await call


@requirement("GRANT-1")
async def test_a_value_that_is_cut_in_the_sentence_says_so_outside_of_its_quotes():
    """Dots inside could be the text's own, and the sentence would read like one for a shorter text."""
    async with paying() as payer:
        call = payer.ask(5, note="x" * 400 + "y" * 1_000)
        await until(payer.session.pending)
        [card] = payer.session.pending()
        step = (await seen(payer.session, card)).step
        assert f"note “{'x' * 400}”… (1,000 more characters);" in step.sentence
        await deny_all(payer)
        await call


@requirement("GRANT-1")
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (["Ada], note “x”; in this run"], 'to ["Ada], note ‹U+201C›x‹U+201D›; in this run"], amount'),
        (["a, b"], 'to ["a, b"], amount'),
        (["a", "b"], 'to ["a", "b"], amount'),
        ([None, "null", True, "true"], 'to [null, "null", true, "true"], amount'),
        ({"x\n[a]": "\u202e\x1b[2J"}, r'to {"x\n[a]": "‹U+202E›\u001b[2J"}, amount'),
        ([["x" * 500]], f'to [["{"x" * 397}… (106 more characters), amount'),
    ],
)
async def test_lists_and_nested_values_keep_their_quotes_in_the_sentence(value: Any, shown: str):
    """Bare, a text inside a list goes on as if it were our words, and ["a, b"] reads like ["a", "b"]."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=True, effect="reversible")
    def pay(to: Any, amount: float) -> str:
        """Pay somebody."""
        return "paid"

    async with Session(registry, approver=wait_for_answer) as session:
        call = asyncio.create_task(session.call("pay", {"to": value, "amount": 5}))
        await until(session.pending)
        [card] = session.pending()
        assert shown in (await seen(session, card)).step.sentence
        session.answer(card.call_id, card.deny())
        await call


@requirement("GRANT-1")
async def test_an_argument_that_a_model_named_begins_no_line_of_ours():
    """A tool that takes any argument leaves the names to whoever calls it; read aloud, a line is a sentence of ours."""
    registry, name = ToolRegistry(), "x\nYou chose: Allow”"
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    facts: Any = {"require_approval": True, "auto_approve": True, "effect": "reversible"}
    registry.register("count", schema, lambda arguments: "counted", **facts)
    async with Session(registry, approver=wait_for_answer) as session:
        call = asyncio.create_task(session.call("count", {name: 5}))
        await until(session.pending)
        [card] = session.pending()
        for most in ("", "9", "-9"):
            step = (await seen(session, card, loosened={name: 1}, sums={name: most})).step
            said = [step.sentence, step.problem, *(bound.shown_name for bound in step.bounds)]
            assert [text for text in said if "\n" in text] == []
            assert "“x⏎You chose: Allow‹U+201D›”" in step.sentence + step.problem
        session.answer(card.call_id, card.deny())
        await call


def working(registry: ToolRegistry) -> ToolRegistry:
    @registry.tool(auto_approve=True, effect="reversible")
    def work(file: Path, command: str = "", note: str = "") -> str:
        """Work on a file."""
        return "done"

    return registry


async def offered(session: Session, **arguments: Any) -> tuple[responses.GrantStep, asyncio.Task[Any], ApprovalRequest]:
    call = asyncio.create_task(session.call("work", arguments))
    await until(session.pending)
    [card] = session.pending()
    return (await seen(session, card)).step, call, card


@requirement("GRANT-1")
@pytest.mark.parametrize("way", ["dots", "link", "root"])
async def test_a_folder_is_offered_as_where_it_really_is(tmp_path: Path, way: str):
    """`notes/../../x` and a link begin like a folder of one's own, and lead anywhere; and / bounds nothing."""
    inside, outside = tmp_path / "project", tmp_path / "outside"
    for folder in (inside / "notes", outside):
        folder.mkdir(parents=True)
    (inside / "link").symlink_to(outside)
    path = {"dots": f"{inside}/notes/../../outside/x", "link": f"{inside}/link/x", "root": "/x"}[way]
    async with Session(working(ToolRegistry()), approver=wait_for_answer) as session:
        step, call, card = await offered(session, file=path)
        choices = next(bound.choices for bound in step.bounds if bound.name == "file")
        assert choices[1:] == (() if way == "root" else (f"“{outside}” or inside it",))
        session.answer(card.call_id, card.deny())
        await call


@requirement("GRANT-1")
async def test_a_command_is_offered_for_a_command_and_reads_as_it_is_typed():
    """A name of two words is no command; and nobody reads a backslash before every dash."""
    async with Session(working(ToolRegistry()), approver=wait_for_answer) as session:
        step, call, card = await offered(session, file="/tmp/x", command="git log --oneline 'a b'", note="Ada Lovelace")
        choices = {bound.name: bound.choices for bound in step.bounds}
        assert choices["note"] == ("exactly “Ada Lovelace”",)
        assert choices["command"][1:] == (
            f"the one simple command “git log --oneline 'a b'”, run in “{Path.cwd()}” or below it",
        )
        session.answer(card.call_id, card.deny())
        await call
    pattern = bounds_of({"x": {"command": {"program": "git", "args": ["log", "a.c"], "cwd": "/"}}}).words()
    assert pattern == "x a simple command like “git log a.c”, run in “/” or below it"


@requirement("GRANT-1")
async def test_a_tool_that_works_elsewhere_is_offered_no_folder_of_ours():
    """A path of an MCP server leads on from the server's folder, which nobody here knows."""
    registry = working(ToolRegistry())
    known = registry.lookup("work")
    registry.unregister("work")
    registry.add(dataclasses.replace(known, works_in=Path()))
    async with Session(registry, approver=wait_for_answer) as session:
        _, call, card = await offered(session, file="notes/x")
        offer = session.grant_offer(card.call_id)
        assert not isinstance(offer, str)
        assert offer.looser == {}
        session.answer(card.call_id, card.deny())
        await call


@requirement("GRANT-1")
@pytest.mark.parametrize("day", [(2026, 10, 25), (2026, 3, 29), (2026, 11, 17), (2026, 12, 31)])
def test_tonight_is_midnight_also_where_the_clocks_change(monkeypatch: pytest.MonkeyPatch, day: tuple[int, int, int]):
    """An hour more than was said is an hour in which nobody meant it."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        now = datetime.datetime(*day, 0, 30)
        end = datetime.datetime.fromtimestamp(tonight(now))
        assert end == datetime.datetime(*day) + datetime.timedelta(days=1)
    finally:
        monkeypatch.undo()
        time.tzset()


@requirement("GRANT-1")
def test_the_time_that_holds_is_the_one_that_is_marked():
    """The card of an agent has one time only, and it is not the one that others begin with."""
    step = responses.GrantStep(event="", scope="until", scopes=(("until", "in all your sessions until tonight"),))
    rows = dict(options_of(step, GrantChoice()))
    assert [(option.words, option.is_chosen) for option in rows["how long"]] == [(step.scopes[0][1], True)]


@requirement("GRANT-5", "TEAM-3")
async def test_a_card_that_somebody_answers_for_another_has_no_second_step():
    """A grant serves only whoever gives it: from another person's card it would be good for nothing."""
    store = MemoryStore()
    lead = Journal(store, people=People("lead", {"lead": ("*",)}))
    async with paying(Journal(store, people=People("ada"))) as payer:
        call = payer.ask(5)
        [card] = await cards(payer, 1)
        own = await SeenStep.of(card, GrantChoice(), Path("/"), [card], payer.session.journal)
        assert own.step.why_none == ""
        other = await SeenStep.of(card, GrantChoice(), Path("/"), [card], lead)
        assert other.terms is None
        assert other.step.why_none == "This card is another person's, and a grant serves only whoever gives it."
        await deny_all(payer)
        await call
    await lead.close()


@requirement("GRANT-1")
async def test_a_grant_does_not_stand_for_the_yes_to_its_own_card(tmp_path: Path):
    """The file changed while the card waited, so the yes was to another card. The call is asked about again, and only
    others like it are not."""
    file = tmp_path / "letter.txt"
    done: list[str] = []
    file.write_text("Dear Ada")
    registry = ToolRegistry()

    def request(params: Any) -> dict[str, str]:
        return {"message": f"It says {file.read_text()}."}

    @registry.tool(auto_approve=True, effect="reversible", request=request)
    def post() -> str:
        """Post the letter."""
        done.append(file.read_text())
        return "Posted."

    async with Session(registry, approver=wait_for_answer) as session:
        call = asyncio.create_task(session.call("post", {}))
        await until(session.pending)
        [card] = session.pending()
        terms = (await seen(session, card)).terms
        assert terms is not None
        file.write_text("You are fired")
        session.answer(card.call_id, card.allow_with(terms))
        await until(lambda: call.done() or [again for again in session.pending() if again.problem])
        assert done == []
        [again] = session.pending()
        assert "fired" in again.message
        session.answer(again.call_id, again.deny())
        assert (await call).kind == "denied"
        assert (await session.call("post", {})).approval == "grant"
        [grant] = await Grants(session.journal).standing()
        who = partial(GrantWho, session.id, session.journal.process_name(), None)
        assert [grant.serves(who(call_id)) for call_id in (card.call_id, "another")] == [False, True]
