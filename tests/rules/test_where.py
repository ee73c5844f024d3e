"""The vocabulary of `where`: what fits, what nearly fits, and what was made to look as if it did."""

import math
import random
from pathlib import Path
from typing import Any, NoReturn

import naive
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword import values
from lastword.rules.bounds import Bound, read_bound
from lastword.rules.paths import simple_words
from lastword.rules.rule import Where
from requirements import requirement

HERE = Path("/")


def wrong(fact: str, hint: str | None) -> NoReturn:
    raise ValueError(fact)


def bound(**terms: Any) -> Bound:
    return read_bound(terms, wrong)


def fits(value: Any, folder: Any = HERE, **terms: Any) -> bool:
    where = Where({"a": bound(**terms)}, is_whole=True)
    covers = where.covers({"a": value}, folder)
    assert covers == (not where.misses({"a": value}, folder)), "what is told is not what is decided"
    return covers


@requirement("RULE-3")
def test_the_naive_reference_agrees_on_random_calls(tmp_path: Path):
    """Two people who read the vocabulary must mean the same by it. where_soak.py tries a million."""
    folder, chance = naive.folder_with_links(tmp_path / "p"), random.Random()
    matched = sum(naive.compare(chance, folder, 20) for _ in range(200))
    assert matched > 100


large = st.builds(lambda number, more: number + more, st.sampled_from(naive.LARGE), st.integers(-2, 2))
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), large, large.map(float))


@requirement("RULE-3")
@given(low=numbers, high=numbers, value=numbers)
def test_a_number_fits_exactly_between_its_bounds(low: float, high: float, value: float):
    """Python compares whole numbers and floats exactly, of any size; so must the compiled bound."""
    low, high = min(low, high), max(low, high)
    assert fits(values.plain(value), min=low, max=high) == (low <= value <= high)
    assert fits(values.plain(low), min=low, max=high)
    assert fits(values.plain(high), min=low, max=high)


@requirement("RULE-3")
@given(meant=st.one_of(large, large.map(float)), value=st.one_of(large, large.map(float)))
def test_a_large_number_is_the_same_only_as_an_equal_one(meant: float, value: float):
    """1e30 is the nearest that a computer has to ten to the thirtieth, and another number; 2.0**70 is exactly 2**70."""
    same = meant == value
    assert fits(values.plain(value), **{"is": meant}) == same
    assert fits(values.plain(value), **{"in": ["x", meant, True]}) == same
    assert fits(values.plain(value), not_in=[meant]) != same
    assert fits([{"b": values.plain(value)}], **{"is": [{"b": meant}]}) == same
    assert fits([values.plain(value)], each={"is": meant}) == same


@requirement("RULE-3")
@given(limit=st.floats(min_value=-1e15, max_value=1e15))
def test_the_next_number_past_a_bound_does_not_fit(limit: float):
    """A cent more than twenty is more than twenty, and so is the smallest step that a computer knows."""
    assert not fits(values.plain(math.nextafter(limit, math.inf)), max=limit)
    assert not fits(values.plain(math.nextafter(limit, -math.inf)), min=limit)


@requirement("RULE-3")
@given(text=st.text(max_size=30), most=st.integers(0, 20))
def test_a_text_is_counted_in_characters(text: str, most: int):
    """Not in bytes, and not in the units of another language."""
    assert fits(text, length=most) == (len(text) <= most)


LOOK_ALIKES = [
    ("Ada", "Аda"),
    ("Ada", "Ada "),
    ("Ada", "ada"),
    ("Ada", "Ada\u200b"),
    ("Ada", "Ada\n"),
    ("caf\u00e9", "cafe\u0301"),
    ("Ada", ["Ada"]),
    ("Ada", {"Ada": 1}),
    (1, True),
    (1, "1"),
    (True, 1),
    (False, 0),
    (False, None),
    (0, False),
    (2**53, 2**53 + 1),
    (2**70, 2**70 + 1),
    (10**30, 1e30),
    (1e30, 10**30),
    (0.1, 0.1000000000000001),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({"a": [1]}, {"a": [True]}),
    ([1, 2], [2, 1]),
]


@requirement("RULE-3")
@pytest.mark.parametrize(("meant", "given"), LOOK_ALIKES, ids=repr)
def test_what_only_looks_like_a_value_is_another(meant: Any, given: Any):
    """Letters of other alphabets, other forms of the same letter, true for 1: a payee is named by its very bytes."""
    assert fits(meant, **{"is": meant})
    assert not fits(given, **{"is": meant})
    assert not fits(given, **{"in": ["somebody", meant]})


@requirement("RULE-3")
def test_one_number_written_in_two_ways_is_one_number():
    """1.0 is 1, as everywhere in JSON; so is a whole float of any size."""
    assert fits(values.plain(1.0), **{"is": 1})
    assert fits(1, **{"in": [1.0]})
    assert fits({"b": 2, "a": 1}, **{"is": {"a": 1, "b": 2}})
    assert fits(2.0**70, **{"is": 2**70})
    assert fits(2**70, **{"in": [2.0**70]})
    assert fits(2.0**62, max=2**62)


@requirement("RULE-3")
def test_not_in_excludes_and_bounds_nothing():
    """A list of what is forbidden says nothing of the rest, so an allow may not consist of it."""
    assert fits("Bo", not_in=["Mallory"])
    assert not fits("Mallory", not_in=["Mallory"])
    assert not bound(not_in=["Mallory"]).is_closed


@requirement("RULE-3")
def test_a_list_is_bounded_element_by_element_and_in_length():
    """One stranger among twenty friends is a stranger."""
    terms: dict[str, Any] = {"each": {"in": ["Ada", "Bo"]}, "length": 2}
    assert fits(["Ada"], **terms)
    assert fits([], **terms)
    for other in (["Ada", "Mallory"], ["Ada", "Bo", "Ada"], "Ada", [["Ada"]], {"0": "Ada"}):
        assert not fits(other, **terms)
    assert bound(**terms).is_closed
    assert not bound(each={"in": ["Ada"]}).is_closed
    assert not bound(each={"any": True}, length=2).is_closed


@requirement("RULE-3")
def test_what_is_left_out_fits_only_where_that_is_said():
    """A default that the rule does not know may be anything."""
    where = Where({"to": bound(**{"is": "Ada"}), "cc": bound(absent=True)}, is_whole=True)
    assert where.covers({"to": "Ada"}, HERE)
    assert not where.covers({"to": "Ada", "cc": "Bo"}, HERE)
    assert not where.covers({}, HERE)
    optional = Where({"cc": bound(absent=True, **{"is": "Bo"})}, is_whole=True)
    assert optional.covers({}, HERE)
    assert optional.covers({"cc": "Bo"}, HERE)
    assert not optional.covers({"cc": None}, HERE)


@requirement("RULE-3")
def test_an_argument_that_is_not_named_never_fits_an_allow_and_does_not_hide_from_a_deny():
    """With one argument more a call is another call; and it must be no way around a rule that denies."""
    terms = {"to": bound(**{"is": "Mallory"})}
    arguments = {"to": "Mallory", "urgent": True}
    assert not Where(terms, is_whole=True).covers(arguments, HERE)
    assert Where(terms, is_whole=False).covers(arguments, HERE)


@requirement("RULE-3")
@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("[a-z]+", "abc", ["abc\n", "abc def", "", "ABC", "\nabc"]),
        ("a|b", "a", ["ab", "a\nb", "xa", "bx"]),
        ("(?m)^a$", "a", ["a\nb", "b\na"]),
        ("[0-9]{2}", "12", ["1", "123", "１２", "٣٣"]),
        (r"\d+", "12", ["١٢", "12 "]),
    ],
)
def test_a_pattern_speaks_of_the_whole_text(pattern: str, good: str, bad: list[str]):
    """One that matched a part would let anything stand around it."""
    assert fits(good, matches=pattern)
    assert [text for text in bad if fits(text, matches=pattern)] == []
    assert not fits(["12"], matches=".*")
    assert not fits(12, matches=".*")


@requirement("RULE-3")
@pytest.mark.parametrize(
    "pattern", ["a)|(b", "a)|(?:b", "(?=x)x", r"(a)\1", "(a", "[", "(?<!a)b", "(a{1000}){1000}", ""]
)
def test_a_pattern_that_is_not_linear_or_breaks_out_is_refused(pattern: str):
    """A bracket that closes ours would turn one pattern into two that are open at an end."""
    with pytest.raises(ValueError, match="regular expression"):
        bound(matches=pattern)


@requirement("RULE-3")
def test_a_pattern_takes_time_by_the_length_of_the_text_alone():
    """A model that can make a rule think for minutes can keep a person from being asked."""
    assert not fits("a" * 50_000 + "!", matches="(a+)+(a|aa)*")


@requirement("RULE-3")
def test_a_path_is_followed_to_where_it_leads(tmp_path: Path):
    """By its letters it may lie in the folder, and by a link anywhere."""
    folder = naive.folder_with_links(tmp_path / "p")
    inside, terms = str(folder / "in"), {"under": str(folder / "in")}
    good = ["in", "in/x", "in/./x/../y", "link/x", inside, f"{inside}/deep/er", "in/missing/x"]
    bad = ["in/../out/x", "in/link", "in/link/x", "inside", "out", "/", "..", "~/x", "", "in\0/x", f"{inside}side", 3]
    assert [path for path in good if not fits(path, folder, **terms)] == []
    assert [path for path in bad if fits(path, folder, **terms)] == []
    (folder / "in").rename(folder / "was")
    (folder / "in").symlink_to("out")
    assert not fits(str(folder / "was/x"), folder, **terms), "where the folder itself leads is looked at each time"


@requirement("RULE-3")
@pytest.mark.parametrize(
    "path",
    ["$HOME/x", "in/${X}", "up/../x", " in/x", "in/x ", "in/x\u00a0", "\ufeffin/x", "/proc/self/cwd/in/x", "own/in/x"],
)
def test_a_path_that_programs_read_differently_is_asked_about_and_denied(path: str, tmp_path: Path):
    """One expands variables, one takes `..` away before it follows a link, one trims; and /proc/self is every program's
    own. An allow counts what leads inside for all of them, a deny what may for one."""
    folder = naive.folder_with_links(tmp_path / "p")
    (folder / "own").symlink_to("/proc/self/cwd")
    # By the letters alone `up/../x` is beside the folder, and by its links in it.
    assert not fits(path, folder, under=str(folder / "in"))
    assert read_bound({"under": str(folder / "in")}, wrong, counts_unclear=True).miss(path, folder) is None


@requirement("RULE-3")
@pytest.mark.parametrize(
    "path",
    [
        "-x",
        "file:///etc/passwd",
        "http://evil/x",
        "host:x",
        "u@host:/x",
        "in\\..\\x",
        "{x,/etc/passwd}",
        "`id`",
        "%2e%2E/x",
        "a%2Fb",
    ],
)
def test_what_is_more_than_a_path_is_not_allowed_as_one(path: str, tmp_path: Path):
    """A tool may hand it to a program that takes an option, an address, or what a shell expands."""
    bound = str(tmp_path)
    assert not fits(path, tmp_path, under=bound)
    assert not fits(path, tmp_path, each={"under": bound}, length=1)
    for plain in ("a-x", "in/a:b", "in/-x", "50%25", "[id].tsx", "a b (c).txt"):
        assert fits(plain, tmp_path, under=bound)


@requirement("RULE-3")
def test_a_deny_over_a_folder_holds_for_an_address_of_a_file(tmp_path: Path):
    """It may lead there, in letters that stand for others."""
    bound = read_bound({"under": str(tmp_path)}, wrong, counts_unclear=True)
    assert bound.miss(f"File://{tmp_path}/x", Path("/srv")) is None
    assert bound.miss("/srv/file:x", Path("/srv")) is not None


@requirement("RULE-3")
@pytest.mark.parametrize(
    ("line", "is_meant"),
    [
        ("rm", False),
        ("rm x", True),
        ("rm x y", True),
        ("rm -rf x", True),
        ("/bin/rm x", True),
        ("pkexec rm x", True),
        ("python3.12 -c 'import os; os.system(\"rm x\")'", True),
        ("git -c alias.z='!rm x' z", True),
        ("poetry run rm x", True),
        ("r\\m x", True),
        ("bash -c \"r'm' x\"", True),
        ("sh -c 'r$@m x'", True),
        ("RM x", True),
        ("git rm x", False),
        (["rm", "-rf", "x"], True),
        (["ls", "x"], False),
        ([1, None], False),
        (3, False),
    ],
    ids=repr,
)
def test_a_deny_of_a_command_is_not_passed_by_one_word_more(line: Any, is_meant: bool, tmp_path: Path):
    """What an ask or a deny says of the arguments is how they begin. An allow speaks of every one of them."""
    terms = {"command": {"program": "rm", "args": [".*"], "cwd": "/"}}
    found = Where({"c": read_bound(terms, wrong, counts_unclear=True)}, is_whole=False)
    assert found.covers({"c": line}, tmp_path) is is_meant
    assert (not found.misses({"c": line}, tmp_path)) is is_meant
    assert not fits("rm x y", tmp_path, **terms)
    assert not fits(["rm", "x"], tmp_path, **terms)


NOT_SIMPLE = [
    "git status; rm -rf /",
    "git status && ls",
    "git status | sh",
    "git status & ls",
    "git status\nls",
    "git status\r\nls",
    "git $(ls)",
    "git `ls`",
    "git $HOME",
    'git "$HOME"',
    'git "`ls`"',
    "git status > x",
    "git status < x",
    "git status 2>&1",
    "GIT_DIR=x git status",
    "git {a,b}",
    "git *",
    "git ?",
    "git [ab]",
    "git ~",
    "git status # ls",
    "git \\status",
    'git "a\\"b"',
    "git 'status",
    'git "status',
    "(git status)",
    "! git status",
    "git !status",
    'git "a!b"',
    "git =ls",
    "git %self",
    "git\tstatus",
    "git\u00a0status",
    "git stat\x00us",
    "'git status'\n",
    "",
    " ",
    "''",
    "git " + "x" * 5000,
]


@requirement("RULE-3")
@pytest.mark.parametrize("line", NOT_SIMPLE, ids=repr)
def test_what_a_shell_would_take_for_more_than_one_simple_command_is_none(line: str):
    """No operator, expansion, assignment, redirection or second line; whatever is not understood is not matched."""
    assert simple_words(line) is None
    every = {"program": "git", "args": [".*"], "cwd": "/"}
    assert not fits(line, command=every)


@requirement("RULE-3")
def test_a_command_is_a_program_and_a_pattern_for_every_argument(tmp_path: Path):
    """Never a prefix: `git status` says nothing of `git status --porcelain`, and `git` nothing of `gitx`."""
    terms: dict[str, Any] = {"command": {"program": "git", "args": ["log", "-[0-9]+"], "cwd": str(tmp_path)}}
    for line in ("git log -3", "git  'log' \"-12\"", "git l'o'g -3"):
        assert fits(line, tmp_path, **terms)
    for line in (
        "git log",
        "git log -3 x",
        "gitx log -3",
        "/usr/bin/git log -3",
        "git log -3x",
        "git 'log -3'",
        "GIT log -3",
    ):
        assert not fits(line, tmp_path, **terms)
    assert not fits("git log -3", tmp_path.parent, **terms), "it would run in another folder"


@requirement("RULE-3")
@pytest.mark.parametrize(
    ("terms", "fact"),
    [
        ({}, "table of words"),
        ({"equals": 1}, "unknown bound equals"),
        ({"from": ["you"]}, "not yet"),
        ({"any": False}, "expected true"),
        ({"any": True, "max": 3}, "opposite"),
        ({"absent": "yes"}, "expected true"),
        ({"min": 3, "max": 2}, "more than max"),
        ({"min": True}, "expected a number"),
        ({"max": math.inf}, "expected a number"),
        ({"max": "20"}, "expected a number"),
        ({"length": -1}, "whole number"),
        ({"length": 2.5}, "whole number"),
        ({"in": []}, "list of 1"),
        ({"in": "Ada"}, "list of 1"),
        ({"is": math.nan}, "no argument can be"),
        ({"under": "notes"}, "whole path"),
        ({"command": "git status"}, "program"),
        ({"command": {"program": "git status", "args": [], "cwd": "/"}}, "plain word"),
        ({"command": {"program": "git", "args": []}}, "^cwd is missing"),
        ({"command": {"program": "git", "cwd": "/"}}, "^args is missing"),
        ({"command": {"program": "git", "args": [], "cwd": "/", "dir": "/"}}, "a command has no dir"),
        ({"each": {"absent": True}}, "element"),
    ],
    ids=repr,
)
def test_a_bound_that_means_nothing_is_refused(terms: dict[str, Any], fact: str):
    """A word that was overlooked is a bound that is not there."""
    with pytest.raises(ValueError, match=fact):
        read_bound(terms, wrong)


@requirement("RULE-3")
@pytest.mark.parametrize("terms", [{"length": 80}, {"matches": "[a-z]*"}, {"any": True}, {"min": 0}, {"max": 5}])
def test_open_text_and_open_numbers_are_not_closed(terms: dict[str, Any]):
    """What an injected text could fill is what leaks."""
    assert not bound(**terms).is_closed


@requirement("GRANT-1")
def test_whoever_agrees_is_told_a_command_and_a_folder_to_their_end():
    """Two of them are often alike for longer than a line, and the difference is what matters."""
    long = "git log --oneline --graph --decorate --all --since=2.weeks -- src/lastword; rm -rf ~"
    assert bound(**{"is": long}).words() == f"“{long}”"
    assert bound(**{"in": [long]}).words() == f"“{long}”"
    assert bound(**{"is": "x" * 1_000}).words() == f"“{'x' * 400}”… (600 more characters)"
    command = {"program": "git", "args": ["log", "--since=[0-9]+.weeks", "--author=[a-z]+@example.org"], "cwd": "/p"}
    assert " ".join(command["args"]) in bound(command=command).words()
