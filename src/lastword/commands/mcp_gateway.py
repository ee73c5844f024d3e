"""`lastword mcp wrap` and `unwrap`: a client's servers behind one entry of ours, and back again."""

from __future__ import annotations

import shlex
from hashlib import sha256
from pathlib import Path

import click

from lastword.cli import DONE, NOT_ALLOWED
from lastword.commands.agreeing import agreed, by_a_person
from lastword.display import visible
from lastword.mcp import Gateways, SecretFile, shown_change

file_argument = click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
apply_option = click.option("--apply", metavar="SHA256", help="Do it without a question, if this is its digest.")


@click.command(short_help="Put all MCP servers of a client behind lastword.")
@file_argument
@apply_option
def wrap(file: Path, apply: str | None) -> int:
    """Rewrite a client's configuration so that all its MCP servers stand behind one entry, which is lastword.

    The change is shown first, and the file as it was is kept. Each server is used once you have trusted it.
    """
    by_a_person("lastword mcp wrap")
    gateways = Gateways()
    plan = gateways.plan(file)
    for line in shown_change(plan.before, plan.after, file):
        click.echo(f"  {line}", err=True)
    for name in plan.outside:
        click.echo(f"Stays outside: {name}, which the file names in another place.", err=True)
    if not agreed("Change the file like this?", apply, plan.digest, "--apply"):
        return NOT_ALLOWED
    backup = gateways.wrap(plan, SecretFile())
    click.echo(f"Wrapped {visible(str(file))}. As it was it lies in {visible(str(backup))}.")
    click.echo("Next:")
    for server in plan.servers:
        click.echo(f"  lastword mcp trust {server.ours} --config {shlex.quote(str(plan.config))}")
        for name in server.missing:
            click.echo(f"  lastword mcp secret {name}")
    return DONE


@click.command(short_help="Give a client its servers back.")
@file_argument
@apply_option
def unwrap(file: Path, apply: str | None) -> int:
    """Restore a client's configuration, byte for byte. What was changed in it since stays, and the change is shown."""
    by_a_person("lastword mcp unwrap")
    gateways = Gateways()
    now, after, is_exact = gateways.plan_back(file)
    if not is_exact:
        click.echo(f"{visible(str(file))} was edited since it was wrapped. This is what would change:", err=True)
    for line in shown_change(now, after, file):
        click.echo(f"  {line}", err=True)
    digest = sha256(now + b"\0" + after).hexdigest()
    # Exactly as it was is what they had; anything else is looked at first.
    if not is_exact and not agreed("Change the file like this?", apply, digest, "--apply"):
        return NOT_ALLOWED
    gateways.unwrap(file, now, after)
    click.echo(f"Restored {visible(str(file))}" + (", byte for byte." if is_exact else "."))
    return DONE
