"""`lastword grants`: what you have allowed from cards, how much of it is left, and taking it back."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from lastword.card import responses
from lastword.cli import DONE, FAILED
from lastword.commands.doubt import WHO
from lastword.commands.options import json_option, print_json, store_option, with_journal, with_own_journal
from lastword.journal import Journal
from lastword.rules import (
    Grant,
    how_long_words,
    last_use,
    left_words,
    revoke,
    seen_grants,
    terms_words,
    whose_words,
    why_over,
)


@click.group(invoke_without_command=True)
@store_option
@json_option
@click.pass_context
def grants(context: click.Context, store: str | None, as_json: bool) -> int:
    """List what you have allowed from cards for calls like it, and how much of it is left."""
    if context.invoked_subcommand is not None:
        context.obj = store
        return DONE
    return _list(store, as_json)


@grants.command("list", short_help="The same as without a word.")
@store_option
@json_option
def list_command(store: str | None, as_json: bool) -> int:
    """List what you have allowed from cards, and how much of it is left."""
    return _list(store, as_json)


@grants.command("revoke", short_help="Take one back, or all of them.")
@click.argument("grant_id", required=False)
@click.option("--all", "everything", is_flag=True, help="Take all of them back.")
@store_option
def revoke_command(grant_id: str | None, everything: bool, store: str | None) -> int:
    """Take a grant back. A call that it has started goes on; no other starts by it."""
    if (grant_id is None) != everything:
        raise click.UsageError("name a grant, or say --all")

    async def take_back(journal: Journal) -> list[tuple[str, bool]]:
        ids = [grant.id for grant in await seen_grants(journal)] if everything else [str(grant_id)]
        return [(id, await revoke(journal, id, WHO)) for id in ids]

    done = with_own_journal(store, "lastword grants revoke", take_back)
    for id, is_taken in done:
        click.echo(f"{id} is taken back." if is_taken else f"{id} had ended before.")
    if not done:
        click.echo(responses.NO_GRANTS)
    return DONE if all(is_taken for _, is_taken in done) else FAILED


def _list(store: str | None, as_json: bool) -> int:
    async def look(journal: Journal) -> tuple[str, list[tuple[Grant, str, int, dict[str, Any], str | None]]]:
        return journal.people.me, [
            (grant, how_long_words(grant, journal), *await last_use(journal, grant.id), await why_over(journal, grant))
            for grant in await seen_grants(journal)
        ]

    me, found = with_journal(store, look)
    if as_json:
        print_json(
            [
                msgspec.to_builtins(grant)
                | {"used": used, "totals": {name: str(total) for name, total in totals.items()}, "over": over}
                for grant, _, used, totals, over in found
            ]
        )
        return DONE
    for grant, how_long, used, totals, over in found:
        click.echo(f"{grant.id}  {terms_words(grant.tool, grant.where)}")
        how = f"over: {over}" if over else how_long
        click.echo(f"  {whose_words(grant, me)}, {how}; {left_words(grant, used, totals)}")
    if not found:
        click.echo(responses.NO_GRANTS)
    return DONE
