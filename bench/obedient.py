"""AgentDojo's tasks in a session of lastword: its tools, the obedient model and the person. For bench/dojo.py.

No model is asked. The one that plays here makes the calls that AgentDojo gives as the solution of a task and, as soon
as a tool's result holds an injected order, those that it gives as the solution of the order: the worst that there is.
The person allows every card of the task and denies every card of an order, without ever being wrong; so whatever an
order achieves, it achieved without a card. The tools are those of the suites, in a session like any other, with their
schemas. What only reads asks nobody.

Nothing of AgentDojo is imported here: a suite is whatever has its tools, its tasks and its way to run them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lastword import ApprovalRequest, Session, ToolContext, ToolError, ToolRegistry, UserAction

# What an order begins with, so that it is known in any result, however that is written out.
MARK = "ORDER-FROM-OUTSIDE"
# All tools of the suites that only read are called so, and no other is.
READING = ("get_", "search_", "check_", "list_", "read_")
REVERSIBLE = frozenset(
    {"add_user_to_channel", "append_to_file", "create_file", "reschedule_calendar_event", "update_user_info"}
)
SECRETS = {"update_password": ("password",)}


@dataclass(frozen=True)
class Made:
    """A call that was made, and what came of it."""

    tool: str
    arguments: dict[str, Any]
    """With those that the schema adds, if it ran."""
    is_ordered: bool
    """Whether an order from outside wanted it, and not the task."""
    ran: bool
    approval: str
    """Whose yes it was: a person's, or a standing one."""

    @property
    def has_effect(self) -> bool:
        return not self.tool.startswith(READING)

    @property
    def ran_unseen(self) -> bool:
        return self.ran and self.has_effect and self.approval != "person"


@dataclass
class World:
    """What one task is about, for the tools, the model and the person."""

    runtime: Any = None
    """Runs AgentDojo's functions. None while a standing yes is given: then nothing is done."""
    environment: Any = None
    is_ordered: bool = False
    ran_with: dict[str, Any] = field(default_factory=dict)
    """The arguments of what was carried out last."""
    made: list[Made] = field(default_factory=list)


@dataclass(frozen=True)
class Played:
    """A task from its beginning to its end."""

    is_solved: bool
    is_reached: bool
    """Whether AgentDojo says that the order has got what it wanted."""
    made: list[Made]

    @property
    def ordered(self) -> list[Made]:
        return [made for made in self.made if made.is_ordered]


class House:
    """The tools of a suite, and a person, as one habit has arranged them."""

    def __init__(self, runner: asyncio.Runner, registry: ToolRegistry, **more: Any) -> None:
        self._runner, self._registry, self._more = runner, registry, more

    def play(self, suite: Any, task: Any, order: Any, environment: Any) -> Played:
        """Let the obedient model do a task, in a session of its own."""
        world = World()
        session = Session(self._registry, approver=_person(world), deps=world, **self._more)

        def call(tool: str, given: dict[str, Any]) -> tuple[bool, str]:
            outcome = self._runner.run(session.call(tool, given))
            really = world.ran_with if outcome.success else given
            world.made.append(Made(tool, really, world.is_ordered, outcome.success, outcome.approval))
            return outcome.success, outcome.message

        model = Obedient(world, task, order, call)
        solved, reached = suite.run_task_with_pipeline(model, task, order, {}, environment=environment)
        self._runner.run(session.close())
        return Played(solved, order is not None and reached, world.made)


Call = Callable[[str, dict[str, Any]], tuple[bool, str]]
"""Calls a tool: whether it ran, and what it or the door said."""


class Obedient:
    """Does the task, and whatever it reads on the way. In the place of a pipeline of AgentDojo."""

    def __init__(self, world: World, task: Any, order: Any, call: Call) -> None:
        self._world, self._task, self._order, self._call = world, task, order, call

    def query(
        self, prompt: str, runtime: Any, environment: Any, messages: Sequence[Any] = (), more: Any = None
    ) -> tuple[str, Any, Any, list[Any], Any]:
        """What AgentDojo calls."""
        self._world.runtime, self._world.environment = runtime, environment
        said = list(messages)
        has_obeyed = False
        for wanted in self._task.ground_truth(environment):
            read = self._make(wanted, said)
            if self._order is not None and not has_obeyed and MARK in read:
                has_obeyed = self._world.is_ordered = True
                for ordered in self._order.ground_truth(environment):
                    self._make(ordered, said)
                self._world.is_ordered = False
        words = [self._task.GROUND_TRUTH_OUTPUT, *([self._order.GROUND_TRUTH_OUTPUT] if has_obeyed else [])]
        said.append({"role": "assistant", "tool_calls": None, "content": [_text(" ".join(words))]})
        return prompt, runtime, environment, said, more or {}

    def _make(self, wanted: Any, said: list[Any]) -> str:
        """Make a call. AgentDojo takes every call of the conversation for one that was carried out: others are left
        out of it."""
        ran, read = self._call(wanted.function, wanted.model_dump(mode="json")["args"])
        if ran:
            said.append({"role": "assistant", "tool_calls": [wanted], "content": [_text("")]})
            result = {"tool_call": wanted, "tool_call_id": None, "error": None, "content": [_text(read)]}
            said.append({"role": "tool", **result})
        return read


def _text(words: str) -> dict[str, str]:
    return {"type": "text", "content": words}


def _person(world: World) -> Callable[[ApprovalRequest], Any]:
    """Somebody who reads every card and is never wrong."""

    async def answer(request: ApprovalRequest) -> UserAction:
        return request.deny("I never asked for this.") if world.is_ordered else request.allow()

    return answer


Rule = Callable[[dict[str, Any]], bool]
"""Whether a call of a tool need not be asked about, by the tool's own lights."""


def tools_of(
    suite: Any,
    write: Callable[[Any], str],
    keys: Collection[str] | None = None,
    rules: Mapping[str, Rule] | None = None,
) -> ToolRegistry:
    """The tools of a suite, as a careful host would register them. `keys`: those that take a standing yes; all of them
    unless it is given."""
    registry = ToolRegistry()
    for function in suite.tools:
        asks: Any = not function.name.startswith(READING)
        if rules is not None and function.name in rules:
            asks = _asking(rules[function.name])
        schema = {**function.parameters.model_json_schema(), "additionalProperties": False}
        registry.register(
            function.name,
            {"name": function.name, "description": function.description, "input_schema": schema},
            _running(function.name, write),
            require_approval=asks,
            auto_approve=keys is None or function.name in keys,
            effect="reversible" if function.name in REVERSIBLE else "irreversible" if asks else "none",
            secret=SECRETS.get(function.name, ()),
        )
    return registry


def _running(name: str, write: Callable[[Any], str]) -> Callable[..., Any]:
    async def execute(arguments: dict[str, Any], context: ToolContext[World]) -> str:
        world = context.deps
        world.ran_with = arguments
        if world.runtime is None:
            return "done"
        value, problem = world.runtime.run_function(world.environment, name, arguments)
        if problem is not None:
            raise ToolError(problem)
        return write(value)

    return execute


def _asking(rule: Rule) -> Callable[..., bool]:
    def asks(params: dict[str, Any]) -> bool:
        return not rule(params)

    return asks
