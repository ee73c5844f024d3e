"""What happened, on the command line: `lastword show`, `calls`, `sessions`, `runs` and `undo`."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lastword.call import Undone, take_back
from lastword.commands.invocation import (
    DONE,
    EXIT_CODES,
    FAILED,
    CommandOption,
    arguments_line,
    print_json,
    print_list,
    say,
    with_journal,
    with_own_journal,
)
from lastword.editor import ProjectEditor
from lastword.errors import EditError, LastWordError, SessionError
from lastword.journal import Journal, Life, data_of, timeline

if TYPE_CHECKING:
    from lastword.consent import Kept
    from lastword.store import Record


@click.command()
@click.argument("id")
@click.option("--save", "folder", metavar="DIR", help="Write the images and files that it returned into a folder.")
@CommandOption.store
@CommandOption.json
def show(id: str, folder: str | None, store: str | None, as_json: bool) -> int:
    """Show the life of a call, a run or a session, with times."""

    async def read(journal: Journal) -> tuple[Sequence[Record], list[Path]]:
        records = await journal.store.read(below=id) or await journal.store.read(stream=id)
        return records, [] if folder is None else await save(journal, held_by(records), Path(folder))

    records, saved = with_journal(store, read)
    if not records:
        raise LastWordError(
            f"nothing is remembered of {id}", place="lastword show", hint="lastword runs and approvals list ids"
        )
    if as_json:
        print_json([_record_facts(record) for record in records])
    else:
        for line in timeline(records, of=id):
            click.echo(line)
        for line in listed(id, held_by(records)) if folder is None else ():
            say(line)
    for path in saved:
        say(f"wrote {path}", err=True)
    if folder is not None and not saved:
        raise LastWordError("it returned nothing that could be saved", place=id)
    return DONE


def _record_facts(record: Record) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "session_id": record.stream,
        "kind": record.kind,
        "subject": record.subject,
        "at": record.at / 1e6,
        "data": data_of(record),
    }


# What a screen or two hold. --last gives more.
LISTED = 40
# What a call begins with: a question, a start, or a rule's no, after which there is neither.
BEGUN = ("asked", "started", "forbidden")
# The ends of calls that are failures: those with which `lastword call` says so, and the word of an agent.
FAILURES: frozenset[str] = frozenset(kind for kind, code in EXIT_CODES.items() if code == FAILED) | {
    "handed over, failed"
}

last_option = click.option(
    "--last", default=LISTED, show_default=True, type=click.IntRange(1, 100_000), help="How many to list, newest first."
)


@click.command()
@click.option("--session", "session_id", metavar="ID", help="Only those of one session.")
@click.option(
    "--failed",
    is_flag=True,
    help="Only failures: the tool said so, raised an error, took too long or could not describe its call, or an agent "
    "says that it failed. Denied and cancelled calls, wrong arguments and calls in doubt do not count.",
)
@last_option
@CommandOption.store
@CommandOption.json
def calls(session_id: str | None, failed: bool, last: int, store: str | None, as_json: bool) -> int:
    """List the calls that were made, newest first: what was asked for, and how it ended."""

    async def read(journal: Journal) -> list[dict[str, Any]]:
        return await _read_calls(journal, session_id, last, only_failed=failed)

    def tell(facts: dict[str, Any]) -> None:
        say(f"{facts['call_id']}  {facts['began']}  {facts['status']:<15}  {facts['tool']}")
        click.echo(f"    {arguments_line(facts['arguments'])}")

    after = "lastword show ID tells the life of one; lastword calls --session ID lists those of a session."
    none = "No call has failed." if failed else "Nothing was called yet."
    return print_list(with_journal(store, read), as_json, tell, after=after, none=none)


@click.command()
@last_option
@CommandOption.store
@CommandOption.json
def sessions(last: int, store: str | None, as_json: bool) -> int:
    """List the sessions that called something, newest first, and how many calls each made."""

    async def read(journal: Journal) -> list[dict[str, Any]]:
        return await _read_sessions(journal, last)

    def tell(facts: dict[str, Any]) -> None:
        count = f"{facts['calls']} call{'' if facts['calls'] == 1 else 's'}"
        say(f"{facts['session_id']}  {facts['began']} to {facts['ended']}  {count}")

    after = "lastword calls --session ID lists its calls; lastword chat --session ID comes back to a conversation."
    return print_list(with_journal(store, read), as_json, tell, after=after, none="No session has called anything yet.")


@click.command()
@CommandOption.store
@CommandOption.json
def runs(store: str | None, as_json: bool) -> int:
    """List the scripts that were carried out, newest first, and calls in doubt that belong to no script."""
    found = with_journal(store, _read_runs)
    if as_json:
        print_json(found)
        return DONE
    for facts in found:
        say(f"{facts['run_id']}  {facts['began']}  {facts['status']:11}  {facts['name'] or 'a script'}")
    if not found:
        click.echo("No script was carried out yet. lastword run FILE.nuwa does.")
    elif any(facts["status"] in ("in doubt", "interrupted", "waiting") for facts in found):
        click.echo("lastword resume ID goes on with one that has not ended; lastword show ID says how it stands.")
    known = {facts["run_id"] for facts in found}
    alone = [life for life in with_journal(store, Journal.in_doubt) if life.call_id.rpartition(".")[0] not in known]
    for life in alone:
        assert life.started is not None
        say(f"{life.call_id}  in doubt: a call of {life.started['tool']}, and nobody knows how it ended")
    if alone:
        click.echo("lastword show ID tells what is known of one; lastword resolve ID decides about it.")
    return DONE


async def _read_runs(journal: Journal) -> list[dict[str, Any]]:
    ended = {r.subject: data_of(r).get("status", "pruned") for r in await journal.store.read(kind="run_finished")}
    doubtful = {life.call_id.rpartition(".")[0] for life in await journal.in_doubt()}
    waiting, damaged = await journal.questions(everybodys=True)
    asked = {id.rpartition(".")[0] for id in (*damaged, *(facts["call_id"] for facts in waiting))}

    def status(run_id: str) -> str:
        if run_id in ended:
            return str(ended[run_id])
        if run_id in doubtful:
            return "in doubt"
        if run_id in asked:
            return "waiting"
        return "running" if journal.store.is_held(f"run:{run_id}") else "interrupted"

    return [
        {
            "run_id": record.subject,
            "session_id": record.stream,
            "name": data_of(record).get("name"),
            "began": _time(record),
            "status": status(record.subject),
        }
        for record in reversed(await journal.store.read(kind="run_started"))
    ]


async def _read_calls(
    journal: Journal, session_id: str | None, last: int, *, only_failed: bool
) -> list[dict[str, Any]]:
    begun = await journal.store.read(kind=BEGUN, stream=session_id)
    first: dict[str, Record] = {}
    for record in begun:
        first.setdefault(record.subject, record)
    waiting, damaged = await journal.questions(everybodys=True)
    askers = dict.fromkeys(damaged, "unknown") | {facts["call_id"]: facts["asker"] for facts in waiting}
    found: list[dict[str, Any]] = []
    for record in reversed(first.values()):
        facts = await _call(journal, record, askers.get(record.subject))
        if not only_failed or facts["status"] in FAILURES:
            found.append(facts)
        if len(found) == last:
            break
    return found


async def _call(journal: Journal, record: Record, asker: str | None) -> dict[str, Any]:
    data = data_of(record)
    ended = await journal.store.read(subject=record.subject, kind="finished", last=1)
    if ended:
        status = str(data_of(ended[0]).get("kind", "pruned"))
        if status == "handed_over":
            status = (await journal.life(record.subject)).handover_in_words()
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
        for session_id, records in newest
    ]


def _time(record: Record) -> str:
    return f"{datetime.datetime.fromtimestamp(record.at / 1e6).astimezone():%Y-%m-%d %H:%M:%S}"


def held_by(records: Iterable[Record]) -> list[tuple[str, Kept]]:
    """What these records hold, each with the call that returned it."""
    return [
        (record.subject, kept) for record in records if record.kind == "finished" for kept in Life.content_of(record)
    ]


def listed(id: str, held: Sequence[tuple[str, Kept]]) -> Iterator[str]:
    """What there is, and how to get it."""
    if not held:
        return
    yield "Kept:"
    for call_id, kept in held:
        about = f": {kept.alt}" if kept.alt else ""
        of = "" if call_id == id else f" of {call_id}"
        facts = f"{kept.name}{of}, {kept.media_type}, {kept.size_in_words(kept.size)}{about}"
        yield f"  {kept.kind:5}  {facts}"
    yield f"lastword show {id} --save DIR writes {'it' if len(held) == 1 else 'them'} into a folder."


async def save(journal: Journal, held: Sequence[tuple[str, Kept]], folder: Path) -> list[Path]:
    """Write everything into a folder, over nothing that is there."""
    try:
        saved = []
        for call_id, named in held:
            kept, data = await journal.content(call_id, named.digest)  # Proven, whatever the list says.
            saved.append(_write(folder, kept.clean_name(named.name, kept.kind, kept.media_type), data))
        return saved
    except OSError as problem:
        raise LastWordError(f"it cannot be written: {problem.strerror}", place=str(folder)) from None


def _write(folder: Path, name: str, data: bytes) -> Path:
    """A new file of this name, or with a number behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, ending = os.path.splitext(name)
    for number in count(1):
        path = folder / (name if number == 1 else f"{stem}-{number}{ending}")
        try:
            # A link that somebody put there beforehand is not followed either.
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    raise AssertionError


@click.command()
@click.argument("call_id")
@click.option("--project", metavar="DIR", help="The project folder, if it is not where it was when the call ran.")
@CommandOption.store
@CommandOption.json
def undo(call_id: str, project: str | None, store: str | None, as_json: bool) -> int:
    """Undo what a call changed in files: all of it, byte for byte, or nothing.

    Refused when a file was changed since. You can also undo a call that was running when its program died; make sure
    that the program is really gone.
    """

    def open_editor(folder: Path | None) -> ProjectEditor:
        where = folder if project is None else project
        if where is None:
            raise SessionError("the journal does not say in which folder it ran", place=call_id, hint="--project DIR")
        return ProjectEditor(where)

    async def do(journal: Journal) -> Undone:
        return await take_back(journal, open_editor, call_id, by="a person at the command line")

    try:
        undone: Undone = with_own_journal(store, "lastword undo", do)
    except EditError as problem:
        say(str(problem), err=True)
        return FAILED
    if as_json:
        print_json(msgspec.to_builtins(undone))
    else:
        say(undone.message)
    return DONE
