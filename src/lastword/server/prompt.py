"""What the model gets to see, and in which order: persona, satellite's prompt, history, results, the person's words.

The history is a window: the newest turns that fit, by number and by estimated tokens. A request and its result are
one piece and are never split; neither is a chain of them cut off from the words that began it, as long as anything
else can go.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from lastword.server.conversations import Chains, ChatMessage, HistoryLine
from lastword.wire import result_message

NO_RESULT = "No result was given: the request was abandoned."
"""What a native call gets that nobody answered. The model's server insists on an answer for each."""


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


def _plain(said: ChatMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": said.role, "content": said.content}
    if said.tool_calls:
        # With the results of its calls a server wants its message back as it was. Of one that is over it is told the
        # words alone: most refuse to be shown what they thought then, or charge for it.
        message = {**(said.others or {}), **message, "tool_calls": said.tool_calls}
    return message


def _abandoned(unanswered: dict[str, bool]) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": id, "content": NO_RESULT} for id, ours in unanswered.items() if ours]
