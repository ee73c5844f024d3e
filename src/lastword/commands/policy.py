"""What stands for a person: `lastword policy` and `trust`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastword.commands.invocation import (
    DONE,
    NOT_ALLOWED,
    WRONG_USAGE,
    CommandOption,
    agreed,
    by_a_person,
    complain,
    digest_of,
    load_config,
    print_json,
    say,
    typed_arguments,
    with_journal,
)
from lastword.commands.local_session import counted, every_tool, explain
from lastword.config import FILE, read_text, trusted
from lastword.hook import FOLDER, agents_tool, agents_tools
from lastword.rules import Policy, PolicyPlaces, PolicyReview

if TYPE_CHECKING:
    from lastword.tools import ToolRegistry

project_option = click.option("--project", metavar="DIR", default=".", help="The project's folder. Default: this one.")


@click.group()
def policy() -> None:
    """Rules: which calls need no question, and which never happen.

    They are in policy.toml in your data folder, and in a project's lastword.policy.toml, which can only ask and deny.
    `lastword policy check` says where exactly. docs/rules.md has a first rule, and every word that a rule may use.
    """


@policy.command(short_help="Read the rules, test them, and list them.")
@CommandOption.tools
@project_option
@CommandOption.json
def check(folders: tuple[str, ...], project: str, as_json: bool) -> int:
    """Read all policy files, run the tests that are in them, and list their rules."""
    found = Policy.load(PolicyPlaces.of(Path(project)))
    registry = _registry(folders, found)
    review = None if found is None else PolicyReview(found, registry)
    notes = [] if review is None else [*review.notes(), *review.outdated()]
    if as_json:
        print_json(_facts(found) | {"notes": notes})
        return DONE
    if found is None:
        click.echo("There are no rules. A policy file would be one of:")
        for layer, path in PolicyPlaces.of(Path(project)).layers():
            say(f"  {layer:12}  {path}")
        return DONE
    for file in found.files:
        rules = [rule for rule in found.rules if rule.file == file.path]
        say(f"{file.path} ({file.layer}, {file.state if rules else 'no rules in it'})")
        for rule in rules:
            click.echo(f"  {rule.saying:5}  {rule}: {rule.words}")
    for note in notes:
        complain(note)
    return DONE


@policy.command("explain", short_help="Say what the rules decide about a call.")
@click.argument("tool")
@click.argument("pairs", nargs=-1, metavar="[NAME=VALUE]...")
@CommandOption.tools
@project_option
@CommandOption.store
def explain_command(
    tool: str, pairs: tuple[str, ...], folders: tuple[str, ...], project: str, store: str | None
) -> int:
    """Say what is decided about a call, and by which rule or grant. If a person is asked: the nearest rule.

    What has been used of their limits counts. TOOL is a tool's name, or its name in rules: claude:Bash, mcp:NAME/TOOL.
    Nobody is asked and nothing is done.
    """
    # The folder that a call of an agent's tool would be carried out in, as it was typed.
    folder = next((value for name, equals, value in (pair.partition("=") for pair in pairs) if name == FOLDER), None)
    # On a card it has the name of a function, and in rules that of its agent.
    agents = agents_tool(tool, folder) or agents_tool(tool.replace("__", ":", 1), folder)
    # An agent moves about, and takes the rules of all folders above it along.
    found = Policy.load(
        PolicyPlaces.of(Path(project)) if agents is None else PolicyPlaces.around_folder(Path(folder or project))
    )
    if found is not None and agents is None:
        found = counted(found, store)  # An agent's calls are decided about by its hook, which names its memory.
    known = agents
    if known is None:
        registry = _registry(folders, found)
        addressed = (each for each in registry.all() if each.address == tool)
        known = next(addressed, None) or registry.lookup(tool)
    arguments = typed_arguments(known.manifest, pairs)
    at = project if known.manifest.script_editor_only or project != "." else None
    click.echo(with_journal(store, lambda journal: explain(known, arguments, journal, found, at)))
    return DONE


@policy.command(short_help="Look at the rules, and let what they allow count.")
@CommandOption.tools
@project_option
@click.option("--digest", metavar="SHA256", help="Accept without asking, if this is their digest.")
def accept(folders: tuple[str, ...], project: str, digest: str | None) -> int:
    """Accept the policy files as they are now, for the tools that they allow as these are now.

    Until then they can only ask and deny. When a file or a tool changes, you are asked again about the calls
    that it allows.
    """
    by_a_person("lastword policy accept")
    found = Policy.load(PolicyPlaces.of(Path(project)))
    if found is None:
        complain("there is no policy file\nhint: lastword policy check says where one would be")
        return WRONG_USAGE
    review, trust = PolicyReview(found, _registry(folders, found)), trusted(os.environ)
    known = trust.rules()
    allowed = {trust.rule_name(rule.key, tool.name): (rule, tool) for rule, tool in review.allowed()}
    new = {name: pair for name, pair in allowed.items() if known.get(name) != pair[1].digest}
    # A project's file allows nothing, whoever accepts it.
    files = [file for file in found.files if not file.is_accepted and file.layer != "project"]
    if not files and not new:
        click.echo("Everything is accepted as it is.")
        return DONE
    for file in files:
        say(f"{file.path} ({file.layer}):", err=True)
        for line in file.text.splitlines():
            say(f"  {line}", err=True)
    for rule, tool in new.values():
        state = "which has changed since" if trust.rule_name(rule.key, tool.name) in known else "as it is now"
        click.echo(f"{rule} allows {tool.name}, {state} ({tool.digest[:12]}): {rule.words}", err=True)
    for note in review.notes():  # Before the yes: it is not to a rule that allows nothing.
        complain(note)
    facts = [[file.digest for file in files], {name: tool.digest for name, (_, tool) in new.items()}]
    allows = any(rule.saying == "allow" for rule in found.rules for file in files if rule.file == file.path) or new
    question = (
        "What these rules allow will happen without asking you."
        if allows
        else "These rules allow nothing: they ask and deny, and hold already. Accept them as they are?"
    )
    if not agreed(question, digest, digest_of(facts), "--digest"):
        return NOT_ALLOWED
    for file in files:
        trust.remember_file(file.path, file.text)
    trust.remember_rules({name: tool.digest for name, (_, tool) in new.items()})
    click.echo("Accepted. When a file or a tool changes, you are asked again.")
    return DONE


def _registry(folders: Sequence[str], policy: Policy | None) -> ToolRegistry:
    """Every tool that a command started here could have, and those of agents that the rules name."""
    registry = every_tool(folders)
    for tool in agents_tools(() if policy is None else policy.rules):
        if not registry.is_registered(tool.name):
            registry.add(tool)
    return registry


def _facts(found: Policy | None) -> dict[str, object]:
    rules = () if found is None else found.rules
    return ({"files": []} if found is None else found.facts()) | {
        "rules": [
            {"name": r.name, "tool": r.tool, "decide": r.saying, "file": str(r.file), "line": r.line, "layer": r.layer}
            for r in rules
        ],
    }


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=FILE)
@click.option("--digest", metavar="SHA256", help="Accept without asking, if this is the digest of the file.")
def trust(file: Path, digest: str | None) -> int:
    """Accept a configuration that lies in a folder, such as lastword.toml in this one.

    Such a file may have come with somebody else's project: it could approve calls, or send your key to another server.
    So it counts only after you have seen it, and only as you saw it.
    """
    by_a_person("lastword trust")
    load_config(file)  # whatever is wrong with it is said now
    text = read_text(file, "configuration")
    known = trusted(os.environ)
    found = known.digest_of(text)
    if known.covers_file(file, text):
        say(f"{file} is accepted as it is.")
        return DONE
    if digest is None:
        for line in text.splitlines():
            say(f"  {line}", err=True)
    question = "It could approve calls without asking you, and choose which server gets your words and your key."
    if not agreed(question, digest, found, "--digest"):
        return NOT_ALLOWED
    known.remember_file(file, text)
    say(f"Accepted {file}. When it changes, you are asked again.")
    return DONE
