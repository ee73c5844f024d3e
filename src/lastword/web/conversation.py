"""What every window shows: one conversation, its calls, its cards. The same for all windows.

The view hears the session and the satellite, keeps the picture, and tells the windows what changed. What people do in a
window comes back here and goes to the session's one door or to the satellite; a card that one window answers is gone
from all.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal

from msgspec.structs import replace

from lastword.call import (
    Answered,
    Asked,
    Decision,
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
    last_changed,
)
from lastword.card import entry_of, one_line, responses, trouble, views
from lastword.consent import Answerer, Outcome
from lastword.display import shortened, visible
from lastword.errors import LastWordError, SessionError, StoreError
from lastword.server import Refusal
from lastword.session import Session
from lastword.talk import NOTE, Ended, Heard, Repairing, ResolvedPreset, Retrying, Said, Satellite, Thought, remove_tour
from lastword.web import past, tokens
from lastword.web.answers import Put, check_again
from lastword.web.events import Feed
from lastword.web.going_back import check_said, since_then, stay_done, went_back
from lastword.web.inbox import Inbox
from lastword.web.model_form import ModelForm
from lastword.web.news import told
from lastword.web.picture import MAX_ERROR, MAX_SCRIPT, SharedPicture
from lastword.web.settings import preset_choices, tool_entries
from lastword.web.story import Story, brief


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
        self.put = Put()
        self.picture = SharedPicture(feed)
        self.inbox = Inbox(feed, clock)
        self.begins_with: str | None = None
        """The item before which there was more, of an earlier time."""
        self.model_form: ModelForm | None = None
        """For choosing another model, where that is possible."""
        self.has_servers = False
        self._presets = presets
        self._model = model
        self._is_rehearsal = is_rehearsal
        self._clock = clock
        self._messages = 0
        self._thought = ""
        self._stories: dict[str, Story] = {}
        """Of the calls that have not ended."""
        self._turn: asyncio.Task[None] | None = None
        self._resumed = self._toured = self._left_off = False
        self._looking: asyncio.Task[None] | None = None
        self._preset = presets[chosen]
        self._preset.apply(satellite)
        self._stop_listening = self.session.listen(self.hear_session)

    # What a window is told.

    def state(self, token: str, window: str) -> views.PageState:
        """Everything, for a window that has just come, with its own token and name."""
        return views.PageState(
            session=self.session.id,
            items=tuple(self.items.values()),
            has_earlier=self.begins_with is not None,
            busy=self.is_busy,
            settings=self.settings(),
            inbox=self.inbox.entries,
            missed=self.inbox.missed,
            token=token,
            window=window,
        )

    @property
    def items(self) -> dict[str, views.Item]:
        """What there is to show, in its order."""
        return self.picture.items

    def settings(self) -> views.Settings:
        """How the assistant works now, in plain words."""
        return views.Settings(
            model=visible(self._model),
            rehearsal=self._is_rehearsal,
            preset=self._preset.preset.name,
            presets=preset_choices(self._presets.values()),
            tools=tool_entries(self.session),
            can_choose_model=self.model_form is not None,
            has_servers=self.has_servers,
            next_model=self.model_form.next_model if self.model_form else "",
        )

    def alive(self) -> set[str]:
        """The calls that wait or run here and now."""
        return {call.id for call in self._calls() if call.status in ("waiting", "running")}

    @property
    def is_busy(self) -> bool:
        """Whether the model or a tool works, or a card of theirs waits."""
        return self._turn is not None

    def hear(self, heard: Heard) -> None:
        """What the satellite has to say while it works."""
        match heard:
            case Said(text):
                self._say(text)
            case Thought(text):
                self._thought = visible(text)
            case _:
                if isinstance(heard, (Retrying, Repairing)):
                    self.picture.end_writing(keep=False)  # What was shown of an answer does not count.
                self.note(told(heard))

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
                self.picture.end_writing()
                story = self._story(request.call_id)
                story.asked(request, now)
                self.show(story.item)
                self.inbox.change([entry_of(request, story.item.asked_at or now, session=None)])
            case Answered(call_id, action, by):
                self._tell(call_id, lambda story: story.answered(action, by, now))
            case QuestionAsked(question):
                self.picture.end_writing()
                self._tell(question.call_id, lambda story: story.questioned(question))
            case QuestionAnswered(call_id):
                self._tell(call_id, Story.question_over)
            case Started(call_id, tool, arguments, origin, not_asked):
                self.picture.end_writing()
                story = self._story_of(call_id, tool)
                story.started(tool, brief(arguments), origin, now, not_asked)
                self.show(story.item)
                self.inbox.settled(story.item)
            case DeniedByRule(call_id, tool, arguments, origin, rule):  # Shown with its end.
                self._story_of(call_id, tool).denied_by_rule(tool, brief(arguments), origin, rule, now)
            case Reported(call_id, message, id, fraction):
                self._tell(call_id, lambda story: story.reported(id, message, fraction))
            case Finished(outcome):
                self.picture.end_writing()
                self._end(outcome, now)
            case RunStarted(run_id, name, text):
                self.picture.end_writing()
                shown_name = one_line(name) if name else None
                self.show(views.ScriptItem(id=run_id, name=shown_name, text=shortened(text, MAX_SCRIPT), at=now))
            case Printed(run_id, line):
                self.picture.printed(run_id, line)
            case RunFinished(run_id, status, error):
                script = self.items.get(run_id)
                if isinstance(script, views.ScriptItem):
                    self.show(replace(script, status=status, error=shortened(error or "", MAX_ERROR)))

    def _tell(self, call_id: str, change: Callable[[Story], None]) -> None:
        story = self._story(call_id)
        change(story)
        self.show(story.item)

    def note(self, text: str, *, problem: bool = False) -> None:
        """A line of our own in the conversation."""
        self.picture.end_writing()
        self._message("lastword", text, problem=problem)

    def show(self, item: views.Item) -> None:
        """Put an item into the picture, or its new look."""
        if isinstance(item, views.CallItem) and item.card is not None:
            self.put.note(item.card.digest)
        self.picture.show(item)
        if isinstance(item, views.CallItem) and item.card is None:
            self.inbox.drop(views.InboxGone(item.id, item.reply, item.end, item.ended_at))

    def hide(self, id: str) -> None:
        """Take an item out of the picture."""
        self.picture.hide(id)

    # What people do.

    def welcome(self, surface: views.Surface) -> None:
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
        self._check_sayable(text)
        self._resumed = self._toured = True
        if self._looking is not None:
            self._looking.cancel()  # What was left goes to the model with this.
        said = self._say_it(text, window)
        self._work(self._undo_last(by) if text == "/undo" else self._ask(said, text))

    def again(self, message_id: str, text: str | None, window: str = "") -> None:
        """Go on from a message of the person's, said once more or in other words. What was called since stays done."""
        said = self.items.get(message_id)
        if not isinstance(said, views.MessageItem) or said.by != "you":
            raise Refusal(409, "no_such_message", "this message is not there any more", param="message")
        text = (said.raw or said.text if text is None else text).strip()
        self._check_sayable(text)
        since = since_then(self.items, said)
        calls = [item for item in since if isinstance(item, views.CallItem) and item.session is None]
        done = [call for call in calls if call.end is not None or call.status == "doubt"]
        for item in since:
            if isinstance(item, views.MessageItem):
                self.hide(item.id)
        if done:
            self.note(stay_done(done))
        self._work(self._ask(self._say_it(text, window), text, back_to=said.turn, done=done))

    async def go_to(self, session: Session, satellite: Satellite) -> None:
        """Show another conversation, in every window. Refused while something of this one waits or runs."""
        self.check_idle()
        begun = await past.remembered(session, satellite.api)
        self.check_idle()
        self._stop_listening()
        if self._looking is not None:
            self._looking.cancel()
        await self.session.close()
        self.inbox.turn(self.session.id, session.id)
        self.session, self.satellite = session, satellite
        self._preset.apply(satellite)
        self._stop_listening = session.listen(self.hear_session)
        self._stories, self._resumed, self._toured = {}, False, True
        self.begins_with = begun.begins_with
        self.picture.begin_anew(begun.items)

    def check_idle(self) -> None:
        """Refuse while something waits or runs: it belongs to the conversation that is open."""
        if self.is_busy or self.alive() - {call.id for call in self._calls() if call.session is not None}:
            raise Refusal(409, "busy", "the assistant is still at work", hint="answer its card, or stop it")

    def stop(self, *, turn: bool = False) -> None:
        """Stop what runs and keep what it has; when nothing runs, or it was told before, or at once: stop the turn."""
        running = [] if turn else [call for call in self._calls() if call.status == "running" and not call.stopping]
        for call in running:
            self.cancel(call.id)
        if not running and self._turn is not None:
            self._left_off = True
            self._turn.cancel()

    async def stop_everything(self, by: Answerer) -> str:
        """Deny what waits and cancel what runs, of all programs on this memory. Says what became of it, marked."""
        stopped = await self.session.stop(by)
        self.stop(turn=True)
        return "\n".join(stopped.words())

    def cancel(self, call_id: str) -> None:
        """Stop one call, and keep what it has."""
        call = self.items.get(call_id)
        if not isinstance(call, views.CallItem) or call.status not in ("running", "waiting"):
            raise Refusal(409, "not_running", "this call does not run any more")
        self.session.cancel(call_id)
        story = self._story(call_id)
        story.stopping()
        self.show(story.item)

    async def resolve(self, call_id: str, decision: Decision, by: str, word: str | None) -> str:
        """Decide about a call whose end is not known. Says what became of it."""
        if decision == "again" and (started := (await self.session.journal.life(call_id)).started):
            check_again(started["tool"], word)
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
        if isinstance(call, views.CallItem):
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

    async def choose_model(self, address: str, name: str, key: str) -> responses.TriedModel:
        """Try another model, and keep it when it answers. It does so from the next message on."""
        if self.model_form is None:
            raise Refusal(409, "configured", "the model is named where this was started; change it there")
        tried = await self.model_form.choose(address, name, key)
        if self.is_busy or not self._take_model():
            self.feed.tell("settings", self.settings())
        return replace(tried, event=self.feed.last_id)

    async def close(self) -> None:
        """Leave: the turn that runs is stopped, and the windows are told."""
        self._stop_listening()
        for task in (self._looking, self._turn):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        self.feed.close()

    def _take_model(self) -> bool:
        """Let the model answer that a person chose. Never in the middle of a turn: that is the other one's."""
        words = self.model_form.take_next() if self.model_form else None
        if words is None or self.model_form is None:
            return False
        self._model, self._is_rehearsal, self._presets = words, False, self.model_form.presets
        remove_tour(self.session.registry)
        self.choose(self._preset.preset.name)
        return True

    def _check_sayable(self, text: str) -> None:
        check_said(text)
        if self.is_busy:
            raise Refusal(409, "busy", "the assistant is still at work", hint="answer its card, or stop it")

    def _say_it(self, text: str, window: str) -> str:
        """Show the person's words; the id of the item."""
        shown = visible(text)
        self._message("you", shown, window=window, raw=None if shown == text else text)
        return f"m{self._messages}"

    async def _ask(
        self, said: str, text: str, *, back_to: int | None = None, done: Sequence[views.CallItem] = ()
    ) -> Ended | None:
        """Take the person's words to the model, from where the conversation is or from an earlier turn."""
        if self.model_form is not None and (first := self.model_form.first_turn()) is not None:
            back_to = first
        if back_to is not None:
            await self.satellite.go_back(back_to)
            if done:
                self.satellite.tell(went_back(done))
        turn = await self.satellite.next_turn()
        if isinstance(item := self.items.get(said), views.MessageItem):
            self.show(replace(item, turn=turn))
        return await self.satellite.say(text)

    def _work(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        if self.is_busy:
            work.close()
            return
        self._turn = asyncio.get_running_loop().create_task(self._attend(work))
        self.feed.tell("busy", views.BusyState(True))

    async def _attend(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        """Let a turn take its course, and say how it ended."""
        try:
            ended = await work
            used = "" if ended is None else ended.used
            # The rehearsal model is none, and its count would be ours.
            counted = None if ended is None or self._is_rehearsal else ended.counted
            self.picture.end_writing(used=used, tokens=counted, reasoning=self._thought)
            self._thought = ""
            if ended is not None and not self._is_rehearsal:
                await tokens.keep(self.session, self.satellite.conversation_id, ended)
            if ended is not None and ended.words:
                self.note(ended.words)
        except asyncio.CancelledError:
            await self._stopped()
        except Exception as problem:
            self._tell_of(problem)
        finally:
            self._left_off = False
            self._turn = None
            self._take_model()
            self.feed.tell("busy", views.BusyState(False))

    async def _tour(self) -> Ended | None:
        await self.satellite.say("tour")
        self.picture.end_writing()
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

    def _calls(self) -> list[views.CallItem]:
        return [item for item in self.items.values() if isinstance(item, views.CallItem)]

    def _story(self, call_id: str) -> Story:
        """The story of a call that goes on. After a restart it begins with what the item says."""
        story = self._stories.get(call_id)
        if story is None:
            known = self.items.get(call_id)
            story = Story(known) if isinstance(known, views.CallItem) else Story.begin(call_id)
            self._stories[call_id] = story
        return story

    def _story_of(self, call_id: str, tool: str) -> Story:
        """The same, with the looks of a tool that asked nothing before."""
        story = self._story(call_id)
        known = self.session.registry.find(tool)
        story.introduce(known.manifest if known else None)
        return story

    def _end(self, outcome: Outcome, at: float) -> None:
        story = self._story(outcome.call_id)
        story.ended(outcome, at)
        self.show(story.item)
        del self._stories[outcome.call_id]

    def _message(self, by: Literal["you", "lastword"], text: str, **more: Any) -> None:
        self._messages += 1
        self.show(views.MessageItem(id=f"m{self._messages}", by=by, text=text, at=self._clock(), **more))

    def _say(self, piece: str) -> None:
        """More of the model's words."""
        if not self.picture.is_writing:
            self._messages += 1
            begun = views.MessageItem(id=f"m{self._messages}", by="assistant", at=self._clock(), open=True)
            self.picture.write(begun)
        self.picture.add(piece)
