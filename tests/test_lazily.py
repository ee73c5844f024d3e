"""Loading late: nothing is paid for before it is used, and what is missing says how to get it."""

import subprocess
import sys

import pytest

from lastword.errors import LastWordError
from lastword.lazily import load_later


def test_a_missing_package_says_which_extra_brings_it():
    """Only when it is used: a program that does not need the extra must start without it."""
    missing = load_later("no_such_package_anywhere", extra="mcp")
    with pytest.raises(LastWordError) as refusal:
        _ = missing.Client
    assert refusal.value.fact == "this needs the package no_such_package_anywhere, which is not installed"
    assert refusal.value.hint == "pip install 'lastword[mcp]'"
    assert "no_such_package_anywhere" not in sys.modules


def test_whoever_looks_through_all_modules_is_not_answered_with_an_error():
    """`inspect` and others ask every object for `__wrapped__`, `__file__` and the like."""
    missing = load_later("no_such_package_anywhere", extra="mcp")
    assert not hasattr(missing, "__wrapped__")


def test_a_package_is_loaded_when_something_of_it_is_asked_for():
    """The code of a module that nobody uses does not run."""
    program = (
        "import sys; from lastword.lazily import load_later; colors = load_later('colorsys')\n"
        "print('rgb_to_hsv' in object.__getattribute__(colors, '__dict__'))\n"
        "print(colors.rgb_to_hsv(0, 0, 0))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split("\n")[0] == "False"
    assert told.stdout.split("\n")[1] == "(0.0, 0.0, 0)"
