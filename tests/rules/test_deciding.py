"""One function decides, three times; and it can say why."""

import asyncio
import dataclasses
import threading
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ruled_house import LUNCH, PolicyHouse, saying

from lastword import DeniedByRule, Finished, Policy, Preset, Session, ToolRegistry, values
from lastword.card import Face
from lastword.consent import Call, Secrets
from lastword.editor import ProjectEditor, editor_tools
from lastword.journal import data_of, timeline
from lastword.rules import Explanation, decide
from lastword.rules.limits import STREAM
from lastword.testing import FixedApprover
from lastword.values import canonical
from lastword.web import CallItemBuilder
from requirements import requirement


async def line_of(house: PolicyHouse, amount: float, to: str = "Ada") -> str:
    """What the card of a payment says in the place of the sentence about presets."""
    asked = FixedApprover(lambda request: request.deny())
    async with house.session(asked) as session:
        await session.call("pay", {"to": to, "amount": amount})
    return Face.of(asked.requests[0]).why_asked


@requirement("RULE-7")
async def test_the_card_says_which_rule_comes_nearest_and_what_misses(tmp_path: Path):
    """Whoever wrote the rule wonders why they are asked."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    house.accept()
    nearest = "Asked. Nearest rule: small lunches (policy.toml:2): "
    assert await line_of(house, 25) == f"{nearest}amount 25 is more than 20."
    assert await line_of(house, 5, "Mallory") == f"{nearest}to “Mallory” is none of “Ada”, “Bo”."
    both = f"{nearest}to “Mallory” is none of “Ada”, “Bo”; 1 more argument does not fit."
    assert await line_of(house, 25, "Mallory") == both


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
    begins = "Asked. The rule small lunches (policy.toml:2) would allow it, but "
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


@requirement("RULE-6")
async def test_what_a_rule_denies_is_remembered_with_its_arguments_and_without_its_secrets():
    """Somebody who reads what an assistant tried must see what it was to do. A page that comes later shows it, too."""
    registry = ToolRegistry()

    @registry.tool(secret=("pin",))
    def enter(door: str, pin: str) -> str:
        """Enter."""
        return "in"

    heard: list[Any] = []
    text = '[[rule]]\nname = "never"\ntool = "enter"\ndecide = "deny"\n'
    async with Session(registry, policy=Policy.vouched(text, registry)) as session:
        session.listen(heard.append)
        assert (await session.call("enter", {"door": "front", "pin": "9876"}, call_id="tried")).kind == "denied"
        records = await session.journal.store.read(subject="tried")
        story = CallItemBuilder.begin("tried")
        for record in records:
            story.add(record)
    assert [record.kind for record in records] == ["forbidden", "finished"]
    assert all(b"9876" not in record.data for record in records if record.data is not None)
    assert data_of(records[0])["rule"] == "never (policy.toml:1)"
    assert story.item.arguments == (("door", "front"), ("pin", Secrets.MASK))
    told, ended = heard
    shown = canonical({"door": "front", "pin": Secrets.MASK})
    assert told == DeniedByRule("tried", "enter", shown, "", "never (policy.toml:1)")
    assert isinstance(ended, Finished)


@requirement("RULE-6")
async def test_what_a_person_changed_into_something_that_a_rule_denies_is_remembered_as_that():
    """The card showed one door; what the person made of it is another, and that is what the rule stopped."""
    registry = ToolRegistry()

    @registry.tool
    def enter(door: str) -> str:
        """Enter."""
        return "in"

    text = '[[rule]]\nname = "never"\ntool = "enter"\ndecide = "deny"\nwhere = { door = { is = "back" } }\n'
    policy = Policy.vouched(text, registry)
    async with Session(registry, approver=lambda card: card.edit(door="back"), policy=policy) as session:
        assert (await session.call("enter", {"door": "front"}, call_id="tried")).kind == "denied"
        records = await session.journal.store.read(subject="tried")
    forbidden = [data_of(record)["arguments"] for record in records if record.kind == "forbidden"]
    assert forbidden == [{"door": "back"}]


@requirement("RULE-7")
def test_explain_names_the_rule_that_decides_or_the_nearest(tmp_path: Path):
    """The same words as on the card, before anything is asked for."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH + saying("deny", "no Eve", 'to = { is = "Eve" }'))
    house.accept()
    tool = house.registry.lookup("pay")

    def said(amount: float, to: str, preset: Preset | None = None) -> str:
        call = Call("c", "pay", tool.validate({"to": to, "amount": amount}))
        given = (tool, preset or Preset(), house.policy(), call, lambda: tmp_path)
        return str(Explanation.of(decide(*given), *given))

    assert said(5, "Ada") == "allow. small lunches (policy.toml:2)"
    assert said(25, "Ada") == "ask. Nearest: small lunches (policy.toml:2): amount 25 is more than 20"
    assert said(5, "Eve") == "deny. no Eve (policy.toml:12)"
    assert said(25, "Ada", Preset(True)) == "allow. The preset default and the tool both say so"


def payment(name: str, amount: str, limits: str = "") -> str:
    """A rule that allows payments of 2."""
    return f"""
    [[rule]]
    name = "{name}"
    tool = "pay"
    decide = "allow"
    {f"limits = {{ {limits} }}" if limits else ""}
    where = {{ to = {{ is = "Ada" }}, amount = {{ {amount} }} }}
    tests = {{ match = [{{ to = "Ada", amount = 2 }}], not_match = [{{ to = "Ada", amount = 6 }}] }}
    """


ONCE = payment("once", "min = 0, max = 5", "calls = 1")
TWICE = payment("twice", "min = 0, max = 5", "calls = 2")
ALWAYS = payment("always", "min = 0, max = 4")
THE_SAME = payment("the same", "is = 2")
ONCE_THE_SAME = payment("once the same", "is = 2", "calls = 1")
NEAR = payment("near", "in = [1, 2]", "sum = { amount = 3 }")


@requirement("RULE-2")
@pytest.mark.parametrize(
    ("rules", "key", "said"),
    [
        ([ONCE, ALWAYS], True, ["always"] * 4),
        ([ONCE, TWICE], True, ["once", "twice", "twice", "asked: once"]),
        ([ONCE, TWICE, NEAR], True, ["near", "once", "twice", "twice"]),
        ([ALWAYS, THE_SAME], "exact", ["the same"] * 4),
        ([ONCE, ALWAYS, ONCE_THE_SAME], "exact", ["once the same", *["asked: once the same"] * 3]),
        ([ONCE, ALWAYS], False, ["asked: always"] * 4),
    ],
    ids=["no limit", "each limit", "limits and a sum", "exact", "exact and a limit", "no key"],
)
async def test_the_order_of_rules_decides_nothing_among_allows_either(rules: list[str], key: Any, said: list[str]):
    """Every one that counts is tried: one without limits wins, else the first by name of which something is left. A
    person is asked when none is left, and hears of the same rule whatever the order."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=key, effect="reversible")
    def pay(to: str, amount: float) -> str:
        """Pay somebody."""
        return "paid"

    for texts in permutations(rules):
        asked = FixedApprover(lambda request: request.deny())
        async with Session(registry, approver=asked, policy=Policy.vouched("".join(texts), registry)) as session:
            heard = []
            for number in range(len(said)):
                told = await session.explain("pay", {"to": "Ada", "amount": 2})
                outcome = await session.call("pay", {"to": "Ada", "amount": 2}, call_id=f"c{number}")
                assert told.saying == ("allow" if outcome.success else "ask")
                life = await session.journal.life(f"c{number}")
                if life.started is not None and life.answered is not None:
                    heard.append(_rule_in(life.started["why"]))
                    assert heard[-1] == _rule_in(f"the rule {life.answered['approver']['name']}")
                else:
                    heard.append(f"asked: {_rule_in(asked.requests[-1].rule_line)}")
            assert heard == said


def _rule_in(words: str) -> str:
    return words.partition("he rule ")[2].partition(" (")[0]


@requirement("RULE-3")
@pytest.mark.parametrize("decide", ["allow", "ask", "deny"])
@pytest.mark.parametrize("levels", [1, 45])
async def test_a_rule_about_something_nested_deeply_decides_and_breaks_nothing_off(decide: str, levels: int):
    """A call may have more levels than a validator compares: the rule means what it says all the same."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=True, effect="reversible")
    def send(data: Any) -> str:
        """Send something."""
        return "sent"

    def nested(levels: int) -> Any:
        return values.decode(b"[" * levels + b"1" + b"]" * levels)

    text = f'[[rule]]\nname = "deep"\ntool = "send"\ndecide = "{decide}"\n'
    text += f"where = {{ data = {{ is = {nested(levels)} }} }}\n"
    if decide == "allow":
        text += f"tests = {{ match = [{{ data = {nested(levels)} }}], not_match = [{{ data = 1 }}] }}\n"
    asked = FixedApprover(lambda request: request.deny())
    async with Session(registry, approver=asked, policy=Policy.vouched(text, registry)) as session:
        meant = await session.call("send", {"data": nested(levels)})
        apart = (1 if levels > 1 else 2, nested(levels - 1), nested(levels + 1), nested(254), nested(260), nested(500))
        others = [await session.call("send", {"data": data}) for data in apart]
    ends = {"allow": ("succeeded", "rule"), "ask": ("denied", "person"), "deny": ("denied", "rule")}
    assert (meant.kind, meant.approval) == ends[decide]
    assert [other.approval for other in others] == ["person"] * 6
    assert sum("says so" in request.rule_line for request in asked.requests) == (decide == "ask")


@requirement("GRANT-4")
async def test_a_rule_that_sums_a_secret_allows_nothing_and_tells_nothing_of_it():
    """What comes to a sum is written down with each use and told on each card. So somebody is asked, who is told why
    and not how much."""
    registry = ToolRegistry()

    @registry.tool(auto_approve=True, effect="reversible", secret=("salary",))
    def record(who: str, salary: float) -> str:
        """Record a salary."""
        return "recorded"

    text = """
    [[rule]]
    name = "salaries"
    tool = "record"
    decide = "allow"
    limits = { sum = { salary = 100000 } }
    where = { who = { is = "Ada" }, salary = { min = 0, max = 90000 } }
    tests = { match = [{ who = "Ada", salary = 1 }], not_match = [{ who = "Bo", salary = 1 }] }
    """
    asked = FixedApprover(lambda request: request.allow())
    async with Session(registry, approver=asked, policy=Policy.vouched(text, registry)) as session:
        outcome = await session.call("record", {"who": "Ada", "salary": 73123})
        assert (outcome.kind, outcome.approval) == ("succeeded", "person")
        but = "it sums salary, which is secret, and the sum would tell it"
        why = f"the rule salaries (policy.toml:2) would allow it, but {but}"
        assert asked.requests[0].rule_line == f"Asked. T{why[1:]}."
        told = await session.explain("record", {"who": "Ada", "salary": 73123})
        assert str(told) == f"ask. {why}"
        records = await session.journal.store.read()
        assert not any(b"73123" in (record.data or b"") for record in records)
        assert await session.journal.store.read(stream=STREAM) == []


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
        told = {
            where: await session.explain("write_file", {"path": where, "text": "hi"}) for where in ("notes.md", path)
        }
        assert [told["notes.md"].saying, told[path].saying] == ["allow", "ask"]
        assert told[path].why == f"{path} has rules, which are changed by people alone"
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
