"""What one call costs, as a ratio to a bare function and to pydantic's validate_call, in one run.

    python bench/dispatch.py [--json FILE] [--beside FOLDER]

`--beside` measures three calls in an older version as well, each version in processes of its own, by turns. `FOLDER` is
the one that holds its package, such as `src` of another checkout. Every figure is the best of several rounds,
interleaved, so that a busy machine disturbs all of them alike. Ratios can be compared between machines; the
microseconds beside them cannot.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pydantic
import version
from figures import Result, arguments
from version import ARGUMENTS, SCHEMA

import lastword
from lastword.rules import GrantOffer

ROUNDS = 20
# Of two versions, each a process: what disturbs one of them disturbs the other a moment later.
VERSION_ROUNDS = 10

Case = Callable[[int], Awaitable[float]]


async def bare_async(token: str, amount: float) -> dict[str, Any]:
    return {"token": token, "price": amount}


def bare_sync(token: str, amount: float) -> dict[str, Any]:
    return {"token": token, "price": amount}


validated_sync = pydantic.validate_call(bare_sync)
validated_async = pydantic.validate_call(bare_async)


def session(
    rules: int = 0, preset: bool = False, policy: str = "", approver: lastword.Approver | None = None
) -> lastword.Session:
    """A session with tools of every kind, and so many rules that speak of the tool which has its key."""
    registry = lastword.ToolRegistry()

    async def asynchronous(args: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"token": args["token"], "price": args["amount"]}

    def synchronous(args: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"token": args["token"], "price": args["amount"]}

    async def yes(request: lastword.ApprovalRequest) -> lastword.UserAction:
        return lastword.UserAction(True, False)

    registry.register("asynchronous", SCHEMA, asynchronous)
    registry.register("inline", SCHEMA, synchronous, inline=True)
    registry.register("thread", SCHEMA, synchronous)
    registry.register("approved", SCHEMA, asynchronous, require_approval=True)
    registry.register("keyed", SCHEMA, asynchronous, require_approval=True, auto_approve=True, effect="reversible")
    text = policy + "".join(RULE.format(number=number) for number in range(rules))
    return lastword.Session(
        registry,
        approver=approver or yes,
        preset=lastword.Preset(preset),
        policy=lastword.Policy.vouched(text, registry) if text else None,
    )


# None of these speaks of the call that is measured, so every one of them is looked at.
RULE = """
[[rule]]
name = "rule {number}"
tool = "keyed"
decide = "allow"
[rule.where]
token = {{ in = ["T{number}", "U{number}"] }}
amount = {{ min = 0, max = {number} }}
[rule.tests]
match = [{{ token = "T{number}", amount = {number} }}]
not_match = [{{ token = "BTC", amount = {number} }}]
"""
ALLOWS = """
[[rule]]
name = "prices"
tool = "keyed"
decide = "allow"
[rule.where]
token = { in = ["BTC", "ETH"] }
amount = { min = 0, max = 10 }
[rule.tests]
match = [{ token = "BTC", amount = 3 }]
not_match = [{ token = "BTC", amount = 10.5 }]
"""


def granting(request: lastword.ApprovalRequest) -> lastword.UserAction:
    """A person who allows this call, and others like it."""
    offer = GrantOffer.of(request, Path())
    assert isinstance(offer, GrantOffer)
    return request.allow_with(offer.terms({"amount": {"min": 0, "max": 3}}))


def cases() -> dict[str, tuple[Case, int]]:
    async def await_bare(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            await bare_async("BTC", 3)
        return time.perf_counter() - start

    async def call_bare(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            bare_sync("BTC", 3)
        return time.perf_counter() - start

    async def call_validated(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            validated_sync(**ARGUMENTS)  # type: ignore[arg-type]
        return time.perf_counter() - start

    async def await_validated(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            await validated_async(**ARGUMENTS)  # type: ignore[arg-type]
        return time.perf_counter() - start

    async def await_task(count: int) -> float:
        loop = asyncio.get_running_loop()
        start = time.perf_counter()
        for _ in range(count):
            await loop.create_task(bare_async("BTC", 3))
        return time.perf_counter() - start

    async def await_thread(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            await asyncio.to_thread(bare_sync, "BTC", 3)
        return time.perf_counter() - start

    def through(tool: str, by: str | None = None, **facts: Any) -> Case:
        async def case(count: int) -> float:
            door = session(**facts)  # a new journal every round: what is measured is the call, not the memory's age
            for _ in range(2 if by else 0):
                said = (await door.call(tool, ARGUMENTS)).approval
            assert by is None or said == by
            start = time.perf_counter()
            for _ in range(count):
                await door.call(tool, ARGUMENTS)
            return time.perf_counter() - start

        return case

    return {
        "bare function": (call_bare, 20_000),
        "bare await": (await_bare, 20_000),
        "pydantic validate_call, sync": (call_validated, 10_000),
        "pydantic validate_call, async": (await_validated, 10_000),
        "a task of its own, nothing else": (await_task, 5_000),
        "asyncio.to_thread, nothing else": (await_thread, 1_000),
        "lastword, inline sync tool": (through("inline"), 3_000),
        "lastword, async tool": (through("asynchronous"), 3_000),
        "lastword, sync tool in a thread": (through("thread"), 1_000),
        APPROVED: (through("approved", "person"), 1_000),
        KEYED: (through("keyed", "person"), 1_000),
        "the same with 1 rule of the tool": (through("keyed", "person", rules=1), 1_000),
        RULED: (through("keyed", "person", rules=100), 1_000),
        "lastword, the preset's yes and run": (through("keyed", "auto", preset=True), 1_000),
        "lastword, a rule's yes and run": (through("keyed", "rule", policy=ALLOWS), 1_000),
        "the same beside 100 rules of the tool": (through("keyed", "rule", policy=ALLOWS, rules=100), 1_000),
        "lastword, a grant's yes and run": (through("keyed", "grant", approver=granting), 1_000),
    }


APPROVED = "lastword, approval round and run"
KEYED = "the same of a tool with its key"
RULED = "the same with 100 rules of the tool"

TARGETS = {
    "lastword, async tool": 15.0,
    "lastword, sync tool in a thread": 130.0,
    "lastword, approval round and run": 60.0,
}


async def measure() -> dict[str, float]:
    best: dict[str, float] = {}
    everything = cases()
    for _ in range(ROUNDS):
        for name, (case, count) in everything.items():
            best[name] = min(best.get(name, 1e9), await case(count) / count * 1e6)
    return best


def import_time_ms() -> float:
    """`import lastword` and the names of the README's example, in a fresh interpreter, above an empty one."""

    with tempfile.TemporaryDirectory() as folder:
        # The byte code is on disk, as it is after an installation; the first run puts it there.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = folder

        def run(code: str) -> float:
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)
            return time.perf_counter() - start

        empty = min(run("pass") for _ in range(8))
        return (min(run("import lastword; lastword.Session; lastword.ToolRegistry") for _ in range(8)) - empty) * 1000


def measure_versions(*folders: Path) -> list[dict[str, float]]:
    """What three calls cost in each of these versions: the best of several processes, by turns."""
    best: list[dict[str, float]] = [{} for _ in folders]
    for _ in range(VERSION_ROUNDS):
        for folder, found in zip(folders, best, strict=True):
            run = subprocess.run([sys.executable, version.__file__, folder], capture_output=True, text=True, check=True)
            for name, micros in json.loads(run.stdout).items():
                found[name] = min(micros, found.get(name, micros))
    return best


def commit_of(folder: Path) -> str:
    """Which version lies in a folder, in words that say nothing of the machine."""
    command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return f"commit {found}" if found else "unknown to git"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="measure an older version as well")
    wanted = parser.parse_args()
    if wanted.beside is not None and version.name_in(wanted.beside) is None:
        parser.error(f"there is no {' or '.join(version.NAMES)} in the folder of the older version")
    result = Result(__doc__, peers=("pydantic",))
    best = asyncio.run(measure())
    bare, validated = best["bare await"], best["pydantic validate_call, async"]
    result.table("", "µs", "× bare await", "× validate_call", "target µs")
    for name, micros in best.items():
        result.row(name, micros, micros / bare, micros / validated, TARGETS.get(name))
    result.note(
        f"Of a tool with its key an approval round takes {best[KEYED] - best[APPROVED]:+.1f} µs without any rules or "
        f"grants; 100 rules of the tool add {best[RULED] - best[KEYED]:.1f} µs (target 40)."
    )
    if wanted.beside is not None:
        now, before = measure_versions(Path(str(lastword.__file__)).parents[1], wanted.beside)
        result.table("", "µs", "µs before", "× before")
        for name, micros in now.items():
            result.row(name, micros, before[name], micros / before[name])
        result.note(f"The older version is {commit_of(wanted.beside)}, measured by turns with this one.")
    result.note(f"`import lastword`, with Session and ToolRegistry: {import_time_ms():.0f} ms (target 110).")
    result.keep(wanted.json)


if __name__ == "__main__":
    main()
