"""The fixtures of the server's tests; what they are made of is in house.py."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from house import LEAVING, House, Running
from other_clients import NODE, PYTHON

# Where they could not be fetched, `./test --long` says so in its last lines.
collect_ignore = [
    *([] if (NODE / "installed.json").exists() else ["test_node_clients.py"]),
    *([] if (PYTHON.parent.parent / "installed").exists() else ["test_python_clients.py"]),
]


@pytest.fixture
def house() -> Iterator[House]:
    with ExitStack() as stack:
        yield House(stack)


@pytest.fixture(scope="session")
def plain() -> Iterator[Running]:
    """One server that always says hello, however often, for tests that leave nothing behind in it."""
    with ExitStack() as stack:
        yield House(stack).server(lambda _: "Hello.", limits={"requests_per_minute": 10**9})


@pytest.fixture(scope="session", autouse=True)
def nobody_is_left() -> Iterator[None]:
    """Every server that was told to stop has stopped before the tests end."""
    yield
    for server in LEAVING:
        server.stop()
