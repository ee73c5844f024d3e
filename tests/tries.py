"""How often a property is tried: a few times whenever the tests run, and ten times as often in the long ones."""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

LONG = "LASTWORD_LONG_TESTS"
"""In the environment where the long tests run, too (conftest.py)."""


def often(few: int) -> int:
    """So many times, and more of them in the long tests."""
    return few * 10 if LONG in os.environ else few


def mostly_long(cases: Iterable[str], *few: str) -> list[Any]:
    """The names of cases that take long: these few whenever the tests run, and all of them in the long tests."""
    named = list(cases)
    assert set(few) <= set(named)
    return [name if name in few else pytest.param(name, marks=pytest.mark.long) for name in named]


def tries(few: int = 30) -> settings:
    """Settings for a property that finds its mistakes among so many examples, nearly always."""
    shared = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
    return settings(deadline=None, max_examples=often(few), suppress_health_check=shared)
