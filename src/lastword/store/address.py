"""From the address of a store to the store: `memory:`, `sqlite:///file`. Nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from lastword.errors import StoreError
from lastword.store import Store
from lastword.store.folders import data_folder
from lastword.store.memory import MemoryStore
from lastword.store.sqlite import SqliteStore

_ADDRESSES = "an address is memory: or sqlite:///FILE (a fourth slash begins an absolute path)"


def open_store(address: str) -> Store:
    """The store at an address. It connects when it is first used, so a wrong file is reported then."""
    scheme, colon, rest = address.partition(":")
    if not colon or not re.fullmatch(r"[a-z][a-z0-9+]*", scheme, re.ASCII | re.IGNORECASE):
        raise StoreError(
            f"{_shown(address)!r} is not the address of a store", hint=f"did you mean sqlite:///{_shown(address)}?"
        )
    match scheme.lower():
        case "memory" if rest in ("", "//"):
            return MemoryStore()
        case "sqlite":
            return SqliteStore(_file_named(address, rest))
        case "postgresql" | "postgres" | "postgresql+asyncpg":
            raise StoreError(
                "a store in PostgreSQL is not built yet", hint="use a file of one machine for now: sqlite:///FILE"
            )
    raise StoreError(f"{_shown(address)!r} is not the address of a store", hint=_ADDRESSES)


def default_path(platform: str, environment: Mapping[str, str], home: PurePath) -> Path:
    """Where the store is when nobody says otherwise: `sys.platform`, `os.environ`, `Path.home()` decide."""
    return data_folder(platform, environment, home) / "lastword.db"


def _file_named(address: str, rest: str) -> Path:
    path = rest.removeprefix("///")
    if path == rest or not path or path == ":memory:" or "?" in path or "\0" in path:
        hint = "for a store that leaves no trace, use memory:" if path == ":memory:" else _ADDRESSES
        raise StoreError(f"{_shown(address)!r} names no file", hint=hint)
    return Path(path).expanduser()


def _shown(address: str) -> str:
    """An address without the user and password that may be in it."""
    return re.sub(r"//[^/]*@", "//…@", address)
