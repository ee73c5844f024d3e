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
"""

from __future__ import annotations

from datetime import date

from lastword.script.builtins import BUILTINS
from lastword.script.samples import example, limits_of
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
