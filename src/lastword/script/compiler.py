"""From a tree to a program: a list of steps that the machine takes one after the other.

Statements that need no waiting are one step each, a closure. A CALL, a FOR, and an expression with a CALL inside are
several steps that pass values over a stack, so the machine itself never recurses and a run waits in one coroutine.

The innermost FOR whose body needs no waiting sweeps over many elements in one step. Every other FOR takes at least one
step for each element.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from lastword.script import nodes, steps
from lastword.script.expressions import MAKERS, Expressions, calc
from lastword.script.tokens import LARGE_TEXT, Places, Site

if TYPE_CHECKING:
    from lastword.script.runtime import Closure, Step

_NOTHING: frozenset[int] = frozenset()


class Program(msgspec.Struct, frozen=True):
    """The steps of a script, for runs that are given certain variables."""

    steps: list[Step]
    cost: int
    words: int
    """What the steps outside every loop cost, and the words that their literals take."""
    slots: dict[str, int]
    """The places of the variables of the top."""
    changed: dict[int, int]
    """For every place of the top, the token of the last statement that changes it."""
    frame_size: int


def write_program(script: nodes.Script, given: Iterable[str] = ()) -> Program:
    """The program of a script, for runs that are given variables of these names."""
    writer = _Writer(script, given)
    nodes.walk(script.body, writer.take)
    if script.sites and len(script.source) > LARGE_TEXT:
        # Not when the first CALL asks where it stands: then everybody would wait for it.
        writer.places.of(0)
    for number, value, at in writer.stops:
        writer.steps[number] = steps.finish(value, len(writer.steps), at)
    scopes, cost = writer.scopes, writer.cost + len(script.body)
    return Program(writer.steps, cost, writer.words, scopes.innermost.slots, writer.changed, scopes.size)


class _Writer(Expressions):
    """Writes statements, with the closures of the expressions inside them."""

    __slots__ = ("breaks", "changed", "deep", "hard", "height", "jumps", "places", "steps", "stops")

    def __init__(self, script: nodes.Script, given: Iterable[str]) -> None:
        Expressions.__init__(self, given)
        self.steps: list[Step] = []
        self.changed: dict[int, int] = {}
        self.places = Places(script.source)
        self.deep = script.is_deep
        self.jumps = 0
        """How often the steps so far may jump or wait: a block that adds nothing to it can be one closure."""
        self.height = 0
        """How many closures deep the highest step of the current block is."""
        self.hard: frozenset[int] | set[int] = _NOTHING
        """The expressions of the current statement, by identity, that no closure can be made for."""
        self.breaks: list[list[int]] = []
        """For every FOR that is open, the steps that leave it."""
        self.stops: list[tuple[int, Closure, int]] = []
        """The steps that end the script, with what each of them shows."""

    # Statements.

    def take(self, statements: Iterator[nodes.Statement], block: nodes.Block) -> Iterator[nodes.Block] | None:
        """Write the statements up to the next IF or FOR."""
        for statement in statements:
            if type(statement) is nodes.Let:
                value = self.value(statement.value, statement.suspends)
                slot = self.scopes.define(statement.name)
                self.changed[slot] = statement.at
                self.steps.append(steps.store(slot, value))
            elif type(statement) is nodes.Do:
                self.steps.append(steps.evaluate(self.value(statement.value, statement.suspends)))
            elif type(statement) is nodes.Set:
                self.steps.append(self.assign(statement, self.value(statement.value, statement.suspends)))
            elif type(statement) is nodes.If:
                return self.choice(statement)
            elif type(statement) is nodes.For:
                return self.loop(statement)
            elif type(statement) is nodes.Break:
                self.jumps += 1
                self.breaks[-1].append(self.leave_room())
            elif type(statement) is nodes.Stop:
                value = self.value(statement.value, statement.suspends)
                self.jumps += 1
                self.stops.append((self.leave_room(), value, statement.at))
        return None

    def value(self, node: nodes.Expression, suspends: int) -> Closure:
        """A closure for an expression. Where it must be spread over steps, these are written, and leave its value."""
        if not self.deep:
            if not suspends:
                # As `closure` does, without one more call: most statements come this way.
                self.cost += 1
                return MAKERS[type(node)](self, node)
            if suspends == 1 and type(node) is nodes.CallNode:
                # The common one: nothing inside it waits.
                self.cost += 1
                self.jumps += 1
                self.call(node)
                return steps.pop
        self.hard = _hard_parts(node)
        if id(node) not in self.hard:
            return self.closure(node)
        self.jumps += 1
        nodes.drive(self.spread(node))
        return steps.pop

    def assign(self, statement: nodes.Set, value: Closure) -> Step:
        slot = self.scopes.sure_slot(statement.name)
        if slot is not None:
            self.changed[slot] = statement.at
            return steps.store(slot, value)
        place = self.scopes.find(statement.name)
        if place is not None:
            self.cost += place.count
            if place.top is not None:
                self.changed[place.top] = statement.at
        return self.scopes.store_in_first(place, value, statement.name, statement.at)

    def choice(self, node: nodes.If) -> Iterator[nodes.Block]:
        """An IF. Its ELSEIFs stand beside each other, so that a long chain of them is not deep."""
        jumps, height = self.jumps, self.height
        condition = self.value(node.condition, node.suspends)
        outside, self.elastic = self.elastic, False
        self.height = 0
        scope = self.scopes.innermost
        since = len(scope.sure)
        always: set[str] | None = None
        parts: list[tuple[Closure, int, int, int]] = []
        """For each condition: its closure, the steps before and behind what it guards, and its token."""
        for part in node.parts:
            if part is not node:
                condition = self.value(part.condition, part.suspends)
            self.cost += len(part.then)
            branch = self.leave_room()
            yield part.then
            sure = scope.take_back(since)
            always = set(sure) if always is None else always.intersection(sure)
            parts.append((condition, branch, self.leave_room(), part.condition.at))
        if node.otherwise is not None:
            self.cost += len(node.otherwise)
            yield node.otherwise
            for name in (always or set()).intersection(scope.take_back(since)):
                self.scopes.define(name)

        elastic, self.elastic = self.elastic, self.elastic or outside
        if self.jumps == jumps and self.height < nodes.MAX_CLOSURE_DEPTH:
            guarded = [(condition, self.steps[start + 1 : end], at) for condition, start, end, at in parts]
            otherwise = self.steps[parts[-1][2] + 1 :]
            del self.steps[parts[0][1] :]
            self.steps.append(steps.choose(guarded, otherwise, elastic))
            self.height = max(height, self.height + 1)
            return
        self.jumps += 1
        for condition, start, end, at in parts:
            self.steps[start] = steps.branch(condition, end + 1, at)
            self.steps[end] = steps.jump(len(self.steps))

    def loop(self, node: nodes.For) -> Iterator[nodes.Block]:
        items = self.value(node.items, node.suspends)
        outside = self.cost, self.words, self.elastic
        self.cost, self.words, self.elastic = 1 + len(node.body), 0, False
        scope = self.scopes.enter()
        slot = self.scopes.define(node.name)
        enter = self.leave_room()
        following = self.leave_room()
        jumps, stops = self.jumps, len(self.stops)
        self.breaks.append([])
        yield node.body
        breaks = self.breaks.pop()
        self.scopes.leave()
        cost, words, elastic = self.cost, self.words, self.elastic
        self.cost, self.words, self.elastic = outside

        emptied = sorted(scope.asked)
        ends_early = bool(breaks) or len(self.stops) > stops
        self.steps[enter] = steps.enter(
            items, cost, words, node.items.at, waits=self.jumps != jumps, ends_early=ends_early
        )
        if self.jumps == jumps:
            body = self.steps[following + 1 :]
            del self.steps[following + 1 :]
            self.steps[following] = steps.sweep(slot, emptied, body, cost, elastic, following, node.at)
        else:
            self.steps.append(steps.jump(following))
            end = len(self.steps)
            self.steps[following] = steps.take_next(slot, emptied, cost, end, node.at)
            for number in breaks:
                self.steps[number] = steps.leave(end)
        self.jumps += 1

    def leave_room(self) -> int:
        """Leave a place for a step that is written later; gives its number."""
        self.steps.append(steps.nothing)
        return len(self.steps) - 1

    # Expressions that are spread over several steps, in the order in which they are evaluated.

    def part(self, node: nodes.Expression) -> nodes.Work:
        if id(node) in self.hard:
            yield self.spread(node)
        else:
            self.steps.append(steps.push(self.closure(node)))

    def spread(self, node: nodes.Expression) -> nodes.Work:
        self.cost += 1
        match node:
            case nodes.CallNode() if any(id(value) in self.hard for value in node.values):
                self.steps.append(steps.look_up(node))
                for value in node.values:
                    yield self.part(value)
                self.steps.append(steps.invoke(node, self.site(node)))
            case nodes.CallNode():
                self.call(node)
            case nodes.Chain() if node.operators[0] in ("AND", "OR"):
                yield self.logic(node)
            case nodes.Chain():
                yield self.part(node.operands[0])
                for operator, operand, at in zip(node.operators, node.operands[1:], node.operator_ats, strict=True):
                    yield self.part(operand)
                    self.steps.append(steps.combine(operator, at))
            case nodes.Access():
                yield self.access(node)
            case nodes.Function():
                yield self.function(node)
            case _:
                for child in nodes.children(node):
                    yield self.part(child)
                self.steps.append(self.gather(node))

    def gather(self, node: nodes.Expression) -> Step:
        match node:
            case nodes.ListOf():
                self.take_words(node)
                return steps.collect(len(node.items), lambda f, values: values)
            case nodes.ObjectOf():
                self.take_words(node)
                keys = node.keys
                return steps.collect(len(keys), lambda f, values: dict(zip(keys, values, strict=True)))
            case nodes.Unary():
                return steps.turn(node.operator, node.at)
            case nodes.Calc():
                self.cost += len(node.text)
                evaluate = calc(node)
                return steps.collect(1, lambda f, values: evaluate(f, list(values[0].values())))
        raise AssertionError(node)

    def logic(self, node: nodes.Chain) -> nodes.Work:
        operator, ats = node.operators[0], node.operator_ats
        yield self.part(node.operands[0])
        # The first operand is the left side of the first operator; each of the others is the right side of its own.
        blame = [("left", ats[0]), *(("right", at) for at in ats)]
        decisions = []
        for operand in node.operands[1:]:
            decisions.append(self.leave_room())
            yield self.part(operand)
        self.steps.append(steps.must_be_boolean(operator, ats[-1]))
        for number, (side, at) in zip(decisions, blame, strict=False):
            self.steps[number] = steps.decide(operator, side, at, len(self.steps))

    def access(self, node: nodes.Access) -> nodes.Work:
        yield self.part(node.target)
        for step in node.steps:
            if isinstance(step, nodes.Index):
                yield self.part(step.index)
                self.steps.append(steps.take_element(step.at))
            else:
                self.cost += 1
                self.steps.append(steps.take_member(step))

    def function(self, node: nodes.Function) -> nodes.Work:
        body = self.body_of(node)
        if body is None:
            self.steps.append(steps.refuse(self.refusal(node)))
            return
        for argument in node.arguments:
            yield self.part(argument)
        self.elastic = True
        self.steps.append(steps.apply(body, len(node.arguments), node.at))

    def site(self, node: nodes.CallNode) -> Site:
        return Site(self.places, node.at, node.tool, node.site, node.tries)

    def call(self, node: nodes.CallNode) -> None:
        """A CALL whose arguments need no waiting."""
        site = self.site(node)
        constants, entries = self.entries(node)
        self.steps.append(steps.call(node, constants, entries, site))


def _hard_parts(node: nodes.Expression) -> set[int]:
    """The parts of an expression that need waiting or are too high for closures, by identity."""
    order: list[nodes.Expression] = []
    waiting = [node]
    while waiting:
        current = waiting.pop()
        order.append(current)
        waiting.extend(nodes.children(current))
    heights: dict[int, int] = {}
    hard: set[int] = set()
    for current in reversed(order):
        inner = nodes.children(current)
        height = 1 + max((heights[id(child)] for child in inner), default=0)
        heights[id(current)] = height
        if (
            (inner and height > nodes.MAX_CLOSURE_DEPTH * 2)
            or isinstance(current, nodes.CallNode)
            or (isinstance(current, nodes.Function) and current.name == "NOW")
            or any(id(child) in hard for child in inner)
        ):
            hard.add(id(current))
    return hard
