"""What every command begins with: its options, the configuration, the memory, and words or JSON on stdout.

`lastword serve` begins here too: nothing of this loads what runs tools.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from lastword.cli import complain
from lastword.config import Config, load
from lastword.consent import People
from lastword.display import visible
from lastword.errors import ConfigError, StoreError
from lastword.journal import Journal, open_default_journal
from lastword.store import StoreAddress, default_path
from lastword.tools.guard import refuse_below

log = logging.getLogger("lastword")

# A notice is read in passing.
MAX_NAMED = 6

tools_option = click.option(
    "--tools",
    "folders",
    multiple=True,
    metavar="DIR",
    help="A tool folder, or a folder of them; may be repeated. Without it: tools/ in the current folder.",
)
plain_option = click.option("--plain", is_flag=True, help="Flat text and words instead of keys, for screen readers.")
store_option = click.option(
    "--store",
    metavar="URL",
    callback=lambda context, parameter, address: check_flag(address),
    help="The memory to use: sqlite:///FILE, postgresql://…, or memory: for none. Without it: the user's own.",
)
AUTO_APPROVE = "--auto-approve"
NOT_BY_ITSELF = "leave it out; with --wait a person answers its card elsewhere, and a rule of theirs may allow it"


def _turned_by_a_person(context: click.Context, parameter: click.Parameter, given: bool) -> bool:
    """The key of a preset is the person's: what an assistant runs does not turn it for itself."""
    if given:
        refuse_below(AUTO_APPROVE, hint=NOT_BY_ITSELF)
    return given


auto_approve_option = click.option(
    AUTO_APPROVE,
    is_flag=True,
    callback=_turned_by_a_person,
    help="Approve without asking, for tools that allow that too.",
)
wait_option = click.option(
    "--wait",
    is_flag=True,
    help="Let a card wait until somebody answers it elsewhere: lastword answer, from any terminal.",
)
project_option = click.option(
    "--project", metavar="DIR", help="A project folder: with the editor's own tools, and for tools that need an editor."
)
editor_option = click.option("--editor", is_flag=True, help="With the editor's own tools, as --project gives them.")
apply_option = click.option("--apply", metavar="SHA256", help="Do it without a question, if this is its digest.")
config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Instead of lastword.toml in this folder."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")

T = TypeVar("T")


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


def data_file(name: str | None = None) -> Path:
    """The store that is used when none is configured, or a file beside it."""
    store = default_path(sys.platform, os.environ, Path.home())
    return store if name is None else store.with_name(name)


def store_address(config: Config) -> str:
    """The configured store, or the one in the user's data folder."""
    return config.server.store or f"sqlite:///{data_file()}"


@asynccontextmanager
async def remembering(store: str | None) -> AsyncIterator[Journal]:
    """The memory of a command. What it could not keep is said, beside whatever the command itself has to say."""
    configured, people = configured_memory()
    journal = open_default_journal(store or configured)
    journal.people = people
    try:
        yield journal
    except BaseException:
        try:
            await journal.close()
        except StoreError as problem:
            # What the command itself failed of is told; this may be why, and stands beside it in the log.
            log.info("the journal could not be closed: %s", problem)
        raise
    try:
        await journal.close()
    except StoreError as problem:
        complain(str(problem))


def with_own_journal(store: str | None, place: str, work: Callable[[Journal], Awaitable[T]]) -> T:
    """The same for what a person decides: refused below a program in which tools run."""

    async def do(journal: Journal) -> T:
        refuse_below(place, journal.store)
        return await work(journal)

    refuse_below(place)  # before anything is opened, or made
    return with_journal(store, do)


def with_journal(store: str | None, work: Callable[[Journal], Awaitable[T]]) -> T:
    """Open the memory, do something with it, and close it again."""

    async def do() -> T:
        async with remembering(store) as journal:
            return await work(journal)

    return asyncio.run(do())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say(words: str, *, err: bool = False) -> None:
    """Print it. What others wrote in it is marked: a terminal must not obey them."""
    click.echo(visible(words), err=err)
