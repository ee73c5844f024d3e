"""The guard: where it reaches, where it ends, and that it is only there while it watches."""

import asyncio
import contextvars
import importlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.errors import NotAllowedNow
from lastword.tools.guard import _WRITING, Guard, refuse_if_watched
from requirements import requirement


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
@settings(deadline=None, max_examples=100)
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
