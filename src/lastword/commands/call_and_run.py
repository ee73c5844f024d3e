"""What is carried out with consent in this terminal: `lastword call`, `run`, `resume`, and `resolve` for a doubt."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec
from msgspec import UNSET

from lastword.call import Decision, wait_for_answer
from lastword.call.events import Asked, Event, Printed
from lastword.commands.invocation import (
    BY,
    DONE,
    EXIT_CODES,
    FAILED,
    INTERRUPTED,
    NOT_ALLOWED,
    UNKNOWN,
    WRONG_USAGE,
    CommandOption,
    Misused,
    check_seen,
    complain,
    hand_out,
    is_again_meant,
    is_below,
    one_of,
    print_json,
    read_script,
    say,
    say_problems,
    tell_life,
    typed_arguments,
    typed_json,
    typed_word,
    with_own_journal,
)
from lastword.commands.local_session import SessionOptions, together
from lastword.terminal import attend, is_interactive, terminal_approver

if TYPE_CHECKING:
    from lastword.consent import Outcome
    from lastword.journal import Journal
    from lastword.runs import Run
    from lastword.session import Session


@click.command()
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--json-args", metavar="JSON", help="The arguments as one JSON object.")
@together(
    SessionOptions,
    CommandOption.tools,
    CommandOption.project,
    CommandOption.auto_approve,
    CommandOption.wait,
    CommandOption.store,
    CommandOption.plain,
    CommandOption.json,
)
def call(tool: str, pairs: tuple[str, ...], json_args: str | None, options: SessionOptions) -> int:
    """Call one tool, with consent in this terminal.

    A string argument is taken as it stands; every other value is JSON: count=3 tags='["a"]'.
    """
    approver = terminal_approver(plain=options.plain)
    registry, servers, arguments = options.one_tool(
        tool, lambda manifest: typed_arguments(manifest, pairs, json_args), asking=approver is not None
    )

    async def converse() -> Outcome:
        async with servers, options.session(registry, approver) as session:
            work = session.call(tool, arguments, origin="the command line")
            return await attend(session, work, approver=None if options.wait else approver, plain=options.plain)

    outcome = asyncio.run(converse())
    if options.as_json:
        print_json(msgspec.to_builtins(outcome) | {"success": outcome.success})
    else:
        _print_outcome(outcome, options.store)
    return EXIT_CODES[outcome.kind]


@click.command()
@click.argument("file", metavar="FILE.nuwa")
@click.option("--var", "variables", multiple=True, metavar="NAME=JSON", help="A variable the script begins with.")
@together(
    SessionOptions,
    CommandOption.tools,
    CommandOption.project,
    CommandOption.auto_approve,
    click.option("--no-check", is_flag=True, help="Start even if the check finds errors."),
    CommandOption.wait,
    CommandOption.store,
    CommandOption.plain,
    CommandOption.json,
)
def run(file: str, variables: tuple[str, ...], no_check: bool, options: SessionOptions) -> int:
    """Carry out a script, with consent in this terminal. `-` reads it from standard input.

    Ctrl+C cancels the running call and keeps what is done.
    """
    text, name = read_script(file)
    given = dict(_variable(pair) for pair in variables)
    approver = terminal_approver(plain=options.plain) if file != "-" else None
    registry = options.tools(asking=approver is not None)

    async def converse() -> Run:
        async with options.session(registry, approver) as session:
            if not options.as_json:
                session.listen(_print_line)
            work = session.run_script(text, given, not no_check, name=name)
            return await attend(session, work, approver=None if options.wait else approver, plain=options.plain)

    return _finish(asyncio.run(converse()), as_json=options.as_json)


@click.command()
@click.argument("run_id")
@together(
    SessionOptions,
    CommandOption.tools,
    CommandOption.project,
    CommandOption.wait,
    CommandOption.store,
    CommandOption.plain,
    CommandOption.json,
)
def resume(run_id: str, options: SessionOptions) -> int:
    """Continue a run that was interrupted. What was done is not done again.

    With nobody at a terminal it goes on as far as it can, and leaves the next question to `lastword answer`.
    """
    approver = None if options.wait else terminal_approver(plain=options.plain)
    registry = options.tools(asking=approver is not None)

    async def go_on() -> Run | str:
        async with options.session(registry, approver or wait_for_answer, of=run_id) as session:
            if approver is None and not options.wait:
                return await _until_asked(session, session.resume(run_id))
            if approver is not None:
                await _ask_about_doubt(session, run_id)
            return await attend(session, session.resume(run_id), approver=approver, plain=options.plain)

    found = asyncio.run(go_on())
    if isinstance(found, str):
        complain(
            f"{run_id}: it waits for an answer, and there is nobody here to ask\n"
            f"hint: lastword answer {found} shows the question; then lastword resume {run_id} goes on"
        )
        return NOT_ALLOWED
    return _finish(found, as_json=options.as_json, show_output=True)


async def _until_asked(session: Session, work: Coroutine[Any, Any, Run]) -> Run | str:
    """Go on until somebody is needed who is not here: the id of their question, which stays in the journal."""
    asked: list[str] = []
    going = asyncio.ensure_future(work)

    def hear(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(event.request.call_id)
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
@click.option("--done", is_flag=True, help="Count it as done.")
@click.option("--abandon", is_flag=True, help="Give it up; what it did is not known.")
@click.option("--value", metavar="JSON", help="With --done: what it gave. Without it a script gets null.")
@click.option("--digest", metavar="DIGEST", help="With --again: the digest of the card that you read (show --json).")
@together(SessionOptions, CommandOption.tools, CommandOption.project, CommandOption.store)
def resolve(
    call_id: str,
    again: bool,
    done: bool,
    abandon: bool,
    value: str | None,
    digest: str | None,
    options: SessionOptions,
) -> int:
    """Decide about a call that was running when its program died. Without a decision: show what is known."""
    decision: Decision | None = one_of("lastword resolve", again=again, done=done, abandon=abandon)
    given = _given(value, decision)
    if decision is None:

        async def look(journal: Journal) -> None:
            life = await journal.life(call_id)
            if not life.in_doubt:
                raise Misused("this call is not in doubt", place=call_id, hint="lastword show says how it stands")
            if journal.is_running(life):
                raise Misused("this call is still running", place=call_id, hint="wait for it, or cancel it first")
            await tell_life(journal, call_id, call_id)

        with_own_journal(options.store, "lastword resolve", look)
        click.echo("Nobody knows how it ended. Look at what it changes, then say --again, --done or --abandon;")
        click.echo("lastword undo takes back what it may have changed in files.")
        return UNKNOWN
    deciding = options.deciding(call_id, again=decision == "again")

    async def decide(journal: Journal) -> Outcome | None:
        if decision == "again" and not await _is_again_meant(journal, call_id, digest):
            return None
        async with await deciding(journal) as session:
            return await session.resolve(call_id, decision, by=BY, value=given)

    outcome = with_own_journal(options.store, "lastword resolve", decide)
    if outcome is None:
        return NOT_ALLOWED
    _print_outcome(outcome, options.store)
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
        await tell_life(journal, call_id, call_id, err=True)
    return is_again_meant(call_id, life.started["tool"])


def _given(text: str | None, decision: Decision | None) -> Any:
    """The value that a person says a call gave; UNSET when they say none."""
    if text is None:
        return UNSET
    if decision != "done":
        raise Misused("only a call that was done gave a value", place="--value", hint="say --done as well")
    return typed_json(text, "--value", "text needs quotes: --value '\"text\"'")


async def _ask_about_doubt(session: Session, run_id: str) -> None:
    """Before a run goes on: ask about each of its calls in doubt. `later` leaves it as it is."""
    for life in await session.in_doubt():
        if not life.call_id.startswith(f"{run_id}."):
            continue
        await tell_life(session.journal, life.call_id, err=True)
        assert life.started is not None
        say(f"The program stopped while {life.started['tool']} ran, and nobody knows how it ended.", err=True)
        click.echo(_QUESTION, err=True)
        said = typed_word("What shall become of it", _DECISIONS)
        if said == "later" or (said == "again" and not is_again_meant(life.call_id, life.started["tool"])):
            continue
        outcome = await session.resolve(life.call_id, said, by=BY)
        say(outcome.message, err=True)


_QUESTION = """\
Look at what it changes. Then type again to run it once more, done if it was carried out,
abandon to give it up, or later to decide another time, and press Enter."""

_DECISIONS: tuple[Decision | Literal["later"], ...] = ("again", "done", "abandon", "later")


def _finish(result: Run, *, as_json: bool, show_output: bool = False) -> int:
    """Say how a run ended, and return the exit code for it."""
    if as_json:
        print_json(_as_dict(result))
        return _exit_code(result)
    for line in result.output if show_output else ():
        hand_out(line)
    say_problems([*result.warnings, *(result.errors or ([result.error] if result.error else []))])
    if result.status == "waiting":
        click.echo(
            f"hint: lastword resolve {result.in_doubt} decides; then lastword resume {result.run_id} goes on", err=True
        )
    return _exit_code(result)


def _variable(pair: str) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    if not equals or not name.isidentifier():
        raise Misused(f"found {pair!r}, expected NAME=JSON", place="--var", hint="for instance --var city='\"Lima\"'")
    return name, typed_json(text, f"--var {name}", "text needs quotes: --var name='\"text\"'")


def _print_line(event: Event) -> None:
    if isinstance(event, Printed):
        hand_out(event.line)


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


def _print_outcome(outcome: Outcome, store: str | None = None) -> None:
    """The result on stdout; what kept it from happening on stderr."""
    told = outcome.kind in ("succeeded", "cancelled")
    hand_out(outcome.message, err=not told)
    if outcome.content:
        there = f" --store {shlex.quote(store)}" if store else ""
        words = "writes what it returned into a folder"
        click.echo(f"hint: lastword show {outcome.call_id} --save DIR{there} {words}", err=True)
    if outcome.kind == "no_approver":
        enough = "--auto-approve is enough for tools that allow it"
        # An assistant that runs this is not told to turn a person's key.
        hint = "with --wait a person answers it elsewhere" if is_below() else f"run it in a terminal; {enough}"
        click.echo(f"hint: {hint}", err=True)
