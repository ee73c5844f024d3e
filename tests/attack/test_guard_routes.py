"""All routes to an effect, from every phase that may only look; and the list of those that stay open, kept true."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from open_routes import POSSIBLE
from refused_routes import REFUSED
from stage import Stage

from lastword import ApprovalRequest, Outcome, Session, ToolRegistry, UserAction, wait_for_answer
from lastword.consent import ALLOWED, DENIED
from requirements import requirement
from sending import CALL, until

PHASES = ["sync", "async", "preview", "denied"]
PAGE = Path(__file__).parent.parent.parent / "docs" / "threat-model.md"


class Play:
    """A stage, a tool that does on it whatever a route says, and what became of it."""

    stage: Stage

    def __init__(self, register: Callable[..., Any], ran: list[Any]) -> None:
        self.shown: list[ApprovalRequest] = []
        self.answer: UserAction = ALLOWED
        self.ran = ran
        self._register = register

    async def approve(self, request: ApprovalRequest) -> UserAction:
        if request.tool == "other":
            return await wait_for_answer(request)
        self.shown.append(request)
        return self.answer

    async def act(self, act: Callable[[], Any], phase: str) -> Outcome:
        """Let the tool act in this phase. In two of them it swallows what is raised, which must not help."""

        def attempt() -> None:
            try:
                act()
            except Exception:
                if phase in ("sync", "denied"):
                    raise

        def drawn(params: Any) -> Any:
            attempt()
            return {"message": "Send it?"}

        async def drawn_async(params: Any) -> Any:
            await asyncio.sleep(0)
            return drawn(params)

        async def previewed(params: Any) -> Any:
            return {"message": "Send it?", "preview_button": {"label": "Show", "action": attempt}}

        async def forgetful(user_action: Any) -> Any:
            attempt()
            return {"success": False, "message": "Then not."}

        if phase == "denied":
            self.answer = DENIED
            self._register(None, forgetful)
        else:
            self._register({"sync": drawn, "async": drawn_async, "preview": previewed}[phase])
        return await self.stage.session.call("send", CALL)


@pytest.fixture
async def play(registry: ToolRegistry, assistant, effects, tmp_path: Path) -> AsyncIterator[Play]:
    """A session in which the card of another call waits, and a tool that nobody has to ask for."""
    assistant(None, lambda user_action: effects.append("other"), id="other")
    schema = {"description": "d", "parameters": []}
    registry.register("free", schema, lambda arguments, context: effects.append("free"))

    there = Play(assistant, effects)
    async with Session(registry, approver=there.approve) as session:
        waiting = asyncio.create_task(session.call("other", CALL))
        await until(session.pending)
        await asyncio.get_running_loop().run_in_executor(None, int)  # The loop's own pool has a thread.
        there.stage = Stage(tmp_path, session, session.pending()[0].call_id)
        yield there
        session.cancel(there.stage.waiting_call)
        await waiting
        await session.close()


# Each route in two phases, one in which the tool swallows the error and one in which it does not; the next route in the
# other two. The long tests try all four.
WAYS = [
    pytest.param(route, phase, marks=() if (number + turn) % 2 else pytest.mark.long)
    for number, route in enumerate(REFUSED)
    for turn, phase in enumerate(PHASES)
]


@requirement("TOOL-42", "TOOL-43", "TOOL-56")
@pytest.mark.parametrize(("route", "phase"), WAYS)
async def test_every_route_to_an_effect_is_refused(play: Play, caplog, route: str, phase: str):
    """Nothing happened, the call did not run, and the words say what was tried. Swallowing the error did not help."""
    caplog.set_level(logging.CRITICAL, "lastword")
    prepare, words = REFUSED[route]
    with prepare(play.stage) as act:
        before = play.stage.seen()
        outcome = await play.act(act, phase)
        assert play.stage.seen() == before | {"tools": [*before["tools"], "send"]}
    assert f"it tried to {words}" in outcome.message
    assert play.ran == []
    if phase == "denied":
        assert outcome.kind == "denied"
        assert outcome.overstepped is not None
    else:
        assert outcome.kind == "refused"
        assert play.shown == []


@requirement("TOOL-42", "TOOL-43", "TOOL-56")
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("sentence", POSSIBLE)
async def test_what_the_page_says_is_possible_is_possible(play: Play, sentence: str, phase: str):
    """A page that warns of what cannot happen is as untrue as one that does not warn. The route looks for itself."""
    with POSSIBLE[sentence](play.stage) as act:
        outcome = await play.act(act, phase)
        assert outcome.kind == ("denied" if phase == "denied" else "succeeded")
        assert outcome.overstepped is None
    assert len(play.shown) == 1


@requirement("TOOL-42", "TOOL-56")
def test_the_page_lists_what_stays_possible_word_for_word():
    """Who reads it must be able to rely on it."""
    section = PAGE.read_text().split("## What a request function can still do\n")[1].split("\n## ")[0]
    listed = [re.sub(r"\s+", " ", point).strip() for point in re.split(r"^\* ", section, flags=re.MULTILINE)[1:]]
    assert listed == list(POSSIBLE)
