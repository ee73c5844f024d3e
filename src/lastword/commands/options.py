"""What several commands share: their options, the memory, the question about found code, JSON on stdout."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import click

from lastword.cli import complain
from lastword.commands.configuration import check_flag, configured_memory
from lastword.display import visible
from lastword.errors import StoreError
from lastword.journal import Journal, open_default_journal
from lastword.terminal import fitted, settle
from lastword.tools import Unagreed
from lastword.tools.guard import refuse_below

log = logging.getLogger("lastword")

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
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")


T = TypeVar("T")

RIGHTS = "It would run with all the rights of your account."


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


Agreed = Literal["yes", "always", "no"]


def ask_trust(questions: Sequence[Unagreed]) -> list[Agreed]:
    """Ask whether code that was found here may run. Only a whole word agrees; one word is enough for all."""
    if len(questions) == 1:
        return [_ask_one(questions[0])]
    for question in questions:
        _show(question)
    count = f"all {len(questions)}"
    words = f"{RIGHTS} Type all to run the code of {count}, one to be asked about each by itself, or no, and"
    click.echo(fitted(f"{words} press Enter.", sys.stderr), err=True)
    word = _typed(f"Run the code of {count}", ("all", "one", "no"))
    if word == "one":
        return _ask_singly(questions)
    return ["yes" if word == "all" else "no"] * len(questions)


def _ask_singly(questions: Sequence[Unagreed]) -> list[Agreed]:
    """Until the first no: without all of its tools nothing starts."""
    answers: list[Agreed] = []
    for question in questions:
        answers.append("no" if "no" in answers else _ask_one(question))
    return answers


def _ask_one(question: Unagreed) -> Agreed:
    _show(question)
    words = f"{RIGHTS} Type yes to run this code, always to trust this folder also when its code changes, or no, and"
    click.echo(fitted(f"{words} press Enter.", sys.stderr), err=True)
    return _typed("Run it", ("yes", "always", "no"))


def _show(question: Unagreed) -> None:
    folder = visible(str(question.found.folder))  # the names may be chosen by an attacker
    if question.is_changed:
        click.echo(f"The code in {folder} has changed since you agreed to run it.", err=True)
    else:
        click.echo(f"The code in {folder} was found here. You have not agreed to run it yet.", err=True)
    for file in question.found.folder.files():
        click.echo(f"  {visible(str(file))}", err=True)


Word = TypeVar("Word", bound=str)


def _typed(question: str, words: tuple[Word, Word, Word]) -> Word:
    """One of these words, whole."""
    settle(sys.stdin)  # what was typed before the question answers nothing
    while True:
        answer = click.prompt(question, err=True, type=str, prompt_suffix="? ").strip().casefold()
        for word in words:
            if answer == word:
                return word
        click.echo(f"Please type {words[0]}, {words[1]} or {words[2]}.", err=True)
