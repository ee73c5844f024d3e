"""The images of results, for models that take images: a message of the program, in OpenAI's parts.

A result itself is words, in every protocol and for every model; servers of models take images in a person's message
only. So they follow the results in one that says whose it is.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any, Literal

from lastword.consent import Kept, Outcome
from lastword.errors import SessionError
from lastword.journal import Journal
from lastword.talk.apiclient import ApiError
from lastword.talk.feedback import from_program

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
        """The images of these results, in a message, if there are any and the model takes them."""
        if self.images == "never" or model in self.blind:
            return []
        message = await _message(self._journal, outcomes)
        return [] if message is None else [message]


def may_be_blind(problem: ApiError) -> bool:
    """Whether the model's server may have refused because of an image. Some call that a failure of their own."""
    if problem.code == "upstream_failed":
        return any(word in problem.fact.lower() for word in ("image", "vision", "multimodal", "mmproj"))
    return problem.code == "upstream_refused"


async def _message(journal: Journal, outcomes: Iterable[Outcome]) -> Message | None:
    """The images that these calls returned, or as many of them as can be sent; None when there are none."""
    names: list[str] = []
    left_out: list[str] = []
    parts: list[dict[str, Any]] = []
    room = MAX_SENT_BYTES
    for outcome in outcomes:
        for kept in outcome.content:
            if kept.kind != "image":
                continue
            words = f"{kept.name} of {outcome.tool}"
            if kept.size > room or (data := await _bytes(journal, outcome.call_id, kept)) is None:
                left_out.append(words)
                continue
            room -= kept.size
            names.append(words)
            url = f"data:{kept.media_type};base64,{b64encode(data).decode()}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    if not names:
        return None
    said = f"The images that these results speak of: {', '.join(names)}."
    if left_out:
        said += f" Too large to be given to you: {', '.join(left_out)}."
    return {"role": "user", "content": [{"type": "text", "text": from_program(said)}, *parts]}


def is_picture_message(message: Message) -> bool:
    """Whether a message is one of those."""
    return isinstance(message["content"], list)


async def _bytes(journal: Journal, call_id: str, kept: Kept) -> bytes | None:
    try:
        return (await journal.content(call_id, kept.digest))[1]
    except SessionError:
        return None  # It was pruned since. The words of the result are still there.
