"""From the address of a store to the store: `memory:`, `sqlite:///file`, `postgresql://…`. Nothing is opened here.

The one of a server is `postgresql://USER@HOST:PORT/DATABASE?store=NAME`, and what libpq knows besides: `sslmode`,
`sslrootcert`, `passfile`. What is missing comes from where every program of PostgreSQL looks: `PGHOST`, `PGPASSWORD`,
`~/.pgpass`. A password is kept where nothing prints it.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from lastword import store as stores
from lastword.errors import StoreError
from lastword.store.private_files import DEFAULT_FILE

_ADDRESSES = (
    "an address is memory:, sqlite:///FILE (a fourth slash begins an absolute path) "
    "or postgresql://USER@HOST/DATABASE?store=NAME"
)


class StoreAddress:
    """The address of a store, as somebody wrote it down."""

    DEFAULT_FILE = DEFAULT_FILE

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
    def is_memory(self) -> bool:
        """Whether what is kept there is gone when the program ends."""
        return self._scheme.lower() == "memory"

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

    def open(self) -> stores.Store:
        """The store. It connects when it is first used, so a wrong file is reported then."""
        # By the door, so that a driver is loaded by whoever opens such a store: the one of a server is the dearest.
        shown = self._without_user()
        if not self._colon or not re.fullmatch(r"[a-z][a-z0-9+]*", self._scheme, re.ASCII | re.IGNORECASE):
            raise StoreError(f"{shown!r} is not the address of a store", hint=f"did you mean sqlite:///{shown}?")
        match self._scheme.lower():
            case "memory" if self._rest in ("", "//"):
                return stores.MemoryStore()
            case "sqlite":
                return stores.SqliteStore(self._file())
            case "postgresql" | "postgres" | "postgresql+asyncpg":
                return stores.PostgresStore(self._text)
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


SCHEMES = ("postgresql", "postgres", "postgresql+asyncpg")
DEFAULT_STORE = "lastword"

# PostgreSQL cuts names after 63 bytes in silence, and two long ones would be one.
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}", re.ASCII)
_FORM = "postgresql://USER@HOST:PORT/DATABASE?store=NAME"
# These would make a commit return before it is durable, or change what our statements mean.
# And a service, whose file names the server, would hide from us where the way leads and whether it has to be proven.
_NOT_OURS_TO_SET = ("synchronous_commit", "search_path", "options", "default_transaction_read_only", "role", "service")


class PostgresAddress:
    """Where a store is. `shown` is fit for logs, errors and people; the rest is for the connection alone."""

    def __init__(self, address: str, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        parts = _split(address)
        options = parse_qsl(parts.query, keep_blank_values=True)
        names = [value for key, value in options if key == "store"]
        self.schema = names[-1] if names else DEFAULT_STORE
        if not _NAME.fullmatch(self.schema) or self.schema in ("public", "information_schema", "pg_catalog"):
            raise StoreError(
                f"{self.schema!r} is no name for a store", hint="small letters, digits and underscores, a letter first"
            )
        for key, _ in options:
            if key in _NOT_OURS_TO_SET:
                raise StoreError(f"{key} is not for an address to set", hint=f"an address is {_FORM}")
        rest = [(key, value) for key, value in options if key != "store"]
        self._dsn = parts._replace(scheme="postgresql", query=urlencode(rest)).geturl()
        host = _host(parts, dict(rest), environment)
        database = unquote(parts.path.removeprefix("/")) or environment.get("PGDATABASE", "")
        self.shown = f"postgresql://{host}/{database}?store={self.schema}"
        self.has_password = parts.password is not None or any(key == "password" for key, _ in rest)
        # Whoever reads or changes what passes here could answer cards. Outside of this machine nothing less than a
        # proven server is taken, unless somebody says so.
        is_said = "sslmode" in dict(rest) or "PGSSLMODE" in environment
        # Where a service names the server, it is not in sight how far away that is.
        names_host = parts.netloc.rpartition("@")[2] or dict(rest).get("host")
        # Nothing leaves this machine: a socket, or loopback. Of several servers, all of them.
        is_near = all(map(_is_loopback, host.split(","))) and bool(names_host or not environment.get("PGSERVICE"))
        self.must_be_proven = not is_said and not is_near

    def __repr__(self) -> str:
        return f"PostgresAddress({self.shown!r})"

    @property
    def digest(self) -> str:
        """A name for the files that a machine keeps of this store."""
        return sha256(self.shown.encode()).hexdigest()[:32]

    def reveal(self) -> str:
        """What the driver connects with. It may hold a password: it is passed on, and never kept or shown."""
        return self._dsn


def is_postgres(address: str) -> bool:
    """Whether an address means a PostgreSQL server."""
    return address.partition(":")[0].lower() in SCHEMES


def _split(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        if "," not in parts.netloc:  # Several servers have a port each.
            _ = parts.port
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if parts.scheme.lower() not in SCHEMES or not address[len(parts.scheme) :].startswith("://") or parts.fragment:
        # The words of the parser would repeat what it was given, and a password may be in it.
        raise StoreError("this is not the address of a PostgreSQL server", hint=f"an address is {_FORM}")
    return parts


def _host(parts: SplitResult, options: Mapping[str, str], environment: Mapping[str, str]) -> str:
    named = parts.netloc.rpartition("@")[2]
    if not named:
        named = options.get("host") or environment.get("PGHOST", "localhost")
        port = options.get("port") or environment.get("PGPORT", "")
        named = f"{named}:{port}" if port else named
    return unquote(named).lower()


def _is_loopback(host: str) -> bool:
    if host.startswith("/"):
        return True
    name = re.sub(r":[0-9]*$", "", host).strip("[]")
    if name in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
