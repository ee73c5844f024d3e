"""A model that can be exchanged for another one while the server runs: a person chose it in a window of ours.

Whoever is asked already answers to the end. Whatever was learned of the model before is forgotten with it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from lastword.server.abilities import Abilities
from lastword.server.reply_shape import Completion
from lastword.server.upstream import HttpUpstream, Upstream


class ChangingUpstream:
    """The model that answers now."""

    def __init__(self, upstream: Upstream) -> None:
        self._now = upstream
        self._before: list[Upstream] = []
        """Those that answered until now. A turn may still be theirs."""
        self.changed: Callable[[str | None], None] = lambda model: None
        """Told the name of the new model, where a person chose one."""

    def change(self, upstream: Upstream, model: str | None) -> None:
        """Ask this one from now on."""
        self._before.append(self._now)
        self._now = upstream
        self.changed(model)

    @property
    def retries_made(self) -> int:
        """Further attempts, of all together."""
        return sum(each.retries_made for each in (*self._before, self._now) if isinstance(each, HttpUpstream))

    async def complete(self, body: dict[str, Any]) -> Completion:
        return await self._now.complete(body)

    async def stream(self, body: dict[str, Any]) -> AsyncGenerator[dict[str, Any]]:
        async with aclosing(self._now.stream(body)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def models(self) -> list[str]:
        return await self._now.models()

    async def abilities(self) -> Abilities:
        return await self._now.abilities()

    async def close(self) -> None:
        for each in (*self._before, self._now):
            await each.close()
