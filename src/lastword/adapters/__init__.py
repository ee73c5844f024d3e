"""A session's tools as the tools of other frameworks: `pydantic_ai`, `openai_agents`, `langchain`. Each is an extra.

Here is what they share: the way from a framework's tool call to the one door. How a framework wants a tool described
and its result given back is in the module that bears its name.
"""

from __future__ import annotations

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.call.events import Event, Reported
from lastword.consent import Outcome
from lastword.errors import Detached, NotJSON, SessionError

if TYPE_CHECKING:
    from lastword.session import Session
    from lastword.tools import Manifest

log = logging.getLogger("lastword")

Hearer = Callable[[Reported], Awaitable[None]]
"""Whoever wants to hear how a running tool goes."""

# What a model is shown of one result: more costs more than it tells, and some providers refuse a request for it.
MAX_SHOWN_BYTES = 4 * 2**20

# What a provider calls a call is written on cards and typed in commands. Anything stranger goes by its digest.
# A colon is strange, too: it stands between the session and the rest, and one session must not name another's call.
_PLAIN = re.compile(r"[\w.-]{1,80}", re.ASCII)


def manifests(session: Session) -> list[Manifest]:
    """The tools that this session can carry out right now."""
    return [tool.manifest for tool in session.registry.all(with_editor=session.editor is not None)]


def call_id(session: Session, given: str | None) -> str:
    """The id of a call by the framework's own: the same in every process that goes on with the same session.

    Some models count their calls from one in every conversation, so the session is part of it.
    """
    if not given:
        return values.new_id()
    plain = _PLAIN.fullmatch(given)
    return f"{session.id}:{given if plain else sha256(given.encode(errors='surrogatepass')).hexdigest()[:32]}"


async def carry(
    session: Session, tool: str, arguments: Any, *, given_id: str | None, origin: str, hearer: Hearer | None = None
) -> Outcome:
    """Ask the session for one call, and tell what became of it.

    A call that was carried out under the same id is told, and not carried out again.
    """
    named = call_id(session, given_id)
    async with _heard(session, named, hearer):
        try:
            return await session.call(tool, arguments, origin=origin, call_id=named)
        except SessionError as refusal:
            if isinstance(refusal, Detached) or refusal.place != named:
                raise  # The host's business: a session that is closed, a question that the host itself left waiting.
            # The model's: the id belongs to another call, or the call is being carried out elsewhere.
            words = f"{tool} was not run for this request: {refusal.fact}. Do not ask for it again with the same id."
            return Outcome(kind="failed", message=words, call_id=named, tool=tool)


def facts(outcome: Outcome) -> dict[str, Any]:
    """What the program may want to know beside the words: plain data, since frameworks write it down."""
    return {name: getattr(outcome, name) for name in ("kind", "call_id", "approval", "value")}


def arguments_in(written: str) -> Any:
    """Arguments as a model wrote them. What is no JSON goes to the door as it is, which says what is wrong."""
    try:
        return values.decode(written.encode()) if written.strip() else {}
    except (NotJSON, ValueError):
        return written


class ShownImage(msgspec.Struct, frozen=True):
    """An image that a tool returned, as a model can be given it."""

    media_type: str
    data: bytes

    @property
    def base64(self) -> str:
        return b64encode(self.data).decode()

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.base64}"


async def pictures(session: Session, outcome: Outcome) -> list[ShownImage]:
    """The images of a result, as many as fit. Those that do not are named in its words, as everything else is."""
    found: list[ShownImage] = []
    room = MAX_SHOWN_BYTES
    for kept in outcome.content:
        if kept.kind == "image" and kept.size <= room:
            try:
                data = await session.content(outcome.call_id, kept.digest)
            except SessionError:
                continue  # It was pruned since. The words of the result are still there.
            found.append(ShownImage(kept.media_type, data))
            room -= kept.size
    return found


@asynccontextmanager
async def _heard(session: Session, call_id: str, hearer: Hearer | None) -> AsyncIterator[None]:
    """Tell `hearer` every report of one call, in order, before the call's end is told."""
    if hearer is None:
        yield
        return
    reports: asyncio.Queue[Reported | None] = asyncio.Queue()

    def hear(event: Event) -> None:
        if isinstance(event, Reported) and event.call_id == call_id:
            reports.put_nowait(event)

    async def pass_on() -> None:
        while (report := await reports.get()) is not None:
            try:
                await hearer(report)
            except Exception:
                # Whoever listened is gone. What the tool did is told all the same: a lost result is asked for again.
                log.warning("call %s: its progress could not be told", call_id, exc_info=True)
                return

    stop, passing = session.listen(hear), asyncio.create_task(pass_on())
    try:
        yield
    except BaseException:
        passing.cancel()
        raise
    finally:
        stop()
    reports.put_nowait(None)
    await passing
