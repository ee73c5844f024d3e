"""From the address of a store to the store: `memory:`, `sqlite:///file`, `postgresql://…`. Nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from lastword.errors import ConfigError, StoreError
from lastword.lazily import load_later
from lastword.store.contract import Store
from lastword.store.folders import DEFAULT_FILE, data_folder
from lastword.store.memory import MemoryStore
from lastword.store.postgres_address import PostgresAddress, holds_password, is_postgres
from lastword.store.sqlite import SqliteStore

# Few have it, and it takes longer to load than all the rest.
_postgres = load_later("lastword.store.postgres")

_ADDRESSES = (
    "an address is memory:, sqlite:///FILE (a fourth slash begins an absolute path) "
    "or postgresql://USER@HOST/DATABASE?store=NAME"
)


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
            opened: Store = _postgres.PostgresStore(address)
            return opened
    raise StoreError(f"{_shown(address)!r} is not the address of a store", hint=_ADDRESSES)


def from_folder(address: str, folder: Path) -> str:
    """An address as it is meant in a file of this folder: a path in it that is not whole begins there."""
    scheme, _, rest = address.partition(":")
    path = rest.removeprefix("///")
    if scheme.lower() != "sqlite" or path in (rest, "", ":memory:"):
        return address
    return f"{scheme}:///{folder / Path(path).expanduser()}"


def is_whole(address: str) -> bool:
    """Whether it means the same in every folder."""
    return from_folder(address, Path("/one")) == from_folder(address, Path("/another"))


def check_flag(address: str | None) -> str | None:
    """Refuse an address with a password in it that was typed on a command line: everybody can list those."""
    if address is not None and holds_password(address):
        raise ConfigError(
            "a password on the command line can be read by everybody on this machine",
            place="--store",
            hint="put it into ~/.pgpass, PGPASSWORD or LASTWORD_STORE, and leave it out of the address",
        )
    return address


def shown(address: str) -> str:
    """An address as it may be printed."""
    return PostgresAddress(address).shown if is_postgres(address) else _shown(address)


def default_path(platform: str, environment: Mapping[str, str], home: PurePath) -> Path:
    """Where the store is when nobody says otherwise: `sys.platform`, `os.environ`, `Path.home()` decide."""
    return data_folder(platform, environment, home) / DEFAULT_FILE


def _file_named(address: str, rest: str) -> Path:
    path = rest.removeprefix("///")
    if path == rest or not path or path == ":memory:" or "?" in path or "\0" in path:
        hint = "for a store that leaves no trace, use memory:" if path == ":memory:" else _ADDRESSES
        raise StoreError(f"{_shown(address)!r} names no file", hint=hint)
    return Path(path).expanduser()


def _shown(address: str) -> str:
    """An address without the user and password that may be in it."""
    return re.sub(r"//[^/]*@", "//…@", address)
