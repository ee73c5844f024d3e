"""What the model gets to see, and in which order: persona, satellite's prompt, history, results, the person's words.

The history is a window: the newest turns that fit, by number and by estimated tokens. A request and its result are
one piece and are never split; neither is a chain of them cut off from the words that began it, as long as anything
else can go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lastword.server.conversations import ChatMessage, HistoryLine
from lastword.wire.protocol import result_message

BYTES_PER_TOKEN = 4
"""An estimate that errs on the careful side for English and code. The model's own count is in `usage`."""

NO_RESULT = "No result was given: the request was abandoned."
"""What a native call gets that nobody answered. The model's server insists on an answer for each."""


def compose(
    persona: str | None,
    prompt: str,
    history: Sequence[HistoryLine],
    results: Sequence[ChatMessage],
    users: Sequence[ChatMessage],
) -> list[dict[str, Any]]:
    """The messages for the model's server."""
    messages: list[dict[str, Any]] = []
    if persona:
        messages.append({"role": "system", "content": persona})
    if prompt:
        messages.append({"role": "system", "content": prompt})
    plain = [line.plain for line in history if line.plain is not None]
    if len(plain) == len(history):
        return messages + plain + translate([*results, *users])
    # There are calls and results among them, and what becomes of one depends on the messages around it.
    return messages + translate([*(line.said for line in history), *results, *users])


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


def window(
    lines: Sequence[HistoryLine], max_turns: int, max_tokens: int, weight: int | None = None
) -> list[HistoryLine]:
    """The newest part of a history that fits. Whoever knows the weight of all lines saves the counting, mostly."""
    if not lines or (
        lines[-1].turn <= max_turns
        and (
            (weight is not None and weight // BYTES_PER_TOKEN + len(lines) <= max_tokens)
            or _tokens(lines) <= max_tokens
        )
    ):
        return list(lines)
    chains = _chains(lines)
    kept: list[list[HistoryLine]] = []
    turns = tokens = 0
    for chain in reversed(chains):
        size = _tokens(chain)
        length = len({line.turn for line in chain})
        if kept and (turns + length > max_turns or tokens + size > max_tokens):
            break
        if not kept and (length > max_turns or size > max_tokens):
            # The running chain alone is too long: what began it stays, and the newest pairs.
            return _shorten(chain, max_turns, max_tokens)
        kept.append(chain)
        turns += length
        tokens += size
    return [line for chain in reversed(kept) for line in chain]


def _chains(lines: Sequence[HistoryLine]) -> list[list[HistoryLine]]:
    """The history in pieces that belong together: each begins with a turn that answers no request."""
    chains: list[list[HistoryLine]] = []
    turn = -1
    for line in lines:
        begins = line.turn != turn and line.said.role != "tool_result"
        turn = line.turn
        if begins or not chains:
            chains.append([])
        chains[-1].append(line)
    return chains


def _shorten(chain: list[HistoryLine], max_turns: int, max_tokens: int) -> list[HistoryLine]:
    """The words that began a chain, and as many of its newest pairs as fit; at least one."""
    opening = [line for line in chain if line.turn == chain[0].turn and line.said.role == "user"]
    rest = chain[len(opening) :]
    # A pair begins with a reply of the model and ends before the next one.
    pairs: list[list[HistoryLine]] = []
    for line in rest:
        if line.said.role == "assistant" or not pairs:
            pairs.append([])
        pairs[-1].append(line)
    tokens = _tokens(opening)
    kept: list[list[HistoryLine]] = []
    for pair in reversed(pairs):
        tokens += _tokens(pair)
        if kept and (len(kept) >= max_turns or tokens > max_tokens):
            break
        kept.append(pair)
    return opening + [line for pair in reversed(kept) for line in pair]


def _tokens(lines: Iterable[HistoryLine]) -> int:
    return sum(line.weight // BYTES_PER_TOKEN + 1 for line in lines)


def _plain(said: ChatMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": said.role, "content": said.content}
    if said.tool_calls:
        message["tool_calls"] = said.tool_calls
    return message


def _abandoned(unanswered: dict[str, bool]) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": id, "content": NO_RESULT} for id, ours in unanswered.items() if ours]
