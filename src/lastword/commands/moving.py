"""`lastword journal copy` and `lastword journal grant`: a journal in another place, and who may use one on a server."""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import click

from lastword.cli import DONE
from lastword.commands.options import store_option, with_own_journal
from lastword.errors import LastWordError
from lastword.journal import Journal
from lastword.lazily import load_later
from lastword.store import Head, MemoryStore, MovableStore, Store, check_flag, copy_store, open_store, shown
from lastword.terminal import fitted
from lastword.tools import refuse_below

_postgres = load_later("lastword.store.postgres")

_WARNING = (
    "Use one of them from now on, and keep the other as a copy: what is answered in the one is still unanswered in the "
    "other."
)


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(source: str, target: str) -> int:
    """Copy a whole journal into an empty one, between a file and a server, and prove both.

    FROM and TO are addresses: sqlite:///FILE or postgresql://USER@HOST/DATABASE?store=NAME. A copy that was interrupted
    goes on when it is started again. Stop whatever uses the journal before.
    """
    refuse_below("lastword journal copy")
    for address in (source, target):
        check_flag(address)
    if shown(source) == shown(target):
        raise LastWordError(
            "both are the same journal", place="lastword journal copy", hint="name another one to copy to"
        )
    head = asyncio.run(_copy(_movable(source), _movable(target)))
    click.echo(f"{head.seq} {'record' if head.seq == 1 else 'records'}, the same in both, each as it was written.")
    click.echo(f"head {head}")
    click.echo(fitted(_WARNING, sys.stdout))
    return DONE


def _movable(address: str) -> MovableStore:
    store = open_store(address)
    if isinstance(store, MemoryStore):
        raise LastWordError(
            "a journal in memory is gone when this command ends",
            place="lastword journal copy",
            hint="name a file or a server: sqlite:///FILE, postgresql://…",
        )
    return cast(MovableStore, store)


async def _copy(source: MovableStore, target: MovableStore) -> Head:
    try:
        for store in (source, target):
            refuse_below("lastword journal copy", store)
        return await copy_store(source, target)
    finally:
        await source.close()
        await target.close()


@click.command()
@click.argument("role")
@click.option("--forgetting", is_flag=True, help="Also let it forget what records say: for lastword journal prune.")
@store_option
def grant(role: str, forgetting: bool, store: str | None) -> int:
    """Let a role of PostgreSQL use the journal: read it and append to it, and neither change nor delete anything.

    Whoever types this owns the journal: it is made, or brought up to date, if need be.
    """

    async def work(journal: Journal) -> None:
        kept: Store = journal.store
        if not isinstance(kept, _postgres.PostgresStore):
            raise LastWordError(
                "only a server has roles",
                place="lastword journal grant",
                hint="a file is protected by its owner and mode; a server is named like postgresql://HOST/DATABASE",
            )
        await kept.grant(role, forgetting=forgetting)

    with_own_journal(store, "lastword journal grant", work)
    more = ", append to it and forget what it says" if forgetting else " and append to it"
    click.echo(f"{role} may read the journal{more}. Nothing else.")
    return DONE
