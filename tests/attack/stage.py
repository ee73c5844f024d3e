"""The stage on which routes to an effect are tried, and how a route is written down.

A route is a function that prepares what the tool would have had at hand before its card was drawn, yields what the tool
then does, and looks afterwards at whatever the test itself cannot see. Those that are refused name the words of the
refusal (refused_routes.py); those that are not are sentences of docs/threat-model.md (open_routes.py).
"""

import asyncio
import atexit
import contextlib
import os
import resource
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from lastword import Session, ToolRegistry
from lastword.journal import Journal
from lastword.tools import ToolContext

Act = Callable[[], Any]


class Stage:
    """What a tool could have at hand: a file, a place where there is none, a session with a card that waits."""

    def __init__(self, folder: Path, session: Session, waiting_call: str) -> None:
        self.folder = folder
        self.session = session
        self.journal: Journal = session.journal
        self.registry: ToolRegistry = session.registry
        self.waiting_call = waiting_call
        self.loop = asyncio.get_running_loop()
        self.there = folder / "there" / "file.txt"
        self.there.parent.mkdir()
        self.there.write_text("as it was")
        self.target = folder / "effect.txt"
        self.database = folder / "there" / "notes.db"
        with contextlib.closing(sqlite3.connect(self.database)) as connection:
            connection.execute("CREATE TABLE notes (text)")

    @property
    def context(self) -> ToolContext:
        found = ToolContext.current.get()
        assert found is not None
        return found

    def seen(self) -> dict[str, Any]:
        """Everything that an effect could have changed."""
        umask = os.umask(0o22)
        os.umask(umask)
        files = sorted(self.folder.rglob("*"))
        session = self.session
        return {
            "files": [(path, path.stat().st_mode, path.stat().st_mtime_ns, path.stat().st_nlink) for path in files],
            "contents": [path.read_bytes() for path in files if path.is_file()],
            "umask": umask,
            "folder": os.getcwd(),
            "environment": dict(os.environ),
            "handlers": [signal.getsignal(one) for one in (signal.SIGUSR1, signal.SIGALRM)],
            "alarm": signal.getitimer(signal.ITIMER_REAL)[0] > 0,
            "at the end": atexit._ncallbacks(),
            "limit": resource.getrlimit(resource.RLIMIT_CORE),
            "state": session.get_all_state(),
            "described": session.get_all_state_metadata(),
            "preset": session.preset,
            "tools": [tool.name for tool in session.registry.all()],
            "cards": [request.call_id for request in session.pending()],
            "listeners": len(session._door.setting.audience.listeners),
        }


Route = Callable[[Stage], AbstractContextManager[Act]]

REFUSED: dict[str, tuple[Route, str]] = {}
POSSIBLE: dict[str, Route] = {}


def refused(words: str) -> Callable[[Callable[[Stage], Iterator[Act]]], None]:
    def add(route: Callable[[Stage], Iterator[Act]]) -> None:
        name = route.__name__.strip("_").replace("_", " ")
        assert name not in REFUSED, name
        REFUSED[name] = (contextmanager(route), words)

    return add


def possible(sentence: str) -> Callable[[Callable[[Stage], Iterator[Act]]], None]:
    def add(route: Callable[[Stage], Iterator[Act]]) -> None:
        POSSIBLE[sentence] = contextmanager(route)

    return add


def simple(words: str, **acts: Callable[[Stage], Any]) -> None:
    """Routes that need nothing but the stage."""
    for name, act in acts.items():

        @contextmanager
        def route(stage: Stage, act: Callable[[Stage], Any] = act) -> Iterator[Act]:
            yield lambda: act(stage)

        spoken = name.replace("_", " ")
        assert spoken not in REFUSED, spoken
        REFUSED[spoken] = (route, words)


def step(work: Awaitable[Any]) -> None:
    """Take the first step of a coroutine, wherever we are: what is refused is refused in that one."""
    steps = work.__await__()
    try:
        next(steps)
    finally:
        steps.close()


def descriptor_of(path: Path, flags: int) -> int:
    return os.open(path, flags)
