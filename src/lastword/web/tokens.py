"""What the model's server counted for the answers of a conversation, kept with the session and summed up.

    stream of the session    tokens_used · went_back (talk/satellite.py)

A count belongs to the turn that ended with the answer. When a person goes back to an earlier message, the turns after
it do not count any more, and their numbers are given out again: the counts are no longer of answers that are shown. The
tokens were spent all the same, and stay in the sum.
"""

from __future__ import annotations

from collections.abc import Iterable

from lastword.card import responses
from lastword.journal import data_of
from lastword.session import Session
from lastword.store import Record
from lastword.talk import WENT_BACK, Ended

TOKENS_USED = "tokens_used"


async def keep(session: Session, conversation_id: str, ended: Ended) -> None:
    """Remember what an answer took, durably: it cannot be counted again. None where the server did not count."""
    facts = {"turn": ended.turn, "tokens": ended.counted}
    session.journal.note(session.id, TOKENS_USED, conversation_id, facts)
    await session.journal.store.commit()


def by_turn(records: Iterable[Record], conversation_id: str) -> dict[int, int]:
    """What the answers that still stand took, by their turns."""
    standing: dict[int, int] = {}
    for record in records:
        if record.subject != conversation_id or not (data := data_of(record)):
            continue
        if record.kind == WENT_BACK:
            standing = {turn: tokens for turn, tokens in standing.items() if turn < data["turn"]}
        elif record.kind == TOKENS_USED and data["tokens"] is not None:
            standing[data["turn"]] = data["tokens"]
    return standing


async def total(session: Session) -> responses.TokenTotal:
    """The sum for a conversation since it began, whatever was taken back in it."""
    records = await session.journal.history(session.id, kind=(TOKENS_USED, WENT_BACK))
    counts = [data["tokens"] for r in records if r.kind == TOKENS_USED and (data := data_of(r))]
    counted = [count for count in counts if count is not None]
    standing = {name: by_turn(records, name) for name in {record.subject for record in records}}
    left = sum(len(turns) for turns in standing.values())
    spent = sum(counted)
    gone = spent - sum(sum(turns.values()) for turns in standing.values())
    return responses.TokenTotal(
        tokens=spent,
        answers=len(counted),
        uncounted=len(counts) - len(counted),
        taken_back=len(counted) - left,
        words=_words(counted, len(counts) - len(counted), len(counted) - left, gone),
    )


def _words(counted: list[int], uncounted: int, taken_back: int, gone: int) -> str:
    if not counted:
        return "The model's server has counted no tokens here."
    answers = "the only answer" if len(counted) == 1 else f"all {len(counted)} answers"
    said = f"{counted[-1]:,} tokens for the last answer that was counted, {sum(counted):,} for {answers}."
    if taken_back:
        said += f" In the sum are {gone:,} for {taken_back} that you took back: they were spent all the same."
    if uncounted:
        said += f" {uncounted} more {'was' if uncounted == 1 else 'were'} not counted."
    return said
