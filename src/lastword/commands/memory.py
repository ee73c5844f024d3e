"""What lastword remembers, on the command line: runs, calls, waiting questions, calls in doubt."""

from __future__ import annotations

import asyncio
import datetime
import shlex
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import UNSET

from lastword import values
from lastword.call import Asked, Decision, Event, wait_for_answer
from lastword.card import EFFECT_WORDS, read_arguments, summary_of
from lastword.cli import DONE, FAILED, NOT_ALLOWED, UNKNOWN, complain
from lastword.commands.agreeing import check_seen, is_again_meant, is_meant
from lastword.commands.doubt import BY, WHO, ask_about_doubt
from lastword.commands.editing import open_project
from lastword.commands.options import (
    ask_trust,
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
from lastword.commands.questions import answer_question, find_question, list_tool_questions, question_facts
from lastword.commands.ruling import rules_here
from lastword.commands.saving import held_by, listed, save
from lastword.commands.scripts import finish_run
from lastword.commands.tools import EXIT_CODES, print_outcome
from lastword.commands.visit import say_what_waits
from lastword.consent import ApprovalRequest, Outcome, UserAction
from lastword.display import visible
from lastword.editor import editor_tools
from lastword.errors import LastWordError, NotJSON, SessionError
from lastword.journal import Journal, asker_of, cut, data_of, is_held, standing_questions, timeline
from lastword.rules import GrantChoice, SeenStep, answer_elsewhere, folder_elsewhere, granted_words, step_of
from lastword.runs import Run
from lastword.session import Session
from lastword.store import Record
from lastword.terminal import Look, attend, is_interactive, terminal_approver
from lastword.tools import HERE, ToolRegistry, find_tools


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
        return "running" if is_held(journal.store, f"run:{run_id}") else "interrupted"

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
@click.argument("id")
@click.option("--save", "folder", metavar="DIR", help="Write the images and files that it returned into a folder.")
@store_option
@json_option
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
            click.echo(line)
    for path in saved:
        click.echo(f"wrote {visible(str(path))}", err=True)
    if folder is not None and not saved:
        raise LastWordError("it returned nothing that could be saved", place=id)
    return DONE


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
    registry = _registry(folders, project, asking=approver is not None)
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
        return finish_run(found, as_json=as_json, show_output=True)
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
@store_option
@json_option
def approvals(store: str | None, as_json: bool) -> int:
    """List the questions that wait for an answer, of all programs that share this memory."""
    waiting, damaged = with_journal(store, Journal.questions)
    for call_id, problem in damaged.items():
        complain(f"{visible(call_id)} cannot be shown: {problem}")
    ended = FAILED if damaged else DONE
    asking, damaged_questions = with_journal(store, standing_questions)
    for call_id, problem in damaged_questions.items():
        complain(f"{visible(call_id)} cannot be shown: {problem}")
        ended = FAILED
    if as_json:
        print_json([*waiting, *map(question_facts, asking)])
        return ended
    left = [facts for facts in waiting if facts["asker"] == "ended"]
    _list_questions([facts for facts in waiting if facts["asker"] != "ended"])
    if left:
        click.echo("Of these the program that asked has ended, and an answer starts nothing by itself:")
        _list_questions(left)
    list_tool_questions(asking)
    if waiting or asking or not damaged:
        hint = "lastword answer ID shows one and takes your answer."
        click.echo(hint if waiting or asking else "Nothing waits for an answer.")
    return ended


def _list_questions(waiting: Sequence[dict[str, Any]]) -> None:
    for facts in waiting:
        request = ApprovalRequest.from_facts(facts)
        given = f", {summary}" if (summary := summary_of(request.shown_arguments)) else ""
        asked_by = f" Asked for by {visible(request.origin)}." if request.origin else ""
        unknown = " Nobody knows whether the program that asked lives." if facts["asker"] == "unknown" else ""
        click.echo(f"{request.call_id}  {visible(cut(request.title))}")
        click.echo(f"    {visible(request.tool)}{given}")
        click.echo(f"    {EFFECT_WORDS[request.manifest.effect]}.{asked_by}{unknown}")


@click.command()
@click.argument("call_id")
@click.option("--allow", is_flag=True, help="Allow it. What cannot be undone takes a typed word as well, or --digest.")
@click.option("--second", is_flag=True, help="Allow it with its second button, where that is a yes of its own.")
@click.option("--deny", is_flag=True, help="Deny it; of a question that a running tool asks: rather not say.")
@click.option("--reason", metavar="TEXT", help="Why you deny it; the assistant reads it.")
@click.option("--edit", "edits", multiple=True, metavar="NAME=VALUE", help="Allow it with an argument changed.")
@click.option("--digest", metavar="DIGEST", help="The card that you have read, as approvals --json has it.")
@store_option
@plain_option
def answer(
    call_id: str,
    allow: bool,
    second: bool,
    deny: bool,
    reason: str | None,
    edits: tuple[str, ...],
    digest: str | None,
    store: str | None,
    plain: bool,
) -> int:
    """Answer a waiting question from anywhere: with its card here, or with --allow, --second or --deny."""
    said = _one_of("lastword answer", allow=allow, second=second, deny=deny)
    if with_journal(store, lambda journal: find_question(journal, call_id)) is not None:
        check_seen(digest, None, "lastword approvals --json")
        return answer_question(call_id, said, store, plain=plain)
    if reason and said != "deny":
        raise LastWordError("a reason goes with --deny", place="lastword answer")

    async def reply(journal: Journal) -> tuple[str, bool, str] | None:
        waiting, damaged = await journal.questions()
        if call_id in damaged:
            raise damaged[call_id]
        facts = next((f for f in waiting if f["call_id"] == call_id), None)
        if facts is None:
            raise SessionError("no such question waits", place=call_id, hint="lastword approvals lists those that do")
        request = ApprovalRequest.from_facts(facts)
        check_seen(digest, request.digest, "lastword approvals --json")

        async def look(shown: ApprovalRequest, choice: GrantChoice) -> SeenStep:
            beside = [ApprovalRequest.from_facts(other) for other in waiting]
            return await step_of(shown, choice, folder_elsewhere(facts), beside, journal)

        action = await _action(request, said, reason, edits, plain, look, journal.people.me)
        is_by_command = said is not None or bool(edits)
        if action.agrees and is_by_command and digest is None and not await is_meant(request, plain=plain):
            return None
        first = await answer_elsewhere(journal, facts, action, WHO)
        return _said(request.tool, action), first, await _what_comes_next(journal, facts, action, store)

    done = with_own_journal(store, "lastword answer", reply)
    if done is None:
        return NOT_ALLOWED
    words, first, next_step = done
    if not first:
        click.echo("Somebody else answered it first. Nothing was changed.", err=True)
        return FAILED
    click.echo(words)
    click.echo(next_step)
    return DONE


def _said(tool: str, action: UserAction) -> str:
    if action.grant is not None:
        return granted_words(tool, action.grant)
    closed = "Closed, without a yes or a no. It does not run."
    return "Allowed." if action.agrees else "Denied." if action.secondary_confirmed else closed


async def _what_comes_next(journal: Journal, facts: dict[str, Any], action: UserAction, store: str | None) -> str:
    """Who hears the answer: the program that asked, or the one that goes on where it was."""
    asker = await asker_of(journal.store, facts)
    if asker == "waits":
        return "The program that asked hears it, and goes on by itself."
    if asker == "unknown":
        return "If the program that asked still lives it goes on by itself; of that nothing is known."
    there = f" --store {shlex.quote(store)}" if store else ""
    counts = "Within a minute, while the answer counts: " if action.agrees else "To go on without it: "
    run_id = facts["call_id"].rpartition(".")[0]
    if run_id and await journal.store.read(subject=run_id, kind="run_started", limit=1):
        return f"The program that asked has ended. {counts}lastword resume {run_id}{there}"
    if await journal.history(facts["session_id"], kind="conversation"):
        return f"The program that asked has ended. {counts}lastword chat --session {facts['session_id']}{there}"
    return "The program that asked has ended, so nothing comes of it."


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
    decision: Decision | None = _one_of("lastword resolve", again=again, done=done, abandon=abandon)
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
    registry = _registry(folders, project, asking=False) if decision == "again" else ToolRegistry()
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
    place = "--value"
    if decision != "done":
        raise LastWordError("only a call that was done gave a value", place=place, hint="say --done as well")
    try:
        return values.parse(text)
    except NotJSON as problem:
        raise LastWordError(problem.fact, place=place, hint="text needs quotes: --value '\"text\"'") from None


def _one_of(place: str, **flags: bool) -> Any:
    """The one word that was said, if any. Two contradict each other, and neither may win by chance."""
    said = [name for name, is_said in flags.items() if is_said]
    if len(said) > 1:
        both = " and ".join(f"--{name}" for name in said)
        raise LastWordError(f"{both} contradict each other", place=place, hint="say one of them; nothing was changed")
    return said[0] if said else None


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
        raise SessionError("nothing is remembered of it", place=subject, hint="lastword runs and approvals list ids")
    return found[0].stream


async def _action(
    request: ApprovalRequest,
    said: str | None,
    reason: str | None,
    edits: Sequence[str],
    plain: bool,
    look: Look,
    me: str,
) -> UserAction:
    if edits and said == "second":
        raise LastWordError("the second button takes the call as it was asked for", place="lastword answer")
    if edits:
        changed = read_arguments(request.manifest, edits, {})
        return request.edit(**changed)
    if said == "allow":
        return request.allow()
    if said == "second":
        if not request.manifest.secondary_acts:
            raise LastWordError("the second button of this tool is a no", place="lastword answer", hint="say --deny")
        return request.allow_second()
    if said == "deny":
        return request.deny(reason)
    approver = terminal_approver(plain=plain)
    if approver is None:
        raise LastWordError(
            "there is no terminal to show the card on", place="lastword answer", hint="say --allow or --deny"
        )
    approver.offer_grants(look, me)
    # Whoever called for the card of another program may think that they only leave it.
    approver.close_words = "close: it does not run"
    return await approver(request)


def _record_facts(record: Record) -> dict[str, Any]:
    return {
        "seq": record.seq,
        "session_id": record.stream,
        "kind": record.kind,
        "subject": record.subject,
        "at": record.at / 1e6,
        "data": data_of(record),
    }
