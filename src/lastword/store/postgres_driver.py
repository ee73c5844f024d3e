"""asyncpg, as far as it is used here: the one module that imports it, and the types that it does not bring along."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from lastword.errors import StoreError
from lastword.lazily import brought_by

with brought_by("postgres", "asyncpg"):
    import asyncpg


# The driver says this on stderr, to nobody. We say it where a password is refused.
warnings.filterwarnings("ignore", "password file .* permissions should be", UserWarning)


class Connection(Protocol):
    """A session at the server. It answers one question at a time."""

    async def execute(self, query: str, *args: object) -> str: ...

    async def fetch(self, query: str, *args: object) -> list[Any]: ...

    async def fetchrow(self, query: str, *args: object) -> Any: ...

    async def fetchval(self, query: str, *args: object) -> Any: ...

    def transaction(self) -> AbstractAsyncContextManager[object]: ...

    async def add_listener(self, channel: str, callback: Callable[..., None]) -> None: ...

    def add_termination_listener(self, callback: Callable[..., None]) -> None: ...

    async def close(self) -> None: ...

    def terminate(self) -> None: ...

    def is_closed(self) -> bool: ...


async def connect(address: str, **options: Any) -> Connection:
    """A new session. Raises what LOST names, PostgresError and ValueError."""
    connection: Connection = await asyncpg.connect(address, **options)
    return connection


PostgresError: type[Exception] = asyncpg.PostgresError
InsufficientPrivilege: type[Exception] = asyncpg.InsufficientPrivilegeError
WrongUser: type[Exception] = asyncpg.InvalidAuthorizationSpecificationError
NoSuchDatabase: type[Exception] = asyncpg.InvalidCatalogNameError
ReadOnly: type[Exception] = asyncpg.ReadOnlySQLTransactionError
LockNotAvailable: type[Exception] = asyncpg.LockNotAvailableError
TooManyConnections: type[Exception] = asyncpg.TooManyConnectionsError
DiskFull: type[Exception] = asyncpg.DiskFullError
Misconfigured: type[Exception] = asyncpg.exceptions.ClientConfigurationError

NO_SUCH_TABLE: tuple[type[Exception], ...] = (
    asyncpg.UndefinedTableError,
    asyncpg.InvalidSchemaNameError,
    asyncpg.UndefinedColumnError,
)
NOT_OUR_SESSION: tuple[type[Exception], ...] = (
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)
"""What a server says where somebody in between changes sessions behind our back."""
OVERTAKEN = "LW001"
"""What our own function raises where another process took over."""


def code_of(problem: BaseException) -> str | None:
    """The server's code for an error of its own."""
    found: str | None = getattr(problem, "sqlstate", None)
    return found


LOST: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # What the driver says of a session that ended between two questions.
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""What is raised where the connection is gone. What was sent last may have arrived or not."""
FAILED: tuple[type[Exception], ...] = (*LOST, PostgresError)
"""Whatever the server and the way to it can do to us."""
IN_WORDS: tuple[type[Exception], ...] = (*FAILED, StoreError)
"""The same, also where it was put into words already."""
NOT_CONNECTED: tuple[type[Exception], ...] = (*FAILED, ssl.SSLError, ValueError)
