"""Which model answers: the configured one, one that a person chose, one found on this machine, or the rehearsal model.

The choice is always said in words, so that the person knows which model answers.

The one that a person chose on the page is kept for the next start: its address, its name, and the key for it. In a file
that only they can read, and not in the store: that is exported, copied and shown, and a key is for nobody's eyes. What
is configured goes before it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from lastword.display import visible
from lastword.errors import ConfigError
from lastword.server import HttpUpstream, ModelNames, Refusal, Upstream
from lastword.store import make_private, write_whole
from lastword.talk.rehearsal import Rehearsal

if TYPE_CHECKING:
    from lastword.config import Config

# A server that needs longer than this to list its models answers none the worse, and nobody waits for its list.
LOOK_SECONDS = 2.0


class ModelChoice(msgspec.Struct, frozen=True):
    """The model, and how to say so."""

    upstream: Upstream
    fact: str
    """Which model answers, in words."""
    is_rehearsal: bool = False
    model: str | None = None
    """The name to ask for, where a person chose one."""
    how_to_choose: str = ""
    """How to choose another, for those who have no form for it before their eyes."""
    remark: str = ""
    """What seems to be wrong with it now, before anybody has asked it anything."""

    @classmethod
    async def of(
        cls, config: Config, places: Mapping[str, str] | None = None, *, kept: KeptModel | None = None
    ) -> ModelChoice:
        """Whatever is configured; else what a person chose before; else whatever answers at the usual local ports; else
        the rehearsal model.
        """
        choice = await _choose(config, places, kept)
        upstream = choice.upstream
        if not isinstance(upstream, HttpUpstream):
            return choice
        return msgspec.structs.replace(choice, remark=await _remark(upstream, config.server.model or choice.model))

    @property
    def words(self) -> str:
        """All of it."""
        return " ".join(part for part in (self.fact, self.remark, self.how_to_choose) if part)


async def _choose(config: Config, places: Mapping[str, str] | None, kept: KeptModel | None) -> ModelChoice:
    server = config.server
    named = f"{server.model} at " if server.model else ""
    if server.upstream is not None:
        upstream = HttpUpstream(server.upstream, key=config.upstream_key, limits=server.limits)
        return ModelChoice(
            upstream, f"Model: {named}{server.upstream} ({config.sources.get('upstream', 'configured')})."
        )
    if kept is not None:
        upstream = HttpUpstream(kept.upstream, key=kept.key, limits=server.limits)
        return ModelChoice(upstream, f"Model: {kept.words} (chosen on the page).", model=kept.model)
    found = await HttpUpstream.find_local(places)
    if found is not None:
        name, url = found
        # No key: it was made for another server.
        return ModelChoice(HttpUpstream(url, limits=server.limits), f"Model: {named}{name}, found at {url}.")
    fact = (
        "Model: none is configured, and none answers at the usual local ports. The rehearsal model answers: it "
        "understands nothing, and every tool can be tried with it."
    )
    how = (
        "To choose another: --upstream URL, `upstream` under [server] in lastword.toml, or Settings on the page of "
        "`lastword up`, which tries it and keeps it."
    )
    # A name alone says nothing of whom to ask for it.
    remark = f"There is no server that could be asked for {visible(server.model)}." if server.model else ""
    return ModelChoice(Rehearsal(), fact, is_rehearsal=True, how_to_choose=how, remark=remark)


async def _remark(upstream: HttpUpstream, name: str | None) -> str:
    """What a look at its list of models shows. Whoever has no list may answer all the same."""
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            unlisted = ModelNames(await upstream.models()).why_unlisted(name)
    except TimeoutError:
        return ""
    except Refusal as refusal:
        if refusal.status == 404:
            return "" if upstream.url.endswith("/v1") else f"No model's server answers there; is it {upstream.url}/v1?"
        return f"It does not answer now: {visible(refusal.fact)}."
    finally:
        await upstream.close()  # Whether it is ever asked is decided later.
    return "" if unlisted is None else f"{unlisted[0].upper()}{unlisted[1:]}{'' if unlisted.endswith('?') else '.'}"


# An address, a name and a key are a tenth of this.
MAX_FILE_BYTES = 64 * 1024


class KeptModel(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to ask it."""

    upstream: str
    model: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        """Without the key: whatever shows this may be kept somewhere."""
        return f"KeptModel(upstream={self.upstream!r}, model={self.model!r})"

    @property
    def words(self) -> str:
        """Which it is."""
        return f"{f'{self.model} at ' if self.model else ''}{self.upstream}"

    def write(self, file: Path) -> None:
        """Write it down, in place of what was there. Whoever reads the file at the same time sees one of the two."""
        make_private(file.parent)
        write_whole(file, msgspec.json.encode(self))

    @classmethod
    def read(cls, file: Path) -> KeptModel | None:
        """What was kept; None when nothing was. A file that others could have written or read is refused."""
        try:
            descriptor = _open_to_read(file)
        except FileNotFoundError:
            return None
        except OSError as problem:
            raise ConfigError(f"the chosen model cannot be read: {problem.strerror}", place=str(file)) from None
        with os.fdopen(descriptor, "rb") as opened:
            facts = os.fstat(descriptor)
            if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
                raise ConfigError(
                    "others can read or write the file with the chosen model and its key",
                    place=str(file),
                    hint=f"make a new key, and remove the file: rm {file}",
                )
            try:
                if facts.st_size > MAX_FILE_BYTES:
                    raise msgspec.DecodeError
                return msgspec.json.decode(opened.read(), type=cls)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                raise ConfigError(
                    "the file with the chosen model is damaged", place=str(file), hint="remove it, and choose again"
                ) from None


def _open_to_read(file: Path) -> int:
    """A descriptor of a plain file; an OSError for anything else.

    Opening a pipe would wait for whoever writes into it, and whoever put it there never does.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a plain file", str(file))
    return descriptor
