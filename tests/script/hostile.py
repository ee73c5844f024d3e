"""Texts that want to break something: mutated programs, and programs built to escape."""

import gc
from random import Random
from time import process_time
from typing import Any

from lastword.script import Machine, ScriptLimits, check, format_script, parse, plan, plan_text
from script.hosts import SIGNATURES, TestHost
from script.programs import Writer

# Small, so that a test meets every one of them in a moment.
LIMITS = ScriptLimits(
    steps=200_000,
    seconds=2.0,
    calls=50,
    output_bytes=20_000,
    string_length=20_000,
    list_length=20_000,
    value_size=50_000,
    created_words=500_000,
)

DUNDERS = (
    "__class__", "__globals__", "__builtins__", "__import__", "__dict__", "__mro__", "__subclasses__", "__init__",
    "mro", "gi_frame", "f_globals", "func_globals", "__code__", "constructor", "prototype", "__proto__", "format_map",
)  # fmt: skip
SNIPPETS = (
    "TRY", "BREAK", "STOP", "ELSEIF", "PUT(", "GET(", "SLICE(", "PARSE_JSON(", "REPLACE(",
    "LET", "SET", "CALL", "CALC", "IF", "THEN", "ELSE", "END", "FOR", "IN", "DO", "AND", "OR", "NOT", "true", "false",
    "null", "(", ")", "[", "]", "{", "}", ":", ",", ".", "=", "==", "!=", "<", "<=", "+", "-", "*", "/", "%", "//",
    '"', "'", "`", ";", "\\", "\n", "\t", "\r", "\x00", "\x1b[2J", "\u202e", "\ufeff", "\ud800", "\udfff", "é", "😀",
    "0", "1e5", "0x1", "9" * 400, "1.", ".5", "PRINT", "FORMAT", "NOW", '"\\ud800"', '"\\u0000"', '"{a.__class__}"',
)  # fmt: skip


def mutate(random: Random) -> str:
    """A program with some of its characters or words changed, moved, doubled or lost; or noise alone."""
    if random.random() < 0.1:
        return "".join(random.choice(SNIPPETS) + random.choice(["", " "]) for _ in range(random.randint(0, 60)))
    text = Writer(random, random.randint(1, 12)).program()
    for _ in range(random.randint(1, 6)):
        at = random.randint(0, len(text))
        to = min(len(text), at + random.randint(0, 8))
        roll = random.random()
        if roll < 0.4:
            text = text[:at] + random.choice(SNIPPETS) + text[at:]
        elif roll < 0.7:
            text = text[:at] + text[to:]
        elif roll < 0.85:
            text = text[:at] + text[at:to] * random.randint(2, 5) + text[to:]
        else:
            text = text[:at] + chr(random.choice([0, 7, 27, 0x7F, 0xA0, 0x2028, 0xD800, 0xFFFF, 0x10FFFF])) + text[to:]
    return text


def escape(random: Random) -> str:
    """A program built to reach the host, or to use it up."""
    word = random.choice(DUNDERS)
    deep = random.choice([10, 100, 500, 650, 5_000])
    many = random.choice([10, 1_000, 100_000])
    few = min(many, 5_000)
    return random.choice([
        f"PRINT(PRINT.{word})", f"LET x = record.{word} PRINT(x)", f'PRINT(record["{word}"])', f"PRINT({word})",
        f"{word}()", f"CALL {word} {{ a: 1 }}", f"CALL echo {{ {word}: 1 }}", f'PRINT({{"{word}": 1}}.{word})',
        f'PRINT(FORMAT("{{{word}}}", {{a: 1}}))', f'PRINT("a".{word})', f"PRINT([].{word})", f"PRINT((1).{word})",
        f'PRINT(FORMAT("{{a.{word}}} {{a[0]}} {{a!r}} {{a:>9999999}}", {{a: 1}}))', "/" * many, "END " * many,
        f"LET {word} = 1 PRINT({word})", f'LET x = CALC {{ formula: "{word} + 1", vars: {{}} }}', '"' * many,
        f'LET x = CALC {{ formula: "a.{word}", vars: {{a: 1}} }}', 'PRINT(FORMAT("{0.__class__}", {a: 1}))',
        'LET x = CALC { formula: "__import__(\\"os\\")", vars: {} }', f"PRINT({'9' * many})", "\x00" * 50,
        f"PRINT({'9' * many}.{'9' * 10})", f"LET a = {'(' * deep}1{')' * deep}", 'PRINT("\\ud800")', "// " + "x" * many,
        f"LET a = {'[' * deep}{']' * deep} PRINT(a)", f"LET a = {'{a: ' * deep}1{'}' * deep} PRINT(a == a)",
        f"PRINT({'-' * deep}1)", f"PRINT({'NOT ' * deep}true)", "IF true THEN " * deep + "PRINT(1)" + " END" * deep,
        "FOR i IN [1] DO " * min(deep, 700) + "PRINT(1)" + " END" * min(deep, 700), f"PRINT({'1 + ' * few}1)",
        f"LET o = {{a: 1}} PRINT(o{'.a' * few})", f"LET a = [1] FOR i IN RANGE({many}) DO SET a = [a] END",
        f'LET s = "x" FOR i IN RANGE({many}) DO SET s = FORMAT("{{s}}{{s}}", {{s: s}}) END',
        f"LET a = [1] FOR i IN RANGE({many}) DO SET a = [a, a] END PRINT(a)", f"LET a = RANGE({many * 100})",
        "LET a = [1] " + "LET a = [a, a] " * 40 + "CALL echo {a: a}", "LET a = [1] " + "LET a = [a, a] " * 40,
        f"FOR i IN RANGE({many}) DO FOR j IN RANGE({many}) DO LET x = i * j END END", "PRINT(record.huge)",
        f"FOR i IN RANGE({many}) DO PRINT(i) END", f"FOR i IN RANGE({many}) DO CALL nothing {{}} END",
        f"LET l = RANGE({many}) FOR i IN l DO LET m = SORT(l) END", f'PRINT("{chr(0xD800)}")',
        f"LET l = [] FOR i IN RANGE({many}) DO SET l = APPEND(l, l) END PRINT(l)", "LET x = record.huge + 1",
        f'LET s = JOIN(RANGE({few}), ",") LET t = SPLIT(s, ",") PRINT(SUM(RANGE({few})))', 'PRINT(NUMBER("1e999"))',
        f"LET x = 2 FOR i IN RANGE({many}) DO SET x = x * x END PRINT(x)", "PRINT(RANGE(0, 9007199254740992, 1))",
        f"PRINT(ROUND(1, {many}))", f'PRINT(NUMBER("{"9" * few}"))', f'LET a = "{"x" * many}" PRINT(a)',
        f"LET a = RANGE({few}) FOR i IN a DO LET b = a == a END",
        f"IF {word} THEN " + "ELSEIF false THEN " * few + "END",
        f"FOR i IN [1] DO {'IF true THEN ' * min(deep, 700)} BREAK {'END ' * min(deep, 700)} END", "BREAK " * few,
        f'FOR i IN RANGE({many}) DO IF i == 3 THEN STOP "{word}" END END', f'PRINT(GET({{a: 1}}, "{word}", 0))',
        f'PRINT(TRY CALL echo {{ a: 1 }}.{word})', f"FOR i IN RANGE({many}) DO LET r = TRY CALL fail {{}} END",
        f'LET o = {{}} FOR i IN RANGE({many}) DO SET o = PUT(o, STRING(i), o) END PRINT(o)', f"TRY CALL {word} {{}}",
        f'LET s = "ab" FOR i IN RANGE({many}) DO SET s = REPLACE(s, "a", "aab") END', "STOP " * few,
        f'LET s = JOIN(RANGE({few}), "[") PRINT(PARSE_JSON(REPLACE(s, "1", "[")))', f'PRINT(UPPER("{"ß" * few}"))',
        f'PRINT(PARSE_JSON("{"[" * deep}{"]" * deep}"))', f'PRINT(PARSE_JSON("{"9" * few}"))', "TRY " * few,
        f'LET l = RANGE({few}) FOR i IN l DO LET m = SLICE(l, 0) END', "IF true THEN BREAK END " * few,
    ])  # fmt: skip


VARIABLES: dict[str, Any] = {"given": [1, 2], "record": {"n": 1, "deep": {"list": [1]}, "name": "x", "huge": 10**5000}}


async def judge(text: str) -> str:
    """Put a text through everything; gives how it ended. Whatever is not our own error goes through."""
    findings = check(text, SIGNATURES, VARIABLES)
    for finding in findings:
        assert str(finding)
        assert finding.line > 0
        assert finding.column > 0
        assert "site-packages" not in str(finding)
        assert "Traceback" not in str(finding)
    if findings and findings[0].phase == "parse":
        return type(findings[0]).__name__
    script = parse(text)
    plan_text(plan(script, SIGNATURES))
    if len(text) < 5_000:
        formatted = format_script(text)
        assert format_script(formatted) == formatted
    host = TestHost()
    machine = Machine(script, host, VARIABLES, LIMITS)
    start = process_time()
    result = await machine.run()
    assert process_time() - start < LIMITS.seconds * 1.1 + 0.5, text[:200]
    # No limit may be passed by more than a tenth.
    assert sum(len(line.encode("utf-8", "surrogatepass")) + 1 for line in result.output) <= LIMITS.output_bytes * 1.1
    assert len(host.calls) <= LIMITS.calls
    assert result.output == host.lines
    if result.error is None:
        return "done"
    assert result.error.line > 0
    assert " at 0x" not in result.error.fact
    gc.collect(0)
    return type(result.error).__name__
