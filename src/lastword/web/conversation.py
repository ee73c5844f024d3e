"""What every window shows: one conversation, its calls, its cards. The same for all windows.

The view hears the session and the satellite, keeps the picture, and tells the windows what changed. What people do in a
window comes back here and goes to the session's one door or to the satellite; a card that one window answers is gone
from all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal

from msgspec.structs import replace

from lastword.call.changes import last_changed
from lastword.call.events import Answered, Asked, Event, Finished, Printed, Reported, RunFinished, RunStarted, Started
from lastword.call.recovery import Decision
from lastword.card.face import one_line
from lastword.card.items import (
    BusyState,
    CallItem,
    Item,
    ItemGone,
    MessageItem,
    PageState,
    ScriptItem,
    Settings,
    Surface,
)
from lastword.card.trouble import trouble
from lastword.consent.answerer import Answerer
from lastword.consent.approval import ApprovalRequest
from lastword.consent.outcome import Outcome
from lastword.display import visible
from lastword.errors import LastWordError, SessionError, StoreError
from lastword.server.refusal import Refusal
from lastword.talk.bounds import Ended
from lastword.talk.presets import ResolvedPreset
from lastword.talk.rehearsal import NOTE
from lastword.talk.satellite import Forgotten, Heard, Repairing, Retrying, Said, Satellite
from lastword.web.answers import action_on, changed, not_waiting
from lastword.web.events import Feed
from lastword.web.open_message import OpenMessage
from lastword.web.settings import preset_choices, tool_entries
from lastword.web.story import Story, brief

# What a window loads at once. What is older is in the timeline.
MAX_ITEMS = 400
# Lines of a script that a window is shown; the journal has all of them.
MAX_LINES = 500
# A message that a person types or pastes.
MAX_SAID = 100_000


class ConversationView:
    """The picture, and what may be done in it."""

    def __init__(
        self,
        satellite: Satellite,
        presets: Mapping[str, ResolvedPreset],
        chosen: str,
        feed: Feed,
        *,
        model: str,
        is_rehearsal: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.satellite = satellite
        self.session = satellite.session
        self.feed = feed
        self.items: dict[str, Item] = {}
        self._presets = presets
        self._model = model
        self._is_rehearsal = is_rehearsal
        self._clock = clock
        self._messages = 0
        self._open: OpenMessage | None = None
        self._stories: dict[str, Story] = {}
        """Of the calls that have not ended."""
        self._turn: asyncio.Task[None] | None = None
        self._resumed = self._toured = self._left_off = False
        self._looking: asyncio.Task[None] | None = None
        self._preset = presets[chosen]
        self._preset.apply(satellite)
        self._stop_listening = self.session.listen(self.hear_session)

    # What a window is told.

    def state(self, token: str, window: str) -> PageState:
        """Everything, for a window that has just come, with its own token and name."""
        return PageState(
            session=self.session.id,
            items=tuple(self.items.values())[-MAX_ITEMS:],
            busy=self.is_busy,
            settings=self.settings(),
            token=token,
            window=window,
        )

    def settings(self) -> Settings:
        """How the assistant works now, in plain words."""
        return Settings(
            model=visible(self._model),
            rehearsal=self._is_rehearsal,
            preset=self._preset.preset.name,
            presets=preset_choices(self._presets.values()),
            tools=tool_entries(self.session),
        )

    def alive(self) -> set[str]:
        """The calls that wait or run here and now."""
        return {call.id for call in self._calls() if call.status in ("waiting", "running")}

    @property
    def is_busy(self) -> bool:
        """Whether the model or a tool works, or a card of theirs waits."""
        return self._turn is not None

    # What happens.

    def hear(self, heard: Heard) -> None:
        """What the satellite has to say while it works."""
        match heard:
            case Said(text):
                self._say(text)
            case Retrying(problem, attempt):
                self._drop_open()
                self.note(f"Trying again ({attempt}): {one_line(problem.fact, 300)}")
            case Repairing(reason):
                self._drop_open()
                self.note(f"The model is told what was wrong with its message: {one_line(reason, 300)}")
            case Forgotten():
                self.note("The server has forgotten this conversation. A new one begins; tools and state stay.")

    def hear_session(self, event: Event) -> None:
        """What the session has to say. What cannot be shown of it must neither stop a call nor the rest of the page."""
        try:
            self._take(event)
        except Exception as problem:
            self.note(trouble("Something happened that cannot be shown", problem), problem=True)

    def _take(self, event: Event) -> None:
        now = self._clock()
        match event:
            case Asked(request):
                self._close_open()
                story = self._story(request.call_id)
                story.asked(request, now)
                self.show(story.item)
            case Answered(call_id, action, by):
                story = self._story(call_id)
                story.answered(action, by, now)
                self.show(story.item)
            case Started(call_id, tool, arguments, origin):
                self._close_open()
                story = self._story(call_id)
                known = self.session.registry.find(tool)
                story.introduce(known.manifest if known else None)
                story.started(tool, brief(arguments), origin, now)
                self.show(story.item)
            case Reported(call_id, message, id, fraction):
                story = self._story(call_id)
                story.reported(id, message, fraction)
                self.show(story.item)
            case Finished(outcome):
                self._close_open()
                self._end(outcome, now)
            case RunStarted(run_id, name, text):
                self._close_open()
                shown_name = one_line(name) if name else None
                self.show(ScriptItem(id=run_id, name=shown_name, text=visible(text), at=now))
            case Printed(run_id, line):
                script = self.items.get(run_id)
                if isinstance(script, ScriptItem):
                    lines = (*script.lines, visible(line))[-MAX_LINES:]
                    self.show(replace(script, lines=lines, printed=script.printed + 1))
            case RunFinished(run_id, status, error):
                script = self.items.get(run_id)
                if isinstance(script, ScriptItem):
                    self.show(replace(script, status=status, error=visible(error or "")))

    def note(self, text: str, *, problem: bool = False) -> None:
        """A line of our own in the conversation."""
        self._close_open()
        self._message("lastword", text, problem=problem)

    def show(self, item: Item) -> None:
        """Put an item into the picture, or its new look."""
        self.items[item.id] = item
        while len(self.items) > 2 * MAX_ITEMS:
            self.items.pop(next(iter(self.items)))
        self.feed.tell("item", item)

    def hide(self, id: str) -> None:
        """Take an item out of the picture."""
        if self.items.pop(id, None) is not None:
            self.feed.tell("gone", ItemGone(id))

    # What people do.

    def welcome(self, surface: Surface) -> None:
        """A window was opened: go on with what was left. With nothing but the rehearsal model, begin its tour."""
        can_tour = self._is_rehearsal and self.session.registry.find(NOTE) is not None
        if surface == "page" and can_tour and not self._toured and not self.items and not self.is_busy:
            # Only a page begins by itself: at a prompt the person may be typing already.
            self._toured = self._resumed = True
            self._work(self._tour())
        elif not self._resumed:
            self._resumed = True
            self._looking = asyncio.get_running_loop().create_task(self._resume())

    def say(self, text: str, by: str, window: str = "") -> None:
        """Say something to the assistant, in this window."""
        text = text.strip()
        if not text:
            raise Refusal(400, "nothing_said", "the message is empty")
        if len(text) > MAX_SAID:
            raise Refusal(413, "too_long", f"the message is longer than {MAX_SAID:,} characters")
        if self.is_busy:
            raise Refusal(409, "busy", "the assistant is still at work", hint="answer its card, or stop it")
        self._resumed = self._toured = True
        if self._looking is not None:
            self._looking.cancel()  # What was left goes to the model with this.
        self._message("you", visible(text), window=window)
        if text == "/undo":
            self._work(self._undo_last(by))
        else:
            self._work(self.satellite.say(text))

    def stop(self, *, turn: bool = False) -> None:
        """Stop what runs and keep what it has; when nothing runs, or it was told before, or at once: stop the turn."""
        running = [] if turn else [call for call in self._calls() if call.status == "running" and not call.stopping]
        for call in running:
            self.cancel(call.id)
        if not running and self._turn is not None:
            self._left_off = True
            self._turn.cancel()

    def question(self, call_id: str, digest: str) -> ApprovalRequest:
        """The request behind a card, for a window that has seen it and may answer it."""
        request = next((r for r in self.session.pending() if r.call_id == call_id), None)
        if request is None:
            raise not_waiting()
        if request.digest != digest:
            raise changed()
        return request

    def answer(
        self, call_id: str, digest: str, action: str, reason: str | None, edits: Mapping[str, str], by: Answerer
    ) -> None:
        """Answer a card, having seen the request with this digest."""
        request = self.question(call_id, digest)
        if not self.session.answer(call_id, action_on(request, action, reason, edits), by):
            raise not_waiting()

    def cancel(self, call_id: str) -> None:
        """Stop one call, and keep what it has."""
        call = self.items.get(call_id)
        if not isinstance(call, CallItem) or call.status not in ("running", "waiting"):
            raise Refusal(409, "not_running", "this call does not run any more")
        self.session.cancel(call_id)
        story = self._story(call_id)
        story.stopping()
        self.show(story.item)

    async def resolve(self, call_id: str, decision: Decision, by: str) -> str:
        """Decide about a call whose end is not known. Says what became of it."""
        outcome = await self.session.resolve(call_id, decision, by=by)
        self.satellite.tell(f"A person looked at the call of {outcome.tool} in doubt. {outcome.message}")
        self._end(outcome, self._clock())
        return outcome.message

    async def undo(self, call_id: str | None, by: str) -> str:
        """Take back what a call changed, or the last one that changed something. Says what was restored."""
        call_id = call_id or await last_changed(self.session.journal, self.session.id)
        if call_id is None:
            raise SessionError("no call of this session has changed a file that is not restored already")
        taken = await self.session.undo(call_id, by=by)
        self.satellite.tell(f"The person undid a call. {taken.message}")
        call = self.items.get(call_id)
        if isinstance(call, CallItem):
            story = Story(call)
            story.undone(by)
            self.show(story.item)
        return taken.message

    def choose(self, preset: str) -> None:
        """Work under this preset from now on."""
        resolved = self._presets.get(preset)
        if resolved is None:
            raise Refusal(400, "no_such_preset", f"there is no preset {one_line(preset, 60)}", param="name")
        self._preset = resolved
        resolved.apply(self.satellite)
        self.feed.tell("settings", self.settings())

    async def close(self) -> None:
        """Leave: the turn that runs is stopped, and the windows are told."""
        self._stop_listening()
        for task in (self._looking, self._turn):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        self.feed.close()

    # Inside.

    def _work(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        if self.is_busy:
            work.close()
            return
        self._turn = asyncio.get_running_loop().create_task(self._attend(work))
        self.feed.tell("busy", BusyState(True))

    async def _attend(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        """Let a turn take its course, and say how it ended."""
        try:
            ended = await work
            self._close_open()
            if ended is not None and ended.bound is not None:
                self.note(ended.words)
        except asyncio.CancelledError:
            await self._stopped()
        except Exception as problem:
            self._tell_of(problem)
        finally:
            self._left_off = False
            self._turn = None
            self.feed.tell("busy", BusyState(False))

    async def _tour(self) -> Ended | None:
        await self.satellite.say("tour")
        self._close_open()
        return await self.satellite.say("next")

    async def _stopped(self) -> None:
        """The turn was cut short."""
        if self._left_off:  # By a person, and not by the end of the program: it stays stopped.
            try:
                await self.satellite.leave_off()
            except Exception as problem:
                self._tell_of(problem)
        self.note("Stopped. What was done is kept, and the model hears of it with your next message.")

    async def _resume(self) -> None:
        """Go on with what an earlier process left behind. The view is busy only once there is something."""
        try:
            unfinished = await self.satellite.is_unfinished()
        except Exception as problem:
            self._tell_of(problem)
            return
        if unfinished and not self.is_busy:
            self.note("Going on with what was interrupted.")
            self._work(self.satellite.resume())

    def _tell_of(self, problem: Exception) -> None:
        """Say why the turn ended. A refusal says all there is to know; what broke is in the log as well."""
        if isinstance(problem, LastWordError) and not isinstance(problem, StoreError):
            self.note(visible(str(problem)), problem=True)
        else:
            self.note(trouble("Something broke, and the assistant stopped", problem), problem=True)

    async def _undo_last(self, by: str) -> None:
        self.note(f"{visible(await self.undo(None, by))} The model hears of it.")

    def _calls(self) -> list[CallItem]:
        return [item for item in self.items.values() if isinstance(item, CallItem)]

    def _story(self, call_id: str) -> Story:
        """The story of a call that goes on. After a restart it begins with what the item says."""
        story = self._stories.get(call_id)
        if story is None:
            known = self.items.get(call_id)
            story = Story(known) if isinstance(known, CallItem) else Story.begin(call_id)
            self._stories[call_id] = story
        return story

    def _end(self, outcome: Outcome, at: float) -> None:
        story = self._story(outcome.call_id)
        story.ended(outcome, at)
        self.show(story.item)
        del self._stories[outcome.call_id]

    def _message(self, by: Literal["you", "assistant", "lastword"], text: str, **more: Any) -> MessageItem:
        self._messages += 1
        message = MessageItem(id=f"m{self._messages}", by=by, text=text, at=self._clock(), **more)
        self.show(message)
        return message

    def _say(self, piece: str) -> None:
        """More of the model's words."""
        if self._open is None:
            self._open = OpenMessage(self._message("assistant", "", open=True))
        changes = self._open.add(piece)
        self.items[changes.id] = self._open.item
        self.feed.tell("piece", changes)

    def _close_open(self) -> None:
        if self._open is not None:
            message, self._open = self._open.whole(), None
            if message.text:
                self.show(message)
            else:
                self.hide(message.id)

    def _drop_open(self) -> None:
        """What was shown of an answer does not count."""
        if self._open is not None:
            message, self._open = self._open.item, None
            self.hide(message.id)
