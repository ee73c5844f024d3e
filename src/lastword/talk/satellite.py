"""The loop: say something to the server, carry out what the model asks for, send the result, until it answers in words.

The server talks to the model and never runs a tool; this runs tools and never talks to the model. Every call goes
through the session's one door.

What makes a lost connection and a dead process harmless: a call is named by its conversation, its turn and the id of
its request, so the same request always means the same call, and the journal knows what became of it. Before a result
is sent it is on disk. Whether it arrived is asked of the server, which remembers what it still waits for; a turn that
it has, with what we sent in it, is not sent again. After an interruption the loop looks at both memories and goes on.

What does not live here: the protocol's words (replies.py, feedback.py, toolprompt.py), what a turn may use up
(turn.py), the wire (apiclient.py), and any screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lastword import values
from lastword.errors import SessionError
from lastword.runs import conceal_script
from lastword.talk import feedback, turn
from lastword.talk.apiclient import Api, ApiError, ConnectionLost
from lastword.talk.constraint import constraint
from lastword.talk.feedback import Images, Pictures, Repetition
from lastword.talk.replies import Pieces, Protocol, Reply, Request, near_script, remembered, spoken_in, was_said
from lastword.talk.toolprompt import native_tools, tool_prompt
from lastword.talk.turn import CONFIGURED, Constrain, Heard, Said

if TYPE_CHECKING:
    from lastword.consent import Outcome
    from lastword.session import Session

ORIGIN = "the assistant"

# The wait before the first further attempt; each later one is twice as long, up to the longest.
RETRY_SECONDS = 0.25
MAX_RETRY_SECONDS = 8.0

Message = dict[str, Any]


class Satellite:
    """A session's tools at the service of a conversation."""

    TOOLS_USED = "tools_used"
    """The kind of the records that say which tools ran for an answer."""
    WENT_BACK = Repetition.WENT_BACK
    PROGRAM = feedback.PROGRAM

    def __init__(
        self,
        session: Session,
        api: Api,
        *,
        protocol: Protocol = "json",
        model: str = CONFIGURED,
        persona: str | None = None,
        images: Images = "auto",
        bounds: turn.Bounds | None = None,
        constrain: Constrain = "auto",
        clock: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        hear: Callable[[Heard], None] = lambda heard: None,
    ) -> None:
        self.session = session
        self.protocol = protocol
        self.model = model
        self.persona = persona
        self.bounds = bounds or turn.Bounds()
        self.constrain = constrain
        self._clock = clock
        self.conversation_id = session.id
        self.api = self._api = api
        self._hear = hear
        self._notes: list[str] = []
        self.pictures = Pictures(session.journal, images)
        self._turns = self._said_in = 0  # and the turn in which the person spoke last
        self._unanswered: Reply | None = None
        """The reply whose requests still wait for their results."""
        self._known = False
        """Whether the two fields above are what the server has."""
        self._begun = False
        self._told_left_out = False
        self._asked = Repetition(session.registry)
        self._one_at_a_time = asyncio.Lock()

    def use(self, preset: turn.ResolvedPreset) -> None:
        """Work under this preset from now on."""
        self.session.preset = preset.preset
        self.protocol, self.model, self.persona = preset.protocol, preset.model, preset.persona
        self.bounds, self.constrain, self.pictures.images = preset.bounds, preset.constrain, preset.images

    async def say(self, text: str) -> turn.Ended:
        """Say something, and let the model and the tools work until the model answers in words or a bound is reached.

        Results that an interruption kept from the model go with it.
        """
        async with self._one_at_a_time:
            await self._look()
            self._said_in = self._turns + 1
            said = ({"role": "user", "content": words} for words in (*self._notes, text))
            messages = [*await self._results_so_far(), *said]
            return await self._converse(messages)

    async def first_reply(self, text: str) -> Reply:
        """Say something, and give back what the model replies, without carrying out anything of it."""
        async with self._one_at_a_time:
            await self._look()
            return await self._send([{"role": "user", "content": text}], turn.Spent(self.bounds))

    async def is_unfinished(self) -> bool:
        """Whether an earlier process left something behind that the model waits for, and no person had stopped it."""
        await self._look()
        return self._unanswered is not None and not await self._was_left_off(self._unanswered)

    async def resume(self) -> turn.Ended | None:
        """Go on with what an earlier process left behind; None when nothing waits, or the person had stopped it."""
        async with self._one_at_a_time:
            return await self._converse([]) if await self.is_unfinished() else None

    async def leave_off(self) -> None:
        """The person stopped the turn. Its results go with their next message; no process goes on with it by itself."""
        # A turn that was under way may be the server's by now; it is the one after the last that we know of.
        facts = {"turn": self._turns + (not self._known)}
        self.session.journal.note(self.session.id, "left_off", self.conversation_id, facts)
        await self.session.journal.store.commit()

    async def next_turn(self) -> int:
        """The number of the turn that comes next."""
        async with self._one_at_a_time:
            await self._look()
            return self._turns + 1

    async def go_back(self, turn: int) -> None:
        """Go on from before this turn. What was called since stays done; what was only asked for is abandoned."""
        async with self._one_at_a_time:
            await self._look()
            if turn <= self._turns:
                # Before it happens: what counted for turns that are given out anew must not be taken for theirs.
                self.session.journal.note(self.session.id, self.WENT_BACK, self.conversation_id, {"turn": turn})
                self._turns = await self._api.rewind(self.conversation_id, turn - 1)
                self._unanswered = None

    def tell(self, words: str) -> None:
        """Let the model know, with the next message, of something that happened outside the conversation."""
        self._notes.append(feedback.from_program(words))

    async def _converse(self, messages: list[Message]) -> turn.Ended:
        spent = turn.Spent(self.bounds)
        spent.had_tools = bool(self.session.registry.all(with_editor=self.session.editor is not None))
        self._asked = Repetition(self.session.registry)
        if not messages:
            await self._asked.recall(self.session.journal, self.session.id, self.conversation_id, self._said_in)
        reply = self._unanswered
        stops = await self.session.journal.stops()
        try:
            while True:
                if messages:
                    spent.check()
                    reply = await self._send(messages, spent)
                assert reply is not None
                await self._check_stopped(stops)  # while the model thought
                messages = await self._answer(reply, spent)
                await self._check_stopped(stops)  # while its calls ran
                if not messages:
                    ended = spent.ended(reply.text, None, reply.turn)
                    if ended.had_tools:
                        facts = {"turn": reply.turn, "tools": ended.tools}
                        self.session.journal.note(self.session.id, self.TOOLS_USED, self.conversation_id, facts)
                    return ended
        except turn.BoundReached as reached:
            return spent.ended("" if reply is None or reply.waits else reply.text, reached.bound, self._turns)

    async def _check_stopped(self, stops: int) -> None:
        """Go no further when a person has stopped everything since, here or in another program."""
        if await self.session.journal.stops() != stops:
            await self.leave_off()
            raise turn.BoundReached("stop")

    # Asking the model.

    async def _send(self, messages: list[Message], spent: turn.Spent) -> Reply:
        """One turn, however many attempts it takes. The server has it once."""
        if any(message["role"] == "tool_result" for message in messages):
            await self.session.journal.store.commit()  # What the model hears of is remembered first.
        attempt = 0
        while True:
            try:
                with spent.waiting():
                    async with asyncio.timeout(spent.seconds_left):
                        reply = await self._attempt(messages, again=attempt > 0)
                break
            except TimeoutError:
                raise turn.BoundReached("seconds") from None
            except (ConnectionLost, ApiError) as problem:
                if not problem.may_pass or (number := spent.reconnect()) is None:
                    raise
                attempt += 1
                self._hear(turn.Retrying(problem, attempt))
                await asyncio.sleep(min(RETRY_SECONDS * 2 ** (number - 1), MAX_RETRY_SECONDS))
        spent.take(reply)
        await self._delivered(messages, reply)
        self._notes.clear()
        self._turns = reply.turn
        self._unanswered = reply if reply.waits else None
        self._known = True
        return reply

    async def _attempt(self, messages: list[Message], *, again: bool) -> Reply:
        if again:
            conversation = await self._api.conversation(self.conversation_id)
            turns = 0 if conversation is None else conversation["turns"]
            if conversation is not None and turns == self._turns + 1 and was_said(conversation, messages):
                # The turn arrived, and only its answer was lost.
                reply = remembered(conversation, self.protocol)
                assert reply is not None
                if not reply.waits:
                    self._hear(Said(reply.text))
                return reply
            if turns > self._turns:
                raise SessionError(
                    "somebody else has spoken in this conversation",
                    place=self.conversation_id,
                    hint="only one program at a time can go on with a session",
                )
            if turns < self._turns:
                self._begin_anew(messages)
        try:
            return await self._ask(messages)
        except ApiError as problem:
            if feedback.may_be_blind(problem) and any(map(feedback.is_picture_message, messages)):
                # Nothing of the turn is remembered yet. The results say in words what the images were.
                messages[:] = [message for message in messages if not feedback.is_picture_message(message)]
                reply = await self._ask(messages)
                self.pictures.blind.add(self.model)
                return reply
            if problem.code not in ("conversation_deleted", "conversation_not_found"):
                raise
            self._begin_anew(messages)
            return await self._ask(messages)

    async def _ask(self, messages: list[Message]) -> Reply:
        self._known = False  # Until the answer is whole, only the server knows whether it has this turn.
        prompt = tool_prompt(self.session, self.protocol, self.persona, self._clock())
        body: dict[str, Any] = {
            "model": self.model,
            "conversation_id": self.conversation_id,
            "tool_protocol": self.protocol,
            "messages": [{"role": "system", "content": prompt}, *messages],
        }
        if secrets := {tool.name: sorted(tool.secrets) for tool in self.session.registry.all() if tool.secrets}:
            body["secret_arguments"] = secrets
        if self.protocol == "native" and (tools := native_tools(self.session)):
            body["tools"] = tools
        if self.constrain == "auto" and (form := constraint(self.session, self.protocol)) is not None:
            body["constrain"] = form
        pieces = Pieces(self._turns + 1, self.protocol)
        async with aclosing(self._api.turn(body)) as chunks:
            async for chunk in chunks:
                if text := pieces.add(chunk):
                    self._hear(Said(text))
        reply = pieces.whole()
        if reply.reasoning:
            self._hear(turn.Thought(reply.reasoning))
        if reply.left_out_turns and not self._told_left_out:
            self._told_left_out = True
            self._hear(turn.Outgrown())
        return reply

    async def _delivered(self, messages: Sequence[Message], reply: Reply) -> None:
        """Write down which results the server has taken, each once."""
        journal, session_id = self.session.journal, self.session.id
        if not self._begun:
            journal.note(session_id, "conversation", self.conversation_id, {"id": self.conversation_id})
            self._begun = True
        if self._unanswered is None:
            return
        for message in messages:
            if message["role"] == "tool_result" and message["id"] not in reply.ignored:
                subject = self._id_of(self._unanswered, message["id"])
                facts = {"conversation": self.conversation_id, "request": message["id"], "turn": reply.turn}
                await journal.claim(session_id, "delivered", subject, facts, once=f"delivered:{subject}")

    # Carrying out what it asks for.

    async def _answer(self, reply: Reply, spent: turn.Spent) -> list[Message]:
        """Carry out what the reply asks for, in order, and give back what to send; nothing when it is words."""
        if reply.malformed_because is not None:
            spent.repair()
            reason = await self._told(reply)
            self._hear(turn.Repairing(reason))
            return [{"role": "user", "content": feedback.repair(reason, self.protocol), "repairs": True}]
        outcomes: list[Outcome] = []
        messages = [
            feedback.result_message(request, await self._call_tool(reply, request, spent, outcomes))
            for request in reply.requests
        ]
        if reply.script is not None:
            messages.append(
                feedback.result_message(reply.script, await self._run_script(reply, reply.script, spent, outcomes))
            )
        if any(request.problem for request in reply.requests):
            spent.repair()
        return messages + await self.pictures.messages(self.model, outcomes)

    async def _told(self, reply: Reply) -> str:
        """Why a message is no request. What it quotes of the message is stored, and must not hold a secret."""
        assert reply.malformed_because is not None
        kept = await conceal_script(self.session.registry, reply.text)
        if not kept.is_changed:
            return reply.malformed_because
        return near_script(kept.text, self.protocol, asks=False) or kept.clean(reply.malformed_because)

    async def _call_tool(self, reply: Reply, request: Request, spent: turn.Spent, outcomes: list[Outcome]) -> str:
        if request.problem is not None:
            return feedback.unreadable(request.problem)
        if request.lacks_secret:
            return await self._without_secret(reply, request)
        if (known := self._asked.outcome(request.name, request.arguments)) is not None:
            spent.repair()
            return feedback.call_result(known)
        problem = self._asked.problem(request.name, request.arguments)
        call_id = await self._named(reply, request)
        outcome = await self.session.call(
            request.name, request.arguments, origin=ORIGIN, call_id=call_id, problem=problem
        )
        spent.ran(outcome)
        outcomes.append(outcome)
        self._asked.remember(request.name, request.arguments, outcome)
        return feedback.call_result(outcome)

    async def _run_script(self, reply: Reply, request: Request, spent: turn.Spent, outcomes: list[Outcome]) -> str:
        if (known := self._asked.script_result(reply.text)) is not None:
            spent.repair()
            return known
        content, mistake = await self._run(reply, request)
        calls = await feedback.calls_of(self.session.journal, self._id_of(reply, request.id))
        for outcome in calls:
            spent.ran(outcome)
        outcomes += calls
        await self._asked.remember_script(reply.text, content, calls, self.session.journal)
        if mistake is not None:
            spent.repair()
            self._hear(turn.Repairing(mistake))
        return content

    async def _without_secret(self, reply: Reply, request: Request) -> str:
        """A request whose secret is gone: what became of its call before it went, or that it has to be sent again."""
        life = await self.session.journal.life(self._id_of(reply, request.id))
        if life.in_doubt:
            return feedback.call_result(feedback.unknown_end(life.call_id, request.name))
        return feedback.secret_is_gone() if life.finished is None else feedback.call_result(life.outcome())

    async def _run(self, reply: Reply, request: Request) -> tuple[str, str | None]:
        """Run a script; its result, and what the model did wrong, if it did."""
        run_id = await self._named(reply, request)
        if (known := await feedback.ended_script(self.session.journal, run_id)) is not None:
            return known
        if reply.lacks_secret:
            return await feedback.stopped_script(self.session.journal, run_id) or feedback.secret_is_gone(), None
        kept = await conceal_script(self.session.registry, reply.text)
        run = await self.session.run_script(reply.text, run_id=run_id, denied=self._asked.denied)
        calls = await feedback.calls_of(self.session.journal, run_id)
        doubtful = calls[-1].tool if run.status == "waiting" and calls else None
        problems = run.errors or ((run.error,) if run.error is not None else ())
        error = "\n\n".join(map(kept.told, problems)) or None
        output = [kept.clean(line) for line in run.output]
        said = feedback.script_result(run.status, output, error, calls, doubtful)
        return said, feedback.mistake(run.status, error, calls)

    async def _named(self, reply: Reply, request: Request) -> str:
        """The id of the call or run that this request means, written down before anything happens."""
        id = self._id_of(reply, request.id)
        facts = {"conversation": self.conversation_id, "turn": reply.turn, "request": request.id, "tool": request.name}
        await self.session.journal.claim(self.session.id, "requested", id, facts, once=f"requested:{id}")
        return id

    def _id_of(self, reply: Reply, request_id: str) -> str:
        # The turn belongs to it: some models' servers count their calls from zero in every message.
        named = values.canonical([self.session.id, self.conversation_id, reply.turn, request_id])
        return values.digest(named)[:32]

    async def _results_so_far(self) -> list[Message]:
        """The results of an interrupted reply that there are. What was not begun is left to be abandoned."""
        if (reply := self._unanswered) is None:
            return []
        outcomes: list[Outcome] = []
        results = [(request, await self._result_so_far(reply, request, outcomes)) for request in reply.requests]
        if reply.script is not None:
            journal, run_id = self.session.journal, self._id_of(reply, reply.script.id)
            ended = await feedback.ended_script(journal, run_id)
            results.append((reply.script, ended[0] if ended else await feedback.stopped_script(journal, run_id)))
            outcomes += await feedback.calls_of(journal, run_id)
        messages = [feedback.result_message(request, content) for request, content in results if content is not None]
        return messages + await self.pictures.messages(self.model, outcomes)

    async def _result_so_far(self, reply: Reply, request: Request, outcomes: list[Outcome]) -> str | None:
        if request.problem is not None:
            return feedback.unreadable(request.problem)
        if request.lacks_secret:
            return await self._without_secret(reply, request)
        life = await self.session.journal.life(self._id_of(reply, request.id))
        if life.finished is not None:
            outcomes.append(life.outcome())
            return feedback.call_result(outcomes[-1])
        if life.in_doubt:
            return feedback.call_result(await self.session.call(request.name, request.arguments, call_id=life.call_id))
        return None

    # Knowing where we are.

    async def _look(self) -> None:
        """Learn from the server and the journal where the conversation stands."""
        await self.session.open()
        if self._known:
            return
        if not self._begun:
            for record in await self.session.journal.standing("conversation", self.session.id):
                self.conversation_id, self._begun = record.subject, True
        conversation = await self._api.conversation(self.conversation_id)
        if conversation is None:
            if self._begun:
                self._begin_anew([])
            self._turns, self._unanswered = 0, None
        else:
            self._turns, self._said_in = conversation["turns"], spoken_in(conversation)
            reply = remembered(conversation, self.protocol)
            self._unanswered = reply if reply is not None and reply.waits else None
        self._known = True

    async def _was_left_off(self, reply: Reply) -> bool:
        since = await feedback.left_off_in(self.session.journal, self.session.id, self.conversation_id)
        return since is not None and since >= reply.turn

    def _begin_anew(self, messages: list[Message]) -> None:
        """The server has forgotten the conversation. Results that it does not wait for any more become words."""
        # An id of its own: the turns are counted from one again, and must not name the calls of the old conversation.
        self.conversation_id = f"{self.session.id[:100]}.{values.new_id(8)}"
        self._turns, self._unanswered, self._begun = 0, None, False
        self._hear(turn.Forgotten(self.conversation_id))
        for place, message in enumerate(messages):
            if message["role"] == "tool_result":
                lost = f"The earlier conversation was lost. In it you asked for {message['name']}, with this result:"
                messages[place] = {"role": "user", "content": feedback.from_program(f"{lost}\n{message['content']}")}
