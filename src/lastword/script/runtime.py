"""What a script has at hand: its frame, and the place of each name in it; its limits and budgets, its output, its host.

A frame is a list. Its first two places hold the RunState and the stack of values of unfinished expressions; each
variable of the script has a place after them. A frame dies with its run, and nothing in it is shared with another.

Which variable a name means is decided once, before the script runs. Every LET in a block gets a place in the frame. IF
bodies share the scope around them; each FOR has a scope of its own, fresh in every iteration. Reading the text from top
to bottom, a name is *sure* in a scope once a LET there has certainly happened, and *possible* when the LET stands in a
branch. A name means the innermost scope where it is sure, unless a scope further inside, where it is possible, turns
out to have it: only then is there a question at run time.

Every limit has a name, a reason and a test; reaching one is `LimitExceeded`. All but the seconds are deterministic: the
same script with the same answers stops at the same place on any machine, so a replay stops where the run did. How deep
a text may nest and how long it may be are the parser's: MAX_NESTING and MAX_SOURCE.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from lastword.script.hints import hint_for_word, nearest
from lastword.script.tokens import LimitExceeded, NumberRange, UndefinedVariable
from lastword.values import MAX_SAFE_INTEGER, NotJSON, compare, number_text, scalar_text, weigh, write

if TYPE_CHECKING:
    from lastword.script.tokens import Site


class ScriptLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one run may use. Zero is a limit like any other; there is no "unlimited"."""

    steps: int = 20_000_000
    """Parts of expressions evaluated, and the work of functions and comparisons, each about a tenth of a microsecond:
    some seconds of computing. A FOR is charged its length times the cost of its body on entering, so that it fails
    before its first effect; one with a CALL or another FOR inside begins all the same, since it may end before that."""
    at_once: int = 250_000
    """Steps that the functions and comparisons of one expression may take together. Nothing can have its turn before
    they are done, so this is about 25 ms: a SORT of 40,000 numbers, a SPLIT into 250,000 pieces."""
    seconds: float = 10.0
    """Computing time. Waiting for a tool or a person does not count."""
    calls: int = 20_000
    """CALLs. Each may end on somebody's screen."""
    output_bytes: int = 1_000_000
    """What PRINT may write, in UTF-8, with a line end for every line."""
    string_length: int = 1_000_000
    """Characters in one string that a script makes."""
    list_length: int = 1_000_000
    """Elements in one list that a script makes."""
    value_size: int = 2_000_000
    """Characters and elements in one value that is printed, compared, given to a tool or left in a variable."""
    value_depth: int = 600
    """How deep such a value may nest. Equal to what canonical JSON allows."""
    created_words: int = 32_000_000
    """Everything a script makes, in units of about eight bytes: an upper bound of 256 MB, had nothing been freed."""


Frame = list[Any]
Closure = Callable[[Frame], Any]
"""An expression, made ready: it gives the value."""
Step = Callable[[Frame], Any]
"""A part of a program: steps.py says what it may give."""
RUN = 0
STACK = 1
FIRST_SLOT = 2

# Steps between two breaths, at which other runs get their turn: about two milliseconds of computing.
SLICE = 20_000
# What a CALL brings the next breath nearer, in steps. The way through a host's door is no work of the script, and takes
# some twenty microseconds of everybody's: so that there is a breath every few milliseconds of it as well.
CALL_FUEL = 100
# Steps for one element of a value that is written as text, for one of two that are compared, and for a line of output.
WRITING = 5
COMPARING = 5
PRINTING = 5
_CONTAINERS = frozenset([list, dict])


class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET = _Unset()
"""In the place of a variable that has no value yet."""


class Place(msgspec.Struct, frozen=True, eq=False):
    """Where a variable may be: a place in the frame, and where to look if that is empty.

    A chain of these and not a list for every name that is read: a script can have very many of both.
    """

    slot: int
    outer: Place | None
    count: int
    """How many places there are from here on."""
    top: int | None
    """The one among them that belongs to the top of the script."""
    asked: set[int] | None
    """The places of its scope that are asked for; None where it surely has a value."""


class Scope(msgspec.Struct, eq=False):
    """The names of the top of a script, or of one iteration of a FOR."""

    slots: dict[str, int] = {}
    sure: dict[str, int] = {}
    """Those that are sure, in the order in which they became so: a branch can be taken back from the end."""
    asked: set[int] = set()
    """Places that somebody looks into without knowing: a FOR empties these before each iteration."""
    around: dict[str, Place] = {}
    """Where its names may be in the scopes around it, in which nothing changes while this one is open."""

    def take_back(self, since: int) -> list[str]:
        """Forget what became sure since then, and say what that was: the branch may not have run."""
        names = []
        while len(self.sure) > since:
            names.append(self.sure.popitem()[0])
        return names


class Scopes(msgspec.Struct, eq=False):
    """The scopes around the place being compiled, the innermost last."""

    innermost: Scope
    stack: list[Scope]
    functions: Mapping[str, Any]
    """The built-in functions, which somebody may have meant by a name without a value."""
    holders: dict[str, list[Scope]] = {}
    """For every name the scopes that have a place for it, the innermost last."""
    size: int = FIRST_SLOT

    @classmethod
    def of(cls, given: Iterable[str], functions: Mapping[str, Any]) -> Scopes:
        """The top of a script that is given these variables."""
        top = Scope()
        scopes = cls(top, [top], functions)
        for name in given:
            scopes.define(name)
        return scopes

    def enter(self) -> Scope:
        """Go into a FOR."""
        self.innermost = Scope()
        self.stack.append(self.innermost)
        return self.innermost

    def leave(self) -> None:
        """Come out of a FOR."""
        for name in self.stack.pop().slots:
            self.holders[name].pop()
        self.innermost = self.stack[-1]

    def define(self, name: str) -> int:
        """A LET: the name has a value in the innermost scope from here on."""
        scope = self.innermost
        slot = scope.slots.get(name)
        if slot is None:
            slot = scope.slots[name] = self.size
            self.size = slot + 1
            holders = self.holders.setdefault(name, [])
            if holders:
                scope.around[name] = self._place(name, holders[-1])
            holders.append(scope)
        scope.sure[name] = slot
        return slot

    def sure_slot(self, name: str) -> int | None:
        """The place of a variable that certainly has a value in the only scope it can be of."""
        slot = self.innermost.sure.get(name)
        if slot is not None:
            return slot
        holders = self.holders.get(name)
        return holders[-1].sure.get(name) if holders else None

    def find(self, name: str) -> Place | None:
        """Where the variable may be, innermost first. Whoever looks there must find it empty in a new iteration."""
        holders = self.holders.get(name)
        if not holders:
            return None
        found = self._place(name, holders[-1])
        place: Place | None = found
        # Where one was asked for before, so were those around it.
        while place is not None and place.asked is not None and place.slot not in place.asked:
            place.asked.add(place.slot)
            place = place.outer
        return found

    def _place(self, name: str, scope: Scope) -> Place:
        slot = scope.slots[name]
        top = slot if scope is self.stack[0] else None
        if name in scope.sure:
            return Place(slot, None, 1, top, None)
        outer = scope.around.get(name)
        if outer is None:
            return Place(slot, None, 1, top, scope.asked)
        return Place(slot, outer, 1 + outer.count, outer.top, scope.asked)

    def read_first(self, place: Place | None, name: str, at: int) -> Closure:
        """A variable of which only the run knows in which of several scopes it is, if it is in any."""

        def read(f: Frame) -> Any:
            there = place
            while there is not None:
                value = f[there.slot]
                if value is not UNSET:
                    return value
                there = there.outer
            raise self._undefined(name, at)

        return read

    def store_in_first(self, place: Place | None, value: Closure, name: str, at: int) -> Step:
        """SET where only the run knows which of several scopes has the variable."""

        def step(f: Frame) -> None:
            result = value(f)
            there = place
            while there is not None:
                if f[there.slot] is not UNSET:
                    f[there.slot] = result
                    return
                there = there.outer
            raise self._undefined(name, at)

        return step

    def _undefined(self, name: str, at: int) -> UndefinedVariable:
        """The error for a name without a value. Every name that has a place here may have been meant."""
        if name in self.functions:
            hint: str | None = f"{name} is a function: {self.functions[name].usage}"
        else:
            known = {other for scope in self.stack for other in scope.slots}
            hint = hint_for_word(name) or nearest(name, known) or f"give it a value first: LET {name} = …"
        return UndefinedVariable(f"{name} has no value", at, hint=hint)


Tool = Callable[[dict[str, Any], "Site"], Any]


class Host(Protocol):
    """What a script can reach: this, and nothing else.

    A host gives each tool as a function from arguments and a site to a JSON value, or to an awaitable of one. It may
    raise CallFailed wherever it is asked something. The arguments are the script's own values: a host copies what it
    keeps and changes none.

    Where the site `tries`, the value is `{success, message, value, kind}`, and failing is one of its kinds. A host
    still raises where going on would be wrong: nobody knows what happened, or nobody wants the run to go on.
    """

    def lookup(self, name: str) -> Tool:
        """The tool of this name. Asked before the arguments are evaluated."""
        ...

    def now(self) -> int | Awaitable[int]:
        """The time in milliseconds since 1970; the same again when a run is replayed."""
        ...

    def printed(self, line: str) -> None:
        """A line of output, as it comes."""
        ...


class RunState:
    """The budgets and the output of one run."""

    __slots__ = (
        "at",
        "calls",
        "created",
        "deadline",
        "floor",
        "fuel",
        "host",
        "limits",
        "output",
        "output_left",
        "rest",
        "steps",
    )

    def __init__(self, host: Host, limits: ScriptLimits) -> None:
        self.host = host
        self.limits = limits
        self.steps = limits.steps
        self.created = limits.created_words
        self.calls = limits.calls
        self.output: list[str] = []
        self.output_left = limits.output_bytes
        self.fuel = SLICE
        """Steps until the next breath."""
        self.floor = -limits.at_once
        """How far the fuel may fall below zero before there is a breath."""
        self.rest: list[Iterator[Callable[[Frame], Any]]] = []
        """What is left of the blocks that were left in their middle for a breath, the innermost first."""
        self.deadline = 0.0
        """When the computing time is over; moved on by every wait."""
        self.at = 0
        """The CALL or NOW being answered, or what used up the fuel."""

    def charge(self, steps: int, words: int, at: int) -> None:
        """Pay for work before it is done."""
        self.steps -= steps
        self.created -= words
        if self.steps < 0:
            raise LimitExceeded(
                f"more than {self.limits.steps} steps", at, hint="loop over less, or ask a tool to do it"
            )
        if self.created < 0:
            raise LimitExceeded(
                f"more than {self.limits.created_words} words of values made", at, hint="keep lists and texts short"
            )

    def work(self, steps: int, words: int, at: int) -> None:
        """Pay for work whose size only shows while running, which also brings the next breath nearer."""
        self.fuel -= steps
        if self.fuel < 0:
            self.at = at
            if self.fuel < self.floor:
                raise self.too_much(at)
        self.charge(steps, words, at)

    def too_much(self, at: int) -> LimitExceeded:
        """The error for work that would keep everybody else waiting."""
        words = f"more than {self.limits.at_once} steps of work at once"
        return LimitExceeded(words, at, hint="do it in smaller parts, or ask a tool to do it")

    def check_clock(self) -> None:
        if perf_counter() > self.deadline:
            raise LimitExceeded(f"more than {self.limits.seconds:g} seconds of computing", self.at)

    def show(self, value: Any, at: int) -> str:
        """A value as it prints, within the limits for strings and values."""
        kind = type(value)
        if kind is str:
            shown: str = value
            return shown
        if kind is float:
            return number_text(value)
        if kind is int and -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:
            return str(value)
        limits = self.limits
        size = min(limits.value_size, limits.string_length)
        try:
            if kind is not list and kind is not dict:
                return scalar_text(value)
            most = limits.at_once // WRITING
            shown, elements = write(value, max_depth=limits.value_depth, max_size=size, max_elements=most)
        except NotJSON as problem:
            raise LimitExceeded(f"the value is {problem.fact}", at) from None
        except ValueError:
            # Python refuses to write integers of thousands of digits; one can only come from a tool.
            raise NumberRange("the number has too many digits to print", at) from None
        self.work(WRITING * (3 + elements) + len(shown) // 8, 8 + len(shown) // 2, at)
        return shown

    def string(self, length: int, at: int) -> None:
        """Pay for a string before it is made, if it may be that long."""
        if length > self.limits.string_length:
            raise LimitExceeded(f"a string of more than {self.limits.string_length} characters", at)
        # As `work` does, without two more calls: FORMAT in a loop is common.
        steps = 1 + length // 8
        self.fuel -= steps
        self.steps -= steps
        self.created -= 8 + length // 2
        if self.fuel < 0 or self.steps < 0 or self.created < 0:
            self.work(0, 0, at)

    def list(self, length: int, steps: int, at: int) -> None:
        """Pay for a list, and the work of making it, before it is made, if it may be that long."""
        if length > self.limits.list_length:
            raise LimitExceeded(f"a list of more than {self.limits.list_length} elements", at)
        self.work(1 + steps, 8 + length, at)

    def bounded(self, value: Any, at: int) -> None:
        """Refuse a value that is too large or too deep to leave the script."""
        if type(value) is list or type(value) is dict:
            limits = self.limits
            try:
                _, elements = weigh(
                    value, max_depth=limits.value_depth, max_size=limits.value_size, max_elements=limits.at_once
                )
            except NotJSON as problem:
                raise LimitExceeded(f"the value is {problem.fact}", at) from None
            self.work(elements, 0, at)

    def call(self, tool: Tool, arguments: dict[str, Any], site: Site, at: int) -> Any:
        """Hand a CALL out. Gives a value, or something to wait for."""
        self.calls -= 1
        if self.calls < 0:
            raise LimitExceeded(f"more than {self.limits.calls} CALLs", at)
        self.fuel -= CALL_FUEL
        for value in arguments.values():
            if type(value) in _CONTAINERS:
                self.bounded(value, at)
        self.at = at
        before = perf_counter()
        answer = tool(arguments, site)
        self.deadline += perf_counter() - before
        return answer

    def print(self, value: Any, at: int) -> None:
        line = value if type(value) is str else self.show(value, at)
        self.work(PRINTING + len(line) // 16, 0, at)
        self.output_left -= len(line.encode("utf-8", "surrogatepass")) + 1
        if self.output_left < 0:
            raise LimitExceeded(f"more than {self.limits.output_bytes} bytes of output", at)
        self.output.append(line)
        self.host.printed(line)


def equality(f: Frame, left: Any, right: Any, at: int) -> bool:
    """Deep equality; fails only for values so large that comparing them would be an attack."""
    run: RunState = f[RUN]
    limits = run.limits
    try:
        most = limits.at_once // COMPARING
        answer, work = compare(left, right, max_size=limits.value_size, max_elements=most)
    except NotJSON as problem:
        raise LimitExceeded(f"a value to compare is {problem.fact}", at) from None
    run.work(COMPARING * (1 + work), 0, at)
    return answer
