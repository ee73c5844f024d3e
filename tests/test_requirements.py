"""Ties the promises to the tests, both ways."""

import re
from pathlib import Path

from requirements import OPEN, REQUIREMENTS

HERE = Path(__file__).parent
NAMED = re.compile(r"requirement\(([^)]*)\)")
IN_SCRIPT = re.compile(r"//\s*requirement\s+(.+)")
ID = re.compile(r"\b(?:TOOL|VAL|EDIT|NUWA|API|CONF)-\d+\b")


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
