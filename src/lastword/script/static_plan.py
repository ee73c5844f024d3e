"""What a script may do, before it does: every CALL in the order of the text, for a person to read.

A plan says which tool, with what, how often, under which condition, and whether somebody will be asked. It is read off
the text alone and promises an upper bound: a CALL that is not in the plan cannot happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from lastword.script import nodes
from lastword.script.parser import parse
from lastword.script.printer import one_line
from lastword.script.signatures import Signature, Signatures
from lastword.script.tokens import Places

# What a person takes in at a glance; the script itself has the rest.
MAX_SHOWN = 70
# Of the loops and branches around a CALL so many are named; the others, in the middle, are counted.
MAX_AROUND = 8
# A larger number of times says nothing more than "any".
MAX_TIMES = 2**53
# Hundreds of CALLs may share one constant. A longer one is not written out again for each of them.
MAX_SHARED = 2_000
_SHOWN_OF_A_STEP = (
    *("number", "line", "column", "tool", "title", "description", "known", "arguments", "when", "least", "most"),
    *("how_often", "needs_person", "may_pass", "effect", "tries"),
)
# Unknown tools that are named at the top of a plan; each step says it again.
MAX_UNKNOWN = 5


class Argument(msgspec.Struct, frozen=True):
    """One argument of a CALL: a constant, or something that is worked out while running."""

    name: str
    constant: bool
    value: Any
    """The constant; None where it is computed."""
    text: str
    """The constant as a person would write it, or the expression that computes it."""
    secret: bool = False
    shared: bool = False
    """Whether it is a long constant with a name, which other CALLs may be given too."""

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        shown: dict[str, Any] = {"name": self.name, "constant": self.constant, "text": self.text}
        if self.constant and not self.secret and not self.shared:
            shown["value"] = self.value
        return shown


class Step(msgspec.Struct, frozen=True):
    """One CALL of a script."""

    number: int
    line: int
    column: int
    tool: str
    title: str
    description: str
    known: bool
    """Whether there is such a tool, as far as the plan was told."""
    arguments: tuple[Argument, ...]
    when: tuple[str, ...]
    """The loops and branches around it, from the outside in, in words."""
    least: int
    most: int | None
    """How often it may run; None where that depends on what the script meets. What is tried may turn out to be denied
    or to fail, so the least is 0 there."""
    needs_person: bool | None
    """Whether somebody is asked first; None where the tool is not known, and so nobody can say."""
    effect: str | None
    may_pass: bool = False
    """Whether a rule of the tool, or a rule or grant of the person, may let it pass without asking anybody."""
    tries: bool = False
    """Whether the script goes on when it fails or is denied."""

    @property
    def how_often(self) -> str:
        """How often it may run, in words."""
        if self.most is None:
            return "any number of times"
        if self.most == 0:
            return "never"
        times = {1: "once", 2: "twice"}.get(self.most, f"{self.most} times")
        return times if self.least == self.most else f"at most {times}"

    def as_dict(self) -> dict[str, Any]:
        """For programs: what `--json` prints."""
        shown = {name: getattr(self, name) for name in _SHOWN_OF_A_STEP}
        return shown | {"arguments": [argument.as_dict() for argument in self.arguments], "when": list(self.when)}


def plan(script: str | nodes.Script, signatures: Signatures | None = None) -> list[Step]:
    """Every CALL that a script may make, in the order in which it would make them. Raises if it does not parse."""
    if isinstance(script, str):
        script = parse(script)
    places = Places(script.source)
    constants = _constants(script.body)
    steps: list[Step] = []
    for call, around in _calls(script.body, constants):
        line, column = places.of(call.at)
        known = signatures is not None and call.tool in signatures
        signature = signatures[call.tool] if signatures is not None and known else Signature(call.tool)
        secrets = {parameter.name for parameter in signature.parameters if parameter.secret}
        arguments = zip(call.keys, call.values, strict=True)
        steps.append(
            Step(
                number=len(steps) + 1,
                line=line,
                column=column,
                tool=call.tool,
                title=signature.title,
                description=signature.description,
                known=known,
                arguments=tuple(_argument(key, value, key in secrets, constants) for key, value in arguments),
                when=around.when,
                least=0 if call.tries else around.least,
                most=around.most,
                needs_person=signature.needs_person if known else None,
                effect=signature.effect,
                may_pass=signature.may_pass,
                tries=call.tries,
            )
        )
    return steps


_UNLESS = ", unless a rule or a grant lets it pass"


def plan_text(steps: list[Step]) -> str:
    """A plan as a page for a person who does not program."""
    if not steps:
        return "This script calls no tools. It only computes and prints.\n"
    lines = [_summary(steps), ""]
    for step in steps:
        title = _flat(step.title)
        lines.append(f"{step.number}. {title}{f' ({step.tool})' if title != step.tool else ''}")
        if step.description:
            lines.append(f"   {_flat(step.description)}")
        lines += [f"   - {argument.name}: {argument.text}" for argument in step.arguments]
        lines.append(f"   {_sentence([*step.when, step.how_often])} (line {step.line})")
        if not step.known:
            lines.append("   No such tool is known here: the script would stop.")
        elif step.needs_person:
            unless = _UNLESS if step.may_pass else ""
            lines.append(f"   You are asked {'first' if step.most == 1 else 'first, each time'}{unless}.")
        if step.tries:
            lines.append(f"   If it fails{' or you deny it' if step.needs_person else ''}, the script goes on.")
        if step.effect:
            lines.append(f"   {_sentence([_flat(step.effect)])}")
        lines.append("")
    return "\n".join(lines)


def _summary(steps: list[Step]) -> str:
    count = "one tool call" if len(steps) == 1 else f"{len(steps)} tool calls"
    sentences = [f"This script has {count}."]
    known = sum(step.known for step in steps)
    asked = sum(step.needs_person is True for step in steps)
    passing = _UNLESS if any(step.may_pass for step in steps) else ""
    if asked == len(steps):
        sentences.append(f"You are asked before {'it' if asked == 1 else 'each of them'} runs{passing}.")
    elif asked:
        sentences.append(f"You are asked before {asked} of them run{'s' if asked == 1 else ''}{passing}.")
    elif known == len(steps):
        sentences.append("Nobody is asked.")
    elif known:
        sentences.append("Nobody is asked for the tools that are known here.")
    if known < len(steps):
        names = list(dict.fromkeys(step.tool for step in steps if not step.known))
        more = f" and {len(names) - MAX_UNKNOWN} more" if len(names) > MAX_UNKNOWN else ""
        word = "Unknown tool" if len(names) == 1 else "Unknown tools"
        sentences.append(f"{word}: {', '.join(names[:MAX_UNKNOWN])}{more}.")
    return " ".join(sentences)


def _flat(text: str) -> str:
    """In one line: what a tool says of itself must not look like a line of the plan."""
    return " ".join(text.split())


def _sentence(parts: list[str]) -> str:
    text = ", ".join(parts)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


class _Around(msgspec.Struct, frozen=True):
    """The loops and branches around a place in the script."""

    outer: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()
    between: int = 0
    """How many there are that are not named."""
    least: int = 1
    most: int | None = 1

    @property
    def when(self) -> tuple[str, ...]:
        """From the outside in, in words."""
        if not self.between:
            return self.outer + self.inner
        return (*self.outer, f"inside {self.between} more loops and conditions", *self.inner)

    def maybe(self, words: str) -> _Around:
        return self._inside(words, 0, self.most)

    def unsure(self) -> _Around:
        """The same where the script may have left before."""
        return msgspec.structs.replace(self, least=0)

    def never(self) -> _Around:
        """The same behind a BREAK or STOP."""
        return msgspec.structs.replace(self, least=0, most=0)

    def times(self, words: str, count: int | None, *, ends_early: bool) -> _Around:
        """In a loop of so many rounds; after the first of them it may end."""
        least = min(self.least * (count or 0), MAX_TIMES)
        if ends_early:
            least = min(least, self.least)
        if self.most == 0:
            most: int | None = 0
        elif self.most is None or count is None or self.most * count > MAX_TIMES:
            most = None
        else:
            most = self.most * count
        return self._inside(words, least, most)

    def _inside(self, words: str, least: int, most: int | None) -> _Around:
        if len(self.outer) < MAX_AROUND // 2:
            return _Around((*self.outer, words), (), 0, least, most)
        if len(self.inner) < MAX_AROUND // 2:
            return _Around(self.outer, (*self.inner, words), 0, least, most)
        return _Around(self.outer, (*self.inner[1:], words), self.between + 1, least, most)


class _Constant(msgspec.Struct, frozen=True):
    """What a variable stands for that is given a value once."""

    node: nodes.Expression
    value: Any
    """nodes.MISSING for a RANGE, of which the length alone is known."""
    text: str
    long: bool


def _constants(body: tuple[nodes.Statement, ...]) -> dict[str, _Constant]:
    """The variables that are given a value once in the whole script, at its top, by literals alone."""
    given: dict[str, int] = {}
    constants: dict[str, nodes.Expression] = {}
    waiting: list[tuple[nodes.Statement, bool]] = [(statement, True) for statement in body]
    while waiting:
        statement, at_top = waiting.pop()
        if isinstance(statement, (nodes.Let, nodes.Set, nodes.For)):
            given[statement.name] = given.get(statement.name, 0) + 1
        if isinstance(statement, nodes.Let) and at_top:
            constants[statement.name] = statement.value
        elif isinstance(statement, nodes.For):
            waiting += [(inner, False) for inner in statement.body]
        elif isinstance(statement, nodes.If):
            waiting += [(inner, False) for block in statement.blocks for inner in block]
    found: dict[str, _Constant] = {}
    for name, node in constants.items():
        # Worked out here and once, since very many CALLs may be given it.
        if given[name] == 1 and _length(node) is not None and isinstance(node, nodes.Function):
            found[name] = _Constant(node, nodes.MISSING, "", long=False)
        elif given[name] == 1 and (value := nodes.constant(node)) is not nodes.MISSING:
            text = one_line(node)
            found[name] = _Constant(node, value, _cut(text), len(text) > MAX_SHARED)
    return found


class _Loop(msgspec.Struct, eq=False):
    """A FOR on the way through a script."""

    is_left: bool = False
    """Whether a BREAK stands before the place that the way has come to."""


def _calls(
    body: tuple[nodes.Statement, ...], constants: dict[str, _Constant]
) -> Iterator[tuple[nodes.CallNode, _Around]]:
    """Every CALL of a script with what is around it, in the order of the text, without recursion."""
    early = _loops_that_end_early(body)
    is_over = False  # Whether a STOP stands before the place that the way has come to.
    waiting = _block(body, _Around(), _Loop())
    while waiting:
        statement, around, loop = waiting.pop()
        if is_over or loop.is_left:
            around = around.unsure()
        if isinstance(statement, nodes.If):
            yield from _calls_in(statement.condition, around)
            waiting += _branches(statement, around, loop)
        elif isinstance(statement, nodes.For):
            yield from _calls_in(statement.items, around)
            words = f"for each {statement.name} in {_in_words(statement.items)}"
            # Behind the first round nothing comes where BREAK or STOP stands in no branch.
            items = statement.items
            if isinstance(items, nodes.Name) and items.name in constants:
                items = constants[items.name].node
            count = 1 if nodes.comes_to_an_end(statement.body) else _length(items)
            each = around.times(words, count, ends_early=id(statement) in early)
            waiting += _block(statement.body, each, _Loop())
        elif isinstance(statement, nodes.Break):
            loop.is_left = True
        else:
            yield from _calls_in(statement.value, around)
            is_over = is_over or isinstance(statement, nodes.Stop)


_Waiting = list[tuple[nodes.Statement, _Around, _Loop]]


def _block(statements: tuple[nodes.Statement, ...], around: _Around, loop: _Loop) -> _Waiting:
    """The statements of a block, the last first. Behind a BREAK or STOP none is ever reached."""
    found: _Waiting = []
    for statement in statements:
        found.append((statement, around, loop))
        if isinstance(statement, nodes.Break | nodes.Stop):
            around = around.never()
    found.reverse()
    return found


def _branches(node: nodes.If, around: _Around, loop: _Loop) -> _Waiting:
    """The branches of an IF, the last first, each with its condition and those that were not so before it."""
    condition = _in_words(node.condition)
    found = [_block(node.then, around.maybe(f"only if {condition}"), loop)]
    around = around.maybe(f"unless {condition}")
    for other in node.others:
        found.append([(nodes.Do(other.at, other.condition, other.suspends), around, loop)])
        condition = _in_words(other.condition)
        found.append(_block(other.then, around.maybe(f"only if {condition}"), loop))
        around = around.maybe(f"unless {condition}")
    found.append(_block(node.otherwise or (), around, loop))
    return [one for part in reversed(found) for one in part]


def _loops_that_end_early(body: tuple[nodes.Statement, ...]) -> set[int]:
    """The FORs, by identity, that a BREAK or STOP inside them may end before their list does."""
    found: set[int] = set()
    stopped: set[int] = set()
    waiting: list[tuple[nodes.Statement, tuple[nodes.For, ...]]] = [(statement, ()) for statement in body]
    while waiting:
        statement, around = waiting.pop()
        if isinstance(statement, nodes.For):
            around = (*around, statement)
            waiting += [(inner, around) for inner in statement.body]
        elif isinstance(statement, nodes.If):
            waiting += [(inner, around) for block in statement.blocks for inner in block]
        elif isinstance(statement, nodes.Break):
            found.add(id(around[-1]))
        elif isinstance(statement, nodes.Stop):
            for loop in reversed(around):
                if id(loop) in stopped:
                    break  # And so are those around it.
                stopped.add(id(loop))
    return found | stopped


def _calls_in(node: nodes.Expression, around: _Around) -> Iterator[tuple[nodes.CallNode, _Around]]:
    """The CALLs of an expression: those in the arguments of another come before it."""
    found: list[tuple[nodes.CallNode, _Around]] = []
    waiting = [(node, around)]
    while waiting:
        part, here = waiting.pop()
        if isinstance(part, nodes.CallNode):
            found.append((part, here))
        inner = list(nodes.children(part))
        if isinstance(part, nodes.Chain) and part.operators[0] in ("AND", "OR"):
            later = here.maybe("only where the rest of the condition leaves it open")
            waiting += [(inner[0], here), *((operand, later) for operand in inner[1:])]
        else:
            waiting += [(child, here) for child in inner]
    # Found from the right and from the outside; turned round, each CALL follows what it needs.
    return reversed(found)


def _length(node: nodes.Expression) -> int | None:
    """How many elements a list has, where the text alone says so."""
    if isinstance(node, nodes.ListOf):
        return len(node.items)
    if isinstance(node, nodes.Function) and node.name == "RANGE" and 1 <= len(node.arguments) <= 3:
        numbers = [part.value for part in node.arguments if isinstance(part, nodes.Literal) and type(part.value) is int]
        if len(numbers) == len(node.arguments):
            start, stop, step = [(0, numbers[0], 1), (*numbers, 1), tuple(numbers)][len(numbers) - 1]
            return len(range(start, stop, step)) if step else None
    return None


def _argument(name: str, node: nodes.Expression, secret: bool, constants: dict[str, _Constant]) -> Argument:
    if isinstance(node, nodes.Name) and node.name in constants and constants[node.name].value is not nodes.MISSING:
        constant = constants[node.name]
        if secret:
            return Argument(name, True, None, "(secret)", secret=True)
        return Argument(name, True, constant.value, constant.text, shared=constant.long)
    value = nodes.constant(node)
    if secret:
        return Argument(name, value is not nodes.MISSING, None, "(secret)", secret=True)
    if value is nodes.MISSING:
        shown = f"the value of {node.name}" if isinstance(node, nodes.Name) else f"worked out: {_in_words(node)}"
        return Argument(name, False, None, shown)
    return Argument(name, True, value, _cut(one_line(node)))


_WORDS = {
    "==": "is",
    "!=": "is not",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
    "AND": "and",
    "OR": "or",
    "NOT": "not",
}


def _in_words(node: nodes.Expression) -> str:
    """An expression with its comparisons in words, and not longer than a glance."""
    text = one_line(node)
    shown = []
    end = 0
    for offset, width in Places(text).tokens:
        word = text[offset : offset + width]
        shown += [text[end:offset], _WORDS.get(word, word)]
        end = offset + width
    return _cut("".join(shown))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(text)} characters)"
