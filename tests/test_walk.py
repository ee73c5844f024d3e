"""Whoever follows a call from the session to its end meets few modules, and turns to another one seldom."""

import pytest

from walk import walks

# The most hops, and the most modules. What makes a walk longer has to be worth its reader's way.
LIMITS = {"allowed": (30, 15), "with a card": (105, 28), "script of two": (161, 37)}


@pytest.mark.parametrize("call", LIMITS)
async def test_a_call_is_told_in_few_modules(call: str):
    """A call with a card once crossed 34 modules, and nobody could read it aloud."""
    walk = (await walks())[call]
    hops, modules = LIMITS[call]
    assert len(walk.hops) <= hops
    assert len(walk.modules) <= modules
