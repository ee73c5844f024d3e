"""Grants: given with an answer, used in the commit of a start, ended by a person, a limit, a day or a session."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from granted_house import Payer, paying
from ruled_house import LUNCH, Commits, PolicyHouse

from lastword import Journal, Session, ToolRegistry, UserAction, wait_for_answer
from lastword.consent import Answerer, ApprovalRequest, GrantTerms, People
from lastword.editor import ProjectEditor
from lastword.errors import Detached, LastWordError, SessionError
from lastword.journal import data_of, timeline
from lastword.rules import GrantChoice, GrantOffer, Grants, Policy, SeenStep
from lastword.rules.grant_step import summary
from lastword.rules.grants import GRANTED, REVOKED, Grant
from lastword.rules.limits import STREAM, USED
from lastword.rules.terms import why_not_given
from lastword.store import MemoryStore
from requirements import requirement
from sending import until

AT_MOST = {"amount": {"min": 0, "max": 20}}
MISSES = " does not cover it: "
NEAR = """
[[rule]]
name = "tea"
tool = "pay"
decide = "allow"
[rule.where]
to = { is = "Ada" }
amount = { min = 0, max = 2 }
note = { is = "" }
[rule.tests]
match = [{ to = "Ada", amount = 2, note = "" }]
not_match = [{ to = "Ada", amount = 3, note = "" }]
"""


@requirement("GRANT-1")
async def test_a_grant_starts_exact_and_is_loosened_by_hand():
    """What a person has just seen is what they know. Everything else they choose."""
    async with paying() as payer:
        task = payer.ask(12.5)
        card = await payer.card(task)
        offer = payer.offer(card)
        assert offer.bounds == {"to": {"is": "Ada"}, "amount": {"is": 12.5}, "note": {"is": ""}}
        assert offer.looser == {"amount": ({"min": 0, "max": 12.5},)}
        assert offer.scopes == ("session", "until")
        terms = offer.terms({"amount": {"min": 0, "max": 12.5}}, calls=10, sums={"amount": "100"})
        assert summary(card, terms) == (
            "Allow, and don't ask again for: pay, to “Ada”, amount at most 12.5, note empty; in this session; "
            "ends after 10 calls or 100 of amount in all, whichever comes first, or when the tool changes."
        )
        payer.session.answer(card.call_id, card.allow_with(terms))
        assert (await task).approval == "person"
        assert [await payer.pay(12.5), await payer.pay(3)] == ["ran", "ran"]
        assert MISSES in await payer.pay(12.51)
        assert MISSES in await payer.pay(3, "Bo")
        assert MISSES in await payer.pay(3, note="x")


@requirement("GRANT-1")
async def test_the_step_says_what_it_would_have_covered_before():
    """A bound that is too wide is seen in what it would have let through."""
    async with paying() as payer:
        for amount in (3, 4, 30):
            await payer.pay(amount)
        async with payer.shown(5) as card:
            terms = payer.offer(card).terms(AT_MOST)
            past = await payer.session.would_have_covered(card.call_id, terms)
            answered = "Of the last 3 cards of this tool that you answered it would have answered 2"
            assert past.words == f"{answered}; 2 of them you denied or changed."


@requirement("GRANT-1")
async def test_what_nobody_was_asked_about_is_no_card_that_it_would_have_answered():
    """A call that a grant stood for was never seen: it is no help in judging the next one."""
    async with paying() as payer:
        await payer.grant(AT_MOST)
        assert [await payer.pay(3), await payer.pay(4)] == ["ran", "ran"]
        async with payer.shown(30) as card:
            past = await payer.session.would_have_covered(card.call_id, payer.offer(card).terms())
            assert past.words == "It would not have answered the one card of this tool that you answered."


@requirement("GRANT-1")
async def test_a_total_that_not_even_one_call_fits_into_is_refused_in_words():
    """A grant that can never serve reads like one that does."""
    async with paying() as payer, payer.shown(5) as card:
        offer = payer.offer(card)
        with pytest.raises(LastWordError, match="It would never answer: each call takes 5 of amount or more"):
            offer.terms(sums={"amount": "4.99"})
        assert offer.terms(sums={"amount": "5"}).sums == {"amount": "5"}
        assert offer.terms(AT_MOST, sums={"amount": "1"}).sums == {"amount": "1"}, "a smaller one would fit"


@requirement("GRANT-1", "RULE-7")
async def test_whoever_is_asked_although_they_granted_it_is_told_that_the_tool_has_changed():
    """Else nobody knows why a grant that is in the list does not serve."""
    async with paying() as payer:
        await payer.grant(AT_MOST)
        assert await payer.pay(3) == "ran"
        payer.register(description="Pay somebody, or somebody else.")
        line = await payer.pay(3)
        assert line.startswith("Asked because the tool is not the one that your grant of ")
        assert line.endswith(" was given for.")
        assert await payer.pay(30) == "asked", "what it never covered is not its business"


@requirement("RULE-7")
async def test_the_card_and_explain_name_the_grant_that_just_misses_and_what_misses():
    """Whoever gave it wonders why they are asked. One that was taken back, or is another's, is not named."""
    async with paying() as payer:
        await payer.grant({"amount": {"min": 0, "max": 12.5}}, amount=12.5)
        await payer.grant(amount=40)
        journal = payer.session.journal
        wide, exact = await Grants(journal).standing()
        assert await payer.pay(20) == f"Asked. Y{wide.words[1:]} does not cover it: amount 20 is more than 12.5."
        both = f"Asked. Y{wide.words[1:]} does not cover it: to “Bo” is not “Ada”; 1 more argument does not fit."
        assert await payer.pay(20, "Bo") == both
        told = await payer.session.explain("pay", {"to": "Ada", "amount": 20, "note": ""})
        assert str(told) == f"ask. {wide.words} does not cover it: amount 20 is more than 12.5"
        async with paying(journal, user="somebody else") as other:
            assert await other.pay(20) == "asked"
        await Grants(journal).revoke(wide.id, Answerer.person("me"))
        assert await payer.pay(20) == f"Asked. Y{exact.words[1:]} does not cover it: amount 20 is not 40."
        await Grants(journal).revoke(exact.id, Answerer.person("me"))
        assert await payer.pay(20) == "asked"


@requirement("RULE-7")
async def test_where_a_rule_comes_near_its_line_stays():
    """A card has one line for why it is asked, and a rule is for good."""
    async with paying() as payer:
        payer.session.policy = Policy.vouched(NEAR, payer.registry)
        await payer.grant({"amount": {"min": 0, "max": 12.5}}, amount=12.5)
        assert await payer.pay(20) == "Asked. Nearest rule: tea (policy.toml:2): amount 20 is more than 2."


@requirement("GRANT-2")
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"key": False}, "This tool must be asked about each time"),
        ({"secret": ("note",)}, "It takes a secret, which is kept nowhere, so it is asked about each time"),
    ],
)
async def test_no_grant_is_offered_without_the_key_of_the_tool(facts: dict[str, Any], words: str):
    """Whoever registered the tool said that it must be asked about, or it takes what no record may hold."""
    async with paying() as payer:
        payer.register(facts.pop("key", True), **facts)
        async with payer.shown() as card:
            assert payer.session.grant_offer(card.call_id) == words


@requirement("GRANT-2")
@pytest.mark.parametrize("effect", ["irreversible", None])
async def test_what_cannot_be_undone_or_does_not_say_is_granted_with_a_limit(effect: Any):
    """Without one, a single yes could be used for ever."""
    async with paying() as payer:
        payer.register(True, effect)
        async with payer.shown() as card:
            offer = payer.offer(card)
            assert offer.needs_limit
            with pytest.raises(LastWordError, match="with a limit"):
                offer.terms()
            assert offer.terms(calls=3).calls == 3
            assert offer.terms(sums={"amount": "20"}).sums == {"amount": "20"}


@requirement("GRANT-2")
@pytest.mark.parametrize(
    "bound",
    [
        {"length": 80},
        {"matches": "[a-z]*"},
        {"any": True},
        {"from": ["you"]},
        {"not_in": ["x"]},
        {"max": 5},
        {"under": "/"},
    ],
)
async def test_a_grant_over_free_text_is_not_to_be_had(bound: dict[str, Any]):
    """That is where it leaks: whoever writes the text decides what the grant is good for."""
    async with paying() as payer:
        task = payer.ask()
        card = await payer.card(task)
        with pytest.raises(LastWordError):
            payer.offer(card).terms({"note": bound}, calls=1)
        # A surface that does not ask first gets no further: the yes counts for this call, and nothing is granted.
        where = payer.offer(card).bounds | {"note": bound}
        payer.session.answer(card.call_id, card.allow_with(GrantTerms(where=where, scope="session", calls=3)))
        assert (await task).success
        assert await Grants(payer.session.journal).standing() == []
        assert await payer.pay(5) == "asked"


@requirement("GRANT-2")
async def test_a_folder_bounds_a_path_and_no_words_with_a_slash_in_them(tmp_path):
    """“docs/ my password is …” lies under docs as well. So the tool has to say that an argument is a path."""
    async with paying() as payer:

        @payer.registry.tool(auto_approve=True, effect="reversible")
        def send(text: str, file: Path) -> str:
            """Send a text and a file."""
            return "sent"

        task = asyncio.create_task(
            payer.session.call("send", {"text": f"{tmp_path}/a.txt", "file": f"{tmp_path}/a.txt"})
        )
        card = await payer.card(task)
        offer = payer.offer(card)
        assert {name: [*choice] for name, [choice] in offer.looser.items()} == {"file": ["under"]}
        assert offer.terms({"file": offer.looser["file"][0]}).where["file"] == {"under": str(tmp_path)}
        payer.session.answer(card.call_id, card.deny())
        await task


class Worker:
    """A session in a folder, with tools that take a path, several, and a command line."""

    def __init__(self, folder: Path) -> None:
        registry = ToolRegistry()

        @registry.tool(auto_approve=True, effect="reversible")
        def tidy(path: Path) -> str:
            """Tidy a file."""
            return "tidied"

        @registry.tool(auto_approve=True, effect="reversible")
        def tidy_all(paths: list[Path]) -> str:
            """Tidy files."""
            return "tidied"

        @registry.tool(auto_approve=True, effect="reversible")
        def run(command: str) -> str:
            """Run a command."""
            return "ran"

        self.session = Session(registry, approver=wait_for_answer, editor=ProjectEditor(folder))

    async def grant(self, tool: str, given: dict[str, Any], bounds: dict[str, Any]) -> str:
        """Allow a call, and others like it; `granted`, or why there is none."""
        task = asyncio.create_task(self.session.call(tool, given))
        await until(self.session.pending)
        [card] = self.session.pending()
        terms = GrantTerms(where=bounds, scope="session")
        why = why_not_given(card.manifest, card, terms, Answerer.person("me"), card.allow_with(terms))
        self.session.answer(card.call_id, card.allow_with(terms))
        assert (await task).success
        return why or "granted"

    async def hear(self, tool: str, given: dict[str, Any]) -> str:
        """`ran` without a question, or the line of the card, which is then denied."""
        task = asyncio.create_task(self.session.call(tool, given))
        await until(lambda: task.done() or self.session.pending())
        if task.done():
            return "ran" if task.result().success else task.result().kind
        [card] = self.session.pending()
        self.session.answer(card.call_id, card.deny())
        await task
        return card.rule_line


@requirement("GRANT-2")
@pytest.mark.parametrize("target", ["other", "/"])
@pytest.mark.parametrize("kind", ["tidy", "tidy_all", "run"])
async def test_a_granted_folder_that_becomes_a_link_covers_nothing(tmp_path: Path, kind: str, target: str):
    """It was granted as it really was. Whoever puts a link in its place would choose what is granted; and the card says
    why the same path is asked about."""
    sub, other = tmp_path / "p" / "sub", tmp_path / "other"
    sub.mkdir(parents=True)
    other.mkdir()
    line = {"command": {"program": "make", "args": ["test"], "cwd": str(sub)}}
    cases: dict[str, tuple[dict[str, Any], ...]] = {
        "tidy": ({"path": f"{sub}/a"}, {"path": f"{other}/a"}, {"path": {"under": str(sub)}}),
        "tidy_all": (
            {"paths": [f"{sub}/a"]},
            {"paths": [f"{other}/a"]},
            {"paths": {"each": {"under": str(sub)}, "length": 3}},
        ),
        "run": ({"command": "make test"}, {"command": "make test"}, {"command": line}),
    }
    within, out, bounds = cases[kind]
    worker = Worker(sub)
    async with worker.session:
        assert await worker.grant(kind, within, bounds) == "granted"
        assert await worker.hear(kind, within) == "ran"
        sub.rmdir()
        sub.symlink_to(tmp_path / target)
        for given in (within, out):
            said = await worker.hear(kind, given)
            assert said.endswith(", which leads elsewhere by now."), said
        sub.unlink()
        sub.mkdir()
        assert await worker.hear(kind, within) == "ran"


@requirement("GRANT-2")
async def test_a_folder_that_is_a_link_is_not_granted_and_offered_as_what_it_leads_to(tmp_path: Path):
    """Nothing lies in a link, so a grant that names one would answer for nothing."""
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    worker = Worker(link)
    async with worker.session:
        why = await worker.grant("tidy", {"path": f"{link}/a"}, {"path": {"under": str(link)}})
        assert why == "The folder of path leads elsewhere; a grant names it with links followed"
        assert await Grants(worker.session.journal).standing() == []
        task = asyncio.create_task(worker.session.call("run", {"command": "make test"}))
        await until(worker.session.pending)
        [card] = worker.session.pending()
        offer = worker.session.grant_offer(card.call_id)
        assert isinstance(offer, GrantOffer)
        [choice] = offer.looser["command"]
        assert choice["command"]["cwd"] == str(real)
        worker.session.answer(card.call_id, card.allow_with(offer.terms({"command": choice})))
        assert (await task).success
        assert await worker.hear("run", {"command": "make  test"}) == "ran"


@requirement("GRANT-1")
@pytest.mark.parametrize(
    "given",
    [
        {"path": "notes.md"},
        {"path": "../notes.md"},
        {"path": "~/notes.md"},
        {"path": "/notes.md", "more": ["/more.md", "notes.md"]},
        {"path": "/notes.md", "kept": "notes.md"},
    ],
    ids=str,
)
async def test_a_path_that_is_not_whole_is_not_granted_for_sessions_of_other_folders(given: dict[str, Any]):
    """`notes.md` is another file there. From this card it is for this session, whose folder it is meant from, and a
    surface that sends the longer time all the same grants nothing with its yes."""
    registry = ToolRegistry()

    @registry.tool(auto_approve="exact", effect="irreversible")
    def remove(path: Path, more: list[Path] | None = None, kept: Path | None = None) -> str:
        """Remove a file, or several."""
        return "removed"

    manifest = registry.lookup("remove").manifest
    async with Session(registry, approver=wait_for_answer) as session:
        task = asyncio.create_task(session.call("remove", given, call_id="a"))
        card, offer = await session.card_for("a"), session.grant_offer("a")
        assert isinstance(card, ApprovalRequest)
        assert isinstance(offer, GrantOffer)
        assert offer.scopes == ("session",)
        with pytest.raises(LastWordError, match="cannot be granted in all your sessions until tonight from this card"):
            offer.terms(None, "until", calls=3)
        seen = await SeenStep.of(card, GrantChoice(scope="until"), Path("/"), (), session.journal)
        assert (seen.terms, seen.step.scopes) == (None, (("session", "in this session"),))
        assert "until tonight from this card" in seen.step.problem
        forged = msgspec.structs.replace(offer.terms(calls=3), scope="until", until=session.journal.clock() + 1000)
        why = why_not_given(manifest, card, forged, Answerer.person("me"), card.allow_with(forged))
        assert why == f"{[*given][-1]} is another file in a session of another folder"
        session.answer("a", card.allow_with(forged))
        assert (await task).success
        assert await Grants(session.journal).standing() == []


@requirement("GRANT-1", "GRANT-2")
@pytest.mark.parametrize(
    "given",
    [{"command": "make deploy"}, {"command": "/usr/bin/make"}, {"cmd": ["make", "deploy"]}, {"any": 1}],
    ids=str,
)
async def test_a_command_is_not_granted_for_sessions_of_other_folders(given: dict[str, Any]):
    """`make deploy` runs what the makefile there says. Neither is it offered, nor does a surface that sends it all the
    same get it, nor does a record of a program that did not know of commands answer for one."""
    registry, journal = ToolRegistry(), Journal()

    @registry.tool(auto_approve=True, effect="reversible")
    def run(command: str = "", cmd: list[str] | None = None, any: int = 0) -> str:
        """Run a command."""
        return "ran"

    [name] = given
    is_command = name != "any"
    manifest = registry.lookup("run").manifest
    async with Session(registry, approver=wait_for_answer, journal=journal) as session:
        task = asyncio.create_task(session.call("run", given, call_id="a"))
        card, offer = await session.card_for("a"), session.grant_offer("a")
        assert isinstance(card, ApprovalRequest)
        assert isinstance(offer, GrantOffer)
        assert ("until" in offer.scopes) is not is_command
        forged = msgspec.structs.replace(offer.terms(), scope="until", until=journal.clock() + 1000)
        why = why_not_given(manifest, card, forged, Answerer.person("me"), card.allow_with(forged))
        assert why == (f"{name} is another command in a session of another folder" if is_command else None)
        old = Grant.of(card, forged, Answerer.person(""), "", None, journal.clock())
        await journal.store.commit(Grants(journal).entry(old))
        session.answer("a", card.allow())
        assert (await task).success
        task = asyncio.create_task(session.call("run", given, call_id="b"))
        await until(lambda: task.done() or session.pending())
        assert task.done() is not is_command
        if is_command:
            session.answer("b", session.pending()[0].deny())
        await task


@requirement("GRANT-1")
async def test_a_command_whose_folder_is_an_argument_may_be_granted_until_tonight():
    """Its folder is bounded like everything else."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=True, effect="reversible")
    def run(command: str, cwd: Path = Path()) -> str:
        """Run a command."""
        return "ran"

    async with Session(registry, approver=wait_for_answer) as session:
        for given, is_whole in (({"cwd": "sub"}, False), ({}, False), ({"cwd": "/tmp"}, True)):
            task = asyncio.create_task(session.call("run", {"command": "make"} | given))
            await until(session.pending)
            [card] = session.pending()
            offer = session.grant_offer(card.call_id)
            assert isinstance(offer, GrantOffer)
            assert ("until" in offer.scopes) is is_whole, given
            terms = offer.terms(scope="until") if is_whole else None
            session.answer(card.call_id, card.deny() if terms is None else card.allow_with(terms))
            assert (await task).success is is_whole
        assert (await session.call("run", {"command": "make", "cwd": "/tmp"})).approval == "grant"


@requirement("GRANT-1")
async def test_a_command_is_not_offered_for_every_folder_there_is(tmp_path: Path):
    """“/ or below it” reads like a bound, and is none."""
    worker = Worker(tmp_path)
    async with worker.session:
        task = asyncio.create_task(worker.session.call("run", {"command": "make test"}, call_id="a"))
        card = await worker.session.card_for("a")
        assert isinstance(card, ApprovalRequest)
        [here, everywhere] = [GrantOffer.of(card, folder) for folder in (tmp_path, Path("/"))]
        assert isinstance(here, GrantOffer)
        assert isinstance(everywhere, GrantOffer)
        assert (list(here.looser), everywhere.looser) == (["command"], {})
        worker.session.answer("a", card.deny())
        await task


@requirement("GRANT-1")
async def test_a_whole_path_may_be_granted_until_tonight():
    """It is the same file wherever a session works."""
    registry = ToolRegistry()

    @registry.tool(auto_approve="exact", effect="irreversible")
    def remove(path: Path) -> str:
        """Remove a file."""
        return "removed"

    async with Session(registry, approver=wait_for_answer) as session:
        task = asyncio.create_task(session.call("remove", {"path": "/notes.md"}, call_id="a"))
        card, offer = await session.card_for("a"), session.grant_offer("a")
        assert isinstance(card, ApprovalRequest)
        assert isinstance(offer, GrantOffer)
        assert offer.scopes == ("session", "until")
        session.answer("a", card.deny())
        await task


def nested(levels: int) -> Any:
    """A list in a list, so many levels deep."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@requirement("GRANT-2")
@pytest.mark.parametrize("levels", [65, 256, 590])
async def test_what_is_nested_too_deeply_to_be_read_is_not_granted_and_asked_about_again(levels: int):
    """Nobody sees what they would agree to. A record of such a grant, of an earlier version, stands for nobody either,
    and the call that it names is asked about and not broken off."""
    async with paying() as payer:

        @payer.registry.tool(auto_approve=True, effect="reversible")
        def send(data: Any) -> str:
            """Send something."""
            return "sent"

        task = asyncio.create_task(payer.session.call("send", {"data": nested(levels)}))
        card = await payer.card(task)
        with pytest.raises(LastWordError, match="data is nested more than 64 levels deep"):
            payer.offer(card).terms(calls=5)
        terms = GrantTerms(where={"data": {"is": nested(levels)}}, scope="session", calls=5)
        payer.session.answer(card.call_id, card.allow_with(terms))
        assert (await task).success
        journal = payer.session.journal
        assert await Grants(journal).standing() == [], "the yes counts, and the grant does not"
        old = Grant.of(card, terms, Answerer.person(""), journal.process_name(), None, journal.clock())
        assert await journal.store.commit(Grants(journal).entry(old))
        again = asyncio.create_task(payer.session.call("send", {"data": nested(levels)}))
        card = await payer.card(again)
        payer.session.answer(card.call_id, card.deny())
        assert (await again).kind == "denied"
        [grant] = await Grants(journal).listed()
        assert grant.what.startswith("send, data [[[")


@requirement("GRANT-2")
async def test_what_a_person_can_read_is_granted_however_it_is_nested():
    """Sixty-four levels are enough for everybody."""
    async with paying() as payer:

        @payer.registry.tool(auto_approve=True, effect="reversible")
        def send(data: Any) -> str:
            """Send something."""
            return "sent"

        task = asyncio.create_task(payer.session.call("send", {"data": nested(64)}))
        card = await payer.card(task)
        payer.session.answer(card.call_id, card.allow_with(payer.offer(card).terms(calls=5)))
        assert (await task).success
        assert (await payer.session.call("send", {"data": nested(64)})).approval == "grant"


@requirement("GRANT-2")
async def test_a_tool_that_wants_exact_arguments_gets_exact_grants():
    """The middle position of its key."""
    async with paying() as payer:
        payer.register("exact")
        task = payer.ask()
        card = await payer.card(task)
        offer = payer.offer(card)
        assert offer.looser == {}
        with pytest.raises(LastWordError, match="only for exact arguments"):
            offer.terms(AT_MOST)
        payer.session.answer(card.call_id, card.allow_with(offer.terms()))
        await task
        assert await payer.pay(5) == "ran"
        assert MISSES in await payer.pay(4)


@requirement("GRANT-2")
def test_a_grant_goes_with_a_plain_yes_to_one_card():
    """Not with a no, not with a changed call, and not with a yes that names no card."""
    terms = GrantTerms(where={}, scope="session")
    for facts in (
        {"secondary_confirmed": True, "answers": "d"},
        {"primary_confirmed": True, "arguments": {}, "answers": "d"},
        {"primary_confirmed": True},
    ):
        with pytest.raises(LastWordError, match="plain yes"):
            UserAction(**{"primary_confirmed": False, "secondary_confirmed": False} | facts, grant=terms)


@requirement("GRANT-2")
async def test_only_a_person_grants():
    """A preset, a rule or another grant that answers a card gives nothing beside it."""
    async with paying() as payer:
        task = payer.ask()
        card = await payer.card(task)
        action = card.allow_with(payer.offer(card).terms())
        payer.session.answer(card.call_id, action, Answerer("preset", "x"))
        await until(lambda: [again for again in payer.session.pending() if again.problem])
        assert await Grants(payer.session.journal).standing() == []
        again = payer.session.pending()[0]
        payer.session.answer(again.call_id, again.deny())
        await task
        assert payer.paid == []


@requirement("GRANT-3")
async def test_a_grant_is_in_the_commit_of_its_answer_and_a_use_in_that_of_its_start():
    """There is no moment at which one of them stands alone."""
    store = Commits()
    async with paying(Journal(store)) as payer:
        await payer.grant(calls=3)
        await payer.pay(5)
    assert [GRANTED, "answered"] in store.commits
    assert [USED, "answered", "burned", "started"] in store.commits
    assert store.commits[-1] == [REVOKED]


@requirement("GRANT-3")
@requirement("GRANT-7")
async def test_the_timeline_says_each_time_why_nobody_was_asked():
    """Otherwise a call that was not asked about looks like one that nobody had to allow."""
    async with paying() as payer:
        await payer.grant(AT_MOST, calls=10, sums={"amount": "100"})
        await payer.pay(5)
        await payer.pay(13.5)
        records = await payer.session.journal.store.read()
    grant = (await payer.session.journal.store.read(kind=GRANTED))[0]
    day = data_of(grant)["at"]
    started = [line for line in timeline(records) if "started" in line]
    assert "(approved by a person)" in started[0]
    assert started[1].endswith(", 1 of 10 calls, 5 of 100.)")
    assert started[2].endswith(", 2 of 10 calls, 18.50 of 100.)")
    assert "Not asked: your grant of " in started[1]
    assert day > 0


@requirement("GRANT-4")
async def test_a_limit_of_calls_ends_a_grant_and_the_card_says_so():
    """The call on whose card it was given was asked about, and does not count."""
    async with paying() as payer:
        await payer.grant(calls=2)
        assert [await payer.pay(), await payer.pay()] == ["ran", "ran"]
        said = await payer.pay()
        assert "was for 2 calls, and they are used up" in said
        assert len(payer.paid) == 3


@requirement("GRANT-4")
async def test_a_sum_is_exact_and_never_exceeded():
    """Ten times 0.1 is 1, whatever a computer's arithmetic makes of it; and a cent more is too much."""
    async with paying() as payer:
        await payer.grant(AT_MOST, sums={"amount": "1"}, amount=0.1)
        assert [await payer.pay(0.1) for _ in range(10)] == ["ran"] * 10
        assert "has 0 of 1 left for amount" in await payer.pay(0.01)
        assert await payer.pay(0) == "ran"


@requirement("GRANT-7")
async def test_what_a_sum_is_of_is_said_where_there_are_several():
    """Of two numbers nobody knows which is the price."""
    async with paying() as payer:

        @payer.registry.tool(auto_approve=True, effect="reversible")
        def order(cups: int, price: float) -> str:
            """Order tea."""
            return "ordered"

        for sums, said in (({"price": "30"}, "5 of 30"), ({"cups": "9", "price": "30"}, "2 of 9 cups, 5 of 30 price")):
            task = asyncio.create_task(payer.session.call("order", {"cups": 2, "price": 5}))
            card = await payer.card(task)
            terms = payer.offer(card).terms(calls=3, sums=sums)
            payer.session.answer(card.call_id, card.allow_with(terms))
            await task
            again = await payer.session.call("order", {"cups": 2, "price": 5})
            life = await payer.session.journal.life(again.call_id)
            assert life.started is not None
            assert life.started["why"].partition(", ")[2] == f"1 of 3 calls, {said}"
            await Grants(payer.session.journal).revoke(terms.id, Answerer.person("page"))


@requirement("GRANT-4")
@pytest.mark.parametrize("least", [1e-9, 1e-30, 5e-324])
async def test_no_amount_is_too_small_to_be_counted(least: float):
    """A sum that is rounded would let the smallest amounts through for ever once it is reached."""
    async with paying() as payer:
        await payer.grant({"amount": {"min": 0, "max": 1e20}}, sums={"amount": "100000000000000000000"}, amount=1e20)
        assert await payer.pay(1e20) == "ran"
        assert "left for amount" in await payer.pay(least)


@requirement("GRANT-4")
async def test_nothing_is_given_back_when_a_call_fails():
    """It was counted when it started, and it may have acted."""
    async with paying() as payer:
        await payer.grant(calls=1)
        payer.is_failing = True
        assert await payer.pay() == "failed"
        payer.is_failing = False
        assert "used up" in await payer.pay()


@requirement("GRANT-5")
async def test_a_grant_that_was_taken_back_allows_nothing():
    """From the next call on."""
    async with paying() as payer:
        terms = await payer.grant(calls=5)
        assert await payer.pay() == "ran"
        assert await Grants(payer.session.journal).revoke(terms.id, Answerer.person("me"))
        assert await payer.pay() == "asked"
        assert not await Grants(payer.session.journal).revoke(terms.id, Answerer.person("me"))
        with pytest.raises(SessionError, match="no such grant"):
            await Grants(payer.session.journal).revoke("nothing", Answerer.person("me"))


@requirement("GRANT-5")
async def test_a_session_ends_its_grants_and_a_later_one_of_the_same_name_has_none():
    """The person who closed it thought that this was over."""
    journal = Journal()
    async with paying(journal, id="s") as payer:
        await payer.grant()
        assert await payer.pay() == "ran"
        async with Session(payer.registry, id="other", approver=lambda r: r.deny(), journal=journal) as other:
            assert (await other.call("pay", {"to": "Ada", "amount": 5})).kind == "denied"
    async with paying(journal, id="s") as later:
        assert await later.pay() == "asked"


@requirement("GRANT-5")
async def test_a_session_ends_the_grants_that_another_program_gave_for_it():
    """The program lives on, as one that holds many conversations does, and comes back to this one later."""
    journal = Journal()
    async with paying(journal) as payer:
        task = payer.ask()
        card = await payer.card(task)
        elsewhere = Journal(journal.store)
        [facts] = await elsewhere.waiting()
        assert await Grants(elsewhere).answer_elsewhere(
            facts, card.allow_with(payer.offer(card).terms()), Answerer.person("answer")
        )
        assert (await task).success
        assert await payer.pay() == "ran"
    assert await Grants(journal).standing() == []
    async with paying(journal, id=payer.session.id) as later:
        assert await later.pay() == "asked"


@requirement("GRANT-5")
async def test_a_run_ends_its_grants():
    """A grant for this run says nothing of the next."""
    async with paying() as payer:
        script = 'CALL pay { to: "Ada", amount: 5 }\nCALL pay { to: "Ada", amount: 5 }\n'
        running = asyncio.create_task(payer.session.run_script(script))
        await until(payer.session.pending)
        card = payer.session.pending()[0]
        offer = payer.offer(card)
        assert offer.scopes == ("run", "session", "until")
        payer.session.answer(card.call_id, card.allow_with(offer.terms(scope="run")))
        assert (await running).status == "done"
        assert len(payer.paid) == 2
        assert await Grants(payer.session.journal).standing() == []
        assert await payer.pay() == "asked"


@requirement("GRANT-5")
async def test_a_grant_serves_the_sessions_of_who_gave_it_and_of_nobody_else():
    """Two people share a journal. One said yes."""
    journal = Journal()
    async with (
        paying(journal, user="ada") as ada,
        paying(journal, user="bo") as bo,
        paying(journal, user="ada") as again,
    ):
        await ada.grant(scope="until")
        for other in (bo, again):
            other.registry.unregister("pay")
            other.registry.add(ada.registry.lookup("pay"))
        assert await bo.pay() == "asked"
        assert await again.pay() == "ran"


@requirement("GRANT-5", "TEAM-3")
async def test_a_grant_serves_the_person_who_gave_it_wherever_they_sit_and_nobody_for_whom_they_answer():
    """A store of a team: each process has its person. Who answers a colleague's card gives nothing away of theirs."""
    store = MemoryStore()
    people = {who: People(who, {"bo": ("ada",)}) for who in ("ada", "bo")}

    def at(who: str) -> Journal:
        return Journal(store, people=people[who])

    async with paying(at("ada")) as ada, paying(at("bo")) as bo, paying(at("ada")) as again:
        await ada.grant(scope="until")
        for other in (bo, again):
            other.registry.unregister("pay")
            other.registry.add(ada.registry.lookup("pay"))
        assert await bo.pay() == "asked"
        assert await again.pay() == "ran"
        # A card of ada's with another amount, which bo answers with a grant: it is bo's, and serves ada not.
        task = ada.ask(7)
        card = await ada.card(task)
        [facts] = await bo.session.journal.waiting()
        given = ada.offer(card).terms(scope="until")
        answered = card.from_facts(facts).allow_with(given)
        assert await Grants(bo.session.journal).answer_elsewhere(facts, answered, Answerer.person("page"))
        await task
        assert MISSES in await ada.pay(7)
        assert await bo.pay(7) == "ran"


@requirement("GRANT-6")
async def test_a_grant_settles_the_waiting_cards_that_it_listed_and_no_others():
    """Each is written down. One that came while the person read the list goes on waiting."""
    async with paying() as payer:
        first, second, other = payer.ask(5), payer.ask(6), payer.ask(50)
        await until(lambda: len(payer.session.pending()) == 3)
        card = next(card for card in payer.session.pending() if card.arguments["amount"] == 5)
        terms = payer.settling(card, payer.offer(card).terms(AT_MOST))
        late = payer.ask(7)
        await until(lambda: len(payer.session.pending()) == 4)
        payer.session.answer(card.call_id, card.allow_with(terms))
        assert [(await first).approval, (await second).approval] == ["person", "grant"]
        assert sorted(card.arguments["amount"] for card in payer.session.pending()) == [7, 50]
        assert len(await payer.session.journal.store.read(stream=STREAM, kind=USED)) == 1
        for waiting in payer.session.pending():
            payer.session.answer(waiting.call_id, waiting.deny())
        await asyncio.gather(other, late)


@requirement("GRANT-6")
@pytest.mark.parametrize("is_listed", [False, True], ids=["not listed", "listed"])
async def test_a_card_that_waited_before_a_grant_is_answered_by_it_only_if_it_was_listed_when_its_run_comes_back(
    is_listed: bool,
):
    """Its program had ended, so no list of cards had it. The grant is for what is asked for from then on, and whoever
    resumes the run finds the card as it was left."""
    journal = Journal()
    async with paying(journal, id="first") as left:
        run = asyncio.create_task(left.session.run_script('CALL pay { to: "Ada", amount: 5, note: "" }', run_id="R"))
        await until(lambda: left.session.pending())
        [waiting] = left.session.pending()
        left.session.detach(waiting.call_id)
        with pytest.raises(Detached):
            await run
    async with paying(journal, id="second") as payer:
        card = await payer.card(task := payer.ask())
        terms = payer.offer(card).terms(None, "until", calls=9)
        terms = msgspec.structs.replace(terms, settles=(waiting.call_id,) if is_listed else ())
        payer.session.answer(card.call_id, card.allow_with(terms))
        assert (await task).success
        assert await payer.pay() == "ran", "what is asked for now is covered"
    async with paying(journal, id="first") as again:
        resumed = asyncio.create_task(again.session.resume("R"))
        await until(lambda: resumed.done() or again.session.pending())
        assert resumed.done() == is_listed
        for card in again.session.pending():
            assert (card.nonce, card.problem) == (waiting.nonce, None), "the very card that was left"
            again.session.answer(card.call_id, card.deny())
        await resumed
        assert again.paid == ([("Ada", 5)] if is_listed else [])


@requirement("GRANT-6")
async def test_a_surface_cannot_settle_what_the_grant_does_not_cover():
    """It lists a card that lies outside of the bounds. That card is asked again."""
    async with paying() as payer:
        first, other = payer.ask(5), payer.ask(50)
        await until(lambda: len(payer.session.pending()) == 2)
        card, large = sorted(payer.session.pending(), key=lambda card: card.arguments["amount"])
        terms = payer.offer(card).terms()
        forged = GrantTerms(where=terms.where, scope="session", settles=(large.call_id,))
        payer.session.answer(card.call_id, card.allow_with(forged))
        assert (await first).success
        await until(lambda: [c for c in payer.session.pending() if c.problem])
        again = payer.session.pending()[0]
        assert again.problem is not None
        payer.session.answer(again.call_id, again.deny())
        assert (await other).kind == "denied"
        assert payer.paid == [("Ada", 5)]


@requirement("GRANT-3")
async def test_a_grant_may_be_given_where_another_program_shows_the_card():
    """The page answers for a program that has no screen. Its answer and the grant are one commit there, too."""
    store = Commits()
    journal = Journal(store)
    async with paying(journal) as payer:
        task = payer.ask()
        await payer.card(task)
        elsewhere = Journal(store)
        [facts] = await elsewhere.waiting()
        request = payer.session.pending()[0].from_facts(facts)
        offer = GrantOffer.of(request, Path.cwd())
        assert not isinstance(offer, str)
        with pytest.raises(SessionError, match="written down with its answer"):
            await elsewhere.answer(facts, request.allow_with(offer.terms()), Answerer.person("page"))
        assert await Grants(elsewhere).answer_elsewhere(
            facts, request.allow_with(offer.terms(calls=3)), Answerer.person("page")
        )
        assert (await task).success
        assert [GRANTED, "answered"] in store.commits
        assert await payer.pay() == "ran"


@requirement("GRANT-5")
async def test_a_grant_that_another_program_gave_serves_whom_the_session_worked_for():
    """An embedding program has a session for each of its users. A page that answers for one of them grants it for them,
    and not for those who were never named."""
    journal = Journal()
    async with paying(journal, user="u1") as payer, paying(journal, user="u2") as other, paying(journal) as nobody:
        task = payer.ask()
        await payer.card(task)
        [facts] = await journal.waiting()
        request = ApprovalRequest.from_facts(facts)
        offer = GrantOffer.of(request, Path.cwd())
        assert not isinstance(offer, str)
        assert await Grants(journal).answer_elsewhere(
            facts, request.allow_with(offer.terms(scope="until")), Answerer.person("page")
        )
        assert (await task).success
        assert [await payer.pay(), await other.pay(), await nobody.pay()] == ["ran", "asked", "asked"]


class Tidier:
    """A session with a tool that takes a path, and whoever shows its cards elsewhere."""

    def __init__(self, journal: Journal, session: Session) -> None:
        self.journal, self.session = journal, session

    async def asked(self, path: str) -> tuple[asyncio.Task[Any], dict[str, Any], ApprovalRequest]:
        """A call that waits, as another program sees it."""
        call = asyncio.create_task(self.session.call("tidy", {"path": path}))
        await until(self.session.pending)
        [facts] = await self.journal.waiting()
        return call, facts, ApprovalRequest.from_facts(facts)

    async def deny(self, call: asyncio.Task[Any]) -> None:
        [card] = self.session.pending()
        self.session.answer(card.call_id, card.deny())
        assert (await call).kind == "denied"


@pytest.fixture
async def tidier():
    registry, journal = ToolRegistry(), Journal()

    @registry.tool(auto_approve=True, effect="reversible")
    def tidy(path: Path) -> str:
        """Tidy a file."""
        return "tidied"

    async with Session(registry, approver=wait_for_answer, journal=journal) as session:
        yield Tidier(journal, session)


@requirement("GRANT-1", "GRANT-2")
@pytest.mark.parametrize("is_whole", [False, True], ids=["not whole", "whole"])
async def test_a_path_is_offered_elsewhere_as_it_is_where_it_was_asked(tidier: Tidier, tmp_path: Path, is_whole: bool):
    """One that is not whole is another file in a session of another folder, and so for the session alone."""
    path = str(tmp_path / "notes.md") if is_whole else "notes.md"
    call, facts, request = await tidier.asked(path)
    offer, here = GrantOffer.of(request, Path(facts.get("folder", ""))), tidier.session.grant_offer(request.call_id)
    assert isinstance(offer, GrantOffer)
    assert isinstance(here, GrantOffer)
    assert (offer.bounds, offer.looser, offer.scopes) == (here.bounds, here.looser, here.scopes)
    assert offer.looser == {"path": ({"under": os.path.realpath((Path.cwd() / path).parent)},)}
    assert ("until" in offer.scopes) is is_whole
    await tidier.deny(call)


@requirement("GRANT-2")
async def test_a_path_that_is_not_whole_is_not_granted_for_longer_elsewhere(tidier: Tidier):
    """Neither by whoever shows its card, nor by a record of a program that did not know of paths."""
    call, facts, request = await tidier.asked("notes.md")
    terms = GrantTerms(where={"path": {"is": "notes.md"}}, scope="until", until=tidier.journal.clock() + 1000)
    with pytest.raises(SessionError, match="path is another file in a session of another folder"):
        await Grants(tidier.journal).answer_elsewhere(facts, request.allow_with(terms), Answerer.person("page"))
    old = Grant.of(request, terms, Answerer.person(""), facts["process"], None, tidier.journal.clock())
    written = Grants(tidier.journal).entry(old)
    assert await tidier.journal.answer(facts, request.allow_with(terms), Answerer.person("page"), written)
    assert (await call).success
    assert len(await Grants(tidier.journal).standing()) == 1
    call, _, _ = await tidier.asked("notes.md")
    await tidier.deny(call)


@requirement("GRANT-3")
async def test_the_same_terms_cannot_be_given_twice_and_the_yes_stands_alone():
    """A program that keeps its terms has one grant, with one count."""
    async with paying() as payer:
        terms = await payer.grant(calls=1)
        assert await payer.pay() == "ran"
        card = await payer.card(task := payer.ask())
        payer.session.answer(card.call_id, card.allow_with(terms))
        assert (await task).approval == "person"
        assert len(await Grants(payer.session.journal).standing()) == 1
        assert "used up" in await payer.pay()


@requirement("GRANT-5")
async def test_a_session_that_was_opened_again_ends_what_was_granted_before():
    """Its first object was dropped without being closed. Whoever closes the session closes all of it."""
    journal = Journal()
    dropped = Payer(journal, id="s")
    await dropped.grant()
    async with paying(journal, id="s") as again:
        again.registry.unregister("pay")
        again.registry.add(dropped.registry.lookup("pay"))
        assert await again.pay() == "ran"
    assert await Grants(journal).standing() == []


@requirement("GRANT-4")
async def test_the_records_of_a_living_grant_are_never_pruned():
    """Without its uses it would begin anew; without the grant itself nobody could say what allowed a call."""
    async with paying() as payer:
        await payer.grant(calls=3)
        await payer.pay()
        journal = payer.session.journal
        await journal.prune(before=journal.clock() + 1_000_000)
        records = await journal.store.read(stream=STREAM)
        assert [(r.kind, r.data is not None) for r in records] == [(GRANTED, True), (USED, True)]
        assert [await payer.pay(), await payer.pay()] == ["ran", "ran"]
        assert "used up" in await payer.pay()


@requirement("GRANT-5")
async def test_stopping_everything_takes_all_grants_back():
    """One act, and nothing stands any more."""
    async with paying() as payer:
        await payer.grant()
        stopped = await payer.session.stop()
        [said] = stopped.revoked
        assert said.startswith("pay, to “Ada”, amount 5, note empty: your grant of "), "two of one tool are told apart"
        assert await payer.pay() == "asked"


@requirement("GRANT-3")
async def test_the_journal_says_which_rules_were_read(tmp_path):
    """With the digests of their files, so that one can say later what held then."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    async with house.session() as session:
        [record] = await session.journal.store.read(kind="policy_loaded")
    [file] = data_of(record)["files"]
    policy = house.policy()
    assert policy is not None
    assert (file["digest"], file["layer"], file["accepted"]) == (policy.files[0].digest, "user", False)


@requirement("GRANT-5", "TEAM-3")
async def test_the_grants_of_another_person_are_neither_listed_nor_counted_nor_taken_back_by_name():
    """Arguments stand in them. Whoever may answer for somebody sees theirs too, and a stop is anybody's."""
    store = MemoryStore()

    def at(who: str) -> Journal:
        return Journal(store, people=People(who, {"lead": ("*",)}))

    async with paying(at("ada")) as ada, paying(at("bo")) as bo, paying(at("lead")) as lead:
        given = await ada.grant(scope="until")
        assert await Grants(bo.session.journal).listed() == []
        assert [one.grant.id for one in await Grants(lead.session.journal).listed()] == [given.id]
        for unknown in (given.id, "nothing"):
            with pytest.raises(SessionError, match=f"{unknown}: there is no such grant"):
                await Grants(bo.session.journal).revoke(unknown, Answerer.person("page"))
        assert await ada.pay() == "ran"
        # Nor does a step of bo's count what ada was asked.
        async with bo.shown() as card:
            past = await bo.session.would_have_covered(card.call_id, bo.offer(card).terms())
            assert past.words == "You have not answered a card of this tool before."
        assert await Grants(lead.session.journal).revoke(given.id, Answerer.person("page"))
        assert not await Grants(ada.session.journal).revoke(given.id, Answerer.person("page"))
        assert await ada.pay() == "asked"
        await ada.grant(scope="until")
        assert await Grants(bo.session.journal).revoke_all(Answerer.person("page")) == [
            "pay: a grant of another person"
        ]
        assert await ada.pay() == "asked"


@requirement("GRANT-5", "TEAM-3")
async def test_whoever_answers_for_somebody_reads_whose_a_grant_is_and_who_took_it_back():
    """The lead's list spoke of "your sessions", which are others, and the grant's life named nobody."""
    store = MemoryStore()

    def at(who: str) -> Journal:
        return Journal(store, people=People(who, {"lead": ("*",)}))

    async with paying(at("ann")) as ann, paying(at("lead")) as lead:
        given = await ann.grant(scope="until")
        journal = lead.session.journal
        [hers], [own] = await Grants(journal).listed(), await Grants(ann.session.journal).listed()
        assert hers.how_long.startswith("in all of ann's sessions until ")
        assert own.how_long.startswith("in all your sessions until ")
        assert await Grants(journal).revoke(given.id, Answerer.person(where="command"))
        granted, taken = timeline(await store.read(stream=STREAM, subject=given.id))
        assert ", in all of ann's sessions until " in granted
        assert taken.endswith("taken back by lead at the command line")
