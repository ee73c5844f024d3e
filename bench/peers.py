"""Other ways to run code that a model wrote, for the same workloads, where they are installed.

Each runs the plain-Python twin of a workload, as far as it can: a peer that lacks something the twin needs says so in
its cell. None of them has a checker, a plan or a door for consent; they are here for speed alone.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

from workloads import Workload

ROUNDS = 3


@dataclass(frozen=True)
class Peer:
    """A library, and how to make it run a text once."""

    name: str
    module: str
    prepare: Callable[[Any, Workload], Callable[[], None]]

    def ratio(self, workload: Workload, plain: float) -> str:
        """Its time as a multiple of plain Python's, or why there is none."""
        if workload.tool in ("async", "sleeping"):
            return "-"
        try:
            run = self.prepare(importlib.import_module(self.module), workload)
            times = []
            for _ in range(ROUNDS):
                start = process_time()
                for _ in range(workload.repeats):
                    run()
                times.append((process_time() - start) / workload.repeats)
        except Exception as problem:
            # A peer's refusal is a result of the comparison, whatever its class.
            return type(problem).__name__
        return f"{min(times) / plain:.2f}"


def _fetch(id: int, kind: str) -> dict[str, Any]:
    return {"id": id, "kind": kind}


def _monty(module: Any, workload: Workload) -> Callable[[], None]:
    variables = workload.variables()

    def run() -> None:
        functions = {"fetch": _fetch} if workload.tool == "sync" else {}
        module.Monty(workload.twin, inputs=list(variables)).run(inputs=variables, external_functions=functions)

    return run


def _starlark(module: Any, workload: Workload) -> Callable[[], None]:
    variables = workload.variables()
    # Starlark has no f-strings and, at the top of a file, no loops: the twin becomes the body of a function.
    text = "def main():\n" + "".join(f"    {line}\n" for line in workload.twin.splitlines()) + "main()\n"
    dialect = module.Dialect.extended()

    def run() -> None:
        space = module.Module()
        for name, value in variables.items():
            space[name] = value
        space.add_callable("fetch", _fetch)
        space.add_callable("print", lambda *words: None)
        module.eval(space, module.parse("twin", text, dialect), module.Globals.standard())

    return run


def _restricted(module: Any, workload: Workload) -> Callable[[], None]:
    variables = workload.variables()

    def run() -> None:
        code = module.compile_restricted(workload.twin.replace("print(", "show("), "twin", "exec")
        names: dict[str, Any] = {
            "__builtins__": dict(module.safe_builtins),
            "fetch": _fetch,
            "show": lambda *words: None,
        }
        names |= {"_getiter_": iter, "_getitem_": lambda target, key: target[key], **variables}
        exec(code, names)

    return run


def _smolagents(module: Any, workload: Workload) -> Callable[[], None]:
    variables = workload.variables()
    executor = importlib.import_module("smolagents.local_python_executor")

    def run() -> None:
        python = executor.LocalPythonExecutor(additional_authorized_imports=[])
        python.send_variables(variables)
        python.send_tools({"fetch": _fetch})
        python(workload.twin)

    return run


PEERS = (
    Peer("pydantic-monty", "pydantic_monty", _monty),
    Peer("starlark-pyo3", "starlark", _starlark),
    Peer("RestrictedPython", "RestrictedPython", _restricted),
    Peer("smolagents", "smolagents", _smolagents),
)
