"""Who talks: the model, the preset it works under, and its turn, one at a time.

A person says something, or goes back to what they said before; the satellite takes it to the model, and what comes back
is shown. What was called meanwhile stays done, whatever is taken back. What does not live here: calls and cards
(conversation.py), and trying another model (model_form.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lastword.card import one_line, views, visible
from lastword.errors import LastWordError, StoreError
from lastword.server import Refusal
from lastword.talk import Api, Ended, Heard, ResolvedPreset, Said, Satellite, Thought, Tour
from lastword.web import history

if TYPE_CHECKING:
    from lastword.card import responses
    from lastword.session import Session
    from lastword.web.model_form import ModelForm
    from lastword.web.shared_items import SharedItems

# A message that a person types or pastes.
MAX_SAID = 100_000
# Of the calls that stay done when a person goes back, what the model is told. They are all in the timeline.
MAX_TOLD = 50


@dataclass(frozen=True, slots=True)
class AssistantSetup:
    """Who answers when the page is opened."""

    presets: Mapping[str, ResolvedPreset]
    chosen: str
    """The name of the preset to begin with."""
    model: str
    """Which model it is, in words."""
    is_rehearsal: bool = False
    form: ModelForm | None = None
    """For choosing another model, where that is possible."""


class Assistant:
    """The one who talks with the person in all windows."""

    def __init__(
        self, session: Session, api: Api, setup: AssistantSetup, shown: SharedItems, *, has_servers: bool = False
    ) -> None:
        self.api = api
        self._has_servers = has_servers
        self._shown = shown
        self._feed = shown.feed
        self._form = setup.form
        self._presets = setup.presets
        self._preset = setup.presets[setup.chosen]
        self._model = setup.model
        self._is_rehearsal = setup.is_rehearsal
        self._thought = ""
        self._turn: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._resumed = self._toured = self._left_off = False
        self.satellite = self._satellite_of(session)

    def go_to(self, session: Session) -> None:
        """Talk in another conversation from now on."""
        self.satellite = self._satellite_of(session)
        self._resumed, self._toured = False, True

    def _satellite_of(self, session: Session) -> Satellite:
        satellite = Satellite(session, self.api, hear=self.hear)
        satellite.use(self._preset)
        return satellite

    @property
    def is_busy(self) -> bool:
        """Whether the model or a tool works, or a card of theirs waits."""
        return self._turn is not None

    def check_idle(self) -> None:
        """Refuse while it works."""
        if self.is_busy:
            raise busy()

    def settings(self) -> views.Settings:
        """How the assistant works now, in plain words."""
        return views.Settings(
            model=visible(self._model),
            rehearsal=self._is_rehearsal,
            preset=self._preset.preset.name,
            presets=tuple(
                views.PresetChoice(
                    name=each.preset.name,
                    auto_approve=each.preset.auto_approve,
                    protocol=each.protocol,
                    model=one_line(each.model, 80),
                )
                for each in self._presets.values()
            ),
            tools=tool_entries(self.satellite.session),
            can_choose_model=self._form is not None,
            has_servers=self._has_servers,
            next_model=self._form.next_model if self._form else "",
        )

    def tell_settings(self) -> None:
        """Let every window know how it works now."""
        self._feed.tell("settings", self.settings())

    def hear(self, heard: Heard) -> None:
        """What the satellite has to say while it works."""
        match heard:
            case Said(text):
                self._shown.write(text)
            case Thought(text):
                self._thought = visible(text)
            case _:
                if heard.takes_back:
                    self._shown.end_writing(keep=False)
                self._shown.note(heard.words)

    # What people do.

    def welcome(self, surface: views.Surface) -> None:
        """A window was opened: go on with what was left. With nothing but the rehearsal model, begin its tour."""
        can_tour = self._is_rehearsal and self.satellite.session.registry.find(Tour.NOTE) is not None
        if surface == "page" and can_tour and not self._toured and not self._shown.items and not self.is_busy:
            # Only a page begins by itself: at a prompt the person may be typing already.
            self._toured = self._resumed = True
            self._work(self._tour())
        elif not self._resumed:
            self._resumed = True
            self._looking = asyncio.get_running_loop().create_task(self._resume())

    def say(self, text: str, window: str = "", instead: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Take the person's words to the model, said in this window. `instead`: what we do ourselves at these words."""
        text = self._sayable(text)
        self._resumed = self._toured = True
        self.stop_looking()  # What was left goes to the model with this.
        said = self._show_said(text, window)
        self._work(self._ask(said, text) if instead is None else instead())

    def again(self, message_id: str, text: str | None, window: str = "") -> None:
        """Go on from a message of the person's, said once more or in other words. What was called since stays done."""
        said = self._shown.items.get(message_id)
        if not isinstance(said, views.MessageItem) or said.by != "you":
            raise Refusal(409, "no_such_message", "this message is not there any more", param="message")
        text = self._sayable(said.raw or said.text if text is None else text)
        items = list(self._shown.items.values())
        since = items[items.index(said) :]
        calls = [item for item in since if isinstance(item, views.CallItem) and item.session is None]
        done = [call for call in calls if call.end is not None or call.status == "doubt"]
        for item in since:
            if isinstance(item, views.MessageItem):
                self._shown.hide(item.id)
        if done:
            count = f"{len(done)} call{'' if len(done) == 1 else 's'}"
            self._shown.note(f"You went back to an earlier message. What was called since stays done: {count}.")
        self._work(self._ask(self._show_said(text, window), text, back_to=said.turn, done=done))

    def stop(self) -> None:
        """Cut the turn short, if there is one."""
        if self._turn is not None:
            self._left_off = True
            self._turn.cancel()

    def choose(self, preset: str) -> None:
        """Work under this preset from now on."""
        resolved = self._presets.get(preset)
        if resolved is None:
            raise Refusal(400, "no_such_preset", f"there is no preset {one_line(preset, 60)}", param="name")
        self._preset = resolved
        self.satellite.use(resolved)
        self.tell_settings()

    async def choose_model(self, address: str, name: str, key: str) -> responses.TriedModel:
        """Try another model, and keep it when it answers. It does so from the next message on."""
        if self._form is None:
            raise Refusal(409, "configured", "the model is named where this was started; change it there")
        tried = await self._form.choose(address, name, key)
        if self.is_busy or not self._take_model():
            self.tell_settings()
        return tried

    def stop_looking(self) -> None:
        """Do not go on with what was left: it is not of the conversation that is open now, or goes along with it."""
        if self._looking is not None:
            self._looking.cancel()

    async def close(self) -> None:
        """Leave: the turn that runs is stopped."""
        for task in (self._looking, self._turn):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})

    # Its turn.

    def _sayable(self, text: str) -> str:
        """What can be said now. Refused when it is empty or too long, and while the assistant works."""
        text = text.strip()
        if not text:
            raise Refusal(400, "nothing_said", "the message is empty")
        if len(text) > MAX_SAID:
            raise Refusal(413, "too_long", f"the message is longer than {MAX_SAID:,} characters")
        self.check_idle()
        return text

    def _show_said(self, text: str, window: str) -> str:
        """Show the person's words; the id of the item."""
        shown = visible(text)
        return self._shown.say("you", shown, window=window, raw=None if shown == text else text)

    async def _ask(
        self, said: str, text: str, *, back_to: int | None = None, done: Sequence[views.CallItem] = ()
    ) -> Ended | None:
        """Take the person's words to the model, from where the conversation is or from an earlier turn."""
        if self._form is not None and (first := self._form.first_turn()) is not None:
            back_to = first
        if back_to is not None:
            await self.satellite.go_back(back_to)
            if done:
                self.satellite.tell(_went_back(done))
        turn = await self.satellite.next_turn()
        if isinstance(item := self._shown.items.get(said), views.MessageItem):
            self._shown.show(replace(item, turn=turn))
        return await self.satellite.say(text)

    def _work(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        if self.is_busy:
            work.close()
            return
        self._turn = asyncio.get_running_loop().create_task(self._attend(work))
        self._feed.tell("busy", views.BusyState(True))

    async def _attend(self, work: Coroutine[Any, Any, Ended | None]) -> None:
        """Let a turn take its course, and say how it ended."""
        try:
            ended = await work
            used = "" if ended is None else ended.used
            # The rehearsal model is none, and its count would be ours.
            counted = None if ended is None or self._is_rehearsal else ended.counted
            self._shown.end_writing(used=used, tokens=counted, reasoning=self._thought)
            self._thought = ""
            if ended is not None and not self._is_rehearsal:
                await history.keep_tokens(self.satellite.session, self.satellite.conversation_id, ended)
            if ended is not None and ended.words:
                self._shown.note(ended.words)
        except asyncio.CancelledError:
            await self._stopped()
        except Exception as problem:
            self._tell_of(problem)
        finally:
            self._left_off = False
            self._turn = None
            self._take_model()
            self._feed.tell("busy", views.BusyState(False))

    async def _tour(self) -> Ended | None:
        await self.satellite.say("tour")
        self._shown.end_writing()
        return await self.satellite.say("next")

    async def _stopped(self) -> None:
        """The turn was cut short."""
        if self._left_off:  # By a person, and not by the end of the program: it stays stopped.
            try:
                await self.satellite.leave_off()
            except Exception as problem:
                self._tell_of(problem)
        self._shown.note("Stopped. What was done is kept, and the model hears of it with your next message.")

    async def _resume(self) -> None:
        """Go on with what an earlier process left behind. The view is busy only once there is something."""
        try:
            unfinished = await self.satellite.is_unfinished()
        except Exception as problem:
            self._tell_of(problem)
            return
        if unfinished and not self.is_busy:
            self._shown.note("Going on with what was interrupted.")
            self._work(self.satellite.resume())

    def _tell_of(self, problem: Exception) -> None:
        """Say why the turn ended. A refusal says all there is to know; what broke is in the log as well."""
        if isinstance(problem, LastWordError) and not isinstance(problem, StoreError):
            self._shown.note(visible(str(problem)), problem=True)
        else:
            self._shown.tell_trouble("Something broke, and the assistant stopped", problem)

    def _take_model(self) -> bool:
        """Let the model answer that a person chose. Never in the middle of a turn: that is the other one's."""
        words = self._form.take_next() if self._form else None
        if words is None or self._form is None:
            return False
        self._model, self._is_rehearsal, self._presets = words, False, self._form.presets
        Tour(self.satellite.session.registry).remove()
        self.choose(self._preset.preset.name)
        return True


def busy() -> Refusal:
    """What it does now belongs to the conversation that is open."""
    return Refusal(409, "busy", "the assistant is still at work", hint="answer its card, or stop it")


def tool_entries(session: Session) -> tuple[views.ToolEntry, ...]:
    """The tools that the model may ask for."""
    return tuple(
        views.ToolEntry(
            tool=tool.name,
            name=one_line(tool.manifest.display_name),
            about=one_line(tool.manifest.description, 300),
            asks=tool.manifest.require_approval,
            auto_approve=tool.manifest.auto_approve is True,
            grantable=tool.manifest.auto_approve is not False,
            effect=tool.manifest.effect,
            parameters=tuple(one_line(parameter.name, 60) for parameter in tool.manifest.parameters),
            required=tuple(one_line(p.name, 60) for p in tool.manifest.parameters if p.required),
            secrets=tuple(one_line(p.name, 60) for p in tool.manifest.parameters if p.secret),
        )
        for tool in session.registry.all(with_editor=session.editor is not None)
    )


def _went_back(done: Sequence[views.CallItem]) -> str:
    """That these calls stay done although what was said after the message does not count any more."""
    ends = [(call.tool, call.end.kind if call.end else "nobody knows how it ended") for call in done[-MAX_TOLD:]]
    calls = "; ".join(f"{tool} ({end})" for tool, end in ends)
    return (
        "The person went back to an earlier message, and what was said after it does not count any more. "
        f"These calls were made after it and stay done: {calls}."
    )
