"""Reading the configuration: file, variables and flags become one Config. A mistake names its file, line and field."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lastword.config.settings import (
    Config,
    EditorConfig,
    McpConfig,
    PeopleConfig,
    PresetConfig,
    ServerConfig,
    read_text,
)
from lastword.errors import ConfigError, did_you_mean
from lastword.store import SqliteStore, StoreAddress, data_folder
from lastword.tools import Trust
from lastword.tools.guard import given_above, is_below, is_in_folder_above

AnyConfig = TypeVar("AnyConfig", bound=msgspec.Struct)

FILE = "lastword.toml"
PREFIX = "LASTWORD_"

READ: set[str] = set()
"""The files that this program has read its configuration from. Only people change them (rules/policy_places.py)."""

# More than anybody writes by hand, less than a file that was named by mistake.
MAX_FILE_BYTES = 1_000_000


# A tool's id is made of its server's name, so that it must hold nothing by which two could be confused.
MCP_NAME = re.compile(r"[a-z0-9-]{1,32}")
# The fields of [server] that an environment variable or a flag may set.
FROM_OUTSIDE = ("host", "port", "upstream", "model", "persona", "store", "key_file", "hosts", "origins")
# Names with our prefix that are not configuration, or are read elsewhere.
OTHER_NAMES = ("BELOW", "CONFIG", "LOG", "PERSON", "TOKEN", "UPSTREAM_KEY")
# What a person is called is read in the middle of a line.
MAX_PERSON = 100


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Config:
    """Read the configuration. Without a path: lastword.toml in the folder, if there is one."""
    if path is None and environ.get("LASTWORD_CONFIG"):
        path = Path(environ["LASTWORD_CONFIG"])
    # A preset is somebody's standing yes: what a tool names is as good as found.
    is_meant = path is not None and not is_below()
    if path is None and (found := (folder or Path()) / FILE).exists():
        path = found
    tables, text = _read(path, is_meant=is_meant) if path is not None else ({}, "")
    if path is not None:
        READ.add(os.path.abspath(path))
    if path is not None and not is_meant:
        is_meant = trusted(environ).covers_file(path, text)
    place = _Place(path, text)
    _check_names(tables, {"server", "preset", "editor", "people", "mcp"}, (), place)
    server, preset = _table(tables, "server", place), _table(tables, "preset", place)
    people = _table(tables, "people", place)
    _check_names(server, set(ServerConfig.__struct_fields__), ("server",), place)
    laid_aside: tuple[str, ...] = ()
    if not is_meant:
        laid_aside = tuple(
            f"{table}.{name}"
            for table, names in (("server", server), ("preset", preset), ("people", people))
            for name in names
        )
        server, preset, people = {}, {}, {}
    sources = {name: str(path) for name in server}
    _from_folder(server, path)
    _check_environment(environ)
    for name in FROM_OUTSIDE:
        if value := environ.get(PREFIX + name.upper()):
            server[name] = _from_text(name, value, PREFIX + name.upper())
            sources[name] = PREFIX + name.upper()
    for name, value in (flags or {}).items():
        if value is not None:
            server[name] = value
            sources[name] = f"--{name}"
    place.sources = sources
    config = _convert(server, ServerConfig, ("server",), place)
    _check_values(config, place)
    presets = {name: _preset(table, name, place) for name, table in preset.items()}
    turned = tuple(name for name, each in presets.items() if each.auto_approve)
    if turned and is_below():
        # The person accepted it for conversations of their own. What a tool starts does not turn their key with it.
        presets = {name: msgspec.structs.replace(each, auto_approve=False) for name, each in presets.items()}
        laid_aside = tuple(f"preset.{name}.auto_approve" for name in turned)
    editor = _editor(_table(tables, "editor", place), place, is_meant=is_meant)
    if environ.get("LASTWORD_PERSON"):
        people["me"] = environ["LASTWORD_PERSON"]
    mcp = {name: _mcp(table, name, place) for name, table in _table(tables, "mcp", place).items()}
    return Config(
        server=config,
        preset=presets,
        editor=editor,
        people=_people(people, place),
        mcp=mcp,
        upstream_key=_key(config, environ),
        file=path,
        sources=sources,
        laid_aside=laid_aside,
    )


def trusted(environ: Mapping[str, str]) -> Trust:
    """What this person has accepted. It lies in their own folder, and in no project."""
    return Trust(data_folder(environ) / "trusted.json")


def is_own_memory(store: str | None, config: Path | None = None) -> bool:
    """Whether this is the memory that the person chose. A person may name any; what a tool started may not.

    Below, a file counts once the person has accepted it, and a variable only as it was where all of this began.
    """
    if not is_below():
        return True
    if not is_in_folder_above():
        return False
    variable = f"{PREFIX}STORE"
    named = given_above(variable)
    if named and not StoreAddress(named).is_whole:
        return False  # From which folder it was meant nobody knows here.
    outer = {name: value for name, value in os.environ.items() if name != variable}
    own = named or load(config, environ=outer).server.store
    return _memory_at(store or load(config, environ=os.environ).server.store) == _memory_at(own)


def _memory_at(address: str | None) -> str:
    """The same for two addresses of the same memory in a file."""
    address = address or f"sqlite:///{data_folder() / StoreAddress.DEFAULT_FILE}"
    if not address.lower().startswith("sqlite:"):
        return address
    opened = StoreAddress(address).open()
    assert isinstance(opened, SqliteStore)
    return os.path.realpath(opened.path)


class _Place:
    """Where a field was set, for errors: a line of the file, a variable, or a flag."""

    def __init__(self, path: Path | None, text: str) -> None:
        self.path = path
        self._lines = text.split("\n")
        self.sources: dict[str, str] = {}

    def of(self, field: tuple[str, ...]) -> str:
        source = self.sources.get(field[1]) if field[:1] == ("server",) and len(field) > 1 else None
        if source is not None and source != str(self.path):
            return source
        return f"{self.path}:{self._line(field)}"

    def _line(self, field: tuple[str, ...]) -> int:
        """The line of a field; else the line of the table it stands in."""
        table: tuple[str, ...] = ()
        nearest = 1
        for number, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[\[?([^\[\]]+)\]", line):
                table = tuple(part.strip().strip("\"'") for part in header[1].split("."))
                if table == field[: len(table)]:
                    nearest = number
                if table == field:
                    return number
            elif key := re.match(r"\s*([\w.\"'-]+)\s*=", line):
                named = table + tuple(part.strip().strip("\"'") for part in key[1].split("."))
                if named == field:
                    return number
                if len(named) > len(table) and named == field[: len(named)]:
                    nearest = number
        return nearest


def _read(path: Path, *, is_meant: bool) -> tuple[dict[str, Any], str]:
    try:
        facts = path.stat()
        if not is_meant and not stat.S_ISREG(facts.st_mode):
            # Whoever reads a pipe waits for somebody to write into it. A person may name one; a folder may not.
            raise ConfigError("not a plain file", place=str(path))
        if facts.st_size > MAX_FILE_BYTES:
            raise ConfigError(f"larger than {MAX_FILE_BYTES} bytes", place=str(path))
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", place=str(path)) from None
    text = read_text(path, "configuration")
    try:
        return tomllib.loads(text), text
    except tomllib.TOMLDecodeError as problem:
        fact, _, where = str(problem).partition(" (at line ")
        line = where.partition(",")[0] if where[:1].isdigit() else str(text.count("\n") + 1)
        raise ConfigError(f"not TOML: {fact[:1].lower()}{fact[1:]}", place=f"{path}:{line}") from None


def _table(tables: dict[str, Any], name: str, place: _Place) -> dict[str, Any]:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise ConfigError(
            f"{name} is not a table", place=place.of((name,)), hint=f"write [{name}] on a line of its own"
        )
    return dict(table)


def _check_names(table: Mapping[str, Any], known: set[str], path: tuple[str, ...], place: _Place) -> None:
    for name in table:
        if name in known:
            continue
        field = (*path, name)
        if path == ("server",) and name in ("key", "upstream_key", "api_key"):
            hint: str | None = "set LASTWORD_UPSTREAM_KEY, or name a file with key_file"
            raise ConfigError(f"{name} does not belong in a file that is shared", place=place.of(field), hint=hint)
        hint = did_you_mean(name, known) or f"known here: {', '.join(sorted(known))}"
        raise ConfigError(f"unknown field {'.'.join(field)}", place=place.of(field), hint=hint)


def _check_environment(environ: Mapping[str, str]) -> None:
    """A variable that is nearly one of ours was meant to be it. Others may belong to somebody else."""
    known = [*(name.upper() for name in FROM_OUTSIDE), *OTHER_NAMES]
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX)
        if name == variable or name in known:
            continue
        if hint := did_you_mean(name, known):
            raise ConfigError(f"unknown variable {variable}", hint=hint.replace("mean ", f"mean {PREFIX}"))


def _from_text(name: str, value: str, variable: str) -> Any:
    if name in ("hosts", "origins"):
        return [part.strip() for part in value.split(",") if part.strip()]
    if name == "port":
        if not (value.isascii() and value.isdigit()):
            raise ConfigError(f"{value!r} is not a port", place=variable)
        return int(value)
    return value


def _convert(table: dict[str, Any], kind: type[AnyConfig], path: tuple[str, ...], place: _Place) -> AnyConfig:
    _check_names(table, set(kind.__struct_fields__), path, place)
    if isinstance(table.get("limits"), dict):
        usual: Any = kind()
        _check_names(table["limits"], set(usual.limits.__struct_fields__), (*path, "limits"), place)
    try:
        return msgspec.convert(table, kind, dec_hook=_path)
    except msgspec.ValidationError as problem:
        fact, _, where = str(problem).partition(" - at `$")
        field = (*path, *where.rstrip("`").lstrip(".").split(".")) if where else path
        raise ConfigError(
            f"{'.'.join(field)}: {fact[:1].lower()}{fact[1:]}",
            place=place.of(tuple(part.partition("[")[0] for part in field)),
        ) from None


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError(f"Expected `str`, got `{type(value).__name__}`")


def _preset(table: Any, name: str, place: _Place) -> PresetConfig:
    path = ("preset", name)
    if not isinstance(table, dict):
        raise ConfigError(f"preset.{name} is not a table", place=place.of(path), hint=f"write [preset.{name}]")
    table = dict(table)
    _from_folder(table, place.path)
    return _convert(table, PresetConfig, path, place)


def _editor(table: dict[str, Any], place: _Place, *, is_meant: bool) -> EditorConfig:
    editor = _convert(table, EditorConfig, ("editor",), place)
    for pattern in editor.private:
        # The file may have come with the project. It can make more of it private, and not less.
        if pattern.startswith("!") and not is_meant:
            raise ConfigError(
                f"{pattern} would take a file out of those that are private, in a configuration that was merely found",
                place=place.of(("editor", "private")),
                hint="if it is your own, name it: --config FILE, or LASTWORD_CONFIG",
            )
    return editor


def _people(table: dict[str, Any], place: _Place) -> PeopleConfig:
    people = _convert(table, PeopleConfig, ("people",), place)
    for name in (people.me, *(who or " " for who in people.answer)):
        check_person(name, place.of(("people",)))
    return people


def check_person(name: str, place: str | None = None) -> str:
    """What a person is called, or nothing. It stands on cards and in records, and says whose they are."""
    if name and (not name.isprintable() or name != name.strip() or len(name) > MAX_PERSON or name == "*"):
        raise ConfigError(
            f"{name[:60]!r} is no name of a person",
            place=place,
            hint=f"1 to {MAX_PERSON} printable characters, without blanks around them; * is everybody",
        )
    return name


def _mcp(table: Any, name: str, place: _Place) -> McpConfig:
    path = ("mcp", name)
    if not isinstance(table, dict):
        raise ConfigError(f"mcp.{name} is not a table", place=place.of(path), hint=f"write [mcp.{name}]")
    if not MCP_NAME.fullmatch(name):
        hint = "small letters, digits and hyphens, at most 32 of them"
        raise ConfigError(f"{name[:60]!r} is no name of an MCP server", place=place.of(path), hint=hint)
    server = _convert(dict(table), McpConfig, path, place)
    if (server.command is None) == (server.url is None):
        hint = 'command = "…" for one that is started, url = "…" for one that runs elsewhere'
        raise ConfigError(f"mcp.{name} needs a command or a url, and not both", place=place.of(path), hint=hint)
    if server.url is not None and not re.match(r"https?://[^/?#\s]+", server.url):
        raise ConfigError(f"mcp.{name}: the url is no http address", place=place.of((*path, "url")))
    meant_for = ("args", "env", "folder") if server.url is not None else ("headers",)
    for field in meant_for:
        if field in table:
            hint = f"it is for a server with a {'command' if server.url is not None else 'url'}"
            raise ConfigError(f"mcp.{name} has no use for {field}", place=place.of((*path, field)), hint=hint)
    return server


def _from_folder(table: dict[str, Any], file: Path | None) -> None:
    """Paths in a file are meant from its own folder, wherever somebody runs us."""
    for name in ("persona", "key_file"):
        if isinstance(table.get(name), str) and file is not None:
            table[name] = str(file.parent / Path(table[name]).expanduser())
    if isinstance(table.get("store"), str) and file is not None:
        table["store"] = StoreAddress(table["store"]).meant_in(file.parent)


def _check_values(config: ServerConfig, place: _Place) -> None:
    if not 0 <= config.port <= 65535:
        raise ConfigError(f"{config.port} is not a port", place=place.of(("server", "port")))
    is_in_file = config.store is not None and place.sources.get("store") == str(place.path)
    if is_in_file and StoreAddress(config.store or "").holds_password:
        raise ConfigError(
            "a password has no place in this file: it is shared and copied",
            place=place.of(("server", "store")),
            hint="put it into ~/.pgpass, PGPASSWORD or LASTWORD_STORE, and leave it out of the address",
        )
    for name in config.limits.__struct_fields__:
        value = getattr(config.limits, name)
        if value <= 0 and name != "retries":
            raise ConfigError(f"{name} has to be more than zero", place=place.of(("server", "limits", name)))
        if value < 0:
            raise ConfigError(f"{name} cannot be negative", place=place.of(("server", "limits", name)))


def _key(config: ServerConfig, environ: Mapping[str, str]) -> str | None:
    key = environ.get("LASTWORD_UPSTREAM_KEY") or (_read_key(config.key_file) if config.key_file is not None else None)
    key = key.strip() if key else None
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError("the key for the model's server holds characters that no key has")
    return key or None


def _read_key(file: Path) -> str:
    """The key in a file that is this person's, or was put there for them by whoever runs the machine."""
    try:
        facts = file.stat()
    except OSError as problem:
        raise ConfigError(f"the key cannot be read: {problem.strerror}", place=str(file)) from None
    # A pipe is what a shell makes of `<(pass show model)`: it is gone once it was read.
    if stat.S_ISREG(facts.st_mode):
        mine = os.getuid()
        if facts.st_uid not in (mine, 0):
            raise ConfigError(
                "the file with the key for the model's server is somebody else's",
                place=str(file),
                hint="copy the key into a file of your own",
            )
        # Of what root put there, root decides who reads it: that is how containers are given their keys.
        if facts.st_mode & (0o022 if facts.st_uid != mine else 0o077):
            raise ConfigError(
                "others can read or write the file with the key for the model's server",
                place=str(file),
                hint=f"make a new key if others use this machine, and then: chmod 600 {file}",
            )
    return read_text(file, "key")
