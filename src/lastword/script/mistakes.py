"""The words for a token that should not be there.

A model repairs what it is told precisely. Most of what goes wrong is a habit from another language, and each of those
has its own hint here. What is right is in parser.py.
"""

from __future__ import annotations

from lastword.script.errors import LexError, ParseError, PlacedError
from lastword.script.habits import hint_for_token
from lastword.script.lexer import DIGITS, END, KEYWORDS, SYMBOLS, is_name, is_string
from lastword.script.nesting import OpenBlock

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


def never_closed(tokens: list[str], block: OpenBlock) -> ParseError:
    """The error for an IF or FOR without an END."""
    hint = f"write END after the last statement of the {block.kind}"
    if block.else_at and tokens[block.else_at + 1] == "IF":
        hint = "ELSE IF begins a second IF, which has an END of its own; write ELSEIF to need one END only"
    return ParseError(f"this {block.kind} is never closed", block.at, hint=hint)


def outside_a_loop(at: int) -> ParseError:
    """The error for a BREAK that has nothing to leave."""
    return ParseError("BREAK stands outside every FOR", at, hint="STOP value ends the whole script")


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
