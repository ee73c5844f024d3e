"""Calls in doubt, at the next start: a notice for the person, or the question what became of one."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from lastword.call import Decision
from lastword.cli import complain
from lastword.commands.agreeing import is_again_meant
from lastword.consent import person
from lastword.display import visible
from lastword.journal import Journal, Life, timeline
from lastword.session import Session
from lastword.terminal import fitted, settle

# A notice is read in passing. `lastword runs` and `lastword show` have the rest.
MAX_NAMED = 3

WHO = person(where="command")
BY = str(WHO)


async def tell_of_doubt(journal: Journal) -> None:
    """Remind the person that calls wait for a decision about how they ended."""
    if lives := await journal.in_doubt():
        complain(fitted(doubt_words(lives), sys.stderr))


def doubt_words(lives: Sequence[Life]) -> str:
    """The notice."""
    count = "1 call is" if len(lives) == 1 else f"{len(lives)} calls are"
    named = [f"{life.call_id} ({life.started['tool']})" for life in lives[:MAX_NAMED] if life.started]
    more = f" and {len(lives) - MAX_NAMED} more" if len(lives) > MAX_NAMED else ""
    return (
        f"{count} in doubt: {', '.join(named)}{more}. A program stopped in the middle, and nobody knows the end.\n"
        f"hint: look at what it changes, then decide: lastword resolve {lives[0].call_id}"
    )


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
