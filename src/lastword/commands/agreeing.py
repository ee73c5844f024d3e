"""What only a person agrees to in the commands: a whole word at a terminal, an exact digest in a script."""

from __future__ import annotations

import sys

import click

from lastword.cli import complain
from lastword.errors import LastWordError
from lastword.journal.opening import open_default_journal
from lastword.terminal.card import fitted
from lastword.terminal.keys import settle
from lastword.terminal.screen import is_interactive
from lastword.tools.descent import refuse_below


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
    settle(sys.stdin)  # what was typed before the question answers nothing
    said = click.prompt(f"Type {word} or no, and press Enter", err=True, type=str)
    if said.strip().casefold() != word:
        click.echo("Nothing was done.", err=True)
        return False
    return True
