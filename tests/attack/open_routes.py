"""The routes that stay open: what docs/threat-model.md says of them, and a way to try each."""

import _socket
import atexit
import contextvars
import ctypes
import importlib
import locale
import logging
import os
import queue
import socket
import sqlite3
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import apsw
from stage import POSSIBLE, Act, Stage, possible

__all__ = ["POSSIBLE"]


@possible("Write to a file, a pipe or a terminal that was open before. Printing and logging do.")
def _(stage: Stage) -> Iterator[Act]:
    with stage.there.open("a") as file:
        yield lambda: file.write(" no more")
    assert stage.there.read_text() == "as it was no more"


@possible("Change a database through a connection that was open before.")
def _(stage: Stage) -> Iterator[Act]:
    connections: tuple[Any, ...] = (
        sqlite3.connect(stage.database, isolation_level=None, check_same_thread=False),
        apsw.Connection(str(stage.database)),
    )
    yield lambda: [connection.execute("INSERT INTO notes VALUES (1)") for connection in connections]
    assert list(connections[0].execute("SELECT count(*) FROM notes")) == [(2,)]
    for connection in connections:
        connection.close()


@possible(
    "Send on a connection that was open before, if something other than Python's `socket` and `ssl` sends: uvloop and "
    "many database drivers have code of their own."
)
def _(stage: Stage) -> Iterator[Act]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield lambda: _socket.socket.send(ours, b"x")
        assert theirs.recv(1) == b"x"


@possible("Hand work to a thread, a process or a program that already runs, for example through a queue.")
def _(stage: Stage) -> Iterator[Act]:
    jobs: queue.SimpleQueue[Act] = queue.SimpleQueue()
    worker = threading.Thread(target=lambda: jobs.get()())
    worker.start()
    yield lambda: jobs.put(stage.target.touch)
    worker.join()
    assert stage.target.exists()


@possible(
    "Change what lives in the memory of the process: a variable of a module, the settings of logging, what an object "
    "of yours keeps, the private parts of lastword."
)
def _(stage: Stage) -> Iterator[Act]:
    logger = logging.getLogger("lastword.routes")

    def act() -> None:
        logger.setLevel(17)
        stage.session._state._values["a"] = b"1"

    yield act
    assert logger.level == 17
    assert stage.session.get_state_value("a") == 1


@possible(
    "Leave behind something that runs later, when nobody watches: a finalizer, a method `__del__`, a function that is "
    "put in the place of another."
)
def _(stage: Stage) -> Iterator[Act]:
    class Kept:
        pass

    kept = [Kept()]
    yield lambda: weakref.finalize(kept[0], stage.target.touch)
    kept.clear()
    assert stage.target.exists()


@possible(
    "Call code that is not Python's and does its input and output itself: an extension module, or a function of the "
    "system that was looked up before."
)
def _(stage: Stage) -> Iterator[Act]:
    mkdir = ctypes.CDLL(None).mkdir
    yield lambda: mkdir(os.fsencode(stage.target), 0o777)
    assert stage.target.is_dir()


@possible(
    "Call a function that Python does not announce, and that is wrapped for this reason, by a name that was taken "
    "before the first card was drawn (`from os import mkfifo`)."
)
def _(stage: Stage) -> Iterator[Act]:
    taken_before = os.mkfifo.__wrapped__  # type: ignore[attr-defined]
    yield lambda: taken_before(stage.target)
    assert stage.target.is_fifo()


@possible(
    "Leave the context in which the guard watches, by `contextvars.Context().run`, or take the guard away, or the "
    "authorizer of a database that it opened for reading."
)
def _(stage: Stage) -> Iterator[Act]:
    other = stage.folder / "other.db"

    def act() -> None:
        contextvars.Context().run(stage.target.touch)
        connection = sqlite3.connect(f"file:{stage.database}?mode=ro", uri=True)
        connection.set_authorizer(None)
        connection.execute("ATTACH ? AS other", [str(other)])
        connection.close()

    yield act
    assert stage.target.exists()
    assert other.exists()


@possible(
    "Change settings of the process that Python does not announce: its locale, its priority, its user, its session, "
    "its open descriptors."
)
def _(stage: Stage) -> Iterator[Act]:
    ours, theirs = os.pipe()
    before = locale.setlocale(locale.LC_CTYPE)

    def act() -> None:
        os.close(theirs)
        locale.setlocale(locale.LC_CTYPE, "C")

    yield act
    assert locale.setlocale(locale.LC_CTYPE) == "C"
    locale.setlocale(locale.LC_CTYPE, before)
    assert os.read(ours, 1) == b""  # The other end is closed.
    os.close(ours)


@possible("Import a module that leaves something for the end of the program while it is loaded.")
def _(stage: Stage) -> Iterator[Act]:
    name = f"module_with_an_end_{abs(hash(stage.folder))}"
    (stage.folder / f"{name}.py").write_text("import atexit\n\n@atexit.register\ndef end(): pass\n")
    sys.path.insert(0, str(stage.folder))
    before = atexit._ncallbacks()
    yield lambda: importlib.import_module(name)
    sys.path.remove(str(stage.folder))
    assert atexit._ncallbacks() == before + 1
    atexit.unregister(sys.modules.pop(name).end)
