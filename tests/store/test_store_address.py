"""Addresses are typed by people, into flags and settings."""

import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from lastword.errors import StoreError
from lastword.store.address import PostgresAddress, StoreAddress
from lastword.store.memory import MemoryStore
from lastword.store.postgres import PostgresStore
from lastword.store.sqlite import SqliteStore


def test_the_address_decides_the_store(tmp_path, monkeypatch):
    """Three slashes and a path, relative or absolute, as everywhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert isinstance(StoreAddress("memory:").open(), MemoryStore)
    for address, path in {
        "sqlite:///journal.db": tmp_path / "journal.db",
        "sqlite:////var/lib/journal.db": Path("/var/lib/journal.db"),
        "SQLite:///~/journal.db": Path("/home/somebody/journal.db"),
        f"sqlite:///{tmp_path}/a b.db": tmp_path / "a b.db",
    }.items():
        store = StoreAddress(address).open()
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
        ("memory:somewhere", "an address is memory:, sqlite:///FILE"),
        ("mysql://host/db", "an address is memory:, sqlite:///FILE"),
        ("postgresql:host/db", "postgresql://USER@HOST:PORT/DATABASE?store=NAME"),
        ("postgresql://host:port/db", "this is not the address of a PostgreSQL server"),
        ("postgresql://host/db?store=", "'' is no name for a store"),
        ("postgresql://host/db?store=Team", "'Team' is no name for a store"),
        ("postgresql://host/db?store=public", "'public' is no name for a store"),
        ("postgresql://host/db?store=a;drop", "is no name for a store"),
        (f"postgresql://host/db?store={'a' * 64}", "is no name for a store"),
        ("postgresql://host/db?synchronous_commit=off", "synchronous_commit is not for an address to set"),
        ("postgresql://host/db?options=-csynchronous_commit%3Doff", "options is not for an address to set"),
    ],
)
def test_a_wrong_address_gets_words(address, words):
    """Each says what to type instead."""
    with pytest.raises(StoreError) as caught:
        StoreAddress(address).open()
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "postgrseql://admin:hunter2@host/db",
        "mysql://admin:hunter2@host/db",
        "post gres://admin:hunter2@host/db",
        "postgresql://admin:hunter2@host:port/db",
        "postgresql://admin:hunter2@host/db?store=No",
        "postgresql://admin:hunter2@host/db?role=postgres",
        "postgresql://admin:hunter2@[::1/db",
    ],
)
def test_a_password_in_an_address_is_not_repeated(address):
    """Errors end up in logs and bug reports."""
    with pytest.raises(StoreError) as caught:
        StoreAddress(address).open()
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://ann:hunter2@db.example:6000/work?store=team", "postgresql://db.example:6000/work?store=team"),
        ("postgres://ann@DB.example/work?password=hunter2", "postgresql://db.example/work?store=lastword"),
        ("postgresql+asyncpg://127.0.0.1/work?sslmode=disable", "postgresql://127.0.0.1/work?store=lastword"),
        ("postgresql:///work?host=/run/postgresql&store=a_1", "postgresql:///run/postgresql/work?store=a_1"),
    ],
)
def test_the_address_of_a_server_is_shown_without_who_comes_and_with_what(address, shown):
    """It is the place of every error, and the name under which a machine keeps what it saw of the store."""
    store = StoreAddress(address).open()
    assert isinstance(store, PostgresStore)
    assert store.address.shown == shown
    assert "hunter2" not in repr(vars(store)) + repr(store.address)
    assert StoreAddress(address).holds_password == ("hunter2" in address)


@pytest.mark.parametrize(
    ("address", "is_proven"),
    [
        ("postgresql://db.example/work", True),
        ("postgresql://10.0.0.5/work", True),
        ("postgresql://127.0.0.1,db.example/work", True),
        ("postgresql://db.example/work?sslmode=disable", False),
        ("postgresql://localhost/work", False),
        ("postgresql://[::1]:5432/work", False),
        ("postgresql:///work?host=/run/postgresql", False),
    ],
)
def test_beyond_this_machine_a_server_has_to_prove_itself_unless_somebody_says_otherwise(address, is_proven):
    """Whoever stands in between could answer cards, so nobody comes there by leaving a word out."""
    assert PostgresAddress(address, {}).must_be_proven == is_proven
    assert not PostgresAddress(address, {"PGSSLMODE": "prefer"}).must_be_proven


def test_a_server_that_a_file_names_has_to_prove_itself():
    """The driver looks into a file of services. Where that leads is not in sight, so it is not taken for near."""
    with pytest.raises(StoreError, match="service is not for an address to set"):
        PostgresAddress("postgresql:///work?service=production", {})
    environment = {"PGSERVICE": "production"}
    assert PostgresAddress("postgresql:///work", environment).must_be_proven
    assert not PostgresAddress("postgresql://localhost/work", environment).must_be_proven
    assert not PostgresAddress("postgresql:///work?host=/run/postgresql", environment).must_be_proven


def test_the_store_of_many_is_not_loaded_for_one(tmp_path):
    """It takes as long as all the rest, and few have it installed."""
    program = (
        "import sys; from lastword.store.address import StoreAddress; StoreAddress('memory:').open(); "
        "sys.exit('asyncpg' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_missing_driver_says_what_to_install():
    """Somebody who installed lastword alone gets one line that they can copy."""
    program = """
import sys
sys.modules["asyncpg"] = None
from lastword.errors import LastWordError
from lastword.store.address import StoreAddress
try:
    StoreAddress("postgresql://host/db").open()
except LastWordError as problem:
    sys.exit(0 if "pip install 'lastword[postgres]'" in str(problem) else str(problem))
"""
    subprocess.run([sys.executable, "-c", program], check=True)
