"""The instructions a model needs to write scripts: the language, its functions, the tools, the state.

The same tools and state always give the same text. Where there are so many tools that the text would pass its budget,
it says less about each of them before it leaves any out, and says how many it left out.
"""

from __future__ import annotations

from lastword.script.builtins import BUILTINS
from lastword.script.signatures import Signature, SignatureParameter, Signatures

# A small model has 8,000 tokens for everything. Half of it for the tools leaves room for a conversation.
TOKEN_BUDGET = 4_000
# English and code have about four characters a token; three leaves a margin.
CHARACTERS_PER_TOKEN = 3
# The state is data from tools: a glance at it is enough to know what to ask for.
MAX_STATE = 2_000
MAX_GUIDANCE = 2_000
MAX_DESCRIPTION = 200

_LANGUAGE = """\
Answer with one NuwaScript and nothing else: no explanation, no markdown fence.

LET x = 1                          make a variable
SET x = x + 1                      change one, also from inside a loop
CALL tool { name: value }          call a tool; its result is a value: LET r = CALL tool { name: value }
IF x > 1 AND NOT done THEN … ELSE … END
FOR item IN list DO … END          variables made inside vanish after each round
PRINT(value)                       show something
// comment

Values: 12, 4.5, "text", true, false, null, [1, 2], {key: value}. Read them with a.key, a["key"], list[0], list.length.
Operators: + - * / % on numbers, < <= > >= on numbers, == != on anything, AND OR NOT on booleans.
Text is joined with FORMAT, never with +. Keywords are upper case. There is no ELSEIF, no while, no function definition.
"""


def script_prompt(signatures: Signatures, state: str | None = None, guidance: str | None = None) -> str:
    """Instructions for a model that is to write a script with these tools."""
    sections = [_LANGUAGE, _functions()]
    if state:
        sections.append(f"State:\n{_cut(state.strip(), MAX_STATE)}\n")
    if guidance:
        sections.append(f"{_cut(guidance.strip(), MAX_GUIDANCE)}\n")
    room = TOKEN_BUDGET * CHARACTERS_PER_TOKEN - sum(len(section) + 1 for section in sections)
    sections.insert(2, _tools(signatures, room))
    return "\n".join(sections)


def _functions() -> str:
    lines = [f"{builtin.usage}: {builtin.summary}" for builtin in BUILTINS.values()]
    lines.append('CALC { formula: "a * (1 + r)", vars: {a: 10, r: 0.2} }: arithmetic on the given numbers')
    return "Functions:\n" + "\n".join(lines) + "\n"


_LEFT_OUT = "and {} more that this text has no room for"


def _tools(signatures: Signatures, room: int) -> str:
    if not signatures:
        return "There are no tools.\n"
    for detail in (2, 1, 0):
        lines = [line for signature in signatures.values() for line in _tool(signature, detail)]
        text = "\n".join(["Tools:", *lines, ""])
        if len(text) <= room:
            return text
    kept = ["Tools:"]
    room -= len(kept[0]) + len(_LEFT_OUT.format(len(lines))) + 2
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join([*kept, _LEFT_OUT.format(len(lines) - len(kept) + 1), ""])


def _tool(signature: Signature, detail: int) -> list[str]:
    """A tool in one line, with a line for each argument that has something to say."""
    arguments = [_argument(parameter) for parameter in signature.parameters] + ["…"] * signature.additional
    head = f"CALL {signature.name} {{ {', '.join(arguments)} }}" if arguments else f"CALL {signature.name} {{}}"
    head += f" -> {signature.returns}"
    if detail == 0:
        return [head]
    if signature.description:
        head += f": {_one_line(signature.description)}"
    if signature.needs_person:
        head += " (a person is asked first)"
    if detail == 1:
        return [head]
    described = [parameter for parameter in signature.parameters if parameter.description]
    return [head, *(f"  {parameter.name}: {_one_line(parameter.description)}" for parameter in described)]


def _argument(parameter: SignatureParameter) -> str:
    return f"{parameter.name}{'' if parameter.required else '?'}: {parameter.type}"


def _one_line(text: str) -> str:
    return _cut(" ".join(text.split()), MAX_DESCRIPTION)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} characters left out)"
