"""Texts that want to break something. The long version is soak.py."""

from random import Random

import pytest

from requirements import requirement
from script.hostile import escape, judge, mutate
from tries import often


@requirement("NUWA-40", "NUWA-41", "NUWA-60", "NUWA-61")
@pytest.mark.parametrize("seed", range(often(2)))
async def test_mutated_programs_end_in_our_own_errors(seed: int) -> None:
    """A model writes half a script, or none. Whatever arrives ends in a result or an error of the language."""
    random = Random(seed)
    ends = {await judge(mutate(random)) for _ in range(120)}
    assert {"ParseError", "done"} <= ends


@requirement("NUWA-60", "NUWA-61")
@pytest.mark.parametrize("seed", range(often(2)))
async def test_programs_built_to_escape_reach_nothing(seed: int) -> None:
    """No name, attribute or module of the host is a value of the language, and nothing can be used up."""
    random = Random(1000 + seed)
    ends = {await judge(escape(random)) for _ in range(50)}
    assert {"LimitExceeded", "MemberAccess"} <= ends
