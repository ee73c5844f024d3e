"""Three accidents, each tried with a framework's own approval and with lastword behind it, by the scripts beside this.

A run has asked for a payment, its state is kept in the framework's own form, and a person has said yes. Then
* the kept state is taken up twice: from a backup, or by two workers who got the same job;
* the process dies while the payment runs, and the state is taken up again;
* somebody changes whom the kept state pays, and it is taken up.

What counts is what was paid: lines in a file that neither side knows of. Nothing here talks to a network.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import lastword

NAMES = {True: "with lastword", False: "alone"}


class Side(Protocol):
    """One framework: its runs before and after the yes, with the tool of its own or with a session's."""

    package: str

    async def keep(self, folder: Path, session: lastword.Session | None) -> None:
        """Let the model ask for a payment of 5 to Ada, and keep the state."""

    async def go_on(self, folder: Path, session: lastword.Session | None) -> str:
        """Take the kept state up with the person's yes; what the model read in the end."""


class Till:
    """Where payments show."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "paid"

    def pay(self, to: str, amount: float, *, dies: bool = False) -> str:
        with self._file.open("a") as file:
            file.write(f"{amount:g} to {to}\n")
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return f"paid {amount:g} to {to}"

    def paid(self) -> str:
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return ", ".join(f"{line} ×{count}" if count > 1 else line for line, count in Counter(lines).items())


def dies() -> bool:
    return "LASTWORD_COMPARE_DIES" in os.environ


def session(folder: Path) -> lastword.Session:
    """A session on a journal in this folder. Nobody sits here: the yes comes from elsewhere."""
    registry = lastword.ToolRegistry()

    @registry.tool
    async def pay(to: str, amount: float) -> str:
        """Send money to somebody."""
        return Till(folder).pay(to, amount, dies=dies())

    journal = lastword.open_journal(f"sqlite:///{folder / 'journal.db'}")
    limits = lastword.Limits(watch_after_seconds=0, approval_timeout_seconds=20)
    return lastword.Session(registry, id="till", approver=lastword.wait_for_answer, journal=journal, limits=limits)


async def taken_up(side: Side, folder: Path, kept: Path, ours: bool) -> str:
    if not ours:
        return await side.go_on(kept, None)
    async with session(folder) as opened:
        try:
            return await side.go_on(kept, opened)
        finally:
            await opened.journal.close()


async def prepared(side: Side, folder: Path, ours: bool) -> Path:
    """A kept run whose payment has its yes. Without lastword the yes is the program's to give when it goes on."""
    kept = folder / "kept"
    kept.mkdir()
    if not ours:
        await side.keep(kept, None)
        return kept
    async with session(folder) as opened:
        await side.keep(kept, opened)
        asking = asyncio.create_task(side.go_on(Path(shutil.copytree(kept, folder / "asking")), opened))
        card = await _card(opened)
        opened.detach(card.call_id)
        with suppress(Exception):  # The framework's own error around `Detached`: the run ends here, the card waits.
            await asking
        [facts], _ = await opened.journal.questions()
        await opened.journal.answer(facts, card.allow(), "somebody elsewhere")
        await opened.journal.close()
    return kept


async def _card(session: lastword.Session) -> lastword.ApprovalRequest:
    async for event in session.events():
        if isinstance(event, lastword.Asked):
            return event.request
    raise AssertionError("no card was shown")


async def taken_up_twice(side: Side, folder: Path, ours: bool) -> str:
    kept = await prepared(side, folder, ours)
    copies = [Path(shutil.copytree(kept, folder / f"copy-{n}")) for n in (1, 2)]
    for copy in copies:
        await taken_up(side, folder, copy, ours)
    return Till(folder).paid()


async def killed_and_taken_up(side: Side, folder: Path, ours: bool) -> str:
    kept = await prepared(side, folder, ours)
    copy = shutil.copytree(kept, folder / "first")
    command = [sys.executable, sys.argv[0], "--take-up", str(folder), str(copy), NAMES[ours]]
    there = os.environ | {"LASTWORD_COMPARE_DIES": "1"}
    child = await asyncio.to_thread(subprocess.run, command, env=there, capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr.decode()
    said = await taken_up(side, folder, kept, ours)
    told = "the model reads that nobody knows" if "not known" in said else "the model reads that it was paid"
    return f"{Till(folder).paid()}; {told}"


async def changed_after_the_yes(side: Side, folder: Path, ours: bool) -> str:
    kept = await prepared(side, folder, ours)
    for path in kept.iterdir():
        path.write_bytes(path.read_bytes().replace(b"Ada", b"Eve"))
    try:
        said = await taken_up(side, folder, kept, ours)
    except Exception as refusal:
        said = f"refused by {type(refusal).__module__.split('.')[0]}"
    return Till(folder).paid() or ("refused" if "another call" in said else said)


SCENES = {
    "the kept state is taken up twice": taken_up_twice,
    "killed while it pays, taken up again": killed_and_taken_up,
    "the kept state is changed after the yes": changed_after_the_yes,
}


def main(side: Side) -> None:
    """Print what each accident led to, without and with lastword."""
    if sys.argv[1:2] == ["--take-up"]:
        _, _, folder, kept, name = sys.argv
        asyncio.run(taken_up(side, Path(folder), Path(kept), name == NAMES[True]))
        return
    print(f"{side.package} {version(side.package)}\n")
    print(f"| what happened | {NAMES[False]} | {NAMES[True]} |\n|---|---|---|")
    for name, scene in SCENES.items():
        cells = []
        for ours in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                cells.append(asyncio.run(scene(side, Path(folder), ours)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
