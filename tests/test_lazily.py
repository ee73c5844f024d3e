"""Loading late: nothing is paid for before it is used, and what is missing says how to get it."""

import subprocess
import sys
from pathlib import Path

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
    """The code of a module that nobody uses does not run, also when somebody looks at what stands for it."""
    program = (
        "import sys; from lastword.lazily import load_later; colors = load_later('colorsys')\n"
        "print(hasattr(colors, '__wrapped__'), 'colorsys' in sys.modules)\n"
        "print(colors.rgb_to_hsv(0, 0, 0), 'colorsys' in sys.modules)\n"
        "print(load_later('colorsys') is sys.modules['colorsys'])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split("\n")[:3] == ["False False", "(0.0, 0.0, 0) True", "True"]


def test_two_threads_may_ask_first(tmp_path: Path):
    """The second one waits until the module is whole. Tools are registered and projects looked at in any thread."""
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.3)\nvalue = 7\n")
    program = (
        "import sys, threading; from lastword.lazily import load_later; slow = load_later('slow_module')\n"
        "together, said = threading.Barrier(8), []\n"
        "def ask():\n"
        "    together.wait()\n"
        "    said.append(getattr(slow, 'value', 'half loaded'))\n"
        "threads = [threading.Thread(target=ask) for _ in range(8)]\n"
        "for thread in threads: thread.start()\n"
        "for thread in threads: thread.join()\n"
        "print(set(said))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    assert told.stdout == "{7}\n"


def test_a_door_hands_out_what_it_names_and_loads_it_then(tmp_path: Path):
    """The names are written once, for type checkers. A vocabulary is handed out as a module, like by any package."""
    room = tmp_path / "hall"
    room.mkdir()
    (room / "chairs.py").write_text("class Chair: ...\n")
    (room / "words.py").write_text("seat = 'a seat'\n")
    (room / "__init__.py").write_text(
        "from typing import TYPE_CHECKING\n\nfrom lastword.lazily import open_door\n\n"
        "if TYPE_CHECKING:\n    from hall import words\n    from hall.chairs import Chair\n"
        "else:\n    __getattr__ = open_door(__name__)\n"
    )
    program = (
        "import sys, hall; print('hall.chairs' in sys.modules, hasattr(hall, 'table'), hasattr(hall, 'words'))\n"
        "print(hall.Chair.__name__, hall.Chair is vars(hall)['Chair'])\n"
        "from hall import words; print(words.seat)"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, cwd=tmp_path
    )
    assert told.stdout.split("\n")[:3] == ["False False False", "Chair True", "a seat"]
