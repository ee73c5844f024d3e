"""The modules of the bench, for its tests."""

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from small_world import AGENTDOJO, BENCH

collect_ignore = [] if (AGENTDOJO / "installed").exists() else ["test_agentdojo.py"]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """The modules of the folder, found as they find each other when they are run."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module
