"""`lastword stop`: one act that stops everything of this person."""

from __future__ import annotations

import click
import msgspec

from lastword.call import Stopped, stop
from lastword.cli import DONE, FAILED
from lastword.commands.doubt import WHO
from lastword.commands.options import json_option, print_json, store_option, with_journal
from lastword.consent import Answerer
from lastword.journal import Journal
from lastword.rules import revoke_all
from lastword.tools import is_below


@click.command("stop")
@store_option
@json_option
def stop_command(store: str | None, as_json: bool) -> int:
    """Stop everything, of all programs that share this memory: deny what waits, cancel what runs, revoke every grant.

    Nothing that was asked for before can be allowed afterwards. What could not be stopped is listed.
    """

    async def work(journal: Journal) -> Stopped:
        # Less may happen by whoever wishes so, and below a tool too; but then it is not said that a person did.
        by = Answerer("below") if is_below(journal.store) else WHO
        return await (await stop(journal, by, revoke=[revoke_all])).settled()

    stopped = with_journal(store, work)
    if as_json:
        print_json(msgspec.to_builtins(stopped) | {"complete": stopped.is_complete})
    else:
        for line in stopped.words():
            click.echo(line)
    return DONE if stopped.is_complete else FAILED
