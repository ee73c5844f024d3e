"""The connection that writes to PostgreSQL: one transaction at a time, chained inside it. Knows nothing of queues.

The end of the chain is one row, which `begin_append` locks until the commit: whoever comes meanwhile waits, and goes on
from there. Every commit carries a key. A COMMIT whose answer never came may still have happened, or may even be
happening: the key is looked up behind the same lock, so the question has one answer, and nothing is written twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lastword.store.chain import GENESIS, NAMED_BY_DATA, Head, Overtaken, Pruned, StoreError, not_held
from lastword.store.ledger import APPLIED, Applied, Batch, InDoubt, StoreChange, of_a_later_version
from lastword.store.postgres_connection import (
    FAILED,
    IN_WORDS,
    LOST,
    OVERTAKEN,
    Away,
    Connection,
    PostgresError,
    PostgresLink,
    code_of,
    end,
    explain,
)

if TYPE_CHECKING:
    from lastword.store.head_file import PostgresKnownHead
    from lastword.store.postgres_leases import PostgresLeases

# How long a COMMIT may take. Where it waits for a replica that is away, it must not be called off: the server would
# then say that it happened.
COMMIT_SECONDS = 30.0

# How often to try the commit in one step, where others write too, before the end of the chain is held for it.
GUESSES = 2

_GONE = [kind.encode() for kind in sorted(NAMED_BY_DATA)]


class PostgresLedger:
    """The server, reached on first use."""

    # A hint comes at once; this is for the one that is lost.
    poll_seconds = 1.0

    def __init__(self, link: PostgresLink, leases: PostgresLeases, known_head: PostgresKnownHead, form: int) -> None:
        self.link = link
        self._form = form
        self.leases = leases
        self._known_head = known_head
        self._schema = f'"{link.address.schema}"'
        self._connection: Connection | None = None
        self._expected = Head(0, GENESIS)
        self._key = uuid4()

    @property
    def is_open(self) -> bool:
        return self.link.is_prepared

    @property
    def place(self) -> str:
        return self.link.address.shown

    def write(self, changes: Sequence[StoreChange]) -> list[Applied | StoreError]:
        return self.link.start(self._write(changes)).result()

    def happened(self) -> bool:
        return self.link.start(self._happened()).result()

    def keep_head(self) -> None:
        self._known_head.keep(self._expected)

    def last_seq(self) -> int | None:
        try:
            return self.link.start(self.link.look(self._look)).result()
        except Away:
            return None  # Whoever waits goes on waiting: the lifeline comes back when the server does, and wakes them.

    def in_words(self, problem: Exception) -> StoreError | None:
        return explain(problem, self.place) if isinstance(problem, FAILED) else None

    def close(self) -> None:
        if self._connection is not None:
            self.link.start(end(self._connection)).result()
        self.link.leave()

    # From here on, on the loop of the link.

    async def _look(self, connection: Connection) -> int:
        found: int = await connection.fetchval(f"SELECT seq FROM {self._schema}.head")
        return found

    async def _open(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self.link.connect("writing")
        return self._connection

    def _drop(self) -> None:
        """Give a connection up on which something failed. What it had begun ends with it."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _write(self, changes: Sequence[StoreChange]) -> list[Applied | StoreError]:
        connection = await self._open()
        if all(change.is_empty for change in changes):
            return [APPLIED] * len(changes)
        for _ in range(GUESSES):
            results, is_only_behind = await self._guess(connection, changes)
            if results is not None:
                return results
            if not is_only_behind:
                break
        try:
            await connection.execute("BEGIN")
            batch, done = await self._carry_out(connection, changes)
        except BaseException as problem:
            await self._roll_back(connection)
            if code_of(problem) == OVERTAKEN:
                raise self._overtaken() from None
            raise
        try:
            await self._patiently(connection, connection.execute("COMMIT"))
        except Exception:
            self._drop()
            if batch is None or not await self._happened():
                raise
        if batch is not None:
            self._go_on(batch)
        return done

    async def _guess(
        self, connection: Connection, changes: Sequence[StoreChange]
    ) -> tuple[list[Applied | StoreError] | None, bool]:
        """Commit in one step, as if nobody else had written since we looked last and nothing were in the way.

        The results; without them nothing was written, and whether it is only that somebody else has written.
        """
        if any(change.prune or change.accept is not None for change in changes):
            return None, False
        seen = (
            await self._read_seen(connection) if any(change.is_irrevocable for change in changes) else Head(0, GENESIS)
        )
        if not isinstance(seen, Head):
            return None, False
        batch = Batch(self._expected, lambda key: False)
        results = [batch.add(change) for change in changes]
        if not batch.records or any(isinstance(result, StoreError) for result in results):
            return None, False
        self._key = uuid4()
        sql = f"SELECT * FROM {self._schema}.try_append({', '.join(f'${n}' for n in range(1, 26))})"
        last = (self._form, self.leases.id, self._expected.seq, self._expected.digest, self._key)
        claimed = [record.once.encode() for record in batch.records if record.once is not None]
        asked = connection.fetchrow(sql, *last, *_columns(batch), claimed, seen.seq, seen.digest)
        try:
            found = await self._patiently(connection, asked)
        except LOST:
            self._drop()
            if not await self._happened():
                raise
            self._go_on(batch)
            return results, False
        except PostgresError as problem:
            if code_of(problem) == OVERTAKEN:
                raise self._overtaken() from None
            raise
        if not found["is_done"]:
            self._expected = Head(found["seq"], found["digest"])
            return None, found["is_only_behind"]
        self._go_on(batch)
        return results, True

    def _go_on(self, batch: Batch) -> None:
        """The next commit comes behind this one."""
        self._expected = batch.head
        if batch.records[0].seq == 1:
            self._known_head.know_first(batch.records[0].digest)

    async def _carry_out(
        self, connection: Connection, changes: Sequence[StoreChange]
    ) -> tuple[Batch | None, list[Applied | StoreError]]:
        claimed = [entry.once.encode() for change in changes for entry in change.entries if entry.once is not None]
        is_irrevocable = any(change.is_irrevocable for change in changes)
        seen = await self._read_seen(connection) if is_irrevocable else None
        found = await connection.fetchrow(
            f"SELECT * FROM {self._schema}.begin_append($1, $2, $3)",
            self.leases.id,
            claimed,
            seen.seq if isinstance(seen, Head) else 0,
        )
        assert found is not None
        check_form(found["form"], self._form, self.place)
        if found["is_lost"]:
            raise self._overtaken()
        before = head = Head(found["seq"], found["digest"])
        refusal = self._known_head.refusal(seen, before, found["seen_digest"]) if is_irrevocable else None
        taken = set(found["taken"] or ())
        batch = Batch(head, lambda key: key.encode() in taken)
        results: list[Applied | StoreError] = []
        for change in changes:
            if refusal is not None and change.is_irrevocable:
                results.append(refusal)
                continue
            results.append(batch.add(change))
        if batch.records or batch.steps:
            self._key = uuid4()
            await connection.execute(
                f"SELECT {self._schema}.append({', '.join(f'${n}' for n in range(1, 23))})",
                self._form,
                self.leases.id,
                before.seq,
                before.digest,
                self._key,
                *_columns(batch),
            )
        for place, change in enumerate(changes):
            if change.prune and results[place] is APPLIED:
                results[place] = await self._forget(connection, change.prune)
            if change.accept is not None:
                results[place] = await self._accept(connection, change.accept)
        return batch if batch.records else None, results

    async def _read_seen(self, connection: Connection) -> Head | StoreError | None:
        if not self._known_head.knows_first:
            self._known_head.know_first(
                await connection.fetchval(f"SELECT digest FROM {self._schema}.records WHERE seq = 1")
            )
        return self._known_head.read()

    async def _forget(self, connection: Connection, seqs: Sequence[int]) -> Applied:
        row = await connection.fetchrow(f"SELECT * FROM {self._schema}.forget($1, $2)", list(seqs), _GONE)
        assert row is not None
        return Applied(Pruned(row["record_count"], row["content_count"], row["byte_count"]))

    async def _accept(self, connection: Connection, head: Head) -> Applied | StoreError:
        sql = f"SELECT digest FROM {self._schema}.records WHERE seq = $1"
        found = GENESIS if not head.seq else await connection.fetchval(sql, head.seq)
        if found != head.digest:
            return not_held(head)
        try:
            self._known_head.accept(head)
        except StoreError as problem:
            return problem
        return APPLIED

    async def _patiently(self, connection: Connection, commit: Coroutine[Any, Any, Any]) -> Any:
        # The driver's own time limit would ask the server to call the commit off. It is longer than this one.
        waiting = asyncio.ensure_future(commit)
        done, _ = await asyncio.wait([waiting], timeout=COMMIT_SECONDS)
        if not done:
            connection.terminate()
        return await waiting

    async def _roll_back(self, connection: Connection) -> None:
        try:
            if connection.is_closed():
                raise ConnectionResetError
            async with asyncio.timeout(1):
                await connection.execute("ROLLBACK")
        except FAILED:
            self._drop()

    async def _happened(self) -> bool:
        try:
            connection = await self._open()
            found: bool = await connection.fetchval(f"SELECT {self._schema}.has_happened($1)", self._key)
        except IN_WORDS as problem:
            self._drop()
            raise InDoubt(
                "the server was lost while this was written, and it is not known whether it was",
                place=self.place,
                hint="look into the journal before you repeat anything",
            ) from problem
        return found

    def _overtaken(self) -> Overtaken:
        self.leases.is_lost = True
        return Overtaken(
            "this program was cut off from the server, and another took over what it was doing: it writes nothing more",
            place=self.place,
            hint="look at how it stands with lastword runs, and start this program again",
        )


def _columns(batch: Batch) -> list[list[Any]]:
    """A batch in the form in which it is handed over: a column each."""
    records, steps = batch.records, batch.steps
    return [
        [record.stream.encode() for record in records],
        [record.kind.encode() for record in records],
        [record.subject.encode() for record in records],
        [record.at for record in records],
        [record.data for record in records],
        [None if record.once is None else record.once.encode() for record in records],
        [record.data_digest for record in records],
        [record.digest for record in records],
        [what for what, *_ in steps],
        [kind.encode() for _, kind, *_ in steps],
        [stream.encode() for _, _, stream, *_ in steps],
        [name.encode() for *_, name, _ in steps],
        [seq for *_, seq in steps],
        list(batch.contents),
        list(batch.contents.values()),
        [digest for digest, _ in batch.holds],
        [seq for _, seq in batch.holds],
    ]


def check_form(form: int, known: int, place: str) -> None:
    """Refuse a store that another version of lastword has brought into a form that this one cannot write."""
    if form > known:
        raise of_a_later_version(form, known, place, "store")
    if form < known:
        raise StoreError(
            f"brought back into an earlier form ({form}, this version writes {known})",
            place=place,
            hint="start this process again, and it is brought up to date",
        )
