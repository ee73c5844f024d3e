"""Which model answers: the configured one, one that is found on this machine, or the rehearsal model.

The choice is always said in words, so that the person knows which model answers.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from lastword.config import Config
from lastword.server.upstream import USUAL, HttpUpstream, Upstream, find_local
from lastword.talk.rehearsal import Rehearsal
from lastword.talk.replies import Protocol


class ModelChoice(msgspec.Struct, frozen=True):
    """The model, and how to say so."""

    upstream: Upstream
    words: str
    is_rehearsal: bool = False


def usual_protocol(*, is_rehearsal: bool) -> Protocol:
    """The protocol of presets that name none. The rehearsal model can be given scripts as well as requests."""
    return "script" if is_rehearsal else "json"


async def choose_model(config: Config, places: Mapping[str, str] = USUAL) -> ModelChoice:
    """Whatever is configured; else whatever answers at the usual local ports; else the rehearsal model."""
    server = config.server
    named = f"{server.model} at " if server.model else ""
    if server.upstream is not None:
        upstream = HttpUpstream(server.upstream, key=config.upstream_key, limits=server.limits)
        return ModelChoice(
            upstream, f"Model: {named}{server.upstream} ({config.sources.get('upstream', 'configured')})."
        )
    found = await find_local(places)
    if found is not None:
        name, url = found
        # No key: it was made for another server.
        return ModelChoice(HttpUpstream(url, limits=server.limits), f"Model: {named}{name}, found at {url}.")
    words = (
        "Model: none is configured, and none answers at the usual local ports. The rehearsal model answers: it "
        "understands nothing, and every tool can be tried with it."
    )
    return ModelChoice(Rehearsal(), words, is_rehearsal=True)
