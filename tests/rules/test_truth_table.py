"""Who decides, in every case: the tool's key, the preset's, and rules in each layer."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from ruled_house import EXACT, LUNCH, PolicyHouse, saying

from requirements import requirement
from tries import mostly_long

KEYS: tuple[Any, ...] = (False, "exact", "bounds", True)
RULES: dict[str, dict[str, str]] = {
    "none": {},
    "another tool": {"user": saying("deny").replace('"pay"', '"other"')},
    **{
        f"{layer} {word}": {layer: LUNCH if word == "allow" else EXACT if word == "exact" else saying(word)}
        for layer in ("organisation", "user", "project")
        for word in ("allow", "exact", "ask", "deny")
        if layer != "project" or word in ("ask", "deny")
    },
    **{
        f"{first} {one} and {second} {other}": {first: _text, second: saying(other)}
        for first, second in itertools.permutations(("organisation", "user", "project"), 2)
        for one, other in itertools.product(("allow", "ask", "deny"), ("ask", "deny"))
        if first != "project" or one != "allow"
        for _text in [LUNCH if one == "allow" else saying(one)]
    },
}


PAIRS = (
    "organisation deny and user ask",
    "organisation ask and project deny",
    "organisation allow and user deny",
    "user allow and project ask",
    "project deny and user ask",
)
"""What is tried of two layers whenever the tests run. The long ones try all."""
GRANTS = ("no grant", "exact grant", "wide grant")


def expected(key: Any, preset: bool, rules: str, grant: str = "no grant") -> str:
    """The table as a person would say it. The seeds' rule is its first line: both keys, or a person."""
    if "deny" in rules:
        return "denied"
    if "ask" in rules.split():
        return "asked"
    if preset and key is True:
        return "ran"
    takes_bounds = key in (True, "bounds")
    if "allow" in rules and (takes_bounds or grant != "exact grant"):
        return "ran" if takes_bounds else "asked"
    if "exact" in rules:
        return "ran" if key is not False else "asked"
    if grant == "no grant" or key is False:
        return "asked"
    return "ran" if takes_bounds or grant == "exact grant" else "asked"


@requirement("RULE-2", "RULE-5", "GRANT-2")
@pytest.mark.parametrize("rules", mostly_long(RULES, *PAIRS, *(name for name in RULES if " and " not in name)))
@pytest.mark.parametrize("preset", [False, True], ids=["preset asks", "preset approves"])
@pytest.mark.parametrize("key", KEYS, ids=["no key", "exact key", "key for bounds", "key"])
@pytest.mark.parametrize("grant", GRANTS)
async def test_who_decides_in_every_case(tmp_path: Path, key: Any, preset: bool, rules: str, grant: str):
    """The strictest wins, whoever said it, and neither a rule nor a grant is ever the tool's key."""
    house = PolicyHouse(tmp_path, key)
    if grant != "no grant":
        await house.grant({"is": 5} if grant == "exact grant" else {"min": 0, "max": 5})
    for layer, text in RULES[rules].items():
        house.write(layer, text)
    if RULES[rules]:
        house.accept()
    assert await house.pay(preset=preset) == expected(key, preset, rules, grant)


@requirement("RULE-2")
async def test_a_free_tool_is_asked_about_or_denied_where_a_rule_says_so(tmp_path: Path):
    """Who registers a tool says that it needs no yes; an organisation may want one all the same."""
    for word, outcome in (("allow", "ran"), ("ask", "asked"), ("deny", "denied")):
        house = PolicyHouse(tmp_path / word, False)
        house.register(False, require_approval=False)
        house.write("user", LUNCH if word == "allow" else saying(word))
        house.accept()
        assert await house.pay() == outcome


@requirement("RULE-2")
@pytest.mark.parametrize("word", ["ask", "deny"])
async def test_a_rule_wins_over_the_waiver_of_a_tool(tmp_path: Path, word: str):
    """The tool's own function says that nobody need be asked. A policy knows better."""
    house = PolicyHouse(tmp_path)
    house.register(False, require_approval=lambda to, amount: False)
    assert await house.pay() == "ran"
    house.paid.clear()
    house.write("project", saying(word))
    assert await house.pay() == {"ask": "asked", "deny": "denied"}[word]


@requirement("RULE-2")
async def test_the_order_of_rules_means_nothing(tmp_path: Path):
    """Somebody who adds a rule at the end must not have to know what stands above it."""
    rules = [LUNCH, saying("deny", "no Bo", 'to = { is = "Bo" }'), saying("ask", "large", "amount = { min = 10 }")]
    for number, order in enumerate(itertools.permutations(rules)):
        house = PolicyHouse(tmp_path / str(number))
        house.write("user", "\n".join(order))
        house.accept()
        assert [await house.pay(5, "Bo"), await house.pay(15), await house.pay(15, "Bo")] == [
            "denied",
            "asked",
            "denied",
        ]
        assert await house.pay(5) == "ran"
