"""The folder of the journal is its owner's alone, whichever part of the program makes it first."""

import errno
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lastword.journal import open_default_journal
from lastword.mcp import sealing_key
from lastword.store.memory import MemoryStore
from lastword.store.private_files import data_folder
from lastword.terminal.composer import open_history
from lastword.tools import ToolFolder, Trust
from lastword.tools.trust import read_no_caches
from lastword.web import JoinFile, PageGate


def here() -> Path:
    return data_folder(platform="linux")


def publish_a_key() -> None:
    with JoinFile(here() / "open", "http://localhost:1", PageGate(MemoryStore()), Path("/")).published():
        pass


FIRST: dict[str, Callable[[], object]] = {
    "a name is held": lambda: open_default_journal().store.hold("run"),
    "byte code": read_no_caches,
    "what was typed": lambda: open_history(here() / "typed" / "history"),
    "a key to the page": publish_a_key,
    "trusted code": lambda: Trust().remember(ToolFolder(Path(__file__).parent)),
}


@pytest.mark.parametrize("first", FIRST)
def test_whatever_makes_the_folder_first_makes_it_private(first: str, tmp_path: Path, monkeypatch):
    """`mkdir` with parents gives the ones above the mode that the umask leaves: everybody could list the journal."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share" / "data"))
    monkeypatch.delenv("LASTWORD_STORE", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(sys, "pycache_prefix", None)
    before = os.umask(0o022)
    try:
        FIRST[first]()
    finally:
        os.umask(before)
    for folder in (here(), here().parent, here().parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_a_key_that_could_not_be_kept_lies_nowhere(tmp_path: Path, monkeypatch):
    """On a file system that knows no links: another name for it would be as good as the key."""

    def refuse(*names: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(PermissionError):
        sealing_key(tmp_path / "mcp_key")
    assert list(tmp_path.iterdir()) == []


def test_the_default_file_is_in_the_users_data_folder(monkeypatch):
    """Where each system keeps such things; a relative XDG path is to be ignored."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("LASTWORD_STORE", raising=False)
    home = Path("/home/somebody")
    for system, environment, folder in (
        ("linux", {}, home / ".local/share/lastword"),
        ("linux", {"XDG_DATA_HOME": "/data"}, Path("/data/lastword")),
        ("linux", {"XDG_DATA_HOME": "data"}, home / ".local/share/lastword"),
        ("darwin", {"XDG_DATA_HOME": "/data"}, home / "Library/Application Support/lastword"),
    ):
        assert data_folder(environment, platform=system, home=home) == folder
    assert open_default_journal().store.files[0] == here() / "lastword.db"
