"""Writes docs/commands.md: every command of `lastword` with its arguments and options.

    python docs/generate_commands.py

A test compares the committed page with a fresh one, so no command and no option is missing from the docs.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from lastword import cli

PAGE = Path(__file__).parent / "commands.md"
HEAD = """# Commands

Generated from the code by `docs/generate_commands.py`; `lastword COMMAND --help` says the same.

Exit codes: 0 done; 1 the tool or script failed; 2 wrong usage; 3 denied, or nobody to ask; 4 outcome unknown; 130
interrupted. `--json` prints JSON where a program might read. Errors go to standard error.
"""


def generate() -> str:
    """The whole page."""
    # Made as the command line makes it: a command keeps the help option of the first context that asks for it.
    context = cli.lastword.make_context("lastword", [], resilient_parsing=True)
    return "\n".join([HEAD, *_told(cli.lastword, context)]).rstrip() + "\n"


def _told(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"{'##' if context.parent is None else '###'} `{_usage(command, context)}`\n"
    yield f"{' '.join((command.help or '').split())}\n"
    options = [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]
    rows = [row for option in options if (row := _row(option, context))]
    if rows:
        yield "\n".join(["| option | |", "|---|---|", *rows]) + "\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _told(inner, click.Context(inner, parent=context, info_name=name))


def _usage(command: click.Command, context: click.Context) -> str:
    arguments = [p.make_metavar(context) for p in command.params if isinstance(p, click.Argument)]
    return " ".join([context.command_path.split(" [")[0], *arguments])


def _row(parameter: click.Option, context: click.Context) -> str | None:
    record = parameter.get_help_record(context)
    if record is None or "--help" in parameter.opts:
        return None
    names, words = (part.replace("|", "\\|") for part in record)
    return f"| `{names}` | {' '.join(words.split())} |"


if __name__ == "__main__":
    PAGE.write_text(generate())
