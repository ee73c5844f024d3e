"""What was called, and in which sessions, on the command line: `lastword calls` and `lastword sessions`."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import click

from lastword.card import summary_of
from lastword.cli import DONE
from lastword.commands.options import json_option, print_json, store_option, with_journal
from lastword.consent import unhidden
from lastword.display import visible
from lastword.journal import Journal, data_of, handover_in_words
from lastword.store import Record

# What a screen or two hold. --last gives more.
LISTED = 40
# What a call begins with: a question, a start, or a rule's no, after which there is neither.
BEGUN = ("asked", "started", "forbidden")

last_option = click.option(
    "--last", default=LISTED, show_default=True, type=click.IntRange(1, 100_000), help="How many, from the newest on."
)


@click.command()
@click.option("--session", "session_id", metavar="ID", help="Those of one session.")
@last_option
@store_option
@json_option
def calls(session_id: str | None, last: int, store: str | None, as_json: bool) -> int:
    """List the calls that were made, newest first: what was asked for, and how it ended."""

    async def read(journal: Journal) -> list[dict[str, Any]]:
        return await _read_calls(journal, session_id, last)

    found = with_journal(store, read)
    if as_json:
        print_json(found)
        return DONE
    for facts in found:
        click.echo(f"{facts['call_id']}  {facts['began']}  {facts['status']:<15}  {visible(facts['tool'])}")
        click.echo(f"    {summary_of(unhidden(facts['arguments'])) or 'no arguments'}")
    if found:
        click.echo("lastword show ID tells the life of one; lastword calls --session ID lists those of a session.")
    else:
        click.echo("Nothing was called yet.")
    return DONE


@click.command()
@last_option
@store_option
@json_option
def sessions(last: int, store: str | None, as_json: bool) -> int:
    """List the sessions that called something, newest first, with how much they called."""

    async def read(journal: Journal) -> list[dict[str, Any]]:
        return await _read_sessions(journal, last)

    found = with_journal(store, read)
    if as_json:
        print_json(found)
        return DONE
    for facts in found:
        count = f"{facts['calls']} call{'' if facts['calls'] == 1 else 's'}"
        click.echo(f"{visible(facts['session_id'])}  {facts['began']} to {facts['ended']}  {count}")
    if found:
        click.echo(
            "lastword calls --session ID lists its calls; lastword chat --session ID comes back to a conversation."
        )
    else:
        click.echo("No session has called anything yet.")
    return DONE


async def _read_calls(journal: Journal, session_id: str | None, last: int) -> list[dict[str, Any]]:
    begun = await journal.store.read(kind=BEGUN, stream=session_id)
    first: dict[str, Record] = {}
    for record in begun:
        first.setdefault(record.subject, record)
    newest = list(reversed(first.values()))[:last]
    waiting, damaged = await journal.questions(everybodys=True)
    askers = dict.fromkeys(damaged, "unknown") | {facts["call_id"]: facts["asker"] for facts in waiting}
    return [await _call(journal, record, askers.get(record.subject)) for record in newest]


async def _call(journal: Journal, record: Record, asker: str | None) -> dict[str, Any]:
    data = data_of(record)
    ended = await journal.store.read(subject=record.subject, kind="finished", last=1)
    if ended:
        status = str(data_of(ended[0]).get("kind", "pruned"))
        if status == "handed_over":
            status = handover_in_words(await journal.life(record.subject))
    elif asker is not None:
        status = "left waiting" if asker == "ended" else "waiting"
    else:
        life = await journal.life(record.subject)
        status = "running" if journal.is_running(life) else "in doubt" if life.in_doubt else "interrupted"
    return {
        "call_id": record.subject,
        "session_id": record.stream,
        "tool": data.get("tool", "(pruned)"),
        "arguments": data.get("arguments", {}),
        "began": _time(record),
        "status": status,
    }


async def _read_sessions(journal: Journal, last: int) -> list[dict[str, Any]]:
    found: dict[str, list[Record]] = {}
    for record in await journal.store.read(kind=BEGUN):
        found.setdefault(record.stream, []).append(record)
    newest = sorted(found.items(), key=lambda pair: pair[1][-1].seq, reverse=True)[:last]
    return [
        {
            "session_id": session_id,
            "began": _time(records[0]),
            "ended": _time(records[-1]),
            "calls": len({record.subject for record in records}),
        }
        for session_id, records in _in_order(newest)
    ]


def _in_order(pairs: Sequence[tuple[str, list[Record]]]) -> Sequence[tuple[str, list[Record]]]:
    return [(session_id, sorted(records, key=lambda record: record.seq)) for session_id, records in pairs]


def _time(record: Record) -> str:
    return f"{datetime.datetime.fromtimestamp(record.at / 1e6).astimezone():%Y-%m-%d %H:%M:%S}"
