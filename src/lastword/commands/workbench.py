"""What authors of tools and scripts use: `lastword tools`, `new`, `test`, `demo`, `plan`, `check`, `fmt`, `prompt` and
`grammar`. None of these carries out a call of somebody's conversation.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import get_args

import click
import msgspec

from lastword import author, script
from lastword.commands.invocation import (
    DONE,
    FAILED,
    WRONG_USAGE,
    CommandOption,
    Misused,
    complain,
    is_below,
    print_json,
    read_script,
    say,
    say_problems,
    trust_asker,
)
from lastword.consent import Preset
from lastword.display import glyph, visible
from lastword.editor import EDITOR_TOOLS, editor_tools
from lastword.runs import signature_of, signatures
from lastword.script import PlacedError, Signature
from lastword.script import prompt as prompts
from lastword.tools import Effect, Manifest, Toolbox, ToolFolder, ToolRegistry, Trust


@click.command()
@CommandOption.tools
@CommandOption.editor
@CommandOption.json
def tools(folders: tuple[str, ...], editor: bool, as_json: bool) -> int:
    """List the tools at hand. Reads their manifests and runs nothing."""
    toolbox = Toolbox.find_any(folders) if editor else Toolbox.find(folders)
    found = [(t.manifest, str(t.folder)) for t in toolbox.tools]
    own = {manifest.id for manifest, _ in found}
    listed: list[tuple[Manifest, str | None]] = list(found)
    if editor:
        listed += [(t.manifest, None) for t in EDITOR_TOOLS if t.name not in own]
    if as_json:
        print_json([{"folder": folder} | json.loads(manifest.canonical()) for manifest, folder in listed])
    else:
        for manifest, _ in listed:
            for line in _listed(manifest):
                click.echo(line)
        if not listed and not toolbox.problems:
            click.echo(f"There are no tools in {Toolbox.HERE}/ yet. lastword new tool NAME makes one.")
    for problem in toolbox.problems:
        complain(str(problem))
    return WRONG_USAGE if toolbox.problems else DONE


@click.group()
def new() -> None:
    """Make something new."""


@new.command("tool", short_help="Write a tool in tools/NAME: manifest, code and test.")
@click.argument("name")
@click.option("--description", metavar="TEXT", help="What it does, for the model and the person.")
@click.option("--approval/--no-approval", default=None, help="Whether a person is asked before it runs. Default: yes.")
@click.option("--effect", type=click.Choice(get_args(Effect)), help="Whether what it does can be undone.")
@click.option("--editor", is_flag=True, help="A tool that changes files of a project, with a preview.")
@click.option("--yes", is_flag=True, help="Ask nothing, and use the defaults for options that are not given.")
def new_tool(
    name: str, description: str | None, approval: bool | None, effect: Effect | None, editor: bool, yes: bool
) -> int:
    """Write a tool in tools/NAME: manifest, code and test, runnable at once."""
    author.NewTool.check_name(name, Toolbox.HERE)
    if editor and approval is False:
        raise Misused(
            "a tool that changes files needs approval", place=f"{Toolbox.HERE / name}", hint="leave out --no-approval"
        )
    asking = not yes and sys.stdin.isatty() and sys.stdout.isatty()
    if asking:
        plan = _ask_plan(name, description, approval, effect, editor)
    else:
        approval = approval is not False
        plan = author.NewTool(
            name,
            description or _default_description(editor),
            approval,
            effect or _default_effect(editor, approval),
            editor,
        )
    files = plan.write(Toolbox.HERE)
    if not is_below():
        # Who made the code on this machine need not be asked whether to run it, until it is other code. What a tool had
        # made is code that was found.
        Trust().remember(ToolFolder(Toolbox.HERE / name))
    for file in files:
        click.echo(f"wrote {file}")
    click.echo()
    if plan.approval:
        click.echo("Before it runs, a person is asked.")
    else:
        click.echo("It runs without asking anybody. Keep it so only while none of this is true:")
        click.echo(author.NewTool.WHEN_APPROVAL)
    click.echo()
    click.echo("Next:")
    click.echo("  lastword test")
    if plan.editor:
        click.echo(f'  lastword call {name} path=notes.txt text="one more line" --project .')
    else:
        click.echo(f"  lastword call {name} name=you")
    return DONE


@click.command()
@click.argument("folder", required=False, metavar="[DIR]")
@CommandOption.json
def test(folder: str | None, as_json: bool) -> int:
    """Check tools: their manifests, their own tests, and that they respect a denial.

    DIR is a tool folder or a folder of them; without it, tools/ in the current folder.
    """
    toolbox = Toolbox.find([folder] if folder else [])
    toolbox.agree(trust_asker(), by_naming="lastword test")
    results = author.run_tool_tests(folder or Toolbox.HERE)
    failed = sum(not result.passed for result in results)
    if as_json:
        print_json([msgspec.to_builtins(result) for result in results])
    else:
        _print_results(results)
        click.echo(f"{len(results) - failed} passed, {failed} failed" if results else "There are no tools to test.")
    return FAILED if failed else DONE


def _print_results(results: Iterable[author.Checked]) -> None:
    tool = None
    for result in results:
        if result.tool != tool:
            tool = result.tool
            say(tool)
        say(f"  {'ok    ' if result.passed else 'FAILED'} {result.name}")
        for line in (result.problem or "").splitlines():
            say(f"         {line}")


def _listed(manifest: Manifest) -> list[str]:
    if not manifest.require_approval:
        asks = "Runs without asking"
    elif manifest.auto_approve == "exact":
        asks = "Asks first; a rule or a grant may allow exact arguments"
    elif manifest.auto_approve == "bounds":
        asks = "Asks first; a rule or a grant may allow it"
    elif manifest.auto_approve:
        asks = "Asks first; may be auto-approved"
    else:
        asks = "Asks first"
    effect = {
        "none": "changes nothing",
        "reversible": "can be undone",
        "irreversible": "cannot be undone",
        None: "whether it can be undone is not known",
    }[manifest.effect]
    editor = "; needs an editor" if manifest.script_editor_only else ""
    parameters = ", ".join(p.name if p.required else f"[{p.name}]" for p in manifest.parameters)
    return [
        f"{glyph(manifest.icon)} {manifest.id}  {visible(manifest.display_name)}",
        f"    {visible(manifest.description)}",
        f"    Arguments: {parameters}" if parameters else "    No arguments",
        f"    {asks}; {effect}{editor}",
    ]


def _ask_plan(
    name: str, description: str | None, approval: bool | None, effect: Effect | None, editor: bool
) -> author.NewTool:
    """What is not known yet of a new tool, from the person at the terminal."""
    if description is None:
        description = click.prompt("What does it do, in a sentence", default=_default_description(editor))
    if editor:
        approval = True
    elif approval is None:
        click.echo(author.NewTool.WHEN_APPROVAL)
        approval = click.confirm("Does this one need approval?", default=True, prompt_suffix=" ")
    if effect is None and approval:
        can = click.prompt(
            "Can what it does be undone",
            type=click.Choice(["yes", "no", "unknown"]),
            default="yes" if editor else "unknown",
        )
        effect = "reversible" if can == "yes" else "irreversible" if can == "no" else None
    elif effect is None:
        effect = "none"
    return author.NewTool(name, description, approval, effect, editor)


def _default_description(editor: bool) -> str:
    return "Adds a line to a file of the project." if editor else "Greets somebody by name."


def _default_effect(editor: bool, approval: bool) -> Effect | None:
    if editor:
        return "reversible"
    return None if approval else "none"


@click.command()
def demo() -> int:
    """Play a few calls, without a model or a keypress."""
    from lastword.demo import play

    asyncio.run(play())
    return DONE


files_argument = click.argument("files", nargs=-1, required=True, metavar="FILE...")


@click.command()
@files_argument
@CommandOption.tools
@CommandOption.editor
@CommandOption.json
def plan(files: tuple[str, ...], folders: tuple[str, ...], editor: bool, as_json: bool) -> int:
    """Show what a script may do before it does anything: every call, how often, and who will be asked."""
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
        say(script.plan_text(found))
    return DONE


@click.command()
@files_argument
@click.option("--var", "variables", multiple=True, metavar="NAME", help="A variable the script will be given.")
@CommandOption.tools
@CommandOption.editor
@CommandOption.json
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
    """Format scripts. Comments stay. `-` formats standard input to standard output."""
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
@CommandOption.tools
@CommandOption.editor
def prompt(guidance: str | None, folders: tuple[str, ...], editor: bool) -> int:
    """Print the instructions that a model needs to write scripts for these tools."""
    offered = _signatures(folders, editor=editor) or {}
    click.echo(prompts.script_prompt(offered, None, guidance, today=date.today()), nl=False)
    return DONE


@click.command()
@CommandOption.tools
@CommandOption.editor
def grammar(folders: tuple[str, ...], editor: bool) -> int:
    """Print a GBNF grammar that admits only scripts for these tools."""
    click.echo(script.script_grammar(_signatures(folders, editor=editor) or {}), nl=False)
    return DONE


def _signatures(folders: Sequence[str], *, editor: bool) -> Mapping[str, Signature] | None:
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
