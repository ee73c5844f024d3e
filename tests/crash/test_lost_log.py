"""A program pays, is killed, and a part of its journal is lost. Whoever goes on pays nothing twice.

The chain of what is left holds, so nothing in the journal itself can tell. The head beside it can.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import payer
import pytest

import lastword
from lastword.errors import StoreError
from lastword.journal import Journal
from lastword.store import Entry, SqliteStore
from requirements import requirement


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a program left that was killed while it paid."""
    folder = tmp_path_factory.mktemp("killed")
    ended = subprocess.run([sys.executable, payer.__file__, str(folder)], timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert len((folder / "paid").read_text().splitlines()) == payer.PAYMENTS
    return folder


def delete_log(folder: Path, chance: random.Random) -> None:
    (folder / "journal.db-wal").unlink()


def cut_log(folder: Path, chance: random.Random) -> None:
    """Anywhere: also where nothing is lost that somebody acted upon."""
    log = folder / "journal.db-wal"
    os.truncate(log, chance.randrange(log.stat().st_size + 1))


def damage_log(folder: Path, chance: random.Random) -> None:
    content = bytearray((folder / "journal.db-wal").read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    (folder / "journal.db-wal").write_bytes(content)


def restore_copy(folder: Path, chance: random.Random) -> None:
    (folder / "journal.db-wal").unlink()
    shutil.copy(folder / "copy.db", folder / "journal.db")


def replace_by_another(folder: Path, chance: random.Random) -> None:
    """Another journal in its place, in which the same run has begun and nothing was paid."""

    async def copy_the_beginning() -> None:
        old, new = SqliteStore(folder / "journal.db"), SqliteStore(folder / "other.db")
        [begun] = await old.read(kind="run_started")
        assert begun.data is not None
        await new.commit(Entry(begun.stream, begun.kind, begun.subject, begun.at, begun.data))
        await new.commit(*(Entry("x", "note", "", number, b"{}") for number in range(200)))
        await old.close()
        await new.close()

    asyncio.run(copy_the_beginning())
    (folder / "other.db").rename(folder / "journal.db")


Damage = Callable[[Path, random.Random], None]
AT_RANDOM = (cut_log, damage_log)


@requirement("TEAM-10", "NUWA-62")
@pytest.mark.parametrize("damage", [delete_log, *AT_RANDOM, restore_copy, replace_by_another])
def test_nothing_is_paid_twice_after_a_part_of_the_journal_was_lost(killed: Path, tmp_path: Path, damage: Damage):
    """Refused, or in doubt where the log was whole enough; never asked and paid again as if it had not been spent."""
    seed = random.SystemRandom().randrange(2**32)
    chance = random.Random(seed)
    ends: Counter[str] = Counter()
    for number in range(8 if damage in AT_RANDOM else 1):
        folder = tmp_path / str(number)
        shutil.copytree(killed, folder, ignore=shutil.ignore_patterns("*-shm"))
        damage(folder, chance)
        ends[asyncio.run(go_on(folder))] += 1
        paid = (folder / "paid").read_text().splitlines()
        assert len(paid) == len(set(paid)) == payer.PAYMENTS, f"seed {seed}, {number}: {paid}"
    assert set(ends) <= {"refused", "in doubt"}, f"seed {seed}: {ends}"
    assert damage in AT_RANDOM or ends == {"refused": 1}


async def go_on(folder: Path) -> str:
    """Another process goes on with the run; somebody is there who says yes to everything."""
    journal = Journal(SqliteStore(folder / "journal.db"))
    session = lastword.Session(payer.tools(folder), id="s", approver=payer.allow, journal=journal)
    try:
        await journal.store.verify()  # What is left proves itself, and that is the danger.
        return "in doubt" if (await session.resume("bills")).status == "waiting" else "went on"
    except StoreError as problem:
        return "refused" if problem.fact.startswith("nothing approved starts here") else problem.fact
    finally:
        await journal.close()
