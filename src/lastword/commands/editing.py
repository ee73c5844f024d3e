"""A project for a command, and `lastword undo`: taking back what a call changed in one."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from lastword.call import Undone, take_back
from lastword.cli import DONE, FAILED
from lastword.commands.configured import read_config
from lastword.commands.options import json_option, print_json, store_option, with_own_journal
from lastword.config import Config
from lastword.display import visible
from lastword.editor import Privacy, ProjectEditor
from lastword.errors import ConfigError, EditError, SessionError
from lastword.journal import Journal


def open_project(folder: str | Path, config: Config | None = None) -> ProjectEditor:
    """The editor for a project folder, with what the configuration says of private files."""
    if config is None:
        config = read_config()
    try:
        Privacy(config.editor.private)
    except EditError as problem:
        raise ConfigError(f"editor.private: {problem.fact}", place=str(config.file), hint=problem.hint) from None
    return ProjectEditor(folder, private=config.editor.private)


@click.command()
@click.argument("call_id")
@click.option("--project", metavar="DIR", help="The project folder, if it is not where it was when the call ran.")
@store_option
@json_option
def undo(call_id: str, project: str | None, store: str | None, as_json: bool) -> int:
    """Take back what a call changed in files: all of it, byte for byte, or nothing.

    Refused when a file was changed since. A call that was running when its program died can be taken back too; make
    sure that the program is really gone.
    """

    def open_editor(folder: Path | None) -> ProjectEditor:
        where = folder if project is None else project
        if where is None:
            raise SessionError("the journal does not say in which folder it ran", place=call_id, hint="--project DIR")
        return ProjectEditor(where)

    async def do(journal: Journal) -> Undone:
        return await take_back(journal, open_editor, call_id, by="a person at the command line")

    try:
        undone: Undone = with_own_journal(store, "lastword undo", do)
    except EditError as problem:
        click.echo(visible(str(problem)), err=True)
        return FAILED
    if as_json:
        print_json(msgspec.to_builtins(undone))
    else:
        click.echo(visible(undone.message))
    return DONE
