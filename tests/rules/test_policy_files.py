"""Policy files: three owners, their own tests, and what a person has accepted of them."""

import os
import stat
from pathlib import Path

import msgspec
import pytest
from ruled_house import LUNCH, PolicyHouse, saying

from lastword.errors import ConfigError
from lastword.rules.layers import load_policy
from lastword.rules.places import places_for
from lastword.rules.reading import read_rules
from requirements import requirement

FILE = Path("/somewhere/policy.toml")


def refusal(text: str, layer: str = "user") -> str:
    """The words with which a file is refused."""
    with pytest.raises(ConfigError) as refused:
        read_rules(text, FILE, layer)  # type: ignore[arg-type]
    return str(refused.value)


@requirement("RULE-1")
def test_no_file_is_no_rule(tmp_path: Path):
    """Most people have none, and nothing is different for them."""
    assert PolicyHouse(tmp_path).policy() is None
    places = places_for(tmp_path, {"XDG_DATA_HOME": str(tmp_path / "data")})
    assert (places.user, places.project) == (tmp_path / "data/lastword/policy.toml", tmp_path / "lastword.policy.toml")
    assert places.organisation.is_absolute()
    assert places.owner == 0


@requirement("RULE-1")
@requirement("RULE-4")
@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (("decide", "decides"), 5, ["unknown field decides of rule", "did you mean decide?"]),
        (('"allow"', '"alow"'), 5, ["expected allow, ask or deny", "did you mean allow?"]),
        (('tool = "pay"', 'tool = "pay everybody"'), 4, ["is no tool"]),
        (('tool = "pay"', ""), 2, ["tool is missing"]),
        (("max = 20 }", "mx = 20 }"), 8, ["amount: unknown bound mx", "did you mean max?"]),
        (("min = 0, max = 20", "length = 80"), 8, ["amount: it is left open", "cannot be given yet"]),
        (("min = 0, max = 20", 'from = ["you"]'), 8, ["amount: from is not yet there"]),
        (("min = 0, max = 20", "max = 20"), 8, ["amount: it is left open"]),
        (("amount = 20 }", "amount = 21 }"), 10, ["should match, and does not: amount 21 is more than 20"]),
        (("20.01", "19.99"), 11, ["should not match, and does"]),
        (('match = [{ to = "Ada", amount = 20 }]', ""), 9, ["an allow needs a match"]),
        (('not_match = [{ to = "Ada", amount = 20.01 }]', ""), 9, ["an allow needs a not_match"]),
        (("[rule.tests]", "[rule.tests]\nmatches = []"), 10, ["unknown field matches of tests"]),
        (("[[rule]]", "[rules]"), 2, ["unknown table rules", "[[rule]]"]),
        (("[[rule]]", "[[rule]"), 2, ["not TOML"]),
    ],
)
def test_a_file_with_an_error_is_refused_with_file_line_fact_and_hint(
    change: tuple[str, str], line: int, words: list[str]
):
    """Somebody relies on each of these rules. One that is not there is worse than none."""
    assert change[0] in LUNCH
    said = refusal(LUNCH.replace(*change, 1))
    assert said.startswith(f"{FILE}:{line}: "), said
    for word in words:
        assert word in said


@requirement("RULE-4")
@pytest.mark.parametrize(
    "limits", ["3", "{}", "{ calls = 0 }", "{ call = 3 }", "{ sum = { to = 3 } }", '{ calls = 1, per = "week" }']
)
def test_limits_that_count_nothing_are_refused(limits: str):
    """A limit that is misread is no limit. A sum is of numbers that are never negative."""
    assert f"{FILE}:6: " in refusal(LUNCH.replace('"allow"\n', f'"allow"\nlimits = {limits}\n'))


@requirement("RULE-4")
def test_a_sum_of_what_may_be_negative_is_refused():
    """A payment of minus fifty would make room for fifty more."""
    text = LUNCH.replace("min = 0", "min = -50").replace('"allow"\n', '"allow"\nlimits = { sum = { amount = 100 } }\n')
    assert "a number of at least 0" in refusal(text)


@requirement("RULE-4")
def test_two_rules_of_one_name_are_refused():
    """A card names the rule that decided."""
    assert "two rules are called small lunches" in refusal(LUNCH + LUNCH)


@requirement("RULE-4")
@pytest.mark.parametrize("layer", ["organisation", "user", "project"])
def test_nothing_is_read_past_a_broken_file_of_any_layer(tmp_path: Path, layer: str):
    """Not even the rules of the other two: the broken one may have been the strictest."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    house.write("project", saying("ask"))
    house.write(layer, "[[rule]]\nname = 'half")
    with pytest.raises(ConfigError, match=r"policy\.toml:2"):
        house.policy()


@requirement("RULE-1")
def test_a_file_that_cannot_be_read_stops_everything(tmp_path: Path):
    """It may deny something. A folder in its place, bytes that are no text, a file of gigabytes."""
    house = PolicyHouse(tmp_path)
    house.places.user.mkdir()
    with pytest.raises(ConfigError, match="no file"):
        house.policy()
    house.places.user.rmdir()
    house.places.user.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        house.policy()
    house.places.user.write_bytes(b" " * 1_000_001)
    with pytest.raises(ConfigError, match="larger than"):
        house.policy()


@requirement("RULE-1")
def test_a_project_may_not_allow_anything(tmp_path: Path):
    """It came with somebody else's code. It may make things stricter, and says so as soon as it is read."""
    house = PolicyHouse(tmp_path)
    house.write("project", LUNCH)
    with pytest.raises(ConfigError, match="a project's file may only ask or deny"):
        house.policy()


@requirement("RULE-1")
@pytest.mark.parametrize("what", ["owner", "file", "folder"])
def test_an_organisation_speaks_through_a_file_that_is_its_owners_alone(tmp_path: Path, what: str):
    """Whoever can write it could allow themselves everything. Then nothing starts."""
    house = PolicyHouse(tmp_path)
    house.write("organisation", saying("deny"))
    assert house.policy() is not None
    path = house.places.organisation
    if what == "owner":
        places = msgspec.structs.replace(house.places, owner=os.getuid() + 1)
    else:
        places = house.places
        (path if what == "file" else path.parent).chmod(0o777 if what == "folder" else 0o666)
    with pytest.raises(ConfigError, match="alone"):
        load_policy(places, house.trust)
    assert stat.S_ISREG(path.stat().st_mode)


@requirement("RULE-9")
async def test_a_new_file_asks_and_denies_at_once_and_allows_nothing_before_it_was_accepted(tmp_path: Path):
    """Somebody may have slipped it in."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH + saying("deny", "no Bo", 'to = { is = "Bo" }'))
    assert await house.pay(5) == "asked"
    assert await house.pay(5, "Bo") == "denied"
    house.accept()
    assert await house.pay(5) == "ran"


@requirement("RULE-9")
async def test_a_file_that_changed_allows_nothing_before_it_was_accepted_again(tmp_path: Path):
    """Not even what it allowed before: who changed it may have changed more than one looks for."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    house.accept()
    house.write("user", LUNCH.replace("small lunches", "lunches"))
    assert await house.pay(5) == "asked"


@requirement("RULE-5")
@requirement("RULE-9")
async def test_an_allow_holds_for_the_tool_that_was_accepted_and_for_no_other(tmp_path: Path):
    """The first one included. A tool of the same name with other code behind it is another tool."""
    house = PolicyHouse(tmp_path)
    house.write("user", LUNCH)
    policy = house.policy()
    assert policy is not None
    house.trust.remember_file(house.places.user, LUNCH)
    assert await house.pay(5) == "asked", "the file was accepted, and nobody has seen the tool"
    house.accept()
    assert await house.pay(5) == "ran"
    house.paid.clear()
    house.register(display_name="Pay more")
    assert await house.pay(5) == "asked"


@requirement("RULE-5")
async def test_an_allow_that_does_not_speak_of_a_parameter_matches_nothing(tmp_path: Path):
    """The tool has learned to send copies since, and the rule knows nothing of that."""
    house = PolicyHouse(tmp_path)
    house.registry.unregister("pay")

    @house.registry.tool(auto_approve=True, effect="reversible")
    def pay(to: str, amount: float, copy_to: str | None = None) -> str:
        """Pay somebody."""
        house.paid.append((to, amount))
        return "paid"

    house.write("user", LUNCH)
    house.accept()
    assert await house.pay(5) == "asked"
