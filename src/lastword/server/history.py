"""What was said, and what the model gets to see: persona, satellite's prompt, history, results, the person's words.

The history is a window: the newest turns that fit, by number and by estimated tokens. A request and its result are
one piece and are never split; neither is a chain of them cut off from the words that began it, as long as anything
else can go.

How much a model sees at once is what its server says of itself, or what it said when it refused. Tokens are counted by
the server alone; here they are estimated from bytes, and every answer and every refusal makes the estimate better. A
refusal for length is answered by one further attempt with less of the history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from lastword.values import canonical
from lastword.wire import result_message

if TYPE_CHECKING:
    from lastword.server.model_server import ContextExceeded

BYTES_PER_TOKEN = 4
"""An estimate that errs on the careful side for English and code."""

# Characters of a message that is kept as it is sent, besides as it is. Of a longer one there would be two in memory.
KEPT_ENCODED = 4_000

# What an image costs a model, in bytes of text: about a thousand tokens. A large one costs more, since it is sent again
# with every turn.
IMAGE_WEIGHT = 4_000
BYTES_OF_IMAGE = 64

NO_RESULT = "No result was given: the request was abandoned."
"""What a native call gets that nobody answered. The model's server insists on an answer for each."""

# What a chat template writes around each message, in bytes.
AROUND = 24
# Of what fits, the part that is used: an estimate may be wrong by a little.
MARGIN = 0.9
# A refusal without numbers leaves only a guess. No model in use sees less than this, whatever was refused.
LEAST_TOKENS = 512
# A question that took this part of a guessed size and was answered makes the guess larger, by so much.
WELL_FILLED = 0.5
GROWTH = 1 / 32
# Kept free for the answer: a quarter of a small context, and no more than a long answer of a large one.
MAX_ANSWER_TOKENS = 1024


class ChatMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message. A result that answers a native call says so, since it goes to the model in another role."""

    role: Literal["user", "assistant", "tool_result"]
    content: Any = None
    name: str | None = None
    id: str | None = None
    native: bool = False
    tool_calls: list[dict[str, Any]] | None = None
    others: dict[str, Any] | None = None
    """Keys of a model's message that we do not know, and its server may want back."""
    repairs: bool = False
    """Whether it says what was wrong with the message before it, and nothing else."""


class HistoryLine(msgspec.Struct, frozen=True):
    """A message in its place in the history."""

    said: ChatMessage
    turn: int
    at: int
    weight: int
    """Its size in bytes, roughly; of an image, what it costs a model."""
    plain: msgspec.Raw | dict[str, Any] | None = None
    """The message as the model's server knows it, when that does not depend on the messages around it. It is sent again
    with every turn, so a short one is encoded once."""

    @classmethod
    def of(cls, said: ChatMessage, turn: int, at: int, size: int) -> HistoryLine:
        """The line of a message whose record has this size."""
        if isinstance(said.content, list):
            for part in said.content:
                if isinstance(part, dict) and part.get("type") == "image_url":
                    sent = len(canonical(part))
                    size += max(IMAGE_WEIGHT, sent // BYTES_OF_IMAGE) - sent
        if said.role == "tool_result" or said.tool_calls:
            return cls(said, turn, at, size)
        message = {"role": said.role, "content": said.content}
        is_short = isinstance(said.content, str) and len(said.content) <= KEPT_ENCODED
        return cls(said, turn, at, size, msgspec.Raw(msgspec.json.encode(message)) if is_short else message)

    @property
    def tokens(self) -> int:
        """An estimate. The model's own count is in `usage`."""
        return self.weight // BYTES_PER_TOKEN + 1


class Chains:
    """Where the pieces of a history start that belong together, and how heavy it is up to each line.

    A chain begins with a turn that answers no request. Kept as lines come in, so that nobody has to go through a
    long history to cut it.
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.tokens_before: list[int] = [0]
        """Of each line the tokens of all before it, and at the end those of all."""
        self.last_repair = -1
        """The newest turn in which a message of the model was corrected."""
        self.last_dependent = -1
        """The newest turn with a message that is sent differently beside others than by itself."""
        self._turn = -1

    def add(self, line: HistoryLine) -> None:
        """The next line."""
        if not self.starts or (line.turn != self._turn and line.said.role != "tool_result"):
            self.starts.append(len(self.tokens_before) - 1)
        self._turn = line.turn
        if line.said.repairs:
            self.last_repair = line.turn
        if line.plain is None:
            self.last_dependent = line.turn
        self.tokens_before.append(self.tokens_before[-1] + line.tokens)


def compose(
    persona: str | None,
    prompt: str,
    history: Sequence[HistoryLine],
    results: Sequence[ChatMessage],
    users: Sequence[ChatMessage],
    last_dependent: int,
) -> list[dict[str, Any] | msgspec.Raw]:
    """The messages for the model's server, some of them encoded already.

    `last_dependent`: the newest turn of the conversation with a message that depends on those around it.
    """
    messages: list[dict[str, Any] | msgspec.Raw] = []
    if persona:
        messages.append({"role": "system", "content": persona})
    if prompt:
        messages.append({"role": "system", "content": prompt})
    if not history or history[0].turn > last_dependent:
        plain: list[Any] = [line.plain for line in history]
        return [*messages, *plain, *translate([*results, *users])]
    # There are calls and results among them, and what becomes of one depends on the messages around it.
    return [*messages, *translate([*(line.said for line in history), *results, *users])]


def translate(said: Iterable[ChatMessage | dict[str, Any]]) -> list[dict[str, Any]]:
    """Our messages in the roles that the model's server knows. Those of a client that are plain already stay so."""
    messages: list[dict[str, Any]] = []
    # The ids of the native calls that wait for a result, and whether the history they stand in is ours.
    unanswered: dict[str, bool] = {}
    for entry in said:
        if isinstance(entry, ChatMessage) and entry.role == "tool_result":
            if entry.native and entry.id in unanswered:
                del unanswered[entry.id]
                messages.append({"role": "tool", "tool_call_id": entry.id, "content": entry.content})
            else:
                messages.append({"role": "user", "content": result_message(entry.name or "", entry.content)})
            continue
        ours = isinstance(entry, ChatMessage)
        message = _plain(entry) if isinstance(entry, ChatMessage) else entry
        if message["role"] == "tool":
            unanswered.pop(message["tool_call_id"], None)
        else:
            if unanswered:
                messages += _abandoned(unanswered)
            calls = message.get("tool_calls")
            unanswered = {call["id"]: ours for call in calls} if calls else {}
        messages.append(message)
    return messages + _abandoned(unanswered)


def _plain(said: ChatMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": said.role, "content": said.content}
    if said.tool_calls:
        # With the results of its calls a server wants its message back as it was. Of one that is over it is told the
        # words alone: most refuse to be shown what they thought then, or charge for it.
        message = {**(said.others or {}), **message, "tool_calls": said.tool_calls}
    return message


def _abandoned(unanswered: dict[str, bool]) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": id, "content": NO_RESULT} for id, ours in unanswered.items() if ours]


def without_repairs(lines: list[HistoryLine], last_repair: int) -> list[HistoryLine]:
    """A history without the messages that were corrected, and their corrections: a model repeats what it has seen.

    Most have none. Who knows the turn of the last correction need not go through hundreds of messages to find that out.
    """
    if not lines or lines[0].turn > last_repair:
        return lines
    kept: list[HistoryLine] = []
    for line in lines:
        if line.said.repairs:
            if kept and kept[-1].said.role == "assistant":
                kept.pop()
        else:
            kept.append(line)
    return kept


def window(
    lines: Sequence[HistoryLine], max_turns: int, max_tokens: int, chains: Chains | None = None
) -> list[HistoryLine]:
    """The newest part of a history that fits. Whoever keeps its chains pays for what is kept, and not for the rest."""
    if not lines:
        return []
    if chains is None:
        chains = Chains()
        for line in lines:
            chains.add(line)
    last, sums = lines[-1].turn, chains.tokens_before
    fitting = bisect_left(
        chains.starts,
        True,
        key=lambda start: last - lines[start].turn < max_turns and sums[-1] - sums[start] <= max_tokens,
    )
    if fitting == len(chains.starts):
        # The running chain alone is too long: what began it stays, and the newest pairs.
        return _shorten(lines, chains.starts[-1], max_turns, max_tokens)
    return list(lines[chains.starts[fitting] :])


def _shorten(lines: Sequence[HistoryLine], start: int, max_turns: int, max_tokens: int) -> list[HistoryLine]:
    """The words that began a chain, and as many of its newest pairs as fit; at least one."""
    body = start
    while body < len(lines) and lines[body].turn == lines[start].turn and lines[body].said.role == "user":
        body += 1
    tokens = sum(line.tokens for line in lines[start:body])
    first = place = len(lines)
    pairs = 0
    while place > body:
        place -= 1
        tokens += lines[place].tokens
        if pairs and tokens > max_tokens:
            break
        # A pair begins with a reply of the model and ends before the next one.
        if lines[place].said.role == "assistant" or place == body:
            first = place
            pairs += 1
            if pairs >= max_turns:
                break
    return [*lines[start:body], *lines[first:]]


def turns_left_out(conversation: Sequence[HistoryLine], shown: Sequence[HistoryLine]) -> int:
    """How many turns of a conversation are not shown."""
    if not conversation:
        return 0
    first = shown[0].turn if shown else conversation[-1].turn + 1
    return first - conversation[0].turn


class Context:
    """What is known of the size of one model's context. It learns."""

    def __init__(self, tokens: int | None = None) -> None:
        self.tokens = tokens
        self._guessed_from: int | None = None
        """The weight of the question that was refused without a number, where the size is no more than a guess."""
        self._bytes_per_token = float(BYTES_PER_TOKEN)

    def counted(self, messages: Sequence[Any], usage: Any) -> None:
        """The server has answered, and has perhaps counted what it was sent."""
        tokens = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
        # Few tokens are mostly what the template writes, and say little of the text.
        if type(tokens) is int and tokens >= 100:
            self._bytes_per_token = min(max(weigh(messages) / tokens, 1.0), 8.0)
        if self._guessed_from is not None:
            self._grow(weigh(messages), self._guessed_from)

    def _grow(self, answered: int, refused: int) -> None:
        """A guess was proven too small, or may be: little by little, since one that is too large costs a refusal."""
        assert self.tokens is not None
        if answered >= refused:
            # As much as was refused: it was not the length, or it is another server by now.
            self.tokens = self._guessed_from = None
        elif answered / self._bytes_per_token >= self.tokens * WELL_FILLED:
            self.tokens += int(self.tokens * GROWTH)

    def refused(self, messages: Sequence[Any], problem: ContextExceeded) -> None:
        """The server has said that it was too much, and perhaps how much fits."""
        weight = weigh(messages)
        if problem.sent:
            self._bytes_per_token = min(max(weight / problem.sent, 1.0), 8.0)
        self._guessed_from = None if problem.size else weight
        self.tokens = problem.size or max(int(weight / self._bytes_per_token * MARGIN), LEAST_TOKENS)

    def fit(self, fixed: Sequence[Any], history: list[HistoryLine], *, is_answering: bool) -> list[HistoryLine]:
        """The newest part of a history that fits beside what has to be sent. `is_answering`: its end has to stay."""
        if self.tokens is None or not history:
            return history
        answer = min(self.tokens // 4, MAX_ANSWER_TOKENS)
        room = int((self.tokens - answer) * self._bytes_per_token * MARGIN) - weigh(fixed)
        kept = window(history, len(history), max(room, 0) // BYTES_PER_TOKEN)
        if not is_answering and sum(line.weight for line in kept) > room:
            return []
        return kept


def weigh(messages: Iterable[Any]) -> int:
    """About how many bytes a model has to read for these messages."""
    return sum(len(msgspec.json.encode(message)) + AROUND for message in messages)
