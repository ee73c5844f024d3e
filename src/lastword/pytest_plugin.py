"""What pytest finds by itself once lastword is installed: the fixture `lastword_session`.

It is loaded with every run of pytest, whether or not a test uses it, so it imports nothing until one does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from lastword.lazily import load_later

if TYPE_CHECKING:
    from lastword import testing
else:
    testing = load_later("lastword.testing")


@pytest.fixture
def lastword_session() -> Iterator[Callable[..., testing.Trial]]:
    """Make sessions for tests: `lastword_session(pay, answer=…)` gives a `Trial`, closed at the end."""
    made: list[testing.Trial] = []

    def make(*tools: Any, **facts: Any) -> testing.Trial:
        made.append(testing.Trial(*tools, **facts))
        return made[-1]

    yield make
    for each in made:
        each.close()
