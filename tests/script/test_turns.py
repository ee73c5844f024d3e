"""Nobody waits long for a script, whatever it says and whatever it is given."""

from collections.abc import Callable
from time import process_time
from typing import Any

import pytest

import lastword
from lastword.script import Machine, ScriptLimits, Site, check, format_script, parse, plan, plan_text
from lastword.script.expression_parser import MAX_TOKENS
from lastword.script.tokens import LARGE_TEXT
from requirements import requirement
from script.hosts import SIGNATURES, TestHost, run
from script.turns import longest_turn
from tries import mostly_long, often

# The specification's.
LONGEST_TURN = 0.050
LONGEST_TURN_OF_A_TEXT = 0.100


def numbers(count: int) -> list[int]:
    """In no order that sorting could profit from."""
    return [number * 2_654_435_761 % 1_000_000_007 for number in range(count)]


def mixed(count: int) -> list[int | float]:
    return [number if number % 2 else number / 1e14 for number in numbers(count)]


def words(count: int) -> list[str]:
    return [str(number) for number in numbers(count)]


HEAVY: dict[str, tuple[str, Callable[[int], Any]]] = {
    "SORT numbers": ("LET x = LENGTH(SORT(a))", numbers),
    "SORT numbers of both kinds": ("LET x = LENGTH(SORT(a))", mixed),
    "SORT strings": ("LET x = LENGTH(SORT(a))", lambda n: words(n // 8)),
    "SORT long strings": ("LET x = LENGTH(SORT(a))", lambda n: ["x" * 2_000 + word for word in words(n // 50)]),
    "SORT by a key": ('LET x = LENGTH(SORT(a, "k"))', lambda n: [{"k": number} for number in numbers(n // 8)]),
    "SUM": ("LET x = SUM(a)", numbers),
    "SUM of large numbers": ("LET x = SUM(a)", lambda n: [1e300 if k % 2 else -1e300 for k in range(n)]),
    "MAX": ("LET x = MAX(a)", mixed),
    "SPLIT": ('LET x = LENGTH(SPLIT(a, ","))', lambda n: "ab," * (n // 3)),
    "SPLIT into characters": ('LET x = LENGTH(SPLIT(a, ""))', lambda n: "你" * n),
    "JOIN strings": ('LET x = LENGTH(JOIN(a, ","))', words),
    "JOIN numbers": ('LET x = LENGTH(JOIN(a, ","))', mixed),
    "JOIN lists": ('LET x = LENGTH(JOIN(a, ","))', lambda n: [[1]] * n),
    "KEYS": ("LET x = LENGTH(KEYS(a))", lambda n: dict.fromkeys(map(str, range(n)))),
    "RANGE": ("LET x = LENGTH(RANGE(a))", lambda n: n),
    "APPEND": ("LET x = LENGTH(APPEND(a, 1))", numbers),
    "STRING": ("LET x = LENGTH(STRING(a))", mixed),
    "PRINT": ("PRINT(a)", lambda n: [{"k": k} for k in range(n // 8)]),
    "== of lists": ("LET x = a == b", numbers),
    "== of strings": ("LET x = a == b", lambda n: words(n // 8)),
    "== of objects": ("LET x = a == b", lambda n: dict.fromkeys(map(str, range(n // 8)))),
    "== of lists of lists": ("LET x = a == b", lambda n: [[k] for k in range(n // 16)]),
    "== of long strings": ("LET x = a == b", lambda n: ["".join(["x" * 100_000])] * n),
    "== of long keys": ("LET x = a == b", lambda n: [{"".join(["x" * 100_000]): 1}] * n),
    "CONTAINS a number": ("LET x = CONTAINS(a, -1)", mixed),
    "CONTAINS a string": ('LET x = CONTAINS(a, "nope")', words),
    "CONTAINS a long string": ("LET x = CONTAINS(a, b[0])", lambda n: ["".join(["x" * 100_000])] * n),
    "CONTAINS a list": ("LET x = CONTAINS(a, [1, 2])", lambda n: [[1, k + 3] for k in range(n // 16)]),
    "CONTAINS a piece": ('LET x = CONTAINS(a, FORMAT("{p}y", {p: p}))', lambda n: "x" * n),
    "FORMAT": ("LET x = LENGTH(FORMAT(a, {a: 0.00001234}))", lambda n: "{a}" * (n // 3)),
    "FORMAT of braces": ("LET x = LENGTH(FORMAT(a, {a: 1}))", lambda n: "{" * n),
    "NUMBER": ("LET x = NUMBER(a)", lambda n: "0." + "1" * n),
    "NUMBER of none": ("LET x = NUMBER(a)", lambda n: "1" * n + ".x"),
    "PUT": ('LET x = LENGTH(PUT(a, "k", 1))', lambda n: dict.fromkeys(map(str, range(n)))),
    "UPPER": ("LET x = LENGTH(UPPER(a))", lambda n: "éß" * (n // 2)),
    "LOWER": ("LET x = LENGTH(LOWER(a))", lambda n: "ÉΣ" * (n // 2)),
    "TRIM": ("LET x = LENGTH(TRIM(a))", lambda n: "\u2003" * n),
    "REPLACE": ('LET x = LENGTH(REPLACE(a, "a", "bc"))', lambda n: "a" * n),
    "REPLACE of what is not there": ('LET x = LENGTH(REPLACE(a, FORMAT("{p}y", {p: p}), ""))', lambda n: "x" * n),
    "SLICE": ("LET x = LENGTH(SLICE(a, 1))", numbers),
    "PARSE_JSON of lists": ("LET x = LENGTH(PARSE_JSON(a))", lambda n: f"[{'[],' * (n // 3)}1]"),
    "PARSE_JSON of objects": ("LET x = LENGTH(PARSE_JSON(a))", lambda n: '[{"a":1}' + ',{"a":1}' * (n // 8) + "]"),
    "PARSE_JSON of keys": (
        "LET x = LENGTH(PARSE_JSON(a))",
        lambda n: f"{{{','.join(f'{chr(34)}{k}{chr(34)}:1' for k in range(n // 8))}}}",
    ),
    "CALL": ("CALL nothing { a: a }", lambda n: [[k] for k in range(n // 4)]),
    "what is left at the end": ("LET x = APPEND(a, 1)", lambda n: [[k] for k in range(n // 4)]),
}


@requirement("NUWA-63", "NUWA-84")
@pytest.mark.parametrize(
    "name",
    mostly_long(
        HEAVY,
        *("SORT numbers of both kinds", "SUM", "SPLIT", "STRING", "PRINT"),
        *("== of long strings", "== of lists of lists", "CONTAINS a list", "CONTAINS a piece", "FORMAT", "NUMBER"),
        *("PUT", "UPPER", "REPLACE", "PARSE_JSON of objects", "CALL", "what is left at the end"),
    ),
)
async def test_no_function_keeps_the_others_waiting(name: str) -> None:
    """It yields, or fails at once: with very many elements, and with as many as it takes on."""
    text, make = HEAVY[name]
    size = often(100_000)
    while size > 100:
        given: dict[str, Any] = {"a": make(size), "p": "x" * 500}
        if "b" in text:
            given["b"] = make(size)
        for _ in range(3):
            result, turn = await longest_turn(Machine(parse(text), QuickHost(), given).run())
            if turn < LONGEST_TURN:
                break
        assert turn < LONGEST_TURN, f"{name} with {size}: {turn * 1000:.0f} ms"
        if type(result.error).__name__ != "LimitExceeded":
            return
        size //= 2
    pytest.fail(f"{name} takes on nothing")


class QuickHost(TestHost):
    """Its own time is not the script's, so it takes none."""

    def lookup(self, name: str) -> Callable[[dict[str, Any], Site], Any]:
        return lambda arguments, site: None


HEAVY_STATEMENT = 'LET x = JOIN(l, ",")\n'
IN_A_ROW = HEAVY_STATEMENT * 60
IN_A_BLOCK = "FOR i IN [1] DO IF i == 1 THEN IF true THEN\n" + HEAVY_STATEMENT * 60 + "ELSE PRINT(1) END END END"
IN_A_LOOP = "FOR i IN RANGE(60) DO FOR j IN [1] DO " + HEAVY_STATEMENT + "END END"
PLACES = (
    IN_A_ROW,
    "IF true THEN\n" + HEAVY_STATEMENT * 60 + "END",
    "IF true THEN IF true THEN\n" + HEAVY_STATEMENT * 30 + "END\n" + HEAVY_STATEMENT * 30 + "END",
    "FOR i IN [1] DO\n" + HEAVY_STATEMENT * 60 + "END",
    "FOR i IN [1, 2] DO IF true THEN\n" + HEAVY_STATEMENT * 30 + "END END",
    IN_A_BLOCK,
    "FOR i IN RANGE(60) DO " + HEAVY_STATEMENT + "END",
    IN_A_LOOP,
    'FOR i IN RANGE(60) DO CALL nothing { a: JOIN(l, ",") } END',
    "FOR i IN RANGE(15000) DO CALL nothing { a: i } END",
    "CALL nothing { a: 1 }\n" * 15_000,
    'PRINT("x")\n' * 40_000,
)


@requirement("NUWA-63")
@pytest.mark.parametrize(
    "text", mostly_long(PLACES, IN_A_ROW, IN_A_BLOCK, IN_A_LOOP, "CALL nothing { a: 1 }\n" * 15_000), ids=len
)
async def test_a_script_pauses_between_its_statements_wherever_they_stand(text: str) -> None:
    """Sixty statements of some milliseconds each, in a row or in a block, are sixty turns for the others."""
    given = {"l": list(range(15_000))}
    longest = []
    for _ in range(3):
        result, turn = await longest_turn(Machine(parse(text), QuickHost(), given).run())
        assert result.error is None
        longest.append(turn)
        if turn < LONGEST_TURN:
            break
    assert min(longest) < LONGEST_TURN


# A text of nearly as many words as there may be, to be filled up in its middle.
LARGE: dict[str, Callable[[int], str]] = {
    "a long chain": lambda n: "LET a = 1" + " + 1" * (n // 2),
    "a long list": lambda n: "LET a = [" + "1, " * (n // 2) + "]",
    "many statements": lambda n: "LET a = 1\n" * (n // 4),
    "many calls": lambda n: "CALL is_ready {}\n" * (n // 4),
    "many calls with one constant": lambda n: (
        f"LET big = [{'1, ' * (n // 8)}]\n" + "CALL echo { a: big }\n" * (n // 16)
    ),
    "calls in many conditions": lambda n: (
        "LET a = 1 " + "IF a == 1 THEN " * 500 + "CALL is_ready {}\n" * ((n - 3_000) // 4) + "END " * 500
    ),
    "calls in loops without end": lambda n: (
        "FOR a IN RANGE(9007199254740992) DO " * 500 + "CALL is_ready {}\n" * ((n - 5_000) // 4) + "END " * 500
    ),
    "unknown tools": lambda n: "".join(f"CALL tool_{k} {{}}\n" for k in range(n // 4)),
    "unknown names": lambda n: "".join(f"PRINT(name_{k})\n" for k in range(n // 4)),
    "unknown functions": lambda n: "".join(f"F{k}()\n" for k in range(n // 3)),
    "unknown keys": lambda n: "LET o = {a: 1}\n" + "".join(f"PRINT(o.b{k})\n" for k in range(n // 6)),
    "unknown arguments": lambda n: "CALL read_file {" + ", ".join(f"a{k}: 1" for k in range(n // 5)) + "}",
    "names from far outside": lambda n: (
        "FOR a IN [1] DO " * 500 + "".join(f"LET b{k} = c{k}\n" for k in range((n - 4_000) // 5)) + "END " * 500
    ),
    "names set in many loops": lambda n: (
        "".join(f"LET v{k} = 1\n" for k in range((n - 4_000) // 9))
        + "FOR a IN [1] DO " * 500
        + "".join(f"SET v{k} = 1\n" for k in range((n - 4_000) // 9))
        + "END " * 500
    ),
    "names set in many branches": lambda n: (
        "".join(f"LET v{k} = 1\n" for k in range((n - 4_000) // 9))
        + "IF true THEN " * 500
        + "".join(f'SET v{k} = "x"\n' for k in range((n - 4_000) // 9))
        + "END " * 500
    ),
    "names that many loops may have": lambda n: (
        "LET x = 1 FOR a IN [1] DO IF false THEN LET x = 1 END " * 500
        + "FOR b IN [1] DO LET y = x END\n" * ((n - 12_000) // 13)
        + "END " * 500
    ),
    "a formula of many names": lambda n: (
        'LET a = CALC { formula: "'
        + " + ".join(f"a{k}" for k in range(n // 7))
        + '", vars: {'
        + ", ".join(f"a{k}: 1" for k in range(n // 7))
        + "} }"
    ),
    "a template of many gaps": lambda n: f'PRINT(FORMAT("{"{a}" * n}", {{a: 1}}))',
    "words": lambda n: "word " * n,
}


@requirement("NUWA-60", "NUWA-84")
@pytest.mark.parametrize(
    "name",
    mostly_long(
        LARGE,
        *("a long chain", "many calls with one constant", "calls in loops without end", "unknown names"),
        *("names set in many branches", "names that many loops may have", "a formula of many names"),
    ),
)
def test_reading_a_large_text_takes_no_more_than_its_length(name: str) -> None:
    """Nothing that happens before a run grows faster than the text: each of these took minutes, or would have."""
    text = LARGE[name](MAX_TOKENS // 5)
    start = process_time()
    script = parse(text)
    check(script, SIGNATURES)
    steps = plan(script, SIGNATURES)
    written = plan_text(steps)
    told = sum(len(str(step.as_dict())) for step in steps)
    formatted = format_script(text)
    Machine(script, TestHost())
    assert process_time() - start < 5
    assert max(len(written), told, len(formatted)) < 100 * len(text)


@requirement("NUWA-63", "NUWA-84")
@pytest.mark.parametrize(
    "name",
    mostly_long(["a long chain", "many calls", "names set in many branches", "unknown names"], "many calls"),
)
async def test_a_session_reads_a_large_text_beside_its_loop(name: str) -> None:
    """Reading, checking and writing out a script of the largest size takes a second: not the loop's."""

    def ready(args: dict[str, Any], context: Any) -> bool:
        return True

    registry = lastword.ToolRegistry()
    registry.register("is_ready", {"description": "", "parameters": [], "returns": "boolean"}, ready, inline=True)
    async with lastword.Session(registry) as session:
        text = LARGE[name](MAX_TOKENS - 20)
        await session.run_script("PRINT(1)")
        turns = []
        for _ in range(3):
            _, turn = await longest_turn(session.run_script(text))
            turns.append(turn)
            if turn < LONGEST_TURN_OF_A_TEXT:
                break
    assert min(turns) < LONGEST_TURN_OF_A_TEXT


@requirement("NUWA-84")
@pytest.mark.parametrize("length", [10, LARGE_TEXT * 2])
async def test_a_text_means_the_same_wherever_it_is_read(length: int) -> None:
    """Errors of the text, of the checker and of the run come out of the thread as they are."""
    session = lastword.Session(lastword.ToolRegistry())
    padding = "// " + "x" * length + "\n"
    for script, kind, phase in (
        ("LET a = ", "ParseError", "parse"),
        ("PRINT(b)", "UndefinedVariable", "check"),
        ("LET a = [1] PRINT(a[1])", "IndexOutOfBounds", "run"),
    ):
        error = (await session.run_script(padding + script)).error
        assert error is not None
        assert (type(error).__name__, error.phase, error.line) == (kind, phase, 2)
    assert (await session.run_script(padding + "PRINT(1) LET a = [[1]]")).variables == {"a": [[1]]}
    await session.close()


async def test_large_variables_leave_as_they_are() -> None:
    """Whether they are copied at once or in a thread: equal, in their order, and not the script's own."""
    rows = [[k, {"k": k / 2}] for k in range(30_000)]
    result = await run("LET a = {x: 1} LET b = APPEND(rows, 1.0) LET c = [2.0]", variables={"rows": rows})
    assert list(result.variables) == ["rows", "a", "b", "c"]
    assert result.variables["b"] == [*rows, 1]
    assert result.variables["b"][0] is not rows[0]
    assert type(result.variables["b"][-1]) is int
    assert result.variables["c"] == [2]
    limits = ScriptLimits(value_size=100_000)
    error = (await run("LET a = 1\nLET b = APPEND(rows, 1)", variables={"rows": rows}, limits=limits)).error
    assert error is not None
    assert (error.line, "b is larger than" in error.fact) == (2, True)
