"""Other ways to run code that a model wrote, for the same workloads, where they are installed.

Each runs the plain-Python twin of a workload, as far as it can: a peer that lacks something the twin needs says so in
its cell. None of them has a checker, a plan or a door for consent; they are here for speed alone. Their time is taken
from the clock on the wall, since one of them works in a process of its own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from workloads import Workload

ROUNDS = 3

Run = Callable[[], None]


@dataclass(frozen=True)
class Peer:
    """A library, and how to make it run a text once."""

    name: str
    module: str
    prepared: Callable[[Any, Workload], AbstractContextManager[Run]]

    def ratio(self, workload: Workload, plain: float) -> float | str:
        """Its time as a multiple of plain Python's, or why there is none."""
        if workload.tool in ("async", "sleeping"):
            return "-"
        try:
            with self.prepared(importlib.import_module(self.module), workload) as run:
                times = [_seconds(run, workload.repeats) for _ in range(ROUNDS)]
        except Exception as problem:
            # A peer's refusal is a result of the comparison, whatever its class.
            return type(problem).__name__
        return min(times) / plain


def _seconds(run: Run, repeats: int) -> float:
    start = perf_counter()
    for _ in range(repeats):
        run()
    return (perf_counter() - start) / repeats


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
    Peer("pydantic-monty", "pydantic_monty", _monty),
    Peer("starlark-pyo3", "starlark", _starlark),
    Peer("RestrictedPython", "RestrictedPython", _restricted),
    Peer("smolagents", "smolagents", _smolagents),
)
