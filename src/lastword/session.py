"""A session: registry, state, approver, preset, journal and editor in one object that users hold."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from msgspec import UNSET

from lastword import values
from lastword.call import (
    Decision,
    Door,
    Home,
    Limits,
    OnQuestion,
    Setting,
    Stopped,
    Subscription,
    Undone,
    handler_for,
    recover,
    resolve,
    stop,
    take_back,
)
from lastword.call.events import Asked, Event, Finished
from lastword.consent import Answerer, ApprovalRequest, Approver, GrantTerms, Outcome, Preset, UserAction
from lastword.errors import SessionError
from lastword.journal import Journal, Life, data_of, open_as
from lastword.lazily import load_later
from lastword.rules import Explanation, GrantOffer, GrantPast, Grants, Policy, folder_beside
from lastword.store import refuse_if_watched
from lastword.tools import QuestionAnswer, State, StateOwner, ToolQuestion, ToolRegistry

if TYPE_CHECKING:
    from pathlib import Path

    from lastword import runs
    from lastword.editor import ScriptEditorProvider
    from lastword.runs import Run
    from lastword.script import ScriptLimits
else:
    # The language is a third of the start-up time, and a session without scripts never needs it.
    runs = load_later("lastword.runs")

T = TypeVar("T")

_STATE = (State.SET, State.DESCRIBED)


class Session(StateOwner):
    """One conversation's worth of tools. The same id reopens it, with its state, as long as its journal stands."""

    def __init__(
        self,
        registry: ToolRegistry,
        id: str | None = None,
        approver: Approver | None = None,
        preset: Preset | None = None,
        journal: Journal | None = None,
        state: dict[str, Any] | None = None,
        editor: ScriptEditorProvider | None = None,
        *,
        limits: Limits | None = None,
        deps: Any = None,
        user: str | None = None,
        on_question: OnQuestion | None = None,
        policy: Policy | None = None,
        principal: str | None = None,
    ) -> None:
        """`deps` and `user` reach tools as `context.deps` and `context.user`. The journal knows the user by a digest.

        `on_question` answers what running tools ask; without it, whoever the approver names for that. `policy` has the
        rules that hold; without it there are none (docs/rules.md). `principal` says whose session it is; without it,
        that of whoever sits at its journal.
        """
        self.id = id or values.new_id()
        self._approver = approver
        self._is_new = id is None
        self._opened = self._closed = False
        # A copy, and checked: what JSON cannot hold is refused here, and not in the middle of the first call.
        self._starting_state: dict[str, Any] = values.plain(state or {})
        self._opening = asyncio.Lock()
        self._journal = journal or Journal()
        self._state = State(lambda kind, data, call_id: self._journal.note(self.id, kind, call_id, data))
        preset, limits = preset or Preset(), limits or Limits()
        whose = self._journal.people.me if principal is None else principal
        given = (preset, editor, limits, deps, user, policy, whose)
        self._setting = Setting(self.id, registry, self._journal, self._state, *given)
        self._door = Door(
            self._setting, approver, on_question or handler_for(approver), lambda: self._subscription.listen()
        )
        self._subscription = Subscription(self._door)
        self._home = Home(self.id, self._loops)

    @property
    def registry(self) -> ToolRegistry:
        return self._setting.registry

    @property
    def journal(self) -> Journal:
        return self._journal

    @property
    def principal(self) -> str:
        """Whose it is: its cards and runs carry this name. Empty where nobody was named."""
        return self._setting.principal

    @property
    def preset(self) -> Preset:
        return self._setting.preset

    @preset.setter
    def preset(self, preset: Preset) -> None:
        refuse_if_watched("change the preset")
        self._setting.preset = preset

    @property
    def policy(self) -> Policy | None:
        return self._setting.policy

    @policy.setter
    def policy(self, policy: Policy | None) -> None:
        refuse_if_watched("change the rules")
        self._setting.policy = policy

    @property
    def editor(self) -> ScriptEditorProvider | None:
        return self._setting.editor

    def beside(self, id: str | None = None) -> Session:
        """Another session with the same tools, approver, preset, journal and editor, and a state of its own."""
        return Session(
            self.registry,
            id=id,
            approver=self._approver,
            preset=self.preset,
            journal=self._journal,
            editor=self.editor,
            limits=self._setting.limits,
            deps=self._setting.deps,
            user=self._setting.user,
            policy=self._setting.policy,
            principal=self.principal,
        )

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any] | None = None,
        *,
        origin: str = "",
        call_id: str | None = None,
        problem: str | None = None,
    ) -> Outcome:
        """Ask for one tool. Whatever happens is in the outcome; nothing sensitive happens before somebody said yes.

        Whoever gives the call an id of their own may ask again after a crash: what was done is told, not done again.
        `problem` stands on its card, as the reason for asking about the same once more.
        """
        if not self._opened:
            await self.open()
        if call_id is not None:
            return await self._call_again(call_id, tool, arguments, origin, problem)
        result = self._door.carry_out(values.new_id(), tool, arguments, origin, problem=problem)
        return result if isinstance(result, Outcome) else await self._stoppable(result)

    async def _call_again(
        self, call_id: str, tool: str, arguments: dict[str, Any] | None, origin: str, problem: str | None
    ) -> Outcome:
        """A call whose id was given: perhaps for the first time."""
        with self._journal.holding("call", call_id):
            life = await self._journal.life(call_id)
            return await self._stoppable(recover(self._door, life, tool, arguments, origin, problem=problem))

    def call_sync(
        self, tool: str, arguments: dict[str, Any] | None = None, *, origin: str = "", call_id: str | None = None
    ) -> Outcome:
        """`call` for code without an event loop."""
        refuse_if_watched("call ", tool)
        return self.run_sync(self.call(tool, arguments, origin=origin, call_id=call_id))

    def run_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for anything else of this session in code without an event loop: `run_sync(session.in_doubt())`."""
        if self._closed:
            work.close()
            raise _closed(self.id)
        return self._home.run(work)

    async def run_script(
        self,
        text: str,
        variables: Mapping[str, Any] | None = None,
        check: bool = True,
        *,
        name: str | None = None,
        limits: ScriptLimits | None = None,
        run_id: str | None = None,
        denied: Collection[tuple[str, bytes]] = (),
    ) -> Run:
        """Carry out a NuwaScript. A script with definite errors does not start, unless `check` is off.

        Whoever gives the run an id of their own may ask again after a crash: it goes on where it was. `denied`: calls
        that a person has just said no to, as tools and canonical arguments; they hear that no, and nobody is asked.
        """
        refuse_if_watched("run a script")
        if not self._opened:
            await self.open()
        begun = runs.start(
            self._door, text, variables, checked=check, name=name, limits=limits, run_id=run_id, denied=denied
        )
        return await self._stoppable(begun)

    def run_script_sync(
        self, text: str, variables: Mapping[str, Any] | None = None, check: bool = True, *, name: str | None = None
    ) -> Run:
        """`run_script` for code without an event loop."""
        refuse_if_watched("run a script")
        return self.run_sync(self.run_script(text, variables, check, name=name))

    async def resume(self, run_id: str) -> Run:
        """Go on with a run that was interrupted. What was done is not done again."""
        refuse_if_watched("run a script")
        await self.open()
        return await self._stoppable(runs.resume(self._door, run_id))

    async def in_doubt(self) -> list[Life]:
        """The calls of this session that were started and of which nobody knows how they ended."""
        return await self._journal.in_doubt(self.id)

    async def resolve(self, call_id: str, decision: Decision, by: str = "resolve", value: Any = UNSET) -> Outcome:
        """Decide about a call in doubt: run it again, take it as done, or give it up.

        Whoever takes it as done may say what `value` it gave; a script that goes on gets that, else null.
        """
        refuse_if_watched("decide about the call ", call_id)
        await self.open()
        return await self._stoppable(resolve(self._door, call_id, decision, by, value))

    async def content(self, call_id: str, digest: str) -> bytes:
        """The bytes of what a call returned beside its value, by a digest of `Outcome.content`; proven to be those."""
        return (await self._journal.content(call_id, digest))[1]

    async def undo(self, call_id: str, by: str = "undo") -> Undone:
        """Restore the files that a call changed, byte for byte: all of them, or none and an error that says why."""
        refuse_if_watched("take back the call ", call_id)
        if not self._opened:
            await self.open()
        if call_id in self._setting.running:
            raise SessionError("this call is still running", place=call_id, hint="cancel it, then undo it")
        return await take_back(self._journal, self._setting.editor_in, call_id, by=by)

    def cancel(self, call_id: str) -> None:
        """Stop a running call and keep what it has, or close the question that waits for it. From any thread."""
        refuse_if_watched("cancel the call ", call_id)
        self._home.tell(self._door.desk.cancel, call_id)

    def detach(self, call_id: str) -> bool:
        """Leave a question waiting when the host goes: whoever awaited its call gets `Detached`, and no end is written.

        It can be answered from elsewhere, and asking for the call again with the same id goes on with it. From any
        thread; False when no card of this call waits here.
        """
        refuse_if_watched("leave the card of ", call_id)
        return bool(self._home.ask(lambda: self._door.desk.leave(call_id)))

    async def card_for(self, call_id: str) -> ApprovalRequest | Outcome:
        """The card of a call as soon as it waits for an answer, or the call's end when it never asks or has ended.

        For hosts that show cards themselves. The call may be asked for before or after this.
        """
        if not self._opened:
            await self.open()
        found: asyncio.Future[ApprovalRequest | Outcome] = asyncio.get_running_loop().create_future()

        def hear(event: Event) -> None:
            if found.done():
                return
            if isinstance(event, Asked) and event.request.call_id == call_id:
                found.set_result(event.request)
            elif isinstance(event, Finished) and event.outcome.call_id == call_id:
                found.set_result(event.outcome)

        stop = self.listen(hear)
        try:
            if waiting := self._door.desk.pending.get(call_id):
                return waiting.request
            if call_id not in self._setting.live:
                life = await self._journal.life(call_id)
                if life.finished is not None and not found.done():
                    return life.outcome()
            return await found
        finally:
            stop()

    async def stop(self, by: Answerer | str = "stop") -> Stopped:
        """Stop everything, of all sessions and programs on this journal: deny what waits, and cancel what runs.

        Nothing that was asked for before can be allowed after it. What could not be stopped is in what it returns.
        """
        stopping = await stop(self._journal, Answerer.named(by), revoke=[Grants(self._journal).revoke_all])
        await self._subscription.hear_stop()
        return await stopping.settled()

    def pending(self) -> list[ApprovalRequest]:
        """The cards that wait for an answer here, oldest first. From any thread."""
        return [waiting.request for waiting in list(self._door.desk.pending.values())]

    def answer(self, call_ids: str | Iterable[str], action: UserAction, by: Answerer | str = "answer") -> list[str]:
        """Answer one card or several at once, from any thread. Returns the calls whose card was still waiting."""
        refuse_if_watched("answer a card")
        ids, who = [call_ids] if isinstance(call_ids, str) else list(call_ids), Answerer.named(by)
        return (
            self._home.ask(lambda: [call_id for call_id in ids if self._door.desk.answer(call_id, action, who)]) or []
        )

    def grant_offer(self, call_id: str) -> GrantOffer | str:
        """What could be granted from a card that waits here, or why nothing can (rules/terms.py says how to)."""
        card = next((card for card in self.pending() if card.call_id == call_id), None)
        return "its card does not wait here" if card is None else GrantOffer.of(card, self._folder(card))

    def would_settle(self, call_id: str, terms: GrantTerms) -> list[ApprovalRequest]:
        """The other cards that wait here and that a grant from this one would answer, if it lists them."""
        card = next((card for card in self.pending() if card.call_id == call_id), None)
        return [] if card is None else GrantOffer.settled_by(terms, card, self.pending(), self._folder(card))

    async def would_have_covered(self, call_id: str, terms: GrantTerms) -> GrantPast:
        """Of the last cards of the same tool, how many a grant from this one would have answered."""
        cards = {card.call_id: card for card in self.pending()}
        card = cards.get(call_id)
        return await GrantPast.of(self._journal, card, terms, self._folder(card), cards) if card else GrantPast()

    async def explain(self, tool: str, arguments: Mapping[str, Any]) -> Explanation:
        """Who would decide about a call now, and why: a rule, a grant, the preset, or you. Nothing is asked or done."""
        session = self if self._is_new else await self.open()  # An old one learns then whose it is.
        found, call = session._door.admit(values.new_id(), tool, arguments, "")
        return await session._door.authority.explain(found, call)

    def _folder(self, card: ApprovalRequest) -> Path:
        """The folder that a card's paths and commands are meant from."""
        return folder_beside(card, self.registry, self.editor)

    def questions(self) -> list[ToolQuestion]:
        """What running tools ask and nobody has answered yet, oldest first. From any thread."""
        return [waiting.question for waiting in list(self._door.desk.questions.values())]

    def answer_question(self, question_id: str, answer: QuestionAnswer, by: Answerer | str = "answer") -> bool:
        """Answer what a running tool asks, from any thread. False when it does not wait any more.

        Raises an error that says what does not fit; the question goes on waiting then.
        """
        refuse_if_watched("answer a question")
        who = Answerer.named(by)
        return bool(self._home.ask(lambda: self._door.desk.answer_question(question_id, answer, who)))

    def events(self) -> AsyncIterator[Event]:
        """Reports, cards and outcomes as they happen."""
        return self._setting.audience.events()

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with every event, on the session's event loop; returns what stops it."""
        refuse_if_watched("listen to the session")  # What it hears later it hears where nobody watches.
        return self._setting.audience.listen(listener)

    async def open(self) -> Self:
        """Bring back what this session knew. Happens by itself at the first call."""
        if self._closed:
            raise _closed(self.id)
        async with self._opening:  # Two first calls at once must not bring old state back over each other's changes.
            if not self._opened:
                self._home.loop = asyncio.get_running_loop()
                is_known = not self._is_new and await self._journal.store.read(stream=self.id, limit=1)
                self._setting.principal = await open_as(self._journal, self.id, self.principal, is_known=bool(is_known))
                for record in await self._journal.standing(_STATE, self.id) if is_known else ():
                    self._state.restore(record.kind, data_of(record))
                self._opened = True
                if self.policy is not None and self.policy.files:
                    self._journal.note(self.id, "policy_loaded", "", self.policy.facts())
                if not is_known:
                    for key, value in self._starting_state.items():
                        if not self._state.has(key):
                            self._state.set(key, value, None, "")
        return self

    async def close(self) -> None:
        """Stop listening. The journal stays open: it belongs to whoever made it."""
        refuse_if_watched("close the session")
        await self._end()
        self._subscription.close()

    def close_sync(self) -> None:
        """`close` for code that used `call_sync`."""
        refuse_if_watched("close the session")
        self._home.stop(self._end)
        self._closed, self._opened = True, False  # Also where nothing ran in the background.

    async def _end(self) -> None:
        """Nothing is called from here on. What was granted for this session, or for a run in it, is over with it."""
        if self._setting.gave or not self._is_new:  # Opened again, it may have been given before.
            await Grants(self._journal).end_session(self.id)
        self._closed, self._opened = True, False

    def __enter__(self) -> Self:
        self.run_sync(self.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close_sync()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def _before_change(self, what: str) -> None:
        super()._before_change(what)
        if not self._opened and not self._is_new:
            raise SessionError(
                f"cannot {what} before the session is open", place=self.id, hint="`async with session:` opens it"
            )

    async def _stoppable(self, work: Awaitable[T]) -> T:
        """Wait for something, and hear of it when everything is stopped meanwhile, by whichever program."""
        subscription, waiting, loop = self._subscription, object(), asyncio.get_running_loop()
        subscription.waited_for.add(waiting)
        if subscription.looks_on is not loop:
            subscription.look_on(loop)
        try:
            return await work
        finally:
            subscription.waited_for.discard(waiting)

    def _loops(self) -> Iterator[asyncio.AbstractEventLoop]:
        """The loops on which something of this session waits or runs."""
        yield from (card.answer.get_loop() for card in list(self._door.desk.pending.values()))
        yield from (execution.loop for execution in list(self._setting.running.values()))


def _closed(session_id: str) -> SessionError:
    return SessionError("the session is closed", place=session_id, hint="open a new one with the same id")
