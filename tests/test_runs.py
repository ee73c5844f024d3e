"""Scripts through the real door: what a CALL gives, what stops a run, what a second process makes of the journal."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lastword
from lastword.consent import UserAction
from lastword.errors import NotJSON, SessionError
from lastword.journal import Journal
from lastword.store import Entry, MemoryStore
from lastword.store.chain import GENESIS, chain
from lastword.tools import Tool
from lastword.tools.manifest import parse_manifest
from lastword.values import canonical
from requirements import requirement

CASES = [json.loads(line) for line in (Path(__file__).parent / "script" / "conformance.jsonl").read_text().splitlines()]


def conformance_registry() -> lastword.ToolRegistry:
    """The six tools that the recorded cases may call."""
    registry = lastword.ToolRegistry()

    def parameters(**kinds: str) -> list[dict[str, str]]:
        return [{"name": name, "type": kind, "description": name} for name, kind in kinds.items()]

    def boom(args, context):
        raise RuntimeError("boom")

    def mutate(args, context):
        args["list"].append(99)
        return len(args["list"])

    tools: dict[str, tuple[dict[str, Any], Any]] = {
        "echo": ({"parameters": [], "additionalParameters": True}, lambda args, context: args),
        "add": ({"parameters": parameters(a="number", b="number")}, lambda args, context: args["a"] + args["b"]),
        "fail": ({"parameters": []}, boom),
        "nothing": ({"parameters": []}, lambda args, context: None),
        "list": ({"parameters": parameters(n="number")}, lambda args, context: list(range(args["n"]))),
        "mutate": ({"parameters": parameters(list="any")}, mutate),
    }
    for name, (schema, execute) in tools.items():
        registry.register(name, {"description": name, **schema}, execute, inline=True)
    return registry


@requirement("NUWA-30", "NUWA-31")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_the_recorded_cases_hold_through_the_real_door(case):
    """The language was recorded with tools of its own; through the door it must be the same."""
    async with lastword.Session(conformance_registry()) as session:
        run = await session.run_script(case["script"], check=False)
    allowed = {"syntax": {"LexError", "ParseError"}, "syntax-or-limit": {"LexError", "ParseError", "LimitExceeded"}}
    if case["error"] is None:
        assert run.error is None, str(run.error)
    else:
        assert type(run.error).__name__ in allowed.get(case["error"], {case["error"]})
        assert run.error is not None
        assert case.get("line") in (None, run.error.line)
    assert run.output == case["output"]


class World:
    """A registry whose effects can be counted from outside, and journals that outlive sessions."""

    def __init__(self) -> None:
        self.paid: list[float] = []
        self.ids: list[str] = []
        self.store = MemoryStore()
        self.registry = lastword.ToolRegistry()
        self.stop_in_pay: asyncio.Event | None = None

        @self.registry.tool
        async def pay(amount: float, context=None) -> dict:
            """Pay somebody."""
            self.paid.append(amount)
            self.ids.append(context.call_id)
            if self.stop_in_pay is not None:
                self.stop_in_pay.set()
                await asyncio.Event().wait()  # the process "dies" here
            return {"paid": amount}

        @self.registry.tool(require_approval=False)
        async def price(token: str) -> float:
            """A price."""
            return 7

    def session(self, id: str, approver=None) -> lastword.Session:
        return lastword.Session(self.registry, id=id, approver=approver, journal=lastword.Journal(self.store))

    async def killed_in(self, text: str, approver, until: asyncio.Event) -> str:
        """Start a run and let its process vanish, as kill -9 would: nothing is written any more. Returns its id."""
        session = self.session("s", approver)
        task = asyncio.create_task(session.run_script(text))
        await until.wait()
        started = await self.store.read(stream="s", kind="run_started")
        self.store, dead = await _copy(self.store), self.store
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert dead is not self.store
        return started[-1].subject


async def _copy(store: MemoryStore) -> MemoryStore:
    """The records as they are now: what a disk would hold when the process is killed."""
    copy = MemoryStore()
    for record in await store.read():
        assert record.data is not None
        await copy.commit(Entry(record.stream, record.kind, record.subject, record.at, record.data, record.once))
    assert await copy.head() == await store.head()
    return copy


async def allow(request):
    return request.allow()


@requirement("NUWA-30")
async def test_a_denied_value_tool_stops_the_script_and_says_why():
    """A script that asked for a value cannot go on without it."""
    world = World()

    async def deny(request):
        return request.deny("too much")

    run = await world.session("s", deny).run_script("CALL pay { amount: 5 }\nPRINT(1)")
    assert (run.status, run.output, world.paid) == ("failed", [], [])
    assert type(run.error).__name__ == "ToolExecution"
    assert "too much" in str(run.error)
    assert run.error is not None
    assert (run.error.line, run.error.column) == (1, 6)


@requirement("NUWA-49", "NUWA-41")
async def test_a_script_with_a_definite_error_does_not_start():
    """Half of a script must not run because the other half was misspelt."""
    world = World()
    run = await world.session("s", allow).run_script("CALL pay { amount: 5 }\nCALL pai { amount: 6 }")
    assert (run.status, world.paid) == ("failed", [])
    assert type(run.error).__name__ == "ToolNotFound"
    assert run.error is not None
    assert run.error.phase == "check"
    assert run.error.hint == "did you mean pay?"
    assert "lastword" not in str(run.error)


@requirement("NUWA-62")
async def test_a_run_killed_while_a_card_waits_goes_on_and_does_nothing_twice():
    """The first payment was made before the process died; the second was only asked for."""
    world = World()
    waiting = asyncio.Event()

    async def first_only(request):
        if request.arguments["amount"] == 1:
            return request.allow()
        waiting.set()
        return await asyncio.Event().wait()

    text = "LET a = CALL pay { amount: 1 }\nLET b = CALL pay { amount: 2 }\nPRINT(a.paid + b.paid)"
    run_id = await world.killed_in(text, first_only, waiting)
    assert world.paid == [1]
    run = await world.session("s", allow).resume(run_id)
    assert (run.status, run.output) == ("done", ["3"])
    assert world.paid == [1, 2]
    assert len(set(world.ids)) == 2


@requirement("NUWA-20", "NUWA-62")
async def test_a_run_that_goes_on_sees_the_time_that_it_saw_before(monkeypatch):
    """Or it would take another branch than the one in which it has paid already."""
    hours = iter(range(1, 10_000))
    monkeypatch.setattr(time, "time_ns", lambda: next(hours) * 3_600_000_000_000)
    world = World()
    waiting = asyncio.Event()

    async def never(request):
        waiting.set()
        await asyncio.Event().wait()

    text = "LET t = NOW()\nLET u = NOW()\nCALL pay { amount: t }\nPRINT([t, u, NOW()])"
    run_id = await world.killed_in(text, never, waiting)
    run = await world.session("s", allow).resume(run_id)
    assert run.status == "done", str(run.error)
    first, second, third = json.loads(run.output[0])
    assert first < second < third
    assert world.paid == [first]
    again = await world.session("s").resume(run_id)
    assert again.output == run.output


@requirement("TOOL-34", "NUWA-30")
async def test_a_tool_for_an_editor_is_not_found_where_there_is_none():
    """The tool is looked up before its arguments are evaluated, and one of them may be a payment."""
    world = World()
    manifest = {"id": "tidy", "displayName": "Tidy", "description": "Tidies.", "scriptEditorOnly": True}
    parameters = [{"name": "a", "type": "any", "description": "Anything."}]
    world.registry.add(
        Tool(parse_manifest(canonical(manifest | {"parameters": parameters})), "assistant", lambda params: None)
    )
    run = await world.session("s", allow).run_script("CALL tidy { a: CALL pay { amount: 5 } }", check=False)
    assert run.status == "failed"
    assert type(run.error).__name__ == "ToolNotFound"
    assert world.paid == []


@requirement("NUWA-62", "TOOL-45")
async def test_an_answer_given_while_nobody_ran_is_used_once_the_run_goes_on():
    """The question is the same question: who answered it need not be asked again."""
    world = World()
    waiting = asyncio.Event()

    async def never(request):
        waiting.set()
        await asyncio.Event().wait()

    run_id = await world.killed_in("CALL pay { amount: 2 }", never, waiting)
    journal = lastword.Journal(world.store)
    (facts,) = await journal.waiting()
    assert await journal.answer(facts, lastword.UserAction(True, False), "phone")
    assert not await journal.answer(facts, lastword.UserAction(False, True), "laptop")

    async def must_not_be_asked(request):
        raise AssertionError

    run = await world.session("s", must_not_be_asked).resume(run_id)
    assert (run.status, world.paid) == ("done", [2])


@requirement("TOOL-41", "TOOL-45")
@pytest.mark.parametrize("still_on", [True, False])
async def test_a_presets_yes_from_before_a_restart_is_not_taken_for_a_persons(still_on):
    """The process died between the automatic yes and the start; meanwhile the user turned auto-approval off."""
    world = World()
    world.registry.unregister("pay")

    @world.registry.tool(auto_approve=True)
    async def pay(amount: float) -> dict:
        """Pay somebody."""
        world.paid.append(amount)
        return {"paid": amount}

    class Dies(MemoryStore):
        async def commit(self, *entries):
            if any(entry.kind == "burned" for entry in entries):
                died.set()
                await asyncio.Event().wait()
            return await super().commit(*entries)

    died = asyncio.Event()
    world.store = Dies()
    session = world.session("s")
    session.preset = lastword.Preset(True)
    task = asyncio.create_task(session.run_script("CALL pay { amount: 1 }"))
    await died.wait()
    (started,) = await world.store.read(kind="run_started")
    world.store = await _copy(world.store)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    asked = []

    async def deny(request):
        asked.append(request)
        return request.deny()

    session = world.session("s", deny)
    session.preset = lastword.Preset(still_on)
    run = await session.resume(started.subject)
    if still_on:
        assert (run.status, world.paid, asked) == ("done", [1], [])
    else:
        assert (run.status, world.paid, len(asked)) == ("failed", [], 1)


@requirement("NUWA-62", "TOOL-48")
async def test_a_call_killed_while_it_ran_is_in_doubt_and_waits_for_a_person():
    """Nobody knows whether the money left. Nothing may guess."""
    world = World()
    world.stop_in_pay = asyncio.Event()
    run_id = await world.killed_in("LET a = CALL pay { amount: 1 } PRINT(1)", allow, world.stop_in_pay)
    world.stop_in_pay = None
    session = world.session("s", allow)
    run = await session.resume(run_id)
    assert (run.status, run.output, world.paid) == ("waiting", [], [1])
    assert [life.call_id for life in await session.in_doubt()] == [f"{run_id}.0"]

    assert (await session.resolve(f"{run_id}.0", "done", "Kim")).kind == "succeeded"
    with pytest.raises(lastword.LastWordError, match="not in doubt"):
        await session.resolve(f"{run_id}.0", "again")
    run = await session.resume(run_id)
    assert (run.status, world.paid) == ("done", [1])


@requirement("TOOL-24")
@pytest.mark.parametrize("decision", ["again", "abandon"])
async def test_a_person_may_run_a_call_in_doubt_again_or_give_it_up(decision):
    """Running again keeps the call id, so that whoever is paid can recognise a repetition."""
    world = World()
    world.stop_in_pay = asyncio.Event()
    run_id = await world.killed_in("LET a = CALL pay { amount: 1 } PRINT(a.paid)", allow, world.stop_in_pay)
    world.stop_in_pay = None
    session = world.session("s")
    outcome = await session.resolve(f"{run_id}.0", decision)
    run = await session.resume(run_id)
    if decision == "again":
        assert (outcome.kind, run.status, run.output) == ("succeeded", "done", ["1"])
        assert world.ids == [f"{run_id}.0"] * 2
    else:
        assert (outcome.kind, run.status) == ("outcome_unknown", "failed")
        assert world.paid == [1]


async def test_an_idempotent_call_in_doubt_is_retried_with_the_same_id():
    """The tool promised that a second time with the same id is harmless."""
    world = World()
    world.registry.unregister("pay")
    died = asyncio.Event()

    @world.registry.tool(idempotent=True)
    async def pay(amount: float, context=None) -> dict:
        """Pay somebody."""
        world.ids.append(context.call_id)
        if not died.is_set():
            died.set()
            await asyncio.Event().wait()
        return {"paid": amount}

    run_id = await world.killed_in("CALL pay { amount: 1 }", allow, died)
    run = await world.session("s").resume(run_id)
    assert run.status == "done"
    assert world.ids == [f"{run_id}.0"] * 2


@requirement("NUWA-62")
async def test_a_replay_that_asks_for_something_else_stops():
    """The tool's answer decides what the script asks next; a changed tool would make the journal lie."""
    world = World()
    waiting = asyncio.Event()

    async def never(request):
        waiting.set()
        await asyncio.Event().wait()

    run_id = await world.killed_in('LET p = CALL price { token: "x" }\nCALL pay { amount: p }', never, waiting)
    entries = world.store._entries
    for place, entry in enumerate(entries):
        if entry.kind == "finished" and json.loads(entry.data)["tool"] == "price":
            entries[place] = msgspec.structs.replace(entry, data=entry.data.replace(b'"value":7', b'"value":8'))
    # A record that was merely edited is not believed, so the whole chain is written anew behind it.
    world.store._digests[:] = chain(GENESIS, 1, entries)
    run = await world.session("s", allow).resume(run_id)
    assert type(run.error).__name__ == "ReplayDivergence"
    assert world.paid == []


async def test_a_closed_card_in_a_run_is_remembered_and_not_asked_again():
    """What was refused before the restart stays refused after it."""
    world = World()
    asked = []

    async def close(request):
        asked.append(request)
        return UserAction.CLOSED

    session = world.session("s", close)
    run = await session.run_script("CALL pay { amount: 1 }")
    again = await world.session("s", close).resume(run.run_id)
    assert (run.status, again.status, len(asked), world.paid) == ("failed", "failed", 1, [])
    assert len(await world.store.read(kind="run_finished")) == 1


async def test_a_run_has_one_process_at_a_time():
    """Two programs that both went on with a run would both ask, and both act."""
    world = World()
    waiting = asyncio.Event()

    async def never(request):
        waiting.set()
        await asyncio.Event().wait()

    session = world.session("s", never)
    task = asyncio.create_task(session.run_script("CALL pay { amount: 1 }"))
    await waiting.wait()
    (started,) = await world.store.read(kind="run_started")
    with pytest.raises(lastword.LastWordError, match="another program"):
        await world.session("s", allow).resume(started.subject)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert (await world.session("s", allow).resume(started.subject)).status == "done"
    assert world.paid == [1]


async def test_a_run_of_another_version_of_the_language_is_refused_in_words():
    """A replay under other rules would be a guess."""
    world = World()
    session = world.session("s")
    await session.open()
    session.journal.note(
        "s", "run_started", "r1", {"text": "PRINT(1)", "name": None, "variables": {}, "checked": True, "version": 99}
    )
    with pytest.raises(lastword.LastWordError, match="does not replay"):
        await session.resume("r1")
    with pytest.raises(lastword.LastWordError, match="no run r2"):
        await session.resume("r2")


@requirement("NUWA-12")
async def test_variables_go_in_unchanged_and_come_out():
    """The caller's own list must not change under it."""
    world = World()
    given = {"xs": [1, 2]}
    run = await world.session("s").run_script("LET n = xs.length LET xs = [9]", variables=given)
    assert run.variables == {"xs": [9], "n": 2}
    assert given == {"xs": [1, 2]}


def test_a_script_runs_without_an_event_loop():
    """Sync code is welcome."""
    session = World().session("s")
    try:
        assert session.run_script_sync("PRINT(1 + 1)").output == ["2"]
    finally:
        session.close_sync()


class Slow(MemoryStore):
    """Lets others run wherever a store on a disk would."""

    async def read(self, **facts):
        found = await super().read(**facts)
        await asyncio.sleep(0)
        return found


async def test_two_who_begin_one_run_at_once_begin_it_once():
    """Both find nothing of it in the journal. If both wrote that it began, the text of the second would be resumed."""
    registry = lastword.ToolRegistry()
    amounts = []
    parameters = [{"name": "amount", "type": "number", "description": "How much."}]

    async def pay(args, context):
        amounts.append(args["amount"])
        await asyncio.sleep(0)

    registry.register("pay", {"description": "Pays.", "parameters": parameters}, pay)
    journal = Journal(Slow())
    both = [lastword.Session(registry, id="s", journal=journal) for _ in range(2)]
    texts = [f"CALL pay {{ amount: {amount} }}\nPRINT({amount})" for amount in (1, 2)]
    first, second = await asyncio.gather(
        *(session.run_script(text, run_id="night") for session, text in zip(both, texts, strict=True)),
        return_exceptions=True,
    )
    assert not isinstance(first, BaseException)
    assert first.output == ["1"]
    assert isinstance(second, SessionError)
    assert amounts == [1]
    assert (await both[1].run_script(texts[1], run_id="night")).output == ["1"]
    assert (await both[1].resume("night")).output == ["1"]
    assert amounts == [1]


@pytest.mark.parametrize("where", ["text", "name", "variables"])
async def test_a_script_that_no_journal_can_hold_is_refused_in_words(where):
    """Half a character comes from a careless client, and a traceback of the encoder helps nobody."""
    half = "\ud800"
    text = f'PRINT("{half}")' if where == "text" else "PRINT(1)"
    session = lastword.Session(lastword.ToolRegistry(), id="s")
    with pytest.raises(NotJSON, match=r"lone surrogate U\+D800"):
        await session.run_script(
            text, {"a": half} if where == "variables" else None, name=half if where == "name" else None, check=False
        )
    assert not await session.journal.history("s")
