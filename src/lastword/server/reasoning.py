"""Reasoning is not the answer: what a model thinks aloud before it replies is set aside.

Some servers send it apart, as `reasoning_content`; others leave it in the text, between `<think>` and `</think>`. Here
both become the first, so that whoever reads the reply finds nothing in its text but the reply. Only one block counts,
and only at the very beginning; and only for models that are known or said to reason, since to all others these are
words like any.
"""

from __future__ import annotations

from typing import Any

OPENING, CLOSING = "<think>", "</think>"


class Thoughts:
    """Watches a reply arrive, and tells thoughts from text."""

    def __init__(self) -> None:
        self._held = ""
        self._is_inside: bool | None = None
        """None until the beginning has shown whether there is a block at all."""
        self._is_over = False

    def feed(self, piece: str) -> tuple[str, str]:
        """Take the next piece; gives back what of it is thought, and what is text."""
        if self._is_over:
            return "", piece
        held = self._held + piece
        if self._is_inside is None:
            seen = held.lstrip()
            if not seen.startswith(OPENING):
                if OPENING.startswith(seen):
                    self._held = held
                    return "", ""
                self._is_over, self._held = True, ""
                return "", held
            self._is_inside, held = True, seen[len(OPENING) :]
        thought, closing, text = held.partition(CLOSING)
        if closing:
            self._is_over, self._held = True, ""
            return thought, text.lstrip()
        # The end may hold the first letters of the closing mark.
        safe = next((n for n in range(len(CLOSING) - 1, 0, -1) if held.endswith(CLOSING[:n])), 0)
        self._held = held[len(held) - safe :]
        return held[: len(held) - safe], ""

    def end(self) -> tuple[str, str]:
        """What was held back. A block that never ended is thought to its end."""
        held, self._held = self._held, ""
        return (held, "") if self._is_inside else ("", held)


def set_aside(message: dict[str, Any]) -> dict[str, Any]:
    """A whole message with its leading thoughts apart."""
    text = message.get("content")
    if not isinstance(text, str):
        return message
    thoughts = Thoughts()
    first, last = thoughts.feed(text), thoughts.end()
    thought = first[0] + last[0]
    if not thought and first[1] + last[1] == text:
        return message
    before = message.get("reasoning_content")
    return {
        **message,
        "content": first[1] + last[1],
        "reasoning_content": f"{before if isinstance(before, str) else ''}{thought}".strip(),
    }


def set_aside_piece(chunk: dict[str, Any], thoughts: Thoughts) -> dict[str, Any]:
    """A chunk of a stream, likewise. Its last one brings out what was held back."""
    for choice in chunk["choices"][:1]:
        delta = choice["delta"]
        thought, text = thoughts.feed(delta.get("content") or "")
        if choice.get("finish_reason"):
            late = thoughts.end()
            thought, text = thought + late[0], text + late[1]
        if "content" in delta or text:
            delta["content"] = text
        if thought:
            delta["reasoning_content"] = (delta.get("reasoning_content") or "") + thought
    return chunk
