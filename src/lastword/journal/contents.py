"""What the records hold beside their facts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from lastword.consent import Kept
from lastword.errors import SessionError, Tampered
from lastword.journal.records import Life, content_of
from lastword.store import PAGE_RECORDS, Store


async def content_in(store: Store, life: Life, call_id: str, digest: str) -> tuple[Kept, bytes]:
    """What a call returned beside its value: what is known of it, and the bytes, proven against their digest."""
    kept = next((kept for kept in life.content if kept.digest == digest), None)
    if kept is None:
        gone = life.finished == {}
        raise SessionError(
            "what this call returned was pruned from the journal" if gone else "this call returned no such content",
            place=call_id,
            hint="lastword show says what it returned",
        )
    data = await store.content(digest)
    if data is None:
        raise Tampered(
            f"{kept.name}, which a record holds, is not there any more",
            place=call_id,
            hint="it was taken out of the journal; restore from a copy to see it",
        )
    return kept, data


async def prove_contents(store: Store, life_of: Callable[[str], Awaitable[Life]]) -> None:
    """Raise Tampered when a record names content that is not there, or is not what it was."""
    after = 0
    while page := await store.read(kind="finished", after=after, limit=PAGE_RECORDS):
        after = page[-1].seq
        for record in page:
            for kept in content_of(record):
                await content_in(store, await life_of(record.subject), record.subject, kept.digest)
