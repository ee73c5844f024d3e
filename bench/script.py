"""NuwaScript beside plain Python, and beside its peers where they are installed, in one run.

    python bench/script.py [--json FILE] [WORKLOAD…]

The figures are multiples of the time that CPython takes to compile and run the same thing as plain Python: what
a script costs with positions, limits and the checker on. Machines differ and drift, ratios within one run much less;
what is counted is the processor's time, so that a busy machine changes little.
Peers come with `pip install 'lastword[bench]'`; the last lines name those that are absent.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable
from time import process_time
from typing import Any

from figures import Result, arguments
from peers import PEERS
from workloads import CALLS, MANY, WORKLOADS, Workload

import lastword
from lastword.script import Machine, Signature, SignatureParameter, Site, check, parse
from lastword.script.runtime import Host

ROUNDS = 5
TARGETS = {"a": 12.0, "b": 28.0, "c": 9.0, "e": 4.0, "f": 2.5, "g": 2.5, "h": 3.0}

SIGNATURES = {
    "fetch": Signature(
        "fetch", "One row.", (SignatureParameter("id", "number"), SignatureParameter("kind", "string")), "object"
    )
}


def fetch(id: int, kind: str) -> dict[str, Any]:
    return {"id": id, "kind": kind}


async def fetch_later(id: int, kind: str) -> dict[str, Any]:
    return {"id": id, "kind": kind}


async def fetch_after_others(id: int, kind: str) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"id": id, "kind": kind}


def row(args: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"id": args["id"], "kind": args["kind"]}


async def row_later(args: dict[str, Any], context: Any) -> dict[str, Any]:
    return {"id": args["id"], "kind": args["kind"]}


TOOLS: dict[str, Callable[..., Any]] = {
    "none": fetch,
    "sync": fetch,
    "async": fetch_later,
    "sleeping": fetch_after_others,
}


class ShortestHost:
    """Answers every CALL with one function, and does nothing else."""

    def __init__(self, tool: Callable[..., Any]) -> None:
        self.answer: Callable[[dict[str, Any], Site], Any] = lambda arguments, site: tool(**arguments)

    def lookup(self, name: str) -> Callable[[dict[str, Any], Site], Any]:
        return self.answer

    def now(self) -> int:
        return 0

    def printed(self, line: str) -> None:
        pass


def host_for(tool: Callable[..., Any]) -> Host:
    """What answers the CALLs of the workloads: as little as possible. `micros_a_call` measures the real door."""
    return ShortestHost(tool)


async def run_script(text: str, tool: Callable[..., Any], variables: dict[str, Any]) -> list[str]:
    """All that a script goes through: read, check, run."""
    script = parse(text)
    findings = check(script, SIGNATURES, variables)
    if any(finding.severity == "error" for finding in findings):
        raise SystemExit(f"a workload has errors: {findings}")
    result = await Machine(script, host_for(tool), variables).run()
    if result.error is not None:
        raise SystemExit(f"a workload failed: {result.error}")
    return result.output


async def run_twin(text: str, tool: Callable[..., Any], variables: dict[str, Any]) -> list[str]:
    """The same in Python: compile and execute."""
    printed: list[str] = []
    code = compile(text, "twin", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waiting = eval(code, {"print": lambda *words: printed.append(str(words[0])), "fetch": tool, **variables})
    if waiting is not None:
        await waiting
    return printed


Runner = Callable[[str, Callable[..., Any], dict[str, Any]], Awaitable[list[str]]]


async def seconds(workload: Workload, run: Runner, text: str) -> float:
    """How long one workload takes, once."""
    tool = TOOLS[workload.tool]
    variables = workload.variables()
    # A text that was never seen: nobody may have kept anything of it.
    texts = [text.replace("@", str(number)) for number in range(workload.at_once)]
    gc.collect()
    start = process_time()
    if workload.at_once:
        await asyncio.gather(*(run(one, tool, variables) for one in texts))
    else:
        for _ in range(workload.repeats):
            await run(text, tool, variables)
    return (process_time() - start) / workload.repeats


async def measure(workload: Workload) -> tuple[float, float]:
    """The best of several rounds of the script and of its twin, taken in turns so that both meet the same machine."""
    ours, plain = [], []
    for _ in range(ROUNDS):
        plain.append(await seconds(workload, run_twin, workload.twin))
        ours.append(await seconds(workload, run_script, workload.script))
    return min(ours), min(plain)


def session(tool: Callable[..., Any], approver: lastword.Approver | None = None) -> lastword.Session:
    """The real door before a tool that gives the same: validation, the consent rule, two chained records in memory."""
    registry = lastword.ToolRegistry()
    schema = {
        "description": "One row.",
        "parameters": [{"name": "id", "type": "number"}, {"name": "kind", "type": "string"}],
        "returns": "object",
    }
    registry.register("fetch", schema, tool, inline=True, require_approval=approver is not None)
    return lastword.Session(registry, approver=approver)


async def micros_a_call(tool: Callable[..., Any]) -> float:
    """What one CALL costs through the real door, everything included; the best of several runs."""
    best = 1e9
    for _ in range(ROUNDS):
        gc.collect()
        door = session(tool)
        start = process_time()
        run = await door.run_script(CALLS.script, CALLS.variables())
        best = min(best, (process_time() - start) / 10_000 * 1e6)
        if run.error is not None:
            raise SystemExit(f"a workload failed: {run.error}")
    return best


async def memory_of_waiting_scripts(count: int = 1_000) -> float:
    """Bytes for each script that waits at an approval, through the real door, with what the journal holds of it."""
    asked: list[lastword.ApprovalRequest] = []
    all_wait = asyncio.Event()

    async def never(request: lastword.ApprovalRequest) -> lastword.UserAction:
        asked.append(request)
        if len(asked) == count:
            all_wait.set()
        return await lastword.wait_for_answer(request)

    door = session(row, never)
    await door.run_script("PRINT(1)")
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    runs = [asyncio.ensure_future(door.run_script(MANY.script.replace("@", str(n)))) for n in range(count)]
    await all_wait.wait()
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    for run in runs:
        run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)
    return used / count


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"one of {', '.join(WORKLOADS)}")
    wanted = parser.parse_args()
    result = Result(__doc__, peers=tuple(peer.name for peer in PEERS))
    present = [peer for peer in PEERS if peer.name in result.peers]
    result.table("", "× CPython", "target", "ms", *(peer.name for peer in present))
    for name, workload in WORKLOADS.items():
        if wanted.workloads and name not in wanted.workloads:
            continue
        ours, plain = asyncio.run(measure(workload))
        cells = [peer.ratio(workload) for peer in present]
        result.row(f"{name} {workload.title}", ours / plain, TARGETS.get(name), ours * 1000, *cells)
    for peer in present:
        if peer.elsewhere:
            result.note(
                f"{peer.name} works in another process and is timed by the wall clock: a busy machine slows it more."
            )
    if not wanted.workloads:
        result.table("", "µs", "target")
        for name, tool in (("inline tool", row), ("async tool", row_later)):
            result.row(f"a CALL through the real door, {name}", asyncio.run(micros_a_call(tool)), 15)
        waiting = asyncio.run(memory_of_waiting_scripts())
        result.note(f"A script that waits at an approval takes {waiting / 1024:.1f} KB (target 40).")
    result.keep(wanted.json)


if __name__ == "__main__":
    main()
