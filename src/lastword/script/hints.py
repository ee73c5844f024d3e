"""The words for what is wrong: what people and models write by habit from other languages, and the right form here.

A model repairs what it is told precisely, and a hint is worth more than a rule: who is told the right form repairs a
script at once. Nothing here decides whether a script is right; whoever does asks here for words. Three habits are no
mistake of the language and still seldom meant, and get a warning: `//` for a division, `{a.b}` in a template of FORMAT,
and braces in a text that is printed as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lastword.errors import did_you_mean
from lastword.script.nodes import CallNode, Chain, Expression, Function, Literal, children
from lastword.script.tokens import (
    DIGITS,
    END,
    KEYWORDS,
    SYMBOLS,
    FormatKey,
    LexError,
    MemberAccess,
    ParseError,
    PlacedError,
    ScriptWarning,
    UndefinedVariable,
    UnknownFunction,
    WrongArity,
    is_name,
    is_string,
)

_FOREIGN_CHARACTERS = {
    "'": "strings are written with double quotes",
    "“": "strings are written with straight double quotes",
    "”": "strings are written with straight double quotes",
    "!": "write NOT x",
    "&": "write a AND b",
    "|": "write a OR b",
    ";": "statements need nothing between them; remove it",
    "#": "comments begin with //",
    "`": "give the script alone, without a markdown fence around it",
    "?": "there is no ?: here; write IF … THEN … ELSE … END",
    "^": "there is no power operator; multiply",
    "$": 'put values into text with FORMAT("{name}", {name: name})',
    "\ufeff": "remove the byte order mark",
}
CHAINED_ELSE = ("ELSEIF", "ELIF", "ELSIF")
"""What stands, in some language, before a condition in the middle of an IF."""


def unexpected(tokens: list[str], at: int, wanted: str) -> PlacedError:
    """The error for finding this token where `wanted` should be."""
    token = tokens[at]
    if not (token == END or token in SYMBOLS or is_name(token) or token[0] in DIGITS or is_string(token)):
        return _foreign(tokens, at)
    found = "the end of the script" if token == END else _shown(token)
    return ParseError(f"expected {wanted}, found {found}", at, hint=_hint(tokens, at, wanted))


def _foreign(tokens: list[str], at: int) -> LexError:
    token = tokens[at]
    if token == '"':
        return LexError(
            "a string that does not end on its line", at, hint='close it with ", and write a line break as \\n'
        )
    name = repr(token) if token.isprintable() else f"U+{ord(token):04X}"
    return LexError(f"the character {name} has no meaning here", at, hint=_FOREIGN_CHARACTERS.get(token))


def _shown(token: str) -> str:
    return token if len(token) <= 40 else f"{token[:40]}…"


def _hint(tokens: list[str], at: int, wanted: str) -> str | None:
    token = tokens[at]
    before = tokens[at - 1] if at else ""
    if token.upper() in CHAINED_ELSE:
        if token != "ELSEIF":
            return "write ELSEIF condition THEN"
        return "ELSEIF stands inside an IF, before its ELSE"
    if wanted == "CALL after TRY":
        return "TRY stands before a CALL: LET r = TRY CALL tool { … }, then look at r.success"
    if wanted == "a value after STOP":
        return 'STOP ends the script and shows a value: STOP "done"'
    if (habit := hint_for_token(tokens, at, wanted)) is not None:
        return habit
    if token == "=":
        if before in ("+", "-", "*", "/", "%"):
            return f"write SET name = name {before} value"
        if before.upper() in ("LET", "SET") or (at > 1 and tokens[at - 2].upper() in ("LET", "SET", "VAR", "CONST")):
            return "keywords are upper case: LET name = value"
        if wanted.startswith("a statement"):
            return "LET makes a variable, SET changes one, == compares"
        return "== compares"
    if wanted.startswith("{ after CALL"):
        tool = wanted.rpartition(" ")[2]
        return f"arguments stand in braces: CALL {tool} {{ name: value }}, or CALL {tool} {{}} without any"
    if wanted.startswith("CALC"):
        return f"write {wanted}"
    if token.upper() in KEYWORDS and token not in KEYWORDS:
        return f"keywords are upper case: {token.upper()}"
    if token in KEYWORDS and wanted.endswith(("after LET", "after SET", "after FOR", "after CALL")):
        return f"{token} is a keyword; use another name"
    if token in ("END", "ELSE"):
        return f"no IF or FOR is open that this {token} could belong to"
    if token == "." and at and before.isdigit():
        return "write a digit after the point"
    if wanted.startswith(("a key", "an argument's name")):
        return 'keys are names or strings: {name: 1, "other name": 2}'
    return None


# Finding the nearest name compares it with every other, letter by letter.
MAX_NAMES_COMPARED = 200
MAX_NAME_COMPARED = 64
# How far back from an error the word is looked for that began it.
_LOOK_BACK = 40
# A line, or a text, that a person or a model writes. The patterns are linear, and still nobody pays for a megabyte.
MAX_LINE = 1_000

_STATEMENTS = {
    "WHILE": "there is no WHILE; FOR item IN list DO … END, and RANGE(n) counts",
    "UNTIL": "there is no UNTIL; FOR item IN list DO … END, and RANGE(n) counts",
    "FOREACH": "write FOR item IN list DO … END",
    "TRY": "there are no TRY blocks; LET r = TRY CALL tool { … }, then IF r.success THEN … END",
    "CATCH": "there are no TRY blocks; LET r = TRY CALL tool { … }, then IF r.success THEN … END",
    "EXCEPT": "there are no TRY blocks; LET r = TRY CALL tool { … }, then IF r.success THEN … END",
    "FINALLY": "there are no TRY blocks; LET r = TRY CALL tool { … }, then IF r.success THEN … END",
    "RETURN": "a script gives nothing back; PRINT(value) shows it, and STOP value ends the script",
    "FUNCTION": "there are no functions to define; write the statements where they are needed",
    "DEF": "there are no functions to define; write the statements where they are needed",
    "IMPORT": "there is nothing to import; the tools and functions are all there",
    "CONTINUE": "put the rest of the round into IF … THEN … END",
    "AWAIT": "CALL waits by itself; leave AWAIT out",
    "SWITCH": "write IF … THEN … END for each case",
}
_VALUES = {"None": "null", "nil": "null", "Nil": "null", "undefined": "null", "NaN": "null", "nothing": "null"}
_METHODS = {
    "length": "write .length without brackets",
    "size": "write .length",
    "count": "write .length",
    "push": "SET list = APPEND(list, value)",
    "append": "SET list = APPEND(list, value)",
    "add": "SET list = APPEND(list, value)",
    "keys": "write KEYS(object)",
    "split": 'write SPLIT(text, ",")',
    "join": 'write JOIN(list, ", ")',
    "includes": "write CONTAINS(whole, part)",
    "contains": "write CONTAINS(whole, part)",
    "sort": "write SORT(list)",
    "toString": "write STRING(value)",
    "upper": "write UPPER(text)",
    "toUpperCase": "write UPPER(text)",
    "lower": "write LOWER(text)",
    "toLowerCase": "write LOWER(text)",
    "strip": "write TRIM(text)",
    "trim": "write TRIM(text)",
    "replace": "write REPLACE(text, old, new)",
    "slice": "write SLICE(list, from, to)",
    "substring": "write SLICE(text, from, to)",
    "get": "write GET(object, key, default)",
}
_ANY_METHOD = "values have no methods; functions stand in front: LENGTH(x), APPEND(list, value)"
_FUNCTIONS = {
    "len": "LENGTH(x)",
    "str": "STRING(value)",
    "int": 'NUMBER("12")',
    "float": 'NUMBER("12.5")',
    "log": "PRINT(value)",
    "echo": "PRINT(value)",
    "push": "APPEND(list, value)",
}


def hint_for_token(tokens: list[str], at: int, wanted: str) -> str | None:
    """The right form of what ends in a token that should not be there; None for what is nobody's habit."""
    token, before = tokens[at], tokens[at - 1] if at else ""
    if wanted.startswith("an argument's name") and is_string(token):
        return f"names of arguments have no quotes: {token[1:-1]}: value"
    if token == "=":
        if wanted.startswith(": after "):
            return f"write {wanted.removeprefix(': after ')}: value"
        if wanted.startswith("IN after FOR"):
            return f"write FOR {wanted.rpartition(' ')[2]} IN RANGE(1, 6) DO for 1 to 5: the end is left out"
    if wanted.startswith(("= after SET ", "= after LET ")):
        name = wanted.rpartition(" ")[2]
        if token in (".", "["):
            return f'SET changes whole variables: SET {name} = PUT({name}, "key", value)'
        if token in ("+", "-", "*", "/", "%"):
            return f"write SET {name} = {name} {token} value"
    if token == "*" and before in ("*", "/"):
        return "there is no power operator; multiply" if before == "*" else "comments begin with //"
    if token in ("/", "*") and tokens[at + 1] == "*":
        return "comments begin with //"
    if token == ">" and before == "<":
        return "write !="
    if token == "IN" and not wanted.startswith("a statement"):
        return "write CONTAINS(list, value)"
    if (method := _method(tokens, at)) is not None:
        return _METHODS.get(method, _ANY_METHOD)
    if token == ":" and wanted == "an operator or ]":
        return "write SLICE(list, from, to); the end is left out"
    if token == "." and before == ".":
        return "write RANGE(from, to); the end is left out"
    if token == "{" and wanted.startswith(("THEN", "DO")):
        return "blocks have no braces: IF … THEN … END, FOR … DO … END"
    return _hint_for_statement(tokens, at)


def _method(tokens: list[str], at: int) -> str | None:
    """The name before a bracket that should not be there, if it follows a point: `.length(`, `.length()`."""
    opening = at if tokens[at] == "(" else at - 1 if at and tokens[at - 1] == "(" else 0
    if opening >= 2 and tokens[opening - 2] == "." and is_name(tokens[opening - 1]):
        return tokens[opening - 1]
    return None


def _hint_for_statement(tokens: list[str], at: int) -> str | None:
    for place in range(at, max(-1, at - _LOOK_BACK), -1):
        hint = _STATEMENTS.get(tokens[place].upper())
        # A variable may have such a name; what it is given or asked for does not look like a statement.
        if hint is not None and tokens[place - 1 if place else place] not in ("LET", "SET", ".", "=", ","):
            return hint
    if tokens[at] == ":":
        return "blocks are IF … THEN … END and FOR … DO … END"
    return None


def hint_for_word(name: str) -> str | None:
    """The right form of a name that has no value here, and means something elsewhere."""
    if name in _VALUES:
        return f"write {_VALUES[name]}"
    if hint := _STATEMENTS.get(name.upper()):
        return hint
    if re.fullmatch(r"[eE][0-9]+", name):
        return "numbers have no exponent; write the digits out: 1e3 is 1000"
    if re.fullmatch(r"(_[0-9]+)+", name):
        return "the digits of a number stand together: 1000"
    if re.fullmatch(r"[xX][0-9a-fA-F]+", name):
        return "numbers are written in decimal"
    return None


def hint_for_function(name: str, known: Collection[str]) -> str:
    """The function here that another language calls so, or the one whose name is nearest."""
    return f"write {_FUNCTIONS[name]}" if name in _FUNCTIONS else nearest(name, known) or "tools are called with CALL"


def improve(problem: PlacedError, lines: list[str]) -> PlacedError:
    """Give a located finding the hint that only the text around it tells."""
    before, after = _around(lines, problem)
    if type(problem) is UndefinedVariable and before[-1:].isdigit():
        problem.hint = hint_for_word(problem.fact.partition(" ")[0]) or hint_for_word("e1")
    elif type(problem) is UndefinedVariable and re.match(r"[fFrRbB]\"", after):
        problem.hint = 'put values into text with FORMAT("{name}", {name: name})'
    elif type(problem) is MemberAccess and problem.hint is None and (hint := _METHODS.get(after_name(after))):
        problem.hint = hint
    elif problem.severity == "error" and problem.phase == "parse":
        for number in (problem.line, problem.line - 1):
            if 0 < number <= len(lines) and _IN_BRACKETS.match(lines[number - 1][:MAX_LINE]):
                problem.hint = "// begins a comment; write a / b to divide, and ROUND for a whole number"
    return problem


def _around(lines: list[str], problem: PlacedError) -> tuple[str, str]:
    line = lines[problem.line - 1] if 0 < problem.line <= len(lines) else ""
    return line[: problem.column - 1], line[problem.column - 1 :]


def after_name(text: str) -> str:
    """The name at the beginning of a text."""
    found = re.match(r"[A-Za-z_][A-Za-z0-9_]*", text)
    return found[0] if found else ""


# Code, and behind it a comment that is a number and nothing else; or, where the text does not parse, a word that
# closes a bracket. Possessive, as in tokens.py: no text makes the pattern try twice.
_CODE = r'(?:[^"/]|"(?:[^"\\]|\\.)*+"|/(?!/))*+(?<=[\w)\] ])'
_BY_A_NUMBER = re.compile(rf"{_CODE}//\s*+[0-9]++(?:\.[0-9]++)?[\s)\]]*+$")
_IN_BRACKETS = re.compile(rf"{_CODE}//\s*+[\w.]++\s*+[)\],}}]")


def warn_of_divisions(source: str) -> Iterator[tuple[int, int]]:
    """The offset and length of every `//` that was probably meant to divide."""
    if "//" not in source:
        return
    offset = 0
    for line in source.split("\n"):
        if "//" in line and len(line) <= MAX_LINE and _BY_A_NUMBER.match(line):
            yield offset + line.rindex("//"), 2
        offset += len(line) + 1


def division(offset: int, width: int, source: str, name: str | None) -> ScriptWarning:
    """The warning for a `//` that was probably meant to divide."""
    found = ScriptWarning(
        "// begins a comment, so the number behind it is not read",
        hint="write a / b to divide, and ROUND for a whole number",
    )
    found.locate_at(offset, width, source, name, "check")
    return found


_PATH = re.compile(r"(?<!\{)\{([A-Za-z_]\w*+(?:\.\w++|\[[^\]{}]*+\])++)\}(?!\})")
_HOLE = re.compile(r"(?<!\{)\{([A-Za-z_]\w*+)\}(?!\})")


def seldom_meant(node: Function) -> ScriptWarning | None:
    """The warning for a template that FORMAT leaves as it is, or one that is printed without FORMAT."""
    first = node.arguments[0] if node.arguments else None
    if not isinstance(first, Literal) or not isinstance(first.value, str):
        return None
    if node.name == "FORMAT" and (path := _PATH.search(first.value, 0, MAX_LINE)):
        name = path[1].rpartition(".")[2]
        name = name if name.isidentifier() else "value"
        return ScriptWarning(
            f"FORMAT fills in names, so {path[0]} stays as it is",
            first.at,
            hint=f'give it a name: FORMAT("{{{name}}}", {{{name}: {path[1]}}})',
        )
    if node.name == "PRINT" and (hole := _HOLE.search(first.value, 0, MAX_LINE)):
        return ScriptWarning(
            f"PRINT shows {hole[0]} as it is",
            first.at,
            hint=f'PRINT(FORMAT("{hole[0]}", {{{hole[1]}: {hole[1]}}})) puts a value there',
        )
    return None


def near_key(name: str, target: dict[str, Any]) -> str | None:
    """A hint with the nearest key, or with all of them when they are few."""
    return nearest(name, target) or (f"it has {', '.join(target)}" if 0 < len(target) <= 8 else None)


def nearest(name: str, known: Collection[str]) -> str | None:
    """A hint with the nearest of some names, where looking for it is cheap."""
    if len(name) > MAX_NAME_COMPARED or len(known) > MAX_NAMES_COMPARED:
        return None
    return did_you_mean(name, (other for other in known if len(other) <= MAX_NAME_COMPARED))


def operand_hint(operator: str, side: str, kind: str) -> str | None:
    """What somebody probably meant who gave an operator this kind of operand."""
    if operator == "+" and kind == "a string":
        return 'join strings with FORMAT("{a}{b}", {a: …, b: …})'
    if operator == "+" and kind == "a list":
        return "APPEND(list, value) gives a longer list"
    if operator in ("<", "<=", ">", ">=") and side == "left" and kind == "a boolean":
        return f"compare twice: a {operator} b AND b {operator} c"
    return None


def missing_key(key: str, known: Collection[str], at: int) -> FormatKey:
    """The error for a template that names a key the object has not."""
    return FormatKey(
        f"the template names {key}, and the object has no such key",
        at,
        hint=nearest(key, known) or f"add {key} to the object, or write {{{{{key}}}}} for plain braces",
    )


def wrong_function(node: Function, builtins: Mapping[str, Any]) -> PlacedError:
    """What is wrong with the name or the number of arguments of a function, known without running it."""
    builtin = builtins.get(node.name)
    if builtin is None:
        hint = hint_for_function(node.name, builtins)
        return UnknownFunction(f"unknown function {node.name}", node.at, hint=hint)
    words = f"{node.name} takes {_how_many(builtin)}, not {len(node.arguments)}"
    return WrongArity(words, node.at, hint=f"write {builtin.usage}")


def _how_many(builtin: Any) -> str:
    if builtin.least == builtin.most:
        return {0: "no argument", 1: "1 argument"}.get(builtin.least, f"{builtin.least} arguments")
    if builtin.most > 10:
        return f"at least {builtin.least} argument{'s' if builtin.least > 1 else ''}"
    return f"{builtin.least} to {builtin.most} arguments"


def skipped_calls(node: Expression) -> Iterator[ScriptWarning]:
    """The warnings for CALLs in the later operands of AND and OR."""
    waiting: list[tuple[Expression, str | None]] = [(node, None)]
    while waiting:
        part, operator = waiting.pop()
        if type(part) is CallNode and operator is not None:
            yield ScriptWarning(
                f"this CALL is skipped when what stands before {operator} decides",
                part.at,
                hint="if it should always run, CALL it first: LET result = CALL …",
            )
        if type(part) is Chain and part.operators[0] in ("AND", "OR"):
            waiting.append((part.operands[0], operator))
            waiting.extend((operand, part.operators[0]) for operand in part.operands[1:])
        else:
            waiting.extend((child, operator) for child in children(part))


def hides(name: str, at: int) -> ScriptWarning:
    """The warning for a LET in a loop that was probably meant to change the variable outside."""
    return ScriptWarning(
        f"this LET makes a new {name} in every round; the {name} outside the loop never changes",
        at,
        hint=f"write SET {name} = … to change the one outside, or use another name",
    )


def other_literal(value: Expression, wanted: str) -> str | None:
    """How somebody would write the literal they meant."""
    if type(value) is Literal and type(value.value) is str and wanted == "number":
        return "write the number without quotes" if value.value.replace(".", "", 1).isdigit() else None
    if type(value) is Literal and value.value is not None and wanted == "string":
        return "write it in double quotes"
    if wanted == "list":
        return "write a list: [value]"
    return None
