"""What only a person decides in the commands: a whole word at a terminal, or an exact digest in a script."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from lastword.card import SecondAct
from lastword.cli import Misused, complain
from lastword.consent import ApprovalRequest, person
from lastword.display import visible
from lastword.journal import open_default_journal
from lastword.terminal import fitted, is_interactive, settle, terminal_approver
from lastword.tools.guard import refuse_below

if TYPE_CHECKING:
    from lastword.tools import Unagreed

WHO = person(where="command")
BY = str(WHO)

NOT_DONE = "Nothing was done."


def by_a_person(place: str) -> None:
    """Refuse what a tool, or something that a tool started, asks for."""
    refuse_below(place)
    refuse_below(place, open_default_journal().store)


def agreed(question: str, given: str | None, exactly: str, option: str, word: str = "yes") -> bool:
    """Whether the person says yes, or whoever wrote the script named exactly this."""
    if given is not None:
        if given.casefold() == exactly:
            return True
        raise Misused(f"it is another: {exactly}", place=option, hint="look at it; nothing was done")
    click.echo(fitted(question, sys.stderr), err=True)
    if not is_interactive():
        complain(
            "nobody is here to read this, so nothing was done\n"
            f"hint: the same in a terminal asks; for a script: {option} {exactly}"
        )
        return False
    return typed_out(f"Type {word} or no, and press Enter", word)


def typed_out(question: str, word: str) -> bool:
    """Whether the person at this terminal typed exactly this word."""
    settle(sys.stdin)  # what was typed before the question answers nothing
    said = click.prompt(question, err=True, type=str)
    if said.strip().casefold() != word.casefold():
        click.echo(NOT_DONE, err=True)
        return False
    return True


def check_seen(given: str | None, exactly: str | None, place: str) -> None:
    """Refuse when somebody says which card they have read, and another one waits."""
    if given is not None and given.strip().casefold() != exactly:
        raise Misused(
            "that is not the digest of this card: it was asked again since, or you have read another",
            place="--digest",
            hint=f"{place} shows what it is now; nothing was done",
        )


async def is_meant(request: ApprovalRequest, *, plain: bool) -> bool:
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


def is_again_meant(call_id: str, tool: str) -> bool:
    """Whether a call in doubt shall really run once more. Nobody knows whether it happened, so this takes two acts."""
    if not is_interactive():
        raise Misused(
            "it may be the second time that this happens, and one act does not start it again",
            place="lastword resolve",
            hint=f"read its card in lastword show {call_id} --json, and say which one you have read: --digest DIGEST",
        )
    name = visible(tool)
    click.echo(fitted("It may be the second time that this happens.", sys.stderr), err=True)
    return typed_out(f"Type the name of the tool, {name}, to run it once more, or no, and press Enter", name)


def one_of(place: str, **flags: bool) -> Any:
    """The one word that was said, if any. Two contradict each other, and neither may win by chance."""
    said = [name for name, is_said in flags.items() if is_said]
    if len(said) > 1:
        both = " and ".join(f"--{name}" for name in said)
        raise Misused(f"{both} contradict each other", place=place, hint="say one of them; nothing was changed")
    return said[0] if said else None


RIGHTS = "It would run with all the rights of your account."

Agreed = Literal["yes", "always", "no"]


def ask_trust(questions: Sequence[Unagreed]) -> list[Agreed]:
    """Ask whether code that was found here may run. Only a whole word agrees; one word is enough for all."""
    if len(questions) == 1:
        return [_ask_one(questions[0])]
    for question in questions:
        _show(question)
    count = f"all {len(questions)}"
    words = f"{RIGHTS} Type all to run the code of {count}, one to be asked about each by itself, or no, and"
    click.echo(fitted(f"{words} press Enter.", sys.stderr), err=True)
    word = _typed(f"Run the code of {count}", ("all", "one", "no"))
    if word == "one":
        return _ask_singly(questions)
    return ["yes" if word == "all" else "no"] * len(questions)


def _ask_singly(questions: Sequence[Unagreed]) -> list[Agreed]:
    """Until the first no: without all of its tools nothing starts."""
    answers: list[Agreed] = []
    for question in questions:
        answers.append("no" if "no" in answers else _ask_one(question))
    return answers


def _ask_one(question: Unagreed) -> Agreed:
    _show(question)
    words = f"{RIGHTS} Type yes to run this code, always to trust this folder also when its code changes, or no, and"
    click.echo(fitted(f"{words} press Enter.", sys.stderr), err=True)
    return _typed("Run it", ("yes", "always", "no"))


def _show(question: Unagreed) -> None:
    folder = visible(str(question.found.folder))  # the names may be chosen by an attacker
    if question.is_changed:
        click.echo(f"The code in {folder} has changed since you agreed to run it.", err=True)
    else:
        click.echo(f"The code in {folder} was found here. You have not agreed to run it yet.", err=True)
    for file in question.found.folder.files():
        click.echo(f"  {visible(str(file))}", err=True)


Word = TypeVar("Word", bound=str)


def _typed(question: str, words: tuple[Word, Word, Word]) -> Word:
    """One of these words, whole."""
    settle(sys.stdin)  # what was typed before the question answers nothing
    while True:
        answer = click.prompt(question, err=True, type=str, prompt_suffix="? ").strip().casefold()
        for word in words:
            if answer == word:
                return word
        click.echo(f"Please type {words[0]}, {words[1]} or {words[2]}.", err=True)
