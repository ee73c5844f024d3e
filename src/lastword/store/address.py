"""From the address of a store to the store: `memory:`, `sqlite:///file`, `postgresql://…`. Nothing is opened here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from lastword.errors import StoreError
from lastword.lazily import load_later
from lastword.store.contract import Store
from lastword.store.memory import MemoryStore
from lastword.store.postgres_address import PostgresAddress, is_postgres
from lastword.store.private_files import DEFAULT_FILE, data_folder
from lastword.store.sqlite import SqliteStore

# Few have it, and it takes longer to load than all the rest.
_postgres = load_later("lastword.store.postgres")

_ADDRESSES = (
    "an address is memory:, sqlite:///FILE (a fourth slash begins an absolute path) "
    "or postgresql://USER@HOST/DATABASE?store=NAME"
)


class StoreAddress:
    """The address of a store, as somebody wrote it down."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._scheme, self._colon, self._rest = text.partition(":")

    def __str__(self) -> str:
        """As it may be printed."""
        return PostgresAddress(self._text).shown if is_postgres(self._text) else self._without_user()

    @property
    def holds_password(self) -> bool:
        """Whether a password stands in it, for everybody to read who sees it."""
        return is_postgres(self._text) and PostgresAddress(self._text).has_password

    @property
    def is_whole(self) -> bool:
        """Whether it means the same in every folder."""
        return self.meant_in(Path("/one")) == self.meant_in(Path("/another"))

    def meant_in(self, folder: Path) -> str:
        """What it means in a file of this folder: a path in it that is not whole begins there."""
        path = self._rest.removeprefix("///")
        if self._scheme.lower() != "sqlite" or path in (self._rest, "", ":memory:"):
            return self._text
        return f"{self._scheme}:///{folder / Path(path).expanduser()}"

    def open(self) -> Store:
        """The store. It connects when it is first used, so a wrong file is reported then."""
        shown = self._without_user()
        if not self._colon or not re.fullmatch(r"[a-z][a-z0-9+]*", self._scheme, re.ASCII | re.IGNORECASE):
            raise StoreError(f"{shown!r} is not the address of a store", hint=f"did you mean sqlite:///{shown}?")
        match self._scheme.lower():
            case "memory" if self._rest in ("", "//"):
                return MemoryStore()
            case "sqlite":
                return SqliteStore(self._file())
            case "postgresql" | "postgres" | "postgresql+asyncpg":
                opened: Store = _postgres.PostgresStore(self._text)
                return opened
        raise StoreError(f"{shown!r} is not the address of a store", hint=_ADDRESSES)

    def _file(self) -> Path:
        path = self._rest.removeprefix("///")
        if path == self._rest or not path or path == ":memory:" or "?" in path or "\0" in path:
            hint = "for a store that leaves no trace, use memory:" if path == ":memory:" else _ADDRESSES
            raise StoreError(f"{self._without_user()!r} names no file", hint=hint)
        return Path(path).expanduser()

    def _without_user(self) -> str:
        """Without the user and password that may be in it."""
        return re.sub(r"//[^/]*@", "//…@", self._text)


def open_store(address: str) -> Store:
    """The store at an address. It connects when it is first used, so a wrong file is reported then."""
    return StoreAddress(address).open()


def default_path(platform: str, environment: Mapping[str, str], home: PurePath) -> Path:
    """Where the store is when nobody says otherwise: `sys.platform`, `os.environ`, `Path.home()` decide."""
    return data_folder(platform, environment, home) / DEFAULT_FILE
