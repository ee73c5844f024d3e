"""To whom a session belongs: written once, with its first record, and looked at by whoever opens or shows it."""

from __future__ import annotations

from lastword.errors import SessionError
from lastword.journal.journal import Journal
from lastword.journal.records import data_of

BELONGS = "belongs"


async def whose(journal: Journal, session_id: str) -> str:
    """The principal of a session; empty when it is nobody's in particular. Tampered when that was changed."""
    records = await journal.standing(BELONGS, session_id)
    return str(data_of(records[0]).get("principal", "")) if records else ""


async def is_visible(journal: Journal, session_id: str) -> bool:
    """Whether the one who sits here may look at this session."""
    return journal.people.sees(await whose(journal, session_id))


async def open_as(journal: Journal, session_id: str, principal: str, *, is_known: bool) -> str:
    """Say whose a new session is, or find whose an old one is. Refused when that is somebody else."""
    if not is_known and principal:
        facts = {"principal": principal}
        if await journal.claim(session_id, BELONGS, session_id, facts, once=f"{BELONGS}:{session_id}"):
            return principal
    elif not is_known:
        return ""
    found = await whose(journal, session_id)
    if not journal.people.may_answer(principal, found):
        raise SessionError(
            "this session is another person's", place=session_id, hint="begin one of your own, without naming an id"
        )
    return found
