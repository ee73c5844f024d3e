"""TRY CALL through the real door: what it catches, what it must not, and what is left of it after the process died."""

import asyncio
import json
from operator import methodcaller
from typing import Any

import msgspec
import pytest

import lastword
from lastword.call import Limits
from lastword.consent import UserAction
from lastword.consent.approval import OFFERED_AFTER
from lastword.errors import LastWordError, ToolError
from lastword.script import ScriptLimits, plan_text
from lastword.store.chain import GENESIS, chain
from lastword.testing import FixedApprover
from requirements import requirement
from test_runs import World, allow

BROKE = (13, 77, 150)
PAYMENTS = """\
LET failed = []
FOR n IN RANGE(200) DO
  LET r = TRY CALL pay { amount: n }
  IF NOT r.success THEN
    SET failed = APPEND(failed, FORMAT("{n}: {kind}", {n: n, kind: r.kind}))
  END
END
STOP FORMAT("{k} failed: {list}", {k: failed.length, list: failed})
"""
TOLD = ["3 failed: [13: raised, 77: raised, 150: raised]"]


class Payments(World):
    """A world whose payments can fail: some amounts always do."""

    def __init__(self) -> None:
        super().__init__()
        self.registry.unregister("pay")
        self.began: list[float] = []

        @self.registry.tool
        async def pay(amount: float, context=None) -> dict:
            """Pay somebody."""
            self.began.append(amount)
            if amount in BROKE:
                raise RuntimeError("the bank did not answer")
            self.paid.append(amount)
            if self.stop_in_pay is not None:
                self.stop_in_pay.set()
                await asyncio.Event().wait()  # the process "dies" here
            return {"paid": amount}


@requirement("NUWA-80")
async def test_two_hundred_payments_of_which_three_fail_go_on_and_tell_what_failed():
    """One bad payment must not keep the others from being made, nor be hidden among them."""
    world = Payments()
    approver = FixedApprover()
    run = await world.session("s", approver).run_script(PAYMENTS)
    assert (run.status, run.output, run.error) == ("done", TOLD, None)
    assert len(approver.requests) == 200
    assert world.paid == [n for n in range(200) if n not in BROKE]


@requirement("NUWA-80", "NUWA-51")
def test_the_plan_of_what_is_tried_promises_a_bound_and_says_that_the_script_goes_on():
    """What is denied or fails does not happen, so no number of times is promised but the highest."""
    steps = lastword.plan(PAYMENTS, World().registry)
    text = plan_text(steps)
    assert "For each n in RANGE(200), at most 200 times. (line 3)" in text
    assert "If it fails or you deny it, the script goes on." in text
    assert (steps[0].least, steps[0].most, steps[0].tries, steps[0].as_dict()["tries"]) == (0, 200, True, True)


@requirement("NUWA-80", "NUWA-62")
async def test_a_run_that_was_killed_in_the_middle_of_its_payments_pays_the_rest_once():
    """The failures before the crash are told again as they were; nothing that was done, or failed, is done again."""
    world = Payments()
    waiting = asyncio.Event()

    async def until_the_hundredth(request):
        if request.arguments["amount"] == 100:
            waiting.set()
            await asyncio.Event().wait()
        return request.allow()

    run_id = await world.killed_in(PAYMENTS, until_the_hundredth, waiting)
    assert len(world.began) == 100
    run = await world.session("s", allow).resume(run_id)
    assert (run.status, run.output) == ("done", TOLD)
    assert world.began == list(range(200))
    again = await world.session("s", FixedApprover([])).resume(run_id)
    assert (again.status, again.output, again.variables) == ("done", TOLD, run.variables)
    assert world.began == list(range(200))


@requirement("NUWA-80", "TOOL-48")
@pytest.mark.parametrize(
    ("decision", "status", "output", "paid"),
    [
        ("done", "done", ["[true, null, succeeded]", "[true, {paid: 2}, succeeded]"], [1, 2]),
        ("again", "done", ["[true, {paid: 1}, succeeded]", "[true, {paid: 2}, succeeded]"], [1, 1, 2]),
        ("abandon", "failed", [], [1]),
    ],
)
async def test_a_tried_call_in_doubt_waits_for_a_person_and_is_not_told_as_a_failure(decision, status, output, paid):
    """A script that was told "it failed" would pay again. Nobody knows whether the money left, so it stops there."""
    world = Payments()
    world.stop_in_pay = asyncio.Event()
    text = """\
FOR n IN [1, 2] DO
  LET r = TRY CALL pay { amount: n }
  PRINT([r.success, r.value, r.kind])
END"""
    run_id = await world.killed_in(text, allow, world.stop_in_pay)
    world.stop_in_pay = None
    session = world.session("s", allow)
    for _ in range(2):
        waiting = await session.resume(run_id)
        assert (waiting.status, waiting.output, world.paid) == ("waiting", [], [1])
        assert waiting.in_doubt == f"{run_id}.0"
        assert type(waiting.error).__name__ == "ToolExecution"
    await session.resolve(f"{run_id}.0", decision)
    run = await session.resume(run_id)
    assert (run.status, run.output, world.paid) == (status, output, paid)


def nobody_answers():
    """What is set when a card waits, and the approver that leaves it waiting."""
    asked = asyncio.Event()

    async def never(request):
        asked.set()
        await asyncio.Event().wait()

    return asked, never


@requirement("NUWA-80", "TOOL-58")
async def test_stopping_everything_ends_a_script_that_tries():
    """A stop denies the card that waits. Told as a denial, the script would go on to the next payment."""
    world = Payments()
    asked, never = nobody_answers()
    session = world.session("s", never)
    task = asyncio.create_task(session.run_script(f'LET r = TRY CALL pay {{ amount: 0 }} PRINT("on")\n{PAYMENTS}'))
    await asked.wait()
    await session.stop()
    run = await task
    assert (run.status, type(run.error).__name__, run.output, world.began) == ("cancelled", "Cancelled", [], [])
    assert len(await world.store.read(kind="asked")) == 1


@requirement("NUWA-80")
async def test_who_stops_waiting_for_a_run_is_not_told_as_an_outcome():
    """The task of the run was cancelled: there is nobody left who could go on."""
    world = Payments()
    asked, never = nobody_answers()
    task = asyncio.create_task(world.session("s", never).run_script(PAYMENTS))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(await world.store.read(kind="asked")) == 1


@requirement("NUWA-80", "NUWA-62")
async def test_a_replay_that_diverges_stops_inside_a_try_too():
    """What the journal contradicts is no failure of a tool, and to go on would act on a wrong memory."""
    world = Payments()
    waiting, never = nobody_answers()
    text = 'LET p = TRY CALL price { token: "x" }\nLET r = TRY CALL pay { amount: p.value }\nPRINT(r.kind)'
    run_id = await world.killed_in(text, never, waiting)
    entries = world.store._entries
    for place, entry in enumerate(entries):
        if entry.kind == "finished" and json.loads(entry.data)["tool"] == "price":
            entries[place] = msgspec.structs.replace(entry, data=entry.data.replace(b'"value":7', b'"value":8'))
    world.store._digests[:] = chain(GENESIS, 1, entries)
    run = await world.session("s", allow).resume(run_id)
    assert (type(run.error).__name__, run.output, world.began) == ("ReplayDivergence", [], [])


@requirement("NUWA-80", "NUWA-60")
@pytest.mark.parametrize(
    ("limits", "fact"),
    [
        (ScriptLimits(calls=2), "more than 2 CALLs"),
        (ScriptLimits(value_size=3), "larger than 3"),
        (ScriptLimits(steps=20), "more than 20 steps"),
    ],
)
async def test_a_limit_is_not_caught(limits, fact):
    """A script that could catch its limits would have none."""
    world = Payments()
    text = 'FOR n IN [1, 2, 3] DO LET r = TRY CALL note { what: ["abcdef"] } END PRINT("on")'
    world.registry.register(
        "note", {"description": "Notes.", "parameters": [{"name": "what", "type": "array"}]}, lambda args, context: None
    )
    run = await world.session("s", allow).run_script(text, limits=limits)
    assert (run.status, type(run.error).__name__, run.output) == ("failed", "LimitExceeded", [])
    assert fact in str(run.error)


@requirement("NUWA-80")
async def test_an_unknown_tool_stops_a_script_that_tries():
    """There is nothing to try. A script that went on would hide a misspelt name from everybody."""
    run = await World().session("s", allow).run_script("LET r = TRY CALL pai { amount: 1 } PRINT(r)", check=False)
    assert (type(run.error).__name__, run.output) == ("ToolNotFound", [])


def registry_of_ends() -> lastword.ToolRegistry:
    """Tools that end in every way there is; each in the two styles that scripts see."""
    registry = lastword.ToolRegistry()
    none: list[Any] = []

    def fails(args, context):
        raise ToolError("no such account")

    def breaks(args, context):
        raise RuntimeError

    async def hangs(args, context):
        await asyncio.Event().wait()

    bodies = {"fine": lambda args, context: [1, 2], "fails": fails, "breaks": breaks, "hangs": hangs}
    for name, body in bodies.items():
        registry.register(name, {"description": name, "parameters": none}, body, require_approval=False)
    asks = {"description": "asks", "parameters": [{"name": "amount", "type": "number"}]}
    registry.register("asks", asks, lambda args, context: "paid", require_approval=True)
    return registry


@requirement("NUWA-80")
@pytest.mark.parametrize(
    ("call", "answer", "kind", "words"),
    [
        ("fine {}", None, "succeeded", ""),
        ("fails {}", None, "failed", "no such account"),
        ("breaks {}", None, "raised", "stopped with an error"),
        ("hangs {}", None, "timed_out", "did not finish"),
        ("asks { amount: 1 }", "deny", "denied", "too much"),
        ("asks { amount: 1 }", "close", "denied", "closed the question"),
        ("asks { amount: 1 }", "raise", "no_approver", "This is not a refusal"),
        ("asks { amount: 1 }", "wait", "expired", "nobody answered"),
        ('asks { amount: "one" }', "allow", "invalid_arguments", "amount"),
    ],
)
async def test_every_outcome_that_is_known_is_a_value_with_four_keys(call, answer, kind, words):
    """A script that is told the kind can say to a person what happened, and leave a denied call alone."""

    async def approver(request):
        if answer == "wait":
            await asyncio.Event().wait()
        if answer == "raise":
            raise LastWordError("gone")
        return request.deny("too much") if answer == "deny" else getattr(request, answer)()

    limits = Limits(approval_timeout_seconds=0.01 if answer == "wait" else None, call_timeout_seconds=0.2)
    session = lastword.Session(registry_of_ends(), approver=approver, limits=limits)
    text = f'LET r = TRY CALL {call}\nPRINT("on")\nPRINT(KEYS(r))\nLET value = r.value'
    run = await session.run_script(text, check=False)
    assert run.status == "done", run.error
    assert run.output == ["on", "[success, message, value, kind]"]
    result = run.variables["r"]
    assert (result["kind"], result["success"]) == (kind, kind == "succeeded")
    assert words in result["message"]
    assert run.variables["value"] == ([1, 2] if kind == "succeeded" else None)
    again = await session.resume(run.run_id)
    assert again.variables == run.variables


@requirement("NUWA-80")
async def test_a_call_that_a_person_cancelled_is_an_outcome_and_the_run_goes_on():
    """They stopped one call, and not the script; stopping everything is another key."""
    registry, began = lastword.ToolRegistry(), asyncio.Event()

    @registry.tool(require_approval=False)
    async def hangs(context=None) -> int:
        """Hangs."""
        session.cancel(context.call_id)
        began.set()
        await asyncio.Event().wait()
        return 1

    session = lastword.Session(registry)
    run = await session.run_script('LET r = TRY CALL hangs {} PRINT(r.kind) PRINT("on")')
    assert began.is_set()
    assert (run.status, run.output) == ("done", ["cancelled", "on"])


# After three denials in a row.


def denying(*answers):
    """Answers by name, one for each card."""
    return FixedApprover([methodcaller(name) for name in answers])


@requirement("NUWA-80")
async def test_after_three_denials_in_a_row_the_fourth_card_offers_to_deny_the_rest():
    """Two hundred cards that are all denied are two hundred too many. Until then there is no such offer."""
    world = Payments()
    approver = denying("deny", "deny", "deny", "deny_rest")
    run = await world.session("s", approver).run_script(PAYMENTS)
    assert [request.offers_rest for request in approver.requests] == [False] * OFFERED_AFTER + [True]
    assert (run.status, world.began) == ("done", [])
    assert run.output[0].startswith("200 failed: [0: denied, 1: denied,")
    ended = await world.store.read(kind="finished")
    assert "the person denied the rest of this script" in json.loads(ended[-1].data or b"")["message"]


@requirement("NUWA-80")
async def test_who_denies_the_rest_is_still_read_to():
    """What asks nobody goes on: it was never theirs to deny, and the script has to tell what became of it."""
    world = Payments()
    text = 'LET a = TRY CALL pay { amount: 1 } LET p = CALL price { token: "x" } PRINT([a.kind, p])'
    run = await world.session("s", denying("deny_rest")).run_script(text)
    assert run.output == ["[denied, 7]"]


@requirement("NUWA-80")
async def test_the_rest_stays_denied_after_the_process_died():
    """The no was given once. A run that is resumed must not ask for the rest as if it had never been given."""
    world = Payments()
    gate = asyncio.Event()

    @world.registry.tool(require_approval=False)
    async def wait() -> int:
        """Wait."""
        gate.set()
        await asyncio.Event().wait()
        return 1

    text = "FOR n IN [1, 2] DO LET r = TRY CALL pay { amount: n } END\nCALL wait {}\n" + PAYMENTS
    run_id = await world.killed_in(text, denying("deny_rest"), gate)
    world.registry.unregister("wait")
    world.registry.register("wait", {"description": "Wait.", "parameters": []}, lambda args, context: 1)
    nobody = FixedApprover([])
    run = await world.session("s", nobody).resume(run_id)
    assert (nobody.requests, world.began) == ([], [])
    assert run.output[0].startswith("200 failed"), run.error


@requirement("NUWA-80", "API-63")
@pytest.mark.parametrize("dies", [False, True], ids=["in one go", "after the process died"])
async def test_a_script_does_not_put_what_was_denied_to_the_person_a_second_time(dies):
    """A loop that tries until it gets a yes would wear the person out as well as a model does."""
    world = Payments()
    gate = asyncio.Event()

    @world.registry.tool(require_approval=False)
    async def wait() -> int:
        """Wait."""
        gate.set()
        if dies and not world.paid:
            world.paid.append(0)
            await asyncio.Event().wait()
        return 1

    text = "LET kinds = [] FOR n IN [5, 5, 6] DO SET kinds = APPEND(kinds, (TRY CALL pay { amount: n }).kind) "
    text += "LET w = CALL wait {} END PRINT(kinds)"
    approver = denying("deny", "allow")
    if dies:
        run_id = await world.killed_in(text, denying("deny"), gate)
        approver = denying("allow")
        run = await world.session("s", approver).resume(run_id)
    else:
        run = await world.session("s", approver).run_script(text)
    assert run.output == ["[denied, denied, succeeded]"], run.error
    assert [request.arguments["amount"] for request in approver.requests] == ([6] if dies else [5, 6])
    assert world.began == [6]


@requirement("NUWA-80")
async def test_a_yes_between_denials_begins_the_count_anew_and_what_asks_nobody_does_not():
    """Three in a row are a habit; three of ten are choices."""
    world = Payments()
    text = 'FOR n IN RANGE(7) DO LET r = TRY CALL pay { amount: n } CALL price { token: "x" } END'
    approver = denying("deny", "deny", "allow", "deny", "deny", "deny", "deny")
    await world.session("s", approver).run_script(text)
    assert [request.denials for request in approver.requests] == [0, 1, 2, 0, 1, 2, 3]
    assert [request.offers_rest for request in approver.requests] == [False] * 6 + [True]


@requirement("NUWA-80")
async def test_the_offer_is_part_of_what_was_shown_and_asked_again_as_it_was():
    """Whoever resumes a run finds the very card that waited, with its offer, and the answer to it counts."""
    world = Payments()
    fourth = asyncio.Event()

    async def three(request):
        if request.denials < 3:
            return request.deny()
        fourth.set()
        return await asyncio.Event().wait()

    run_id = await world.killed_in(PAYMENTS, three, fourth)
    journal = lastword.Journal(world.store)
    (facts,) = await journal.waiting()
    shown = lastword.ApprovalRequest.from_facts(facts)
    assert shown.offers_rest
    assert msgspec.structs.replace(shown, denials=0).digest != shown.digest
    assert await journal.answer(facts, shown.deny_rest(), "phone")
    nobody = FixedApprover([])
    run = await world.session("s", nobody).resume(run_id)
    assert (run.status, world.began, nobody.requests) == ("done", [], [])


@requirement("NUWA-80")
def test_only_a_no_can_be_one_to_the_rest():
    """A yes to calls that nobody has seen is what this product is against."""
    for action in ((True, False), (False, False)):
        with pytest.raises(LastWordError, match="only a no"):
            UserAction(*action, rest=True)
