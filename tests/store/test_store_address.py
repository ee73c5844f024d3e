"""Addresses are typed by people, into flags and settings."""

from pathlib import Path

import pytest

from lastword.errors import StoreError
from lastword.store.address import default_path, open_store
from lastword.store.memory import MemoryStore
from lastword.store.sqlite import SqliteStore


def test_the_address_decides_the_store(tmp_path, monkeypatch):
    """Three slashes and a path, relative or absolute, as everywhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert isinstance(open_store("memory:"), MemoryStore)
    for address, path in {
        "sqlite:///journal.db": tmp_path / "journal.db",
        "sqlite:////var/lib/journal.db": Path("/var/lib/journal.db"),
        "SQLite:///~/journal.db": Path("/home/somebody/journal.db"),
        f"sqlite:///{tmp_path}/a b.db": tmp_path / "a b.db",
    }.items():
        store = open_store(address)
        assert isinstance(store, SqliteStore)
        assert store.path == path
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "did you mean sqlite:///?"),
        ("journal.db", "did you mean sqlite:///journal.db?"),
        ("/var/journal.db", "did you mean sqlite:////var/journal.db?"),
        ("sqlite://journal.db", "names no file"),
        ("sqlite:journal.db", "names no file"),
        ("sqlite:///", "names no file"),
        ("sqlite:///journal.db?mode=ro", "names no file"),
        ("sqlite:///:memory:", "use memory:"),
        ("memory:somewhere", "an address is memory: or sqlite:///FILE"),
        ("mysql://host/db", "an address is memory: or sqlite:///FILE"),
        ("postgresql://host/db", "PostgreSQL is not built yet"),
        ("postgres://host/db", "PostgreSQL is not built yet"),
    ],
)
def test_a_wrong_address_gets_words(address, words):
    """Each says what to type instead."""
    with pytest.raises(StoreError) as caught:
        open_store(address)
    assert words in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgresql", "postgrseql", "mysql", "post gres"])
def test_a_password_in_an_address_is_not_repeated(scheme):
    """Errors end up in logs and bug reports."""
    with pytest.raises(StoreError) as caught:
        open_store(f"{scheme}://admin:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_the_default_file_is_in_the_users_data_folder():
    """Where each system keeps such things; a relative XDG path is to be ignored."""
    home = Path("/home/somebody")
    assert default_path("linux", {}, home) == home / ".local/share/lastword/lastword.db"
    assert default_path("linux", {"XDG_DATA_HOME": "/data"}, home) == Path("/data/lastword/lastword.db")
    assert default_path("linux", {"XDG_DATA_HOME": "data"}, home) == home / ".local/share/lastword/lastword.db"
    assert (
        default_path("darwin", {"XDG_DATA_HOME": "/data"}, home)
        == home / "Library/Application Support/lastword/lastword.db"
    )
