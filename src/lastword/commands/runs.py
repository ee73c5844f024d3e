"""Scripts carried out and calls in doubt, on the command line: `lastword run`, `runs`, `resume` and `resolve`."""

from __future__ import annotations

import asyncio
import datetime
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET

from lastword import values
from lastword.call import Asked, Decision, Event, Printed, wait_for_answer
from lastword.cli import DONE, FAILED, INTERRUPTED, NOT_ALLOWED, UNKNOWN, WRONG_USAGE, complain
from lastword.commands.local_session import (
    EXIT_CODES,
    load_tools,
    open_project,
    open_session,
    print_outcome,
    rules_here,
    say_what_waits,
)
from lastword.commands.options import (
    auto_approve_option,
    json_option,
    plain_option,
    print_json,
    project_option,
    store_option,
    tools_option,
    wait_option,
    with_journal,
    with_own_journal,
)
from lastword.commands.person import BY, check_seen, is_again_meant, one_of
from lastword.commands.scripts import read_script, say_problems
from lastword.display import visible
from lastword.errors import LastWordError, NotJSON, SessionError
from lastword.journal import Journal, data_of, timeline
from lastword.runs import Run
from lastword.session import Session
from lastword.terminal import attend, is_interactive, settle, terminal_approver
from lastword.tools import ToolRegistry

if TYPE_CHECKING:
    from lastword.consent import ApprovalRequest, Outcome


@click.command()
@click.argument("file", metavar="FILE.nuwa")
@click.option("--var", "variables", multiple=True, metavar="NAME=JSON", help="A variable the script begins with.")
@tools_option
@project_option
@auto_approve_option
@click.option("--no-check", is_flag=True, help="Start even if the script is known to fail.")
@wait_option
@store_option
@plain_option
@json_option
def run(
    file: str,
    variables: tuple[str, ...],
    folders: tuple[str, ...],
    project: str | None,
    auto_approve: bool,
    no_check: bool,
    wait: bool,
    store: str | None,
    plain: bool,
    as_json: bool,
) -> int:
    """Carry out a script, with consent in this terminal. `-` reads it from standard input.

    Ctrl+C cancels the running call and keeps what is done.
    """
    text, name = read_script(file)
    given = dict(_variable(pair) for pair in variables)
    approver = terminal_approver(plain=plain) if file != "-" else None
    registry = load_tools(folders, project, asking=approver is not None)

    async def converse() -> Run:
        visiting = open_session(registry, approver, store=store, auto_approve=auto_approve, wait=wait, project=project)
        async with visiting as session:
            if not as_json:
                session.listen(_print_line)
            work = session.run_script(text, given, not no_check, name=name)
            return await attend(session, work, approver=None if wait else approver, plain=plain)

    return _finish(asyncio.run(converse()), as_json=as_json)


@click.command()
@store_option
@json_option
def runs(store: str | None, as_json: bool) -> int:
    """List the scripts that were carried out, newest first, and calls by themselves that are in doubt."""
    found = with_journal(store, _read_runs)
    if as_json:
        print_json(found)
        return DONE
    for facts in found:
        name = visible(facts["name"] or "a script")
        click.echo(f"{facts['run_id']}  {facts['began']}  {facts['status']:11}  {name}")
    if not found:
        click.echo("No script was carried out yet. lastword run FILE.nuwa does.")
    elif any(facts["status"] in ("in doubt", "interrupted", "waiting") for facts in found):
        click.echo("lastword resume ID goes on with one that has not ended; lastword show ID says how it stands.")
    known = {facts["run_id"] for facts in found}
    alone = [life for life in with_journal(store, Journal.in_doubt) if life.call_id.rpartition(".")[0] not in known]
    for life in alone:
        assert life.started is not None
        click.echo(
            f"{life.call_id}  in doubt: a call of {visible(life.started['tool'])}, and nobody knows how it ended"
        )
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
            "began": f"{datetime.datetime.fromtimestamp(record.at / 1e6).astimezone():%Y-%m-%d %H:%M:%S}",
            "status": status(record.subject),
        }
        for record in reversed(await journal.store.read(kind="run_started"))
    ]


@click.command()
@click.argument("run_id")
@tools_option
@project_option
@wait_option
@store_option
@plain_option
@json_option
def resume(
    run_id: str,
    folders: tuple[str, ...],
    project: str | None,
    wait: bool,
    store: str | None,
    plain: bool,
    as_json: bool,
) -> int:
    """Go on with a run that was interrupted. What was done is not done again.

    With nobody at a terminal it goes on as far as it can, and leaves a question that comes up to `lastword answer`.
    """
    approver = None if wait else terminal_approver(plain=plain)
    registry = load_tools(folders, project, asking=approver is not None)
    policy = rules_here(project, store)

    async def go_on(journal: Journal) -> Run | ApprovalRequest:
        session_id = await _session_of(journal, run_id)
        editor = None if project is None else open_project(project)
        asked = approver or wait_for_answer
        async with Session(
            registry, id=session_id, approver=asked, journal=journal, editor=editor, policy=policy
        ) as session:
            if wait:
                say_what_waits(session, store)
            if approver is None and not wait:
                return await _until_asked(session, session.resume(run_id))
            if approver is not None:
                await ask_about_doubt(session, run_id)
            return await attend(session, session.resume(run_id), approver=approver, plain=plain)

    found = with_journal(store, go_on)
    if isinstance(found, Run):
        return _finish(found, as_json=as_json, show_output=True)
    complain(
        f"{run_id}: it waits for an answer, and there is nobody here to ask\n"
        f"hint: lastword answer {found.call_id} shows the question; then lastword resume {run_id} goes on"
    )
    return NOT_ALLOWED


async def _until_asked(session: Session, work: Coroutine[Any, Any, Run]) -> Run | ApprovalRequest:
    """Go on until somebody is needed who is not here. The question stays in the journal, and so does the run."""
    asked: list[ApprovalRequest] = []
    going = asyncio.ensure_future(work)

    def hear(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(event.request)
            going.cancel()

    stop = session.listen(hear)
    try:
        return await going
    except asyncio.CancelledError:
        if not asked:
            raise
        return asked[0]
    finally:
        stop()


@click.command()
@click.argument("call_id")
@click.option("--again", is_flag=True, help="Run it once more, with the same call id.")
@click.option("--done", is_flag=True, help="Take it as done.")
@click.option("--abandon", is_flag=True, help="Give it up; what it did is not known.")
@click.option("--value", metavar="JSON", help="With --done: what it gave. Without it a script gets null.")
@click.option("--digest", metavar="DIGEST", help="With --again: the card that you have read, from show --json.")
@tools_option
@project_option
@store_option
def resolve(
    call_id: str,
    again: bool,
    done: bool,
    abandon: bool,
    value: str | None,
    digest: str | None,
    folders: tuple[str, ...],
    project: str | None,
    store: str | None,
) -> int:
    """Decide about a call that was running when its program died. Without a decision: show what is known."""
    decision: Decision | None = one_of("lastword resolve", again=again, done=done, abandon=abandon)
    given = _given(value, decision)
    if decision is None:

        async def look(journal: Journal) -> list[str]:
            life = await journal.life(call_id)
            if not life.in_doubt:
                raise SessionError("this call is not in doubt", place=call_id, hint="lastword show says how it stands")
            if journal.is_running(life):
                raise SessionError("this call is still running", place=call_id, hint="wait for it, or cancel it first")
            return timeline(await journal.store.read(subject=call_id), of=call_id)

        for line in with_own_journal(store, "lastword resolve", look):
            click.echo(line)
        click.echo("Nobody knows how it ended. Look at what it changes, then say --again, --done or --abandon;")
        click.echo("lastword undo takes back what it may have changed in files.")
        return UNKNOWN
    registry = load_tools(folders, project, asking=False) if decision == "again" else ToolRegistry()
    policy = rules_here(project, store) if decision == "again" else None

    async def decide(journal: Journal) -> Outcome | None:
        if decision == "again" and not await _is_again_meant(journal, call_id, digest):
            return None
        session_id = await _session_of(journal, call_id)
        editor = None if project is None else open_project(project)
        async with Session(registry, id=session_id, journal=journal, editor=editor, policy=policy) as session:
            return await session.resolve(call_id, decision, by=BY, value=given)

    outcome = with_own_journal(store, "lastword resolve", decide)
    if outcome is None:
        return NOT_ALLOWED
    print_outcome(outcome, store)
    return DONE if decision != "again" else EXIT_CODES[outcome.kind]


async def _is_again_meant(journal: Journal, call_id: str, digest: str | None) -> bool:
    """Whether whoever decides has read what would run once more, and means it."""
    life = await journal.life(call_id)
    if not life.in_doubt or life.started is None:
        return True  # There is nothing to run again, which is said where it would be.
    if digest is not None:
        check_seen(digest, (life.asked or {}).get("digest"), f"lastword show {call_id} --json")
        return True
    if is_interactive():
        for line in timeline(await journal.store.read(subject=call_id), of=call_id):
            click.echo(line, err=True)
    return is_again_meant(call_id, life.started["tool"])


def _given(text: str | None, decision: Decision | None) -> Any:
    """The value that a person says a call gave; UNSET when they say none."""
    if text is None:
        return UNSET
    if decision != "done":
        raise LastWordError("only a call that was done gave a value", place="--value", hint="say --done as well")
    return _json(text, "--value", "text needs quotes: --value '\"text\"'")


async def _session_of(journal: Journal, subject: str) -> str:
    found = await journal.store.read(subject=subject, limit=1)
    if not found:
        raise SessionError("nothing is remembered of it", place=subject, hint="lastword runs and approvals list ids")
    return found[0].stream


async def ask_about_doubt(session: Session, run_id: str) -> None:
    """Before a run goes on: ask about each of its calls in doubt. `later` leaves it as it is."""
    for life in await session.in_doubt():
        if not life.call_id.startswith(f"{run_id}."):
            continue
        for line in timeline(await session.journal.store.read(subject=life.call_id)):
            click.echo(line, err=True)
        assert life.started is not None
        click.echo(
            f"The program stopped while {visible(life.started['tool'])} ran, and nobody knows how it ended.", err=True
        )
        click.echo(_QUESTION, err=True)
        settle(sys.stdin)  # what was typed before the question answers nothing
        said = _ask()
        if said == "again" and not is_again_meant(life.call_id, life.started["tool"]):
            said = None
        if said is not None:
            outcome = await session.resolve(life.call_id, said, by=BY)
            click.echo(visible(outcome.message), err=True)


_QUESTION = """\
Look at what it changes. Then type again to run it once more, done if it was carried out,
abandon to give it up, or later to decide another time, and press Enter."""

_DECISIONS: dict[str, Decision | None] = {"again": "again", "done": "done", "abandon": "abandon", "later": None}


def _ask() -> Decision | None:
    while True:
        said = click.prompt("What shall become of it", err=True, type=str, prompt_suffix="? ").strip().casefold()
        if said in _DECISIONS:
            return _DECISIONS[said]
        click.echo("Please type again, done, abandon or later.", err=True)


def _finish(result: Run, *, as_json: bool, show_output: bool = False) -> int:
    """Say how a run ended, and return the exit code for it."""
    if as_json:
        print_json(_as_dict(result))
        return _exit_code(result)
    for line in result.output if show_output else ():
        click.echo(visible(line) if sys.stdout.isatty() else line)
    say_problems([*result.warnings, *(result.errors or ([result.error] if result.error else []))])
    if result.status == "waiting":
        click.echo(
            f"hint: lastword resolve {result.in_doubt} decides; then lastword resume {result.run_id} goes on", err=True
        )
    return _exit_code(result)


def _variable(pair: str) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    if not equals or not name.isidentifier():
        raise LastWordError(
            f"found {pair!r}, expected NAME=JSON", place="--var", hint="for instance --var city='\"Lima\"'"
        )
    return name, _json(text, f"--var {name}", "text needs quotes: --var name='\"text\"'")


def _json(text: str, place: str, hint: str) -> Any:
    try:
        return values.parse(text)
    except NotJSON as problem:
        raise LastWordError(problem.fact, place=place, hint=hint) from None


def _print_line(event: Event) -> None:
    if isinstance(event, Printed):
        click.echo(visible(event.line) if sys.stdout.isatty() else event.line)


def _as_dict(result: Run) -> dict[str, Any]:
    return {
        "run_id": result.run_id,
        "status": result.status,
        "output": result.output,
        "variables": result.variables,
        "error": None if result.error is None else result.error.as_dict(),
        "errors": [problem.as_dict() for problem in result.errors],
        "warnings": [problem.as_dict() for problem in result.warnings],
    }


def _exit_code(result: Run) -> int:
    if result.status == "waiting":
        return UNKNOWN
    if result.status == "cancelled":
        return INTERRUPTED
    if result.errors or (result.error is not None and result.error.phase == "parse"):
        return WRONG_USAGE
    return DONE if result.status == "done" else FAILED
