"""`lastword journal`: proving, exporting and pruning what is remembered."""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from lastword.cli import DONE
from lastword.commands.options import store_option, with_journal
from lastword.errors import LastWordError, StoreError
from lastword.journal import Journal
from lastword.store import Head, parse_head, verify_store
from lastword.store.export import export, verify_export


@click.group()
def journal() -> None:
    """Verify, export or prune what is remembered."""


@journal.command()
@click.option("--head", metavar="SEQ:DIGEST", help="A head that you kept elsewhere: nothing before it may be missing.")
@click.option("--file", metavar="FILE", help="Verify an exported file instead.")
@store_option
def verify(head: str | None, file: str | None, store: str | None) -> int:
    """Prove that nothing in the journal was changed, and print its head."""
    try:
        pin = None if head is None else parse_head(head)
    except StoreError as problem:
        raise LastWordError(problem.fact, place="--head", hint=problem.hint) from None
    if file is not None:
        try:
            with Path(file).open("rb") as lines:
                end = verify_export(lines, name=file, head=pin)
        except OSError as problem:
            raise LastWordError(f"it cannot be read: {problem.strerror}", place=file) from None
    else:
        end = with_journal(store, lambda journal: _verify(journal, pin))
    click.echo(f"{end.seq} {'record' if end.seq == 1 else 'records'}, each as it was written.")
    click.echo(f"head {end}")
    if pin is None:
        click.echo("Keep the head somewhere else: with --head it proves later that nothing was cut off.")
    return DONE


async def _verify(journal: Journal, pin: Head | None) -> Head:
    """A journal that is not there proves nothing, so the empty one that opening makes must not pass for it."""
    if not (await journal.store.head()).seq:
        raise LastWordError(
            "there is nothing in this journal",
            place="lastword journal",
            hint="--store names another; lastword doctor says which",
        )
    return await verify_store(journal.store, head=pin)


@journal.command("export")
@click.argument("file", required=False, default="-")
@store_option
def export_command(file: str, store: str | None) -> int:
    """Write every record as a line of JSON. `-`, or nothing, is standard output."""

    async def write(journal: Journal) -> None:
        try:
            with click.open_file(file, "wb") as out:
                async for line in export(journal.store):
                    out.write(line)
        except OSError as problem:
            if isinstance(problem, BrokenPipeError):
                raise
            raise LastWordError(f"it cannot be written: {problem.strerror}", place=file) from None

    with_journal(store, write)
    return DONE


@journal.command()
@click.option("--before", required=True, metavar="DATE", help="Forget the contents of records before this day.")
@store_option
def prune(before: str, store: str | None) -> int:
    """Forget what old records say. That they were there, their order and their keys stay, and stay verifiable.

    Sessions that still have a call in doubt, a waiting question or an unfinished run keep everything.
    """
    try:
        day = datetime.datetime.fromisoformat(before).astimezone()
    except ValueError:
        raise LastWordError(
            f"found {before!r}, expected a date", place="--before", hint="for instance 2026-01-31"
        ) from None
    forgotten = with_journal(store, lambda journal: journal.prune(day.timestamp()))
    click.echo(f"The contents of {forgotten} {'record was' if forgotten == 1 else 'records were'} forgotten.")
    return DONE
