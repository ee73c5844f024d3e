"""What it costs to remember: durable appends compared with the disk's own speed, in one run.

    python bench/journal.py [--json FILE] [--rounds 10] [--folder DIR]

Everything is measured in short rounds that take turns, and each ratio is the median over the rounds: a disk that others
use changes its speed from second to second, and the ratio of two neighbouring rounds hardly does. The disk's own speed
is `write` and `fdatasync` of as many bytes as a record has, again and again: over what is there already, which is the
fastest a disk can be and what the targets mean; and at the end of a file that grows, as a plain log would.

Then the product on top of it: calls that a person approved, from a hundred callers at once; a script replayed from its
journal; and the time from an answer in another process until the tool runs here.
"""

import argparse
import asyncio
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, process_time, time_ns

import apsw
from figures import Result, arguments

import lastword
from lastword.consent import ALLOWED
from lastword.store import Entry, SqliteStore

ROUND = 200
CALLERS = 64
DATA = b'{"arguments":{"path":"notes/today.md","text":"%s"}}' % (b"remember " * 16)
SINGLE_TARGET = 0.4
CONCURRENT_TARGET = 2.0
APPROVERS = 100
APPROVED_TARGET_MICROSECONDS = 200
REPLAYED = 2000
REPLAY_TARGET_MICROSECONDS = 10
ANSWERS = 60


def entry(number: int) -> Entry:
    return Entry("session-1", "started", f"call-{number}", time_ns() // 1000, DATA)


def raw_syncs(descriptor: int, *, grow: bool = False) -> float:
    os.lseek(descriptor, 0, os.SEEK_END if grow else os.SEEK_SET)
    started = perf_counter()
    for _ in range(ROUND):
        os.write(descriptor, DATA)
        os.fdatasync(descriptor)
    return ROUND / (perf_counter() - started)


async def one_caller(store: SqliteStore) -> float:
    started = perf_counter()
    for number in range(ROUND):
        await store.commit(entry(number))
    return ROUND / (perf_counter() - started)


async def many_callers(store: SqliteStore) -> float:
    async def call() -> None:
        for number in range(ROUND // 4):
            await store.commit(entry(number))

    started = perf_counter()
    await asyncio.gather(*(call() for _ in range(CALLERS)))
    return CALLERS * (ROUND // 4) / (perf_counter() - started)


async def appends(store: SqliteStore) -> float:
    """Microseconds an append, without waiting."""
    entries = [entry(number) for number in range(5 * ROUND)]
    started = perf_counter()
    for one in entries:
        store.append(one)
    spent = perf_counter() - started
    await store.commit()
    return spent / len(entries) * 1e6


async def reads(store: SqliteStore) -> float:
    """Microseconds a record, reading a thousand."""
    started = perf_counter()
    found = await store.read(after=100, limit=1000)
    return (perf_counter() - started) / len(found) * 1e6


async def allow(request: lastword.ApprovalRequest) -> lastword.UserAction:
    return request.allow()


def registry() -> tuple[lastword.ToolRegistry, list[float]]:
    """Two tools that do nothing, and when the one that needs a yes was called."""
    tools, called = lastword.ToolRegistry(), []

    @tools.tool
    async def pay(amount: float) -> float:
        """Pays."""
        called.append(monotonic())
        return amount

    @tools.tool(require_approval=False)
    async def look(amount: float) -> float:
        """Looks."""
        return amount

    return tools, called


async def approved_calls(folder: Path, rounds: int) -> tuple[float, float]:
    """Microseconds, and microseconds of computing, for an approved call when a hundred callers call at once."""
    journal = lastword.Journal(SqliteStore(folder / "approved.db"))
    spent: list[tuple[float, float]] = []
    async with lastword.Session(registry()[0], approver=allow, journal=journal) as session:

        async def call() -> None:
            for number in range(20):
                assert (await session.call("pay", {"amount": number})).success

        for _ in range(rounds + 1):
            began, computed = perf_counter(), process_time()
            await asyncio.gather(*(call() for _ in range(APPROVERS)))
            spent.append((perf_counter() - began, process_time() - computed))
    await journal.close()
    calls = APPROVERS * 20 / 1e6
    return median(wall for wall, _ in spent[1:]) / calls, median(busy for _, busy in spent[1:]) / calls


async def replay(folder: Path, tool: str) -> float:
    """Microseconds a CALL, from asking to go on with a run to its end, all of it from the journal."""
    journal = lastword.Journal(SqliteStore(folder / f"replay-{tool}.db"))
    text = f"FOR i IN RANGE(0, {REPLAYED}) DO\n  CALL {tool} {{ amount: i }}\nEND"
    session = lastword.Session(registry()[0], id="s", approver=allow, journal=journal)
    run = await session.run_script(text)
    assert run.status == "done", run.error
    spent = []
    for _ in range(5):
        began = perf_counter()
        assert (await session.resume(run.run_id)).status == "done"
        spent.append(perf_counter() - began)
    await journal.close()
    return median(spent) / REPLAYED * 1e6


async def answered_elsewhere(folder: Path) -> list[float]:
    """Milliseconds from the moment at which another process begins to answer until the tool runs here."""
    path = folder / "answers.db"
    journal = lastword.Journal(SqliteStore(path))
    tools, called = registry()
    with other_process(path) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        spent = []
        async with lastword.Session(tools, approver=lastword.wait_for_answer, journal=journal) as session:
            for _ in range(ANSWERS):
                call = asyncio.create_task(session.call("pay", {"amount": 1}))
                await asyncio.sleep(0.1)
                other.stdin.write("answer\n")
                other.stdin.flush()
                assert (await call).success
                spent.append((called[-1] - float(other.stdout.readline())) * 1e3)
        other.stdin.close()
    await journal.close()
    return sorted(spent)


def other_process(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--answer", str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def answer(path: Path) -> None:
    """The other process: answers what waits, whenever it is told to."""
    journal = lastword.Journal(SqliteStore(path))
    for _ in sys.stdin:
        [facts] = await journal.waiting()
        began = monotonic()
        assert await journal.answer(facts, ALLOWED, "another process")
        print(began, flush=True)
    await journal.close()


async def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="measure the disk of this folder")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.answer:
        await answer(wanted.answer)
        return
    result = Result(__doc__, peers=("apsw",))
    rows: dict[str, list[float]] = {name: [] for name in ("raw", "grow", "one", "many", "append", "read")}
    with TemporaryDirectory(dir=wanted.folder) as folder:
        store = SqliteStore(Path(folder) / "journal.db")
        in_place = os.open(Path(folder) / "in-place", os.O_RDWR | os.O_CREAT, 0o600)
        growing = os.open(Path(folder) / "growing", os.O_RDWR | os.O_CREAT, 0o600)
        for number in range(wanted.rounds + 1):
            # The disk's own speed is taken on both sides of what is compared with it.
            before = raw_syncs(in_place)
            one = await one_caller(store)
            between = raw_syncs(in_place)
            many = await many_callers(store)
            after = raw_syncs(in_place)
            grow = raw_syncs(growing, grow=True)
            append, read = await appends(store), await reads(store)
            if number:  # the first round warms up: the files have their size, the loop its thread
                rows["raw"] += [before, between, after]
                rows["grow"].append(grow / after)
                rows["one"].append(one / ((before + between) / 2))
                rows["many"].append(many / ((between + after) / 2))
                rows["append"].append(append)
                rows["read"].append(read)
        os.close(in_place)
        os.close(growing)
        await store.close()
        calls, busy = await approved_calls(Path(folder), wanted.rounds)
        free, approved = await replay(Path(folder), "look"), await replay(Path(folder), "pay")
        heard = await answered_elsewhere(Path(folder))

    raw = median(rows["raw"])
    result.table("", "per second", "of fdatasync", "target")
    for name, ratios, target in (
        ("write and fdatasync, in place", [1.0], None),
        ("write and fdatasync, growing file", rows["grow"], None),
        ("durable commit, 1 caller", rows["one"], f"≥ {SINGLE_TARGET}"),
        (f"durable commit, {CALLERS} callers", rows["many"], f"≥ {CONCURRENT_TARGET}"),
    ):
        result.row(name, median(ratios) * raw, median(ratios), target)
    result.table("", "µs", "target")
    result.row("append without waiting", median(rows["append"]), None)
    result.row("read a record", median(rows["read"]), None)
    result.row(f"approved call, {APPROVERS} callers", calls, f"≤ {APPROVED_TARGET_MICROSECONDS}")
    result.row("of which computing", busy, None)
    result.row("replay of a CALL that asked nobody", free, f"≤ {REPLAY_TARGET_MICROSECONDS}")
    result.row("replay of a CALL that was approved", approved, f"≤ {REPLAY_TARGET_MICROSECONDS}")
    result.table("", "ms p50", "ms p95")
    result.row("answered in another process, runs here", median(heard), heard[int(len(heard) * 0.95)])
    result.note(f"SQLite {apsw.sqlite_lib_version()}, medians of {wanted.rounds} rounds.")
    result.keep(wanted.json)


if __name__ == "__main__":
    asyncio.run(main())
