"""Names that pretend: a person called like a preset, a preset's yes that should pass for a person's, and others.

Who answered is a value. Nothing that anybody calls themselves, and nothing that a record says in words, makes a yes
count that no person gave, or lets one go by unseen that a person did give.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from lastword import Answerer, ApprovalRequest, Limits, Preset, Session, ToolRegistry, UserAction, wait_for_answer
from lastword.call.events import Answered, Event
from lastword.consent import ALLOWED, DENIED
from lastword.journal import Journal, OnceKey, data_of, timeline
from lastword.store import Entry
from lastword.testing import FixedApprover, memory_journal
from lastword.tools import Tool
from lastword.values import canonical
from lastword.web import CallItemBuilder
from requirements import requirement
from sending import CALL, until

HEARING = Limits(watch_after_seconds=0)
BOLD = Preset(True, "bold")


SCRIPT = 'CALL send { to: "Ann", amount: 5 }'


async def leave(registry: ToolRegistry, approver: Any = wait_for_answer) -> Journal:
    """A memory in which the card of a run waits, and the program that asked is gone."""
    journal = memory_journal()
    session = Session(registry, id="s", approver=approver, journal=journal)
    run = asyncio.create_task(session.run_script(SCRIPT, run_id="r"))
    await until(lambda: session.pending() and (approver is wait_for_answer or session.pending()[0].problem))
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    return journal


@pytest.fixture
async def left(registry: ToolRegistry, send: Tool) -> Journal:
    return await leave(registry)


async def answer_as(journal: Journal, written: Any) -> None:
    """Write a yes into the memory whose author is written down like this."""
    [facts] = await journal.waiting()
    data = {
        "primary_confirmed": True,
        "secondary_confirmed": False,
        "reason": None,
        "arguments": None,
        "request": facts["digest"],
        "approver": written,
        "answered_at": journal.clock(),
    }
    assert await journal.claim("s", "answered", "r.0", data, once=OnceKey.answer(facts["nonce"]))


def session_after(registry: ToolRegistry, journal: Journal, approver: Any, preset: Preset | None = None) -> Session:
    return Session(registry, id="s", approver=approver, journal=journal, preset=preset)


@requirement("TOOL-59")
@pytest.mark.parametrize("name", ["preset bold", "preset ", "the preset bold", "preset"])
async def test_a_person_called_like_a_preset_is_a_person(left: Journal, registry: ToolRegistry, send, effects, name):
    """Their yes counts after a restart as anybody's does, and nobody has to be asked again."""
    [facts] = await left.waiting()
    assert await left.answer(facts, ALLOWED, name)
    nobody = FixedApprover([])
    run = await session_after(registry, left, nobody).resume("r")
    assert (run.status, effects, nobody.requests) == ("done", [CALL], [])
    [started] = await left.store.read(kind="started")
    assert data_of(started)["approval"] == "person"


@requirement("TOOL-59")
async def test_a_person_called_like_a_preset_is_not_told_as_one(registry: ToolRegistry, send):
    """In the events, in the journal and on the page: somebody said yes."""

    class Named(FixedApprover):
        name = "preset bold"

    heard: list[Event] = []
    session = Session(registry, approver=Named())
    session.listen(heard.append)
    outcome = await session.call("send", CALL)
    [answered] = [event for event in heard if isinstance(event, Answered)]
    assert (outcome.approval, answered.by) == ("person", Answerer("person", "preset bold", "program"))
    story = CallItemBuilder.begin("c")
    story.answered(answered.action, answered.by, 1.0)
    assert story.item.reply is not None
    assert story.item.reply.how == "allowed"
    past = CallItemBuilder.begin("c")
    for record in await session.journal.history(session.id, kind="answered"):
        past.add(record)
    assert past.item.reply is not None
    assert past.item.reply.how == "allowed"


@requirement("TOOL-59", "TOOL-41")
@pytest.mark.parametrize(
    "written",
    [
        "preset bold",
        {"kind": "preset", "name": "bold", "where": None},
        {"kind": "preset", "name": "ada", "where": "page"},
        {"kind": "waiver"},
        {"kind": "line", "name": "1"},
        {"kind": "rule", "name": "money"},
        {"kind": "grant", "name": "g"},
        {"kind": "client", "name": "an editor"},
        {"kind": "oracle", "name": "ada", "where": "page"},
        {"name": "ada"},
        None,
    ],
    ids=str,
)
@pytest.mark.parametrize("waits", [False, True], ids=["before the restart", "while the card waits"])
async def test_a_yes_that_no_person_gave_is_asked_for(
    left: Journal, registry: ToolRegistry, effects, written: Any, waits: bool
):
    """It stands in the journal, with the right nonce and digest. A person has to decide, and is told why."""
    asked = FixedApprover(DENIED)
    if not waits:
        await answer_as(left, written)
        session = session_after(registry, left, asked)
        run = await session.resume("r")
    else:
        turns: Iterator[Any] = iter([wait_for_answer, asked])

        async def in_turn(request):
            return await next(turns)(request)

        session = Session(registry, id="s", approver=in_turn, journal=left, limits=HEARING)
        going = asyncio.create_task(session.resume("r"))
        await until(session.pending)
        await answer_as(left, written)
        run = await going
    assert (run.status, effects) == ("done", [])
    [request] = asked.requests
    assert request.problem is not None
    assert request.problem.endswith("had said yes, and a person has to be asked now")


@requirement("TOOL-59", "TOOL-41")
@pytest.mark.parametrize("written", ["preset bold", {"kind": "preset", "name": "bold"}], ids=["as once", "as now"])
async def test_a_presets_yes_counts_while_both_keys_are_there(registry: ToolRegistry, assistant, effects, written: Any):
    """Nothing is asked twice that the user let go by."""
    assistant(autoApprove=True)
    journal = await leave(registry)
    await answer_as(journal, written)
    nobody = FixedApprover([])
    ended = await session_after(registry, journal, nobody, BOLD).resume("r")
    assert (ended.status, effects, nobody.requests) == ("done", [CALL], [])
    [started] = await journal.store.read(kind="started")
    assert data_of(started)["approval"] == "auto"
    assert len(await journal.store.read(kind="asked")) == 1


@requirement("TOOL-59")
async def test_a_no_counts_from_anybody(left: Journal, registry: ToolRegistry, effects):
    """Also from what this version does not know: nothing happens by it."""
    [facts] = await left.waiting()
    assert await left.answer(facts, DENIED, Answerer("unknown"))
    nobody = FixedApprover([])
    run = await session_after(registry, left, nobody).resume("r")
    assert (run.status, effects, nobody.requests) == ("done", [], [])


@requirement("TOOL-59")
async def test_a_card_that_is_put_anew_after_a_restart_says_why(left: Journal, registry: ToolRegistry, effects, send):
    """The tool is another one by now. Whoever saw the first card must not wonder."""
    registry.unregister("send")
    changed = type(send)(send.manifest, send.style, send.execute, code=b"other")
    registry.add(changed)
    asked = FixedApprover(DENIED)
    await session_after(registry, left, asked).resume("r")
    assert [r.problem for r in asked.requests] == ["it was asked before, and what would happen has changed since"]
    assert effects == []


@requirement("TOOL-59", "TOOL-45")
async def test_a_card_that_was_asked_again_still_says_why_after_a_restart(registry: ToolRegistry, effects, send):
    """And a yes that names no card does not answer it: it may have been meant for the one before."""
    turns: Iterator[Any] = iter([FixedApprover(UserAction(True, False, answers="0" * 64)), wait_for_answer])

    async def in_turn(request):
        return await next(turns)(request)

    journal = await leave(registry, in_turn)
    later = Session(registry, id="s", approver=wait_for_answer, journal=journal)
    going = asyncio.create_task(later.resume("r"))
    await until(later.pending)
    [request] = later.pending()
    assert request.problem == "the answer was given to another request"
    assert later.answer("r.0", ALLOWED, "a late click") == []
    assert later.answer("r.0", request.deny(), "ada") == ["r.0"]
    await going
    assert effects == []


@requirement("TOOL-59")
async def test_the_timeline_tells_records_of_every_age():
    """A list must not fail at an old record, nor at one of a later version."""
    journal = memory_journal()
    base: dict[str, Any] = {"primary_confirmed": True, "secondary_confirmed": False, "reason": None, "arguments": None}
    base |= {"request": "x", "answered_at": 1.0}
    for approver in ("preset bold", "ada", {"kind": "person", "name": "ada", "where": "page"}, {"kind": "oracle"}):
        journal.store.append(Entry("s", "answered", "c", 1, canonical(base | {"approver": approver})))
    told = [line.rpartition("  ")[2] for line in timeline(await journal.history("s"), of="c")]
    assert told == [
        "allowed by the preset bold",
        "allowed by ada",
        "allowed by ada on the page",
        "allowed by something that this version does not know",
    ]


@requirement("TOOL-45")
async def test_a_card_that_waits_says_why_it_is_put_now(registry: ToolRegistry, assistant, effects):
    """The preset was changed while it waited: the old reason is untrue, and the card with it is asked no more."""
    assistant()
    journal = await leave(registry)
    [before] = await journal.waiting()
    approver = FixedApprover(ApprovalRequest.deny)
    await session_after(registry, journal, approver, BOLD).resume("r")
    [request] = approver.requests
    assert (before["missing"], request.missing) == (["preset", "tool"], ("tool",))
    assert request.digest != before["digest"]
    assert effects == []
