"""The language, point by point: what works, and what is refused where."""

import re

import pytest

from lastword.script import PlacedError, parse
from requirements import requirement
from script.hosts import TestHost, run


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1 / 3", "0.3333333333333333"),
        ("10 / 2", "5"),
        ("-0", "0"),
        ("0 * -1", "0"),
        ("9007199254740992 + 1", "9007199254740992"),
        ("9007199254740991 + 1", "9007199254740992"),
        ("4503599627370496 * 3", "13510798882111488"),
        ("94906267 * 94906267", "9007199515875288"),
        ("[94906267][0] * [94906267][0]", "9007199515875288"),
        ("[9007199254740991][0] + [2][0]", "9007199254740992"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("-7.5 % 2", "-1.5"),
        ("1000000 * 1000000 * 1000000 * 1000", "1e+21"),
        ("1 / 1000000 / 10", "1e-7"),
        ('[1, [true, null], {a: "b"}]', "[1, [true, null], {a: b}]"),
        ("1 == true", "false"),
        ("0 == false", "false"),
        ("1 == 1.0", "true"),
        ("[1, {a: [2]}] == [1.0, {a: [2]}]", "true"),
        ("{a: 1, b: 2} == {b: 2, a: 1}", "true"),
        ("null == {}", "false"),
        ("[0][1 - 1]", "0"),
        ("[5, 6][1.0]", "6"),
        ("{END: 1}.END", "1"),
        ('{"a b": 2}["a b"]', "2"),
        ('"a😀b".length', "3"),
        ("{length: 9}.length", "9"),
        ("true OR 1", "true"),
        ("false AND nothing_here", "false"),
        ("true AND false OR true", "true"),
        ("NOT true == false", "true"),
        ('"caf\\u00e9 \\ud83d\\ude00 \\/"', "café 😀 /"),
        ('CALC { formula: "-(a + 2) * b % 5", vars: {a: 1, b: 4} }', "-2"),
        ('CALC { formula: "1", vars: {}, }', "1"),
    ],
)
@requirement("NUWA-1", "NUWA-2", "NUWA-3", "NUWA-4", "NUWA-5", "NUWA-22")
async def test_an_expression_has_this_value(expression: str, printed: str) -> None:
    """Numbers are doubles whatever they are made of inside, equality is deep, and nothing is converted."""
    result = await run(f"PRINT({expression})")
    assert (result.error, result.output) == (None, [printed])


@pytest.mark.parametrize(
    ("call", "printed"),
    [
        ("LENGTH([1, 2])", "2"),
        ("LENGTH({a: 1})", "1"),
        ("KEYS({b: 1, a: 2})", "[b, a]"),
        ("CONTAINS([1, {a: 2}], {a: 2})", "true"),
        ("CONTAINS([1], true)", "false"),
        ('CONTAINS("haystack", "st")', "true"),
        ('CONTAINS({a: 1}, "b")', "false"),
        ("APPEND([1], [2])", "[1, [2]]"),
        ("RANGE(3)", "[0, 1, 2]"),
        ("RANGE(2, 4)", "[2, 3]"),
        ("RANGE(5, 0, -2)", "[5, 3, 1]"),
        ("RANGE(3, 1)", "[]"),
        ("RANGE(2.0)", "[0, 1]"),
        ("ROUND(2.5)", "3"),
        ("ROUND(-2.5)", "-3"),
        ("ROUND(2.675, 2)", "2.68"),
        ("ROUND(1000000 * 1000000 * 1000000 * 1000 / 3)", "333333333333333300000"),
        ("ROUND(7, 3)", "7"),
        ("SUM([])", "0"),
        ("SUM([0.1, 0.2, 3])", "3.3"),
        ("MIN([3, 1, 2])", "1"),
        ("MAX(3, 10, 2)", "10"),
        ("SORT([3, 1.5, 2])", "[1.5, 2, 3]"),
        ('SORT(["b", "a", "B"])', "[B, a, b]"),
        ('SORT([{n: 2, t: 1}, {n: 1, t: 2}, {n: 2, t: 3}], "n")', "[{n: 1, t: 2}, {n: 2, t: 1}, {n: 2, t: 3}]"),
        ("SORT([])", "[]"),
        ('JOIN([1, "a", null], "-")', "1-a-null"),
        ('JOIN([], "-")', ""),
        ('SPLIT("a,,b", ",")', "[a, , b]"),
        ('SPLIT("añ😀", "")', "[a, ñ, 😀]"),
        ('NUMBER(" -12.50 ")', "-12.5"),
        ('NUMBER("1e3")', "1000"),
        ('STRING([1, "a"])', "[1, a]"),
        ('FORMAT("{a} {{a}} {b c} {} {0}", {a: [1], unused: 2})', "[1] {a} {b c} {} {0}"),
        ('FORMAT("{{{a}}}", {a: 1})', "{1}"),
        ("PRINT(1)", "1"),
    ],
)
@requirement("NUWA-20", "NUWA-21")
async def test_a_function_gives_this(call: str, printed: str) -> None:
    """Every built-in, with its corners."""
    result = await run(f"PRINT({call})")
    assert (result.error, result.output[0]) == (None, printed)


@pytest.mark.parametrize(
    ("text", "error", "place"),
    [
        ('LET x = "a" + "b"', "TypeMismatch", "1:13"),
        ("LET x = 1 + true", "TypeMismatch", "1:11"),
        ("LET x = [1] < 2", "TypeMismatch", "1:13"),
        ("LET x = NOT 1", "TypeMismatch", "1:9"),
        ('LET x = -"1"', "TypeMismatch", "1:9"),
        ("LET x = 1 AND true", "TypeMismatch", "1:11"),
        ("LET x = true AND 1", "TypeMismatch", "1:14"),
        ("LET x = false OR true AND null", "TypeMismatch", "1:23"),
        ("IF null THEN END", "InvalidCondition", "1:4"),
        ("FOR x IN 3 DO END", "InvalidIterable", "1:10"),
        ("LET x = [1][0.5]", "TypeMismatch", "1:13"),
        ("LET x = [1][true]", "TypeMismatch", "1:13"),
        ('LET x = [1]["0"]', "TypeMismatch", "1:13"),
        ("LET x = [1][1]", "IndexOutOfBounds", "1:13"),
        ("LET x = [1][0 - 1]", "IndexOutOfBounds", "1:13"),
        ('LET x = "abc"[0]', "TypeMismatch", "1:15"),
        ("LET x = {a: 1}[0]", "TypeMismatch", "1:16"),
        ("LET x = {a: 1}.b", "MemberAccess", "1:16"),
        ('LET x = {a: 1}["b"]', "MemberAccess", "1:16"),
        ("LET x = null.a", "MemberAccess", "1:14"),
        ("LET x = [1].size", "MemberAccess", "1:13"),
        ("LET x = 1 / 0", "DivisionByZero", "1:11"),
        ("LET x = 1 % (1 - 1)", "DivisionByZero", "1:11"),
        ("LET x = 10 LET y = x FOR i IN RANGE(400) DO SET y = y * x END", "NumberRange", "1:55"),
        ("PRINT(x)", "UndefinedVariable", "1:7"),
        ("SET x = 1", "UndefinedVariable", "1:5"),
        ("FOR i IN [1] DO LET x = 1 END SET x = 2", "UndefinedVariable", "1:35"),
        ("nope(1)", "UnknownFunction", "1:1"),
        ("PRINT()", "WrongArity", "1:1"),
        ("LET t = NOW(1)", "WrongArity", "1:9"),
        ("nope(CALL echo {})", "UnknownFunction", "1:1"),
        ('PRINT(FORMAT("{a}", {}))', "FormatKey", "1:7"),
        ('LET o = {} PRINT(FORMAT("{a}", o))', "FormatKey", "1:18"),
        ("PRINT(FORMAT(1, {}))", "TypeMismatch", "1:7"),
        ("PRINT(LENGTH(1))", "TypeMismatch", "1:7"),
        ("PRINT(KEYS([]))", "TypeMismatch", "1:7"),
        ("PRINT(CONTAINS(1, 1))", "TypeMismatch", "1:7"),
        ('PRINT(CONTAINS("a", 1))', "TypeMismatch", "1:7"),
        ("PRINT(APPEND(1, 1))", "TypeMismatch", "1:7"),
        ("PRINT(RANGE(0.5))", "TypeMismatch", "1:7"),
        ("PRINT(RANGE(0, 1, 0))", "NumberRange", "1:7"),
        ('PRINT(ROUND("1"))', "TypeMismatch", "1:7"),
        ("PRINT(ROUND(1.5, 16))", "NumberRange", "1:7"),
        ("PRINT(ROUND(1.5, 0 - 1))", "NumberRange", "1:7"),
        ('PRINT(SUM([1, "2"]))', "TypeMismatch", "1:7"),
        ("PRINT(MIN([]))", "TypeMismatch", "1:7"),
        ('PRINT(MAX(1, "2"))', "TypeMismatch", "1:7"),
        ('PRINT(SORT([1, "2"]))', "TypeMismatch", "1:7"),
        ('PRINT(SORT([{a: 1}, {b: 1}], "a"))', "TypeMismatch", "1:7"),
        ('PRINT(JOIN("ab", ","))', "TypeMismatch", "1:7"),
        ("PRINT(SPLIT(1, 2))", "TypeMismatch", "1:7"),
        ('PRINT(NUMBER("twelve"))', "TypeMismatch", "1:7"),
        ('PRINT(NUMBER("1e999"))', "NumberRange", "1:7"),
        ("PRINT(NUMBER(true))", "TypeMismatch", "1:7"),
        ('LET x = CALC { formula: "a / b", vars: {a: 1, b: 0} }', "DivisionByZero", "1:25"),
        ('LET x = CALC { formula: "a + c", vars: {a: 1} }', "UndefinedVariable", "1:25"),
        ('LET x = CALC { formula: "a", vars: {a: "1"} }', "TypeMismatch", "1:40"),
        ("CALL missing {}", "ToolNotFound", "1:6"),
        ("CALL fail {}", "ToolExecution", "1:6"),
        ('CALL add { a: 1, b: "2" }', "ToolArgument", "1:6"),
    ],
)
@requirement("NUWA-2", "NUWA-3", "NUWA-4", "NUWA-20", "NUWA-21", "NUWA-22", "NUWA-40")
async def test_a_mistake_is_refused_there(text: str, error: str, place: str) -> None:
    """Class, line and column are exact, and the text shows the line and points at the token."""
    result = await run(text)
    found = result.error
    assert found is not None
    assert (type(found).__name__, found.place, found.phase) == (error, place, "run")
    line, _, rest = str(found).partition("\n")
    assert line.startswith(f"{place}: ")
    shown, caret = rest.split("\n")[:2]
    assert shown == f"  {text}"
    assert caret.index("^") == found.column + 1


@pytest.mark.parametrize(
    ("text", "error", "place"),
    [
        ("LET a = 1\n  LET b = ]", "ParseError", "2:11"),
        ("LET a =\n\n", "ParseError", "1:8"),
        ("PRINT((1) // why\n", "ParseError", "1:17"),
        ('PRINT("open)', "LexError", "1:7"),
        ('PRINT("a\nb")', "LexError", "1:7"),
        ('PRINT("a\tb")', "LexError", "1:7"),
        ('PRINT("\\q")', "LexError", "1:7"),
        ('PRINT("\\ud800")', "LexError", "1:7"),
        ('PRINT("\\udc00\\ud800")', "LexError", "1:7"),
        ('PRINT("\ud800")', "LexError", "1:7"),
        ("PRINT(é)", "LexError", "1:7"),
        ("PRINT(1\u00a0+ 1)", "LexError", "1:8"),
        ("LET x = " + "9" * 400, "NumberRange", "1:9"),
        ("PRINT(.5)", "ParseError", "1:7"),
        ("PRINT(5.)", "ParseError", "1:9"),
        ("LET l = [1,,2]", "ParseError", "1:12"),
        ('LET o = {a: 1, "a": 2}', "DuplicateKey", "1:16"),
        ("CALL t { a: 1, a: 2 }", "DuplicateKey", "1:16"),
        ('CALL t { "a": 1 }', "ParseError", "1:10"),
        ("LET LET = 1", "ParseError", "1:5"),
        ("FOR IF IN [1] DO END", "ParseError", "1:5"),
        ("CALL END {}", "ParseError", "1:6"),
        ("END", "ParseError", "1:1"),
        ("IF a THEN ELSE ELSE END", "ParseError", "1:16"),
        ("FOR i IN [] DO ELSE END", "ParseError", "1:16"),
        ('LET x = CALC { vars: {}, formula: "1" }', "ParseError", "1:16"),
        ('LET x = CALC { formula: "1 < 2", vars: {} }', "ParseError", "1:25"),
        ('LET x = CALC { formula: "1 +", vars: {} }', "ParseError", "1:25"),
        ('LET x = CALC { formula: "LENGTH(a)", vars: {a: 1} }', "ParseError", "1:25"),
        ('LET x = CALC { formula: "' + "(" * 50 + '1", vars: {} }', "LimitExceeded", "1:25"),
    ],
)
@requirement("NUWA-40")
def test_a_text_that_is_no_script_is_refused_there(text: str, error: str, place: str) -> None:
    """The first mistake of the text, before anything has run."""
    with pytest.raises(PlacedError) as caught:
        parse(text)
    found = caught.value
    assert (type(found).__name__, found.place, found.phase) == (error, place, "parse")


@requirement("NUWA-40")
def test_an_error_names_the_file_where_there_is_one() -> None:
    """An editor can jump there."""
    with pytest.raises(PlacedError, match=r"^report\.nuwa:2:1: ") as caught:
        parse("LET a = 1\n)", name="report.nuwa")
    assert caught.value.as_dict() == {
        "class": "ParseError",
        "severity": "error",
        "phase": "parse",
        "message": "expected a statement, found )",
        "line": 2,
        "column": 1,
        "excerpt": "  )\n  ^",
        "hint": None,
    }


@requirement("NUWA-41")
def test_a_long_or_odd_line_is_shown_around_the_caret_without_control_characters() -> None:
    """An error is printed on terminals and sent to models; it must not flood or steer them."""
    with pytest.raises(PlacedError) as caught:
        parse("LET a = 1 // \x1b[2J\n" + "PRINT(1) " * 500 + "\x07 oops")
    shown = str(caught.value)
    assert len(shown) < 600
    assert "\x07" not in shown
    assert "^" in shown


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("LET x = 1 IF true THEN LET x = 2 LET y = 3 END PRINT(x + y)", ["5"]),
        ("LET x = 1 FOR i IN [1, 2] DO LET x = x + i PRINT(x) END PRINT(x)", ["2", "3", "1"]),
        ("LET x = 0 FOR i IN [1, 2, 3] DO SET x = x + i END PRINT(x)", ["6"]),
        ("LET x = 0 FOR i IN [1, 2] DO FOR j IN [10, 20] DO SET x = x + i * j END END PRINT(x)", ["90"]),
        ("FOR i IN [1, 2] DO LET x = 0 FOR j IN [1, 2] DO SET x = x + j END PRINT(x) END", ["3", "3"]),
        (
            "LET x = 1 FOR i IN [1, 2] DO IF i == 1 THEN LET x = 9 END SET x = x + 1 PRINT(x) END PRINT(x)",
            ["10", "2", "2"],
        ),
        ("LET x = 1 FOR i IN [1, 2] DO IF i == 1 THEN LET x = 9 END CALL nothing {} PRINT(x) END", ["9", "1"]),
        ("FOR i IN [1, 2] DO IF i == 1 THEN LET t = 7 END CALL nothing {} PRINT(t) END", ["7"]),
        ("FOR i IN [1, 2] DO SET i = i * 10 PRINT(i) END", ["10", "20"]),
        ("LET i = 7 FOR i IN [1] DO PRINT(i) END PRINT(i)", ["1", "7"]),
        ("LET l = [1, 2] FOR x IN l DO SET l = [] PRINT(x) END PRINT(l)", ["1", "2", "[]"]),
    ],
)
@requirement("NUWA-10", "NUWA-11")
async def test_a_name_means_this_variable(text: str, printed: list[str]) -> None:
    """IF shares the scope around it, every round of a FOR has its own, and SET finds the nearest."""
    assert (await run(text)).output == printed


@requirement("NUWA-5")
async def test_a_call_behind_a_deciding_operand_does_not_happen() -> None:
    """What is skipped has no effect."""
    host = TestHost()
    await run(
        "LET a = false AND CALL is_ready {} LET b = true OR CALL is_ready {} LET c = true AND CALL is_ready {}", host
    )
    assert len(host.calls) == 1


@requirement("NUWA-61")
@pytest.mark.parametrize(
    "name", ["__class__", "__dict__", "keys", "append", "format", "__len__", "real", "constructor"]
)
async def test_no_attribute_of_the_host_is_a_member(name: str) -> None:
    """A member is a key of an object, or the length of a list or string, and never anything else."""
    for value in ('"text"', "[1]", "{a: 1}", "1", "true", "null"):
        for access in (f".{name}", f'["{name}"]'):
            error = (await run(f"LET v = {value} PRINT(v{access})")).error
            assert type(error).__name__ in ("MemberAccess", "TypeMismatch")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "LET",
            "LET a",
            "LET a =",
            "SET",
            "SET a",
            "SET a =",
            "FOR",
            "FOR a",
            "FOR a IN",
            "FOR a IN b",
            "IF",
            "IF true",
        ),
        *("PRINT(", "PRINT(1", "PRINT(1,", "LET a = [", "LET a = [1", "LET a = [1,", "LET a = (", "LET a = (1"),
        *("LET a = {", "LET a = {b", "LET a = {b:", "LET a = {b: 1", "LET a = {b: 1,", 'LET a = {"b"', "LET a = b."),
        *("CALL", "CALL b", "CALL b {", "CALL b { c", "CALL b { c:", "CALL b { c: 1", "CALL b { c: 1,", "LET a = b["),
        *("LET a = 1 +", "LET a = NOT", "LET a = -", "LET a = CALC", "LET a = CALC {", "LET a = CALC { formula: "),
        *('LET a = CALC { formula: "1", vars: {', 'LET a = CALC { formula: "1", vars: {}', "LET a = b[0"),
    ],
)
@pytest.mark.parametrize("tail", ["", " \n", " // and no more"])
def test_a_script_that_ends_too_early_is_refused_at_its_end(text: str, tail: str) -> None:
    """A model's answer is often cut off. Whatever was open then, the error says so, and nothing looks past the end."""
    with pytest.raises(PlacedError, match="found the end of the script") as caught:
        parse(text + tail)
    assert (type(caught.value).__name__, caught.value.line) == ("ParseError", 1)


@pytest.mark.parametrize(
    ("opened", "wrong", "place"),
    [
        ("[2", ")", "1:9"),
        ("[2", "}", "1:9"),
        ("{a: 2", ")", "1:12"),
        ("{a: 2", "]", "1:12"),
        ("(2", "]", "1:9"),
        ("(2", "}", "1:9"),
        ("x[2", ")", "1:10"),
        ("CALL echo {a: 2", ")", "1:22"),
        ("UPPER(2", "]", "1:14"),
    ],
)
@requirement("NUWA-1")
def test_a_bracket_closes_with_its_own_end(opened: str, wrong: str, place: str) -> None:
    """Also inside a function's brackets, where the end of the outer one comes next."""
    with pytest.raises(PlacedError, match=f"{place}: expected an operator.* found {re.escape(wrong)}"):
        parse(f"PRINT({opened}{wrong})")
