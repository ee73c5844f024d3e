"""Arguments keep the order in which they were written, wherever they are shown; sameness does not ask for it."""

import json
from typing import Any

import msgspec

import lastword
from lastword.consent import ApprovalRequest, UserAction
from lastword.journal import Journal
from lastword.store import Entry, MemoryStore
from lastword.testing import FixedApprover
from requirements import requirement

SCRIPT = 'LET got = CALL pay { to: "Ann", amount: 5, note: { z: 1, a: [2] } }\nPRINT(got)'


def paying(asks: bool) -> tuple[lastword.ToolRegistry, list[Any]]:
    paid: list[Any] = []

    def pay(arguments: dict[str, Any], context: Any) -> str:
        paid.append(arguments)
        return "paid"

    registry = lastword.ToolRegistry()
    parameters = [{"name": n, "type": t, "description": n} for n, t in (("amount", "number"), ("to", "string"))]
    parameters.append({"name": "note", "type": "object", "description": "more"})
    schema = {"description": "Pays.", "parameters": parameters, "returns": "string"}
    registry.register("pay", schema, pay, require_approval=asks, inline=True)
    return registry, paid


@requirement("NUWA-87")
async def test_a_card_and_a_tool_see_the_order_of_the_text():
    """`to` before `amount`, as it was written, and not as an alphabet has it; inside of objects too."""
    registry, paid = paying(asks=True)
    seen: list[ApprovalRequest] = []

    async def look(request: ApprovalRequest) -> UserAction:
        seen.append(request)
        return request.allow()

    async with lastword.Session(registry, approver=look) as session:
        assert (await session.run_script(SCRIPT)).output == ["paid"]
    [request] = seen
    assert request.argument_bytes == b'{"to":"Ann","amount":5,"note":{"z":1,"a":[2]}}'
    assert list(request.arguments) == list(request.facts()["arguments"]) == list(paid[0]) == ["to", "amount", "note"]
    assert list(paid[0]["note"]) == ["z", "a"]


@requirement("NUWA-87")
async def test_what_was_left_out_stands_behind_what_was_written():
    """A default is nobody's first word."""
    registry = lastword.ToolRegistry()

    @registry.tool(require_approval=False)
    def pay(first: int = 1, second: int = 2, third: int = 3) -> list[str]:
        """Pay."""
        return []

    assert registry.lookup("pay").validate({"third": 3}) == b'{"third":3,"first":1,"second":2}'


@requirement("NUWA-87")
async def test_an_edit_that_only_moves_arguments_changes_nothing():
    """The person is not made the author of a call that is the same."""
    registry, paid = paying(asks=True)

    async def move(request: ApprovalRequest) -> UserAction:
        return UserAction(True, False, arguments=dict(reversed(request.arguments.items())), answers=request.digest)

    async with lastword.Session(registry, approver=move) as session:
        outcome = await session.call("pay", {"to": "Ann", "amount": 5, "note": {}})
    assert outcome.success
    assert outcome.arguments is None
    assert list(paid[0]) == ["to", "amount", "note"]


@requirement("NUWA-87", "NUWA-62")
async def test_a_run_that_was_written_with_sorted_arguments_still_replays():
    """Stores written before the order was kept hold the same values in another order: nothing is done again."""
    for asks in (False, True):
        registry, paid = paying(asks)
        journal = Journal()
        async with lastword.Session(registry, "s", approver=FixedApprover(), journal=journal) as session:
            assert (await session.run_script(SCRIPT, run_id="r")).status == "done"
        assert len(paid) == 1
        old = MemoryStore()
        for record in await journal.store.read():
            if record.kind == "run_finished":
                continue
            assert record.data is not None
            data = msgspec.json.encode(json.loads(record.data), order="sorted")
            assert await old.commit(Entry(record.stream, record.kind, record.subject, record.at, data, record.once))
        async with lastword.Session(registry, "s", journal=Journal(old)) as session:
            run = await session.resume("r")
        assert (run.status, run.output) == ("done", ["paid"]), run.error
        assert len(paid) == 1
