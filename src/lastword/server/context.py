"""How much a model sees at once, and what of a conversation fits into that.

The size is what the model's server says of itself, or what it said when it refused. Tokens are counted by the server
alone; here they are estimated from bytes, and every answer and every refusal makes the estimate better.

A refusal for length is answered by one further attempt with less of the history. What is left out are whole turns, the
oldest first; a request and its result stay together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from lastword.server.conversations import BYTES_PER_TOKEN, HistoryLine
from lastword.server.prompt import window
from lastword.server.refusal import Refusal

CODE = "context_length_exceeded"
"""What OpenAI's clients know this refusal by."""
TOO_LONG = "the conversation is longer than the model can see"
"""How the fact of such a refusal begins: its code may be the server's own."""

# What a chat template writes around each message, in bytes.
AROUND = 24
# Of what fits, the part that is used: an estimate may be wrong by a little.
MARGIN = 0.9
# A refusal without numbers leaves only a guess. No model in use sees less than this, whatever was refused.
LEAST_TOKENS = 512
# A server that names a size below this means something else by it.
LEAST_SAID = 64
# A question that took this part of a guessed size and was answered makes the guess larger, by so much.
WELL_FILLED = 0.5
GROWTH = 1 / 32
# Kept free for the answer: a quarter of a small context, and no more than a long answer of a large one.
MAX_ANSWER_TOKENS = 1024

_KINDS = ("exceed_context_size_error", CODE)
_WORDS = re.compile(r"context (?:length|size|window)|maximum context|too many tokens|prompt is too long", re.IGNORECASE)
_SIZE = re.compile(
    r"(?:maximum context length is|available context size \(|context (?:length|size|window) (?:of|is)|>)\s*(\d{3,9})",
    re.IGNORECASE,
)
_SENT = re.compile(r"(?:resulted in|request \(|requested|prompt is too long:)\s*(\d{3,9})", re.IGNORECASE)


class ContextExceeded(Refusal):
    """The model's server was sent more than its model sees. With the numbers that it told, if it did."""

    def __init__(self, code: str, fact: str, size: int | None, sent: int | None) -> None:
        hint = "say it in fewer words, or give the model's server a larger context"
        super().__init__(400, code, fact, hint=hint, is_upstream=True)
        self.size = size
        self.sent = sent


def exceeded(error: Mapping[str, Any], said: str) -> ContextExceeded | None:
    """Whether an error of a model's server is about length. Its own code stays, where it is a word."""
    code, kind = error.get("code"), error.get("type")
    if code not in _KINDS and kind not in _KINDS and not _WORDS.search(said):
        return None
    size, sent = error.get("n_ctx"), error.get("n_prompt_tokens")
    if type(size) is not int and (found := _SIZE.search(said)):
        size = int(found[1])
    if type(sent) is not int and (found := _SENT.search(said)):
        sent = int(found[1])
    # A size that no model has is a slip of whoever said it. Taken at its word, nothing would ever be shown again.
    if type(size) is not int or size < LEAST_SAID:
        size = None
    named = code if isinstance(code, str) and code else CODE
    fact = f"{TOO_LONG}{f': {said}' if said else ''}"
    return ContextExceeded(named, fact, size, sent if type(sent) is int else None)


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


def turns_left_out(conversation: Sequence[HistoryLine], shown: Sequence[HistoryLine]) -> int:
    """How many turns of a conversation are not shown."""
    if not conversation:
        return 0
    first = shown[0].turn if shown else conversation[-1].turn + 1
    return first - conversation[0].turn
