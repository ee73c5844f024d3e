"""What assent remembers, on the command line: runs, calls, waiting questions, calls in doubt, the journal itself."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from assent.approval import ApprovalRequest, UserAction
from assent.calls import Decision
from assent.cli import DONE, FAILED, NOT_ALLOWED
from assent.commands.options import (
    ask_trust,
    json_option,
    plain_option,
    print_json,
    project_option,
    store_option,
    tools_option,
)
from assent.commands.scripts import finish_run
from assent.commands.tools import EXIT_CODES, print_outcome
from assent.display import visible
from assent.editor.project import ProjectEditor
from assent.editor.tools import editor_tools
from assent.errors import AssentError, SessionError
from assent.journal import Journal, data_of
from assent.opening import open_default_journal
from assent.registry import ToolRegistry
from assent.runs import Run
from assent.session import Session
from assent.store import Record, parse_head, verify_store
from assent.store.export import export, verify_export
from assent.terminal.approver import terminal_approver
from assent.terminal.arguments import read_arguments
from assent.terminal.attendance import attend
from assent.timeline import timeline
from assent.toolbox import HERE, find_tools

T = TypeVar("T")


@click.command()
@store_option
@json_option
def runs(store: str | None, as_json: bool) -> int:
    """List the scripts that were carried out, newest first."""

    async def read(journal: Journal) -> list[dict[str, Any]]:
        ended = {r.subject: data_of(r) for r in await journal.store.read(kind="run_finished")}
        begun = await journal.store.read(kind="run_started")
        return [_run_facts(record, ended.get(record.subject)) for record in reversed(begun)]

    found = with_journal(store, read)
    if as_json:
        print_json(found)
    for facts in [] if as_json else found:
        click.echo(f"{facts['run_id']}  {facts['began']}  {facts['status']:9}  {visible(facts['name'] or 'a script')}")
    if not found and not as_json:
        click.echo("No script was carried out yet. assent run FILE.nuwa does.")
    return DONE


@click.command()
@click.argument("id")
@store_option
@json_option
def show(id: str, store: str | None, as_json: bool) -> int:
    """Show the life of a call, a run or a session, with times."""

    async def read(journal: Journal) -> Sequence[Record]:
        of_subject = [r for r in await journal.store.read() if r.subject == id or r.subject.startswith(f"{id}.")]
        return of_subject or await journal.store.read(stream=id)

    records = with_journal(store, read)
    if not records:
        raise AssentError(
            f"nothing is remembered of {id}", place="assent show", hint="assent runs and approvals list ids"
        )
    if as_json:
        print_json([_record_facts(record) for record in records])
    else:
        for line in timeline(records):
            click.echo(line)
    return DONE


@click.command()
@click.argument("run_id")
@tools_option
@project_option
@store_option
@plain_option
@json_option
def resume(
    run_id: str, folders: tuple[str, ...], project: str | None, store: str | None, plain: bool, as_json: bool
) -> int:
    """Go on with a run that was interrupted. What was done is not done again."""
    approver = terminal_approver(plain=plain)
    registry = _registry(folders, project, asking=approver is not None)

    async def go_on(journal: Journal) -> Run:
        session_id = await _session_of(journal, run_id)
        editor = None if project is None else ProjectEditor(project)
        async with Session(registry, id=session_id, approver=approver, journal=journal, editor=editor) as session:
            return await attend(session, session.resume(run_id), approver=approver, plain=plain)

    return finish_run(with_journal(store, go_on), as_json=as_json, show_output=True)


@click.command()
@store_option
@json_option
def approvals(store: str | None, as_json: bool) -> int:
    """List the questions that wait for an answer, of all programs that share this memory."""
    waiting = with_journal(store, Journal.waiting)
    if as_json:
        print_json(waiting)
        return DONE
    for facts in waiting:
        request = ApprovalRequest.from_facts(facts)
        click.echo(f"{facts['call_id']}  {visible(request.title)} ({request.tool})")
    click.echo("Nothing waits for an answer." if not waiting else "assent answer ID shows one and takes your answer.")
    return DONE


@click.command()
@click.argument("call_id")
@click.option("--allow", "said", flag_value="allow", help="Allow it, having seen it in `assent approvals --json`.")
@click.option("--deny", "said", flag_value="deny", help="Deny it.")
@click.option("--reason", metavar="TEXT", help="Why you deny it; the assistant reads it.")
@click.option("--edit", "edits", multiple=True, metavar="NAME=VALUE", help="Allow it with an argument changed.")
@store_option
@plain_option
def answer(
    call_id: str, said: str | None, reason: str | None, edits: tuple[str, ...], store: str | None, plain: bool
) -> int:
    """Answer a waiting question from anywhere: with its card here, or with --allow or --deny."""
    if reason and said != "deny":
        raise AssentError("a reason goes with --deny", place="assent answer")

    async def reply(journal: Journal) -> tuple[UserAction, bool]:
        facts = next((f for f in await journal.waiting() if f["call_id"] == call_id), None)
        if facts is None:
            raise SessionError("no such question waits", place=call_id, hint="assent approvals lists those that do")
        request = ApprovalRequest.from_facts(facts)
        action = await _action(request, said, reason, edits, plain)
        return action, await journal.answer(facts, action, "assent answer")

    action, first = with_journal(store, reply)
    if not first:
        click.echo("Somebody else answered it first. Nothing was changed.", err=True)
        return FAILED
    click.echo("Allowed." if action.primary_confirmed else "Denied.")
    click.echo("The program that asked goes on by itself; if it has ended, assent resume goes on with its run.")
    return DONE


@click.command()
@click.argument("call_id")
@click.option("--again", "decision", flag_value="again", help="Run it once more, with the same call id.")
@click.option("--done", "decision", flag_value="done", help="Take it as done.")
@click.option("--abandon", "decision", flag_value="abandon", help="Give it up; what it did is not known.")
@tools_option
@project_option
@store_option
def resolve(
    call_id: str, decision: Decision | None, folders: tuple[str, ...], project: str | None, store: str | None
) -> int:
    """Decide about a call that was running when its program died. Without a decision: show what is known."""
    if decision is None:

        async def look(journal: Journal) -> list[str]:
            life = await journal.life(call_id)
            if not life.in_doubt:
                raise SessionError("this call is not in doubt", place=call_id, hint="assent show says how it stands")
            return timeline(await journal.store.read(subject=call_id))

        for line in with_journal(store, look):
            click.echo(line)
        click.echo("Nobody knows how it ended. Look at what it changes, then say --again, --done or --abandon;")
        click.echo("assent undo takes back what it may have changed in files.")
        return NOT_ALLOWED
    registry = _registry(folders, project, asking=False) if decision == "again" else ToolRegistry()

    async def decide(journal: Journal) -> Any:
        session_id = await _session_of(journal, call_id)
        editor = None if project is None else ProjectEditor(project)
        async with Session(registry, id=session_id, journal=journal, editor=editor) as session:
            return await session.resolve(call_id, decision, by="a person at the command line")

    outcome = with_journal(store, decide)
    print_outcome(outcome)
    return DONE if decision != "again" else EXIT_CODES[outcome.kind]


@click.group()
def journal() -> None:
    """Verify, export or prune what is remembered."""


@journal.command()
@click.option("--head", metavar="SEQ:DIGEST", help="A head that you kept elsewhere: nothing before it may be missing.")
@click.option("--file", metavar="FILE", help="Verify an exported file instead.")
@store_option
def verify(head: str | None, file: str | None, store: str | None) -> int:
    """Prove that nothing in the journal was changed, and print its head."""
    pin = None if head is None else parse_head(head)
    if file is not None:
        with Path(file).open("rb") as lines:
            end = verify_export(lines, name=file, head=pin)
    else:
        end = with_journal(store, lambda journal: verify_store(journal.store, head=pin))
    click.echo(f"{end.seq} records, each as it was written.")
    click.echo(f"head {end}")
    if pin is None:
        click.echo("Keep the head somewhere else: with --head it proves later that nothing was cut off.")
    return DONE


@journal.command("export")
@click.argument("file", required=False, default="-")
@store_option
def export_command(file: str, store: str | None) -> int:
    """Write every record as a line of JSON. `-`, or nothing, is standard output."""

    async def write(journal: Journal) -> None:
        with click.open_file(file, "wb") as out:
            async for line in export(journal.store):
                out.write(line)

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
        raise AssentError(
            f"found {before!r}, expected a date", place="--before", hint="for instance 2026-01-31"
        ) from None
    forgotten = with_journal(store, lambda journal: journal.prune(day.timestamp()))
    click.echo(f"The contents of {forgotten} records were forgotten.")
    return DONE


def with_journal(store: str | None, work: Any) -> Any:
    """Open the memory, do something with it, and close it again."""

    async def do() -> Any:
        journal = open_default_journal(store)
        try:
            return await work(journal)
        finally:
            await journal.close()

    return asyncio.run(do())


def _registry(folders: Sequence[str], project: str | None, *, asking: bool) -> ToolRegistry:
    registry = ToolRegistry()
    if folders or HERE.is_dir():
        find_tools(folders).load(registry, ask=ask_trust if asking else None)
    if project is not None:
        editor_tools(registry)
    return registry


async def _session_of(journal: Journal, subject: str) -> str:
    found = await journal.store.read(subject=subject, limit=1)
    if not found:
        raise SessionError("nothing is remembered of it", place=subject, hint="assent runs and approvals list ids")
    return found[0].stream


async def _action(
    request: ApprovalRequest, said: str | None, reason: str | None, edits: Sequence[str], plain: bool
) -> UserAction:
    if edits:
        changed = read_arguments(request.manifest, edits, {})
        return request.edit(**changed)
    if said == "allow":
        return request.allow()
    if said == "deny":
        return request.deny(reason)
    approver = terminal_approver(plain=plain)
    if approver is None:
        raise AssentError(
            "there is no terminal to show the card on", place="assent answer", hint="say --allow or --deny"
        )
    return await approver(request)


def _run_facts(record: Record, ended: dict[str, Any] | None) -> dict[str, Any]:
    moment = datetime.datetime.fromtimestamp(record.at / 1e6).astimezone()
    return {
        "run_id": record.subject,
        "session_id": record.stream,
        "name": data_of(record).get("name"),
        "began": moment.isoformat(sep=" ", timespec="seconds"),
        "status": "unfinished" if ended is None else ended.get("status", "pruned"),
    }


def _record_facts(record: Record) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "session_id": record.stream,
        "kind": record.kind,
        "subject": record.subject,
        "at": record.at / 1e6,
        "data": data_of(record),
    }
