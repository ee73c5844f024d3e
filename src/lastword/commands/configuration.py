"""The configuration of a command. `lastword serve` reads it too: nothing here loads what runs tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lastword.cli import complain
from lastword.config import Config, load
from lastword.consent import People
from lastword.errors import ConfigError
from lastword.store import StoreAddress

# A notice is read in passing.
MAX_NAMED = 6


def read_config(path: Path | None = None, flags: Mapping[str, Any] | None = None) -> Config:
    """The configuration of a command. What does not count in it is said."""
    config = load(path, environ=os.environ, flags=flags)
    if config.laid_aside:
        complain(laid_aside_words(config))
    return config


def configured_memory() -> tuple[str | None, People]:
    """The store that LASTWORD_STORE or lastword.toml names, and whose it is: for commands that want nothing else."""
    config = load(None, environ=os.environ)
    return config.server.store, people_of(config)


def people_of(config: Config) -> People:
    """Who sits here, and who may answer for whom."""
    answers = {who: tuple(whose) for who, whose in config.people.answer.items()}
    return People(config.people.me, answers)


def laid_aside_words(config: Config) -> str:
    """Which settings of a found file do not count, and what to type."""
    named = ", ".join(config.laid_aside[:MAX_NAMED])
    more = f" and {len(config.laid_aside) - MAX_NAMED} more" if len(config.laid_aside) > MAX_NAMED else ""
    if config.preset:  # It was accepted, and its presets are there.
        return (
            f"{config.file}: a tool or an agent started this, so this does not count: {named}{more}\n"
            "hint: a preset auto-approves in conversations that you start yourself"
        )
    return (
        f"{config.file}: it was found here and you have not accepted it, so this does not count: {named}{more}\n"
        "hint: lastword trust shows it and asks you"
    )


def check_flag(address: str | None) -> str | None:
    """Refuse an address with a password in it that was typed on a command line: everybody can list those."""
    if address is not None and StoreAddress(address).holds_password:
        raise ConfigError(
            "a password on the command line can be read by everybody on this machine",
            place="--store",
            hint="put it into ~/.pgpass, PGPASSWORD or LASTWORD_STORE, and leave it out of the address",
        )
    return address
