"""Trying a model that a person names on the page, and keeping it when it answers: for now, and for the next start.

The key goes from the form to the model's server and into a file that only its owner can read: not into the store, the
log, or what windows are told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from lastword.card import responses, visible
from lastword.server import HttpUpstream, ModelNames, Refusal, ServerLimits
from lastword.talk import KeptModel, ResolvedPreset, try_model

MAX_ADDRESS = 2_000
MAX_NAME = 200
MAX_KEY = 4_000


class ModelForm:
    """What the form under Settings does."""

    def __init__(
        self,
        file: Path,
        use: Callable[[KeptModel], None],
        presets: Mapping[str, ResolvedPreset],
        limits: ServerLimits | None = None,
        *,
        is_rehearsal: bool = False,
    ) -> None:
        """`use` lets a model answer from now on, and `presets` are what it works under.

        `is_rehearsal`: until one is chosen, the rehearsal model answers.
        """
        self._file = file
        self._use = use
        self._limits = limits
        self._one_at_a_time = asyncio.Lock()
        self._waiting: KeptModel | None = None
        self._is_rehearsal = is_rehearsal
        self._begins_anew = False
        self.presets = presets

    @property
    def next_model(self) -> str:
        """The model that was chosen and answers as soon as what runs is over, in words."""
        return visible(self._waiting.words) if self._waiting else ""

    def take_next(self) -> str | None:
        """Let the model answer that was chosen, if one was: which it is, in words."""
        if self._waiting is None:
            return None
        words = self.next_model
        self._use(self._waiting)
        self._waiting = None
        self._is_rehearsal, self._begins_anew = False, self._is_rehearsal
        return f"Model: {words} (chosen on the page)."

    def first_turn(self) -> int | None:
        """The turn that the first message to a model goes back to, where the rehearsal model answered before it.

        A small model takes what was said for its own words, and goes on with the tour.
        """
        begins_anew, self._begins_anew = self._begins_anew, False
        return 1 if begins_anew else None

    async def choose(self, address: str, name: str, key: str) -> responses.TriedModel:
        """Try it, and keep it if it answers."""
        kept = KeptModel(upstream=_address(address), model=_name(name), key=_key(key))
        if self._one_at_a_time.locked():
            raise Refusal(409, "busy", "a model is being tried already; wait until that is over")
        async with self._one_at_a_time:
            upstream = HttpUpstream(kept.upstream, key=kept.key, limits=self._limits)
            try:
                names = ModelNames(await _models(upstream))
                if kept.model is None and len(names.listed) != 1:
                    has = f"has several models; name one: {names}" if names.listed else "lists no model; name one"
                    raise Refusal(409, "no_model", f"that server {has}", param="model")
                unlisted = names.why_unlisted(kept.model)
                trial = await try_model(upstream, kept.model or next(iter(names.listed), None))
            finally:
                await upstream.close()
            if trial.problem is not None:
                because = f"{trial.problem}; {unlisted}" if unlisted else trial.problem
                raise Refusal(409, "no_answer", f"it could not be tried, and was not kept: {because}")
            kept.write(self._file)
            self._waiting = kept
        return responses.TriedModel(
            model=visible(kept.words),
            streams=trial.streams,
            native="native" in trial.handled,
            grammar=trial.dialect != "none",
            context_tokens=trial.context_tokens,
            protocols=trial.handled,
            unlisted=unlisted or "",
        )


async def _models(upstream: HttpUpstream) -> list[str]:
    """The names of its models; none where it has no list, since it may answer all the same.

    Whoever left out the end of an address is told so: the server only says 404.
    """
    try:
        return await upstream.models()
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        if upstream.url.endswith("/v1"):
            return []
        message = f"no model's server answers there; is it {visible(upstream.url)}/v1?"
        raise Refusal(409, "no_answer", message, param="address") from None


def _address(text: str) -> str:
    """The address, if it is one. What is wrong with it is said without repeating it: a key may stand in it."""
    text = text.strip()
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one or len(text) > MAX_ADDRESS or not (text.isascii() and text.isprintable()) or " " in text:
        message = "this is not the address of a model's server; write it like http://127.0.0.1:11434/v1"
        raise Refusal(400, "bad_address", message, param="address")
    if parts.username or parts.password or parts.query or parts.fragment:
        message = "an address has no password and no question in it; the key has a field of its own"
        raise Refusal(400, "bad_address", message, param="address")
    return text


def _name(text: str) -> str | None:
    text = text.strip()
    if len(text) > MAX_NAME or not text.isprintable():
        raise Refusal(400, "bad_name", "this is not the name of a model", param="model")
    return text or None


def _key(text: str) -> str | None:
    text = text.strip()
    if len(text) > MAX_KEY or not (text.isascii() and text.isprintable()) or " " in text:
        raise Refusal(400, "bad_key", "this holds characters that no key has", param="key")
    return text or None
