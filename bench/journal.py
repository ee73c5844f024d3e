"""What it costs to remember: durable appends against the disk's own speed, in one run.

    python bench/journal.py [--rounds 10] [--folder DIR]

Everything is measured in short rounds that take turns, and each ratio is the median over the rounds: a disk that others
use changes its speed from second to second, and the ratio of two neighbouring rounds hardly does. The disk's own speed
is `write` and `fdatasync` of as many bytes as a record has, again and again: over what is there already, which is the
fastest a disk can be and what the targets mean; and at the end of a file that grows, as a plain log would.
"""

import argparse
import asyncio
import os
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, time_ns

import apsw

from assent.store import Entry
from assent.store.sqlite import SqliteStore

ROUND = 200
CALLERS = 64
DATA = b'{"arguments":{"path":"notes/today.md","text":"%s"}}' % (b"remember " * 16)
SINGLE_TARGET = 0.4
CONCURRENT_TARGET = 2.0


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


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--folder", type=Path, help="measure the disk of this folder")
    wanted = parser.parse_args()
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

    raw = median(rows["raw"])
    print(f"SQLite {apsw.sqlite_lib_version()}, {wanted.rounds} rounds, medians\n")
    print(f"{'':40}{'per second':>12}{'of fdatasync':>14}{'target':>10}")
    print(row("write and fdatasync, in place", raw, 1))
    print(row("write and fdatasync, growing file", raw, median(rows["grow"])))
    print(row("durable commit, 1 caller", raw, median(rows["one"]), SINGLE_TARGET))
    print(row(f"durable commit, {CALLERS} callers", raw, median(rows["many"]), CONCURRENT_TARGET))
    print(f"\nappend without waiting {median(rows['append']):8.2f} µs")
    print(f"read a record          {median(rows['read']):8.2f} µs")


def row(name: str, raw: float, ratio: float, target: float | None = None) -> str:
    verdict = "" if target is None else f"≥ {target}  {'met' if ratio >= target else 'missed'}"
    return f"{name:40}{ratio * raw:>12,.0f}{ratio:>14.2f}    {verdict}"


if __name__ == "__main__":
    asyncio.run(main())
