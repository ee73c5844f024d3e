"""Every route by which a request function could act, and may not."""

import _posixsubprocess
import _thread
import atexit
import concurrent.futures
import contextlib
import ctypes
import fcntl
import http.client
import io
import json
import logging
import mmap
import multiprocessing
import multiprocessing.shared_memory
import os
import posix
import pty
import readline
import resource
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import syslog
import tempfile
import threading
import time
import urllib.request
import webbrowser
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
from stage import REFUSED, Act, Stage, descriptor_of, refused, simple, step

from lastword import Preset
from lastword.consent import ALLOWED, Outcome, People
from lastword.store import Entry, Head, MemoryStore
from lastword.store.chain import GENESIS

__all__ = ["REFUSED"]

# Files.

simple(
    "write",
    open_for_writing=lambda s: s.target.open("w"),
    open_for_appending=lambda s: s.target.open("a"),
    open_for_exclusive_creation=lambda s: s.target.open("x"),
    open_for_both=lambda s: s.there.open("r+"),
    os_open=lambda s: os.open(s.target, os.O_CREAT | os.O_WRONLY),
    os_open_without_a_name=lambda s: os.open(s.folder, getattr(os, "O_TMPFILE", os.O_CREAT) | os.O_RDWR),
    a_raw_file=lambda s: io.FileIO(os.fsencode(s.target), "w"),
    a_history=lambda s: readline.write_history_file(s.target),
    an_archive=lambda s: zipfile.ZipFile(s.target, "w"),
    a_log=lambda s: logging.FileHandler(s.target),
    a_disguised_cache=lambda s: s.target.with_name("__pycache__.txt").open("w"),
    in_a_cache=lambda s: (s.there.parent / "__pycache__" / "m.pyc").open("w"),
    through_a_cache=lambda s: open(f"{s.there.parent}/__pycache__/../effect.pyc", "w"),  # noqa: SIM115
)
simple("delete a file", remove=lambda s: s.there.unlink(), os_remove=lambda s: os.remove(s.there))
simple(
    "rename a file",
    rename=lambda s: s.there.rename(s.target),
    replace=lambda s: os.replace(s.there, s.target),
    out_of_a_cache=lambda s: os.rename(s.there.parent / "__pycache__" / "m.pyc", s.target),
)
simple("make a folder", mkdir=lambda s: s.target.mkdir(), makedirs=lambda s: os.makedirs(s.target / "deep"))
simple("remove a folder", rmdir=lambda s: s.there.parent.rmdir())
simple("link a file", symlink=lambda s: s.target.symlink_to(s.there), link=lambda s: s.target.hardlink_to(s.there))
simple("cut a file", truncate=lambda s: os.truncate(s.there, 0))
simple("change a file's mode", chmod=lambda s: s.there.chmod(0o777))
simple(
    "change a file's owner",
    chown=lambda s: os.chown(s.there, os.getuid(), os.getgid()),
    lchown=lambda s: os.lchown(s.there, os.getuid(), os.getgid()),
)
simple("change a file's times", utime=lambda s: os.utime(s.there, (1, 1)), touch=lambda s: s.target.touch())
if hasattr(os, "setxattr"):
    simple(
        "change a file's attributes",
        setxattr=lambda s: os.setxattr(s.there, "user.lastword", b"x"),
        removexattr=lambda s: os.removexattr(s.there, "user.lastword"),
    )
if hasattr(os, "chflags"):
    simple("change a file's flags", chflags=lambda s: os.chflags(s.there, 1))  # type: ignore[attr-defined,unused-ignore]
simple(
    "move or copy files",
    copy=lambda s: shutil.copy(s.there, s.target),
    move=lambda s: shutil.move(s.there, s.target),
    rmtree=lambda s: shutil.rmtree(s.there.parent),
)
simple(
    "make a temporary file",
    mkstemp=lambda s: tempfile.mkstemp(dir=s.folder),
    mkdtemp=lambda s: tempfile.mkdtemp(dir=s.folder),
)
simple("make a pipe", mkfifo=lambda s: os.mkfifo(s.target), mkfifo_of_posix=lambda s: posix.mkfifo(s.target))
simple("make a special file", mknod=lambda s: os.mknod(s.target))
simple("change the mode of files to come", umask=lambda s: os.umask(0o77))


@refused("cut a file")
def _ftruncate(stage: Stage) -> Iterator[Act]:
    descriptor = descriptor_of(stage.there, os.O_RDWR)
    yield lambda: os.ftruncate(descriptor, 0)
    os.close(descriptor)


@refused("change a file's mode")
def _fchmod(stage: Stage) -> Iterator[Act]:
    descriptor = descriptor_of(stage.there, os.O_RDONLY)
    yield lambda: os.fchmod(descriptor, 0o777)
    os.close(descriptor)


@refused("lock a file")
def _flock(stage: Stage) -> Iterator[Act]:
    descriptor, other = (descriptor_of(stage.there, os.O_RDWR) for _ in range(2))
    yield lambda: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
    os.close(other)


@refused("lock a file")
def _lockf(stage: Stage) -> Iterator[Act]:
    descriptor = descriptor_of(stage.there, os.O_RDWR)
    yield lambda: fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)


@refused("lock a file")
def _os_lockf(stage: Stage) -> Iterator[Act]:
    descriptor = descriptor_of(stage.there, os.O_RDWR)
    yield lambda: os.lockf(descriptor, os.F_TLOCK, 0)
    os.close(descriptor)


@refused("control a device")
def _ioctl(stage: Stage) -> Iterator[Act]:
    ours, theirs = pty.openpty()
    yield lambda: fcntl.ioctl(theirs, 0x5412, b"y")  # TIOCSTI: a key that nobody pressed
    os.close(ours)
    os.close(theirs)


@refused("map a file for writing")
def _map(stage: Stage) -> Iterator[Act]:
    descriptor = descriptor_of(stage.there, os.O_RDWR)
    yield lambda: mmap.mmap(descriptor, 0).write(b"forged")
    os.close(descriptor)


@refused("share memory")
def _shared_memory(stage: Stage) -> Iterator[Act]:
    name = f"lastword-{os.getpid()}"
    yield lambda: multiprocessing.shared_memory.SharedMemory(name, create=True, size=1)
    assert not Path("/dev/shm", name).exists()


@refused("share memory")
def _unlink_shared_memory(stage: Stage) -> Iterator[Act]:
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=1)
    yield memory.unlink
    memory.unlink()
    memory.close()


# Processes, threads and interpreters.


def raw_fork_exec(path: Path) -> None:
    """As `subprocess` itself does it, of which nobody is told."""
    pipe = os.pipe()
    arguments: list[Any] = [[b"touch", os.fsencode(path)], [b"/usr/bin/touch", b"/bin/touch"], True, (pipe[1],)]
    arguments += [None, None, -1, -1, -1, -1, -1, -1, *pipe, False, False, -1, None, None, None, -1, None, False]
    try:
        _posixsubprocess.fork_exec(*arguments)
    finally:
        os.close(pipe[1])
        os.read(pipe[0], 1)
        os.close(pipe[0])


simple(
    "run a program",
    subprocess=lambda s: subprocess.run(["touch", str(s.target)], check=True),
    popen=lambda s: os.popen(f"touch {s.target}"),
    posix_spawn=lambda s: os.posix_spawn("/bin/sh", ["sh", "-c", f"touch {s.target}"], {}),
    posix_spawnp=lambda s: os.posix_spawnp("sh", ["sh", "-c", f"touch {s.target}"], {}),
    exec=lambda s: os.execv("/bin/false", ["false"]),
)
simple("run a command", system=lambda s: os.system(f"touch {s.target}"))
simple(
    "start a process",
    fork=lambda s: os.fork() or os._exit.__wrapped__(0),  # type: ignore[attr-defined]
    forkpty=lambda s: os.forkpty()[0] or os._exit.__wrapped__(0),  # type: ignore[attr-defined]
    pty=lambda s: pty.spawn(["touch", str(s.target)]),
    spawnv=lambda s: os.spawnv(os.P_NOWAIT, "/bin/true", ["true"]),
    raw_fork_exec=lambda s: raw_fork_exec(s.target),
    multiprocessing_fork=lambda s: multiprocessing.get_context("fork").Process(target=int).start(),
    multiprocessing_spawn=lambda s: multiprocessing.get_context("spawn").Process(target=int).start(),
)
simple(
    "signal a process",
    kill=lambda s: os.kill(os.getpid(), 0),
    killpg=lambda s: os.killpg(os.getpgrp(), 0),
    raise_signal=lambda s: signal.raise_signal(signal.SIGWINCH),
)
simple("signal a thread", pthread_kill=lambda s: signal.pthread_kill(threading.get_ident(), 0))
simple(
    "start a thread",
    thread=lambda s: threading.Thread(target=s.target.touch).start(),
    timer=lambda s: threading.Timer(0, s.target.touch).start(),
    raw_thread=lambda s: _thread.start_new_thread(s.target.touch, ()),
    raw_thread_by_its_old_name=lambda s: _thread.start_new(s.target.touch, ()),
)
if hasattr(signal, "pidfd_send_signal") and hasattr(os, "pidfd_open"):

    @refused("signal a process")
    def _pidfd_send_signal(stage: Stage) -> Iterator[Act]:
        descriptor = os.pidfd_open(os.getpid())
        yield lambda: signal.pidfd_send_signal(descriptor, 0)  # type: ignore[attr-defined]
        os.close(descriptor)


@refused("give work to a thread")
def _a_pool_of_threads(stage: Stage) -> Iterator[Act]:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # The thread is there, and has a context of its own.
        yield lambda: pool.submit(stage.target.touch)


@refused("give work to a thread")
def _the_executor_of_the_sessions_loop(stage: Stage) -> Iterator[Act]:
    yield lambda: stage.loop.run_in_executor(None, stage.target.touch)


@refused("give work to a process")
def _a_pool_of_processes(stage: Stage) -> Iterator[Act]:
    pool = concurrent.futures.ProcessPoolExecutor(1)
    yield lambda: pool.submit(stage.target.touch)
    pool.shutdown()


if sys.version_info < (3, 12):

    @refused("start an interpreter")
    def _another_interpreter(stage: Stage) -> Iterator[Act]:
        import _xxsubinterpreters as interpreters

        yield lambda: interpreters.run_string(interpreters.create(), f"open({str(stage.target)!r}, 'w')")


# The network.

simple(
    "use the network",
    a_socket=lambda s: socket.socket().connect(("127.0.0.1", 9)),
    a_name_lookup=lambda s: socket.getaddrinfo("localhost", 80),
    urlopen=lambda s: urllib.request.urlopen("http://127.0.0.1:9"),
    a_new_http_connection=lambda s: http.client.HTTPConnection("127.0.0.1", 9).request("GET", "/"),
)


def over_sockets(send: Callable[[socket.socket, Stage], Any]) -> Callable[[Stage], Iterator[Act]]:
    def route(stage: Stage) -> Iterator[Act]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            yield lambda: send(ours, stage)
            theirs.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                assert theirs.recv(1) == b"", "something was sent"

    return route


for _name, _send in {
    "send on an open socket": lambda ours, stage: ours.send(b"x"),
    "sendall on an open socket": lambda ours, stage: ours.sendall(b"x"),
    "sendmsg on an open socket": lambda ours, stage: ours.sendmsg([b"x"]),
}.items():
    REFUSED[_name] = (contextmanager(over_sockets(_send)), "use the network")


@refused("use the network")
def _sendfile_on_an_open_socket(stage: Stage) -> Iterator[Act]:
    ours, theirs = socket.socketpair()
    with ours, theirs, stage.there.open("rb") as file:
        yield lambda: ours.sendfile(file)
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert theirs.recv(1) == b"", "something was sent"


@refused("use the network")
def _a_file_of_an_open_socket(stage: Stage) -> Iterator[Act]:
    ours, theirs = socket.socketpair()
    with ours, theirs, ours.makefile("wb", 0) as file:
        yield lambda: file.write(b"x")
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert theirs.recv(1) == b"", "something was sent"


@refused("use the network")
def _sendto(stage: Stage) -> Iterator[Act]:
    with socket.socket(type=socket.SOCK_DGRAM) as ours, socket.socket(type=socket.SOCK_DGRAM) as theirs:
        theirs.bind(("127.0.0.1", 0))
        yield lambda: ours.sendto(b"x", theirs.getsockname())
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            assert theirs.recv(1) == b"", "something was sent"


class Wire:
    """Stands in the place of a socket, as adapters for pipes and unix sockets do. No socket of Python's sends here."""

    sent = b""

    def sendall(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        pass


@refused("use the network")
def _a_request_on_an_open_http_connection(stage: Stage) -> Iterator[Act]:
    connection = http.client.HTTPConnection("127.0.0.1", 9)
    connection.sock = wire = Wire()  # type: ignore[assignment]
    yield lambda: connection.request("POST", "/pay", b"x")
    assert wire.sent == b""


def encrypted() -> tuple[ssl.SSLSocket, ssl.SSLSocket]:
    """Two ends of an encrypted connection, without certificates."""
    ends = socket.socketpair()
    contexts = [ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)]
    for context in contexts:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("aNULL:@SECLEVEL=0")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        server = pool.submit(contexts[0].wrap_socket, ends[0], True)
        client = contexts[1].wrap_socket(ends[1])
        return client, server.result()


def over_encrypted(send: Callable[[ssl.SSLSocket], Any]) -> Callable[[Stage], Iterator[Act]]:
    def route(stage: Stage) -> Iterator[Act]:
        ours, theirs = encrypted()
        with ours, theirs:
            yield lambda: send(ours)
            theirs.setblocking(False)
            with contextlib.suppress(ssl.SSLWantReadError):
                assert theirs.recv(1) == b"", "something was sent"

    return route


for _name, _send_encrypted in {
    "send on an encrypted connection": lambda ours: ours.send(b"x"),
    "sendall on an encrypted connection": lambda ours: ours.sendall(b"x"),
    "write on an encrypted connection": lambda ours: ours.write(b"x"),
}.items():
    REFUSED[_name] = (contextmanager(over_encrypted(_send_encrypted)), "use the network")


# Databases.

simple(
    "open a database",
    a_database_of_sqlite=lambda s: sqlite3.connect(s.target),
    a_database_that_is_there=lambda s: sqlite3.connect(s.database).execute("INSERT INTO notes VALUES (1)"),
    a_database_with_mode_ro_in_its_name=lambda s: sqlite3.connect(s.folder / "mode=ro.db"),
    a_database_whose_mode_is_in_the_fragment=lambda s: sqlite3.connect(f"file:{s.target}#?mode=ro", uri=True),
    a_database_whose_name_is_no_uri=lambda s: sqlite3.connect(f"{s.target}?mode=ro", uri=True),
    a_database_whose_uri_is_a_name=lambda s: sqlite3.connect(f"file:{s.database}?mode=ro"),
    a_database_by_the_other_module=lambda s: sqlite3.dbapi2.connect(s.target),
    a_database_by_its_class=lambda s: sqlite3.Connection(str(s.target)),
    a_database_of_apsw=lambda s: apsw.Connection(str(s.target)),
    a_database_of_apsw_that_is_there=lambda s: apsw.Connection(str(s.database)).execute("DELETE FROM notes"),
    a_database_of_apsw_with_its_flags=lambda s: apsw.Connection(str(s.target), apsw.SQLITE_OPEN_READWRITE),
)


def reading(stage: Stage) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{stage.database}?mode=ro", uri=True)


def reading_by_apsw(stage: Stage) -> apsw.Connection:
    return apsw.Connection(str(stage.database), flags=apsw.SQLITE_OPEN_READONLY)


def statement(connect: Callable[[Stage], Any], sql: str) -> Callable[[Stage], Any]:
    def act(stage: Stage) -> None:
        with contextlib.closing(connect(stage)) as connection:
            connection.execute(sql.format(path=stage.target))

    return act


simple(
    "attach another database",
    attach=statement(reading, "ATTACH '{path}' AS other"),
    vacuum_into=statement(reading, "VACUUM INTO '{path}'"),
    attach_by_apsw=statement(reading_by_apsw, "ATTACH '{path}' AS other"),
    vacuum_into_by_apsw=statement(reading_by_apsw, "VACUUM INTO '{path}'"),
)
simple(
    "change a database",
    insert=statement(reading, "INSERT INTO notes VALUES (1)"),
    delete_by_apsw=statement(reading_by_apsw, "DELETE FROM notes"),
)
if hasattr(sqlite3.Connection, "enable_load_extension"):

    @refused("extend a database")
    def _enable_load_extension(stage: Stage) -> Iterator[Act]:
        with contextlib.closing(sqlite3.connect(stage.database)) as connection:
            yield lambda: connection.enable_load_extension(True)


# The process itself.

simple(
    "change the environment",
    environment=lambda s: os.environ.__setitem__("LASTWORD_TEST", "1"),
    putenv=lambda s: os.putenv("LASTWORD_TEST", "1"),
    unsetenv=lambda s: os.environ.pop("PATH"),
)
simple("change the current folder", chdir=lambda s: os.chdir("/"))
simple("change a limit of the process", setrlimit=lambda s: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
if hasattr(resource, "prlimit"):
    simple("change a limit of a process", prlimit=lambda s: resource.prlimit(0, resource.RLIMIT_CORE, (0, 0)))
simple("handle a signal", signal_handler=lambda s: signal.signal(signal.SIGUSR1, signal.SIG_IGN))
simple(
    "set an alarm",
    alarm=lambda s: signal.alarm(1000),
    setitimer=lambda s: signal.setitimer(signal.ITIMER_REAL, 1000),
)
simple(
    "leave something for the end of the program",
    atexit_register=lambda s: atexit.register(s.target.touch),
    atexit_register_by_exec=lambda s: exec("import atexit; atexit.register(int)", {}),
)
simple("change what happens at the end of the program", atexit_unregister=lambda s: atexit.unregister(logging.shutdown))
simple(
    "follow the program's steps",
    setprofile=lambda s: sys.setprofile(lambda *step: s.target.touch()),
    settrace=lambda s: sys.settrace(lambda *step: s.target.touch()),
    addaudithook=lambda s: sys.addaudithook(lambda *event: None),
)
simple(
    "end the program",
    exit_at_once=lambda s: os._exit(0),
    abort=lambda s: os.abort(),
)
simple("reach outside Python", ctypes=lambda s: ctypes.CDLL(None))
simple("write to the system's log", syslog=lambda s: syslog.syslog("forged"))
simple("open a browser", browser=lambda s: webbrowser.GenericBrowser("true").open("http://127.0.0.1:9"))
simple("ask on the terminal", terminal=lambda s: input("password? "))


@refused("reach outside Python")
def _a_function_of_a_loaded_library(stage: Stage) -> Iterator[Act]:
    library = ctypes.CDLL(None)
    yield lambda: library.mkdir(os.fsencode(stage.target), 0o777)


# What lastword itself can do.

SCHEMA: dict[str, Any] = {"description": "d", "parameters": []}
simple(
    "set the state 'a'",
    set_state=lambda s: s.context.set_state("a", 1),
    set_state_of_the_session=lambda s: s.session.set_state("a", 1),
    set_state_of_the_registry=lambda s: s.registry.set_state("a", 1),
)
simple("clear the state", clear_state=lambda s: s.context.clear_state())
simple(
    "describe the state 'a'",
    describe_state=lambda s: s.context.register_state_metadata("a", {"description": "x"}),
)
simple(
    "call free",
    call=lambda s: step(s.session.call("free")),
    call_sync=lambda s: s.session.call_sync("free"),
)
simple("write into the journal", call_by_its_id=lambda s: step(s.session.call("free", call_id="mine")))
simple(
    "run a script",
    run_script=lambda s: step(s.session.run_script("CALL free {}")),
    run_script_sync=lambda s: s.session.run_script_sync("CALL free {}"),
    resume=lambda s: step(s.session.resume("x")),
)
simple("answer a card", answer=lambda s: s.session.answer(s.waiting_call, ALLOWED))
simple("cancel the call", cancel=lambda s: s.session.cancel(s.waiting_call))
simple("decide about the call x", resolve=lambda s: step(s.session.resolve("x", "done")))
simple("take back the call x", undo=lambda s: step(s.session.undo("x")))
simple("change the preset", preset=lambda s: setattr(s.session, "preset", Preset(auto_approve=True)))
simple("listen to the session", listen=lambda s: s.session.listen(lambda event: s.target.touch()))
simple(
    "close the session",
    close=lambda s: step(s.session.close()),
    close_sync=lambda s: s.session.close_sync(),
)
simple(
    "add a tool",
    register=lambda s: s.registry.register("forged", SCHEMA, print),
    add=lambda s: s.registry.add(s.registry.lookup("free")),
    decorate=lambda s: s.registry.tool(print_nothing),
)
simple("forget the tool free", unregister=lambda s: s.registry.unregister("free"))


def print_nothing() -> None:
    """Does nothing."""


OUTCOME = Outcome(kind="succeeded", message="forged", call_id="x", tool="send")
simple(
    "change the journal",
    clock_of_the_journal=lambda s: setattr(s.journal, "clock", lambda: 0.0),
    people_of_the_journal=lambda s: setattr(s.journal, "people", People()),
    store_of_the_journal=lambda s: setattr(s.journal, "store", MemoryStore()),
)
ENTRY = Entry("monday", "state_set", "", 0, b"{}")
simple(
    "write into the journal",
    append_to_the_store=lambda s: s.journal.store.append(ENTRY),
    commit_to_the_store=lambda s: step(s.journal.store.commit(ENTRY)),
    forget_in_the_store=lambda s: step(s.journal.store.forget([1])),
    accept_a_head_of_the_store=lambda s: step(s.journal.store.accept(Head(0, GENESIS))),
    hold_a_name_of_the_store=lambda s: s.journal.store.hold("x"),
    close_the_store=lambda s: step(s.journal.store.close()),
    note=lambda s: s.journal.note(s.session.id, "state_set", "", {"key": "a", "value": 1}),
    claim=lambda s: step(s.journal.claim(s.session.id, "run_started", "x", {}, "x")),
    journal_finished=lambda s: s.journal.finished(s.session.id, OUTCOME),
    journal_finished_freely=lambda s: s.journal.finished_freely(s.session.id, OUTCOME),
    holding=lambda s: s.journal.holding("call", "x").__enter__(),
    journal_close=lambda s: step(s.journal.close()),
    prune=lambda s: s.loop.is_running() and step(s.journal.prune(time.time() + 9)),
    journal_answer=lambda s: step(
        s.journal.answer(json.loads(s.session.pending()[0].written()), ALLOWED, "somebody else")
    ),
)
