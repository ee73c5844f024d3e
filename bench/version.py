"""One version of the package, alone in its process: what three calls cost in it. Prints microseconds as JSON.

    python bench/version.py FOLDER

`FOLDER` holds the package, under its name of today or of before. What is used of it here, both versions have.
bench/dispatch.py starts it by turns with two of them.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

NAMES = ("lastword", "assent")
ROUNDS = 3
ARGUMENTS = {"token": "BTC", "amount": 3}
SCHEMA = {
    "description": "A price.",
    "parameters": [
        {"name": "token", "type": "string", "description": "which"},
        {"name": "amount", "type": "number", "description": "how many"},
    ],
    "returns": "object",
}
CALLS = 1_000
SCRIPT = f"""FOR n IN RANGE(0, {CALLS}) DO
  LET x = CALL asynchronous {{ token: "BTC", amount: n }}
END
"""


def name_in(folder: Path) -> str | None:
    """Under which name a folder holds the package; None when it does not."""
    return next((name for name in NAMES if (folder / name / "__init__.py").is_file()), None)


def load(folder: Path) -> Any:
    """The package of this folder, and of no other."""
    name = name_in(folder)
    if name is None:
        raise SystemExit(f"there is no {' or '.join(NAMES)} in this folder")
    sys.path.insert(0, str(folder))
    package = importlib.import_module(name)
    assert Path(str(package.__file__)).resolve().is_relative_to(folder.resolve()), "another one was there first"
    return package


def session(package: Any) -> Any:
    """A session with a tool that asks nobody, and one whose approver says yes at once."""
    registry = package.ToolRegistry()

    async def asynchronous(args: dict[str, Any], context: Any) -> dict[str, Any]:
        return {"token": args["token"], "price": args["amount"]}

    async def yes(request: Any) -> Any:
        return package.UserAction(True, False)

    registry.register("asynchronous", SCHEMA, asynchronous)
    registry.register("approved", SCHEMA, asynchronous, require_approval=True)
    return package.Session(registry, approver=yes)


async def call(package: Any, tool: str, count: int) -> float:
    """Microseconds for one call, of so many in a new session."""
    door = session(package)
    for _ in range(20):
        assert (await door.call(tool, ARGUMENTS)).success
    start = time.perf_counter()
    for _ in range(count):
        await door.call(tool, ARGUMENTS)
    return (time.perf_counter() - start) / count * 1e6


async def call_of_a_script(package: Any) -> float:
    """The same for a CALL, with its part of the script around it."""
    door = session(package)
    start = time.perf_counter()
    run = await door.run_script(SCRIPT)
    taken = (time.perf_counter() - start) / CALLS * 1e6
    assert run.status == "done"
    return taken


async def measure(package: Any) -> dict[str, float]:
    """The best of a few rounds, by turns."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        found = {
            "async tool": await call(package, "asynchronous", 2_000),
            "approval round and run": await call(package, "approved", 800),
            "CALL of a script": await call_of_a_script(package),
        }
        best = {name: min(micros, best.get(name, micros)) for name, micros in found.items()}
    return best


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(load(Path(sys.argv[1]))))))
