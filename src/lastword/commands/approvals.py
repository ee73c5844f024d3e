"""What waits for a person, on the command line: `lastword approvals`, `answer`, `stop` and `grants`.

Cards and the questions of running tools wait side by side. One answer counts, from whichever terminal it comes.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lastword.call import Stopped, stop
from lastword.card import Face, SecondAct, answer_of, entry_of
from lastword.commands.invocation import (
    DONE,
    FAILED,
    NOT_ALLOWED,
    NOT_DONE,
    WHO,
    CommandOption,
    Misused,
    check_seen,
    complain,
    is_below,
    one_of,
    print_json,
    say,
    typed_arguments,
    with_journal,
    with_own_journal,
)
from lastword.consent import Answerer, ApprovalRequest, UserAction
from lastword.journal import Journal, StandingQuestion, ToolQuestions, cut
from lastword.rules import GrantChoice, Grants, SeenStep
from lastword.terminal import terminal_approver

if TYPE_CHECKING:
    from lastword.terminal import Look
    from lastword.tools import QuestionAnswer, ToolQuestion


@click.command()
@CommandOption.store
@CommandOption.json
def approvals(store: str | None, as_json: bool) -> int:
    """List the questions that wait for an answer, from all programs that share this store."""
    waiting, damaged = with_journal(store, Journal.questions)
    for call_id, problem in damaged.items():
        complain(f"{call_id} cannot be shown: {problem}")
    ended = FAILED if damaged else DONE
    asking, damaged_questions = with_journal(store, lambda journal: ToolQuestions(journal).standing())
    for call_id, problem in damaged_questions.items():
        complain(f"{call_id} cannot be shown: {problem}")
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
        entry = entry_of(request, 0, session=None)
        given = f", {entry.summary}" if entry.summary else ""
        asked_by = f" Asked for by {request.origin}." if request.origin else ""
        unknown = " Nobody knows whether the program that asked lives." if facts["asker"] == "unknown" else ""
        say(f"{request.call_id}  {cut(request.title)}")
        say(f"    {request.tool}{given}")
        say(f"    {entry.effect_words}.{asked_by}{unknown}")


@click.command()
@click.argument("call_id")
@click.option("--allow", is_flag=True, help="Allow it. What cannot be undone also takes a typed word, or --digest.")
@click.option("--second", is_flag=True, help="Press its second button, where that is a yes of its own.")
@click.option("--deny", is_flag=True, help="Deny it; for a question of a running tool: rather not say.")
@click.option("--reason", metavar="TEXT", help="Why you deny it; the assistant reads it.")
@click.option("--edit", "edits", multiple=True, metavar="NAME=VALUE", help="Allow it with an argument changed.")
@click.option("--digest", metavar="DIGEST", help="The digest of the card that you read, from approvals --json.")
@CommandOption.store
@CommandOption.plain
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
    said = one_of("lastword answer", allow=allow, second=second, deny=deny)
    if with_journal(store, lambda journal: find_question(journal, call_id)) is not None:
        check_seen(digest, None, "lastword approvals --json")
        return answer_question(call_id, said, store, plain=plain)
    if reason and said != "deny":
        raise Misused("a reason goes with --deny", place="lastword answer")

    async def reply(journal: Journal) -> tuple[str, bool, str] | None:
        waiting, damaged = await journal.questions()
        if call_id in damaged:
            raise damaged[call_id]
        facts = next((f for f in waiting if f["call_id"] == call_id), None)
        if facts is None:
            raise Misused("no such question waits", place=call_id, hint="lastword approvals lists those that do")
        request = ApprovalRequest.from_facts(facts)
        check_seen(digest, request.digest, "lastword approvals --json")

        async def look(shown: ApprovalRequest, choice: GrantChoice) -> SeenStep:
            beside = [ApprovalRequest.from_facts(other) for other in waiting]
            return await SeenStep.of(shown, choice, Path(facts.get("folder", "")), beside, journal)

        action = await _action(request, said, reason, edits, plain, look, journal.people.me)
        is_by_command = said is not None or bool(edits)
        if action.agrees and is_by_command and digest is None and not await _is_meant(request, plain=plain):
            return None
        first = await Grants(journal).answer_elsewhere(facts, action, WHO)
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


async def _is_meant(request: ApprovalRequest, *, plain: bool) -> bool:
    """Whether a yes that was given by a command is meant. What cannot be undone takes another act, as on every card."""
    second_act = SecondAct.of(request)
    if second_act is None:
        return True
    approver = terminal_approver(plain=plain)
    if approver is None:
        raise Misused(
            f"{second_act.why}, and one act does not allow it",
            place="lastword answer",
            hint="read its card in lastword approvals --json, and say which one you have read: --digest DIGEST",
        )
    if await approver.confirms(request):
        return True
    click.echo(NOT_DONE, err=True)
    return False


def _said(tool: str, action: UserAction) -> str:
    if action.grant is not None:
        return SeenStep.granted_words(tool, action.grant)
    closed = "Closed, without a yes or a no. It does not run."
    return "Allowed." if action.agrees else "Denied." if action.secondary_confirmed else closed


async def _what_comes_next(journal: Journal, facts: dict[str, Any], action: UserAction, store: str | None) -> str:
    """Who hears the answer: the program that asked, or the one that goes on where it was."""
    asker = await journal.programs.asker_of(facts)
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
        raise Misused("the second button takes the call as it was asked for", place="lastword answer")
    if edits:
        return request.edit(**typed_arguments(request.manifest, edits))
    if said == "allow":
        return request.allow()
    if said == "second":
        if not request.manifest.secondary_acts:
            raise Misused("the second button of this tool is a no", place="lastword answer", hint="say --deny")
        return request.allow_second()
    if said == "deny":
        return request.deny(reason)
    approver = terminal_approver(plain=plain)
    if approver is None:
        raise Misused("there is no terminal to show the card on", place="lastword answer", hint="say --allow or --deny")
    approver.offer_steps(look, me)
    # Whoever called for the card of another program may think that they only leave it.
    approver.close_words = "close: it does not run"
    return await approver(request)


PLACE = "lastword answer"
_DONE = {"Given": "Answered.", "Declined": "Declined: you would rather not say.", "Closed": "Closed without an answer."}


def question_facts(standing: StandingQuestion) -> dict[str, Any]:
    """One as JSON, in a list with cards: `question` tells it from them."""
    question = msgspec.to_builtins(standing.question)
    return {"call_id": standing.question.call_id, "question": question, "asker": standing.asker}


def list_tool_questions(asking: Sequence[StandingQuestion]) -> None:
    """Name each, and say of those that nobody hears an answer to that they are dead."""
    for standing in asking:
        question = standing.question
        dead = ", of a program that has ended: no answer reaches it" if standing.is_dead else ""
        say(f"{question.call_id}  {cut(question.display_name)} wants to know something{dead}")
        say(f"    {question.tool} asks: “{cut(question.message)}”")


async def find_question(journal: Journal, call_id: str) -> StandingQuestion | None:
    """What the tool of this call asks, if it asks something."""
    found, damaged = await ToolQuestions(journal).standing()
    if call_id in damaged:
        raise damaged[call_id]
    return next((standing for standing in found if standing.question.call_id == call_id), None)


def answer_question(call_id: str, said: str | None, store: str | None, *, plain: bool) -> int:
    """Answer what a running tool asks: with its form here, or by declining."""
    if said in ("allow", "second"):
        raise Misused(
            "this is a question of a running tool, and no approval: there is nothing to allow",
            place=PLACE,
            hint=f"{PLACE} {call_id} shows it; --deny says that you would rather not say",
        )

    async def reply(journal: Journal) -> tuple[QuestionAnswer, bool]:
        standing = await find_question(journal, call_id)
        if standing is None:
            raise Misused("this question waits no longer", place=call_id)
        question = standing.question
        answer = answer_of(question, "decline", {}) if said == "deny" else await _ask_here(question, plain=plain)
        return answer, await ToolQuestions(journal).answer_from_elsewhere(standing, answer, WHO)

    answer, first = with_own_journal(store, PLACE, reply)
    if not first:
        click.echo("Somebody else answered it first. Nothing was changed.", err=True)
        return FAILED
    click.echo(_DONE[type(answer).__name__])
    return DONE


async def _ask_here(question: ToolQuestion, *, plain: bool) -> QuestionAnswer:
    approver = terminal_approver(plain=plain)
    if approver is None:
        raise Misused("there is no terminal to show the question on", place=PLACE, hint="say --deny to decline")
    return await approver.on_question(question, elsewhere=True)


@click.command("stop")
@CommandOption.store
@CommandOption.json
def stop_command(store: str | None, as_json: bool) -> int:
    """Stop everything, in all programs that share this store: deny what waits, cancel what runs, revoke every grant.

    Nothing that was asked for before can be allowed afterwards. What could not be stopped is listed.
    """

    async def work(journal: Journal) -> Stopped:
        # Less may happen by whoever wishes so, and below a tool too; but then it is not said that a person did.
        by = Answerer("below") if is_below(journal.store) else WHO
        return await (await stop(journal, by, revoke=[Grants(journal).revoke_all])).settled()

    stopped = with_journal(store, work)
    if as_json:
        print_json(msgspec.to_builtins(stopped) | {"complete": stopped.is_complete})
    else:
        for line in stopped.words():
            click.echo(line)
    return DONE if stopped.is_complete else FAILED


@click.group(invoke_without_command=True)
@CommandOption.store
@CommandOption.json
@click.pass_context
def grants(context: click.Context, store: str | None, as_json: bool) -> int:
    """List the grants that you gave from cards, and how much of each is left."""
    if context.invoked_subcommand is not None:
        context.obj = store
        return DONE
    return _list(store, as_json)


@grants.command("list", short_help="The same as without a word.")
@CommandOption.store
@CommandOption.json
def list_command(store: str | None, as_json: bool) -> int:
    """List the grants that you gave from cards, and how much of each is left."""
    return _list(store, as_json)


@grants.command("revoke", short_help="Revoke one, or all of them.")
@click.argument("grant_id", required=False)
@click.option("--all", "everything", is_flag=True, help="Revoke all of them.")
@CommandOption.store
def revoke_command(grant_id: str | None, everything: bool, store: str | None) -> int:
    """Revoke a grant. A call that it has started goes on; no other call can start by it."""
    if (grant_id is None) != everything:
        raise click.UsageError("name a grant, or say --all")

    async def take_back(journal: Journal) -> list[tuple[str, bool]]:
        ids = [one.grant.id for one in await Grants(journal).listed()] if everything else [str(grant_id)]
        return [(id, await Grants(journal).revoke(id, WHO)) for id in ids]

    done = with_own_journal(store, "lastword grants revoke", take_back)
    for id, is_taken in done:
        click.echo(f"{id} is taken back." if is_taken else f"{id} had ended before.")
    if not done:
        click.echo(Face.NO_GRANTS)
    return DONE if all(is_taken for _, is_taken in done) else FAILED


def _list(store: str | None, as_json: bool) -> int:
    found = with_journal(store, lambda journal: Grants(journal).listed())
    if as_json:
        print_json(
            [
                msgspec.to_builtins(one.grant)
                | {"used": one.used, "totals": {n: str(total) for n, total in one.totals.items()}, "over": one.over}
                for one in found
            ]
        )
        return DONE
    for one in found:
        click.echo(f"{one.grant.id}  {one.what}")
        click.echo(f"  {one.whose}, {f'over: {one.over}' if one.over else one.how_long}; {one.left}")
    if not found:
        click.echo(Face.NO_GRANTS)
    return DONE
