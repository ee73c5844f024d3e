"""From a tree to a program: a list of steps that the machine takes one after the other.

Statements that need no waiting are one step each, a closure. A CALL, a FOR, and an expression with a CALL inside are
several steps that pass values over a stack, so the machine itself never recurses and a run waits in one coroutine.

The innermost FOR whose body needs no waiting sweeps over many elements in one step. Every other FOR takes at least one
step for each element.
"""

from __future__ import annotations

from collections.abc import Iterable

from assent.script import steps
from assent.script.builtins import BUILTINS
from assent.script.expressions import (
    ENTRY_WORDS,
    LIST_WORDS,
    OBJECT_WORDS,
    Closure,
    Expressions,
    calc,
    wrong_function,
)
from assent.script.nodes import (
    Access,
    Calc,
    Call,
    Chain,
    Do,
    Expression,
    For,
    Function,
    If,
    Index,
    Let,
    ListOf,
    ObjectOf,
    Script,
    Set,
    Statement,
    Unary,
    children,
)
from assent.script.operators import negate, sign
from assent.script.scopes import Scope, Scopes
from assent.script.sites import CallSite, Places
from assent.script.steps import Step
from assent.script.work import Work, carry_out

# Up to here closures call each other; what nests deeper runs step by step. Few scripts reach five.
MAX_CLOSURE_DEPTH = 12


class Program:
    """The steps of a script, for runs that are given these variables."""

    def __init__(self, script: Script, given: Iterable[str] = ()) -> None:
        self.script = script
        self.scopes = Scopes(given)
        self.steps: list[Step] = []
        self.last_let: dict[str, int] = {}
        """For every variable of the top, the token of the last statement that changes it."""
        writer = _Writer(self)
        writer.write()
        self.cost = writer.expressions.cost
        self.words = writer.expressions.words
        self.slots = self.scopes.stack[0].slots
        self.frame_size = self.scopes.size


class _Writer:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.steps = program.steps
        self.scopes = program.scopes
        self.places = Places(program.script.source)
        self.expressions = Expressions(program.scopes)
        self.deep = program.script.depth > MAX_CLOSURE_DEPTH
        self.heights: list[int] = []
        """For every step, how many closures deep it is; -1 where it may jump or wait."""
        self.hard: set[int] = set()
        """The expressions of the current statement, by identity, that no closure can be made for."""

    def write(self) -> None:
        carry_out(self.block(self.program.script.body))

    # Statements.

    def block(self, statements: tuple[Statement, ...]) -> Work:
        for statement in statements:
            self.expressions.cost += 1
            if isinstance(statement, If):
                yield self.choice(statement)
            elif isinstance(statement, For):
                yield self.loop(statement)
            else:
                value = self.value(statement.value, statement.suspends)
                if value is None:
                    yield self.spread(statement.value)
                    self.add(self.finish(statement, steps.pop))
                else:
                    self.add(self.finish(statement, value), height=0)

    def value(self, node: Expression, suspends: int) -> Closure | None:
        """A closure for an expression, or None where it must be spread over steps that leave its value on the stack."""
        if not suspends and not self.deep:
            return self.expressions.closure(node)
        if suspends == 1 and type(node) is Call and not self.deep:
            # The common one: nothing inside it waits.
            self.hard = set()
            return None
        self.hard = _hard_parts(node)
        return None if id(node) in self.hard else self.expressions.closure(node)

    def finish(self, statement: Let | Set | Do, value: Closure) -> Step:
        if isinstance(statement, Do):
            return steps.evaluate(value)
        if isinstance(statement, Let):
            if len(self.scopes.stack) == 1:
                self.program.last_let[statement.name] = statement.at
            return steps.store(self.scopes.define(statement.name), value)
        places, sure = self.scopes.find(statement.name)
        for place in places:
            if self.scopes.stack[0].slots.get(statement.name) == place:
                self.program.last_let[statement.name] = statement.at
        if sure and len(places) == 1:
            return steps.store(places[0], value)
        return steps.store_in_first(places, value, statement.name, self.scopes, statement.at)

    def choice(self, node: If) -> Work:
        condition = self.value(node.condition, node.suspends)
        start = len(self.steps)
        if condition is None:
            yield self.spread(node.condition)
            condition = steps.pop
        branch = self.add(None)
        scope = self.scopes.stack[-1]
        since = len(scope.news)
        yield self.block(node.then)
        sure_then = scope.take_back(since)
        skip = self.add(None)
        yield self.block(node.otherwise or ())
        for name in set(sure_then).intersection(scope.take_back(since)):
            self.scopes.define(name)
        end = len(self.steps)

        height = max(self.heights[branch + 1 : skip] + self.heights[skip + 1 :], default=0)
        flat = branch == start and min(self.heights[branch + 1 : skip] + self.heights[skip + 1 :], default=0) >= 0
        if flat and height < MAX_CLOSURE_DEPTH:
            step = steps.choose(condition, self.steps[branch + 1 : skip], self.steps[skip + 1 :], node.condition.at)
            del self.steps[start:], self.heights[start:]
            self.add(step, height=height + 1)
        else:
            self.steps[branch] = steps.branch(condition, skip + 1, node.condition.at)
            self.steps[skip] = steps.jump(end)

    def loop(self, node: For) -> Work:
        items = self.value(node.items, node.suspends)
        if items is None:
            yield self.spread(node.items)
            items = steps.pop
        expressions = self.expressions
        outside = expressions.cost, expressions.words, expressions.elastic
        expressions.cost, expressions.words, expressions.elastic = 1, 0, False
        scope = Scope()
        self.scopes.stack.append(scope)
        slot = self.scopes.define(node.name)
        enter = self.add(None)
        following = self.add(None)
        yield self.block(node.body)
        self.scopes.stack.pop()
        cost, words, elastic = expressions.cost, expressions.words, expressions.elastic
        expressions.cost, expressions.words, expressions.elastic = outside

        self.steps[enter] = steps.enter(items, cost, words, node.items.at)
        body = self.steps[following + 1 :]
        if min(self.heights[following + 1 :], default=0) >= 0:
            del self.steps[following + 1 :], self.heights[following + 1 :]
            self.steps[following] = steps.sweep(slot, sorted(scope.asked), body, cost, elastic, following, node.at)
        else:
            self.add(steps.jump(following))
            end = len(self.steps)
            self.steps[following] = steps.take_next(slot, sorted(scope.asked), cost, following, end, node.at)

    def add(self, step: Step | None, height: int = -1) -> int:
        """Put a step at the end, or leave a place for one; gives its number."""
        self.steps.append(step or steps.nothing)
        self.heights.append(height)
        return len(self.steps) - 1

    # Expressions that are spread over several steps, in the order in which they are evaluated.

    def part(self, node: Expression) -> Work:
        if id(node) in self.hard:
            yield self.spread(node)
        else:
            self.add(steps.push(self.expressions.closure(node)))

    def spread(self, node: Expression) -> Work:
        self.expressions.cost += 1
        match node:
            case Call():
                yield self.call(node)
            case Chain() if node.operators[0] in ("AND", "OR"):
                yield self.logic(node)
            case Chain():
                yield self.part(node.operands[0])
                for operator, operand, at in zip(node.operators, node.operands[1:], node.operator_ats, strict=True):
                    yield self.part(operand)
                    self.add(steps.combine(operator, at))
            case Access():
                yield self.access(node)
            case Function():
                yield self.function(node)
            case _:
                for child in children(node):
                    yield self.part(child)
                self.add(self.gather(node))

    def gather(self, node: Expression) -> Step:
        expressions = self.expressions
        match node:
            case ListOf():
                expressions.words += LIST_WORDS + len(node.items)
                return steps.collect(len(node.items), lambda f, values: values)
            case ObjectOf():
                expressions.words += OBJECT_WORDS + ENTRY_WORDS * len(node.keys)
                keys = node.keys
                return steps.collect(len(keys), lambda f, values: dict(zip(keys, values, strict=True)))
            case Unary():
                operator, at = node.operator, node.at
                if operator == "NOT":
                    return steps.collect(1, lambda f, values: negate(values[0], at))
                return steps.collect(1, lambda f, values: sign(operator, values[0], at))
            case Calc():
                expressions.cost += len(node.text)
                evaluate = calc(node)
                return steps.collect(1, lambda f, values: evaluate(f, list(values[0].values())))
        raise AssertionError(node)

    def logic(self, node: Chain) -> Work:
        operator, ats = node.operators[0], node.operator_ats
        yield self.part(node.operands[0])
        # The first operand is the left side of the first operator; each of the others is the right side of its own.
        blame = [("left", ats[0]), *(("right", at) for at in ats)]
        decisions = []
        for operand in node.operands[1:]:
            decisions.append(self.add(None))
            yield self.part(operand)
        self.add(steps.must_be_boolean(operator, ats[-1]))
        for number, (side, at) in zip(decisions, blame, strict=False):
            self.steps[number] = steps.decide(operator, side, at, len(self.steps))

    def access(self, node: Access) -> Work:
        yield self.part(node.target)
        for step in node.steps:
            if isinstance(step, Index):
                yield self.part(step.index)
                self.add(steps.take_element(step.at))
            else:
                self.expressions.cost += 1
                self.add(steps.take_member(step))

    def function(self, node: Function) -> Work:
        problem = wrong_function(node)
        if problem is not None:
            self.add(steps.refuse(problem))
            return
        for argument in node.arguments:
            yield self.part(argument)
        self.expressions.elastic = True
        self.add(steps.apply(BUILTINS[node.name].body, len(node.arguments), node.at))

    def call(self, node: Call) -> Work:
        site = CallSite(self.places, node)
        if not any(id(value) in self.hard for value in node.values):
            self.add(steps.call(node, self.expressions.closures(node.values), site))
            return
        self.add(steps.look_up(node))
        for value in node.values:
            yield self.part(value)
        self.add(steps.invoke(node, site))


def _hard_parts(node: Expression) -> set[int]:
    """The parts of an expression that need waiting or are too high for closures, by identity."""
    order: list[Expression] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        order.append(current)
        waiting.extend(children(current))
    heights: dict[int, int] = {}
    hard: set[int] = set()
    for current in reversed(order):
        inner = children(current)
        height = 1 + max((heights[id(child)] for child in inner), default=0)
        heights[id(current)] = height
        if (
            (inner and height > MAX_CLOSURE_DEPTH * 2)
            or isinstance(current, Call)
            or (isinstance(current, Function) and current.name == "NOW")
            or any(id(child) in hard for child in inner)
        ):
            hard.add(id(current))
    return hard
