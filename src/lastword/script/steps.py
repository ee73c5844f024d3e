"""The steps that programs are made of.

A step is a function of the frame. It gives None to go on with the next step, a number to go on with that one, a number
below zero to do so after a breath (`~number`), or an awaitable whose value the machine puts on the stack. The machine
takes a breath after a step that has used up the fuel.

A block that is one step looks at the fuel between its statements. Where it is used up, the block leaves what is left of
it with the run and gives PAUSE, and so does every block around it; the machine takes a breath and goes on inside.

Values of unfinished expressions wait on the stack of the frame, and so do the loops that are under way.

Nobody calls a step with more than the frame: what else it needs are the defaults of its other parameters. A variable
that a function takes from around it costs a cell more to make, and to look through at each garbage collection; of
thousands of scripts that wait at the same time, the cells were the greater part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any

from lastword.script.operators import arithmetic, compare, element, kind_of, member, negate, not_boolean, sign
from lastword.script.runtime import RUN, SLICE, STACK, UNSET, Closure, Frame, RunState, Step, equality
from lastword.script.tokens import InvalidCondition, InvalidIterable, PlacedError

if TYPE_CHECKING:
    from lastword.script.builtins import Body
    from lastword.script.nodes import CallNode, Member
    from lastword.script.tokens import Site

PAUSE = object()
"""What a block gives that has left something to be done after a breath."""

# What a tool may give at once; anything else is something to wait for.
VALUE_TYPES = frozenset((str, int, float, bool, type(None), list, dict))


def nothing(f: Frame) -> None:
    """Hold the place of a step that is not written yet."""


def pop(f: Frame) -> Any:
    """Not a step but a closure: the value that the steps before have left."""
    return f[STACK].pop()


# Statements.


def evaluate(value: Closure) -> Step:
    def step(f: Frame, value: Closure = value) -> None:
        value(f)

    return step


def store(place: int, value: Closure) -> Step:
    def step(f: Frame, place: int = place, value: Closure = value) -> None:
        f[place] = value(f)

    return step


def not_a_condition(value: Any, at: int) -> PlacedError:
    return InvalidCondition(
        f"a condition is true or false, not {kind_of(value)}", at, hint="compare: x == 1, x != null"
    )


def choose(parts: list[tuple[Closure, list[Step], int]], otherwise: list[Step], elastic: bool) -> Step:
    """An IF whose branches neither wait nor jump: its conditions, each with its block and its token, and its ELSE."""
    condition, then, at = parts[0]
    if len(parts) == len(then) == 1 and len(otherwise) <= 1:
        yes = then[0]
        no = otherwise[0] if otherwise else nothing

        def one_of_two(f: Frame, condition: Closure = condition, yes: Step = yes, no: Step = no, at: int = at) -> Any:
            value = condition(f)
            if value is True:
                return yes(f)
            if value is False:
                return no(f)
            raise not_a_condition(value, at)

        return one_of_two
    through = go_through if elastic else _hurry_through

    def step(f: Frame, parts: list[tuple[Closure, list[Step], int]] = parts, otherwise: list[Step] = otherwise) -> Any:
        for condition, then, at in parts:
            value = condition(f)
            if value is True:
                return through(f, iter(then))
            if value is not False:
                raise not_a_condition(value, at)
        return through(f, iter(otherwise))

    return step


def _hurry_through(f: Frame, block: Iterator[Step]) -> None:
    for inner in block:
        inner(f)


def go_through(f: Frame, block: Iterator[Step]) -> Any:
    """Do what is left of a block; gives PAUSE where there must be a breath first."""
    run: RunState = f[RUN]
    for inner in block:
        if inner(f) is not None or run.fuel < 0:
            run.rest.append(block)
            return PAUSE
    return None


def branch(condition: Closure, otherwise: int, at: int) -> Step:
    def step(f: Frame, condition: Closure = condition, otherwise: int = otherwise, at: int = at) -> int | None:
        value = condition(f)
        if value is True:
            return None
        if value is False:
            return otherwise
        raise not_a_condition(value, at)

    return step


def jump(target: int) -> Step:
    def step(f: Frame, target: int = target) -> int:
        return target

    return step


# Loops. Entering one pushes its iterator; the step after it takes elements until there are none.


def enter(items: Closure, cost: int, words: int, at: int, *, waits: bool, ends_early: bool) -> Step:
    """Begin a FOR. Its rounds are paid for now, so that one that is too long fails before its first effect.

    One whose body may wait or loop begins even if it cannot be paid for: it may end before that, at a CALL. One with a
    BREAK or STOP inside pays for each round when it comes, since most of them may never come.
    """

    def step(f: Frame, items: Closure = items, cost: int = cost, words: int = words, at: int = at) -> None:
        values = items(f)
        if type(values) is not list:
            hint = "loop over KEYS(object)" if type(values) is dict else None
            raise InvalidIterable(f"FOR takes a list, not {kind_of(values)}", at, hint=hint)
        run: RunState = f[RUN]
        count = len(values)
        if ends_early or (waits and not (count * cost <= run.steps and count * words <= run.created)):
            f[STACK].append(_paid_one_by_one(values, run, cost, words, at))
            return
        run.charge(count * cost, count * words, at)
        f[STACK].append(iter(values))

    return step


def _paid_one_by_one(values: list[Any], run: RunState, cost: int, words: int, at: int) -> Iterator[Any]:
    for value in values:
        run.charge(cost, words, at)
        yield value


def take_next(place: int, emptied: list[int], cost: int, end: int, at: int) -> Step:
    """One element of a FOR whose body may wait or loop."""

    def step(f: Frame) -> int | None:
        run: RunState = f[RUN]
        run.fuel -= cost
        if run.fuel < 0:
            run.at = at
        for value in f[STACK][-1]:
            f[place] = value
            for other in emptied:
                f[other] = UNSET
            return None
        f[STACK].pop()
        return end

    return step


def leave(end: int) -> Step:
    """BREAK. Between two statements, the last thing on the stack is the innermost FOR."""

    def step(f: Frame, end: int = end) -> int:
        f[STACK].pop()
        return end

    return step


def finish(value: Closure, end: int, at: int) -> Step:
    """STOP: the value is the last line of output, and there is no step at the end."""

    def step(f: Frame, value: Closure = value, end: int = end, at: int = at) -> int:
        f[RUN].print(value(f), at)
        return end

    return step


def sweep(place: int, emptied: list[int], body: list[Step], cost: int, elastic: bool, here: int, at: int) -> Step:
    """Many elements of a FOR whose body neither waits nor loops; the rest after a breath.

    An elastic body may turn out to be far more work than its cost says, so there the fuel is looked at each time.
    """
    portion = max(1, SLICE // cost)
    take = _take if not (elastic or emptied) else _take_watchfully if emptied or len(body) != 1 else _take_one

    def step(
        f: Frame,
        place: int = place,
        emptied: list[int] = emptied,
        body: list[Step] = body,
        cost: int = cost,
        here: int = here,
        at: int = at,
    ) -> int | None:
        run: RunState = f[RUN]
        iterator: Iterator[Any] = f[STACK][-1]
        before = length_hint(iterator)
        take(f, islice(iterator, portion), place, body, emptied, run)
        left = length_hint(iterator)
        if left:
            run.at = at
            return ~here
        f[STACK].pop()
        run.fuel -= cost * before
        if run.fuel < 0:
            run.at = at
            return ~(here + 1)
        return None

    return step


def _take(f: Frame, values: Iterator[Any], place: int, body: list[Step], emptied: list[int], run: RunState) -> None:
    for f[place] in values:
        for inner in body:
            inner(f)


def _take_one(f: Frame, values: Iterator[Any], place: int, body: list[Step], emptied: list[int], run: RunState) -> None:
    (only,) = body
    for f[place] in values:
        if only(f) is not None or run.fuel < 0:
            return


def _take_watchfully(
    f: Frame, values: Iterator[Any], place: int, body: list[Step], emptied: list[int], run: RunState
) -> None:
    for f[place] in values:
        for other in emptied:
            f[other] = UNSET
        # As `go_through` does, without one more call.
        block = iter(body)
        for inner in block:
            if inner(f) is not None or run.fuel < 0:
                run.rest.append(block)
                return


# Expressions that are spread over several steps.


def push(value: Closure) -> Step:
    def step(f: Frame, value: Closure = value) -> None:
        f[STACK].append(value(f))

    return step


def collect(count: int, make: Callable[[Frame, list[Any]], Any]) -> Step:
    """Replace the last values on the stack by what is made of them."""

    def step(f: Frame) -> None:
        stack = f[STACK]
        start = len(stack) - count
        values = stack[start:]
        del stack[start:]
        stack.append(make(f, values))

    return step


def combine(operator: str, at: int) -> Step:
    """A binary operator that takes both of its operands from the stack."""
    if operator in ("==", "!="):
        answer = operator == "=="
        return collect(2, lambda f, values: equality(f, values[0], values[1], at) is answer)
    operate = compare if operator in ("<", "<=", ">", ">=") else arithmetic
    return collect(2, lambda f, values: operate(operator, values[0], values[1], at))


def turn(operator: str, at: int) -> Step:
    """A unary operator that takes its operand from the stack."""
    if operator == "NOT":
        return collect(1, lambda f, values: negate(values[0], at))
    return collect(1, lambda f, values: sign(operator, values[0], at))


def decide(operator: str, side: str, at: int, end: int) -> Step:
    """Between two operands of AND or OR: skip the rest when the first of them decides."""
    decided = operator == "OR"

    def step(f: Frame) -> int | None:
        value = f[STACK][-1]
        if value is decided:
            return end
        if value is not True and value is not False:
            raise not_boolean(operator, side, value, at)
        f[STACK].pop()
        return None

    return step


def must_be_boolean(operator: str, at: int) -> Step:
    """After the last operand of AND or OR."""

    def step(f: Frame) -> None:
        value = f[STACK][-1]
        if value is not True and value is not False:
            raise not_boolean(operator, "right", value, at)

    return step


def take_member(node: Member) -> Step:
    name, at = node.name, node.at
    return collect(1, lambda f, values: member(values[0], name, at))


def take_element(at: int) -> Step:
    return collect(2, lambda f, values: element(values[0], values[1], at))


def refuse(problem: Callable[[], PlacedError]) -> Step:
    def step(f: Frame) -> None:
        raise problem()

    return step


def apply(body: Body, count: int, at: int) -> Step:
    """A built-in function; NOW may give something to wait for."""

    def step(f: Frame) -> Any:
        stack = f[STACK]
        start = len(stack) - count
        values = stack[start:]
        del stack[start:]
        return settle(stack, body(f[RUN], values, at))

    return step


# Calls.


def call(node: CallNode, constants: dict[str, Any], entries: list[tuple[str, Closure]], site: Site) -> Step:
    """A CALL whose arguments need no waiting: look up, evaluate, hand out."""

    def step(
        f: Frame,
        tool: str = node.tool,
        constants: dict[str, Any] = constants,
        entries: list[tuple[str, Closure]] = entries,
        site: Site = site,
        at: int = node.at,
    ) -> Any:
        run: RunState = f[RUN]
        run.at = at
        function = run.host.lookup(tool)
        arguments = constants.copy()
        for key, value in entries:
            arguments[key] = value(f)
        answer = run.call(function, arguments, site, at)
        if type(answer) in VALUE_TYPES:
            f[STACK].append(answer)
            return None
        return answer

    return step


def look_up(node: CallNode) -> Step:
    tool, at = node.tool, node.at

    def step(f: Frame) -> None:
        run: RunState = f[RUN]
        run.at = at
        f[STACK].append(run.host.lookup(tool))

    return step


def invoke(node: CallNode, site: Site) -> Step:
    keys, at = node.keys, node.at
    count = len(keys)

    def step(f: Frame) -> Any:
        stack = f[STACK]
        start = len(stack) - count
        arguments = dict(zip(keys, stack[start:], strict=True))
        del stack[start:]
        return settle(stack, f[RUN].call(stack.pop(), arguments, site, at))

    return step


def settle(stack: list[Any], answer: Any) -> Any:
    """Push an answer that is a value already; give back one that must be waited for."""
    if type(answer) in VALUE_TYPES:
        stack.append(answer)
        return None
    return answer
