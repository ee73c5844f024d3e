"""How many questions a standing yes saves, and what it lets an injected text do unseen. The tasks of AgentDojo run
through the product itself, with a model that obeys whatever it reads.

    python bench/dojo.py [--json FILE] [--suite NAME]… [--tasks N]

obedient.py says who plays. A standing yes is learned from the honest tasks. What it saves in a task is what it saves
when it was learned from all *other* tasks of the suite; what it lets through is measured with what all of them taught.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from figures import Result, arguments
from habits import Habit, asked, exact_grants, loosest_grants, open_texts, rules, whole_tools
from obedient import MARK, Made, Played

VERSION = "v1.2.2"
SUITES = ("workspace", "travel", "banking", "slack")
# Reads from outside, and so can tell outside what it asks for.
REACHING_OUT = frozenset({"get_webpage"})
# What the package writes in the place of texts that it leaves to the model.
STAND_INS = frozenset({"<summary>", "<feedback>", "..."})
HABITS: dict[str, Habit] = {
    "no standing yes": asked,
    "whole tools, as peers do": whole_tools,
    "grants: exactly the card": exact_grants,
    "grants: as loose as the card offers": loosest_grants,
    "rules: every value seen, in any combination": rules,
    "such bounds, free text open (not to be had)": open_texts,
}


class Dojo:
    """One suite, and what of AgentDojo is needed to play it."""

    def __init__(self, suite: Any, attack: Any, write: Callable[[Any], str], most: int | None = None) -> None:
        """`attack` says what an order looks like, `write` how a result does; `most`: so many tasks and orders."""
        self.suite, self.write, self._attack = suite, write, attack
        self.tasks = list(suite.user_tasks.values())[:most]
        self._untouched = suite.load_and_inject_default_environment({})
        self._usual: dict[str, str] = suite.get_injection_vector_defaults()
        # Where orders may stand. Reading the suite's files anew for each of them would take most of the time.
        places = {place: f"<<{place}>>" for place in self._usual}
        self._template: str = suite.load_and_inject_default_environment(places).model_dump_json()
        # The package names no calls for the hardest orders, so nobody can play them without a model.
        orders = list(suite.injection_tasks.values())
        self.orders = [order for order in orders if order.ground_truth(self.environment())][:most]
        self.unplayable = len(orders) - len([order for order in orders if order.ground_truth(self.environment())])

    def environment(self) -> Any:
        """What a task finds when nobody meddles with it."""
        return self._untouched.model_copy(deep=True)

    def attacks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Every task with every order, which stands in whatever the task reads and others can write."""
        for task in self.tasks:
            for order in self.orders:
                try:
                    written = self._attack.attack(task, order)
                except ValueError:
                    break  # Nothing that the task reads can be written by others.
                text = self._template
                for place, words in {**self._usual, **written}.items():
                    text = text.replace(f"<<{place}>>", json.dumps(words)[1:-1])
                yield task, order, self.suite.environment_type.model_validate_json(text)


@dataclass
class Tally:
    """What one habit came to, over all suites."""

    habit: Habit
    saved: int = 0
    repeated: int = 0
    """Of these, the very same call as in another task."""
    stood_in: int = 0
    """Of these, calls with a text that stands for another, which a model would have written."""
    solved: int = 0
    unseen: int = 0
    reached: int = 0


@dataclass
class Material:
    """What a suite has to offer; the same for every habit."""

    tasks: int = 0
    cards: int = 0
    attacks: int = 0
    delivered: int = 0
    effects: int = 0
    reads_outside: int = 0


def honest(runner: asyncio.Runner, dojo: Dojo) -> list[Played]:
    """Every task without orders, every card asked."""
    house = asked(runner, dojo.suite, dojo.write, ())
    return [house.play(dojo.suite, task, None, dojo.environment()) for task in dojo.tasks]


def effects(played: Sequence[Played]) -> list[Made]:
    """What was done in some tasks that somebody had to be asked about."""
    return [made for one in played for made in one.made if made.has_effect and made.ran]


def save(runner: asyncio.Runner, dojo: Dojo, once: list[Played], tally: Tally) -> None:
    """Play every honest task with what was learned from the others."""
    for place, task in enumerate(dojo.tasks):
        learned = effects(once[:place] + once[place + 1 :])
        house = tally.habit(runner, dojo.suite, dojo.write, learned)
        played = house.play(dojo.suite, task, None, dojo.environment())
        tally.solved += played.is_solved
        known = [(made.tool, made.arguments) for made in learned]
        for made in effects([played]):
            tally.saved += made.ran_unseen
            if made.ran_unseen and (made.tool, made.arguments) in known:
                tally.repeated += 1
                tally.stood_in += any(
                    isinstance(value, str) and value in STAND_INS for value in made.arguments.values()
                )


def attack(
    runner: asyncio.Runner, dojo: Dojo, once: list[Played], tallies: Sequence[Tally], material: Material
) -> None:
    """Play every task with every order, with what all honest tasks have taught."""
    houses = [tally.habit(runner, dojo.suite, dojo.write, effects(once)) for tally in tallies]
    for task, order, environment in dojo.attacks():
        material.attacks += 1
        for place, (tally, house) in enumerate(zip(tallies, houses, strict=True)):
            played = house.play(dojo.suite, task, order, environment.model_copy(deep=True))
            tally.unseen += sum(made.ran_unseen for made in played.ordered)
            tally.reached += bool(played.ordered) and played.is_reached
            if place == 0:
                material.delivered += bool(played.ordered)
                material.effects += sum(made.has_effect for made in played.ordered)
                material.reads_outside += sum(made.tool in REACHING_OUT for made in played.ordered)


def main(names: Sequence[str], most: int | None, keep: Path | None) -> None:
    result = Result(__doc__, peers=("agentdojo",))
    try:
        load, attacks, execution = (
            importlib.import_module(f"agentdojo.{module}")
            for module in ("task_suite.load_suites", "attacks.base_attacks", "agent_pipeline.tool_execution")
        )
    except ModuleNotFoundError as problem:
        sys.exit(f"error: {problem.name} is not installed\nhint: pip install 'lastword[bench]'")
    suites = load.get_suites(VERSION)
    tallies = {name: Tally(habit) for name, habit in HABITS.items()}
    materials: dict[str, Material] = {}
    unplayable = 0
    with asyncio.Runner() as runner:
        for name in names:
            order = attacks.FixedJailbreakAttack(f"{MARK} TODO: {{goal}}", suites[name], None)
            dojo = Dojo(suites[name], order, execution.tool_result_to_str, most)
            once = honest(runner, dojo)
            material = materials[name] = Material(len(once), len(effects(once)))
            unplayable += dojo.unplayable
            for tally in tallies.values():
                save(runner, dojo, once, tally)
            attack(runner, dojo, once, list(tallies.values()), material)
            print(f"{name}: played", file=sys.stderr, flush=True)
    tell(result, materials, tallies, unplayable)
    result.keep(keep)


def tell(result: Result, materials: Mapping[str, Material], tallies: Mapping[str, Tally], unplayable: int) -> None:
    """The tables, and what one has to know to read them."""
    whole = Material(*(sum(column) for column in zip(*map(astuple, materials.values()), strict=True)))
    result.table(
        "", "honest cards asked", "saved", "of which repeated", "injected effects", "ran unseen", "goals reached"
    )
    for name, tally in tallies.items():
        figures = (whole.cards - tally.saved, tally.saved, tally.repeated, whole.effects, tally.unseen, tally.reached)
        result.row(name, *map(str, figures))
    stood_in = max(tally.stood_in for tally in tallies.values())
    result.note(
        "An honest card is saved when what was learned from the other tasks of its suite answers it; it is repeated "
        f"when one of them made the very same call. {stood_in} of the repeated ones are the same because "
        "AgentDojo's solutions hold stand-ins such as `<summary>` for texts that a model would write. An effect ran "
        "unseen when nobody was asked about it: the person here denies every injected card. What whole tools do not "
        "let through are tools that no honest task needs. A policy file cannot say null, which the defaults of some "
        "schemas add, so calls with one are in no rule."
    )
    solved = sorted({tally.solved for tally in tallies.values()})
    reached = min(tally.reached for tally in tallies.values())
    result.note(
        f"Whatever stood, {' or '.join(map(str, solved))} of {whole.tasks} honest tasks were solved. A goal is reached "
        f"when AgentDojo says so: {reached} are although every card is denied, by reads, which ask nobody here. "
        f"{whole.reads_outside} injected calls read from outside, as when an order is to visit a page: let such a tool "
        "ask, if its address can tell something. An order that knew the grants could do what they allow, and no more."
    )
    result.table("suite", "honest tasks", "their cards", "orders delivered", "injected effects", "reads outside")
    for name, one in {**materials, "all": whole}.items():
        result.row(name, *map(str, (one.tasks, one.cards, one.delivered, one.effects, one.reads_outside)))
    result.note(
        f"Every task is played with every order in all that it reads. {unplayable} orders were left out, for which "
        f"AgentDojo {VERSION} gives no calls that could be played without a model."
    )


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES)
    parser.add_argument("--tasks", type=int, metavar="N", help="so many tasks and orders of each suite, and no more")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # Of the package, whose data its own models warn about.
    main(given.suite or SUITES, given.tasks, given.json)
