"""The one thread that writes to a SQLite file, and the queue in front of it.

Everything that a process wants to remember goes through the queue, so the order of acceptance is the order on disk.
While one transaction waits for the disk the next entries gather, and share the next transaction: that is the group
commit. Entries that nobody waits for are written a moment later, or with the first one that somebody waits for.

When a transaction fails, whoever waits for it hears so and nothing of theirs was written. Entries that nobody waited
for go back to the front of the queue and are tried again, with the next commit or after a second.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Condition, RLock, Thread
from typing import Any

import apsw
import msgspec

from lastword.errors import StoreError
from lastword.store import Entry
from lastword.store.sqlite_file import explain
from lastword.store.sqlite_ledger import InDoubt, Ledger, StoreChange

# Entries nobody waits for gather this long. Long enough to share a transaction, too short for a person to notice.
LINGER_SECONDS = 0.01
# How often to look for other processes' records while somebody waits for one. A look takes some microseconds.
POLL_SECONDS = 0.02
# How long to leave a failing disk alone, unless somebody commits.
RETRY_SECONDS = 1.0
# A transaction keeps all other processes from writing, so it stays short: this many take some 20 ms.
MAX_BATCH_ENTRIES = 1000
# Entries that wait for the disk are held in memory. Past this, `append` waits too, and fails if the disk does.
MAX_BACKLOG_BYTES = 128 * 2**20
# What an entry occupies besides its data.
ENTRY_BYTES = 500
# How long the end of the process waits for entries that nobody waited for.
EXIT_SECONDS = 5

log = logging.getLogger("lastword")

Reply = asyncio.Future[Any] | Future[Any]
"""Whoever waits: a coroutine on some loop, or a thread."""


class Job(msgspec.Struct, frozen=True, gc=False):
    """A change, and who waits for it. An empty change is durable when everything before it is."""

    change: StoreChange
    reply: Reply | None = None


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What somebody who waits is told."""

    reply: Reply
    result: object = None
    problem: Exception | None = None


class Writer:
    """Serves one store object from its first use until it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ledger = Ledger(path)
        # Reentrant, because `retire` may be called by the garbage collector at any moment, also of this thread.
        lock = RLock()
        self._work = Condition(lock)
        self._room = Condition(lock)
        self._queue: deque[Job] = deque()
        # How many jobs in the queue somebody waits for.
        self._awaited = 0
        self._backlog_bytes = 0
        self._writing = False
        # What the last transaction failed with; None when it did not fail.
        self._failure: StoreError | None = None
        self.is_known_to_fail = False
        """Whether somebody was told that entries could not be written, and they still are not."""
        # How many jobs at the front of the queue were in a transaction of which it is unknown whether it happened.
        self._doubtful = 0
        self._watchers: dict[Reply, int] = {}
        self._retired = False
        self._closed = False
        self._ended: list[Reply] = []
        self.unwritten = 0
        """How many entries were accepted that nobody waits for and that are not durable yet."""
        self.process = os.getpid()
        _living.add(self)
        Thread(target=self._run, name="lastword-store", daemon=True).start()

    @property
    def is_open(self) -> bool:
        """Whether the file was found or made, and is ours."""
        return self._ledger.is_open

    def append(self, entry: Entry) -> bool:
        """Accept an entry that nobody waits for. False when the writer has stopped."""
        job = Job(StoreChange((entry,)))
        with self._work:
            if self._backlog_bytes > MAX_BACKLOG_BYTES:
                self._wait_for_room()
            if self._closed:
                return False
            self._backlog_bytes += len(entry.data) + ENTRY_BYTES
            self.unwritten += 1
            self._queue.append(job)
            if len(self._queue) == 1:
                self._work.notify()
            return True

    def submit(self, job: Job) -> bool:
        """Accept something that somebody waits for. False when the writer has stopped."""
        assert job.reply is not None
        with self._work:
            if self._closed:
                return False
            self._queue.append(job)
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

    def _wait_for_room(self) -> None:
        self._room.wait_for(lambda: self._backlog_bytes <= MAX_BACKLOG_BYTES or self._failure or self._closed)
        if self._failure is not None:
            raise _refusal(self._failure, self.unwritten)

    def _run(self) -> None:
        while not self._closed:
            if batch := self._next_batch():
                self._settle(batch)
            if self._watchers:
                self._look()
        self._ledger.close()
        _living.discard(self)
        closed = StoreError("the store was closed while somebody waited for a change", place=str(self._path))
        _deliver(
            [Answer(reply) for reply in self._ended]
            + [Answer(reply, problem=_refusal(closed, 0)) for reply in self._watchers]
        )

    def _next_batch(self) -> list[Job]:
        """Wait for something to write, or until it is time to look whether another process wrote."""
        with self._work:
            if not self._queue and not self._closed and not self._retired:
                self._work.wait(POLL_SECONDS if self._watchers else None)
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
        """Write a batch, and tell whoever waits for some of it."""
        try:
            if self._doubtful:
                happened = self._ledger.happened()
                doubtful, self._doubtful = self._doubtful, 0
                if happened:
                    self._finish(batch[:doubtful], [])
                    batch = batch[doubtful:]
            results = self._ledger.write([job.change for job in batch])
        except Exception as problem:
            self._fail(batch, problem)
        else:
            self._finish(batch, self._with_head_kept(batch, results))

    def _with_head_kept(self, batch: list[Job], results: list[int | StoreError]) -> list[int | StoreError]:
        """Before anybody acts upon what was written, keep outside how far the file goes now: once for all of a batch.

        Where that fails, whoever would have acted must not. Their records are there, and it is for a person to decide.
        """
        acted_upon = [
            place
            for place, (job, result) in enumerate(zip(batch, results, strict=False))
            if job.change.is_irrevocable and isinstance(result, int) and result >= 0
        ]
        if acted_upon:
            try:
                self._ledger.keep_head()
            except StoreError as problem:
                for place in acted_upon:
                    results[place] = problem
        return results

    def _finish(self, batch: list[Job], results: list[int | StoreError]) -> None:
        with self._work:
            for job in batch:
                if job.reply is None:
                    self.unwritten -= 1
                    self._backlog_bytes -= len(job.change.entries[0].data) + ENTRY_BYTES
            self._failure = None
            self.is_known_to_fail = False
            self._writing = False
            self._room.notify_all()
        _deliver(
            [_answer(job.reply, result) for job, result in zip(batch, results, strict=False) if job.reply is not None]
        )

    def _fail(self, batch: list[Job], problem: Exception) -> None:
        kept = [job for job in batch if job.reply is None]
        failure = _in_words(problem, self._path)
        with self._work:
            self._queue.extendleft(reversed(kept))
            if isinstance(problem, InDoubt) and not self._doubtful:
                self._doubtful = len(kept)
            self._failure = failure
            self.is_known_to_fail |= len(kept) < len(batch)
            self._writing = False
            self._room.notify_all()
        _deliver(
            [Answer(job.reply, problem=_refusal(failure, self.unwritten)) for job in batch if job.reply is not None]
        )

    def _look(self) -> None:
        """Tell whoever waits for a record that is there by now."""
        try:
            last = self._ledger.last_seq()
        except apsw.BusyError:
            return
        except (apsw.Error, StoreError) as problem:
            failure = _in_words(problem, self._path)
            with self._work:
                answers = [Answer(reply, problem=_refusal(failure, 0)) for reply in self._watchers]
                self._watchers.clear()
        else:
            with self._work:
                answers = [Answer(reply) for reply, after in self._watchers.items() if after < last]
                for answer in answers:
                    del self._watchers[answer.reply]
        _deliver(answers)


def _answer(reply: Reply, result: int | StoreError) -> Answer:
    return Answer(reply, result) if isinstance(result, int) else Answer(reply, problem=_refusal(result, 0))


def _in_words(problem: Exception, path: Path) -> StoreError:
    if isinstance(problem, StoreError):
        return problem
    if isinstance(problem, InDoubt):
        return StoreError(
            "the disk failed while this was written, and it is not known whether it was",
            place=str(path),
            hint="check the disk, and look into the journal before you repeat anything",
        )
    if isinstance(problem, apsw.Error | OSError):
        return explain(problem, path)
    return StoreError(f"an entry cannot be written: {problem!r}", place=str(path))


def _refusal(failure: StoreError, waiting: int) -> StoreError:
    """A fresh error for each who hears of it: an exception object carries the traceback of one."""
    fact = failure.fact
    if waiting:
        fact += f"; {waiting} {'entry' if waiting == 1 else 'entries'} accepted before wait to be written"
    return type(failure)(fact, place=failure.place, hint=failure.hint)


def _deliver(answers: list[Answer]) -> None:
    """Tell each on their own loop; waking a loop is dear, so all who live on the same one are told at once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Answer]] = {}
    for answer in answers:
        if isinstance(answer.reply, Future):
            _tell([answer])
        else:
            by_loop.setdefault(answer.reply.get_loop(), []).append(answer)
    for loop, told in by_loop.items():
        # A loop that was closed has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_tell, told)


def _tell(answers: list[Answer]) -> None:
    for answer in answers:
        if answer.reply.done():
            continue
        if answer.problem is not None:
            answer.reply.set_exception(answer.problem)
        else:
            answer.reply.set_result(answer.result)


_living: set[Writer] = set()


@atexit.register
def _finish_at_exit() -> None:
    """Write what nobody waited for. A process that ends in order should not lose what only a crash may lose."""
    for writer in list(_living):
        reply: Future[int] = Future()
        was_told = writer.is_known_to_fail
        if writer.unwritten and writer.process == os.getpid() and writer.submit(Job(StoreChange(), reply)):
            try:
                reply.result(EXIT_SECONDS)
            except (StoreError, TimeoutError) as problem:
                # Nobody is left to raise it to, and a traceback would tell the user nothing.
                if not was_told:
                    log.error("what was to be remembered last is lost: %s", problem)
