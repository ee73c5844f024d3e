"""Tools to be called from a terminal, and terminals and browsers to call them from."""

import json
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from lastword import Session, ToolRegistry
from lastword.terminal.approver import TerminalApprover
from surfaces.screens import Program, Terminal, lastword_command
from surfaces.windows import PATIENCE_SECONDS, Browserless, House, Scripted

expect.set_options(timeout=PATIENCE_SECONDS * 1000)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cards take keys sooner than any person needs, and those of other programs show sooner, except where that very
    time is looked at (`unhurried`)."""
    if "unhurried" not in request.fixturenames:
        monkeypatch.setattr("lastword.terminal.tty.ARMING_SECONDS", 0.04)
        monkeypatch.setattr("lastword.terminal.keyboard.ALONE_SECONDS", 0.04)
        monkeypatch.setattr("lastword.terminal.keyboard.FAST_SECONDS", 0.0)
        monkeypatch.setattr("lastword.terminal.keyboard.MAX_TOGETHER", 1_000)
        monkeypatch.setattr("lastword.web.conversation.UNREAD_SECONDS", 0.0)
        monkeypatch.setattr("lastword.web.other_sessions.LOOK_SECONDS", 0.1)
        monkeypatch.setattr("lastword.web.other_sessions.ASKER_SECONDS", 0.2)


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


Houses = Callable[..., House]


@pytest.fixture
def houses(tmp_path: Path) -> Iterator[Houses]:
    """Opens servers, each with what its model replies, and closes them at the end."""
    opened: list[House] = []

    def opening(*replies: Any, folder: Path = tmp_path, **facts: Any) -> House:
        model = facts.pop("scripted", Scripted if replies else None)
        if model is not None:
            facts["model"] = model(*replies)
        opened.append(House(folder, **facts).open())
        return opened[-1]

    yield opening
    for house in opened:
        house.close()


@pytest.fixture
def house(houses: Houses) -> House:
    return houses()


@pytest.fixture
def window(house: House) -> Browserless:
    return house.window()


MakeTool = Callable[..., Path]


@pytest.fixture
def make_tool(tmp_path: Path) -> MakeTool:
    """Writes a folder tool below tools/ and returns its folder."""

    def make(name: str, code: str, **manifest: Any) -> Path:
        folder = tmp_path / "tools" / name
        folder.mkdir(parents=True)
        facts = {"displayName": name, "id": name, "description": f"Does {name}.", "parameters": []} | manifest
        (folder / "assistant_tool.json").write_text(json.dumps(facts))
        (folder / "assistant_tool.py").write_text(f"from lastword import AssistantTool\n{code}\n")
        return folder

    return make


Run = Callable[..., Program]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Starts lastword in a terminal of its own, in the folder that holds tools/."""
    started: list[Program] = []

    def start(*arguments: str, **facts: Any) -> Program:
        started.append(Program(*lastword_command(), *arguments, cwd=tmp_path, **facts))
        return started[-1]

    yield start
    for program in started:
        program.close()


WIDE = {"width": 1200, "height": 900}
# Whether something has been done to a window for good.
CHANGED = "'__pwClock' in globalThis || Notification.permission === 'granted'"


@pytest.fixture
def windows(browser: Browser, left_windows: dict[Any, list[Page]]) -> Iterator[Any]:
    """Open windows, each a browser of its own; every one of them must stay free of errors and talk to nobody else."""
    opened: list[tuple[Page, list[Page], dict[Any, Callable[..., None]]]] = []
    complaints: list[str] = []

    def open_window(key: str, *, viewport: Any = WIDE, **options: Any) -> Page:
        home = key.partition("/enter")[0]
        watched: dict[Any, Callable[..., None]] = {
            "console": lambda said: complaints.append(said.text) if said.type == "error" else None,
            "pageerror": lambda problem: complaints.append(str(problem)),
            "request": lambda sent: None if sent.url.startswith((home, "data:")) else complaints.append(sent.url),
        }
        alike = left_windows.setdefault((browser, repr(options)), [])
        page = alike.pop() if alike else new_window(browser, **options)
        page.set_viewport_size(viewport)
        listen: Any = page.on  # Its types are one for each event.
        for event, watching in watched.items():
            listen(event, watching)
        opened.append((page, alike, watched))
        page.goto(key)
        return page

    yield open_window
    for page, alike, watched in opened:
        for event, watching in watched.items():
            page.remove_listener(event, watching)
        if is_as_before(page):
            alike.append(page)
        else:
            page.context.close()
    # A server that was killed, and an edit or an image that was refused, are part of the story.
    expected = re.compile("ERR_CONNECTION|ERR_INCOMPLETE|status of 400|status of 409")
    assert [said for said in complaints if not expected.search(said)] == []


def new_window(browser: Browser, **options: Any) -> Page:
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    return context.new_page()


def is_as_before(page: Page) -> bool:
    """Whether a window could be made one that nothing has happened in: not if its clock was stopped, say."""
    if page.context.pages != [page] or page.evaluate(CHANGED):
        return False
    page.evaluate("origin.startsWith('http') && localStorage.clear()")
    page.goto("about:blank")
    page.context.clear_cookies()
    page.unroute_all(behavior="ignoreErrors")
    return True


@pytest.fixture
def page(house: House, windows: Any) -> Any:
    """A window on the server, before anything has happened there."""
    return windows(house.key())
