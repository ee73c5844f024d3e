"""A grammar for models that are made to follow one: GBNF, as llama.cpp and its relatives read it.

Whatever the grammar admits parses, and names only tools, arguments and functions that exist. It is narrower than the
language where that keeps a model from mistakes: a statement that is an expression is a function or a CALL, the
arguments of a CALL come in the order in which the tool declares them, comparisons do not follow each other, and no
literal but a number is added or multiplied, and white space comes to an end. BREAK stands in a FOR, so whatever a FOR
may hold has rules of its own. One thing no such grammar can see: the same key twice in one object.
"""

from __future__ import annotations

import json
from string import ascii_letters, digits
from typing import TYPE_CHECKING

from lastword.script.builtins import BUILTINS, Builtin
from lastword.script.tokens import KEYWORDS

if TYPE_CHECKING:
    from lastword.script.signatures import Signature, Signatures

# A small model that may write blanks, empty lines or empty comments without end does, so there are few of each.
_BLANKS = "{0,3}"
_EMPTY_LINES = "{0,2}"
_INDENT = "{0,24}"
_NOTES = "{0,8}"

_FRAME = r"""
root ::= ws notes (statement (gap statement)*)? gap?
block ::= (statement gap)*
statement ::= simple | if | for
simple ::= let | set | stop | function{or_call}
let ::= "LET" sp name ws "=" ws expr
set ::= "SET" sp name ws "=" ws expr
stop ::= "STOP" sp expr
if ::= "IF" sp expr sp "THEN" gap block ("ELSEIF" sp expr sp "THEN" gap block)* ("ELSE" gap block)? "END"
for ::= "FOR" sp name sp "IN" sp expr sp "DO" gap round "END"
round ::= (inside gap)*
inside ::= simple | choice | for | "BREAK"
choice ::= "IF" sp expr sp "THEN" gap round ("ELSEIF" sp expr sp "THEN" gap round)* ("ELSE" gap round)? "END"

expr ::= and (sp "OR" sp and)*
and ::= condition (sp "AND" sp condition)*
condition ::= not | sum ws ("<" | "<=" | ">" | ">=") ws sum | value (ws ("==" | "!=") ws value)?
not ::= "NOT" sp (not | postfix | "true" | "false")
value ::= sum | string | list | object | "true" | "false" | "null"
sum ::= product (ws [-+] ws product)*
product ::= signed (ws [*/%] ws signed)*
signed ::= [-+]? postfix
postfix ::= primary ("[" ws expr ws "]" | "." word)*
primary ::= number | name | function | calc | "(" ws expr ws ")"{or_call}

list ::= "[" ws (expr (ws "," ws expr)*)? ws "]"
object ::= "{{" ws (entry (ws "," ws entry)*)? ws "}}"
entry ::= (word | string) ws ":" ws expr
calc ::= "CALC" ws "{{" ws "formula" ws ":" ws "\"" formula "\"" ws "," ws "vars" ws ":" ws object ws "}}"
formula ::= formula-part ([ ]? [-+*/%] [ ]? formula-part)*
formula-part ::= [-+]? (number | name | "(" formula ")")

number ::= [0-9]{{1,15}} ("." [0-9]{{1,15}})?
string ::= "\"" char* "\""
char ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" unicode)
unicode ::= [0-9a-cA-CefEF] hex hex hex | [dD] [0-7] hex hex
hex ::= [0-9a-fA-F]
word ::= [A-Za-z_] [A-Za-z0-9_]*
gap ::= sp notes
notes ::= ("//" note "\n" ws){notes}
note ::= ([ \t]{blanks} [^\x00-\x20\x7F])* [ \t]{blanks}
sp ::= ([ \t] | line) ws
ws ::= [ \t]{blanks} line{empty_lines}
line ::= "\n" [ \t]{indent}
"""


def script_grammar(signatures: Signatures) -> str:
    """The grammar of scripts that use these tools and no others."""
    parts = [
        _FRAME.strip().format(
            blanks=_BLANKS,
            empty_lines=_EMPTY_LINES,
            indent=_INDENT,
            notes=_NOTES,
            or_call=" | call" if signatures else "",
        ),
        "",
        *_names(),
        "",
        *_functions(),
    ]
    if signatures:
        rules = [f"tool-{_letters(number)}" for number in range(len(signatures))]
        parts += ["", 'call ::= ("TRY" sp)? tool', f"tool ::= {' | '.join(rules)}"]
        for rule, signature in zip(rules, signatures.values(), strict=True):
            parts += _tool(rule, signature)
    return "\n".join(parts) + "\n"


def _tool(rule: str, signature: Signature) -> list[str]:
    """A CALL of one tool: what is required is there, what is optional may be, in the order of the signature."""
    rules = [f'{rule} ::= "CALL" sp {_quoted(signature.name)} ws "{{" ws {{first}}ws "}}"']
    extra = 'word ws ":" ws expr'
    # What may follow, with and without an argument before it; built from the last argument to the first.
    first = f'({extra} (ws "," ws {extra})* )? ' if signature.additional else ""
    rest = f'(ws "," ws {extra})* ' if signature.additional else ""
    for number in reversed(range(len(signature.parameters))):
        parameter, name = signature.parameters[number], f"{rule}-{_letters(number)}"
        rules.append(f'{name} ::= {_quoted(parameter.name)} ws ":" ws expr {rest}'.rstrip())
        if parameter.required:
            first, rest = f"{name} ", f'ws "," ws {name} '
        else:
            first = f"({name} | {first.strip()})? " if first else f"{name}? "
            rest = f'(ws "," ws {name} | {rest.strip()})? ' if rest else f'(ws "," ws {name})? '
    rules[0] = rules[0].replace("{first}", first)
    return rules


def _letters(number: int) -> str:
    """A number in letters: not every reader of such grammars takes digits in the names of rules."""
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = ascii_letters[digit] + text
        if number == 0:
            return text


def _functions() -> list[str]:
    # No underscore in the name of a rule: llama.cpp would end it there.
    names = {name: f"fn-{name.lower().replace('_', '-')}" for name in BUILTINS}
    rules = [f"function ::= {' | '.join(names.values())}"]
    for name, builtin in BUILTINS.items():
        rules.append(f'{names[name]} ::= "{name}(" ws {_arguments(builtin)}")"')
    return rules


def _arguments(builtin: Builtin) -> str:
    more = '(ws "," ws expr)'
    text = " ".join(["expr"] * min(builtin.least, 1) + ['ws "," ws expr'] * (builtin.least - 1))
    optional = builtin.most - builtin.least
    text += f" {more}*" if optional > 10 else f" {more}?" * optional
    return f"{text} ws " if text else ""


def _names() -> list[str]:
    """Names that are no keywords, letter by letter: such a grammar cannot say "but not"."""
    rules = []
    starts = sorted({word[:length] for word in KEYWORDS for length in range(len(word) + 1)})
    for start in starts:
        following = sorted({word[len(start)] for word in KEYWORDS if word.startswith(start) and word != start})
        letters = ascii_letters + "_" + (digits if start else "")
        others = "".join(char for char in letters if char not in following)
        choices = [f"{_class(others)} name-tail"]
        choices += [f'"{char}" {_name_rule(start + char)}' for char in following]
        if start and start not in KEYWORDS:
            choices.append('""')
        rules.append(f"{_name_rule(start)} ::= {' | '.join(choices)}")
    rules.append("name-tail ::= [A-Za-z0-9_]*")
    return rules


def _name_rule(start: str) -> str:
    # Rule names have no case, so the few lower-case words are told apart.
    return f"name-{'low-' if start.islower() else ''}{start.lower()}" if start else "name"


def _class(chars: str) -> str:
    """A character class, with ranges, since a class of sixty characters is hard to read."""
    pieces: list[str] = []
    run = ""
    for char in sorted(chars):
        if run and ord(char) == ord(run[-1]) + 1:
            run += char
            continue
        pieces.append(run)
        run = char
    pieces.append(run)
    return "[" + "".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else run for run in pieces if run) + "]"


def _quoted(text: str) -> str:
    return json.dumps(text)
