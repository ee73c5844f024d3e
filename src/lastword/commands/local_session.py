"""A session for as long as one command needs it: its project, its rules, and who answers its cards."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import click

from lastword.call import Asked, Event, QuestionAsked, wait_for_answer
from lastword.cli import DONE, FAILED, INTERRUPTED, NOT_ALLOWED, UNKNOWN, WRONG_USAGE, complain
from lastword.commands.options import (
    AUTO_APPROVE,
    NOT_BY_ITSELF,
    data_file,
    read_config,
    remembering,
)
from lastword.commands.person import ask_trust
from lastword.config import Config, load
from lastword.consent import Approver, Kind, Outcome, Preset
from lastword.display import visible
from lastword.editor import Privacy, ProjectEditor, editor_tools
from lastword.errors import ConfigError, EditError
from lastword.journal import Journal, Life, cut
from lastword.rules import Policy, load_policy, places_for
from lastword.session import Session
from lastword.store import SqliteStore, StoreAddress, open_store
from lastword.terminal import fitted
from lastword.tools import Toolbox, ToolRegistry
from lastword.tools.guard import given_above, is_below, is_in_folder_above, refuse_below

STORE = "LASTWORD_STORE"
ELSEWHERE = "a tool or an agent started this on another memory than yours, where what was used of it is not counted"
# A notice is read in passing. `lastword runs` and `lastword show` have the rest.
MAX_NAMED = 3


EXIT_CODES: dict[Kind, int] = {
    "succeeded": DONE,
    "failed": FAILED,
    "raised": FAILED,
    "timed_out": FAILED,
    "refused": FAILED,  # the tool could not describe its own call
    "invalid_arguments": WRONG_USAGE,
    "unknown_tool": WRONG_USAGE,
    "denied": NOT_ALLOWED,
    "no_approver": NOT_ALLOWED,
    "expired": NOT_ALLOWED,
    "stale": NOT_ALLOWED,
    "outcome_unknown": UNKNOWN,
    "cancelled": INTERRUPTED,
}


@asynccontextmanager
async def open_session(
    registry: ToolRegistry,
    approver: Approver | None,
    *,
    store: str | None,
    auto_approve: bool,
    wait: bool,
    project: str | None,
) -> AsyncIterator[Session]:
    """Open a session. The person at the terminal first hears of calls in doubt; `wait` leaves cards to others."""
    policy = rules_here(project, store)
    async with remembering(store) as journal:
        if approver is not None:
            await tell_of_doubt(journal)
        if auto_approve:
            refuse_below(AUTO_APPROVE, journal.store, hint=NOT_BY_ITSELF)
        session = Session(
            registry,
            approver=wait_for_answer if wait else approver,
            journal=journal,
            preset=Preset(auto_approve, AUTO_APPROVE if auto_approve else "default"),
            editor=None if project is None else open_project(project),
            policy=policy,
        )
        async with session:
            if wait:
                say_what_waits(session, store)
            yield session


def say_what_waits(session: Session, store: str | None) -> None:
    """Name each question that the session leaves to others, and how to answer it: nobody sees its card here."""
    there = f" --store {shlex.quote(store)}" if store else ""

    def hear(event: Event) -> None:
        if isinstance(event, Asked):
            request = event.request
            what = f"{cut(request.title)} ({request.tool})"
            complain(f"Waiting for an answer: {what}. From any terminal: lastword answer {request.call_id}{there}")
        elif isinstance(event, QuestionAsked):
            question = event.question
            what = f"{visible(cut(question.display_name))} ({question.tool}) wants to know something"
            complain(f"Waiting for an answer: {what}. From any terminal: lastword answer {question.call_id}{there}")

    session.listen(hear)


def rules_here(project: str | Path | None, store: str | None, config: Path | None = None) -> Policy | None:
    """The rules of organisation, user and project, for work on this memory. What they do not allow yet is said."""
    policy = load_policy(places_for(Path() if project is None else Path(project)))
    if policy is None:
        return None
    for file in policy.files:
        if not file.is_accepted and any(rule.saying == "allow" for rule in policy.rules if rule.file == file.path):
            complain(
                f"{file.path}: you have not accepted it as it is, so what it allows is asked about\n"
                "hint: lastword policy accept shows it and asks you"
            )
    return counted(policy, store, config)


def counted(policy: Policy, store: str | None, config: Path | None = None) -> Policy:
    """The rules for work on this memory: limits are counted in it, and in a new one they would begin anew."""
    return policy if is_own_memory(store, config) else policy.only_stricter(ELSEWHERE)


def is_own_memory(store: str | None, config: Path | None = None) -> bool:
    """Whether this is the memory that the person chose. A person may name any; what a tool started may not.

    Below, a file counts once the person has accepted it, and a variable only as it was where all of this began.
    """
    if not is_below():
        return True
    if not is_in_folder_above():
        return False
    named = given_above(STORE)
    if named and not StoreAddress(named).is_whole:
        return False  # From which folder it was meant nobody knows here.
    outer = {name: value for name, value in os.environ.items() if name != STORE}
    own = named or load(config, environ=outer).server.store
    return _place(store or load(config, environ=os.environ).server.store) == _place(own)


def _place(address: str | None) -> str:
    """The same for two addresses of the same memory in a file."""
    address = address or f"sqlite:///{data_file()}"
    if not address.lower().startswith("sqlite:"):
        return address
    opened = open_store(address)
    assert isinstance(opened, SqliteStore)
    return os.path.realpath(opened.path)


def open_project(folder: str | Path, config: Config | None = None) -> ProjectEditor:
    """The editor for a project folder, with what the configuration says of private files."""
    if config is None:
        config = read_config()
    try:
        Privacy(config.editor.private)
    except EditError as problem:
        raise ConfigError(f"editor.private: {problem.fact}", place=str(config.file), hint=problem.hint) from None
    return ProjectEditor(folder, private=config.editor.private)


def load_tools(folders: Sequence[str], project: str | None, *, asking: bool) -> ToolRegistry:
    """The tools of these folders, or of tools/ here, and the editor's for a project. `asking` asks about found code."""
    registry = ToolRegistry()
    Toolbox.find_any(folders).load(registry, ask=ask_trust if asking else None)
    if project is not None:
        editor_tools(registry)
    return registry


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


def print_outcome(outcome: Outcome, store: str | None = None) -> None:
    """The result on stdout; what kept it from happening on stderr."""
    told = outcome.kind in ("succeeded", "cancelled")
    message = outcome.message
    if (sys.stdout if told else sys.stderr).isatty():
        message = visible(message)  # a program may want the bytes; a terminal must not obey them
    click.echo(message, err=not told)
    if outcome.content:
        there = f" --store {shlex.quote(store)}" if store else ""
        words = "writes what it returned into a folder"
        click.echo(f"hint: lastword show {outcome.call_id} --save DIR{there} {words}", err=True)
    if outcome.kind == "no_approver":
        enough = "--auto-approve is enough for tools that allow it"
        # An assistant that runs this is not told to turn a person's key.
        hint = "with --wait a person answers it elsewhere" if is_below() else f"run it in a terminal; {enough}"
        click.echo(f"hint: {hint}", err=True)
