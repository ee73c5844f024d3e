"""The command `lastword`. Thin: it finds the command, and turns whatever stops it into words and an exit code.

The words are for the person; where it happened is in the log (log.py).

0 done; 1 the tool or script failed; 2 wrong usage; 3 denied or nobody to ask; 4 outcome unknown; 130 interrupted.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from lastword import __version__
from lastword.display import visible
from lastword.errors import LastWordError, StoreError, did_you_mean
from lastword.log import COMMAND_LINE, VARIABLE, Log

if TYPE_CHECKING:
    from lastword.consent import Kind

log = logging.getLogger(COMMAND_LINE)

DONE, FAILED, WRONG_USAGE, NOT_ALLOWED, UNKNOWN, INTERRUPTED = 0, 1, 2, 3, 4, 130
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
"""How a command ends by the end of its call. What is handed over, no command of ours calls."""

VERBOSE = "--verbose"

# Where each command lives below lastword.commands, and what the list of all says of it. A module is imported when its
# command is used; the list needs none.
COMMANDS = {
    "call": ("call_and_run:call", "Call one tool, with consent in this terminal."),
    "tools": ("workbench:tools", "List the tools at hand."),
    "new": ("workbench:new", "Make something new."),
    "test": ("workbench:test", "Check tools: manifests, their own tests, and that they respect a denial."),
    "demo": ("workbench:demo", "Play a few calls, without a model or a keypress."),
    "run": ("call_and_run:run", "Carry out a script, with consent in this terminal."),
    "plan": ("workbench:plan", "List every call that a script may make, and who is asked."),
    "check": ("workbench:check", "Find what is wrong with scripts, without running them."),
    "fmt": ("workbench:fmt", "Format scripts."),
    "prompt": ("workbench:prompt", "Print what a model needs to write scripts for these tools."),
    "grammar": ("workbench:grammar", "Print a GBNF grammar that admits only scripts for these tools."),
    "runs": ("history:runs", "List the scripts that were carried out, newest first."),
    "calls": ("history:calls", "List the calls that were made, newest first."),
    "sessions": ("history:sessions", "List the sessions that called something, newest first."),
    "show": ("history:show", "Show the life of a call, a run or a session, with times."),
    "resume": ("call_and_run:resume", "Continue a run that was interrupted."),
    "approvals": ("approvals:approvals", "List the questions that wait for an answer."),
    "answer": ("approvals:answer", "Answer a waiting question, from any terminal."),
    "resolve": ("call_and_run:resolve", "Decide about a call that was running when its program died."),
    "stop": ("approvals:stop_command", "Stop everything: deny what waits, cancel what runs, revoke grants."),
    "trust": ("policy:trust", "Look at the lastword.toml of a folder, and accept it."),
    "policy": ("policy:policy", "Rules: which calls need no question, and which never happen."),
    "grants": ("approvals:grants", "List the grants that you gave from cards, and revoke them."),
    "undo": ("history:undo", "Undo what a call changed in files."),
    "journal": ("journal:journal", "Verify, accept, export, copy or forget what is remembered."),
    "chat": ("chat:chat", "Talk with the assistant in this terminal."),
    "edit": ("chat:edit", "Talk about a project; every change waits for your yes."),
    "up": ("chat:up", "Start the API, the page and a chat, on this machine only."),
    "serve": ("serve:serve", "Serve the assistant API. It never runs a tool."),
    "token": ("serve:token", "Manage the tokens for the API."),
    "mcp": ("mcp:mcp", "Use the tools of MCP servers, and offer yours."),
    "hook": ("agents:hook", "Put the calls of Claude Code, Codex or Gemini CLI behind your cards."),
    "doctor": ("doctor:doctor", "Say what is configured, what was found, and whether it answers."),
}


# Those that own the screen they are started on, and those that write a line for each request.
CHATS = ("chat", "edit", "up")
SERVERS = ("serve", "up")


class Commands(click.Group):
    """A group whose commands are loaded by name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Who saw a command fail calls it again and adds --verbose, at the end of the line.
        own = args[: args.index("--")] if "--" in args else args
        if VERBOSE in own:
            args = [VERBOSE, *(arg for arg in own if arg != VERBOSE), *args[len(own) :]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        place, words = COMMANDS[cmd_name]
        module, _, name = place.partition(":")
        command = getattr(import_module(f"lastword.commands.{module}"), name)
        assert isinstance(command, click.Command)
        command.short_help = words
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS) or "lastword --help lists the commands"
            raise Misused(f"unknown command {args[0]}", place="lastword", hint=hint)
        return super().resolve_command(ctx, args)


class Misused(LastWordError):
    """The command line itself is wrong."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="lastword %(version)s")
@click.option(VERBOSE, is_flag=True, help="Say what goes on inside, on standard error; for a chat, in a file.")
@click.pass_context
def lastword(ctx: click.Context, verbose: bool) -> None:
    """Give an AI assistant real tools, and keep the last word."""
    written = ctx.ensure_object(Log)
    command = ctx.invoked_subcommand
    owns_screen = command in CHATS and sys.stderr.isatty()
    written.open(
        verbose=verbose,
        wanted=os.environ.get(VARIABLE, ""),
        screen_file=_file_for_chats() if owns_screen else None,
        is_server=command in SERVERS,
    )
    if verbose and written.file is not None:
        complain(f"The log is in {written.file}.")


def _file_for_chats() -> Path:
    # Loaded here, because most commands need no store before they have read their own options.
    from lastword.store import data_folder

    return data_folder() / "lastword.log"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the console script."""
    # A text that the terminal's encoding cannot hold is escaped; it must not stop the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. A traceback reaches nobody who has not asked for the log."""
    written = Log()
    try:
        return _run(arguments, written)
    finally:
        written.close()


def _run(arguments: Sequence[str] | None, written: Log) -> int:
    try:
        code = lastword.main(arguments, prog_name="lastword", standalone_mode=False, obj=written)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except (KeyboardInterrupt, click.Abort) as ended:
        # The line with ^C on it has been ended by click, except where click itself was asking.
        was_asking = isinstance(ended, click.Abort) and ended.__cause__ is None
        complain("\nInterrupted." if was_asking else "Interrupted.")
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as problem:
        complain(problem.format_message())  # a group alone: its help, as it stands
        return WRONG_USAGE
    except click.ClickException as problem:
        complain(str(_in_our_words(problem)))
        return WRONG_USAGE
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except LastWordError as problem:
        log.debug("the command was refused", exc_info=problem)
        complain(str(problem))
        return FAILED if isinstance(problem, StoreError) else WRONG_USAGE
    except Exception as problem:
        log.error("the command failed", exc_info=problem)
        complain(f"lastword itself failed: {type(problem).__name__}: {problem}")
        complain(f"hint: this is a bug; {written.file or VERBOSE} shows where")
        return FAILED
    return code if isinstance(code, int) else DONE


def _in_our_words(problem: click.ClickException) -> LastWordError:
    """What click found, in the house's shape."""
    place = "lastword"
    hint = None
    if isinstance(problem, click.UsageError) and problem.ctx is not None:
        place = problem.ctx.command_path
        hint = f"{place} --help"
    fact = problem.format_message().rstrip(".")
    if isinstance(problem, click.NoSuchOption):
        fact = f"there is no option {problem.option_name}"
        if problem.possibilities:
            hint = f"did you mean {problem.possibilities[0]}?"
    elif guess := re.match(r"(.*)\. Did you mean '(.*)'\?", fact):
        fact, hint = guess.group(1), f"did you mean {guess.group(2)}?"
    return Misused(fact[:1].lower() + fact[1:], place=place, hint=hint)


def complain(words: str) -> None:
    """Say what is wrong on stderr. The words may quote a file or a tool, so they are marked like a card's."""
    sys.stdout.flush()
    # A tab is what lines up the caret below a quoted line.
    sys.stderr.write(visible(words).replace("‹U+0009›", "\t") + "\n")
