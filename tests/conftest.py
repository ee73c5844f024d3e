"""What most tests need: a registry, a place where effects would show, and tools that leave a trace there."""

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.capture import CaptureResult
from hypothesis import HealthCheck, settings

from lastword import ToolRegistry
from lastword.cli import run
from lastword.journal import Journal, data_of
from lastword.tools import Tool
from lastword.tools.guard import ancestry
from lastword.tools.manifest import parse_manifest
from lastword.values import canonical
from postgres_server import PostgresServer, shared_server
from sending import MANIFEST
from tries import LONG

pytest_plugins = ["browsers"]

# No test is timed, and the drawing of examples is none either: a machine may stop for a second at any moment.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Sessions live in the process of the tests, and so every command that a test starts would be known as started below
# tools. Tests start commands as a person would; those that are about this start a program of their own in between.
os.environ.pop(ancestry.MARKER, None)
ancestry._marked_for = os.getpid()

# Where few tests take long. They are begun first, the longest before all: one that is begun last leaves the other
# processes idle.
LONG_FILES = tuple(
    f"tests/{name}"
    for name in (
        "surfaces/test_page_flows.py",
        "surfaces/test_page_pictures.py",
        "surfaces/test_page_grant_step.py",
        "crash/test_crash.py",
        "surfaces/",
        "test_readme.py",
        "flow/test_real_model.py",
        "attack/test_pressing_our_buttons.py",
        "rules/test_below.py",
        "script/test_turns.py",
        "script/test_grammar.py",
        "crash/",
        "flow/",
        "adapters/",
        "mcp_both_ways/",
        "hook/",
        "commands/",
        "attack/test_granting_at_a_terminal.py",
        "attack/test_typing.py",
        "editor/test_kill",
        "editor/test_off_loop.py",
        "server/test_serve.py",
        "server/test_openapi.py",
        "server/test_workers.py",
        "store/test_store_power.py",
        "test_examples.py",
        "test_guides.py",
    )
)


def pytest_configure(config: pytest.Config) -> None:
    """Tell what is imported from now on whether the long tests run (tries.py)."""
    if config.option.markexpr == "":
        os.environ[LONG] = "yes"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long files first, in this order."""

    def place(item: pytest.Item) -> int:
        return next((number for number, name in enumerate(LONG_FILES) if item.nodeid.startswith(name)), len(LONG_FILES))

    items.sort(key=place)


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """For files whose tests end the program from within a task: such a task is told of in the log once it is collected.

    When that happens while CPython 3.11 builds a syntax tree, as tests of the architecture do, building it fails.
    """
    yield
    gc.collect()


@pytest.fixture
def postgres() -> PostgresServer:
    """A real server, shared with other tests: each has a store of its own in it, and nobody stops it."""
    return shared_server()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def shared_address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a memory that several programs can share: in a file, and in the long tests on a server."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/journal.db"
    return str(request.getfixturevalue("postgres").new_store())


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry()


@pytest.fixture
def effects() -> list[Any]:
    """What really happened. Empty when nothing did."""
    return []


@pytest.fixture
def effect_file(tmp_path: Path) -> Path:
    """A file that no request function and no denied tool may bring into being."""
    return tmp_path / "effect.txt"


@pytest.fixture
def assistant(registry: ToolRegistry, effects: list[Any]) -> Callable[..., Tool]:
    """Register a tool as its author would in a folder: a request function, an execute function, a manifest."""

    def make(request: Any = None, execute: Any = None, **fields: Any) -> Tool:
        def send(params: dict[str, Any], user_action: Any) -> dict[str, Any]:
            if not user_action.primary_confirmed:
                return {"success": False, "message": "Then not."}
            effects.append(params)
            return {"success": True, "message": f"Sent to {params['to']}."}

        manifest = parse_manifest(canonical(MANIFEST | fields))
        return registry.add(Tool(manifest, "assistant", execute or send, request=request))

    return make


@pytest.fixture
def send(assistant: Callable[..., Tool]) -> Tool:
    """The tool above, with its default card."""
    return assistant()


@pytest.fixture
def history() -> Callable[..., Any]:
    """The records of a journal as (kind, data), or only the kinds."""

    async def read(journal: Journal, session_id: str) -> list[tuple[str, dict[str, Any]]]:
        return [(record.kind, data_of(record)) for record in await journal.history(session_id)]

    return read


@pytest.fixture
def golden() -> Callable[[Path, str], None]:
    """Compare a text with the one that is kept. LASTWORD_WRITE_GOLDEN=1 keeps the new one: look at the difference."""

    def compare(path: Path, text: str) -> None:
        if os.environ.get("LASTWORD_WRITE_GOLDEN"):
            path.write_text(text)
        assert text == path.read_text()

    return compare


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Callable[..., CaptureResult[str]]:
    """Carry out a command line, which ends with this code: what was said since somebody last read it."""

    def carry_out(words: Sequence[str], code: int = 0) -> CaptureResult[str]:
        assert run(words) == code
        return capsys.readouterr()

    return carry_out
