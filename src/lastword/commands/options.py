"""What several commands share: their options, the memory, the question about found code, JSON on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import click

from lastword.cli import complain
from lastword.display import visible
from lastword.errors import StoreError
from lastword.journal import Journal
from lastword.journal.opening import open_default_journal
from lastword.terminal.card import fitted
from lastword.terminal.keys import forget_typed
from lastword.tools.code import code_files
from lastword.tools.toolbox import Answer, FoundCode

tools_option = click.option(
    "--tools",
    "folders",
    multiple=True,
    metavar="DIR",
    help="A tool folder, or a folder of them; may be repeated. Without it: tools/ in the current folder.",
)
plain_option = click.option("--plain", is_flag=True, help="Flat text and words instead of keys, for screen readers.")
store_option = click.option(
    "--store", metavar="URL", help="The memory to use: sqlite:///FILE, or memory: for none. Without it: the user's own."
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
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")


T = TypeVar("T")


@asynccontextmanager
async def remembering(store: str | None) -> AsyncIterator[Journal]:
    """The memory of a command. What it could not keep is said, beside whatever the command itself has to say."""
    journal = open_default_journal(store)
    try:
        yield journal
    except BaseException:
        with suppress(StoreError):
            await journal.close()
        raise
    try:
        await journal.close()
    except StoreError as problem:
        complain(str(problem))


def with_journal(store: str | None, work: Callable[[Journal], Awaitable[T]]) -> T:
    """Open the memory, do something with it, and close it again."""

    async def do() -> T:
        async with remembering(store) as journal:
            return await work(journal)

    return asyncio.run(do())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def ask_trust(found: FoundCode, changed: bool) -> Answer:
    """Ask whether code that was found here may run. Only a whole word agrees."""
    folder = visible(str(found.folder))  # the names may be chosen by an attacker
    if changed:
        click.echo(f"The code in {folder} has changed since you agreed to run it.", err=True)
    else:
        click.echo(f"The code in {folder} was found here. You have not agreed to run it yet.", err=True)
    for file in code_files(found.folder):
        click.echo(f"  {visible(str(file))}", err=True)
    rights = "It would run with all the rights of your account."
    words = f"{rights} Type yes to run this code, always to trust this folder also when its code changes, or no, and"
    click.echo(fitted(f"{words} press Enter.", sys.stderr), err=True)
    forget_typed(sys.stdin.fileno())  # what was typed before the question answers nothing
    while True:
        answer = click.prompt("Run it", err=True, type=str, prompt_suffix="? ").strip().casefold()
        if answer == "yes":
            return "yes"
        if answer == "always":
            return "always"
        if answer == "no":
            return "no"
        click.echo("Please type yes, always or no.", err=True)
