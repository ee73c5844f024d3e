"""The command `assent`. Thin: it finds the command, and turns whatever stops it into words and an exit code.

0 done; 1 the tool or script failed; 2 wrong usage; 3 denied or nobody to ask; 4 outcome unknown; 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from assent import __version__
from assent.display import visible
from assent.errors import AssentError, StoreError, did_you_mean

DONE, FAILED, WRONG_USAGE, NOT_ALLOWED, UNKNOWN, INTERRUPTED = 0, 1, 2, 3, 4, 130

# Where each command lives. A module is imported when its command is used.
COMMANDS = {
    "call": "assent.commands.tools:call",
    "tools": "assent.commands.tools:tools",
    "new": "assent.commands.tools:new",
    "test": "assent.commands.tools:test",
    "demo": "assent.commands.demo:demo",
    "run": "assent.commands.scripts:run",
    "plan": "assent.commands.scripts:plan",
    "check": "assent.commands.scripts:check",
    "fmt": "assent.commands.scripts:fmt",
    "prompt": "assent.commands.scripts:prompt",
    "grammar": "assent.commands.scripts:grammar",
    "runs": "assent.commands.memory:runs",
    "show": "assent.commands.memory:show",
    "resume": "assent.commands.memory:resume",
    "approvals": "assent.commands.memory:approvals",
    "answer": "assent.commands.memory:answer",
    "resolve": "assent.commands.memory:resolve",
    "undo": "assent.commands.editing:undo",
    "journal": "assent.commands.journal:journal",
    "chat": "assent.commands.chat:chat",
    "edit": "assent.commands.chat:edit",
    "up": "assent.commands.chat:up",
    "serve": "assent.commands.serving:serve",
    "token": "assent.commands.serving:token",
    "doctor": "assent.commands.serving:doctor",
}


class Commands(click.Group):
    """A group whose commands are loaded by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], COMMANDS) or "assent --help lists the commands"
            raise Misused(f"unknown command {args[0]}", place="assent", hint=hint)
        return super().resolve_command(ctx, args)


class Misused(AssentError):
    """The command line itself is wrong."""


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", message="assent %(version)s")
def assent() -> None:
    """Give an AI assistant real tools, and keep the last word."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the console script."""
    # A text that the terminal's encoding cannot hold is escaped; it must not stop the program.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code. No traceback ever reaches a user, except with ASSENT_DEBUG=1."""
    try:
        code = assent.main(arguments, prog_name="assent", standalone_mode=False)
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
    except AssentError as problem:
        if _debugging():
            raise
        complain(str(problem))
        return FAILED if isinstance(problem, StoreError) else WRONG_USAGE
    except Exception as problem:
        if _debugging():
            raise
        complain(f"assent itself failed: {type(problem).__name__}: {problem}")
        complain("hint: this is a bug; ASSENT_DEBUG=1 shows where")
        return FAILED
    return code if isinstance(code, int) else DONE


def _in_our_words(problem: click.ClickException) -> AssentError:
    """What click found, in the house's shape."""
    place = "assent"
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


def _debugging() -> bool:
    return os.environ.get("ASSENT_DEBUG", "") not in ("", "0")
