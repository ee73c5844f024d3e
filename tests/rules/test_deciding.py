"""One function decides, three times; and it can say why."""

import asyncio
import dataclasses
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruled_house import LUNCH, PolicyHouse, saying

from lastword import Policy, Preset, Session, ToolRegistry
from lastword.card.face import face
from lastword.consent.call import Call
from lastword.editor.project import ProjectEditor
from lastword.editor.tools import editor_tools
from lastword.journal.records import data_of
from lastword.journal.timeline import timeline
from lastword.rules.deciding import explain
from lastword.testing import FixedApprover
from requirements import requirement


async def line_of(house: PolicyHouse, amount: float, to: str = "Ada") -> str:
    """What the card of a payment says in the place of the sentence about presets."""
    asked = FixedApprover(lambda request: request.deny())
    async with house.session(asked) as session:
        await session.call("pay", {"to": to, "amount": amount})
    return face(asked.requests[0]).why_asked


@requirement("RULE-7")
async def test_the_card_says_which_rule_comes_nearest_and_what_misses(tmp_path: Path):
    """Whoever wrote the rule wonders why they are asked."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    house.accept()
    nearest = "Asked. Nearest rule: small lunches (policy.toml:2): "
    assert await line_of(house, 25) == f"{nearest}amount 25 is more than 20."
    assert await line_of(house, 5, "Mallory") == f"{nearest}to “Mallory” is none of “Ada”, “Bo”."
    assert await line_of(house, 25, "Mallory") == f"{nearest}to “Mallory” is none of “Ada”, “Bo”, and 1 more."


@requirement("RULE-7")
async def test_the_card_says_which_rule_wants_it_asked(tmp_path: Path):
    """And from which file it comes."""
    house = PolicyHouse(tmp_path)
    house.write("project", saying("ask", "all payments"))
    assert await line_of(house, 5) == "Asked because the rule all payments (lastword.policy.toml:1) says so."


@requirement("RULE-7")
async def test_the_card_says_why_a_rule_that_allows_it_does_not_count(tmp_path: Path):
    """A file that nobody accepted, a tool that is another, a tool that has no key: each has its own words."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    begins = "Asked although the rule small lunches (policy.toml:2) allows it: "
    assert await line_of(house, 5) == f"{begins}its file is not accepted as it is; lastword policy accept."
    house.accept()
    house.register(display_name="Other")
    assert (
        await line_of(house, 5) == f"{begins}the tool is not the one that was accepted for it; lastword policy accept."
    )
    house.register(False)
    house.accept()
    assert await line_of(house, 5) == f"{begins}this tool must be asked about each time."
    house.register("exact")
    house.accept()
    assert await line_of(house, 5) == f"{begins}this tool takes a standing yes only for exact arguments."


@requirement("RULE-7")
async def test_a_secret_is_not_told_by_the_rule_that_it_misses(tmp_path: Path):
    """The card hides the argument, and so does the sentence below it."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=True, secret=("pin",))
    def enter(pin: str) -> str:
        """Enter."""
        return "in"

    text = """
    [[rule]]
    name = "known pins"
    tool = "enter"
    decide = "allow"
    where = { pin = { in = ["1111", "2222"] } }
    tests = { match = [{ pin = "1111" }], not_match = [{ pin = "3333" }] }
    """
    asked = FixedApprover(lambda request: request.deny())
    async with Session(registry, approver=asked, policy=Policy.vouched(text, registry)) as session:
        await session.call("enter", {"pin": "9876"})
    assert asked.requests[0].rule_line == "Asked. Nearest rule: known pins (policy.toml:2): pin does not fit."


@requirement("RULE-7")
def test_explain_names_the_rule_that_decides_or_the_nearest(tmp_path: Path):
    """The same words as on the card, before anything is asked for."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH + saying("deny", "no Eve", 'to = { is = "Eve" }'))
    house.accept()
    tool = house.registry.lookup("pay")

    def said(amount: float, to: str, preset: Preset | None = None) -> str:
        call = Call("c", "pay", tool.validate({"to": to, "amount": amount}))
        return explain(tool, preset or Preset(), house.policy(), call, lambda: tmp_path)

    assert said(5, "Ada") == "allow. small lunches (policy.toml:2)"
    assert said(25, "Ada") == "ask. Nearest: small lunches (policy.toml:2): amount 25 is more than 20"
    assert said(5, "Eve") == "deny. no Eve (policy.toml:12)"
    assert said(25, "Ada", Preset(True)) == "allow. The preset default and the tool both say so"


@requirement("RULE-6")
async def test_a_standing_yes_draws_the_card_and_journals_everything_but_skips_the_desk(tmp_path: Path):
    """What happened without a question must be as well known as what was asked about."""
    house = PolicyHouse(tmp_path)
    drawn: list[Any] = []

    def request(to: str, amount: float) -> dict[str, str]:
        drawn.append(to)
        return {"message": f"Pay {to}?"}

    house.register(True, request=request)
    house.write("user", LUNCH)
    house.accept()
    async with house.session() as session:
        outcome = await session.call("pay", {"to": "Ada", "amount": 5})
        assert (outcome.success, outcome.approval, drawn) == (True, "rule", ["Ada"])
        [read, *records] = await session.journal.history(session.id)
    assert read.kind == "policy_loaded"
    assert [r.kind for r in records] == ["asked", "answered", "burned", "started", "finished"]
    assert data_of(records[0])["message"] == "Pay Ada?"
    assert data_of(records[1])["approver"] == {"kind": "rule", "name": "small lunches (policy.toml:2)", "where": None}
    assert "allowed by the rule small lunches (policy.toml:2)" in "\n".join(timeline(records))


@requirement("RULE-6")
async def test_a_card_that_cannot_be_drawn_is_not_allowed_by_a_rule(tmp_path: Path):
    """The request function acted before anybody agreed. A rule is no reason to overlook that."""
    house = PolicyHouse(tmp_path)

    def request(to: str, amount: float) -> dict[str, str]:
        (tmp_path / "effect").write_text("x")
        return {"message": "Pay?"}

    house.register(True, request=request)
    house.write("user", LUNCH)
    house.accept()
    assert await house.pay(5) == "refused"


@requirement("RULE-6")
@pytest.mark.parametrize("change", ["rules", "preset", "deny"])
async def test_a_standing_yes_that_is_taken_back_while_the_card_is_drawn_starts_nothing(tmp_path: Path, change: str):
    """It is decided again after drawing: the person may have taken their key back meanwhile."""
    house = PolicyHouse(tmp_path)
    drawing, may_go_on = threading.Event(), threading.Event()

    def request(to: str, amount: float) -> dict[str, str]:
        drawing.set()
        may_go_on.wait(60)
        return {"message": "Pay?"}

    house.register(True, request=request)
    house.write("user", LUNCH)
    house.accept()
    asked = FixedApprover(lambda request: request.deny())
    async with house.session(asked, preset=Preset(change == "preset")) as session:
        if change == "preset":
            session.policy = None
        calling = asyncio.create_task(session.call("pay", {"to": "Ada", "amount": 5}))
        assert await asyncio.to_thread(drawing.wait, 60)
        if change == "deny":
            session.policy = Policy.vouched(saying("deny"), house.registry)
        else:
            session.policy, session.preset = None, Preset(False)
        may_go_on.set()
        outcome = await calling
    assert (house.paid, outcome.kind, len(asked.requests)) == ([], "denied", 0 if change == "deny" else 1)


@requirement("RULE-6")
@pytest.mark.parametrize("who", ["rule", "person"])
async def test_what_a_rule_denies_by_the_time_it_would_start_does_not_start(tmp_path: Path, who: str):
    """Decided once more at the start. A person's yes is worth nothing against a no of the organisation, either."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    house.accept()
    sessions: list[Session] = []

    async def approve(request: Any) -> Any:
        sessions[0].policy = Policy.vouched(saying("deny"), house.registry)
        return request.allow()

    async with house.session(approve) as session:
        sessions.append(session)
        if who == "person":
            outcome = await session.call("pay", {"to": "Mallory", "amount": 5})
        else:
            original = session.journal.asked

            def asked(*args: Any) -> Any:
                session.policy = Policy.vouched(saying("deny"), house.registry)
                return original(*args)

            session.journal.asked = asked  # type: ignore[method-assign, assignment]
            outcome = await session.call("pay", {"to": "Ada", "amount": 5})
    assert (outcome.kind, house.paid) == ("denied", [])


@requirement("RULE-6")
async def test_what_a_person_changes_into_something_denied_does_not_run(tmp_path: Path):
    """The rule speaks of what would run, and not of what was asked for."""
    house = PolicyHouse(tmp_path)
    house.write("user", saying("deny", "no Bo", 'to = { is = "Bo" }'))
    async with house.session(lambda request: request.edit(to="Bo")) as session:
        outcome = await session.call("pay", {"to": "Ada", "amount": 5})
    assert (outcome.kind, house.paid) == ("denied", [])


@requirement("RULE-9")
@pytest.mark.parametrize("path", ["lastword.policy.toml", "LASTWORD.policy.toml", "deep/lastword.policy.toml"])
async def test_writing_a_policy_file_through_the_editor_is_always_asked(tmp_path: Path, path: str):
    """An assistant that may write files without a question could write the rules of the next session."""
    registry = ToolRegistry()
    editor_tools(registry)
    tool = registry.lookup("write_file")
    registry.unregister("write_file")
    registry.add(dataclasses.replace(tool, manifest=msgspec.structs.replace(tool.manifest, auto_approve=True)))
    asked = FixedApprover(lambda request: request.deny())
    editor = ProjectEditor(tmp_path)
    async with Session(registry, approver=asked, preset=Preset(True), editor=editor) as session:
        free = await session.call("write_file", {"path": "notes.md", "text": "hi"})
        assert free.success, free.message
        outcome = await session.call("write_file", {"path": path, "text": "hi"})
    assert (outcome.kind, len(asked.requests)) == ("denied", 1)
    assert not (tmp_path / path).exists()
    assert asked.requests[0].rule_line.startswith("Asked because it would change ")


@requirement("RULE-2", "RULE-3")
@pytest.mark.parametrize("decide", ["deny", "ask"])
@pytest.mark.parametrize(
    ("where", "meant", "other"),
    [
        (
            'to = { under = "/etc" }',
            ["/etc/passwd", "~root/../etc/passwd", "$HOME/../etc", "/ETC/passwd", "/srv/../etc/x", "/srv/a\n/etc/x"],
            "/srv/a",
        ),
        ('to = { under = "/srv/caf\u00e9" }', ["/srv/cafe\u0301/x", "/srv/CAF\u00c9"], "/srv/cafe"),
        (
            'to = { command = { program = "rm", args = [".*"], cwd = "/" } }',
            ["rm x", "ls && rm -rf x", "rm $(ls)", "rm x\nls", "/bin/rm x", "sudo rm -rf x", "bash -c 'rm x'"],
            "ls -l",
        ),
    ],
)
async def test_what_cannot_be_told_is_asked_about_or_denied(where: str, meant: list[str], other: str, decide: str):
    """A rule that says no must not be passed by with a line that it does not understand."""
    registry, paid = ToolRegistry(), []

    @registry.tool(auto_approve=True)
    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return "paid"

    asked = FixedApprover(lambda request: request.deny())
    policy = Policy.vouched(saying(decide, where=where), registry)
    async with Session(registry, approver=asked, preset=Preset(True), policy=policy) as session:
        for to in meant:
            assert (await session.call("pay", {"to": to})).kind == "denied"
        assert (await session.call("pay", {"to": other})).success
    assert paid == [other]
    assert len(asked.requests) == (0 if decide == "deny" else len(meant))
