"""`lastword serve --workers`: several processes, one port, one store."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Served, a_model, served

from requirements import requirement
from warm import run_python, run_warm


@pytest.fixture(scope="module")
def model():
    with a_model() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def store(request, tmp_path, monkeypatch) -> str:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/a.db"
    return str(request.getfixturevalue("postgres").new_store())


def workers_of(server: Served) -> set[int]:
    pid = server.process.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def until(condition: Callable[[], object]) -> None:
    """Wait for something that comes by itself."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def state_of(pid: int) -> str:
    """The letter that the system has for what a process does."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def listening_socket(port: int) -> str:
    """The socket of a port, as a process's list of open files names it."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    [inode] = [row[9] for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "0A"]
    return f"socket:[{inode}]"


def is_accepting(pid: int, socket: str) -> bool:
    """Whether a process waits for connections. It has the socket from its first moment on, and asks the system to be
    told of connections when everything else is up: one that is stopped before may hold the lock under which a memory
    is made."""
    files = {link.name: os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    polls = [Path(f"/proc/{pid}/fdinfo/{name}").read_text() for name, file in files.items() if "eventpoll" in file]
    watched = {line.split()[1] for poll in polls for line in poll.splitlines() if line.startswith("tfd:")}
    return any(files[name] == socket for name in watched & files.keys())


def are_up(server: Served) -> bool:
    """Whether both workers take connections, and do nothing."""
    socket = listening_socket(server.port)
    try:
        workers = workers_of(server)
        return len(workers) == 2 and all(is_accepting(pid, socket) and state_of(pid) == "S" for pid in workers)
    except OSError:
        return False  # Something was closed while we looked.


def is_gone(pid: int) -> bool:
    try:
        return state_of(pid) == "Z"
    except OSError:
        return True


def alone(server: Served, worker: int, others: set[int], work: Callable[[], tuple[int, dict]]) -> tuple[int, dict]:
    """Let one of the workers do something, while the others stand still."""
    for other in others - {worker}:
        os.kill(other, signal.SIGSTOP)
    # A signal takes a moment, in which it could still take a connection, and keep it.
    until(lambda: all(state_of(other) == "T" for other in others - {worker}))
    try:
        return work()
    finally:
        for other in others - {worker}:
            os.kill(other, signal.SIGCONT)


@requirement("TEAM-11")
def test_a_conversation_goes_on_at_any_worker(model, store, tmp_path):
    """Each of them sees what the others have written, at once."""
    with served("--workers", "2", "--upstream", model, "--store", store, folder=tmp_path) as server:
        until(lambda: are_up(server))
        workers = workers_of(server)
        for turn, worker in enumerate([*workers, *workers], start=1):
            status, _ = alone(server, worker, workers, lambda: server.chat("Hello", conversation="trip"))
            assert status == 200
            _, shown = alone(server, worker, workers, lambda: server.ask("GET", "/v1/conversations/trip"))
            assert len(shown["messages"]) == 2 * turn, f"worker {worker} does not see what the other has written"
        assert server.end(signal.SIGTERM) == 0
        assert all(is_gone(worker) for worker in workers)


@requirement("TEAM-11")
def test_a_worker_that_dies_is_replaced_and_nobody_is_turned_away(model, store, tmp_path):
    """The port stays open, and what was written is there."""
    with served("--workers", "2", "--upstream", model, "--store", store, folder=tmp_path) as server:
        until(lambda: len(workers_of(server)) == 2)
        assert server.chat("Hello", conversation="trip")[0] == 200
        before = workers_of(server)
        os.kill(min(before), signal.SIGKILL)
        assert server.chat("Hello", conversation="trip")[0] == 200
        until(lambda: len(workers_of(server) - before) == 1 and len(workers_of(server)) == 2)
        assert len(server.ask("GET", "/v1/conversations/trip")[1]["messages"]) == 4
        assert server.end(signal.SIGTERM) == 0


@requirement("TEAM-11")
def test_workers_do_not_outlive_the_one_that_started_them(model, tmp_path):
    """Killed without a word, it must not leave processes behind that hold the port."""
    store = f"sqlite:///{tmp_path}/a.db"
    with served("--workers", "2", "--upstream", model, "--store", store, folder=tmp_path) as server:
        until(lambda: len(workers_of(server)) == 2)
        workers = workers_of(server)
        server.end(signal.SIGKILL)
        until(lambda: all(is_gone(worker) for worker in workers))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--store", "memory:"], "a store in memory is not shared by several processes"),
        (["--store", "postgresql://127.0.0.1:1/work", "--host", "0.0.0.0"], "the server does not answer"),
        (["--store", "sqlite:///a.db", "--host", "0.0.0.0"], "there is no token to keep them out"),
    ],
)
def test_what_keeps_one_from_serving_keeps_all_from_it(arguments, words, tmp_path):
    """In words, and once for all of them: not started again for ever."""
    home = {"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    done = run_warm(["serve", "--port", "0", "--workers", "2", *arguments], tmp_path, home)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr


STRUCK = """
import os, signal, socket, sys
from lastword.commands.serve import Workers

fork, struck = os.fork, {"worker": [True, False], "first": [False, True]}[sys.argv[1]]

def fork_and_strike():
    child = fork()
    if struck[bool(child)]:
        os.kill(os.getpid(), signal.SIGTERM)
    struck[1] = True  # the first one at the next fork, if it comes to that
    return child

def serve(sock, number, lifeline):
    signal.pause()
    return 0

os.fork = fork_and_strike
sys.exit(Workers(socket.socket(), serve).run(1))
"""


@pytest.mark.parametrize("who", ["worker", "first"])
def test_a_signal_in_the_moment_of_a_fork_is_not_lost(who):
    """A worker would carry out the handler of the first process, and the first would not know of the worker yet."""
    done = run_python("-c", STRUCK, who, cwd=Path("/"), loads=["lastword.commands.serve"])
    assert done.returncode == 0, done.stderr
