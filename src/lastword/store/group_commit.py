"""What the drivers share that write beyond their own process: one thread that writes, and the queue in front of it.

Everything that a process wants to remember goes through the queue, so the order of acceptance is the order on disk.
While one transaction waits for the disk the next entries gather, and share the next transaction: that is the group
commit. Appended entries, which have no waiter, are written a moment later, or together with the next commit.

When a transaction fails, its waiters get the error and nothing of theirs was written. Entries without a waiter go
back to the front of the queue and are tried again, with the next commit or after a second.

A driver says how its ledger is opened (ledger.py), and reads for itself. Nothing is opened before the first use.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import weakref
from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from threading import Condition, Lock, RLock, Thread
from typing import Any, Generic, TypeVar

import msgspec

from lastword.store.chain import CurrentRow, Entry, Head, Overtaken, Pruned, StoreError
from lastword.store.contract import WRITE, Store, refuse_if_watched
from lastword.store.ledger import TAKEN, Adopted, Applied, InDoubt, Ledger, StoreChange

AnyLedger = TypeVar("AnyLedger", bound=Ledger)

# Entries without a waiter gather this long. Long enough to share a transaction, too short for a person to notice.
LINGER_SECONDS = 0.01
# How long to leave a failing disk alone, unless there is a commit.
RETRY_SECONDS = 1.0
# A transaction keeps all other processes from writing, so it stays short: this many take some 20 ms.
MAX_BATCH_ENTRIES = 1000
# Entries that wait for the disk are held in memory. Past this, `append` waits too, and fails if the disk does.
MAX_BACKLOG_BYTES = 128 * 2**20
# What an entry occupies besides its data.
ENTRY_BYTES = 500
# How long the end of the process waits for entries without a waiter.
EXIT_SECONDS = 5

# Other processes can write between two transactions of this many, so that none waits long.
FORGET_RECORDS = 500

log = logging.getLogger("lastword")


class DurableStore(Store, Generic[AnyLedger]):
    """Records that outlive the process, in a place that others may use at the same time."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._lock = Lock()
        self._writer: Writer[AnyLedger] | None = None

    @abstractmethod
    def _open_writer(self) -> Writer[AnyLedger]:
        """A writer for the ledger of this store, which connects when it is first used."""

    def _append(self, entry: Entry) -> None:
        while not self._living_writer().append(entry):
            pass

    def _commit(self, entries: tuple[Entry, ...]) -> Awaitable[bool]:
        return self._change(StoreChange(entries))

    async def _accept(self, head: Head) -> None:
        await self._change(StoreChange(accept=head))

    async def _forget(self, seqs: Iterable[int]) -> Pruned:
        forgotten = Pruned()
        rest = iter(seqs)
        while some := tuple(islice(rest, FORGET_RECORDS)):
            forgotten += await self._change(StoreChange(prune=some))
        return forgotten

    async def changed(self, after: int) -> None:
        reply = asyncio.get_running_loop().create_future()
        while True:
            writer = self._living_writer()
            self._listen(writer.ledger)
            if writer.watch(after, reply):
                break
        try:
            await reply
        finally:
            writer.unwatch(reply)

    def _listen(self, ledger: AnyLedger) -> None:
        """Hear of what others write, where that can be heard."""

    async def _close(self) -> None:
        while self._writer is not None:
            ended = asyncio.get_running_loop().create_future()
            with self._lock:
                writer = self._writer
                is_stopped = writer is not None and writer.stop(ended)
                if is_stopped:
                    self._writer = None
                    self._close_readers()
            if is_stopped:
                await ended
            elif writer is not None:
                await self._change(StoreChange())

    # What is needed to take all of it elsewhere (exports.py).

    @abstractmethod
    async def holdings(self, seqs: range) -> Sequence[tuple[int, str]]:
        """Which of these records hold which contents: number and digest."""

    @abstractmethod
    async def current_rows(self) -> Sequence[CurrentRow]:
        """Where all the records are that still count."""

    async def adopt(self, adopted: Adopted) -> None:
        """Write something of another store as it is there. StoreError when it does not follow what is here."""
        refuse_if_watched(WRITE)
        await self._change(StoreChange(adopted=adopted))

    def _change(self, change: StoreChange) -> asyncio.Future[Any]:
        """Have the writer make a change. Its answer is awaited without a step in between: each call waits here."""
        reply = asyncio.get_running_loop().create_future()
        while not self._living_writer().submit(change, reply):
            pass
        return reply

    async def _catch_up(self) -> Writer[AnyLedger]:
        """Let everything accepted reach the ledger before it is read. Usually it has."""
        writer = self._living_writer()
        if writer.unwritten or not writer.ledger.is_open:
            await self._change(StoreChange())
            writer = self._living_writer()
        return writer

    def _living_writer(self) -> Writer[AnyLedger]:
        writer = self._writer
        if writer is not None and writer.process == os.getpid():
            return writer
        with self._lock:
            if self._writer is None:
                self._writer = self._open_writer()
                weakref.finalize(self, self._writer.retire).atexit = False
            elif self._writer.process != os.getpid():
                raise StoreError(
                    "the store was opened before the process forked",
                    place=self._place,
                    hint="open it in the new process; a connection cannot be shared by two",
                )
            return self._writer

    def _close_readers(self) -> None:
        """Let go of what the store itself has open. The lock is held."""


Reply = asyncio.Future[Any] | Future[Any]
"""The waiter: a coroutine on some loop, or a thread."""


class Job(msgspec.Struct, frozen=True, gc=False):
    """A change, and who waits for it. An empty change is durable when everything before it is."""

    change: StoreChange
    reply: Reply | None = None


Answer = tuple[Reply, bool | Pruned | StoreError | None]
"""What a waiter gets, or is to raise: whether its change was written; of one that forgets, what is gone."""


class Writer(Generic[AnyLedger]):
    """Serves one store object from its first use until it is closed."""

    def __init__(self, ledger: AnyLedger) -> None:
        self.ledger = ledger
        # Reentrant, because `retire` may be called by the garbage collector at any moment, also of this thread.
        lock = RLock()
        self._work = Condition(lock)
        self._room = Condition(lock)
        self._queue: deque[Job] = deque()
        # How many jobs in the queue have a waiter.
        self._awaited = 0
        self._backlog_bytes = 0
        self._writing = False
        # What the last transaction failed with; None when it did not fail.
        self._failure: StoreError | None = None
        self.is_known_to_fail = False
        """Whether a waiter got the error that entries could not be written, and they still are not."""
        # How many jobs at the front of the queue were in a transaction of which it is unknown whether it happened.
        self._doubtful = 0
        self._watchers: dict[Reply, int] = {}
        self._retired = False
        self._closed = False
        self._ended: list[Reply] = []
        self.unwritten = 0
        """How many entries were accepted without a waiter and are not durable yet."""
        self.process = os.getpid()
        _living.add(self)
        Thread(target=self._run, name="lastword-store", daemon=True).start()

    def append(self, entry: Entry) -> bool:
        """Accept an entry without a waiter. False when the writer has stopped."""
        with self._work:
            if self._backlog_bytes > MAX_BACKLOG_BYTES:
                self._room.wait_for(lambda: self._backlog_bytes <= MAX_BACKLOG_BYTES or self._failure or self._closed)
                if self._failure is not None:
                    raise _refusal(self._failure, self.unwritten)
            if self._closed:
                return False
            self._backlog_bytes += _size(entry)
            self.unwritten += 1
            self._queue.append(Job(StoreChange((entry,))))
            if len(self._queue) == 1:
                self._work.notify()
            return True

    def submit(self, change: StoreChange, reply: Reply) -> bool:
        """Accept a change with a waiter. False when the writer has stopped."""
        with self._work:
            if self._closed:
                return False
            self._queue.append(Job(change, reply))
            self._awaited += 1
            self._work.notify()
            return True

    def watch(self, after: int, reply: Reply) -> bool:
        """Answer once there is a record beyond `after`. False when the writer has stopped."""
        with self._work:
            if self._closed:
                return False
            self._watchers[reply] = after
            self._work.notify()
            return True

    def wake(self) -> None:
        """Look now for what others wrote, if somebody waits for it."""
        with self._work:
            if self._watchers:
                self._work.notify()

    def heard(self, last: int) -> None:
        """Others have written up to this record: wake whoever waits for one that is there by now."""
        with self._work:
            woken = [reply for reply, after in self._watchers.items() if after < last]
            for reply in woken:
                del self._watchers[reply]
        _deliver((reply, None) for reply in woken)

    def unwatch(self, reply: Reply) -> None:
        with self._work:
            self._watchers.pop(reply, None)

    def stop(self, reply: Reply) -> bool:
        """End the thread, and answer when the file is let go of. False when something is left to write."""
        with self._work:
            if self._queue or self._writing:
                return False
            self._closed = True
            self._ended.append(reply)
            self._work.notify()
            return True

    def retire(self) -> None:
        """End the thread once nothing is left to write. For a store object that was dropped without being closed."""
        with self._work:
            self._retired = True
            self._work.notify()

    def _run(self) -> None:
        while not self._closed:
            if batch := self._next_batch():
                self._settle(batch)
            if self._watchers:
                self._look()
        self.ledger.close()
        _living.discard(self)
        closed = StoreError("the store was closed while somebody waited for a change", place=self.ledger.place)
        _deliver([*((reply, None) for reply in self._ended), *((reply, closed) for reply in self._watchers)])

    def _next_batch(self) -> list[Job]:
        """Wait for something to write, or until it is time to look whether another process wrote."""
        with self._work:
            if not self._queue and not self._closed and not self._retired:
                self._work.wait(self.ledger.poll_seconds if self._watchers else None)
            if self._queue and not self._awaited:
                self._work.wait_for(lambda: self._awaited, RETRY_SECONDS if self._failure else LINGER_SECONDS)
            batch: list[Job] = []
            entries = 0
            while self._queue and entries < MAX_BATCH_ENTRIES:
                job = self._queue.popleft()
                batch.append(job)
                entries += len(job.change.entries)
                self._awaited -= job.reply is not None
            self._writing = bool(batch)
            self._closed |= self._retired and not batch
            return batch

    def _settle(self, batch: list[Job]) -> None:
        """Write a batch, and set the results of its waiters."""
        try:
            if self._doubtful:
                happened = self.ledger.happened()
                doubtful, self._doubtful = self._doubtful, 0
                if happened:
                    self._finish(batch[:doubtful], [])
                    batch = batch[doubtful:]
            results = self.ledger.write([job.change for job in batch])
        except Exception as problem:
            self._fail(batch, problem)
        else:
            self._finish(batch, self._with_head_kept(batch, results))

    def _with_head_kept(self, batch: list[Job], results: list[Applied | StoreError]) -> list[Applied | StoreError]:
        """Before anybody acts upon what was written, keep outside how far the file goes now: once for all of a batch.

        Where that fails, whoever would have acted must not. Their records are there, and it is for a person to decide.
        """
        acted_upon = [
            place
            for place, (job, result) in enumerate(zip(batch, results, strict=False))
            if job.change.is_irrevocable and isinstance(result, Applied) and result is not TAKEN
        ]
        try:
            if acted_upon:
                self.ledger.keep_head()
        except StoreError as problem:
            for place in acted_upon:
                results[place] = problem
        return results

    def _finish(self, batch: list[Job], results: list[Applied | StoreError]) -> None:
        with self._work:
            self._strike_off([job for job in batch if job.reply is None])
            self._failure = None
            self.is_known_to_fail = False
            self._writing = False
            self._room.notify_all()
        _deliver((job.reply, job.change.told(result)) for job, result in zip(batch, results, strict=False) if job.reply)

    def _strike_off(self, jobs: list[Job]) -> None:
        """Entries that had no waiter wait no more. The lock is held."""
        self.unwritten -= len(jobs)
        self._backlog_bytes -= sum(_size(job.change.entries[0]) for job in jobs)

    def _fail(self, batch: list[Job], problem: Exception) -> None:
        kept = [job for job in batch if job.reply is None]
        failure = self._in_words(problem)
        with self._work:
            if isinstance(problem, Overtaken) and kept:
                # They are about what is another's by now, and no later attempt may write them.
                log.error("what was accepted last (%d) is not written: %s", len(kept), problem)
                self._strike_off(kept)
                kept = []
            self._queue.extendleft(reversed(kept))
            if isinstance(problem, InDoubt) and not self._doubtful:
                self._doubtful = len(kept)
            self._failure = failure
            self.is_known_to_fail |= any(job.reply is not None for job in batch)
            self._writing = False
            self._room.notify_all()
        refusal = _refusal(failure, self.unwritten)
        _deliver((job.reply, refusal) for job in batch if job.reply)

    def _look(self) -> None:
        """Wake the coroutines that wait for a record which is there by now."""
        try:
            last = self.ledger.last_seq()
        except Exception as problem:
            with self._work:
                watchers, self._watchers = self._watchers, {}
            failure = self._in_words(problem)
            _deliver((reply, failure) for reply in watchers)
        else:
            if last is not None:
                self.heard(last)

    def _in_words(self, problem: Exception) -> StoreError:
        if isinstance(problem, StoreError):
            return problem
        words = self.ledger.in_words(problem)
        return words or StoreError(f"an entry cannot be written: {problem!r}", place=self.ledger.place)


def _size(entry: Entry) -> int:
    """The bytes that an entry without a waiter occupies."""
    return ENTRY_BYTES + len(entry.data) + sum(map(len, entry.contents))


def _refusal(failure: StoreError, waiting: int = 0) -> StoreError:
    """A fresh error for each who hears of it: an exception object carries the traceback of one."""
    fact = failure.fact
    if waiting:
        fact += f"; {waiting} {'entry' if waiting == 1 else 'entries'} accepted before wait to be written"
    return type(failure)(fact, place=failure.place, hint=failure.hint)


def _deliver(answers: Iterable[Answer]) -> None:
    """Tell each on their own loop; waking a loop is dear, so all who live on the same one are told at once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for answer in answers:
        if isinstance(answer[0], Future):
            _tell([answer])
        else:
            by_loop.setdefault(answer[0].get_loop(), []).append(answer)
    for loop, told in by_loop.items():
        # The loop is closed, and its coroutines with it.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell, told)


def _tell(answers: list[Answer]) -> None:
    for reply, result in answers:
        if reply.done():
            continue
        if isinstance(result, StoreError):
            reply.set_exception(_refusal(result))
        else:
            reply.set_result(result)


_living: set[Writer[Any]] = set()


@atexit.register
def _finish_at_exit() -> None:
    """Write the entries without a waiter. A process that ends in order should not lose what only a crash may lose."""
    for writer in list(_living):
        reply: Future[bool] = Future()
        was_told = writer.is_known_to_fail
        if writer.unwritten and writer.process == os.getpid() and writer.submit(StoreChange(), reply):
            try:
                reply.result(EXIT_SECONDS)
            except (StoreError, TimeoutError) as problem:
                # There is no caller left to raise it to, and a traceback would not help the user.
                if not was_told:
                    log.error("what was to be remembered last is lost: %s", problem)
