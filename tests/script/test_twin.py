"""The machine against a naive evaluator, on programs nobody wrote."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.script import Machine, machine, nodes, parse, runtime, steps
from lastword.values import canonical
from requirements import requirement
from script.hosts import TestHost
from script.programs import Writer
from script.twin import Twin
from tries import tries

VARIABLES: dict[str, Any] = {
    "given": [4, 5.5, 6],
    "record": {"name": "Ada", "n": 3, "deep": {"list": [1, "two", None]}, "big": 2**60 + 1},
}


def as_number(refuse: Callable[[str], Any], *values: Any) -> None:
    if any(type(value) not in (int, float) for value in values):
        refuse("ToolArgument")


def twin_add(refuse: Callable[[str], Any], arguments: dict[str, Any]) -> Any:
    as_number(refuse, arguments["a"], arguments["b"])
    return float(arguments["a"]) + float(arguments["b"])


TWIN_TOOLS: dict[str, Callable[..., Any]] = {
    "echo": lambda refuse, arguments: arguments,
    "add": twin_add,
    "fail": lambda refuse, arguments: refuse("ToolExecution"),
    "nothing": lambda refuse, arguments: None,
    "list": lambda refuse, arguments: list(range(arguments["n"])),
}


async def compare_with_twin(text: str) -> bool:
    """Run a program on both; they must agree in everything. Says whether it ended without an error."""
    script = parse(text)
    twin = Twin(script, TWIN_TOOLS, VARIABLES)
    for waits in (False, True):
        host = TestHost({name: tool for name, tool in TestHost().tools.items() if name in TWIN_TOOLS}, waits=waits)
        result = await Machine(script, host, VARIABLES).run()
        error = result.error
        found = (type(error).__name__, error.line, error.column) if error else None
        assert found == twin.error, f"{text}\n{error}"
        assert result.output == twin.output == host.lines, text
        assert [(tool, canonical(given)) for tool, given in host.calls] == [
            (tool, canonical(given)) for tool, given in twin.calls
        ], text
        assert canonical(result.variables) == canonical(twin.variables), text
    return twin.error is None


@requirement("NUWA-1", "NUWA-2", "NUWA-3", "NUWA-4", "NUWA-5", "NUWA-10", "NUWA-12", "NUWA-21", "NUWA-22", "NUWA-31")
@pytest.mark.parametrize(
    ("closures", "fuel"),
    [(nodes.MAX_CLOSURE_DEPTH, runtime.SLICE), (0, runtime.SLICE), (nodes.MAX_CLOSURE_DEPTH, 1)],
    ids=["closures", "steps", "pauses"],
)
def test_the_machine_agrees_with_a_naive_evaluator(closures: int, fuel: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closures and slots are there for speed and may never show: output, calls, errors and variables are the same.

    With no closures allowed everything runs step by step, as the deepest scripts do; that must not show either. With
    hardly any fuel there is a pause wherever there can be one.
    """
    monkeypatch.setattr(nodes, "MAX_CLOSURE_DEPTH", closures)
    for module in (runtime, steps, machine):
        monkeypatch.setattr(module, "SLICE", fuel)
    ended = []

    @tries(40)
    @given(st.integers(0, 2**32), st.integers(3, 25))
    def check_one(seed: int, size: int) -> None:
        ended.append(asyncio.run(compare_with_twin(Writer(Random(seed), size).program())))

    check_one()
    assert sum(ended) > len(ended) / 2, "most programs should run to their end, or the comparison shows little"


def test_the_naive_evaluator_is_no_echo_of_the_machine() -> None:
    """A twin that agreed with everything would prove nothing."""
    twin = Twin(parse("LET a = 1 / 0"), {}, {})
    assert twin.error == ("DivisionByZero", 1, 11)
