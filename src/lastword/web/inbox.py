"""The inbox of all windows: the entries in their order, every change of them told once, and several answers at once.

Which cards a window has looked at is kept here too: a yes to a card of another program counts only from a window that
has fetched what it asks. What does not live here: where the questions of others come from (other_sessions.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from lastword.card import is_alone, views
from lastword.consent import ApprovalRequest
from lastword.server import Refusal
from lastword.web import answers
from lastword.web.bodies import AnswersBody, SeenCard
from lastword.web.events import Feed

# A person reads no longer list before one press.
MAX_AT_ONCE = 50
# Cards that nobody answered in time are shown for a day, and no more of them than somebody looks through.
MISSED_SECONDS = 24 * 3600
MAX_MISSED = 50
# Cards that are remembered to have been looked at, of all windows. One that is forgotten is fetched again.
MAX_LOOKED_AT = 5_000


# Who asked for what was missed in a conversation that is not open now.
ELSEWHERE = "another conversation of yours"


class Inbox:
    """What waits, by call."""

    def __init__(self, feed: Feed, clock: Callable[[], float] = time.time) -> None:
        self._feed = feed
        self._clock = clock
        self._entries: dict[str, views.InboxEntry] = {}
        self._missed: tuple[views.InboxMissed, ...] = ()

    @property
    def entries(self) -> tuple[views.InboxEntry, ...]:
        """As they are now, in the order in which they came."""
        return tuple(self._entries.values())

    @property
    def missed(self) -> tuple[views.InboxMissed, ...]:
        """Those that nobody answered in time, the newest last."""
        return self._missed

    def change(self, put: Iterable[views.InboxEntry] = (), gone: Iterable[views.InboxGone] = ()) -> None:
        """Put entries in, or their new look, and take others out; windows are told once of all of it."""
        new = tuple(entry for entry in put if self._entries.get(entry.id) != entry)
        known = [(left, self._entries.pop(left.id)) for left in gone if left.id in self._entries]
        # When its time was up, and not when somebody looked: several that are found at once keep their order.
        late = [
            views.InboxMissed(entry, self._clock() if left.at is None else left.at)
            for left, entry in known
            if left.end is not None and left.end.kind == "expired"
        ]
        self._entries |= {entry.id: entry for entry in new}
        self._tell(new, tuple(left for left, _ in known), late)

    def recall(self, missed: Iterable[views.InboxMissed]) -> None:
        """Those that nobody answered in time before this program was started."""
        self._tell((), (), missed)

    def turn(self, before: str, now: str) -> None:
        """Another conversation is the window's own. Nothing of the one before waits; what was missed in it is no longer
        this one's."""
        turned = tuple(
            views.InboxMissed(replace(entry, session=before, program=ELSEWHERE), at)
            if entry.session is None
            else views.InboxMissed(replace(entry, session=None, program=""), at)
            if entry.session == now
            else views.InboxMissed(entry, at)
            for entry, at in ((missed.entry, missed.at) for missed in self._missed)
        )
        if turned != self._missed:
            self._missed = turned
            self._feed.tell("inbox", views.InboxChange(missed=turned))

    def _tell(
        self, new: tuple[views.InboxEntry, ...], old: tuple[views.InboxGone, ...], late: Iterable[views.InboxMissed]
    ) -> None:
        soonest = self._clock() - MISSED_SECONDS
        all_missed = {missed.entry.id: missed for missed in (*self._missed, *late) if missed.at >= soonest}
        missed = tuple(sorted(all_missed.values(), key=lambda each: (each.at, each.entry.id)))[-MAX_MISSED:]
        is_same = missed == self._missed
        self._missed = missed
        if new or old or not is_same:
            self._feed.tell("inbox", views.InboxChange(new, old, None if is_same else missed))

    def ended(self, gone: views.InboxGone) -> None:
        """A call whose card had been answered has ended."""
        self._feed.tell("inbox", views.InboxChange(gone=(gone,)))

    def settled(self, item: views.CallItem) -> None:
        """A call has started. If a grant answered its card, that is known by now with what is left of the grant."""
        if item.asked_at is not None and item.reply is not None and item.reply.how == "standing":
            self.ended(views.InboxGone(item.id, item.reply))

    def drop(self, gone: views.InboxGone) -> None:
        """A card does not wait any more."""
        self.change(gone=[gone])


class LookedAt:
    """Which windows have fetched which questions, and since when."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], float] = {}

    def note(self, window: str, digest: str) -> None:
        """This window can show this question from now on."""
        self._since.setdefault((window, digest), time.monotonic())
        if len(self._since) > MAX_LOOKED_AT:
            del self._since[next(iter(self._since))]

    def check(self, window: str, digest: str) -> None:
        """Refuse a yes from a window that has not fetched the question, or has not had the time to show it."""
        since = self._since.get((window, digest))
        if since is None:
            raise Refusal(
                409, "not_seen", "this window has not looked at the card", hint="look at it first: GET /page/card"
            )
        if time.monotonic() - since < answers.UNREAD_SECONDS:
            raise answers.too_soon()


def check_together(request: ApprovalRequest) -> None:
    """Refuse a yes to what is allowed by itself only."""
    if is_alone(request):
        raise Refusal(
            409, "alone", "this cannot be undone, or nobody said that it can: it is allowed by itself only",
            hint="open its card, and answer it there",
        )  # fmt: skip


def cards_of(body: AnswersBody) -> tuple[SeenCard, ...]:
    """The cards that several answers are for, each once."""
    cards = tuple(dict.fromkeys(body.cards))
    if not cards:
        raise Refusal(400, "no_cards", "no card is named", param="cards")
    if len(cards) > MAX_AT_ONCE:
        raise Refusal(400, "too_many", f"more than {MAX_AT_ONCE} cards are not answered at once", param="cards")
    if len({card.call_id for card in cards}) < len(cards):
        raise Refusal(400, "named_twice", "a card is named twice, with two digests", param="cards")
    return cards
