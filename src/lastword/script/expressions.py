"""From an expression to a closure over a frame.

Only for expressions that need no waiting and do not nest deeply: a closure calls the closures inside it. Those with
a CALL or NOW, and those nested beyond what the host's stack should carry, are compiler.py's, which uses the same
operations one after the other.

The cost of a script is counted here, one for each part of an expression, and so are the words that its literals take,
since both are known before it runs.

Closures that scripts are full of take what they need as defaults of their parameters: steps.py says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from lastword.script import nodes
from lastword.script.builtins import (
    BUILTINS,
    DOUBLED,
    ENTRY_WORDS,
    LIST_WORDS,
    MAX_GAPS,
    OBJECT_WORDS,
    PLACEHOLDER,
    Body,
)
from lastword.script.hints import missing_key, wrong_function
from lastword.script.operators import (
    SHORT_STRING,
    Operand,
    binary,
    element,
    element_of,
    is_number,
    kind_of,
    member,
    member_of,
    negate,
    not_boolean,
    sign,
)
from lastword.script.runtime import RUN, Closure, Frame, RunState, Scopes
from lastword.script.tokens import PlacedError, TypeMismatch
from lastword.values import scalar_text

# Longer chains run in a loop, so that no chain is deep.
MAX_NESTED_CHAIN = 6
# Python binds a method of an imported name anew at each call, so these are bound here.
_builtin = BUILTINS.get
_pieces = PLACEHOLDER.split
_LOGIC = frozenset(["AND", "OR"])
_EQUALITY = frozenset(["==", "!="])


class Expressions:
    """Makes closures for one script, and counts what they cost."""

    __slots__ = ("cost", "elastic", "scopes", "words")

    def __init__(self, given: Iterable[str]) -> None:
        self.scopes = Scopes.of(given, BUILTINS)
        self.cost = 0
        self.words = 0
        self.elastic = False
        """Whether something was compiled whose cost depends on the values it meets."""

    def closure(self, node: nodes.Expression) -> Closure:
        self.cost += 1
        return MAKERS[type(node)](self, node)

    def closures(self, parts: Sequence[nodes.Expression]) -> list[Closure]:
        closures = []
        for node in parts:
            closures.append(MAKERS[type(node)](self, node))
        self.cost += len(closures)
        return closures

    def _literal(self, node: nodes.Literal) -> Closure:
        def constant(f: Frame, value: Any = node.value) -> Any:
            return value

        return constant

    def _name(self, node: nodes.Name) -> Closure:
        slot = self.scopes.sure_slot(node.name)
        if slot is None:
            place = self.scopes.find(node.name)
            self.cost += 0 if place is None else place.count - 1
            return self.scopes.read_first(place, node.name, node.at)

        def look(f: Frame, slot: int = slot) -> Any:
            return f[slot]

        return look

    def _list(self, node: nodes.ListOf) -> Closure:
        self.take_words(node)
        items = self.closures(node.items)
        if len(items) == 2:
            first, second = items

            def pair(f: Frame, first: Closure = first, second: Closure = second) -> list[Any]:
                return [first(f), second(f)]

            return pair
        return lambda f: [item(f) for item in items]

    def _object(self, node: nodes.ObjectOf) -> Closure:
        self.take_words(node)
        constants, entries = self.entries(node)

        def make(
            f: Frame, constants: dict[str, Any] = constants, entries: list[tuple[str, Closure]] = entries
        ) -> dict[str, Any]:
            made = constants.copy()
            for key, value in entries:
                made[key] = value(f)
            return made

        return make

    def take_words(self, node: nodes.ListOf | nodes.ObjectOf) -> None:
        """Count what a list or an object takes that is made here."""
        if type(node) is nodes.ListOf:
            self.words += LIST_WORDS + len(node.items)
        else:
            assert type(node) is nodes.ObjectOf
            self.words += OBJECT_WORDS + ENTRY_WORDS * len(node.keys)

    def entries(self, node: nodes.ObjectOf | nodes.CallNode) -> tuple[dict[str, Any], list[tuple[str, Closure]]]:
        """An object, or the arguments of a CALL, in their order with the constants filled in; closures for the rest."""
        constants: dict[str, Any] = {}
        entries: list[tuple[str, Closure]] = []
        keys = node.keys
        for number, value in enumerate(node.values):
            if type(value) is nodes.Literal:
                constants[keys[number]] = value.value
            else:
                constants[keys[number]] = None
                entries.append((keys[number], MAKERS[type(value)](self, value)))
        self.cost += len(keys)
        return constants, entries

    def _unary(self, node: nodes.Unary) -> Closure:
        operand = self.closure(node.operand)
        operator, at = node.operator, node.at
        if operator == "NOT":
            return lambda f: negate(operand(f), at)
        return lambda f: sign(operator, operand(f), at)

    def _chain(self, node: nodes.Chain) -> Closure:
        operator = node.operators[0]
        if operator in _LOGIC:
            return self._logic(node)
        if operator in _EQUALITY and not _is_short(node):
            self.elastic = True
        if len(node.operators) > 1:
            return self._links(node)
        self.cost += 2
        left, right = node.operands
        if type(right) is nodes.Literal:
            return binary(operator, self._operand(left), ("constant", right.value), node.operator_ats[0])
        return binary(operator, self._operand(left), self._operand(right), node.operator_ats[0])

    def _links(self, node: nodes.Chain) -> Closure:
        """A chain of several operators."""
        if len(node.operators) > MAX_NESTED_CHAIN:
            return self._long_chain(node)
        self.cost += len(node.operands)
        first, *rest = node.operands
        left = self._operand(first)
        for operator, operand, at in zip(node.operators, rest, node.operator_ats, strict=True):
            chain = binary(operator, left, self._operand(operand), at)
            left = "closure", chain
        return chain

    def _operand(self, node: nodes.Expression) -> Operand:
        """What a binary operator takes: the place of a sure variable, a constant, or a closure. Does not count."""
        if type(node) is nodes.Literal:
            return "constant", node.value
        if type(node) is nodes.Name:
            slot = self.scopes.sure_slot(node.name)
            if slot is not None:
                return "slot", slot
        return "closure", MAKERS[type(node)](self, node)

    def _long_chain(self, node: nodes.Chain) -> Closure:
        first, *rest = self.closures(node.operands)
        # Each link works on a frame of its own: the run, the value so far, the next operand.
        links = [
            (operand, binary(operator, ("slot", 1), ("slot", 2), at))
            for operator, operand, at in zip(node.operators, rest, node.operator_ats, strict=True)
        ]

        def fold(f: Frame) -> Any:
            value = first(f)
            for operand, link in links:
                value = link([f[RUN], value, operand(f)])
            return value

        return fold

    def _logic(self, node: nodes.Chain) -> Closure:
        first, *rest = self.closures(node.operands)
        links = list(zip(rest, node.operator_ats, strict=True))
        operator = node.operators[0]
        decided = operator == "OR"
        if len(links) == 1:
            ((second, at),) = links

            def both(f: Frame) -> Any:
                value = first(f)
                if value is decided:
                    return decided
                if value is True or value is False:
                    value = second(f)
                    if value is True or value is False:
                        return value
                    raise not_boolean(operator, "right", value, at)
                raise not_boolean(operator, "left", value, at)

            return both

        def each(f: Frame) -> Any:
            value = first(f)
            if value is not True and value is not False:
                raise not_boolean(operator, "left", value, links[0][1])
            for operand, at in links:
                if value is decided:
                    return decided
                value = operand(f)
                if value is not True and value is not False:
                    raise not_boolean(operator, "right", value, at)
            return value

        return each

    def _access(self, node: nodes.Access) -> Closure:
        steps = node.steps
        if len(steps) > MAX_NESTED_CHAIN:
            return self._long_access(node)
        self.cost += 1
        reach = self._operand(node.target)
        for step in steps:
            self.cost += 1
            if type(step) is nodes.Member:
                reach = "closure", member_of(reach, step.name, step.at)
            else:
                assert type(step) is nodes.Index
                reach = "closure", element_of(reach, self._operand(step.index), step.at)
        inmost: Closure = reach[1]
        return inmost

    def _long_access(self, node: nodes.Access) -> Closure:
        target = self.closure(node.target)
        steps = [self._loose_step(step) for step in node.steps]

        def walk(f: Frame) -> Any:
            value = target(f)
            for step in steps:
                value = step(f, value)
            return value

        return walk

    def _loose_step(self, step: nodes.Member | nodes.Index) -> Callable[[Frame, Any], Any]:
        at = step.at
        if type(step) is nodes.Member:
            self.cost += 1
            name = step.name
            return lambda f, value: member(value, name, at)
        assert type(step) is nodes.Index
        index = self.closure(step.index)
        return lambda f, value: element(value, index(f), at)

    def body_of(self, node: nodes.Function) -> Body | None:
        """What a function does; None where its name or the number of its arguments is wrong."""
        builtin = _builtin(node.name)
        return builtin.body if builtin is not None and builtin.least <= len(node.arguments) <= builtin.most else None

    def refusal(self, node: nodes.Function) -> Callable[[], PlacedError]:
        """What is wrong with such a function. The words are made when the script gets there."""
        return partial(wrong_function, node, BUILTINS)

    def _function(self, node: nodes.Function) -> Closure:
        self.elastic = True
        body = self.body_of(node)
        if body is None:
            return _raise(self.refusal(node))
        if node.name == "FORMAT":
            template, values = node.arguments
            text = template.value if type(template) is nodes.Literal else None
            if type(text) is str and type(values) is nodes.ObjectOf and text.count("{") <= MAX_GAPS:
                return self._template(text, values, node.at)
        at = node.at
        if len(node.arguments) == 1:
            only = self.closure(node.arguments[0])

            def apply(f: Frame, body: Body = body, only: Closure = only, at: int = at) -> Any:
                return body(f[RUN], [only(f)], at)

            return apply
        return _applied(body, self.closures(node.arguments), at)

    def _template(self, template: str, node: nodes.ObjectOf, at: int) -> Closure:
        """FORMAT with both halves written out: cut before the script runs, and constants filled in."""
        count = len(node.keys)
        self.cost += 2 + count
        self.words += OBJECT_WORDS + ENTRY_WORDS * count
        # Reading a variable that certainly has a value changes nothing, so only the rest is evaluated, in its order.
        evaluated: list[Closure] = []
        operands: dict[str, Operand] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            operand = self._operand(value)
            if operand[0] == "closure":
                evaluated.append(operand[1])
                operand = "evaluated", len(evaluated) - 1
            operands[key] = operand

        pieces = _pieces(template)
        self.cost += len(pieces)
        read: list[tuple[int, int]] = []
        shown: list[tuple[int, int]] = []
        missing: str | None = None
        for gap in range(1, len(pieces), 2):
            hole = pieces[gap]
            if hole in DOUBLED:
                pieces[gap] = hole[0]
                continue
            name = hole[1:-1]
            if name not in operands:
                missing = missing or name
                continue
            kind, value = operands[name]
            if kind == "slot":
                read.append((gap, value))
            elif kind == "evaluated":
                shown.append((gap, value))
            else:
                pieces[gap] = scalar_text(value)
        # A few long strings may be joined before they are weighed; many may not.
        few = len(read) + len(shown) <= MAX_NESTED_CHAIN

        def fill(
            f: Frame,
            pieces: list[str] = pieces,
            evaluated: list[Closure] = evaluated,
            read: list[tuple[int, int]] = read,
            shown: list[tuple[int, int]] = shown,
            missing: str | None = missing,
            keys: tuple[str, ...] = node.keys,
            few: bool = few,
            at: int = at,
        ) -> str:
            found = []
            for value in evaluated:
                found.append(value(f))
            if missing is not None:
                raise missing_key(missing, keys, at)
            run: RunState = f[RUN]
            filled = pieces.copy()
            for gap, place in read:
                one = f[place]
                filled[gap] = one if type(one) is str else run.show(one, at)
            for gap, number in shown:
                one = found[number]
                filled[gap] = one if type(one) is str else run.show(one, at)
            if few:
                text = "".join(filled)
                run.string(len(text), at)
                return text
            run.string(sum(map(len, filled)), at)
            return "".join(filled)

        return fill

    def _calc(self, node: nodes.Calc) -> Closure:
        self.cost += len(node.text)
        values = self.closures(node.variables.values)
        evaluate = calc(node)
        return lambda f: evaluate(f, [value(f) for value in values])


# On the class and not on its objects: a table of bound methods would make every one of them a cycle to collect.
MAKERS: dict[type, Callable[[Expressions, Any], Closure]] = {
    nodes.Literal: Expressions._literal,
    nodes.Name: Expressions._name,
    nodes.ListOf: Expressions._list,
    nodes.ObjectOf: Expressions._object,
    nodes.Unary: Expressions._unary,
    nodes.Chain: Expressions._chain,
    nodes.Access: Expressions._access,
    nodes.Function: Expressions._function,
    nodes.Calc: Expressions._calc,
}


def calc(node: nodes.Calc) -> Callable[[Frame, list[Any]], Any]:
    """A CALC as a function of its variables' values."""
    keys = node.variables.keys
    formula = Expressions(keys).closure(node.formula)
    value_ats, at = [value.at for value in node.variables.values], node.formula_at

    def evaluate(f: Frame, values: list[Any]) -> Any:
        for key, value, value_at in zip(keys, values, value_ats, strict=True):
            if not is_number(value):
                raise TypeMismatch(f"CALC takes numbers, and {key} is {kind_of(value)}", value_at)
        try:
            return formula([*f[:2], *values])
        except PlacedError as error:
            # The formula has places of its own; the script has one for all of it.
            error.at = at
            raise

    return evaluate


def _is_short(node: nodes.Chain) -> bool:
    """Whether a comparison is no work whatever the values: beside a literal there is nothing to compare deeply."""
    return len(node.operands) == 2 and any(
        type(operand) is nodes.Literal and (type(operand.value) is not str or len(operand.value) < SHORT_STRING)
        for operand in node.operands
    )


def _raise(problem: Callable[[], PlacedError]) -> Closure:
    """What was known to be wrong before the script ran, and is so when it gets there; the words are made then."""

    def refuse(f: Frame) -> Any:
        raise problem()

    return refuse


def _applied(body: Body, arguments: list[Closure], at: int) -> Closure:
    return lambda f: body(f[RUN], [argument(f) for argument in arguments], at)
