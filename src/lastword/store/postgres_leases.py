"""What a process holds in PostgreSQL while it lives, and what it hears there: names, and that something was written.

Both hang on one session, the lifeline. It holds a lock with the number of this process, which the server lets go of
when the session ends; and the names are rows with that number. Whoever takes a name from a number whose lock is free
marks that number as lost, in the same step, and every append of this process is checked against the mark: one that
was cut off, or stopped and woken again, writes nothing once somebody has taken over from it. If nobody has, it comes
back to all it held.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from lastword.errors import Overtaken, StoreError
from lastword.store.postgres_connection import FAILED, IN_WORDS, Connection, PostgresLink, channel, end, explain

# Between two attempts to come back to a server that is away.
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 1.0
# How long whoever wants a name waits for a server that is away. The caller's loop stands still meanwhile.
PATIENCE_SECONDS = 5.0
# How long our own last session may keep its lock after it was ended.
RETURN_SECONDS = 5.0
# How often the lifeline is tried, and how long it may take to answer. One that a network forgot without a word looks as
# if it stood: nothing is heard through it, and the server lets go of what it held.
BEAT_SECONDS = 5.0
# A number of ours has at most this many digits. Anybody at the database can say something longer.
MAX_DIGITS = 19

log = logging.getLogger("lastword")

T = TypeVar("T")


class PostgresLeases:
    """The lifeline of one store object."""

    def __init__(self, link: PostgresLink, wake: Callable[[], None], heard: Callable[[int], None]) -> None:
        self._link = link
        self._wake = wake
        self._heard = heard
        self._schema = f'"{link.address.schema}"'
        self._lock = Lock()
        self._count = 0
        self.id: int | None = None
        """The number under which names are held; None before the first."""
        self.is_lost = False
        """Whether somebody has taken over. It stays so."""
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None
        # Set while the lifeline stands, and when it could not be had: whoever waits is told at once.
        self._known = asyncio.Event()
        self._problem: Exception | None = None
        self._using = asyncio.Lock()
        # Names that are held here, or just being asked for. The server's word about them may have been lost on its way.
        self._mine: set[bytes] = set()
        # Names that were let go of here, and the server could not be told. It goes on holding them for us.
        self._left: set[bytes] = set()
        self._leaving = asyncio.Lock()

    def hold(self, name: str) -> Callable[[], None] | None:
        """Hold a name until the returned function is called. Waits for the server, in any thread but the link's."""
        if not self._await(self._take(name.encode())):
            return None
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._link.join()
        return lambda: self._release(name)

    def is_held(self, name: str) -> bool:
        """Whether somebody holds a name. Nobody is taken for dead by this."""
        return bool(self._await(self._held([name.encode()])))

    def watch(self) -> None:
        """Listen to what is written from now on."""
        if self._task is None:
            self._link.start(self._begin())

    def _release(self, name: str) -> None:
        self._await(self._let_go(name.encode()))
        with self._lock:
            self._count -= 1
            if not self._count:
                self._link.leave()

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return self._link.start(work).result()

    # From here on, on the loop of the link.

    async def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._live())

    async def _take(self, name: bytes) -> bool:
        await self._begin()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS), self._using:
                await self._known.wait()
                if self._connection is None:
                    raise self._problem or ConnectionResetError("it is being reached again")
                if self.id is None:
                    number: int = await self._connection.fetchval(f"SELECT {self._schema}.new_owner()")
                    await self._keep_lock(self._connection, number)
                    self.id = number
        except FAILED as problem:
            raise explain(problem, self._link.address.shown) from problem
        if name in self._mine:
            return False
        self._mine.add(name)
        try:
            if name in self._left:
                await self._say_left()
            answer = "again"
            while answer == "again":
                answer = await self._link.look(
                    lambda reader: reader.fetchval(f"SELECT {self._schema}.take($1, $2)", self.id, name)
                )
        except BaseException:
            # Whether it was taken is not known. If it was, it is let go of before anybody asks again.
            self._left.add(name)
            self._mine.discard(name)
            raise
        # Ours although it was not held here: it was asked for twice, since the first answer never came.
        is_taken = answer in ("taken", "ours")
        if not is_taken:
            self._mine.discard(name)
        if answer == "lost":
            self.is_lost = True
            raise Overtaken(
                "this program was cut off from the server, and another took over what it was doing",
                place=self._link.address.shown,
                hint="start it again",
            )
        return is_taken

    async def _let_go(self, name: bytes) -> None:
        """Let go of a name, now or as soon as the server is back: nobody waits here for one that is away."""
        self._mine.discard(name)
        self._left.add(name)
        if self._connection is not None:
            with suppress(StoreError):
                await self._say_left()

    async def _say_left(self) -> None:
        # One at a time: a word that comes late must not let go of a name that was taken again.
        async with self._leaving:
            if left := list(self._left):
                sql = f"SELECT {self._schema}.let_go($1, $2)"
                await self._link.look(lambda reader: reader.execute(sql, self.id, left))
                self._left.difference_update(left)

    async def _held(self, names: Iterable[bytes]) -> set[bytes]:
        found = await self._link.look(lambda reader: reader.fetch(f"SELECT {self._schema}.held($1)", list(names)))
        return {row[0] for row in found}

    async def _live(self) -> None:
        """Keep the lifeline, for as long as the link stands."""
        pause = FIRST_PAUSE_SECONDS
        connection: Connection | None = None
        try:
            while True:
                try:
                    connection = await self._link.connect("waiting")
                    ended = asyncio.Event()
                    connection.add_termination_listener(lambda _, ended=ended: ended.set())
                    if self.id is not None:
                        await self._keep_lock(connection, self.id)
                    await connection.add_listener(channel(self._link.address.schema), self._hear)
                except IN_WORDS as problem:
                    if connection is not None:
                        connection.terminate()
                        connection = None
                    if pause == FIRST_PAUSE_SECONDS:
                        log.warning("the journal cannot be heard now: %s", problem)
                    self._problem = problem
                    self._known.set()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                    continue
                pause = FIRST_PAUSE_SECONDS
                self._connection, self._problem = connection, None
                self._known.set()
                self._wake()  # Whatever was written while nobody listened is looked for.
                with suppress(StoreError):
                    await self._say_left()
                while not await _comes(ended, BEAT_SECONDS):
                    if not await self._beats(connection):
                        connection.terminate()
                        break
                self._known.clear()
                self._connection = None
        finally:
            if connection is not None:
                if self.id is not None and not connection.is_closed():
                    with suppress(*FAILED):
                        async with asyncio.timeout(1):
                            await connection.execute(f"SELECT {self._schema}.leave($1)", self.id)
                await end(connection)

    async def _beats(self, connection: Connection) -> bool:
        try:
            async with self._using, asyncio.timeout(BEAT_SECONDS):
                await connection.fetchval("SELECT 1")
        except FAILED:
            return False
        return True

    async def _keep_lock(self, connection: Connection, number: int) -> None:
        """Hold the lock of this number. A session of ours that the server still believes in is ended."""
        # The server cuts these names after 63 bytes, and lists them for all of its databases together.
        ours = f"lastword owner {number} {self._link.address.schema}"[:63]
        sql = f"SELECT pg_try_advisory_lock('{self._schema}.owners'::regclass::oid::int4, $1)"
        async with asyncio.timeout(RETURN_SECONDS):
            while not await connection.fetchval(sql, number):
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE application_name = $1 AND usename = current_user AND datname = current_database() "
                    "AND pid <> pg_backend_pid()",
                    ours,
                )
                await asyncio.sleep(FIRST_PAUSE_SECONDS)
        await connection.execute("SELECT set_config('application_name', $1, false)", ours)

    def _hear(self, connection: object, process: int, name: str, last: str) -> None:
        # A hint, which anybody at the database could give: whoever is woken looks for themselves.
        if last.isdecimal() and len(last) <= MAX_DIGITS:
            self._heard(int(last))


async def _comes(event: asyncio.Event, seconds: float) -> bool:
    """Whether something happens within so many seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()
