"""The guard: where it reaches, where it ends, and that it is only there while it watches."""

import asyncio
import contextlib
import contextvars
import importlib
import io
import mmap
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.errors import NotAllowedNow
from lastword.store import refuse_if_watched
from lastword.tools.guard import Guard
from lastword.tools.guard.audit_hook import _WRITING
from requirements import requirement
from tries import tries


@requirement("TOOL-42")
def test_the_guard_is_only_there_while_it_watches(tmp_path: Path):
    """Before and after, the same code does the same thing."""
    guard = Guard("a test")
    (tmp_path / "before").write_text("x")
    with guard.watching(), pytest.raises(NotAllowedNow) as refusal:
        (tmp_path / "during").write_text("x")
    (tmp_path / "after").write_text("x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "before"]
    assert guard.violations == [f"write {tmp_path / 'during'}"]
    assert str(refusal.value).startswith(f"a test tried to write {tmp_path / 'during'}")
    assert "after primary_confirmed" in str(refusal.value)


@requirement("TOOL-42")
@tries()
@given(
    st.integers(0, 2**20).filter(lambda flags: flags & _WRITING), st.sampled_from(["wb", "a", "x", "r+", "w+", "rb+"])
)
def test_every_way_to_open_for_writing_is_refused(flags, mode):
    """By mode and by flags; the event is raised before the file is touched."""
    path = "/nonexistent/lastword-guard-test"
    for attempt in (lambda: os.open(path, flags), lambda: io.FileIO(path, mode)):
        guard = Guard("a test")
        with guard.watching(), pytest.raises(NotAllowedNow):
            attempt()
        assert guard.violations == [f"write {path}"]


@requirement("TOOL-42")
def test_reading_and_the_null_device_are_free(tmp_path: Path):
    """Looking is no effect, and what nobody keeps is none either."""
    (tmp_path / "a").write_text("x")
    guard = Guard("a test")
    with guard.watching():
        assert (tmp_path / "a").read_text() == "x"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]
        with Path(os.devnull).open("w") as nowhere:
            nowhere.write("x")
        os.close(os.open(tmp_path / "a", os.O_RDONLY))
    assert guard.violations == []


@requirement("TOOL-42", "TOOL-56")
def test_databases_and_maps_can_be_read(tmp_path: Path):
    """As long as they are opened for nothing else."""
    path = tmp_path / "a.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE t AS SELECT 42 AS a")
    guard = Guard("a test")
    with guard.watching():
        for uri in (f"file:{path}?mode=ro", f"file:{path}?cache=private&mode=ro#?mode=rw"):
            with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
                assert database.execute("WITH b AS (SELECT a FROM t) SELECT abs(a) FROM b").fetchall() == [(42,)]
                assert database.execute("PRAGMA table_info(t)").fetchone()[1] == "a"
        with contextlib.closing(sqlite3.dbapi2.connect(uri, uri=True)):
            pass
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", 1, 0, None, True, sqlite3.Connection, 9, True)):
            pass
        with contextlib.closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as other:
            assert other.execute("SELECT a FROM t").get == 42
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            assert mapped[:6] == b"SQLite"
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as copied:
            copied[:6] = b"forged"
        with mmap.mmap(-1, 10) as nobodys:
            nobodys.write(b"x")
    assert guard.violations == []
    assert path.read_bytes().startswith(b"SQLite")


@requirement("TOOL-56")
def test_databases_are_as_they_were_where_nobody_watches(tmp_path: Path):
    """A wrapped function is the function, for everybody else."""
    with contextlib.closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("ATTACH ? AS b", (str(tmp_path / "b.db"),))
        database.execute("CREATE TABLE b.t (a)")
    with contextlib.closing(apsw.Connection(str(tmp_path / "c.db"))) as other:
        other.execute("CREATE TABLE t (a)")
    assert isinstance(other, apsw.Connection)
    assert len(list(tmp_path.iterdir())) == 3


# A module that is imported for the first time while the guard watches, and an effect by what it has.
FIRST_IMPORTS = {
    "apsw": "apsw.Connection(path)",
    "sqlite3": "sqlite3.connect(path)",
    "ssl": "ssl.SSLSocket.write(None, b'x')",
    "_posixshmem": "_posixshmem.shm_open('/lastword-test', 66)",
    "concurrent.futures.thread": "concurrent.futures.thread.ThreadPoolExecutor().submit(int)",
    "concurrent.futures.process": "concurrent.futures.process.ProcessPoolExecutor().submit(int)",
}


@requirement("TOOL-56")
@pytest.mark.parametrize("module", FIRST_IMPORTS)
def test_a_module_imported_under_the_guard_is_wrapped_before_anybody_has_it(tmp_path: Path, module: str):
    """Nobody loads them in advance, so the tool may be the first."""
    program = f"""
import sys
from lastword.errors import NotAllowedNow
from lastword.tools.guard import Guard
assert {module!r} not in sys.modules
path = {str(tmp_path / "a.db")!r}
with Guard("a test").watching():
    import {module}
    try:
        {FIRST_IMPORTS[module]}
    except NotAllowedNow as problem:
        print(problem.fact)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.startswith("a test tried to")
    assert list(tmp_path.iterdir()) == []


@requirement("TOOL-56")
def test_a_module_that_is_not_there_is_missing_as_ever():
    """Loading it in the tool's name must not change what the tool sees; and once it is there it is watched."""
    program = """
import sys
from lastword.errors import NotAllowedNow
from lastword.tools.guard import Guard
everything = sys.path[:]
sys.path[:] = [path for path in sys.path if not path.endswith("site-packages")]
for path in (sys.path[:], sys.path[:], everything):
    sys.path[:] = path
    with Guard("a test").watching():
        try:
            import apsw
            apsw.Connection(":memory:")
        except (ModuleNotFoundError, NotAllowedNow) as problem:
            print(type(problem).__name__)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.split() == ["ModuleNotFoundError", "ModuleNotFoundError", "NotAllowedNow"]


@requirement("TOOL-56")
def test_what_is_wrapped_still_says_what_it_can_do():
    """Programs ask `os` what they may pass to a function, by the function."""
    assert os.mkfifo in os.supports_dir_fd
    assert os.mkfifo.__name__ == "mkfifo"
    assert os.mkfifo.__doc__


@requirement("TOOL-42")
def test_a_loop_that_tries_for_ever_fills_no_memory():
    """An author needs the first few attempts."""
    guard = Guard("a test")
    with guard.watching():
        for _ in range(1000):
            with contextlib.suppress(NotAllowedNow):
                os.chdir("/")
    assert guard.violations == ["change the current folder"] * 100


@requirement("TOOL-42")
async def test_the_guard_watches_its_own_task_and_no_other(tmp_path: Path):
    """Two calls at once: one draws its card, the other acts."""
    guard = Guard("a test")
    watching, written = asyncio.Event(), asyncio.Event()

    async def look() -> None:
        with guard.watching():
            watching.set()
            await written.wait()

    async def act() -> None:
        await watching.wait()
        (tmp_path / "a").write_text("x")
        written.set()

    await asyncio.gather(look(), act())
    assert guard.violations == []
    assert (tmp_path / "a").exists()


@requirement("TOOL-42")
async def test_the_guard_goes_with_the_context_into_threads(tmp_path: Path):
    """asyncio.to_thread and our own threads copy the context; a thread cannot be started."""
    guard = Guard("a test")
    await asyncio.to_thread(lambda: None)  # a thread that is there already
    with guard.watching():
        context = contextvars.copy_context()
        with pytest.raises(NotAllowedNow):
            await asyncio.to_thread((tmp_path / "a").touch)
        with pytest.raises(NotAllowedNow, match="start a thread"):
            threading.Thread(target=print).start()
    with pytest.raises(NotAllowedNow):
        context.run((tmp_path / "a").write_text, "x")
    assert list(tmp_path.iterdir()) == []


@requirement("TOOL-42")
def test_an_inner_guard_ends_and_the_outer_one_stays():
    """Nothing that is nested opens what is around it."""
    outer, inner = Guard("outer"), Guard("inner")
    with outer.watching():
        with inner.watching(), pytest.raises(NotAllowedNow, match="inner tried to act"):
            refuse_if_watched("act")
        with pytest.raises(NotAllowedNow, match="outer tried to act"):
            refuse_if_watched("act")
    refuse_if_watched("act")
    assert (outer.violations, inner.violations) == (["act"], ["act"])


@requirement("TOOL-42")
@pytest.mark.parametrize("elsewhere", [False, True], ids=["beside the module", "in a folder of their own"])
def test_the_import_system_may_keep_its_byte_code(tmp_path: Path, monkeypatch, elsewhere: bool):
    """Importing is looking. Where the byte code goes is Python's business."""
    name = f"freshly_written_{elsewhere}"
    (tmp_path / f"{name}.py").write_text("ANSWER = 42")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept" / "here") if elsewhere else None)
    guard = Guard("a test")
    with guard.watching():
        assert importlib.import_module(name).ANSWER == 42
    assert guard.violations == []
    assert len(list(tmp_path.rglob("*.pyc"))) == 1


@requirement("TOOL-42", "TOOL-56")
def test_only_the_import_systems_own_steps_may_touch_a_cache(tmp_path: Path):
    """A folder's name is no licence: neither for what lies in it, nor for a path that only passes through it."""
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    (cache / "m.pyc").write_bytes(b"x")
    before = sorted(tmp_path.rglob("*"))
    guard = Guard("a test")
    with guard.watching():
        for attempt in (
            lambda: (tmp_path / "__pycache__" / "__pycache__").mkdir(),
            lambda: (cache / "m.pyc.123").write_bytes(b"x"),
            lambda: (cache / "m.pyc").rename(cache / "n.pyc"),
            lambda: (cache / "m.pyc").unlink(),
            lambda: os.open(f"{cache}/../stolen.pyc", os.O_CREAT | os.O_WRONLY),
            lambda: (tmp_path / "my__pycache__.txt").write_text("x"),
            lambda: (cache / "m.pyc").rename(tmp_path / "stolen"),
            lambda: os.system("true # /__pycache__/"),
            lambda: (cache / "m.pyc").chmod(0o777),
            lambda: subprocess.run([str(cache / "tool")], check=False),
        ):
            with pytest.raises(NotAllowedNow):
                attempt()
    assert len(guard.violations) == 10
    assert sorted(tmp_path.rglob("*")) == before
