"""A journal by its address, and whose the sessions in it are."""

from __future__ import annotations

import os

from lastword import store
from lastword.errors import SessionError
from lastword.journal.journal import Journal

BELONGS = "belongs"


def open_journal(address: str = "memory:") -> Journal:
    """The journal at an address: `memory:`, `sqlite:///FILE`, `postgresql://…`. It connects when it is first used."""
    # By the room, so that who needs no file loads no database.
    return Journal(store.StoreAddress(address).open())


def open_default_journal(address: str | None = None) -> Journal:
    """The journal at an address; without one, at LASTWORD_STORE; without that, in the user's data folder."""
    address = address or os.environ.get("LASTWORD_STORE")
    if not address:
        folder = store.data_folder()
        address = f"sqlite:///{folder / store.StoreAddress.DEFAULT_FILE}"
    return open_journal(address)


async def is_visible(journal: Journal, session_id: str) -> bool:
    """Whether the one who sits here may look at this session."""
    return journal.people.sees(await _whose(journal, session_id))


async def open_as(journal: Journal, session_id: str, principal: str, *, is_known: bool) -> str:
    """Say whose a new session is, or find whose an old one is: written once, with its first record. Refused when that
    is somebody else."""
    if not is_known:
        facts = {"principal": principal}
        if not principal or await journal.claim(session_id, BELONGS, session_id, facts, f"{BELONGS}:{session_id}"):
            return principal
    found = await _whose(journal, session_id)
    if not journal.people.may_answer(principal, found):
        raise SessionError(
            "this session is another person's", place=session_id, hint="begin one of your own, without naming an id"
        )
    return found


async def _whose(journal: Journal, session_id: str) -> str:
    """The principal of a session; empty when it is nobody's in particular. Tampered when that was changed."""
    records = await journal.standing(BELONGS, session_id)
    return str(journal.data_of(records[0]).get("principal", "")) if records else ""
