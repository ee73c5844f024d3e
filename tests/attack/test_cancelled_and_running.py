"""Nobody is told that a call was stopped while its code still runs: a thread could pay after that."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from lastword import Limits, Session, ToolRegistry
from lastword.journal import timeline
from lastword.testing import FixedApprover
from requirements import requirement
from sending import until

SCHEMA = {"description": "Pays.", "parameters": [], "returns": "any"}
SOON = Limits(cancel_grace_seconds=0.01)


class Payment:
    """A tool that pays when it is let go, whatever it was told meanwhile."""

    def __init__(self) -> None:
        self.running, self.release = threading.Event(), threading.Event()
        self.paid: list[str] = []

    def in_thread(self, args: Any, context: Any) -> str:
        self.running.set()
        assert self.release.wait(5)
        self.paid.append("paid")
        return "paid"

    async def on_loop(self, args: Any, context: Any) -> str:
        self.running.set()
        for _ in range(5000):
            if self.release.is_set():
                break
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.001)
        self.paid.append("paid")
        return "paid"


@pytest.fixture
def payment() -> Payment:
    return Payment()


def asking(registry: ToolRegistry, payment: Payment, how: str, limits: Limits = SOON, **schema: Any) -> Session:
    function: Callable[..., Any] = payment.in_thread if how == "thread" else payment.on_loop
    registry.register("pay", SCHEMA | schema, function, require_approval=True)
    return Session(registry, approver=FixedApprover(), limits=limits)


async def kinds(session: Session) -> list[str]:
    return [record.kind for record in await session.journal.history(session.id)]


@requirement("TOOL-57")
@pytest.mark.parametrize("how", ["thread", "loop"])
async def test_a_call_whose_code_runs_on_is_not_told_as_cancelled(
    registry: ToolRegistry, payment: Payment, how: str, monkeypatch: pytest.MonkeyPatch
):
    """It may still pay, so nobody knows; and when it stops at last, that is written down."""
    monkeypatch.setattr("lastword.call.execution.UNWIND_SECONDS", 0.01)
    session = asking(registry, payment, how)
    call = asyncio.create_task(session.call("pay"))
    await until(payment.running.is_set)
    [call_id] = session._setting.running
    session.cancel(call_id)
    outcome = await asyncio.wait_for(call, 30)
    assert outcome.kind == "outcome_unknown"
    assert "its code still runs and may still act" in outcome.message
    assert "Do not repeat it" in outcome.message
    assert payment.paid == []
    assert await session.in_doubt() == []
    payment.release.set()
    await until(lambda: payment.paid)
    for _ in range(1000):
        if (await kinds(session))[-1] == "ended_late":
            break
        await asyncio.sleep(0.001)
    assert (await kinds(session))[-2:] == ["finished", "ended_late"]
    told = timeline(await session.journal.history(session.id))
    assert told[-1].endswith("its code, which had run on, returned at last")


@requirement("TOOL-57", "TOOL-53")
@pytest.mark.parametrize("how", ["thread", "loop"])
async def test_a_call_that_runs_past_its_time_is_not_told_as_stopped(
    registry: ToolRegistry, payment: Payment, how: str, monkeypatch: pytest.MonkeyPatch
):
    """The same for a time limit."""
    monkeypatch.setattr("lastword.call.execution.UNWIND_SECONDS", 0.01)
    session = asking(registry, payment, how, timeoutSeconds=0.01)
    outcome = await asyncio.wait_for(session.call("pay"), 30)
    assert outcome.kind == "outcome_unknown"
    assert "did not finish within 0.01 seconds, but its code still runs" in outcome.message
    payment.release.set()
    await until(lambda: payment.paid)


@requirement("TOOL-57", "TOOL-52")
async def test_a_thread_that_stops_in_time_was_cancelled(registry: ToolRegistry):
    """One that looks at is_cancelled ends before anybody is told, and its end is certain."""
    running, over = threading.Event(), threading.Event()

    def pay(args: Any, context: Any) -> None:
        context.on_cancel = lambda: "two of five"
        running.set()
        while not context.is_cancelled:
            time.sleep(0.001)
        time.sleep(0.02)
        over.set()

    registry.register("pay", SCHEMA, pay, require_approval=True)
    session = Session(registry, approver=FixedApprover(), limits=Limits(cancel_grace_seconds=30))
    call = asyncio.create_task(session.call("pay"))
    await until(running.is_set)
    [call_id] = session._setting.running
    session.cancel(call_id)
    outcome = await asyncio.wait_for(call, 30)
    assert over.is_set()
    assert outcome.kind == "cancelled"
    assert outcome.message.endswith("two of five")
    assert "ended_late" not in await kinds(session)


@requirement("TOOL-57")
async def test_a_host_that_leaves_a_running_payment_leaves_an_unknown_end(registry: ToolRegistry, payment: Payment):
    """Whoever looks later must not read that it was cancelled."""
    session = asking(registry, payment, "thread")
    call = asyncio.create_task(session.call("pay"))
    await until(payment.running.is_set)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    records = await session.journal.history(session.id, kind="finished")
    assert b'"kind":"outcome_unknown"' in (records[0].data or b"")
    payment.release.set()
    await until(lambda: payment.paid)


@requirement("TOOL-57", "NUWA-30")
async def test_a_script_stops_at_a_call_whose_code_runs_on(
    registry: ToolRegistry, payment: Payment, monkeypatch: pytest.MonkeyPatch
):
    """It is over as a failure: there is nothing that a person could still decide about the call."""
    session = asking(registry, payment, "thread", timeoutSeconds=0.01)
    run = await asyncio.wait_for(session.run_script("CALL pay {}\nCALL pay {}", run_id="r"), 30)
    assert (run.status, run.in_doubt) == ("failed", None)
    assert "its code still runs" in str(run.error)
    again = await session.resume("r")
    assert again.status == "failed"
    payment.release.set()
    await until(lambda: payment.paid)
    assert payment.paid == ["paid"]
