"""What goes back to the model: results of calls and scripts, their images, and why a message could not be taken; and
what is not asked for again.

Results are JSON, so that a model can tell our words from a tool's. What the program itself says to the model is marked
as its own: the person did not write it. A result itself is words, in every protocol and for every model; servers of
models take images in a person's message only, in OpenAI's parts. So images follow the results in one that says whose
they are.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from lastword import values
from lastword.consent import Kept, Outcome
from lastword.errors import ArgumentsError, SessionError
from lastword.journal import Journal, Life, data_of

if TYPE_CHECKING:
    from lastword.talk.apiclient import ApiError
    from lastword.talk.replies import Protocol, Request
    from lastword.tools import ToolRegistry

# Of everything a script printed, and of each call's message: the model asked for it, but it has to fit.
MAX_OUTPUT = 20_000
MAX_ERROR = 5_000
MAX_CALL_MESSAGE = 1_000
MAX_CALLS = 50

PROGRAM = "[From the program, not from the person]"

_SHAPES: dict[Protocol, str] = {
    "json": 'To call a tool, the whole message must be {"tool_request": {"name": "…", "arguments": {…}}}.',
    "script": "To use tools, the whole message must be one script, without a fence and without words around it.",
    "native": "To call a tool, use a tool call with a JSON object as its arguments.",
}


def call_result(result: Outcome) -> str:
    """The result of one call."""
    return values.canonical(result.result()).decode()


def script_result(
    status: str, output: Sequence[str], error: str | None, calls: Sequence[Outcome], waiting_for: str | None = None
) -> str:
    """The result of a script: how it ended, what it printed, and what became of each call."""
    said: dict[str, Any] = {"status": status, "output": _cut("\n".join(output), MAX_OUTPUT)}
    if error is not None:
        said["error"] = _cut(error, MAX_ERROR)
    if waiting_for is not None:
        said["note"] = (
            f"It is not known how the call of {waiting_for} ended, because the program stopped while it ran. "
            "A person has to look. Do not repeat it."
        )
    said["calls"] = [
        {"tool": call.tool, "success": call.success, "message": _cut(call.message, MAX_CALL_MESSAGE)}
        for call in calls[:MAX_CALLS]
    ]
    if len(calls) > MAX_CALLS:
        said["more_calls"] = len(calls) - MAX_CALLS
    return values.canonical(said).decode()


def unreadable(reason: str) -> str:
    """The result of a native call that could not be read."""
    return _nothing_run(f"{reason}. Send the call again with arguments that are JSON.")


def secret_is_gone() -> str:
    """The result of a request that was read from a memory, or repeated by the model, without the secret in it."""
    return _nothing_run(
        "secrets are not kept in the conversation, and the mark stands where one was. "
        "Send the whole request again with the value, and ask the person for it if you do not have it."
    )


def _nothing_run(why: str) -> str:
    return values.canonical({"success": False, "message": f"Nothing was run: {why}"}).decode()


def repair(reason: str, protocol: Protocol) -> str:
    """Why a message was nearly a request, in words the model can repair it from."""
    return (
        f"{PROGRAM} Your last message looks like a request for a tool, and could not be taken as one: {reason}\n"
        f"{_SHAPES[protocol]} Nothing was run. Send it again, or answer in plain words."
    )


def from_program(words: str) -> str:
    """Something that happened outside the conversation, for the model to know."""
    return f"{PROGRAM} {words}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… [{len(text) - limit} characters left out]"


Images = Literal["auto", "never"]
"""`auto`: a model gets images until its server refuses one."""

# A request to our own server has four megabytes at most, and four characters stand for three bytes.
MAX_SENT_BYTES = 2 * 2**20

Message = dict[str, Any]


class Pictures:
    """What a satellite knows of the eyes of its models."""

    def __init__(self, journal: Journal, images: Images = "auto") -> None:
        self.images: Images = images
        self.blind: set[str] = set()
        """The models whose servers refused an image, and took the same without it."""
        self._journal = journal

    async def messages(self, model: str, outcomes: Iterable[Outcome]) -> list[Message]:
        """The images of these results, or as many as can be sent, in a message: if there are any and the model takes
        them."""
        if self.images == "never" or model in self.blind:
            return []
        names: list[str] = []
        left_out: list[str] = []
        parts: list[dict[str, Any]] = []
        room = MAX_SENT_BYTES
        pictures = [(each, kept) for each in outcomes for kept in each.content if kept.kind == "image"]
        for outcome, kept in pictures:
            words = f"{kept.name} of {outcome.tool}"
            if kept.size > room or (data := await self._bytes(outcome.call_id, kept)) is None:
                left_out.append(words)
                continue
            room -= kept.size
            names.append(words)
            url = f"data:{kept.media_type};base64,{b64encode(data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        if not names:
            return []
        said = f"The images that these results speak of: {', '.join(names)}."
        if left_out:
            said += f" Too large to be given to you: {', '.join(left_out)}."
        return [{"role": "user", "content": [{"type": "text", "text": from_program(said)}, *parts]}]

    async def _bytes(self, call_id: str, kept: Kept) -> bytes | None:
        try:
            return (await self._journal.content(call_id, kept.digest))[1]
        except SessionError:
            return None  # It was pruned since. The words of the result are still there.


def may_be_blind(problem: ApiError) -> bool:
    """Whether the model's server may have refused because of an image. Some call that a failure of their own."""
    if problem.code == "upstream_failed":
        return any(word in problem.fact.lower() for word in ("image", "vision", "multimodal", "mmproj"))
    return problem.code == "upstream_refused"


def is_picture_message(message: Message) -> bool:
    """Whether a message is one of those."""
    return isinstance(message["content"], list)


async def stopped_script(journal: Journal, run_id: str) -> str | None:
    """The result of a run that has begun and does not go on; None when it never began."""
    if not await journal.store.read(subject=run_id, kind="run_started", limit=1):
        return None
    return script_result("stopped by the person", [], None, await calls_of(journal, run_id))


async def ended_script(journal: Journal, run_id: str) -> tuple[str, str | None] | None:
    """The result of a run that has ended, as the journal has it, and what the model did wrong, if it did."""
    ends = await journal.store.read(subject=run_id, kind="run_finished")
    if not ends:
        return None
    facts = data_of(ends[-1])
    status, error, calls = facts["status"], facts["error"], await calls_of(journal, run_id)
    return script_result(status, facts["output"], error, calls), mistake(status, error, calls)


async def left_off_in(journal: Journal, session_id: str, conversation_id: str) -> int | None:
    """The last turn of a conversation that the person has stopped; None when there is none."""
    records = await journal.standing("left_off", session_id)
    return max((data_of(record)["turn"] for record in records if record.subject == conversation_id), default=None)


async def calls_of(journal: Journal, run_id: str) -> list[Outcome]:
    """What became of the calls of a run, in order."""
    found: list[Outcome] = []
    while True:
        life = await journal.life(f"{run_id}.{len(found)}")
        if life.finished is not None:
            found.append(life.outcome())
        elif life.in_doubt:
            assert life.started is not None
            found.append(unknown_end(life.call_id, life.started["tool"]))
        else:
            return found


def mistake(status: str, error: str | None, calls: Sequence[Outcome]) -> str | None:
    """Why a script failed, when that is its own fault. A call that was denied or failed is an answer, not a fault."""
    if status != "failed" or (calls and not calls[-1].success and calls[-1].kind not in _MISTAKES):
        return None
    return error


_MISTAKES = ("unknown_tool", "invalid_arguments")


def unknown_end(call_id: str, tool: str) -> Outcome:
    """The end of a call that was started, and of which nobody knows more."""
    return Outcome(kind="outcome_unknown", message="It is not known how this ended.", call_id=call_id, tool=tool)


def result_message(request: Request, content: str) -> Message:
    """The message that brings a result."""
    return {"role": "tool_result", "id": request.id, "name": request.name, "content": content}


JUST_DONE = "the same was just done"
"""On the card of a request that repeats the one before it."""

# What does not fit fits no better when it is sent again at once.
_USELESS = ("invalid_arguments", "unknown_tool")


class Repetition:
    """The requests and scripts of one message of the person, and what became of them: nobody is asked twice for what
    they have refused."""

    WENT_BACK = "went_back"
    """The kind of the records that say from which turn on a conversation does not count any more."""

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry
        self._denied: dict[tuple[str, bytes], Outcome] = {}
        self._scripts: dict[str, str] = {}
        self._last: tuple[tuple[str, bytes], Outcome] | None = None

    def outcome(self, name: str, arguments: dict[str, Any]) -> Outcome | None:
        """What became of an equal request that is not to be carried out again."""
        key = self._key(name, arguments)
        if (denied := self._denied.get(key)) is not None:
            return denied
        last = self._last
        return last[1] if last is not None and last[0] == key and last[1].kind in _USELESS else None

    def problem(self, name: str, arguments: dict[str, Any]) -> str | None:
        """What the card of a request has to say of the one before it."""
        key, last = self._key(name, arguments), self._last
        return JUST_DONE if last is not None and last[0] == key and last[1].success else None

    def remember(self, name: str, arguments: dict[str, Any], outcome: Outcome) -> None:
        """A request was carried out."""
        key = self._key(name, arguments)
        self._last = key, outcome
        if outcome.kind == "denied":
            self._denied[key] = outcome

    def script_result(self, script: str) -> str | None:
        """The result of an equal script of which the person denied a call."""
        return self._scripts.get(script.strip())

    async def remember_script(self, script: str, result: str, calls: list[Outcome], journal: Journal) -> None:
        """A script was run."""
        if any(call.kind == "denied" for call in calls):
            self._scripts[script.strip()] = result
        for call in calls:
            self._take(await journal.life(call.call_id))

    async def recall(self, journal: Journal, session_id: str, conversation_id: str, turn: int) -> None:
        """What was denied since this turn, in a process that has died meanwhile."""
        for record in await journal.history(session_id, kind=("requested", self.WENT_BACK)):
            facts = data_of(record)
            if record.kind == self.WENT_BACK:
                self._denied.clear()  # Turns that were given out anew begin with nothing.
                continue
            if facts["conversation"] != conversation_id or facts["turn"] < turn:
                continue
            life = await journal.life(record.subject)
            self._take(life)
            number = 0  # Of a script, its calls; they are numbered.
            while (call := await journal.life(f"{record.subject}.{number}")).asked or call.started or call.finished:
                self._take(call)
                number += 1

    def _take(self, life: Life) -> None:
        asked = life.asked
        if asked is not None and life.finished is not None and (outcome := life.outcome()).kind == "denied":
            self._denied[self._key(asked["tool"], asked["arguments"])] = outcome

    @property
    def denied(self) -> frozenset[tuple[str, bytes]]:
        """The calls that the person said no to, as tools and their arguments in canonical form."""
        return frozenset(self._denied)

    def _key(self, name: str, arguments: Any) -> tuple[str, bytes]:
        """What makes two requests the same: what would be shown and run, whether a default was written out or not."""
        tool = self._registry.find(name)
        try:
            return name, values.canonical(arguments if tool is None else values.decode(tool.validate(arguments)))
        except ArgumentsError:
            return name, values.canonical(arguments)
