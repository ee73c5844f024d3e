"""Tools on the command line: `lastword call`, `tools`, `new`, `test` and `demo`."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from lastword import author, values
from lastword.card import read_arguments
from lastword.cli import DONE, FAILED, WRONG_USAGE, complain
from lastword.commands.local_session import EXIT_CODES, open_session, print_outcome
from lastword.commands.options import (
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
from lastword.commands.person import ask_trust
from lastword.config import load
from lastword.display import glyph, visible
from lastword.editor import EDITOR_TOOLS, editor_tools
from lastword.errors import LastWordError, NotJSON, ToolLoadError, UnknownTool, did_you_mean
from lastword.mcp import McpServers
from lastword.terminal import attend, is_interactive, terminal_approver
from lastword.tools import Effect, Manifest, Tool, Toolbox, ToolFolder, ToolRegistry, Trust
from lastword.tools.guard import is_below

if TYPE_CHECKING:
    from lastword.consent import Outcome


@click.command()
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--json-args", metavar="JSON", help="The arguments as one JSON object.")
@tools_option
@project_option
@auto_approve_option
@wait_option
@store_option
@plain_option
@json_option
def call(
    tool: str,
    pairs: tuple[str, ...],
    json_args: str | None,
    folders: tuple[str, ...],
    project: str | None,
    auto_approve: bool,
    wait: bool,
    store: str | None,
    plain: bool,
    as_json: bool,
) -> int:
    """Call one tool, with consent in this terminal.

    A string argument is taken as it stands; every other value is JSON: count=3 tags='["a"]'.
    """
    registry = ToolRegistry()
    approver = terminal_approver(plain=plain)
    servers = _servers_with(tool, folders, registry)
    toolbox = None if registry.is_registered(tool) else _toolbox_with(tool, folders, project)
    if registry.is_registered(tool):
        arguments = read_arguments(registry.lookup(tool).manifest, pairs, _json_object(json_args))
    elif toolbox is None:
        editor_tools(registry)
        arguments = read_arguments(registry.lookup(tool).manifest, pairs, _json_object(json_args))
    else:
        found = toolbox.lookup(tool)
        if found.manifest.script_editor_only and project is None:
            raise ToolLoadError(f"{tool} works on the files of a project", hint="name its folder: --project DIR")
        arguments = read_arguments(found.manifest, pairs, _json_object(json_args))
        Tool(found.manifest, "assistant", None).validate(arguments)  # before any code is imported
        toolbox.load(registry, only=[found], ask=ask_trust if approver else None)

    async def converse() -> Outcome:
        visiting = open_session(registry, approver, store=store, auto_approve=auto_approve, wait=wait, project=project)
        async with servers, visiting as session:
            work = session.call(tool, arguments, origin="the command line")
            return await attend(session, work, approver=None if wait else approver, plain=plain)

    outcome = asyncio.run(converse())
    if as_json:
        print_json(msgspec.to_builtins(outcome) | {"success": outcome.success})
    else:
        print_outcome(outcome, store)
    return EXIT_CODES[outcome.kind]


@click.command()
@tools_option
@editor_option
@json_option
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
@click.option("--yes", is_flag=True, help="Ask nothing, and take the defaults for what is not said.")
def new_tool(
    name: str, description: str | None, approval: bool | None, effect: Effect | None, editor: bool, yes: bool
) -> int:
    """Write a tool in tools/NAME: manifest, code and test, runnable at once."""
    author.NewTool.check_name(name, Toolbox.HERE)
    if editor and approval is False:
        raise ToolLoadError(
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
@json_option
def test(folder: str | None, as_json: bool) -> int:
    """Check tools: their manifests, their own tests, and that they respect a denial.

    DIR is a tool folder or a folder of them; without it, tools/ in the current folder.
    """
    toolbox = Toolbox.find([folder] if folder else [])
    ask = ask_trust if is_interactive() else None
    toolbox.agree(ask, by_naming="lastword test")
    results = author.run_tool_tests(folder or Toolbox.HERE)
    failed = sum(not result.passed for result in results)
    if as_json:
        print_json([msgspec.to_builtins(result) for result in results])
    else:
        _print_results(results)
        click.echo(f"{len(results) - failed} passed, {failed} failed" if results else "There are no tools to test.")
    return FAILED if failed else DONE


def _servers_with(tool: str, folders: Sequence[str], registry: ToolRegistry) -> McpServers:
    """The MCP servers of the configuration, with their tools registered when this tool is one of them."""
    own = Toolbox.find_any(folders).tools
    if tool in {known.name for known in EDITOR_TOOLS} | {found.manifest.id for found in own}:
        return McpServers({}, Toolbox.HERE)
    servers, offered = McpServers.of(load(environ=os.environ)), ToolRegistry()
    told = servers.offer(offered)
    if not offered.is_registered(tool):
        for words in told:
            complain(words)  # Perhaps it is one of those that are not trusted.
        return McpServers({}, Toolbox.HERE)
    registry.add(offered.lookup(tool))
    return servers


def _toolbox_beside_editor(tool: str, folders: Sequence[str]) -> Toolbox:
    """Where to look for a tool that is not the editor's own; a name that nobody has is compared with theirs too."""
    toolbox = Toolbox.find_any(folders)
    known = [*(known.name for known in EDITOR_TOOLS), *(found.manifest.id for found in toolbox.tools)]
    if tool not in known and not toolbox.problems:
        listed = f"the tools are: {', '.join(sorted(known))}"
        raise UnknownTool(f"unknown tool {tool}", hint=did_you_mean(tool, known) or listed)
    return toolbox


def _toolbox_with(tool: str, folders: Sequence[str], project: str | None) -> Toolbox | None:
    """Where to look for a tool; None when it is the editor's own. A tool of that name in a folder comes first."""
    if all(tool != known.name for known in EDITOR_TOOLS):
        return Toolbox.find(folders) if project is None else _toolbox_beside_editor(tool, folders)
    toolbox = Toolbox.find_any(folders)
    if any(found.manifest.id == tool for found in toolbox.tools):
        return toolbox
    if project is None:
        raise UnknownTool(
            f"{tool} works only on a project in an editor, and there is none here", hint="name one: --project DIR"
        )
    return None


def _json_object(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    place, hint = "--json-args", 'for instance --json-args \'{"name": "you"}\''
    try:
        value = values.parse(text)
    except NotJSON as problem:
        place = f"{place}:{problem.place}" if problem.place else place
        raise LastWordError(problem.fact, place=place, hint=problem.hint or hint) from None
    if not isinstance(value, dict):
        raise LastWordError(f"found {values.type_name[type(value)]}, expected an object", place=place, hint=hint)
    return value


def _print_results(results: Iterable[author.Checked]) -> None:
    tool = None
    for result in results:
        if result.tool != tool:
            tool = result.tool
            click.echo(visible(tool))
        click.echo(f"  {'ok    ' if result.passed else 'FAILED'} {visible(result.name)}")
        for line in (result.problem or "").splitlines():
            click.echo(f"         {visible(line)}")


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
