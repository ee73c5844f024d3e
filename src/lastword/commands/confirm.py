"""What only a person confirms in the commands: a whole word at a terminal, or an exact digest in a script."""

from __future__ import annotations

import sys
from typing import Any

import click

from lastword.card import SecondAct
from lastword.cli import complain
from lastword.consent import ApprovalRequest, person
from lastword.display import visible
from lastword.errors import LastWordError
from lastword.journal import open_default_journal
from lastword.terminal import fitted, is_interactive, settle, terminal_approver
from lastword.tools.guard import refuse_below

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
        raise LastWordError(f"it is another: {exactly}", place=option, hint="look at it; nothing was done")
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
        raise LastWordError(
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
        raise LastWordError(
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
        raise LastWordError(
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
        raise LastWordError(f"{both} contradict each other", place=place, hint="say one of them; nothing was changed")
    return said[0] if said else None
