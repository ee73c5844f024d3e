"""Other ways to run code that a model wrote, for the same workloads, where they are installed.

Each runs the plain-Python twin of a workload, as far as it can: a peer that lacks something the twin needs says so in
its cell. None of them has a checker, a plan or a door for consent; they are here for speed alone. Their time is that of
the processor, like ours, or a busy machine would make them look slower than they are. One works in a process of its
own, whose time is not ours to read: it is timed by the clock on the wall, and so is the plain Python beside it.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter, process_time
from typing import Any

from workloads import Workload

ROUNDS = 5

Run = Callable[[], None]


@dataclass(frozen=True)
class Peer:
    """A library, and how to make it run a text once."""

    name: str
    module: str
    prepared: Callable[[Any, Workload], AbstractContextManager[Run]]
    elsewhere: bool = False
    """Whether it works in a process of its own."""

    def ratio(self, workload: Workload) -> float | str:
        """Its time as a multiple of plain Python's, taken in turns, or why there is none."""
        if workload.tool in ("async", "sleeping"):
            return "-"
        try:
            with self.prepared(importlib.import_module(self.module), workload) as run:
                clock = perf_counter if self.elsewhere else process_time
                rounds = [
                    (_seconds(run, workload, clock), _seconds(_plain(workload), workload, clock)) for _ in range(ROUNDS)
                ]
        except Exception as problem:
            # A peer's refusal is a result of the comparison, whatever its class.
            return type(problem).__name__
        return min(peer for peer, _ in rounds) / min(plain for _, plain in rounds)


def _seconds(run: Run, workload: Workload, clock: Callable[[], float]) -> float:
    gc.collect()
    start = clock()
    for _ in range(workload.repeats):
        run()
    return (clock() - start) / workload.repeats


def _plain(workload: Workload) -> Run:
    """The twin in CPython itself: compiled and executed, as in bench/script.py."""
    variables = workload.variables()

    def run() -> None:
        exec(compile(workload.twin, "twin", "exec"), {"print": lambda *words: None, "fetch": _fetch, **variables})

    return run


def _fetch(id: int, kind: str) -> dict[str, Any]:
    return {"id": id, "kind": kind}


@contextmanager
def _monty(module: Any, workload: Workload) -> Iterator[Run]:
    variables = workload.variables()
    with module.Monty() as pool:

        def run() -> None:
            with pool.checkout() as session:
                session.feed_run(
                    workload.twin,
                    inputs=variables,
                    external_lookup={"fetch": _fetch},
                    print_callback=lambda stream, text: None,
                    skip_type_check=True,
                )

        yield run


@contextmanager
def _starlark(module: Any, workload: Workload) -> Iterator[Run]:
    variables = workload.variables()
    # At the top of a file Starlark has no loops: the twin becomes the body of a function.
    text = "def main():\n" + "".join(f"    {line}\n" for line in workload.simple_twin.splitlines()) + "main()\n"
    dialect = module.Dialect.extended()

    def run() -> None:
        space = module.Module()
        for name, value in variables.items():
            space[name] = value
        space.add_callable("fetch", _fetch)
        space.add_callable("print", lambda *words: None)
        module.eval(space, module.parse("twin", text, dialect), module.Globals.standard())

    yield run


@contextmanager
def _restricted(module: Any, workload: Workload) -> Iterator[Run]:
    variables = workload.variables()

    def run() -> None:
        code = module.compile_restricted(workload.twin.replace("print(", "show("), "twin", "exec")
        names: dict[str, Any] = {"__builtins__": dict(module.safe_builtins), "fetch": _fetch}
        names |= {"_getiter_": iter, "_getitem_": lambda target, key: target[key], "show": lambda *words: None}
        exec(code, names | variables)

    yield run


@contextmanager
def _smolagents(module: Any, workload: Workload) -> Iterator[Run]:
    variables = workload.variables()
    executor = importlib.import_module("smolagents.local_python_executor")

    def run() -> None:
        python = executor.LocalPythonExecutor(additional_authorized_imports=[])
        python.send_variables(variables)
        python.send_tools({"fetch": _fetch})
        python(workload.twin)

    yield run


PEERS = (
    Peer("pydantic-monty", "pydantic_monty", _monty, elsewhere=True),
    Peer("starlark-pyo3", "starlark", _starlark),
    Peer("RestrictedPython", "RestrictedPython", _restricted),
    Peer("smolagents", "smolagents", _smolagents),
)
