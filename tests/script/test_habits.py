"""What people and models write by habit from other languages, and the hint that names the right form."""

import pytest

from lastword import Session, ToolRegistry, check
from lastword.script.tokens import KEYWORDS
from requirements import requirement

HINTS = {
    'CALL t { "a": 1 }': "names of arguments have no quotes: a: value",
    "CALL t { a = 1 }": "write a: value",
    "LET o = {a = 1}": "write a: value",
    "FOR i = 1 TO 5 DO\n  PRINT(i)\nEND": "write FOR i IN RANGE(1, 6) DO for 1 to 5: the end is left out",
    "FOREACH x IN [1] DO\nEND": "write FOR item IN list DO … END",
    "LET x = 1\nWHILE x < 5 DO\n  SET x = x + 1\nEND": "there is no WHILE; FOR item IN list DO … END",
    "while x:": "there is no WHILE; FOR item IN list DO … END",
    'TRY\n  CALL t { a: 1 }\nCATCH\n  PRINT("no")\nEND': "there are no TRY blocks; LET r = TRY CALL tool { … }",
    "RETURN 1": "a script gives nothing back; PRINT(value) shows it, and STOP value ends the script",
    "LET x = 1\nreturn x": "a script gives nothing back; PRINT(value) shows it, and STOP value ends the script",
    "LET x = None": "write null",
    "LET x = nil": "write null",
    "LET x = undefined": "write null",
    "LET x = NULL": "it is written in lower case: null",
    "LET x = True": "it is written in lower case: true",
    "LET x = 1e5": "numbers have no exponent; write the digits out: 1e3 is 1000",
    "LET x = 1e-5": "numbers have no exponent; write the digits out: 1e3 is 1000",
    "LET x = 1_000": "the digits of a number stand together: 1000",
    "LET x = 1_000_000": "the digits of a number stand together: 1000",
    "LET x = 0x10": "numbers are written in decimal",
    "LET x = 2 ** 3": "there is no power operator; multiply",
    "LET x = 2 ^ 3": "there is no power operator; multiply",
    "LET a = [1]\nIF 1 IN a THEN\n  PRINT(1)\nEND": "write CONTAINS(list, value)",
    "LET a = [1]\nLET b = (1 IN a)": "write CONTAINS(list, value)",
    "LET a = [1]\nPRINT(a.length())": "write .length without brackets",
    "LET a = [1]\nLET n = a.length()": "write .length without brackets",
    "LET a = [1]\na.push(2)": "SET list = APPEND(list, value)",
    "LET a = [1]\nPRINT(a.frobnicate(2))": "values have no methods; functions stand in front",
    "LET o = {a: 1}\nSET o.a = 2": 'SET changes whole variables: SET o = PUT(o, "key", value)',
    'LET o = {a: 1}\nSET o["a"] = 2': 'SET changes whole variables: SET o = PUT(o, "key", value)',
    "LET x = 1\nSET x += 1": "write SET x = x + value",
    "LET x = 1 <> 2": "write !=",
    "LET a = [1]\nPRINT(a[0:1])": "write SLICE(list, from, to); the end is left out",
    "FOR i IN 1..5 DO\nEND": "write RANGE(from, to); the end is left out",
    "IF true {\n  PRINT(1)\n}": "blocks have no braces: IF … THEN … END, FOR … DO … END",
    "LET x = 1\nif x == 1:\n": "blocks are IF … THEN … END and FOR … DO … END",
    "def f():": "there are no functions to define",
    "/* a */": "comments begin with //",
    "PRINT(len([1]))": "write LENGTH(x)",
    'LET x = f"{a}"': 'put values into text with FORMAT("{name}", {name: name})',
    "PRINT(7 // 2)": "// begins a comment; write a / b to divide, and ROUND for a whole number",
    "LET a = 7\nLET b = 2\nPRINT(a // b)\nPRINT(a)": "// begins a comment; write a / b to divide",
}


@pytest.fixture
def tools(registry: ToolRegistry) -> ToolRegistry:
    registry.register("t", {"description": "d", "parameters": [{"name": "a", "type": "any"}]}, lambda a, c: 1)
    return registry


@requirement("NUWA-83")
@pytest.mark.parametrize(("text", "hint"), HINTS.items(), ids=[text.split("\n")[-1] for text in HINTS])
def test_a_habit_from_another_language_gets_the_right_form(tools, text, hint):
    """Who is told the right form repairs a script at once; who is told a rule tries something else."""
    first = next(problem for problem in check(text, tools) if problem.severity == "error")
    assert first.hint is not None
    assert first.hint.startswith(hint)


WARNED = {
    "LET x = 7 // 2": ("// begins a comment, so the number behind it is not read", (1, 11)),
    "LET a = 9\nLET x = (a + 1) // 2.5": ("// begins a comment, so the number behind it is not read", (2, 17)),
    'LET o = {a: {b: 1}}\nPRINT(FORMAT("{a.b}", o))': ("FORMAT fills in names, so {a.b} stays as it is", (2, 14)),
    'PRINT(FORMAT("{a[0]}", {a: [1]}))': ("FORMAT fills in names, so {a[0]} stays as it is", (1, 14)),
    'LET name = "Ann"\nPRINT("Hello {name}")': ("PRINT shows {name} as it is", (2, 7)),
}


@requirement("NUWA-83")
@pytest.mark.parametrize(("text", "said"), WARNED.items(), ids=[text.split("\n")[-1] for text in WARNED])
async def test_what_is_allowed_and_seldom_meant_is_warned_of(tools, text, said):
    """It runs, and a person or a model that looks finds out why the result is another than they thought."""
    (warning,) = check(text, tools)
    assert (warning.severity, warning.fact, (warning.line, warning.column)) == ("warning", *said)
    assert warning.hint
    async with Session(tools) as session:
        run = await session.run_script(text)
    assert run.status == "done"
    assert [problem.fact for problem in run.warnings] == [said[0]]


@pytest.mark.parametrize(
    "text",
    [
        "LET x = 7 // two weeks",
        "LET x = 7 // 2 weeks and a day",
        "// 2",
        "LET x = 7\n// 8",
        'LET x = "http://127.0.0.1"',
        'PRINT("a // 2")',
        'PRINT(FORMAT("{a}", {a: 1}))',
        'PRINT(FORMAT("{{a.b}}", {a: 1}))',
        'PRINT("{}")',
        'PRINT("{{name}}")',
        'PRINT("{ \\"a\\": 1 }")',
        "LET while = 1\nPRINT(while)",
        "LET None = 1\nPRINT(None)",
        "LET e5 = 1\nPRINT(e5)",
    ],
)
def test_what_is_meant_is_not_warned_of(tools, text):
    """A warning that is wrong is read once, and the next not at all."""
    assert check(text, tools) == []


async def test_a_script_that_is_not_checked_is_told_too(tools):
    """The hint belongs to the error, and not to the checker."""
    async with Session(tools) as session:
        run = await session.run_script("LET x = None", check=False)
    assert run.error is not None
    assert run.error.hint == "write null"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("PRINT(o.nam)", "did you mean name?"),
        ('PRINT(o["zebra"])', "it has name, other"),
        ("PRINT(s + s)", 'join strings with FORMAT("{a}{b}", {a: …, b: …})'),
        ("PRINT(l + 1)", "APPEND(list, value) gives a longer list"),
        ("PRINT(1 < n < 3)", "compare twice: a < b AND b < c"),
        ("PRINT(l[9])", "the first element is [0]"),
        ("PRINT(e[0])", "the list is empty"),
        ("FOR x IN o DO END", "loop over KEYS(object)"),
        ("IF n THEN END", "compare: x == 1, x != null"),
        ("PRINT(NOT n)", "compare first: NOT (a == b)"),
        ("PRINT(MIN(e))", "ask for LENGTH first"),
        ("PRINT(NUMBER(s))", 'a number looks like "12", "-3.5" or "1e6"'),
        ('PRINT(FORMAT("{nam}", o))', "did you mean name?"),
    ],
)
async def test_an_error_of_the_run_has_its_hint(tools, text, hint):
    """What only shows while a script runs is repaired by a model all the same."""
    given = {"o": {"name": "Ann", "other": 1}, "s": "text", "l": [1], "e": [], "n": 2}
    async with Session(tools) as session:
        run = await session.run_script(text, given, check=False)
    assert run.error is not None
    assert run.error.hint == hint


def test_no_word_of_the_language_is_told_to_be_a_habit(tools):
    """A word that becomes a keyword loses its hint here."""
    for word in KEYWORDS - {"TRY"}:
        for problem in check(f"{word} 1", tools):
            assert f"there is no {word}" not in str(problem)


@pytest.mark.parametrize("piece", ["{a.", "{a", "{a[", "// 1 ", '"a', "a.b(", "1_", "=", "{"])
def test_a_long_text_of_habits_is_looked_at_at_once(tools, piece):
    """The patterns are linear, and read a line at most."""
    text = piece * (100_000 // len(piece))
    check(f'PRINT("{text}")', tools)
    check(text, tools)
