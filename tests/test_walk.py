"""Whoever follows a call from the session to its end meets few modules, and turns to another one seldom."""

import re
import subprocess
import sys
from pathlib import Path

WALK = Path(__file__).with_name("walk.py")

# The most hops, and the most modules. What makes a walk longer has to be worth its reader's way.
LIMITS = {"allowed": (28, 12), "with a card": (75, 20), "script of two": (120, 26)}


def test_a_call_is_told_in_few_modules():
    """A call with a card once crossed 34 modules, and nobody could read it aloud. In a program of its own: what other
    tests have loaded changes the way."""
    said = subprocess.run([sys.executable, WALK], capture_output=True, text=True, timeout=120, check=True).stdout
    walked = {name: (int(hops), int(found)) for name, hops, found in re.findall(r"(.+): (\d+) hops, (\d+)", said)}
    assert walked.keys() == LIMITS.keys()
    assert {name: walk for name, walk in walked.items() if walk[0] > LIMITS[name][0] or walk[1] > LIMITS[name][1]} == {}
