"""`lastword mcp`: naming, trusting and removing MCP servers, and putting a client's servers behind ours."""

from __future__ import annotations

import asyncio
import shlex
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lastword.commands.agents import approver, serve
from lastword.commands.invocation import (
    DONE,
    FILE,
    NOT_ALLOWED,
    CommandOption,
    Misused,
    agreed,
    by_a_person,
    complain,
    load_config,
    print_json,
    say,
    typed_secret,
)
from lastword.hook import WORDS
from lastword.mcp import (
    Gateways,
    Inspection,
    JsonSettings,
    McpServer,
    McpServers,
    Pins,
    SecretFile,
    ServerEntries,
    check_server_name,
    counted,
    marked,
    servers_in,
)

if TYPE_CHECKING:
    from lastword.tools import ToolKey

config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help=f"Default: {FILE} in the current folder."
)

file_argument = click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))


@click.group()
def mcp() -> None:
    """Use the tools of MCP servers behind your cards, and offer your tools to MCP clients."""


for command in (serve, approver):
    mcp.add_command(command)


@mcp.command(short_help="Name an MCP server: a command after --, or an address.")
@click.argument("name", required=False)
@click.argument("way", nargs=-1, type=click.UNPROCESSED, metavar="[URL | -- COMMAND ARG...]")
@click.option("--env", "variables", multiple=True, metavar="NAME=VALUE", help="${SECRET} stands for a secret.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="The same, for an address.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where the command runs.")
@click.option(
    "--from", "source", type=click.Path(path_type=Path), metavar="FILE", help="Add the servers of another program."
)
@config_option
def add(
    name: str | None,
    way: tuple[str, ...],
    variables: tuple[str, ...],
    headers: tuple[str, ...],
    folder: Path | None,
    source: Path | None,
    config: Path | None,
) -> int:
    """Name an MCP server in lastword.toml. It is neither started nor contacted before you trust it."""
    by_a_person("lastword mcp add")
    file = config or Path(FILE)
    if source is not None:
        return _add_from(source, name, file)
    if name is None or not way:
        raise Misused(
            "say how the server is reached",
            place="lastword mcp add",
            hint="lastword mcp add NAME -- COMMAND, or NAME URL",
        )
    is_address = len(way) == 1 and way[0].startswith(("http://", "https://"))
    given = _pairs(headers, "--header") if is_address else _pairs(variables, "--env")
    ServerEntries(file).add(name, ServerEntries.entry(way, given, folder, is_address=is_address))
    say(f"Named {name} in {file}.")
    return _offer_trust(file, [name])


def _add_from(source: Path, only: str | None, file: Path) -> int:
    found = [server for server in servers_in(source) if only in (None, server.name, server.ours)]
    if not found:
        raise Misused(f"it names no MCP server {only or ''}".rstrip(), place=str(source))
    known = load_config(file).mcp if file.exists() else {}
    secrets, added = SecretFile(), []
    for server in found:
        if server.ours in known:
            complain(f"{server.ours} is named in {file} already, and was left as it is")
            continue
        for secret, value in server.secrets.items():
            secrets.keep(secret, value)
        ServerEntries(file).add(server.ours, server.config)
        added.append(server.ours)
        say(f"Named {server.ours} in {file}.")
        for secret in server.secrets:
            click.echo(f"  ${{{secret}}} is kept in {secrets.file}, which only you can read.")
        for secret in server.missing:
            click.echo(f"  ${{{secret}}} is not known yet: lastword mcp secret {secret}")
    return _offer_trust(file, added)


@mcp.command("list", short_help="The servers, their state and their tools.")
@config_option
@CommandOption.json
def list_servers(config: Path | None, as_json: bool) -> int:
    """List the servers in lastword.toml, whether each is trusted as it is, and its tools. Starts nothing."""
    servers = McpServers.of(load_config(config)).all
    if as_json:
        print_json([_as_json(server) for server in servers])
        return DONE
    if not servers:
        click.echo("There are no MCP servers yet. lastword mcp add NAME -- COMMAND names one.")
    for server in servers:
        click.echo(f"{server.name}  {server.state}")
        for line in server.launch.way_lines():
            click.echo(f"    {line}")
        for why in server.why_not() if server.pinned is not None else ():
            click.echo(f"    changed: {why}")
        if server.pinned is not None and server.pinned.standing:
            click.echo(f"    {_STANDING[server.pinned.standing]}")
        for name in server.pinned.tools if server.pinned is not None else ():
            id = server.id_of(name)
            click.echo(f"    {id}" + ("" if id == f"{server.name}__{name}" else f"  {marked(name)}"))
        if server.why_not():
            click.echo(f"    hint: lastword mcp trust {server.name}")
    return DONE


@mcp.command(short_help="Remove a server, and forget the trust in it.")
@click.argument("name")
@config_option
def remove(name: str, config: Path | None) -> int:
    """Remove a server from lastword.toml, and forget that it was trusted."""
    by_a_person("lastword mcp remove")
    file = config or Path(FILE)
    ServerEntries(file).remove(name)
    Pins().forget(file, name)
    say(f"Took {name} out of {file}.")
    return DONE


@mcp.command(short_help="Start trusted servers and compare their tools with what you trusted.")
@click.argument("names", nargs=-1)
@config_option
def refresh(names: tuple[str, ...], config: Path | None) -> int:
    """Start the trusted servers and say what has changed since you trusted them. Trusts nothing."""
    servers = [_find(config, name)[0] for name in names] or McpServers.of(load_config(config)).all
    is_same = True
    for server in servers:
        if why := server.why_not():
            click.echo(f"{server.name}: was not started: {'; '.join(why)}")
            is_same = False
            continue
        assert server.pinned is not None
        seen = asyncio.run(Inspection.of(server.launch, SecretFile()))
        lines = server.pinned.change_lines(seen.tools)
        is_same &= not lines
        stands = "changed" if lines else "as trusted"
        click.echo(f"{server.name}: {seen.version or 'no version'}, {counted(len(seen.tools))}, {stands}")
        for line in (*lines, *(f"not usable: {words}" for words in seen.unusable)):
            click.echo(f"    {line}")
    if not is_same:
        click.echo("hint: lastword mcp trust NAME asks about what changed")
    return DONE if is_same else NOT_ALLOWED


@mcp.command(short_help="See what a server is and says, and trust it as it is.")
@click.argument("name")
@click.option("--start", metavar="SHA256", help="Start or contact it without asking, if this is its digest.")
@click.option(
    "--tools", "tools_digest", metavar="SHA256", help="Trust its tools without asking, if this is their digest."
)
@click.option(
    "--standing",
    type=click.Choice(["never", "exact", "bounds"]),
    help="Which of your rules and grants may answer for its tools: none, exact ones, or bounded ones too.",
)
@config_option
def trust(name: str, start: str | None, tools_digest: str | None, standing: str | None, config: Path | None) -> int:
    """Trust a server after a look at it. You are asked about what is started or contacted, and then about its tools.

    What you trusted is kept byte for byte. Whatever changes later is withheld, and you are asked about it again. Each
    call of its tools still asks you, unless you say with --standing that rules and grants of yours may answer.
    """
    by_a_person("lastword mcp trust")
    server, place = _find(config, name)
    launch, pinned = server.launch, server.pinned
    launch.check()
    if pinned is None or pinned.way_changed(launch):
        say(f"The MCP server {name} of {place}:", err=True)
        for line in launch.way_lines():
            click.echo(f"  {line}", err=True)
        for line in () if pinned is None else pinned.way_changed(launch):
            click.echo(f"  changed: {line}", err=True)
        if not agreed(f"{launch.rights} Start it, and look at its tools?", start, launch.digest, "--start"):
            return NOT_ALLOWED
    seen = asyncio.run(Inspection.of(launch, SecretFile()))
    tools, version = seen.tools, seen.version
    click.echo(f"{version or 'The server'} names {counted(len(tools))}.", err=True)
    if pinned is not None and pinned.version != version:
        click.echo(f"It called itself {pinned.version or 'nothing'} before.", err=True)
    for words in seen.unusable:
        click.echo(f"  not usable: {words}", err=True)
    key = WORDS[standing or "never"]
    if seen.same_as(pinned):
        assert pinned is not None
        key = pinned.standing if standing is None else key
        if _ORDER.index(key) > _ORDER.index(pinned.standing):  # Nobody turns this key by the way.
            asked = f"{name} is trusted as it is. From now on {_STANDING[key]} Change it like this?"
            if not agreed(asked, tools_digest, seen.digest, "--tools"):
                return NOT_ALLOWED
        Pins().keep(place, launch, tools, version, key)
        click.echo(f"{name} is trusted as it is: {_STANDING[key]}")
        if key != pinned.standing:
            click.echo("Programs that run now have it as it was, until they are started again.")
        return DONE
    changed = pinned.change_lines(tools) if pinned is not None else None
    for line in _shown_tools(seen) if changed is None else changed:
        click.echo(f"  {line}", err=True)
    asked = f"Offer these tools to your assistant? If so, {_STANDING[key]}"
    if not agreed(asked, tools_digest, seen.digest, "--tools"):
        return NOT_ALLOWED
    Pins().keep(place, launch, tools, version, key)
    click.echo(f"Trusted {name}, with {counted(len(tools))}. When something of it changes, you are asked again.")
    if pinned is not None and _ORDER.index(key) < _ORDER.index(pinned.standing):
        click.echo(f"From now on {_STANDING[key]} It was otherwise before: --standing says so again.")
    return DONE


# From the strictest on.
_ORDER: list[ToolKey] = [*WORDS.values()]
_STANDING: dict[ToolKey, str] = {
    False: "every call of its tools asks you.",
    "exact": "your rules and grants may answer for calls that they name exactly.",
    "bounds": "your rules and grants may answer for calls within their bounds.",
}


@mcp.command(short_help="Keep a secret for ${NAME}, or forget it.")
@click.argument("name", required=False)
@click.option("--forget", is_flag=True, help="Forget the secret.")
def secret(name: str | None, forget: bool) -> int:
    """Keep the secret for ${NAME} in a file that only you can read. Without a name: list the names.

    The secret is read from a prompt that shows nothing, or from standard input.
    """
    by_a_person("lastword mcp secret")
    kept = SecretFile()
    if name is None:
        for known in kept.names():
            click.echo(known)
        return DONE
    if forget:
        click.echo(f"Forgot {name}." if kept.forget(name) else f"There is no secret {name}.")
        return DONE
    kept.keep(name, typed_secret(f"The value of {name}"))
    click.echo(f"Kept {name} in {kept.file}.")
    return DONE


def _shown_tools(seen: Inspection) -> list[str]:
    lines = []
    for shown in seen.shown_tools():
        lines.append(f"{shown.id}{' (says of itself that it destroys)' if shown.loud else ''}")
        lines += [f"    {line}" for line in shown.about.split("\n")]
        if shown.arguments:
            lines.append(f"    Arguments: {shown.arguments}")
    return lines


def _offer_trust(file: Path, names: list[str]) -> int:
    for name in names:
        click.echo(
            f"Next: lastword mcp trust {name}" + ("" if file == Path(FILE) else f" --config {shlex.quote(str(file))}")
        )
    return DONE


def _find(config: Path | None, name: str) -> tuple[McpServer, Path]:
    check_server_name(name, "lastword mcp")
    servers = McpServers.of(load_config(config))
    return servers.find(name), servers.place


def _pairs(given: tuple[str, ...], option: str) -> dict[str, str]:
    pairs = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Misused(f"{text!r} is no NAME=VALUE", place=option)
        pairs[key] = value
    return pairs


def _as_json(server: McpServer) -> dict[str, Any]:
    tools = server.pinned.tools if server.pinned is not None else {}
    return {
        "name": server.name,
        "state": server.state,
        "way": server.launch.facts(),
        "changed": server.why_not() if server.pinned is not None else [],
        "tools": [{"id": server.id_of(name), "name": name} for name in tools],
    }


@mcp.command(short_help="Put all MCP servers of a client behind lastword.")
@file_argument
@CommandOption.apply
def wrap(file: Path, apply: str | None) -> int:
    """Put all MCP servers of a client's configuration behind one entry, which is lastword.

    You see the change first, and the file as it was is kept. Each server is used once you have trusted it.
    """
    by_a_person("lastword mcp wrap")
    gateways = Gateways()
    plan = gateways.plan(file)
    for line in JsonSettings(plan.before).change_lines(plan.after, file):
        click.echo(f"  {line}", err=True)
    for name in plan.outside:
        click.echo(f"Stays outside: {name}, which the file names in another place.", err=True)
    if not agreed("Change the file like this?", apply, plan.digest, "--apply"):
        return NOT_ALLOWED
    backup = gateways.wrap(plan, SecretFile())
    say(f"Wrapped {file}. As it was it lies in {backup}.")
    click.echo("Next:")
    for server in plan.servers:
        click.echo(f"  lastword mcp trust {server.ours} --config {shlex.quote(str(plan.config))}")
        for name in server.missing:
            click.echo(f"  lastword mcp secret {name}")
    return DONE


@mcp.command(short_help="Restore a client's configuration.")
@file_argument
@CommandOption.apply
def unwrap(file: Path, apply: str | None) -> int:
    """Restore a client's configuration, byte for byte. Later changes to it stay, and the change is shown first."""
    by_a_person("lastword mcp unwrap")
    gateways = Gateways()
    now, after, is_exact = gateways.plan_back(file)
    if not is_exact:
        say(f"{file} was edited since it was wrapped. This is what would change:", err=True)
    for line in JsonSettings(now).change_lines(after, file):
        click.echo(f"  {line}", err=True)
    digest = sha256(now + b"\0" + after).hexdigest()
    # Exactly as it was is what they had; anything else is looked at first.
    if not is_exact and not agreed("Change the file like this?", apply, digest, "--apply"):
        return NOT_ALLOWED
    gateways.unwrap(file, now, after)
    say(f"Restored {file}" + (", byte for byte." if is_exact else "."))
    return DONE
