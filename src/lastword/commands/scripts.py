"""`lastword run`, `plan`, `check`, `fmt`, `prompt` and `grammar`: NuwaScript on the command line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from lastword import script, values
from lastword.call import Event, Printed
from lastword.cli import DONE, FAILED, INTERRUPTED, UNKNOWN, WRONG_USAGE
from lastword.commands.local_session import open_session
from lastword.commands.options import (
    ask_trust,
    auto_approve_option,
    editor_option,
    json_option,
    plain_option,
    print_json,
    project_option,
    store_option,
    tools_option,
    wait_option,
)
from lastword.consent import Preset
from lastword.display import visible
from lastword.editor import editor_tools
from lastword.errors import LastWordError, NotJSON
from lastword.runs import Run, signature_of, signatures
from lastword.script import PlacedError, Signatures
from lastword.terminal import attend, terminal_approver
from lastword.tools import Toolbox, ToolRegistry

files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...")


@click.command()
@click.argument("file", metavar="FILE.nuwa")
@click.option("--var", "variables", multiple=True, metavar="NAME=JSON", help="A variable the script begins with.")
@tools_option
@project_option
@auto_approve_option
@click.option("--no-check", is_flag=True, help="Start even if the script is known to fail.")
@wait_option
@store_option
@plain_option
@json_option
def run(
    file: str,
    variables: tuple[str, ...],
    folders: tuple[str, ...],
    project: str | None,
    auto_approve: bool,
    no_check: bool,
    wait: bool,
    store: str | None,
    plain: bool,
    as_json: bool,
) -> int:
    """Carry out a script, with consent in this terminal. `-` reads it from standard input.

    Ctrl+C cancels the running call and keeps what is done.
    """
    text, name = _read(file)
    given = dict(_variable(pair) for pair in variables)
    registry = ToolRegistry()
    approver = terminal_approver(plain=plain) if file != "-" else None
    if toolbox := _toolbox(folders):
        toolbox.load(registry, ask=ask_trust if approver else None)
    if project is not None:
        editor_tools(registry)

    async def converse() -> Run:
        visiting = open_session(registry, approver, store=store, auto_approve=auto_approve, wait=wait, project=project)
        async with visiting as session:
            if not as_json:
                session.listen(_print_line)
            work = session.run_script(text, given, not no_check, name=name)
            return await attend(session, work, approver=None if wait else approver, plain=plain)

    return finish_run(asyncio.run(converse()), as_json=as_json)


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
        text, name = _read(file)
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
        text, name = _read(file)
        try:
            found += script.check(script.parse(text, name=name), known, names)
        except PlacedError as problem:
            found.append(problem)
    errors = sum(problem.severity == "error" for problem in found)
    if as_json:
        print_json([problem.as_dict() | {"place": problem.place} for problem in found])
    else:
        _complain(found)
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
        text, name = _read(file)
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


def finish_run(result: Run, *, as_json: bool, show_output: bool = False) -> int:
    """Say how a run ended, and return the exit code for it."""
    if as_json:
        print_json(_as_dict(result))
        return _exit_code(result)
    for line in result.output if show_output else ():
        click.echo(visible(line) if sys.stdout.isatty() else line)
    _complain([*result.warnings, *(result.errors or ([result.error] if result.error else []))])
    if result.status == "waiting":
        click.echo(
            f"hint: lastword resolve {result.in_doubt} decides; then lastword resume {result.run_id} goes on", err=True
        )
    return _exit_code(result)


def _read(file: str) -> tuple[str, str | None]:
    """The text of a script, and what to call it in an error."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig"), None if file == "-" else Path(file).name
    except OSError as problem:
        raise LastWordError(f"it cannot be read: {problem.strerror}", place=file) from None
    except UnicodeDecodeError as problem:
        raise LastWordError(f"it is not UTF-8 (byte {problem.start})", place=file, hint="save it as UTF-8") from None


def _variable(pair: str) -> tuple[str, Any]:
    name, equals, text = pair.partition("=")
    if not equals or not name.isidentifier():
        raise LastWordError(
            f"found {pair!r}, expected NAME=JSON", place="--var", hint="for instance --var city='\"Lima\"'"
        )
    try:
        return name, values.parse(text)
    except NotJSON as problem:
        raise LastWordError(
            problem.fact, place=f"--var {name}", hint="text needs quotes: --var name='\"text\"'"
        ) from None


def _toolbox(folders: Sequence[str]) -> Toolbox | None:
    """The tools at hand; None when none were named and there is no tools/ here. A script may do without."""
    return Toolbox.find(folders) if folders or Toolbox.HERE.is_dir() else None


def _signatures(folders: Sequence[str], *, editor: bool) -> Signatures | None:
    """What the manifests say. Runs no code."""
    toolbox = _toolbox(folders)
    builtin = signatures(_editor_registry(), Preset()) if editor else {}
    if toolbox is None:
        return builtin or None
    for problem in toolbox.problems:
        click.echo(str(problem), err=True)
    return builtin | {
        found.manifest.id: signature_of(found.manifest, Preset(), "object", reports=True) for found in toolbox.tools
    }


def _editor_registry() -> ToolRegistry:
    registry = ToolRegistry()
    editor_tools(registry)
    return registry


def _print_line(event: Event) -> None:
    if isinstance(event, Printed):
        click.echo(visible(event.line) if sys.stdout.isatty() else event.line)


def _complain(problems: Sequence[PlacedError]) -> None:
    for problem in problems:
        shown = visible(str(problem))
        click.echo(f"warning: {shown}" if problem.severity == "warning" else shown, err=True)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _as_dict(result: Run) -> dict[str, Any]:
    return {
        "run_id": result.run_id,
        "status": result.status,
        "output": result.output,
        "variables": result.variables,
        "error": None if result.error is None else result.error.as_dict(),
        "errors": [problem.as_dict() for problem in result.errors],
        "warnings": [problem.as_dict() for problem in result.warnings],
    }


def _exit_code(result: Run) -> int:
    if result.status == "waiting":
        return UNKNOWN
    if result.status == "cancelled":
        return INTERRUPTED
    if result.errors or (result.error is not None and result.error.phase == "parse"):
        return WRONG_USAGE
    return DONE if result.status == "done" else FAILED
