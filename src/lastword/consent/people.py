"""Whose cards are whose: the principal that sessions, cards and runs carry, and who may answer for whom.

One person alone has no name here, and everything is theirs. In a team each carries the name of its person; a card
without a name is everybody's, one with a name its own person's, and beyond that goes what somebody configured.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lastword.consent.answerer import Answerer
from lastword.errors import SessionError

ANYBODY = "*"


class People(msgspec.Struct, frozen=True):
    """Who sits at this process, and who may answer whose cards besides their own."""

    me: str = ""
    """The principal of whatever is done here, unless it is said otherwise. Empty: nobody was named."""
    answers: Mapping[str, tuple[str, ...]] = {}
    """By the one who answers: the principals of the cards. `*` stands for all."""

    def may_answer(self, who: str, whose: str) -> bool:
        """Whether `who` may see and answer a card of `whose`."""
        if not whose or who == whose:
            return True
        for_whom = self.answers.get(who, ()) if who else ()
        return whose in for_whom or ANYBODY in for_whom

    def sees(self, whose: str) -> bool:
        """Whether the one who sits here may."""
        return self.may_answer(self.me, whose)

    def signed(self, by: Answerer, whose: str, place: str) -> Answerer:
        """Whoever answers here, with the principal they answer as. Refused when the card is not theirs to answer."""
        signed = sign(by, self.me)
        if not self.may_answer(signed.whose, whose):
            raise SessionError(
                "this question is another person's to answer",
                place=place,
                hint="who may answer for whom is said in lastword.toml, under [people.answer]",
            )
        return signed


def sign(by: Answerer, principal: str) -> Answerer:
    """An answerer who says as whom they answered, unless they did already. One person alone says nothing."""
    if not principal or by.whose or by.kind != "person":
        return by
    return msgspec.structs.replace(by, principal=principal)
