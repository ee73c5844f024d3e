"""The memory of calls: in order, once, chained, from any thread."""

import asyncio
import sys
import threading

import msgspec
import pytest

from lastword import Limits, Session, ToolRegistry, wait_for_answer
from lastword.consent import ALLOWED, DENIED
from lastword.errors import Tampered
from lastword.journal.call_life import data_of
from lastword.journal.journal import Journal
from lastword.store import MemoryStore
from lastword.store.chain import verify
from lastword.testing import FixedApprover, memory_journal
from requirements import requirement
from sending import CALL, until

SCHEMA = {"description": "Works.", "parameters": [], "returns": "any"}


@requirement("TOOL-22")
async def test_tools_in_threads_keep_the_chain_whole(registry: ToolRegistry):
    """Two sessions, one journal, many threads that change state at once."""
    barrier = threading.Barrier(8, timeout=10)

    def work(args, context):
        barrier.wait()
        for n in range(200):
            context.set_state(f"k{n % 5}", n)

    registry.register("work", SCHEMA, work)
    journal = memory_journal()
    sessions = [Session(registry, journal=journal) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        await asyncio.gather(*(session.call("work") for session in sessions for _ in range(4)))
    finally:
        sys.setswitchinterval(interval)
    records = await journal.store.read()
    assert len(records) == 8 * 202
    assert verify(records) == await journal.store.head()


@requirement("TOOL-45")
@pytest.mark.parametrize("field", ["kind", "subject", "stream", "data", "at", "once"])
async def test_a_record_that_was_changed_is_found(registry: ToolRegistry, send, field):
    """What was asked and answered cannot be rewritten afterwards without being seen."""
    journal = memory_journal()
    await Session(registry, approver=FixedApprover(DENIED), journal=journal).call("send", CALL)
    records = list(await journal.store.read())
    place = next(n for n, record in enumerate(records) if record.kind == "answered")
    forged = {"data": b'{"primary_confirmed":true}', "at": 0}.get(field, "forged")
    records[place] = msgspec.structs.replace(records[place], **{field: forged})
    with pytest.raises(Tampered, match=f"record {place + 1} "):
        verify(records)


@requirement("TOOL-45", "TOOL-47")
async def test_waiting_questions_are_those_that_nobody_answered(registry: ToolRegistry, send):
    """Of all sessions, oldest first; answered, expired and taken back ones are gone."""
    journal = memory_journal()
    patient = Session(registry, approver=wait_for_answer, journal=journal)
    hurried = Session(registry, approver=wait_for_answer, journal=journal, limits=Limits(approval_timeout_seconds=0.01))
    await hurried.call("send", CALL)
    await Session(registry, journal=journal).call("send", CALL)
    await Session(registry, journal=journal, approver=FixedApprover()).call("send", CALL)
    calls = [asyncio.create_task(patient.call("send", {"to": name})) for name in ("Ann", "Bob")]
    await until(lambda: len(patient.pending()) == 2)
    assert [facts["arguments"]["to"] for facts in await journal.waiting()] == ["Ann", "Bob"]
    patient.answer([request.call_id for request in patient.pending()], DENIED)
    await asyncio.gather(*calls)
    assert await journal.waiting() == []


@requirement("TOOL-45")
async def test_an_approval_is_burned_in_the_same_step_that_starts_its_call(registry: ToolRegistry, send):
    """There is no instant at which it is spent and the call not marked as started."""
    groups = []

    class Watching(MemoryStore):
        async def commit(self, *entries):
            groups.append([entry.kind for entry in entries])
            return await super().commit(*entries)

    await Session(registry, approver=FixedApprover(), journal=Journal(Watching())).call("send", CALL)
    assert groups == [["asked"], ["answered", "burned", "started"], ["finished"]]


async def test_an_answer_says_who_gave_it_and_to_what(registry: ToolRegistry, send):
    """The proof of consent: the request's digest, the approver, the time, the seal that was burned."""
    journal = memory_journal(lambda: 1000.0)
    approver = FixedApprover(ALLOWED)
    session = Session(registry, approver=approver, journal=journal)
    await session.call("send", CALL)
    records = {record.kind: data_of(record) for record in await journal.history(session.id)}
    assert records["answered"]["request"] == approver.requests[0].digest == records["asked"]["digest"]
    assert records["answered"]["approver"] == {"kind": "person", "name": "fixed approver", "where": "program"}
    assert records["answered"]["answered_at"] == 1000.0
    assert len(records["burned"]["seal"]) == 64
