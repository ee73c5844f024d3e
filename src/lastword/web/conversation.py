"""What every window shows: one conversation, its calls, its cards. The same for all windows.

The view hears the session, keeps what is shown, and tells the windows what changed. What people do in a window comes
back here and goes to the session's one door or to the assistant; a card that one window answers is gone from all.

The inbox has an entry for every card that waits; every change of it is told once. A yes counts only from a window that
can have read what it says yes to: here is since when each question can be read, and by whom. What does not live here:
where the questions of other programs come from (other_sessions.py), and what counts as an answer (card_routes.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec.structs import replace

from lastword.call import Decision, last_changed
from lastword.call.events import (
    Answered,
    Asked,
    DeniedByRule,
    Event,
    Finished,
    Printed,
    QuestionAnswered,
    QuestionAsked,
    Reported,
    RunFinished,
    RunStarted,
    Started,
)
from lastword.card import SecondAct, entry_of, views, visible
from lastword.server import Refusal
from lastword.web import history
from lastword.web.assistant import Assistant, AssistantSetup, busy
from lastword.web.call_item import CallItemBuilder, brief
from lastword.web.shared_items import Feed, SharedItems, script_begun, script_ended

if TYPE_CHECKING:
    from lastword.consent import Answerer, Outcome
    from lastword.session import Session
    from lastword.talk import Api

T = TypeVar("T", bound="_Shown")

# No window of ours lets a card be answered sooner: a page waits longer than this, a terminal a little longer.
UNREAD_SECONDS = 0.4
# Questions that are remembered to have been shown. One that is forgotten was shown long ago.
MAX_SHOWN = 1_000
# Cards that are remembered to have been fetched, of all windows. One that is forgotten is fetched again.
MAX_FETCHED = 5_000
# Cards that nobody answered in time are shown for a day, and no more of them than somebody looks through.
MISSED_SECONDS = 24 * 3600
MAX_MISSED = 50

# Who asked for what was missed in a conversation that is not open now.
ELSEWHERE = "another conversation of yours"


class ConversationView:
    """What is shown, and what may be done with it."""

    def __init__(self, session: Session, api: Api, setup: AssistantSetup, *, has_servers: bool = False) -> None:
        self.session = session
        self._clock = session.journal.clock
        self.feed = Feed()
        self.checks = AnswerChecks()
        self.shown = SharedItems(self.feed, self._clock)
        self.inbox = Inbox(self.feed, self._clock)
        self.assistant = Assistant(session, api, setup, self.shown, has_servers=has_servers)
        self.begins_with: str | None = None
        """The item before which there was more, of an earlier time."""
        self._builders: dict[str, CallItemBuilder] = {}
        """Of the calls that have not ended."""
        self._stop_listening: Callable[[], None] = lambda: None

    async def open(self) -> None:
        """Begin with what was shown before the program was started, and hear the session from now on."""
        self._stop_listening = self.session.listen(self.hear_session)
        begun = await history.remembered(self.session, self.assistant.api)
        self.shown.begin(begun.items)
        self.begins_with = begun.begins_with

    async def close(self) -> None:
        """Leave: the turn that runs is stopped, and the windows are told."""
        self._stop_listening()
        await self.assistant.close()
        self.feed.close()

    async def go_to(self, session: Session) -> None:
        """Show another conversation, in every window. Refused while something of this one waits or runs."""
        self.check_idle()
        begun = await history.remembered(session, self.assistant.api)
        self.check_idle()
        self._stop_listening()
        self.assistant.stop_looking()
        await self.session.close()
        self.inbox.turn(self.session.id, session.id)
        self.session = session
        self.assistant.go_to(session)
        self._stop_listening = session.listen(self.hear_session)
        self._builders = {}
        self.begins_with = begun.begins_with
        self.shown.begin_anew(begun.items)

    # What a window is told.

    def state(self, token: str, window: str) -> views.PageState:
        """Everything, for a window that has just come, with its own token and name."""
        return views.PageState(
            session=self.session.id,
            items=tuple(self.shown.items.values()),
            has_earlier=self.begins_with is not None,
            busy=self.assistant.is_busy,
            settings=self.assistant.settings(),
            inbox=self.inbox.entries,
            missed=self.inbox.missed,
            token=token,
            window=window,
        )

    def shared(self) -> str:
        """What the tools of the session know, marked."""
        return visible(self.session.format_state_for_prompt())

    def alive(self) -> set[str]:
        """The calls that wait or run here and now."""
        return {call.id for call in self.shown.calls() if call.status in ("waiting", "running")}

    def hear_session(self, event: Event) -> None:
        """What the session has to say. What cannot be shown of it must neither stop a call nor the rest of the page."""
        try:
            self._take(event)
        except Exception as problem:
            self.shown.tell_trouble("Something happened that cannot be shown", problem)

    def _take(self, event: Event) -> None:
        now = self._clock()
        match event:
            case Asked(request):
                self.shown.end_writing()
                builder = self._builder(request.call_id)
                builder.asked(request, now)
                self.show(builder.item)
                self.inbox.change([entry_of(request, builder.item.asked_at or now, session=None)])
            case Answered(call_id, action, by):
                self._tell(call_id, lambda builder: builder.answered(action, by, now))
            case QuestionAsked(question):
                self.shown.end_writing()
                self._tell(question.call_id, lambda builder: builder.questioned(question))
            case QuestionAnswered(call_id):
                self._tell(call_id, CallItemBuilder.question_over)
            case Started(call_id, tool, arguments, origin, not_asked):
                self.shown.end_writing()
                builder = self._introduced(call_id, tool)
                builder.started(tool, brief(arguments), origin, now, not_asked)
                self.show(builder.item)
                self.inbox.settled(builder.item)
            case DeniedByRule(call_id, tool, arguments, origin, rule):  # Shown with its end.
                self._introduced(call_id, tool).denied_by_rule(tool, brief(arguments), origin, rule, now)
            case Reported(call_id, message, id, fraction):
                self._tell(call_id, lambda builder: builder.reported(id, message, fraction))
            case Finished(outcome):
                self.shown.end_writing()
                self._end(outcome, now)
            case RunStarted(run_id, name, text):
                self.shown.end_writing()
                self.show(script_begun(run_id, name, text, now))
            case Printed(run_id, line):
                self.shown.printed(run_id, line)
            case RunFinished(run_id, status, error):
                script = self.shown.items.get(run_id)
                if isinstance(script, views.ScriptItem):
                    self.show(script_ended(script, status, error))

    def _tell(self, call_id: str, change: Callable[[CallItemBuilder], None]) -> None:
        builder = self._builder(call_id)
        change(builder)
        self.show(builder.item)

    def show(self, item: views.Item) -> None:
        """Show an item, or its new look; the inbox follows."""
        if isinstance(item, views.CallItem) and item.card is not None:
            self.checks.shown(item.card.digest)
        self.shown.show(item)
        if isinstance(item, views.CallItem) and item.card is None:
            self.inbox.drop(views.InboxGone(item.id, item.reply, item.end, item.ended_at))

    # What people do.

    def say(self, text: str, by: str, window: str = "") -> None:
        """Say something to the assistant, in this window."""
        is_undo = text.strip() == "/undo"
        self.assistant.say(text, window, instead=(lambda: self._undo_last(by)) if is_undo else None)

    def check_idle(self) -> None:
        """Refuse while something waits or runs: it belongs to the conversation that is open."""
        self.assistant.check_idle()
        if self.alive() - {call.id for call in self.shown.calls() if call.session is not None}:
            raise busy()

    def stop(self, *, turn: bool = False) -> None:
        """Stop what runs and keep what it has; when nothing runs, or it was told before, or at once: stop the turn."""
        running = (
            [] if turn else [call for call in self.shown.calls() if call.status == "running" and not call.stopping]
        )
        for call in running:
            self.cancel(call.id)
        if not running:
            self.assistant.stop()

    async def stop_everything(self, by: Answerer) -> str:
        """Deny what waits and cancel what runs, of all programs on this memory. Says what became of it, marked."""
        stopped = await self.session.stop(by)
        self.stop(turn=True)
        return "\n".join(stopped.words())

    def cancel(self, call_id: str) -> None:
        """Stop one call, and keep what it has."""
        call = self.shown.call(call_id)
        if call is None or call.status not in ("running", "waiting"):
            raise Refusal(409, "not_running", "this call does not run any more")
        self.session.cancel(call_id)
        builder = self._builder(call_id)
        builder.stopping()
        self.show(builder.item)

    async def resolve(self, call_id: str, decision: Decision, by: str, word: str | None) -> str:
        """Decide about a call whose end is not known. Says what became of it, marked."""
        if decision == "again" and (started := (await self.session.journal.life(call_id)).started):
            # Whatever its tool says: it may be the second time.
            tool, fact = started["tool"], "nobody knows whether it happened, so one press does not run it again"
            hint = f"type the name of the tool, {visible(tool)}, as well"
            self.checks.check_word(tool.casefold(), word, fact, hint)
        outcome = await self.session.resolve(call_id, decision, by=by)
        self.assistant.satellite.tell(f"A person looked at the call of {outcome.tool} in doubt. {outcome.message}")
        self._end(outcome, self._clock())
        return visible(outcome.message)

    async def undo(self, call_id: str | None, by: str) -> str:
        """Take back what a call changed, or the last one that changed something. Says what was restored, marked."""
        call_id = call_id or await last_changed(self.session.journal, self.session.id)
        if call_id is None:
            fact = "no call of this session has changed a file that is not restored already"
            raise Refusal(409, "refused", fact)
        taken = await self.session.undo(call_id, by=by)
        self.assistant.satellite.tell(f"The person undid a call. {taken.message}")
        if (call := self.shown.call(call_id)) is not None:
            builder = CallItemBuilder(call)
            builder.undone(by)
            self.show(builder.item)
        return visible(taken.message)

    async def _undo_last(self, by: str) -> None:
        self.shown.note(f"{await self.undo(None, by)} The model hears of it.")

    def _builder(self, call_id: str) -> CallItemBuilder:
        """What puts the item of a call that goes on together. After a restart it begins with what the item says."""
        builder = self._builders.get(call_id)
        if builder is None:
            known = self.shown.call(call_id)
            builder = CallItemBuilder.begin(call_id) if known is None else CallItemBuilder(known)
            self._builders[call_id] = builder
        return builder

    def _introduced(self, call_id: str, tool: str) -> CallItemBuilder:
        """The same, with the looks of a tool that asked nothing before."""
        builder = self._builder(call_id)
        known = self.session.registry.find(tool)
        builder.introduce(known.manifest if known else None)
        return builder

    def _end(self, outcome: Outcome, at: float) -> None:
        builder = self._builder(outcome.call_id)
        builder.ended(outcome, at)
        self.show(builder.item)
        del self._builders[outcome.call_id]


class Inbox:
    """What waits, by call."""

    def __init__(self, feed: Feed, clock: Callable[[], float] = time.time) -> None:
        self._feed = feed
        self._clock = clock
        self._entries: dict[str, views.InboxEntry] = {}
        self.missed: tuple[views.InboxMissed, ...] = ()
        """Those that nobody answered in time, the newest last."""

    @property
    def entries(self) -> tuple[views.InboxEntry, ...]:
        """As they are now, in the order in which they came."""
        return tuple(self._entries.values())

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

    def recall(self, missed: Iterable[tuple[views.InboxEntry, float]]) -> None:
        """Those that nobody answered in time before this program was started, each with when its time was up."""
        self._tell((), (), [views.InboxMissed(entry, at) for entry, at in missed])

    def turn(self, before: str, now: str) -> None:
        """Another conversation is the window's own. Nothing of the one before waits; what was missed in it is no longer
        this one's."""
        turned = tuple(
            views.InboxMissed(replace(entry, session=before, program=ELSEWHERE), at)
            if entry.session is None
            else views.InboxMissed(replace(entry, session=None, program=""), at)
            if entry.session == now
            else views.InboxMissed(entry, at)
            for entry, at in ((missed.entry, missed.at) for missed in self.missed)
        )
        if turned != self.missed:
            self.missed = turned
            self._feed.tell("inbox", views.InboxChange(missed=turned))

    def _tell(
        self, new: tuple[views.InboxEntry, ...], old: tuple[views.InboxGone, ...], late: Iterable[views.InboxMissed]
    ) -> None:
        soonest = self._clock() - MISSED_SECONDS
        all_missed = {missed.entry.id: missed for missed in (*self.missed, *late) if missed.at >= soonest}
        missed = tuple(sorted(all_missed.values(), key=lambda each: (each.at, each.entry.id)))[-MAX_MISSED:]
        is_same = missed == self.missed
        self.missed = missed
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


class _Shown(Protocol):
    """What a window is shown of a question, and answers by its digest."""

    @property
    def digest(self) -> str: ...


class AnswerChecks:
    """What makes an answer of a window count: it is to what is asked now, it was read, and it was meant."""

    def __init__(self) -> None:
        self._shown: dict[str, float] = {}
        """Since when each question can be read in any window."""
        self._fetched: dict[tuple[str, str], float] = {}
        """And in which of them."""

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

    def as_seen(self, question: T | None, digest: str) -> T:
        """The question, if it is the one that the window saw."""
        if question is None:
            raise self.not_waiting()
        if question.digest != digest:
            raise self.changed()
        return question

    def check_read(self, *digests: str) -> None:
        """Refuse a yes to what nobody can have read yet."""
        for digest in digests:
            since = self._shown.get(digest)
            if since is not None:
                self._check_since(since)

    def check_fetched(self, window: str, digest: str) -> None:
        """Refuse a yes from a window that has not fetched the question, or has not had the time to show it."""
        since = self._fetched.get((window, digest))
        if since is None:
            raise Refusal(
                409, "not_seen", "this window has not looked at the card", hint="look at it first: GET /page/card"
            )
        self._check_since(since)

    def check_word(self, word: str, typed: str | None, fact: str, hint: str = "") -> None:
        """Refuse a yes that our own windows would not send: they would not have taken a press alone for meant."""
        if not SecondAct(word).is_done(typed):
            raise Refusal(400, "not_confirmed", fact, param="word", hint=hint or f"type the word {word} as well")

    def check_opened(
        self, folded: Iterable[str], opened: Collection[str], why: str = "", what: str = "it", act: str = "allow"
    ) -> None:
        """Refuse a yes to something of which a part stayed folded, as far as its window says what it opened."""
        if closed := [part for part in folded if part not in opened]:
            fact = f"{why}a part of {what} was not opened: {visible(closed[0])}"
            raise Refusal(400, "not_opened", fact, param="opened", hint=f"show all of it before you {act} it")

    def _check_since(self, since: float) -> None:
        if time.monotonic() - since < UNREAD_SECONDS:  # Nobody reads as quickly as that.
            raise Refusal(
                409, "too_soon", "this question was put a moment ago, and nobody can have read it", hint="read it first"
            )

    @staticmethod
    def not_waiting() -> Refusal:
        """The card was answered elsewhere, or its call has ended."""
        return Refusal(
            409, "not_waiting", "this question is not waiting any more: it was answered, or its call has ended"
        )

    @staticmethod
    def changed() -> Refusal:
        """The same call asks something else by now."""
        return Refusal(
            409, "changed", "the question has changed since you saw it", hint="look at it again, then answer"
        )
