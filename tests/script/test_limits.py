"""Every limit, by its name; and what no script can do to its host."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from lastword.script import PlacedError, ScriptLimits, check, format_script, parse, plan, plan_text
from lastword.script.nesting import MAX_NESTING
from lastword.script.parser import MAX_SOURCE
from requirements import requirement
from script.hosts import SIGNATURES, TestHost, run

LOOP = "FOR i IN RANGE({n}) DO "


@requirement("NUWA-60")
@pytest.mark.parametrize(
    ("limits", "works", "fails"),
    [
        ({"steps": 1_000}, LOOP.format(n=50) + "LET x = i + 1 END", LOOP.format(n=2_000) + "LET x = i + 1 END"),
        ({"calls": 3}, LOOP.format(n=3) + "CALL nothing {} END", LOOP.format(n=4) + "CALL nothing {} END"),
        ({"output_bytes": 10}, 'PRINT("éé") PRINT("1234")', 'PRINT("éé") PRINT("12345")'),
        ({"string_length": 8}, 'LET s = FORMAT("{a}{a}", {a: "1234"})', 'LET s = FORMAT("{a}{a}", {a: "12345"})'),
        ({"string_length": 8}, 'LET s = JOIN(["1234", "567"], "-")', 'LET s = JOIN(["1234", "5678"], "-")'),
        ({"string_length": 8}, "LET s = STRING([1, 2])", "LET s = STRING([1, 2, 3])"),
        ({"list_length": 5}, "LET l = RANGE(5)", "LET l = RANGE(6)"),
        ({"list_length": 2}, "LET l = APPEND([1], 2)", "LET l = APPEND([1, 2], 3)"),
        ({"list_length": 2}, 'LET l = SPLIT("a b", " ")', 'LET l = SPLIT("a b c", " ")'),
        ({"value_size": 20}, "PRINT([1, 2, 3])", "PRINT([1111111111, 2222222222])"),
        ({"value_size": 9}, "PRINT([1, 2] == [1, 2])", "PRINT(RANGE(12) == RANGE(12))"),
        ({"value_size": 8}, "CALL echo { a: [1, 2] }", 'CALL echo { a: [1, "12345678"] }'),
        ({"value_size": 8}, "LET a = [1, 2]", 'LET a = [1, "12345678"]'),
        ({"value_depth": 2}, "LET a = [[1]] PRINT(a)", "LET a = [[[1]]] PRINT(a)"),
        ({"value_depth": 2}, "LET a = [[1]]", "LET a = [[[1]]]"),
        ({"created_words": 100}, "LET a = [1, 2, 3, 4]", LOOP.format(n=9) + "LET a = [1, 2, 3, 4] END"),
        ({"created_words": 500}, "LET a = RANGE(40)", "LET a = RANGE(400)"),
    ],
)
async def test_a_limit_holds(limits: dict[str, Any], works: str, fails: str) -> None:
    """Just within it everything works; beyond it there is one clear error."""
    assert (await run(works, limits=ScriptLimits(**limits))).error is None
    error = (await run(fails, limits=ScriptLimits(**limits))).error
    assert type(error).__name__ == "LimitExceeded"
    assert error is not None
    assert error.line == 1


@requirement("NUWA-60")
async def test_the_limit_of_seconds_holds() -> None:
    """The one limit that depends on the machine; here there is no time at all."""
    for text in (
        "LET a = 1\nFOR i IN RANGE(500000) DO LET x = i + 1 END",
        "LET a = 1\nFOR i IN RANGE(2000) DO FOR j IN RANGE(100) DO LET x = 1 END END",
    ):
        error = (await run(text, limits=ScriptLimits(seconds=0.0))).error
        assert error is not None
        assert ("seconds of computing" in error.fact, error.line) == (True, 2)


@requirement("NUWA-60")
def test_every_limit_has_a_test() -> None:
    """A limit that nobody has seen hold is a hope."""
    marks = test_a_limit_holds.pytestmark  # type: ignore[attr-defined]
    cases = next(mark.args[1] for mark in marks if mark.name == "parametrize")
    tested = {name for limits, _, _ in cases for name in limits} | {"seconds"}
    assert tested == set(ScriptLimits.__struct_fields__)


@requirement("NUWA-60")
async def test_a_loop_that_is_too_long_fails_before_its_first_effect() -> None:
    """Half of ten thousand messages is worse than none."""
    host = TestHost()
    error = (
        await run("LET l = RANGE(100)\nFOR i IN l DO CALL nothing {} END", host, limits=ScriptLimits(steps=150))
    ).error
    assert type(error).__name__ == "LimitExceeded"
    assert host.calls == []


def from_deep_in_the_stack(depth: int, do: Callable[[], Any]) -> Any:
    """Call something when the host's own stack is already this deep."""
    return from_deep_in_the_stack(depth - 1, do) if depth else do()


N = 500
DEEP = {
    "parentheses": ("PRINT(" + "(" * N + "1" + ")" * N + ")", "1"),
    "sums": ("PRINT(" + "(1 + " * N + "1" + ")" * N + ")", str(N + 1)),
    "lists": ("LET a = " + "[" * N + "]" * N + " PRINT(a == a)", "true"),
    "objects": ("LET a = " + "{a: " * N + "1" + "}" * N + " PRINT(LENGTH(a))", "1"),
    "negations": ("PRINT(" + "NOT " * N + "true)", "true"),
    "signs": ("PRINT(" + "-" * N + "1)", "1"),
    "branches": ("IF true THEN " * N + "PRINT(1)" + " END" * N, "1"),
    "other branches": ("IF false THEN ELSE " * N + "PRINT(1)" + " END" * N, "1"),
    "loops": ("FOR i IN [1] DO " * N + "PRINT(i)" + " END" * N, "1"),
    "loops and branches": ("FOR i IN [1] DO IF true THEN " * (N // 2) + "PRINT(i)" + " END END" * (N // 2), "1"),
    "indices": ("LET a = [0] PRINT(" + "a[" * N + "0" + "]" * N + ")", "0"),
    "functions": ("PRINT(" + "STRING(" * (N - 1) + "1" + ")" * (N - 1) + ")", "1"),
    "calls": ("PRINT(" + "CALL echo { a: " * N + "1" + " }.a" * N + ")", "1"),
    "conditions": ("PRINT(" + "true AND (" * N + "true" + ")" * N + ")", "true"),
    "a chain of 5,000": ("PRINT(" + "1 + " * 5_000 + "1)", "5001"),
    "a condition of 5,000": ("PRINT(" + "true AND " * 5_000 + "true)", "true"),
}


@requirement("NUWA-60")
@pytest.mark.parametrize("name", DEEP)
def test_five_hundred_levels_work_wherever_the_host_stands(name: str) -> None:
    """Parsing, checking, planning, formatting and running need no stack of their own, however little is left."""
    text, printed = DEEP[name]

    def all_of_it() -> None:
        assert [finding for finding in check(text, SIGNATURES) if finding.severity == "error"] == []
        plan_text(plan(text, SIGNATURES))
        formatted = format_script(text)
        for version in (text, formatted):
            result = asyncio.run(run(version))
            assert (result.error, result.output) == (None, [printed])

    from_deep_in_the_stack(300, all_of_it)


@requirement("NUWA-60")
@pytest.mark.parametrize("opening", ["(", "[", "{a:", "-", "NOT ", "IF true THEN ", "FOR i IN [1] DO ", "a[", "PRINT("])
def test_a_hundred_thousand_levels_end_in_an_error(opening: str) -> None:
    """Nobody's stack and nobody's patience."""
    with pytest.raises(PlacedError) as caught:
        parse("LET a = 1 " + opening * min(100_000, MAX_SOURCE // len(opening) - 10))
    assert type(caught.value).__name__ == "LimitExceeded"
    assert str(MAX_NESTING) in caught.value.fact


@requirement("NUWA-60")
def test_a_text_of_more_than_a_megabyte_is_not_read() -> None:
    """It is a mistake or an attack, and reading it would take a second."""
    with pytest.raises(PlacedError, match="longer than"):
        parse("PRINT(1)\n" * (MAX_SOURCE // 9 + 1))


@requirement("NUWA-60")
@pytest.mark.parametrize(
    "text",
    [
        "LET a = [] FOR i IN RANGE(100000) DO SET a = [a] END",
        "LET a = [] FOR i IN RANGE(100000) DO SET a = [a] END PRINT(a)",
        "LET a = [1] " + "LET a = [a, a] " * 60,
        "LET a = [1] " + "LET a = [a, a] " * 60 + "PRINT(a)",
        "LET a = [1] " + "LET a = [a, a] " * 60 + "PRINT(a == a)",
        "LET a = [1] " + "LET a = [a, a] " * 60 + "CALL echo { a: a }",
        "LET a = [1] " + "LET a = [a, a] " * 60 + 'PRINT(FORMAT("{a}", {a: a}))',
        'LET a = "x" FOR i IN RANGE(100) DO SET a = FORMAT("{a}{a}", {a: a}) END',
        'LET a = "x" FOR i IN RANGE(100) DO SET a = JOIN([a, a], "") END',
        "LET a = RANGE(1000000) FOR i IN a DO LET b = SORT(a) END",
        "FOR i IN RANGE(1000000) DO FOR j IN RANGE(1000000) DO LET x = 1 END END",
        "LET l = [] FOR i IN RANGE(1000000) DO SET l = APPEND(l, i) END",
        "LET a = RANGE(0, 9007199254740992)",
    ],
)
async def test_no_script_can_hang_or_use_its_host_up(text: str) -> None:
    """Doubling without a loop, nesting without a bracket: all end in the same clear error."""
    result = await run(text)
    assert type(result.error).__name__ == "LimitExceeded"
