"""Tools to be called from a terminal, and terminals to call them from."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assent import Session, ToolRegistry
from assent.terminal import TerminalApprover
from surfaces.screens import Program, Terminal, assent_command


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards take keys sooner than any person needs, except where that very time is looked at (`unhurried`)."""
    if "unhurried" not in request.fixturenames:
        monkeypatch.setattr("assent.terminal.keys.ARMING_SECONDS", 0.05)


@pytest.fixture
def unhurried() -> None:
    """Cards take keys when they do for people."""


@pytest.fixture
async def terminal() -> AsyncIterator[Terminal]:
    with Terminal().attached() as terminal:
        yield terminal


@pytest.fixture
async def narrow() -> AsyncIterator[Terminal]:
    with Terminal(columns=40).attached() as terminal:
        yield terminal


def approver_at(terminal: Terminal, *, plain: bool = False) -> TerminalApprover:
    return TerminalApprover(plain=plain, stdin=terminal.stdin, screen=terminal.screen_file)


def session_at(terminal: Terminal, registry: ToolRegistry, *, plain: bool = False, **facts: Any) -> Session:
    return Session(registry, approver=approver_at(terminal, plain=plain), **facts)


MakeTool = Callable[..., Path]


@pytest.fixture
def make_tool(tmp_path: Path) -> MakeTool:
    """Writes a folder tool below tools/ and returns its folder."""

    def make(name: str, code: str, **manifest: Any) -> Path:
        folder = tmp_path / "tools" / name
        folder.mkdir(parents=True)
        facts = {"displayName": name, "id": name, "description": f"Does {name}.", "parameters": []} | manifest
        (folder / "assistant_tool.json").write_text(json.dumps(facts))
        (folder / "assistant_tool.py").write_text(f"from assent import AssistantTool\n{code}\n")
        return folder

    return make


Run = Callable[..., Program]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts assent in a terminal of its own, in the folder that holds tools/."""
    started: list[Program] = []

    def start(*arguments: str, **facts: Any) -> Program:
        started.append(Program(*assent_command(), *arguments, cwd=tmp_path, **facts))
        return started[-1]

    yield start
    for program in started:
        program.close()
