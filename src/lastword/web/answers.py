"""What waits for a person, and what they did with it, read from what their window sent and checked.

The inbox of all windows has an entry for every card that waits; every change of it is told once. A yes counts only from
a window that can have read what it says yes to: here is since when each question can be read, and by whom. What does
not live here: where the questions of other programs come from (other_sessions.py), and the paths (card_routes.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable

from msgspec.structs import replace

from lastword.card import Draft, SecondAct, one_line, views
from lastword.consent import ApprovalRequest, UserAction
from lastword.display import visible
from lastword.errors import ArgumentsError, Problem
from lastword.server import Refusal
from lastword.tools import QuestionAnswer, ToolQuestion, questions
from lastword.web.bodies import AnswerBody, AnswersBody, QuestionBody, SeenCard
from lastword.web.shared_items import Feed

# No window of ours lets a card be answered sooner: a page waits longer than this, a terminal a little longer.
UNREAD_SECONDS = 0.4
# Questions that are remembered to have been shown. One that is forgotten was shown long ago.
MAX_SHOWN = 1_000
# Cards that are remembered to have been fetched, of all windows. One that is forgotten is fetched again.
MAX_FETCHED = 5_000
# A person reads no longer list before one press.
MAX_AT_ONCE = 50
# Cards that nobody answered in time are shown for a day, and no more of them than somebody looks through.
MISSED_SECONDS = 24 * 3600
MAX_MISSED = 50

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


class ReadingTimes:
    """Since when each question can be read: in any window, and in which of them."""

    def __init__(self) -> None:
        self._shown: dict[str, float] = {}
        self._fetched: dict[tuple[str, str], float] = {}

    def shown(self, digest: str) -> None:
        """A window may show this question from now on."""
        self._shown.setdefault(digest, time.monotonic())
        if len(self._shown) > MAX_SHOWN:
            del self._shown[next(iter(self._shown))]

    def fetched(self, window: str, digest: str) -> None:
        """This window can show this question from now on."""
        self._fetched.setdefault((window, digest), time.monotonic())
        if len(self._fetched) > MAX_FETCHED:
            del self._fetched[next(iter(self._fetched))]

    def check_read(self, *digests: str) -> None:
        """Refuse a yes to what nobody can have read yet."""
        for digest in digests:
            since = self._shown.get(digest)
            if since is not None and time.monotonic() - since < UNREAD_SECONDS:
                raise too_soon()

    def check_fetched(self, window: str, digest: str) -> None:
        """Refuse a yes from a window that has not fetched the question, or has not had the time to show it."""
        since = self._fetched.get((window, digest))
        if since is None:
            raise Refusal(
                409, "not_seen", "this window has not looked at the card", hint="look at it first: GET /page/card"
            )
        if time.monotonic() - since < UNREAD_SECONDS:
            raise too_soon()


def check_deliberate(
    request: ApprovalRequest, word: str | None, *, folded: Collection[str], opened: Collection[str]
) -> None:
    """Refuse a yes that our own windows would not send: they would not have taken it for meant."""
    if (needed := SecondAct.of(request)) is None:
        return
    check_opened(folded, opened, f"{needed.why}, and ")
    if not needed.is_done(word):
        raise Refusal(
            400,
            "not_confirmed",
            f"{needed.why}, so one press does not allow it",
            param="word",
            hint=f"type the word {needed.word} as well",
        )


def check_opened(folded: Collection[str], opened: Collection[str], why: str = "") -> None:
    """Refuse a yes to a card of which a part stayed folded, as far as its window says what it opened."""
    if closed := [part for part in folded if part not in opened]:
        raise Refusal(
            400,
            "not_opened",
            f"{why}a part of it was not opened: {visible(closed[0])}",
            param="opened",
            hint="show all of it before you allow it",
        )


def check_again(tool: str, word: str | None) -> None:
    """Refuse to run a call in doubt once more by one press, whatever its tool says: it may be the second time."""
    if not SecondAct(tool.casefold()).is_done(word):
        raise Refusal(
            400,
            "not_confirmed",
            "nobody knows whether it happened, so one press does not run it again",
            param="word",
            hint=f"type the name of the tool, {visible(tool)}, as well",
        )


def check_together(request: ApprovalRequest) -> None:
    """Refuse a yes to what is allowed by itself only."""
    if request.manifest.counts_as_irreversible:
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


def action_on(request: ApprovalRequest, body: AnswerBody) -> UserAction:
    """What the person did, bound to what they saw. Edits are texts, read in the type that the argument has."""
    if body.action == "deny":
        return request.deny(body.reason or None)
    if body.action == "deny_rest":
        return request.deny_rest(body.reason or None)
    if body.action == "close":
        return request.close()
    if body.action == "allow_second":
        if not request.manifest.secondary_acts:
            raise Refusal(400, "no_second", "the second button of this tool is a no", param="action")
        if body.edits:
            raise Refusal(400, "edit_refused", "the second button takes the call as it is", param="edits")
        return request.allow_second()
    draft = Draft(request)
    for name, text in body.edits.items():
        try:
            draft.change(name, text)
        except (Problem, ArgumentsError) as problem:
            raise Refusal(400, "edit_refused", visible(problem.fact), param=name, hint=problem.hint) from None
    return draft.allow()


def answer_to(question: ToolQuestion, body: QuestionBody) -> QuestionAnswer:
    """What the person did with a question of a running tool, in the types of its fields."""
    if body.action != "give":
        return questions.Declined() if body.action == "decline" else questions.Closed()
    try:
        return questions.answer_from_texts(question, body.values)
    except ArgumentsError as problem:
        first = problem.problems[0]
        label = next((field.title for field in question.fields if field.name == first.place), "") or first.place or ""
        raise Refusal(
            400, "answer_refused", f"{one_line(label, 60)}: {visible(first.fact)}", param=first.place, hint=first.hint
        ) from None


def too_soon() -> Refusal:
    """Nobody reads as quickly as that."""
    return Refusal(
        409, "too_soon", "this question was put a moment ago, and nobody can have read it", hint="read it first"
    )


def not_waiting() -> Refusal:
    """The card was answered elsewhere, or its call has ended."""
    return Refusal(409, "not_waiting", "this question is not waiting any more: it was answered, or its call has ended")


def changed() -> Refusal:
    """The same call asks something else by now."""
    return Refusal(409, "changed", "the question has changed since you saw it", hint="look at it again, then answer")
