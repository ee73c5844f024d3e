"""The way to a PostgreSQL server: one thread with a loop of its own, its connections, and words for what can go wrong.

The driver is asyncpg, whose connections live on one loop; a store is used from any thread and any loop. So whatever
touches a connection runs here, and whoever wants something waits for it on their own side. No other module imports
asyncpg, and the types that it does not bring along are here.
"""

from __future__ import annotations

import asyncio
import ssl
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from lastword.errors import StoreError
from lastword.lazily import brought_by

if TYPE_CHECKING:
    from lastword.store.address import PostgresAddress

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


# How long a server may take to let us in, and to answer one question. A question is an index look-up or a page.
CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
# How long to wait for another process that writes. Its commits take milliseconds.
BUSY_SECONDS = 10.0
# A process that stops in the middle of a commit keeps all others waiting. The server ends its session after this long.
IDLE_SECONDS = 5.0
# Questions that are asked at once. Each costs the server a process, and what is asked is short.
MAX_READERS = 4

T = TypeVar("T")


class Away(StoreError):
    """The server does not answer at this moment. It may in the next."""


def _settings() -> dict[str, str]:
    return {
        "synchronous_commit": "on",
        "lock_timeout": f"{int(BUSY_SECONDS * 1000)}",
        "idle_in_transaction_session_timeout": f"{int(IDLE_SECONDS * 1000)}",
        "statement_timeout": "0",
        "transaction_timeout": "0",
        # The lifeline says nothing for hours, and must not be ended for that.
        "idle_session_timeout": "0",
        "default_transaction_isolation": "read committed",
        # Every question of ours has an index that fits. Without statistics, as after a restore, a server might not see
        # it.
        "enable_seqscan": "off",
        # What ended long ago is passed over once, and marked in the index as it is. A bitmap would meet it every time.
        "enable_bitmapscan": "off",
        "jit": "off",
        # A machine that vanishes without a word is noticed after a quarter of a minute, and its locks are free then.
        "tcp_keepalives_idle": "5",
        "tcp_keepalives_interval": "5",
        "tcp_keepalives_count": "2",
    }


# Said when a session has begun: a pooler lets nobody in who comes with such wishes. An older server does not know all
# of them. And an operator may ask for a commit that waits for more than one disk, never for one that waits for less.
_BEGIN = """
SELECT pg_backend_pid() || ' ' || (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()),
       count(set_config(name, setting, false))
FROM unnest($1::text[], $2::text[]) AS wanted (name, setting)
WHERE current_setting(name, true) IS NOT NULL
  AND (name <> 'synchronous_commit' OR current_setting(name) IN ('off', 'local'))
"""


class PostgresLink:
    """The thread, and the connections on its loop. Whoever makes it is the first user; the last ends it."""

    def __init__(self, address: PostgresAddress, prepare: Callable[[Connection, str, str], Awaitable[None]]) -> None:
        self.address = address
        self._prepare = prepare
        self._loop = asyncio.new_event_loop()
        self._idle: list[Connection] = []
        # Who serves each of our sessions: two that stand at the same time are not served by one.
        self._sessions: WeakKeyDictionary[Connection, str] = WeakKeyDictionary()
        self._readers = asyncio.Semaphore(MAX_READERS)
        self.is_prepared = False
        """Whether the store was found or made there, and is ours."""
        self._users = 1
        self._lock = Lock()
        self._thread = Thread(target=self._run, name="lastword-postgres", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin some work on the loop here. The result is waited for on the other side."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def ask(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for work that is done there, on the loop of whoever asks."""
        return await asyncio.wrap_future(self.start(work))

    def join(self) -> bool:
        """Need the link, from now on until `leave`. False when it has ended."""
        with self._lock:
            self._users += self._users > 0
            return self._users > 0

    def leave(self) -> None:
        """Need it no more. The last one to leave ends the thread and every connection."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in (left := asyncio.all_tasks(self._loop)):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.run_until_complete(self._end())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    async def _end(self) -> None:
        for connection in self._idle:
            await end(connection)
        # A transport says good-bye in the turn after it was closed.
        await asyncio.sleep(0)

    # From here on, on the loop.

    async def connect(self, purpose: str) -> Connection:
        """A connection. Raises StoreError in words."""
        try:
            connection = await connect(
                self.address.reveal(),
                timeout=CONNECT_SECONDS,
                command_timeout=ANSWER_SECONDS,
                ssl=ssl.create_default_context() if self.address.must_be_proven else None,
                server_settings={"application_name": f"lastword {purpose}"},
            )
        except NOT_CONNECTED as problem:
            # Not `from` the problem: its frames hold the password.
            raise explain(problem, self.address.shown) from None
        try:
            await self._begin(connection)
            await self._prepare(connection, self.address.schema, self.address.shown)
        except BaseException as problem:
            connection.terminate()
            if isinstance(problem, FAILED):
                raise explain(problem, self.address.shown) from problem
            raise
        self.is_prepared = True
        return connection

    async def _begin(self, connection: Connection) -> None:
        settings = _settings()
        session, _ = await connection.fetchrow(_BEGIN, list(settings), list(settings.values()))
        if session in (kept for other, kept in self._sessions.items() if not other.is_closed()):
            raise _shared(self.address.shown)
        self._sessions[connection] = session

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Connection]:
        """A connection to ask with. One on which something failed is not used again."""
        async with self._readers:
            connection = None
            while self._idle and (connection is None or connection.is_closed()):
                connection = self._idle.pop()
            if connection is None or connection.is_closed():
                connection = await self.connect("reading")
            try:
                yield connection
            except BaseException:
                connection.terminate()
                raise
            self._idle.append(connection)

    async def look(self, question: Callable[[Connection], Awaitable[T]]) -> T:
        """Ask something that changes nothing; once more when the connection was gone, as after a restart."""
        for is_last in (False, True):
            try:
                async with self.reader() as connection:
                    return await question(connection)
            except LOST as problem:
                if is_last:
                    raise explain(problem, self.address.shown) from problem
                # What ended one session has likely ended all of them, and not each has been noticed yet.
                while self._idle:
                    self._idle.pop().terminate()
            except PostgresError as problem:
                raise explain(problem, self.address.shown) from problem
        raise AssertionError


def channel(schema: str) -> str:
    """Where it is said that something was written. Channels belong to a database, and a store to a schema."""
    return f"lastword_{schema}"[:63]


async def end(connection: Connection) -> None:
    """Close a connection, in order if the server answers at once."""
    with suppress(*FAILED):
        async with asyncio.timeout(1):
            await connection.close()
    if not connection.is_closed():
        connection.terminate()


def _shared(place: str) -> StoreError:
    return StoreError(
        "a pooler in between gives one session of the server to several of ours",
        place=place,
        hint="let it run in session mode (pool_mode = session), or name the server itself",
    )


def explain(problem: Exception, place: str) -> StoreError:
    """What went wrong with the server, and what to do about it. Words of the server are passed on, never an address."""
    if isinstance(problem, StoreError):
        return type(problem)(problem.fact, place=problem.place, hint=problem.hint)
    if isinstance(problem, WrongUser):
        fact = "the server refused the user or the password"
        hint = "check both; PGPASSWORD is looked at, and ~/.pgpass if nobody but you can read it (chmod 600)"
    elif isinstance(problem, NOT_OUR_SESSION):
        return _shared(place)
    elif isinstance(problem, NoSuchDatabase):
        fact, hint = "there is no such database", "make it: createdb NAME"
    elif isinstance(problem, InsufficientPrivilege):
        fact = f"this role may not do that ({_words(problem)})"
        hint = "its owner gives the rights: lastword journal grant ROLE"
    elif isinstance(problem, ReadOnly):
        fact, hint = "the server takes no writes: it is a replica, or was told so", "name the primary server"
    elif isinstance(problem, LockNotAvailable):
        fact = f"another process has been writing to it for more than {BUSY_SECONDS:g} seconds"
        hint = "end the other process, or wait for it and try again"
    elif isinstance(problem, TooManyConnections):
        fact, hint = "the server has no room for another connection", "raise max_connections, or start fewer processes"
    elif isinstance(problem, DiskFull):
        fact, hint = "the disk of the server is full", "make room and try again"
    elif isinstance(problem, (ssl.SSLError, Misconfigured)) or "SSL" in str(problem):
        fact = f"no protected connection could be made ({_words(problem)})"
        hint = "name who vouches for the server, sslmode=verify-full&sslrootcert=FILE; sslmode=disable does without"
    elif isinstance(problem, LOST):
        return Away(
            f"the server does not answer ({_words(problem)})",
            place=place,
            hint="check that it runs and can be reached; nothing that needs it happens meanwhile",
        )
    elif isinstance(problem, ValueError):
        # The driver's words would repeat a part of the address.
        fact, hint = "the address cannot be used", "an address is postgresql://USER@HOST:PORT/DATABASE?store=NAME"
    else:
        fact, hint = f"the server refused: {_words(problem)}", "its own log says more"
    return StoreError(fact, place=place, hint=hint)


def _words(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "it took too long"
    if isinstance(problem, PostgresError):
        return str(problem.args[0]) if problem.args else type(problem).__name__
    if isinstance(problem, OSError):
        return problem.strerror or str(problem)
    return str(problem).partition("\n")[0]
