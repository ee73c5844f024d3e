"""What is refused when it is stated. That a type checker sees the rest is tests/check_types.py's to prove."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import misuse
import pytest

from lastword import ToolRegistry
from lastword.errors import LastWordError
from requirements import requirement

SOURCE = Path(misuse.__file__).read_text()
MARK = re.compile(r"# (checker|refused|checker, refused)$", re.MULTILINE)
CASES = [
    function
    for _, function in inspect.getmembers(misuse, inspect.isfunction)
    if function.__module__ == misuse.__name__ and function not in (misuse.pay, misuse.paying)
]
REFUSED = [case for case in CASES if "refused" in MARK.findall(inspect.getsource(case))[0]]


def test_every_misuse_is_marked_once():
    """A line without a mark would be tried by nobody."""
    assert [len(MARK.findall(inspect.getsource(case))) for case in CASES] == [1] * len(CASES)
    assert len(MARK.findall(SOURCE)) == len(CASES) >= 30


@requirement("TOOL-60", "TOOL-68")
@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.__name__)
def test_what_cannot_work_is_refused_when_it_is_stated(case: Callable[..., Any], registry: ToolRegistry):
    """In words of ours, with the name of what is wrong; and nothing is half registered."""
    before = len(registry.all())
    with pytest.raises((LastWordError, TypeError)) as refusal:
        case(*[registry][: len(inspect.signature(case).parameters)])
    if isinstance(refusal.value, TypeError):  # What Python itself refuses, or a constructor in its manner.
        assert re.search(r"aprover|Image takes|Text takes", str(refusal.value))
    assert [tool for tool in registry.all()[before:] if tool.execute is not misuse.paying] == []
