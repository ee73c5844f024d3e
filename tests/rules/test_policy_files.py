"""Policy files: three owners, their own tests, and what a person has accepted of them."""

import os
import stat
from pathlib import Path

import msgspec
import pytest
from ruled_house import LUNCH, PolicyHouse, saying

from lastword.errors import ConfigError
from lastword.rules import Policy, PolicyPlaces
from lastword.rules.policy_file import read_rules
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
    places = PolicyPlaces.of(tmp_path, {"XDG_DATA_HOME": str(tmp_path / "data")})
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
        (("min = 0, max = 20", "max = 20"), 8, ["amount: it has no min, and an allow needs both"]),
        (("amount = { min = 0, max = 20 }", ""), 10, ["it says nothing of amount", "a bound for every argument"]),
        (("to = {", "too = {"), 10, ["too is not given", "too: did you mean to?"]),
        (('to = { in = ["Ada", "Bo"] }', 'to = { in = "Ada" }'), 7, ["is a list", 'in = ["Ada", "Bo"]']),
        (("amount = 20 }", "amount = 21 }"), 10, ["should match, and does not: amount 21 is more than 20"]),
        (("20.01", "19.99"), 11, ["should not match, and does"]),
        (('match = [{ to = "Ada", amount = 20 }]', ""), 9, ["an allow needs a match"]),
        (('not_match = [{ to = "Ada", amount = 20.01 }]', ""), 9, ["an allow needs a not_match"]),
        (("[rule.tests]", "[rule.tests]\nmatches = []"), 10, ["unknown field matches of tests"]),
        (("[[rule]]", "[rules]"), 2, ["unknown table rules", "[[rule]]"]),
        (("[[rule]]", "[[rule]"), 2, ["not TOML", "texts stand in quotes"]),
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
@pytest.mark.parametrize("field", ['name = "never"', 'tool = "pay"', 'decide = "deny"'])
@pytest.mark.parametrize("table", ["where", "tests"])
def test_a_field_below_a_table_of_its_rule_is_told_where_it_belongs(field: str, table: str):
    """TOML puts what stands below a head into its table. The line that is named has the very field that is missing."""
    fields = ['name = "never"', 'tool = "pay"', 'decide = "deny"']
    above = "\n".join(each for each in fields if each != field)
    said = refusal(f"[[rule]]\n{above}\n[rule.{table}]\n{field}\n")
    there = ", where it is the name of an argument" if table == "where" else ""
    name = field.partition(" ")[0]
    assert said == f"{FILE}:5: {name} is missing\nhint: it stands below [rule.{table}]{there}: put it above"


@requirement("RULE-4")
def test_limits_below_where_are_told_where_they_belong():
    """They would be a bound of an argument that is called so, and limit nothing."""
    said = refusal(LUNCH.replace("[rule.where]\n", "[rule.where]\nlimits = { calls = 3 }\n"))
    hint = "they stand below [rule.where], where they are the name of an argument: put them above"
    assert said == f"{FILE}:7: limits are no bound of an argument\nhint: {hint}"


@requirement("RULE-4")
def test_a_command_without_a_folder_is_told_what_misses_and_how_to_say_everywhere():
    """Whoever denies a command means it in all folders, and would not think of one."""
    where = 'command = { command = { program = "rm", args = [] } }'
    said = refusal(saying("deny", "no rm", where))
    assert "command: cwd is missing\nhint: " in said
    assert 'cwd = "/" is everywhere' in said


@requirement("RULE-4")
def test_an_argument_may_be_called_like_a_field_of_a_rule():
    """A tool may well take a name, or limits."""
    where = 'name = { is = "Eve" }\nlimits = { each = { is = 1 }, length = 3 }'
    text = saying("deny", "never", where)
    [rule] = read_rules(text, FILE, "user")
    assert set(rule.where.bounds) == {"name", "limits"}


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
    assert "amount is not bounded to numbers of at least 0" in refusal(text)


@requirement("RULE-7")
@pytest.mark.parametrize(
    ("most", "said"),
    [
        ("9" * 30, "9" * 30),
        ("100", "100"),
        ("100.0", "100"),
        ("12.50", "12.5"),
        ("1e3", "1000"),
        ("0.1", "0.1"),
        ("1e22", "1" + "0" * 22),
        ("0", "0"),
    ],
)
def test_the_limit_of_a_sum_is_told_to_its_last_digit(most: str, said: str):
    """Whoever accepts the file agrees to what is told."""
    text = LUNCH.replace('"allow"\n', f'"allow"\nlimits = {{ sum = {{ amount = {most} }} }}\n')
    assert read_rules(text, FILE, "user")[0].words.endswith(f"; at most {said} of amount in all")


@requirement("RULE-4")
def test_two_rules_of_one_name_are_refused():
    """A card names the rule that decided."""
    assert "two rules are called small lunches" in refusal(LUNCH + LUNCH)


@requirement("RULE-4")
@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("small lunches (policy.toml:2), which you accepted", "this one holds “(”"),
        ("lunches. Press a", "this one holds “.”"),
        ("lunches, and all", "this one holds “,”"),
        ("lunches: all", "this one holds “:”"),
        ("“lunches", "this one holds “‹U+201C›”"),
        ("small\u00a0lunches", "this one holds “‹U+00A0›”"),
        ("small\\nlunches", "this one holds “⏎”"),
        ("lunches\u202e", "this one holds “‹U+202E›”"),
        ("lunches ☕", "this one holds “☕”"),
        ("lunches ", "neither begins nor ends with a space"),
        ("x" * 61, "the name has 61 characters, at most 60"),
        ("sm\u3164all", "cannot be seen, or passes for another letter: 'sm\\u3164all'"),
        ("cafe\u0301", "cannot be seen, or passes for another letter: 'cafe\\u0301'"),
        ("sm\u0430ll", "cannot be seen, or passes for another letter: 'sm\\u0430ll'"),
    ],
)
@pytest.mark.parametrize("layer", ["organisation", "user", "project"])
def test_a_name_that_is_not_plain_words_is_refused(name: str, fact: str, layer: str):
    """A card has it in a sentence of ours, without quotes. One with a full stop in it goes on as if we did."""
    said = refusal(saying("ask", name), layer)
    assert said.startswith(f"{FILE}:2: "), said
    assert fact in said
    assert "hint: letters, digits, spaces, - _ ' and /, at most 60 of them" in said


@requirement("RULE-4")
@pytest.mark.parametrize(
    "name",
    ["x" * 60, "Ada's 3 lunches - a/b_c", "für Jürgen", "обед с Адой", "छोटे भोजन", "昼食メール", "غداء"],
)
def test_a_name_may_be_words_of_any_language(name: str):
    """Letters with what belongs to them, digits, and the few signs that words have."""
    assert [rule.name for rule in read_rules(saying("ask", name), FILE, "project")] == [name]


DENY = '[[rule]]\nname = "n"\ntool = "pay"\ndecide = "deny"\n'
HUGE = f"0x{'F' * 6_000}"


@requirement("RULE-4")
@pytest.mark.parametrize(
    ("text", "line", "fact"),
    [
        (f"a = {'[' * 3_000}{']' * 3_000}", 1, "inside of each other more than 50 times"),
        (f"{DENY}where = {{ a = {{ is = {'[' * 800}{']' * 800} }} }}", 5, "inside of each other more than 50 times"),
        (f"{DENY}where = {{ a = {{ is = {'[' * 60}{']' * 60} }} }}", 5, "inside of each other more than 50 times"),
        (f"{DENY}where = {{ a = {'{ each = ' * 300}{{ is = 1 }}{' }' * 300} }}", 5, "inside of each other"),
        (f"{DENY}where = {{ a = {'{ each = ' * 6}{{ is = 1 }}{' }' * 6} }}", 5, "each stands inside of each"),
        (f"# long\na{'.a' * 200_000} = 1", 2, "a name has more than 50 parts"),
        (f"[{'a . ' * 60}a]", 1, "a name has more than 50 parts"),
        (f"{DENY}where = {{ a = {{ is = {'9' * 5_000} }} }}", 5, "a number has more than 309 digits"),
        (f"{DENY}where = {{ a = {{ is = {'9' * 400} }} }}", 5, "a number has more than 309 digits"),
        (f"{DENY}where = {{ a = {{ max = {HUGE} }} }}", 5, "a number has more than 309 digits"),
        (f"{DENY}where = {{ a = {{ any = {HUGE} }} }}", 5, "a number has more than 309 digits"),
        (f"{DENY}[rule.where]\na = {{ in = [1, {HUGE}] }}", 6, "a number has more than 309 digits"),
        (f"{DENY}limits = {{ calls = {HUGE} }}", 5, "a number has more than 309 digits"),
        (f"{DENY}limits = {{ sum = {{ a = {HUGE} }} }}", 5, "a number has more than 309 digits"),
        (f"{DENY}[rule.tests]\nmatch = [{{ a = {HUGE} }}]", 6, "a number has more than 309 digits"),
        (f"{DENY}[rule.tests]\nmatch = [{{ a = 07:00:00 }}]", 6, "holds what no argument can be: a time"),
        (f"{DENY}where = {{ a = {{ is = 1979-05-27 }} }}", 5, "holds what no argument can be: a date"),
        (f'{DENY}where = {{ "a\\nb" = {{ foo = 1 }} }}', 5, "“a⏎b”: unknown bound foo"),
        (f"{DENY}[rule.where]\na = {{ matches = 1 }}", 6, "takes a regular expression"),
        (
            f'{DENY}[rule.where]\na = {{ command = {{ program = "git", args = [1], cwd = "/" }} }}',
            6,
            "args takes a regular expression",
        ),
        (f"\ufeff{DENY}", 1, "byte order mark"),
        (f"{DENY}\0", 5, "not TOML"),
    ],
    ids=range(22),
)
def test_whatever_toml_can_hold_is_refused_in_words_where_no_rule_can(text: str, line: int, fact: str):
    """A file that breaks the reader says nothing of where and why, and doctor cannot help either."""
    said = refusal(text)
    assert said.startswith(f"{FILE}:{line}: "), said[:200]
    assert fact in said
    assert "\nhint: " in said


@requirement("RULE-4")
def test_bytes_that_are_no_text_are_refused_with_their_line(tmp_path: Path):
    """An old editor wrote one letter of a comment in its own way."""
    house = PolicyHouse(tmp_path)
    house.places.user.write_bytes(f"{DENY}# caf".encode() + b"\xe9\n")
    with pytest.raises(ConfigError, match=r"policy\.toml:5: the policy is not UTF-8\nhint: save it as UTF-8"):
        house.policy()


def many(count: int, bound: str) -> str:
    return DENY + "[rule.where]\n" + "".join(f"a{number} = {bound}\n" for number in range(count))


@requirement("RULE-4")
@requirement("RULE-10")
@pytest.mark.parametrize(
    ("text", "line", "fact"),
    [
        (many(1_001, "{ matches = 'x' }"), 1_006, "more than 1,000 patterns"),
        (many(30, "{ matches = '[a-z]{6000}' }"), 26, "more than 20 patterns that are large"),
        (many(2, f"{{ command = {{ program = 'x', args = {['[a-z]{6000}'] * 15}, cwd = '/' }} }}"), 7, "more than 20"),
        (
            f"{DENY}where = {{ a = {{ in = [{'1,' * 9_999}2] }} }}\n[rule.tests]\nmatch = [{'{ a = 2 },' * 31}]\n",
            6,
            "more than 300,000 comparisons",
        ),
        ("".join(saying("ask", f"r{number}") for number in range(1_001)), 1, "1,001 rules, at most 1,000"),
    ],
    ids=["patterns", "large patterns", "arguments", "examples", "rules"],
)
def test_a_file_that_would_take_long_to_read_is_refused(text: str, line: int, fact: str):
    """It comes with a project that somebody has cloned, and every command in that folder reads it before all else."""
    said = refusal(text, "project")
    assert said.startswith(f"{FILE}:{line}: "), said[:200]
    assert fact in said
    assert "\nhint: " in said


@requirement("RULE-10")
def test_a_bound_for_long_texts_is_not_tried_on_long_texts():
    """Sixteen million characters for each rule of a thousand would be minutes. A short one is tried past its end."""
    rule = read_rules(f"{DENY}where = {{ a = {{ length = 16_000_000 }} }}\n", FILE, "project")[0]
    assert list(rule.where.bounds["a"].past("x")) == []
    rule = read_rules(f"{DENY}where = {{ a = {{ length = 3 }} }}\n", FILE, "project")[0]
    assert list(rule.where.bounds["a"].past("x")) == ["xxxx"]


@requirement("RULE-4")
def test_what_people_write_has_room():
    """Hundreds of commands with a pattern for each of their arguments, and long lists of names."""
    command = "{ command = { program = 'git', args = ['log', '-[0-9]+', '--', '[a-z/]{1,80}'], cwd = '/' } }"
    names = ", ".join(f'"name {number}"' for number in range(5_000))
    text = f'{DENY}[rule.where]\na = {{ in = [{names}] }}\n[rule.tests]\nmatch = [{{ a = "name 3" }}]\n'
    assert len(read_rules(many(200, command), FILE, "user")[0].where.bounds) == 200
    assert len(read_rules(text, FILE, "user")) == 1


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
    house.places.user.write_bytes(b" " * 250_001)
    with pytest.raises(ConfigError, match="larger than"):
        house.policy()
    house.places.user.unlink()
    house.places.user.symlink_to(tmp_path / "a disk that is not there/policy.toml")
    with pytest.raises(ConfigError, match="a link to a file that is not there"):
        house.policy()


@requirement("RULE-7")
def test_a_rule_of_the_organisation_says_in_which_file_it_stands(tmp_path: Path):
    """It has the same name as the person's own, where they would look for it in vain."""
    house = PolicyHouse(tmp_path)
    house.write("organisation", saying("ask", "house rule"))
    house.write("user", saying("deny", "mine"))
    policy = house.policy()
    assert policy is not None
    assert [str(rule) for rule in policy.rules] == [
        f"house rule ({house.places.organisation}:1)",
        "mine (policy.toml:1)",
    ]


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
        Policy.load(places, house.trust)
    assert stat.S_ISREG(path.stat().st_mode)


@requirement("RULE-1")
@pytest.mark.parametrize("whose", ["folder", "above", "between", "link", "beside"])
def test_every_folder_and_link_on_the_way_to_an_organisations_file_is_its_owners_alone(tmp_path: Path, whose: str):
    """Whoever may write a folder on the way may put another file of the owner's in its place, an older one, say."""
    house = PolicyHouse(tmp_path)
    real = tmp_path / "srv/policies/policy.toml"
    real.parent.mkdir(parents=True)
    real.write_text(saying("deny"))
    loose = tmp_path / "loose"
    loose.mkdir()
    (loose / "on").symlink_to(real)
    house.places.organisation.symlink_to("../loose/on" if whose == "between" else "../srv/policies/policy.toml")
    assert house.policy() is not None, "a link by itself is nothing to refuse"
    place = {
        "folder": real.parent,
        "above": real.parent.parent,
        "between": loose,
        "link": house.places.organisation.parent,
        "beside": loose,
    }[whose]
    place.chmod(0o777)
    if whose == "beside":
        assert house.policy() is not None, "the way does not lead through it"
        return
    with pytest.raises(ConfigError, match="alone") as refused:
        house.policy()
    assert refused.value.place == str(place)
    assert refused.value.hint


@requirement("RULE-1")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
@pytest.mark.parametrize("whose", ["folder", "link"])
def test_an_organisations_file_is_reached_through_nothing_that_is_another_users(tmp_path: Path, whose: str):
    """A folder that only they may write is still a folder that they may write."""
    house = PolicyHouse(tmp_path)
    (tmp_path / "srv").mkdir()
    (tmp_path / "srv/policy.toml").write_text(saying("deny"))
    house.places.organisation.symlink_to(tmp_path / "srv/policy.toml")
    assert house.policy() is not None
    os.chown(tmp_path / "srv" if whose == "folder" else house.places.organisation, 1000, 1000, follow_symlinks=False)
    with pytest.raises(ConfigError, match="alone"):
        house.policy()


@requirement("RULE-1")
def test_a_pipe_in_the_place_of_a_policy_is_refused_and_not_waited_for(tmp_path: Path):
    """Nobody may ever write into it."""
    house = PolicyHouse(tmp_path)
    os.mkfifo(house.places.project)
    with pytest.raises(ConfigError, match="no file"):
        house.policy()


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
