"""`lastword plan`, `check`, `fmt`, `prompt` and `grammar`: scripts as text; none of these runs one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import click

from lastword import script
from lastword.cli import DONE, FAILED
from lastword.commands.options import (
    editor_option,
    json_option,
    print_json,
    tools_option,
)
from lastword.consent import Preset
from lastword.display import visible
from lastword.editor import editor_tools
from lastword.errors import LastWordError
from lastword.runs import signature_of, signatures
from lastword.script import PlacedError, Signatures
from lastword.tools import Toolbox, ToolRegistry

files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...")


@click.command()
@files_argument
@tools_option
@editor_option
@json_option
def plan(files: tuple[str, ...], folders: tuple[str, ...], editor: bool, as_json: bool) -> int:
    """Say what a script may do before it does anything: every call, how often, and who will be asked."""
    known = _signatures(folders, editor=editor)
    steps = {}
    for file in files:
        text, name = read_script(file)
        steps[file] = script.plan(script.parse(text, name=name), known)
    if as_json:
        print_json({file: [step.as_dict() for step in found] for file, found in steps.items()})
        return DONE
    for number, (file, found) in enumerate(steps.items()):
        if len(steps) > 1:
            click.echo(f"{chr(10) if number else ''}{file}")
        click.echo(visible(script.plan_text(found)))
    return DONE


@click.command()
@files_argument
@click.option("--var", "variables", multiple=True, metavar="NAME", help="A variable the script will be given.")
@tools_option
@editor_option
@json_option
def check(
    files: tuple[str, ...], variables: tuple[str, ...], folders: tuple[str, ...], editor: bool, as_json: bool
) -> int:
    """Find what is wrong with scripts, without running them."""
    known = _signatures(folders, editor=editor)
    names = [variable.partition("=")[0] for variable in variables]
    found: list[PlacedError] = []
    for file in files:
        text, name = read_script(file)
        try:
            found += script.check(script.parse(text, name=name), known, names)
        except PlacedError as problem:
            found.append(problem)
    errors = sum(problem.severity == "error" for problem in found)
    if as_json:
        print_json([problem.as_dict() | {"place": problem.place} for problem in found])
    else:
        say_problems(found)
        click.echo(
            f"{_count(len(files), 'script')}: {_count(errors, 'error')}, {_count(len(found) - errors, 'warning')}"
        )
    return FAILED if errors else DONE


@click.command()
@files_argument
@click.option("--check", "only_check", is_flag=True, help="Change nothing; fail when something would change.")
def fmt(files: tuple[str, ...], only_check: bool) -> int:
    """Lay scripts out the one way. Comments stay. `-` formats standard input to standard output."""
    untidy = 0
    for file in files:
        text, name = read_script(file)
        try:
            tidy = script.format_script(text)
        except PlacedError as problem:
            problem.place = f"{name or '<stdin>'}:{problem.place}"
            raise
        if file == "-":
            click.echo(tidy, nl=False)
        elif tidy != text:
            untidy += 1
            if not only_check:
                Path(file).write_text(tidy, encoding="utf-8", newline="")
            click.echo(f"{file} {'would change' if only_check else 'formatted'}")
    return FAILED if only_check and untidy else DONE


@click.command()
@click.option("--guidance", metavar="TEXT", help="Words of your own for the model, put at the end.")
@tools_option
@editor_option
def prompt(guidance: str | None, folders: tuple[str, ...], editor: bool) -> int:
    """Print the instructions that a model needs to write scripts for these tools."""
    offered = _signatures(folders, editor=editor) or {}
    click.echo(script.script_prompt(offered, None, guidance, today=date.today()), nl=False)
    return DONE


@click.command()
@tools_option
@editor_option
def grammar(folders: tuple[str, ...], editor: bool) -> int:
    """Print a GBNF grammar that admits only scripts for these tools."""
    click.echo(script.script_grammar(_signatures(folders, editor=editor) or {}), nl=False)
    return DONE


def read_script(file: str) -> tuple[str, str | None]:
    """The text of a script, and what to call it in an error."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig"), None if file == "-" else Path(file).name
    except OSError as problem:
        raise LastWordError(f"it cannot be read: {problem.strerror}", place=file) from None
    except UnicodeDecodeError as problem:
        raise LastWordError(f"it is not UTF-8 (byte {problem.start})", place=file, hint="save it as UTF-8") from None


def _signatures(folders: Sequence[str], *, editor: bool) -> Signatures | None:
    """What the manifests say. Runs no code."""
    registry = ToolRegistry()
    if editor:
        editor_tools(registry)
    builtin = signatures(registry, Preset())
    if not folders and not Toolbox.HERE.is_dir():
        return builtin or None  # A script may do without tools.
    toolbox = Toolbox.find(folders)
    for problem in toolbox.problems:
        click.echo(str(problem), err=True)
    return builtin | {
        found.manifest.id: signature_of(found.manifest, Preset(), "object", reports=True) for found in toolbox.tools
    }


def say_problems(problems: Sequence[PlacedError]) -> None:
    for problem in problems:
        shown = visible(str(problem))
        click.echo(f"warning: {shown}" if problem.severity == "warning" else shown, err=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
