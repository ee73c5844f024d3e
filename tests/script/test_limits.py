"""Every limit, by its name; and what no script can do to its host."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from lastword.script import PlacedError, ScriptLimits, check, format_script, parse, plan, plan_text
from lastword.script.expression_parser import MAX_NESTING, MAX_TOKENS
from lastword.script.parser import MAX_SOURCE
from requirements import requirement
from script.hosts import SIGNATURES, TOOLS, TestHost, run
from tries import mostly_long

LOOP = "FOR i IN RANGE({n}) DO "


# How each limit says that it was reached, so that no other can stand in for it.
WORDS = {
    "steps": r"more than \d+ steps$",
    "at_once": r"steps of work at once|larger than \d+ elements",
    "calls": "CALLs",
    "output_bytes": "bytes of output",
    "string_length": "a string of more than|characters and elements",
    "list_length": "a list of more than",
    "value_size": "characters and elements",
    "value_depth": "nested deeper",
    "created_words": "words of values made",
}


@requirement("NUWA-60", "NUWA-84")
@pytest.mark.parametrize(
    ("limit", "most", "works", "fails"),
    [
        ("steps", 1_000, LOOP.format(n=50) + "LET x = i + 1 END", LOOP.format(n=2_000) + "LET x = i + 1 END"),
        ("steps", 1_000, "LET x = SORT(few)", "LET x = SORT(many)"),
        ("steps", 1_000, "LET x = CONTAINS(few, 0)", "LET x = CONTAINS(many, 0)"),
        ("steps", 1_000, "LET x = CONTAINS(few, [0])", "LET x = CONTAINS(many, [0])"),
        ("steps", 1_000, "LET x = CONTAINS(short, short)", "LET x = CONTAINS(long, short)"),
        ("steps", 1_000, "LET x = CONTAINS([longer], short)", "LET x = CONTAINS([longer, longer], longer2)"),
        ("steps", 1_000, "LET x = short == short2", "LET x = longer == longer2"),
        ("steps", 1_000, "LET x = [short] == [short2]", "LET x = [longer] == [longer2]"),
        ("steps", 1_000, "LET x = {k: short} == {k: short2}", "LET x = {k: longer} == {k: longer2}"),
        ("steps", 1_000, "LET x = few == few2", "LET x = many == many2"),
        ("steps", 1_000, "LET x = NUMBER(digits)", "LET x = NUMBER(more_digits)"),
        ("steps", 1_000, 'LET x = SPLIT(short, "y")', 'LET x = SPLIT(long, "y")'),
        ("steps", 1_000, 'LET x = SPLIT(short, "")', 'LET x = SPLIT(long, "")'),
        ("steps", 1_000, 'LET x = JOIN(few, "")', 'LET x = JOIN(many, "")'),
        ("steps", 1_000, 'LET x = JOIN(words, "")', 'LET x = JOIN(more_words, "")'),
        ("steps", 1_000, "LET x = KEYS(record)", "LET x = KEYS(large_record)"),
        ("steps", 1_000, "LET x = APPEND(few, 1)", "LET x = APPEND(very_many, 1)"),
        ("steps", 1_000, "LET x = RANGE(100)", "LET x = RANGE(10000)"),
        ("steps", 1_000, "LET x = SUM(few)", "LET x = SUM(many)"),
        ("steps", 1_000, "LET x = MAX(few)", "LET x = MAX(many)"),
        ("steps", 1_000, "LET x = STRING(few)", "LET x = STRING(many)"),
        ("steps", 1_000, "PRINT(few)", "PRINT(many)"),
        ("steps", 1_000, "PRINT(short)", "PRINT(longer)"),
        ("steps", 1_000, "LET x = FORMAT(short, {})", "LET x = FORMAT(braces, {})"),
        ("steps", 1_000, "LET x = FORMAT(short, {})", "LET x = FORMAT(long, {})"),
        ("steps", 1_000, 'LET x = FORMAT("{a}", {a: few})', 'LET x = FORMAT("{a}", {a: many})'),
        ("steps", 1_000, "CALL nothing { a: few }", "CALL nothing { a: many }"),
        ("steps", 1_000, "CALL nothing { a: few, b: NOW() }", "CALL nothing { a: many, b: NOW() }"),
        ("steps", 1_000, LOOP.format(n=9) + "CALL nothing {} END", LOOP.format(n=900) + "CALL nothing {} END"),
        ("at_once", 1_000, "LET x = SORT(few)", "LET x = SORT(very_many)"),
        ("at_once", 1_000, "LET x = [SORT(few)]", f"LET x = [{'SORT(few), ' * 900}]"),
        ("at_once", 1_000, "LET x = few == few2", "LET x = very_many == very_many2"),
        ("at_once", 1_000, "LET x = words == words2", "LET x = more_words == more_words2"),
        ("at_once", 1_000, "LET x = STRING(few)", "LET x = STRING(many)"),
        ("at_once", 1_000, "CALL nothing { a: few }", "CALL nothing { a: very_many }"),
        ("calls", 3, LOOP.format(n=3) + "CALL nothing {} END", LOOP.format(n=4) + "CALL nothing {} END"),
        ("output_bytes", 10, 'PRINT("éé") PRINT("1234")', 'PRINT("éé") PRINT("12345")'),
        ("output_bytes", 5, LOOP.format(n=5) + 'PRINT("") END', LOOP.format(n=6) + 'PRINT("") END'),
        ("output_bytes", 8, "PRINT([1, 20])", "PRINT([1, 200])"),
        ("string_length", 8, 'LET s = FORMAT("{a}{a}", {a: "1234"})', 'LET s = FORMAT("{a}{a}", {a: "12345"})'),
        ("string_length", 8, 'LET s = FORMAT(f, {a: "1234"})', 'LET s = FORMAT(f, {a: "123456789"})'),
        ("string_length", 8, 'LET s = JOIN(["1234", "567"], "-")', 'LET s = JOIN(["1234", "5678"], "-")'),
        ("string_length", 8, "LET s = STRING([1, 2])", "LET s = STRING([1, 2, 3])"),
        ("list_length", 5, "LET l = RANGE(5)", "LET l = RANGE(6)"),
        ("list_length", 2, "LET l = APPEND([1], 2)", "LET l = APPEND([1, 2], 3)"),
        ("list_length", 2, 'LET l = SPLIT("a b", " ")', 'LET l = SPLIT("a b c", " ")'),
        ("list_length", 2, "LET l = KEYS({a: 1, b: 2})", "LET l = KEYS({a: 1, b: 2, c: 3})"),
        ("list_length", 2, "LET l = SORT([2, 1])", "LET l = SORT([2, 1, 3])"),
        ("value_size", 20, "PRINT([1, 2, 3])", "PRINT([1111111111, 2222222222])"),
        ("value_size", 9, "PRINT([1, 2] == [1, 2])", "PRINT(RANGE(12) == RANGE(12))"),
        ("value_size", 8, "CALL echo { a: [1, 2] }", 'CALL echo { a: [1, "12345678"] }'),
        ("value_size", 8, "LET a = [1, 2]", 'LET a = [1, "12345678"]'),
        ("value_depth", 2, "LET a = [[1]] PRINT(a)", "LET a = [[[1]]] PRINT(a)"),
        ("value_depth", 2, "LET a = [[1]]", "LET a = [[[1]]]"),
        ("value_depth", 2, "CALL echo { a: [[1]] }", "CALL nothing { a: [[[1]]] }"),
        ("value_depth", 2, "CALL echo { a: [[1]], b: NOW() }", "CALL nothing { a: [[[1]]], b: NOW() }"),
        ("created_words", 100, "LET a = [1, 2, 3, 4]", LOOP.format(n=9) + "LET a = [1, 2, 3, 4] END"),
        ("created_words", 100, "LET a = {a: 1}", LOOP.format(n=9) + "LET a = {a: 1} END"),
        ("created_words", 100, "LET a = [NOW(), 2]", "LET a = [" + "NOW(), " * 100 + "]"),
        ("created_words", 500, "LET a = RANGE(40)", "LET a = RANGE(400)"),
        ("created_words", 500, 'LET a = SPLIT("a b", " ")', 'LET a = SPLIT(long, "")'),
        ("created_words", 500, 'LET a = SPLIT("a b", " ")', 'LET a = SPLIT(long, "y")'),
        ("created_words", 500, 'LET a = FORMAT("{a}", {a: "x"})', 'LET a = FORMAT("{a}", {a: long})'),
        ("created_words", 500, 'LET a = FORMAT(f, {a: "x"})', "LET a = FORMAT(f, {a: long})"),
        ("created_words", 500, 'LET a = JOIN(["a", "b"], "-")', 'LET a = JOIN(["a", long], "-")'),
        ("created_words", 500, "LET a = STRING([1])", "LET a = STRING([long])"),
        ("created_words", 500, "LET a = APPEND([1], 1)", "LET a = APPEND(many, 1)"),
        ("created_words", 500, "LET a = KEYS({a: 1})", "LET a = KEYS(large_record)"),
        ("created_words", 500, "LET a = SORT([1])", "LET a = SORT(many)"),
        (
            "created_words",
            900,
            LOOP.format(n=9) + "CALL nothing { a: [1] } END",
            LOOP.format(n=90) + "CALL nothing { a: [1] } END",
        ),
    ],
)
async def test_a_limit_holds(limit: str, most: int, works: str, fails: str) -> None:
    """Just within it everything works; beyond it there is one clear error, and it is that limit's."""
    given = {
        "few": list(range(1, 20)), "few2": list(range(1, 20)), "many": list(range(1, 2_000)),
        "many2": list(range(1, 2_000)), "very_many": list(range(1, 20_000)), "very_many2": list(range(1, 20_000)),
        "short": "x" * 100, "short2": "x" * 99 + "y", "long": "x" * 20_000,
        "longer": "x" * 1_000_000, "longer2": "x" * 999_999 + "y", "digits": "1" * 100, "more_digits": "1" * 20_000,
        "record": {"a": 1}, "large_record": {str(number): number for number in range(5_000)},
        "words": ["w"] * 20, "words2": ["w"] * 20, "more_words": ["word"] * 2_000, "more_words2": ["word"] * 2_000,
        "braces": "{" * 1_000, "f": "{a}{a}",
    }  # fmt: skip
    host = TestHost({"nothing": lambda **arguments: None, "echo": TOOLS["echo"]})
    limits = ScriptLimits(**{limit: most})
    assert (await run(works, host, given, limits)).error is None
    error = (await run(fails, host, given, limits)).error
    assert type(error).__name__ == "LimitExceeded"
    assert error is not None
    assert error.line == 1
    assert re.search(WORDS[limit], error.fact), error.fact


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
    assert {case[0] for case in cases} | {"seconds"} == set(ScriptLimits.__struct_fields__)


@requirement("NUWA-60")
async def test_a_loop_that_is_too_long_fails_before_its_first_effect() -> None:
    """Half of ten thousand lines is worse than none."""
    result = await run("LET l = RANGE(100)\nFOR i IN l DO PRINT(i) END", limits=ScriptLimits(steps=150))
    assert type(result.error).__name__ == "LimitExceeded"
    assert result.output == []


@requirement("NUWA-60")
@pytest.mark.parametrize(
    "loop",
    [
        "FOR i IN RANGE(1000000) DO CALL nothing {} END",
        'FOR i IN RANGE(1000000) DO IF i >= 0 THEN LET x = [CALL nothing {}, FORMAT("{i}", {i: i})] END END',
        "FOR i IN RANGE(1000) DO FOR j IN RANGE(1000) DO CALL nothing {} END END",
    ],
)
async def test_a_loop_over_a_million_calls_makes_calls_until_their_limit(loop: str) -> None:
    """Whoever asks for too many is told so, in words, and not that some other limit would be reached one day."""
    host = TestHost()
    error = (await run(loop, host)).error
    assert error is not None
    assert error.fact == "more than 20000 CALLs"
    assert len(host.calls) == 20_000


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
# A step in each of five hundred nested calls takes a second.
@pytest.mark.parametrize("name", mostly_long(DEEP, *(name for name in DEEP if name != "calls")))
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


MANY_WORDS = (
    "LET a = 1{0}",
    "LET a = [1{0}]",
    "IF true THEN LET a = 1{0} END",
    "// why\nLET a = 1{0} // here",
    'LET a = CALC {{ formula: "1{0}", vars: {{}} }}',
    'LET a = CALC {{ formula: "1", vars: {{}} }} LET b = CALC {{ formula: "1{0}", vars: {{}} }}',
)


@requirement("NUWA-60", "NUWA-84")
@pytest.mark.parametrize("text", mostly_long(MANY_WORDS, MANY_WORDS[0], MANY_WORDS[-1]))
def test_a_text_of_more_than_two_hundred_thousand_words_is_refused(text: str) -> None:
    """Each costs time and memory before anything runs; beyond so many the text is data, and data are variables."""
    parse(text.format(" + 1" * (MAX_TOKENS // 2 - 30)))
    with pytest.raises(PlacedError) as caught:
        parse(text.format(" + 1" * (MAX_TOKENS // 2)))
    assert type(caught.value).__name__ == "LimitExceeded"
    assert f"more than {MAX_TOKENS} words" in caught.value.fact
    assert caught.value.hint == "give it long lists as variables"


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


@requirement("NUWA-82", "NUWA-60")
@pytest.mark.parametrize("end", ["BREAK", "IF i > 2 THEN BREAK END", 'IF i < 0 THEN STOP "odd" END BREAK'])
async def test_a_loop_that_is_left_pays_for_the_rounds_that_came(end: str) -> None:
    """To look for the first of ten thousand is cheap, and leaves enough for what comes after it."""
    text = f"LET n = 0 FOR k IN RANGE(20) DO FOR i IN given DO SET n = n + 1 {end} END END "
    text += "FOR i IN given DO SET n = n + i END PRINT(n > 0)"
    given = {"given": list(range(10_000))}
    result = await run(text, variables=given, limits=ScriptLimits(steps=200_000))
    assert (result.output, result.error) == (["true"], None)
    never = await run(text.replace(end, "IF i < 0 THEN BREAK END"), variables=given, limits=ScriptLimits(steps=200_000))
    assert type(never.error).__name__ == "LimitExceeded"


@requirement("NUWA-82", "NUWA-60")
async def test_a_chain_of_many_elseifs_is_flat_and_a_stop_keeps_to_the_output() -> None:
    """A chain is as long as its text and no deeper; the last line counts like any other."""
    chain = "".join(f"ELSEIF n == {number} THEN PRINT({number}) " for number in range(5_000))
    result = await run(f"LET n = 4999 IF false THEN PRINT(0) {chain} END")
    assert result.output == ["4999"]
    stopped = await run('PRINT("abc") STOP "0123456789"', limits=ScriptLimits(output_bytes=10))
    assert (stopped.output, type(stopped.error).__name__) == (["abc"], "LimitExceeded")


@requirement("NUWA-84")
@pytest.mark.parametrize("work", ["NUMBER(a)", 'CONTAINS(a, "12")', "a == b"])
async def test_what_is_done_with_a_long_text_is_paid_for_by_its_length(work: str) -> None:
    """One step for half a million characters, two thousand times, kept everybody waiting for eleven seconds."""
    long = "0." + "1" * 500_000
    given = {"a": long, "b": long[:-1] + "2"}
    result = await run(f"LET x = {work}", variables=given, limits=ScriptLimits(steps=100))
    assert type(result.error).__name__ == "LimitExceeded"
    short = {"a": "0.1", "b": "0.2"}
    assert (await run(f"LET x = {work}", variables=short, limits=ScriptLimits(steps=100))).error is None
