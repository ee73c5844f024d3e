"""`lastword trust`: letting a configuration count that was found in a folder, and not named."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lastword.cli import DONE, NOT_ALLOWED
from lastword.commands.agreeing import agreed, by_a_person
from lastword.config import FILE, load, read_text, trusted
from lastword.display import visible
from lastword.tools import digest_of_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=FILE)
@click.option("--digest", metavar="SHA256", help="Accept without a question, if this is the digest of the file.")
def trust(file: Path, digest: str | None) -> int:
    """Accept a configuration that lies in a folder, such as lastword.toml in this one.

    Such a file may have come with somebody else's project: it could approve calls, or send your key to another server.
    So it counts only after you have seen it, and only as you saw it.
    """
    by_a_person("lastword trust")
    load(file, environ=os.environ)  # whatever is wrong with it is said now
    text = read_text(file, "configuration")
    found = digest_of_text(text)
    known = trusted(os.environ)
    if known.covers_file(file, text):
        click.echo(f"{visible(str(file))} is accepted as it is.")
        return DONE
    if digest is None:
        for line in text.splitlines():
            click.echo(f"  {visible(line)}", err=True)
    question = "It could approve calls without asking you, and choose which server gets your words and your key."
    if not agreed(question, digest, found, "--digest"):
        return NOT_ALLOWED
    known.remember_file(file, text)
    click.echo(f"Accepted {visible(str(file))}. When it changes, you are asked again.")
    return DONE
