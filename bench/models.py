"""How often a model asks for the right thing: everyday tasks with the tools of a small house, as lastword ships them.

    python bench/engine.py MODEL.gguf                                  a real llama.cpp, which prints its address
    python bench/models.py http://127.0.0.1:PORT/v1 NAME [--json FILE]

Every task is the first message of a conversation, at temperature 0, and the model's first reply is looked at: what a
repair would make of it does not count. A reply is right; asks for the right tool with wrong arguments; asks for
something wrong; is nearly a request (a near miss); or asks for nothing though it should (none). Scripts are run with
the real tools, whose calls are all allowed, and the calls are compared.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Literal

from figures import Result, arguments
from tasks import ANY, LATER, PUBLIC, TODAY, Call, Task

from lastword import ApprovalRequest, Session, ToolRegistry, UserAction
from lastword.server import HttpUpstream, ServerLimits, build_app
from lastword.store import MemoryStore
from lastword.talk import Api, InProcessWire, Satellite
from lastword.talk.replies import Protocol

TOOLS = Path(__file__).parent.parent / "examples" / "home" / "tools"
# A reply to any of these tasks has fewer. A model that goes on and on has failed.
MAX_TOKENS = 300
# How long it takes says nothing about what is right: a machine that others use may be slow.
PATIENT = ServerLimits(first_byte_seconds=600.0, idle_seconds=600.0)

Verdict = Literal["right", "arguments", "wrong", "near miss", "none"]
COLUMNS: dict[Verdict, str] = {
    "right": "right",
    "arguments": "right tool, wrong arguments",
    "wrong": "wrong",
    "near miss": "near miss",
    "none": "none",
}


class AtZero(HttpUpstream):
    """A model that is asked for its likeliest reply, of a bounded length."""

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        async for chunk in super().stream({**body, "temperature": 0, "max_tokens": MAX_TOKENS}):
            yield chunk


async def yes(request: ApprovalRequest) -> UserAction:
    return UserAction(primary_confirmed=True, secondary_confirmed=False)


async def ask(api: Api, task: Task, protocol: Protocol, constrain: bool) -> tuple[Verdict, str]:
    """One task, in a house of its own."""
    registry = ToolRegistry()
    registry.load(TOOLS)
    async with Session(registry, approver=yes) as session:
        satellite = Satellite(
            session,
            api,
            protocol=protocol,
            constrain="auto" if constrain else "never",
            clock=lambda: TODAY,
        )
        reply = await satellite.first_reply(task.say)
        if reply.malformed_because is not None:
            return "near miss", reply.text
        calls = [(request.name, request.arguments) for request in reply.requests]
        if reply.script is not None:
            run = await session.run_script(reply.text)
            if run.errors:
                return "near miss", f"{reply.text}\n{run.errors[0]}"
            calls = await calls_of(session, run.run_id)
    return judge(task, calls, protocol), reply.text


async def calls_of(session: Session, run_id: str) -> list[Call]:
    found: list[Call] = []
    while True:
        life = await session.journal.life(f"{run_id}.{len(found)}")
        if life.finished is None:
            return found
        asked = life.asked or life.started or {}
        found.append((asked.get("tool", life.outcome().tool), asked.get("arguments", {})))


def judge(task: Task, calls: list[Call], protocol: Protocol) -> Verdict:
    """What the calls are worth. Each wanted call may be made once; a request is one of them."""
    if not calls:
        return "none" if task.calls else "right"
    if not task.calls:
        return "wrong"
    wanted = list(task.calls)
    for call in calls:
        match = next((want for want in wanted if fits(want, call)), None)
        if match is None:
            return "arguments" if call[0] in {name for name, _ in task.calls} else "wrong"
        wanted.remove(match)
    # A script that leaves something out is not right.
    return "right" if protocol != "script" or not wanted else "arguments"


def fits(want: Call, call: Call) -> bool:
    if want[0] != call[0] or {name for name, value in want[1].items() if value is not ANY} - set(call[1]):
        return False
    for name, value in call[1].items():
        expected = want[1].get(name, 100)  # The one optional argument of the house is a brightness: 100 is none.
        if expected is ANY:
            continue
        if isinstance(expected, tuple):
            if not (isinstance(value, str) and all(word.lower() in value.lower() for word in expected)):
                return False
        elif value != expected or isinstance(value, bool) is not isinstance(expected, bool):
            return False
    return True


async def main(
    url: str,
    name: str,
    sets: dict[str, tuple[Task, ...]],
    protocols: list[Protocol],
    forms: tuple[bool, ...],
    verbose: bool,
    keep: Path | None,
) -> None:
    result = Result(__doc__, peers=("xllamacpp",))
    app = build_app(MemoryStore(), AtZero(url, limits=PATIENT), limits=PATIENT, log=lambda line: None)
    async with InProcessWire.alive(app):
        api = Api(InProcessWire(app))
        result.table(name, *COLUMNS.values(), "seconds a task")
        for title, tasks in sets.items():
            for protocol in protocols:
                for constrain in forms if protocol != "native" else (False,):
                    counts: Counter[str] = Counter()
                    since = time.monotonic()
                    for task in tasks:
                        verdict, said = await ask(api, task, protocol, constrain)
                        counts[verdict] += 1
                        if verbose and verdict != "right":
                            print(f"    {verdict}: {task.say}\n      {said!r}", file=sys.stderr, flush=True)
                    label = f"{title}, {protocol}{', as shipped' if constrain else ', unconstrained'}"
                    spent = (time.monotonic() - since) / len(tasks)
                    result.row(label, *(str(counts[verdict]) for verdict in COLUMNS), spent)
                    result.keep(keep)


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("upstream", help="the address of a model's server, with its /v1")
    parser.add_argument("name", help="what to call the model in the table")
    parser.add_argument("--protocol", action="append", choices=("json", "script", "native"))
    parser.add_argument("--tasks", choices=("public", "later", "both"), default="both")
    parser.add_argument("--form", choices=("as-shipped", "unconstrained", "both"), default="both")
    parser.add_argument("--verbose", action="store_true", help="show every reply that was not right")
    given = parser.parse_args()
    forms = {"as-shipped": (True,), "unconstrained": (False,), "both": (True, False)}[given.form]
    protocols = given.protocol or ["json", "script"]
    sets: dict[str, tuple[Task, ...]] = {"20 public tasks": PUBLIC, "20 tasks written afterwards": LATER}
    if given.tasks != "both":
        sets = dict([list(sets.items())[given.tasks == "later"]])
    asyncio.run(main(given.upstream, given.name, sets, protocols, forms, given.verbose, given.json))
