"""A journal in PostgreSQL: durable appends compared with the disk's own speed, how fast an answer reaches another
process, one to three processes on one store, and questions about a history that grows.

    python bench/postgres.py [--json FILE] [--rounds 6] [--most 1000000]

The server is one of the bench's own, in a temporary folder, with its defaults: every commit waits for the disk. As in
journal.py, what is compared takes turns in short rounds, and a ratio is the median over the rounds.
"""

import argparse
import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, time_ns

from figures import Result, arguments

import lastword
from lastword.consent import ALLOWED
from lastword.store import Entry, SqliteStore, Store, StoreAddress
from lastword.store.postgres import PostgresStore

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from postgres_server import PostgresServer

ROUND = 100
CALLERS = 64
DATA = b'{"arguments":{"path":"notes/today.md","text":"%s"}}' % (b"remember " * 16)
GROUP_TARGET = 4.0
HEARD_TARGET = 5.0
FLAT_TARGET = 1.5
ANSWERS = 60
ASKED = 25


def entry(number: int, stream: str = "session-1") -> Entry:
    return Entry(stream, "started", f"call-{number}", time_ns() // 1000, DATA)


def raw_syncs(descriptor: int) -> float:
    os.lseek(descriptor, 0, os.SEEK_SET)
    started = perf_counter()
    for _ in range(ROUND):
        os.write(descriptor, DATA)
        os.fdatasync(descriptor)
    return ROUND / (perf_counter() - started)


async def one_caller(store: Store) -> float:
    started = perf_counter()
    for number in range(ROUND):
        await store.commit(entry(number))
    return ROUND / (perf_counter() - started)


async def many_callers(store: Store, each: int = ROUND // 4) -> float:
    async def call() -> None:
        for number in range(each):
            await store.commit(entry(number))

    started = perf_counter()
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    return CALLERS * each / (perf_counter() - started)


async def allow(request: lastword.ApprovalRequest) -> lastword.UserAction:
    return request.allow()


def registry() -> tuple[lastword.ToolRegistry, list[float]]:
    tools, called = lastword.ToolRegistry(), []

    @tools.tool
    async def pay(amount: float) -> float:
        """Pays."""
        called.append(monotonic())
        return amount

    return tools, called


async def approved_calls(store: Store) -> float:
    """Approved calls a second, from a hundred callers."""
    journal = lastword.Journal(store)
    async with lastword.Session(registry()[0], approver=allow, journal=journal) as session:

        async def call() -> None:
            for number in range(5):
                assert (await session.call("pay", {"amount": number})).success

        started = perf_counter()
        await asyncio.gather(*(call() for _ in range(100)))
        spent = perf_counter() - started
    await journal.close()
    return 500 / spent


async def answered_elsewhere(address: str) -> list[float]:
    """Milliseconds from the moment at which another process begins to answer until the tool runs here."""
    journal = lastword.Journal(StoreAddress(address).open())
    tools, called = registry()
    spent = []
    with other_process("--answer", address) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        async with lastword.Session(tools, approver=lastword.wait_for_answer, journal=journal) as session:
            for _ in range(ANSWERS):
                call = asyncio.create_task(session.call("pay", {"amount": 1}))
                await asyncio.sleep(0.1)
                other.stdin.write("answer\n")
                other.stdin.flush()
                assert (await call).success
                spent.append((called[-1] - float(await asyncio.to_thread(other.stdout.readline))) * 1e3)
        other.stdin.close()
    await journal.close()
    return sorted(spent)


async def heard_elsewhere(address: str) -> list[float]:
    """Milliseconds from the moment at which another process begins to write until a waiter here knows of it."""
    store = StoreAddress(address).open()
    spent = []
    with other_process("--write", address) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for _ in range(ANSWERS):
            waiting = asyncio.ensure_future(store.changed((await store.head()).seq))
            await asyncio.sleep(0.05)
            other.stdin.write("write\n")
            other.stdin.flush()
            await waiting
            heard = monotonic()
            spent.append((heard - float(await asyncio.to_thread(other.stdout.readline))) * 1e3)
        other.stdin.close()
    await store.close()
    return sorted(spent)


async def write_when_told(address: str) -> None:
    """The other process: writes one record, whenever it is told to."""
    store = StoreAddress(address).open()
    await store.head()
    for number, _ in enumerate(sys.stdin):
        began = monotonic()
        assert await store.commit(entry(number))
        print(began, flush=True)
    await store.close()


async def answer(address: str) -> None:
    """The other process: answers what waits, whenever it is told to."""
    journal = lastword.Journal(StoreAddress(address).open())
    for _ in sys.stdin:
        found = await journal.waiting()
        while not found:
            await asyncio.sleep(0.01)
            found = await journal.waiting()
        [facts] = found
        began = monotonic()
        assert await journal.answer(facts, ALLOWED, "another process")
        print(began, flush=True)
    await journal.close()


async def commit_when_told(address: str) -> None:
    """One of several processes that write at once: says how long it took, each time it is told to."""
    store = StoreAddress(address).open()
    await store.head()
    print("ready", flush=True)
    for _ in sys.stdin:
        began = monotonic()
        await many_callers(store)
        print(began, monotonic(), flush=True)
    await store.close()


def other_process(*words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def several(address: str, count: int, rounds: int) -> float:
    """Durable commits a second of so many processes together, each with 64 callers."""
    others = [other_process("--commit", address) for _ in range(count)]
    rates = []
    for other in others:
        assert other.stdout is not None
        other.stdout.readline()
    for _ in range(rounds):
        for other in others:
            assert other.stdin is not None
            other.stdin.write("go\n")
            other.stdin.flush()
        spans = [tuple(map(float, other.stdout.readline().split())) for other in others if other.stdout is not None]
        spent = max(end for _, end in spans) - min(began for began, _ in spans)
        rates.append(count * CALLERS * (ROUND // 4) / spent)
    for other in others:
        other.communicate()
    return median(rates)


async def grow(store: Store, first: int, last: int) -> None:
    """Finished sessions of many calls, up to so many records."""
    for start in range(first, last, 1000):
        entries = []
        for number in range(start, min(start + 1000, last), 2):
            stream = f"session-{number // 100}"
            entries.append(Entry(stream, "asked", f"call-{number}", number, DATA))
            entries.append(Entry(stream, "finished", f"call-{number}", number, DATA))
        await store.commit(*entries)


async def questions(store: Store) -> dict[str, float]:
    """Milliseconds for what surfaces ask when they open."""
    asked: dict[str, Callable[[], Awaitable[object]]] = {
        "waiting cards": lambda: store.current("asked"),
        "calls in doubt": lambda: store.current("burned"),
        "the end of the history": lambda: store.read(last=50),
        "a session": lambda: store.read(stream="session-3"),
        "a call": lambda: store.read(subject="call-302"),
        "whether a key is taken": lambda: store.taken("answer:none"),
    }
    found = {}
    for name, question in asked.items():
        spent = []
        for _ in range(ASKED):
            began = perf_counter()
            await question()
            spent.append(perf_counter() - began)
        found[name] = median(spent) * 1e3
    return found


async def measure(result: Result, server: PostgresServer, folder: Path, rounds: int, most: int) -> None:
    rows: dict[str, list[float]] = {"raw": [], "one": [], "many": []}
    store = PostgresStore(server.new_store(), heads=folder)
    descriptor = os.open(folder / "in-place", os.O_RDWR | os.O_CREAT, 0o600)
    for number in range(rounds + 1):
        before = raw_syncs(descriptor)
        one = await one_caller(store)
        between = raw_syncs(descriptor)
        many = await many_callers(store)
        after = raw_syncs(descriptor)
        if number:  # the first round warms up
            rows["raw"] += [before, between, after]
            rows["one"].append(one / ((before + between) / 2))
            rows["many"].append(many / ((between + after) / 2))
    os.close(descriptor)
    raw = median(rows["raw"])
    result.table("", "per second", "of fdatasync", "target")
    result.row("write and fdatasync, in place", raw, 1.0, None)
    result.row("durable commit, 1 caller", median(rows["one"]) * raw, median(rows["one"]), None)
    result.row(
        f"durable commit, {CALLERS} callers", median(rows["many"]) * raw, median(rows["many"]), f"≥ {GROUP_TARGET}"
    )
    result.row("approved call, 100 callers", await approved_calls(store), None, None)
    await store.close()

    result.table("another process", "ms p50", "ms p95", "target")
    for name, new in (("PostgreSQL", server.new_store), ("SQLite", lambda: f"sqlite:///{folder}/{time_ns()}.db")):
        for what, work, target in (
            ("writes, a waiter here knows", heard_elsewhere, f"≤ {HEARD_TARGET} p50"),
            ("answers, the tool runs here", answered_elsewhere, None),
        ):
            spent = await work(new())
            is_ours = name == "PostgreSQL"
            result.row(f"{what}: {name}", median(spent), spent[int(len(spent) * 0.95)], target if is_ours else None)

    address = server.new_store()
    rates = {count: several(address, count, rounds) for count in (1, 2, 3)}
    result.table("processes on one store, 64 callers each", "commits per second", "of one")
    for count, rate in rates.items():
        result.row(f"{count} process{'es' if count > 1 else ''}", rate, rate / rates[1])

    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= most]
    for name, grown in (
        ("PostgreSQL", PostgresStore(server.new_store(), heads=folder)),
        ("SQLite", SqliteStore(folder / "grown.db")),
    ):
        found, written = [], 0
        for size in sizes:
            await grow(grown, written, size)
            written = size
            found.append(await questions(grown))
        result.table(f"{name}, ms", *(f"{size:,} records" for size in sizes), "last to first", "target")
        for question in found[0]:
            times = [one[question] for one in found]
            result.row(question, *times, times[-1] / times[0], f"≤ {FLAT_TARGET}")
        await grown.close()


async def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--most", type=int, default=1_000_000, help="up to how many records a history grows")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    parser.add_argument("--commit", help=argparse.SUPPRESS)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.answer:
        return await answer(wanted.answer)
    if wanted.write:
        return await write_when_told(wanted.write)
    if wanted.commit:
        return await commit_when_told(wanted.commit)
    result = Result(__doc__, peers=("asyncpg", "apsw"))
    server = PostgresServer("fsync = on\n")
    server.start()
    try:
        with TemporaryDirectory() as folder:
            await measure(result, server, Path(folder), wanted.rounds, wanted.most)
        [(version,)] = server.sql("SHOW server_version")
    finally:
        server.remove()
    result.note(f"PostgreSQL {version}, medians of {wanted.rounds} rounds.")
    return result.keep(wanted.json)


if __name__ == "__main__":
    asyncio.run(main())
