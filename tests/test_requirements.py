"""Ties the promises to the tests, both ways."""

import re
from pathlib import Path

from requirements import OPEN, REQUIREMENTS

HERE = Path(__file__).parent
NAMED = re.compile(r"requirement\(([^)]*)\)")
IN_SCRIPT = re.compile(r"//\s*requirement\s+(.+)")
# Whatever looks like an id counts as one, so that a mistyped prefix is found as an unknown promise.
ID = re.compile(r"\b[A-Z]+-\d+\b")
PREFIXES = {"TOOL", "VAL", "EDIT", "NUWA", "API", "MCP", "HOOK", "PLAN", "SRC", "RULE", "GRANT", "CONF", "DOJO", "TEAM"}


def named_ids() -> dict[str, list[str]]:
    """Every id that a test names, with the files that name it."""
    found: dict[str, list[str]] = {}
    for path in sorted(HERE.rglob("*")):
        pattern = {".py": NAMED, ".nuwa": IN_SCRIPT}.get(path.suffix)
        if pattern is None or path.name in ("requirements.py", "test_requirements.py"):
            continue
        for mention in pattern.findall(path.read_text()):
            for name in ID.findall(mention):
                found.setdefault(name, []).append(str(path.relative_to(HERE)))
    return found


def test_every_promise_has_a_test_or_is_openly_missing():
    """A promise without a test is a claim. OPEN says which those are."""
    assert sorted(set(REQUIREMENTS) - set(named_ids()) - OPEN) == []


def test_no_test_names_an_unknown_promise():
    """A typing mistake in an id would prove nothing."""
    assert sorted(set(named_ids()) - set(REQUIREMENTS)) == []


def test_the_open_list_only_shrinks():
    """An id that a test proves is not open any more."""
    assert sorted(OPEN & set(named_ids())) == []
    assert sorted(OPEN - set(REQUIREMENTS)) == []


def test_every_promise_belongs_to_a_known_part():
    """An id that is mistyped in the list and in a test alike would otherwise be a promise of its own."""
    assert {name.split("-")[0] for name in REQUIREMENTS} == PREFIXES


def test_a_mistyped_prefix_is_seen():
    """A pattern that knows the prefixes would pass over TOLL-46 in silence."""
    assert ID.findall('"TOLL-46", "NUWA-5"') == ["TOLL-46", "NUWA-5"]
