"""The instructions a model needs to write scripts: the language, its functions, the tools, the state.

The same tools, state and day always give the same text. Where there are so many tools that the text would pass its
budget, it says less about each of them before it leaves any out, and says how many it left out.

Why it reads as it does, learnt from small models that were given it:

- It says what to write, and not what to leave away: a model of a few billion weights repeats "no markdown fence" in its
  answer, or writes one because it was named.
- Each form stands on a line of its own, ready to be copied; a grammar in symbols is not followed.
- What a CALL gives stands beside the tool, since that is what is forgotten first: who does not know that a denied call
  has a `success` asks a second time, and is denied a second time.
- The example comes last of what is fixed, and is made of the tools at hand: an example with other tools is copied with
  its tools.
- Enums, ranges and defaults are in the signature itself, where the value is written.
- The day is there because "tomorrow" is in every second request, and a model has none of its own.

Schemas come from the authors of tools. Whatever is taken from one is written as JSON, on one line, and short.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from lastword.script.builtins import BUILTINS
from lastword.script.printer import format_script, is_plain_key

if TYPE_CHECKING:
    from lastword.script.signatures import Signature, SignatureParameter, Signatures

# A small model has 8,000 tokens for everything. Half of it for the tools leaves room for a conversation.
TOKEN_BUDGET = 4_000
# English and code have about four characters a token; three leaves a margin.
CHARACTERS_PER_TOKEN = 3
# The state is data from tools: a glance at it is enough to know what to ask for.
MAX_STATE = 2_000
MAX_GUIDANCE = 2_000
MAX_DESCRIPTION = 200

_ANSWER = """\
Answer with one NuwaScript: your whole answer is the script, and explanations are // comments in it.

"""

_LANGUAGE = """\
LET x = 1                          make a variable
SET x = x + 1                      change one, also from inside a loop
CALL tool { name: value }          use a tool; its result is a value: LET r = CALL tool { name: value }
TRY CALL tool { name: value }      the same, and the script goes on if it fails: gives {success, message, value, kind}
IF x > 1 AND NOT done THEN … ELSEIF x == 1 THEN … ELSE … END
FOR item IN list DO … END          variables made inside vanish after each round; BREAK leaves the loop
PRINT(value)                       show something
STOP value                         show it and end the script
// comment

Values: 12, 4.5, "text", true, false, null, [1, 2], {key: value}. Read them with a.key, a["key"], list[0], list.length.
Operators: + - * / % on numbers, < <= > >= on numbers, == != on anything, AND OR NOT on booleans.
Text is joined with FORMAT. Keywords are upper case. Loops are FOR over a list, such as RANGE(10).
"""

_ASKS = """\
Where a person is asked first they may deny, and that does not stop the script: a CALL that gives {success, message},
and every TRY CALL, gives success false then. Look at .success, tell .message, and leave a denied call alone.
"""


def script_prompt(
    signatures: Signatures, state: str | None = None, guidance: str | None = None, *, today: date | None = None
) -> str:
    """Instructions for a model that is to write a script with these tools."""
    sections = [_ANSWER + _LANGUAGE, _functions()]
    if signatures and (shown := example(signatures)):
        sections.append(f"Example:\n{shown}")
    if today is not None:
        sections.append(f"Today is {today:%A}, {today.isoformat()}.\n")
    if state:
        sections.append(f"State:\n{_cut(state.strip(), MAX_STATE)}\n")
    if guidance:
        sections.append(f"{_cut(guidance.strip(), MAX_GUIDANCE)}\n")
    room = TOKEN_BUDGET * CHARACTERS_PER_TOKEN - sum(len(section) + 1 for section in sections)
    sections.insert(2, _tools(signatures, room))
    return "\n".join(sections)


def script_reference(signatures: Signatures, state: str | None = None) -> str:
    """The language, the functions, the tools and the state, for instructions that say and show themselves when to write
    a script. The functions are without explanations: whoever reads this has more to read.
    """
    functions = "; ".join([*(builtin.usage for builtin in BUILTINS.values()), _CALC])
    sections = [_LANGUAGE, f"Functions: {functions}\n"]
    if state:
        sections.append(f"State:\n{_cut(state.strip(), MAX_STATE)}\n")
    room = TOKEN_BUDGET * CHARACTERS_PER_TOKEN - MAX_GUIDANCE - sum(len(section) + 1 for section in sections)
    sections.insert(2, _tools(signatures, room))
    return "\n".join(sections).rstrip("\n")


_CALC = 'CALC { formula: "a * (1 + r)", vars: {a: 10, r: 0.2} }'


def _functions() -> str:
    lines = [f"{builtin.usage}: {builtin.summary}" for builtin in BUILTINS.values()]
    lines.append(f"{_CALC}: arithmetic on the given numbers")
    return "Functions:\n" + "\n".join(lines) + "\n"


_LEFT_OUT = "and {} more that this text has no room for"


def _tools(signatures: Signatures, room: int) -> str:
    if not signatures:
        return "There are no tools.\n"
    head = ["Tools:"]
    if any(signature.needs_person for signature in signatures.values()):
        head = [*_ASKS.splitlines(), "", *head]
    for detail in (2, 1, 0):
        lines = [line for signature in signatures.values() for line in _tool(signature, detail)]
        text = "\n".join([*head, *lines, ""])
        if len(text) <= room:
            return text
    kept = list(head)
    room -= sum(len(line) + 1 for line in head) + len(_LEFT_OUT.format(len(lines))) + 1
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, _LEFT_OUT.format(len(lines) - len(kept) + len(head)), ""])


def _tool(signature: Signature, detail: int) -> list[str]:
    """A tool in one line, with a line for each argument that has something to say."""
    arguments = [_argument(parameter, detail) for parameter in signature.parameters] + ["…"] * signature.additional
    head = f"CALL {signature.name} {{ {', '.join(arguments)} }}" if arguments else f"CALL {signature.name} {{}}"
    head += f" -> {_gives(signature)}"
    if detail == 0:
        return [head]
    if signature.description:
        head += f": {_one_line(signature.description)}"
    if signature.needs_person:
        # A tool that gives a value has none to give when it is denied, and stops the script then.
        how = "" if signature.reports else "; use TRY CALL to go on when denied"
        head += f" (a person is asked first{how})"
    if detail == 1:
        return [head]
    described = [parameter for parameter in signature.parameters if parameter.description]
    return [head, *(f"  {parameter.name}: {_one_line(parameter.description)}" for parameter in described)]


def _gives(signature: Signature) -> str:
    return "{success, message}" if signature.reports else signature.returns


def _argument(parameter: SignatureParameter, detail: int) -> str:
    name = f"{parameter.name}{'' if parameter.required else '?'}"
    return f"{name}: {(limits_of(parameter) if detail else '') or parameter.type}"


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), MAX_DESCRIPTION)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters left out)"


# So many values of an enum are shown, and so much of each: enough to choose from.
MAX_CHOICES = 8
MAX_SHOWN = 60
# A tool with more arguments makes no good example.
MAX_ARGUMENTS = 5


def limits_of(parameter: SignatureParameter) -> str:
    """A type with its choices, its range and its default: `"w" | "a" = "w"`, `number 1..30`."""
    schema = parameter.schema or {}
    choices = schema.get("enum")
    if "const" in schema:
        choices = [schema["const"]]
    if isinstance(choices, list) and choices:
        more = " | …" if len(choices) > MAX_CHOICES else ""
        text = " | ".join(map(_written, choices[:MAX_CHOICES])) + more
    else:
        text = f"{parameter.type}{_range(schema)}"
    if "default" in schema:
        text += f" = {_written(schema['default'])}"
    return text


def _range(schema: Mapping[str, Any]) -> str:
    low, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    words = []
    if _is_number(low) and _is_number(high):
        words.append(f"{_written(low)}..{_written(high)}")
    elif _is_number(low):
        words.append(f">= {_written(low)}")
    elif _is_number(high):
        words.append(f"<= {_written(high)}")
    if _is_number(above):
        words.append(f"> {_written(above)}")
    if _is_number(below):
        words.append(f"< {_written(below)}")
    most = schema.get("maxLength")
    if _is_number(most):
        words.append(f"of at most {_written(most)} characters")
    return f" {' '.join(words)}" if words else ""


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _written(value: Any) -> str:
    """A value of a schema on one line, and not longer than a glance."""
    text = json.dumps(value, ensure_ascii=False)
    # What JSON leaves as it is may still end a line.
    text = "".join(char if char.isprintable() else " " for char in text)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def example(signatures: Signatures) -> str:
    """A script that uses one tool that asks nobody and one that asks, as far as there are such; "" without either."""
    usable = [one for one in signatures.values() if len([p for p in one.parameters if p.required]) <= MAX_ARGUMENTS]
    # One with arguments shows more.
    usable.sort(key=lambda one: not any(p.required for p in one.parameters))
    free = next((one for one in usable if not one.needs_person and not one.reports), None)
    asks = next((one for one in usable if one.needs_person), None)
    lines: list[str] = []
    if free is not None:
        lines += [f"LET found = {_call(free)}", 'PRINT(FORMAT("found: {found}", {found: found}))']
    if asks is not None:
        lines += [
            f"LET done = {'' if asks.reports else 'TRY '}{_call(asks)}",
            'IF done.success THEN PRINT("done")',
            "ELSE STOP done.message END",
        ]
    if not lines and usable:
        lines = [f"LET done = TRY {_call(usable[0])}", "PRINT(done.message)"]
    return format_script("\n".join(lines))


def example_calls(signatures: Signatures) -> list[tuple[str, str]]:
    """One of the tools and a CALL of it, with arguments, and as few of them invented as possible; and the same of the
    best that is unlike it, since one asks a person first and the other does not, as far as there are such.
    """

    def worth(one: Signature) -> tuple[bool, bool, int]:
        given = [p for p in one.parameters if p.required]
        invented = [p for p in given if p.type != "boolean" and not _TOLD & set(p.schema or ())]
        return len(given) > MAX_ARGUMENTS, not given, len(invented)

    first = min(signatures.values(), key=worth)
    unlike = [one for one in signatures.values() if one.needs_person is not first.needs_person]
    chosen = [first, *([min(unlike, key=worth)] if unlike else [])]
    return [(one.name, format_script(_call(one)).rstrip("\n")) for one in chosen]


# Where a schema says what a value may be.
_TOLD = {"examples", "enum", "const", "default", "minimum"}


def _call(signature: Signature) -> str:
    given = [f"{p.name}: {_sample(p)}" for p in signature.parameters if p.required]
    return f"CALL {signature.name} {{ {', '.join(given)} }}" if given else f"CALL {signature.name} {{}}"


def _sample(parameter: SignatureParameter) -> str:
    """A value that the argument could have."""
    schema = parameter.schema or {}
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key] and (text := _literal(schema[key][0])):
            return text
    for key in ("const", "default"):
        if key in schema and (text := _literal(schema[key])):
            return text
    least = schema.get("minimum")
    kinds = {
        "string": json.dumps(parameter.name.replace("_", " ")),
        "number": _literal(least) or "1",
        "integer": _literal(least) or "1",
        "boolean": "true",
        "null": "null",
        "array": "[]",
        "object": "{}",
    }
    return kinds.get(parameter.type, kinds["string"])


def _literal(value: Any) -> str:
    """A value as a script writes it, where that is short and plain; "" elsewhere."""
    if type(value) is str:
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= MAX_SHOWN and value.isprintable() else ""
    if type(value) is int:
        return str(value) if abs(value) < 10**9 else ""
    if type(value) is float:
        text = repr(value)
        return text if "e" not in text and "n" not in text else ""
    if value is None or type(value) is bool:
        return json.dumps(value)
    if type(value) is list and len(value) <= 3:
        items = [_literal(item) for item in value]
        return f"[{', '.join(items)}]" if all(items) else ""
    if type(value) is dict and len(value) <= 3 and all(is_plain_key(key) for key in value):
        items = [f"{key}: {text}" for key, item in value.items() if (text := _literal(item))]
        return f"{{{', '.join(items)}}}" if len(items) == len(value) else ""
    return ""
