"""What rules cost: nothing where there are none, and no further write to the disk where there are."""

from pathlib import Path
from typing import Any

from ruled_house import LUNCH, Commits, PolicyHouse

from lastword import Journal, Preset
from lastword.store import MemoryStore
from requirements import requirement


@requirement("RULE-10")
async def test_a_rule_needs_no_further_write_to_the_disk(tmp_path: Path):
    """A call that a rule allows is as many commits as one that a preset approves."""
    house, found = PolicyHouse(tmp_path), []
    for preset in (True, False):
        store = Commits()
        if not preset:
            house.write("user", LUNCH)
            house.accept()
        async with house.session(preset=Preset(preset), journal=Journal(store)) as session:
            assert (await session.call("pay", {"to": "Ada", "amount": 5})).success
        found.append(store.commits)
    assert found[0] == found[1] == [["asked"], ["answered", "burned", "started"], ["finished"]]


@requirement("RULE-10")
async def test_rules_of_other_tools_are_not_looked_at(tmp_path: Path):
    """A long policy is no reason for a slow call of a tool that it does not speak of."""
    house = PolicyHouse(tmp_path)
    house.write("user", "\n".join(LUNCH.replace("small", f"{n}").replace('"pay"', f'"pay{n}"') for n in range(50)))
    looked: list[Any] = []
    policy = house.policy()
    assert policy is not None
    for rule in policy.rules:
        rule.where.covers = rule.where.misses = lambda *args: looked.append(args)  # type: ignore
    async with house.session(lambda request: request.allow()) as session:
        session.policy = policy
        assert (await session.call("pay", {"to": "Ada", "amount": 5})).success
    assert looked == []


@requirement("RULE-10")
async def test_a_tool_with_its_key_pays_nothing_for_grants_where_there_are_none(tmp_path: Path):
    """Every question looks for a grant. That there is none is known without putting the memory in order for it."""
    house, store = PolicyHouse(tmp_path, key=True), MemoryStore()
    async with house.session(lambda request: request.allow(), journal=Journal(store)) as session:
        await session.call("pay", {"to": "Ada", "amount": 5})
        before = len(store._entries)  # What was put in order; the rest waits for the next page, or for a reader.
        for _ in range(5):
            assert (await session.call("pay", {"to": "Ada", "amount": 5})).success
        assert len(store._entries) == before


async def test_a_grant_that_comes_after_a_look_that_found_none_is_seen(tmp_path: Path):
    """Whoever gives it may be another session on the same memory. A look is never remembered."""
    house = PolicyHouse(tmp_path)
    assert await house.pay() == "asked"
    await house.grant({"is": 5})
    assert await house.pay() == "ran"
