"""Configuration: `lastword.toml`, then `LASTWORD_*`, then flags. Whatever comes later wins.

    [server]
    upstream = "http://127.0.0.1:11434/v1"
    model = "llama3.2"
    persona = "persona.md"

    [server.limits]
    requests_per_minute = 60

    [preset.careful]
    auto_approve = false
    protocol = "script"

    [editor]
    private = ["*.secret", "keys/"]

A mistake is named with its file, line and field. Paths in the file are meant from the file's own folder. Keys have no
place in the file: it is shared and copied. They come from LASTWORD_UPSTREAM_KEY, or from the file that `key_file`
names.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from lastword.errors import ConfigError, did_you_mean
from lastword.server.limits import ServerLimits

FILE = "lastword.toml"
PREFIX = "LASTWORD_"
DEFAULT_PORT = 8811

# More than anybody writes by hand, less than a file that was named by mistake.
MAX_FILE_BYTES = 1_000_000


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[server]`: where the API listens, and the model behind it."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    upstream: str | None = None
    model: str | None = None
    persona: Path | None = None
    store: str | None = None
    key_file: Path | None = None
    hosts: list[str] = []
    origins: list[str] = []
    limits: ServerLimits = ServerLimits()


class PresetLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[preset.NAME.limits]`: the bounds of a satellite's loop."""

    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None


class PresetConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[preset.NAME]`: how a satellite works under that name."""

    model: str | None = None
    persona: Path | None = None
    auto_approve: bool = False
    protocol: Literal["json", "script", "native"] | None = None
    limits: PresetLimits = PresetLimits()


class EditorConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[editor]`: which files of a project are private, besides those that always are."""

    private: list[str] = []


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, and where each value of `[server]` came from."""

    server: ServerConfig = ServerConfig()
    preset: dict[str, PresetConfig] = {}
    editor: EditorConfig = EditorConfig()
    upstream_key: str | None = None
    file: Path | None = None
    sources: dict[str, str] = {}

    def persona_text(self) -> str | None:
        """What the persona's file says."""
        return None if self.server.persona is None else read_text(self.server.persona, "persona")


# The fields of [server] that an environment variable or a flag may set.
FROM_OUTSIDE = ("host", "port", "upstream", "model", "persona", "store", "key_file", "hosts", "origins")
# Names with our prefix that are not configuration, or are read elsewhere.
OTHER_NAMES = ("CONFIG", "LOG", "TOKEN", "UPSTREAM_KEY")


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
    named = path is not None
    if path is None and (found := (folder or Path()) / FILE).exists():
        path = found
    tables, text = _read(path) if path is not None else ({}, "")
    place = _Place(path, text)
    _check_names(tables, {"server", "preset", "editor"}, (), place)
    server = _table(tables, "server", place)
    sources = {name: str(path) for name in server}
    _check_names(server, set(ServerConfig.__struct_fields__), ("server",), place)
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
    presets = {name: _preset(table, name, place) for name, table in _table(tables, "preset", place).items()}
    editor = _editor(_table(tables, "editor", place), place, named=named)
    key = _key(config, environ)
    return Config(server=config, preset=presets, editor=editor, upstream_key=key, file=path, sources=sources)


def read_text(path: Path, what: str) -> str:
    """A file that the configuration names."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ConfigError(f"the {what} cannot be read: {problem.strerror}", place=str(path)) from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"the {what} is not UTF-8 at byte {problem.start}", place=str(path)) from None


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


def _read(path: Path) -> tuple[dict[str, Any], str]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
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


def _convert(table: dict[str, Any], kind: Any, path: tuple[str, ...], place: _Place) -> Any:
    if isinstance(table.get("limits"), dict):
        known = ServerLimits if kind is ServerConfig else PresetLimits
        _check_names(table["limits"], set(known.__struct_fields__), (*path, "limits"), place)
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
    raise NotImplementedError


def _preset(table: Any, name: str, place: _Place) -> PresetConfig:
    path = ("preset", name)
    if not isinstance(table, dict):
        raise ConfigError(f"preset.{name} is not a table", place=place.of(path), hint=f"write [preset.{name}]")
    _check_names(table, set(PresetConfig.__struct_fields__), path, place)
    table = dict(table)
    _from_folder(table, place.path)
    preset: PresetConfig = _convert(table, PresetConfig, path, place)
    return preset


def _editor(table: dict[str, Any], place: _Place, *, named: bool) -> EditorConfig:
    _check_names(table, set(EditorConfig.__struct_fields__), ("editor",), place)
    editor: EditorConfig = _convert(table, EditorConfig, ("editor",), place)
    for pattern in editor.private:
        # The file may have come with the project. It can make more of it private, and not less.
        if pattern.startswith("!") and not named:
            raise ConfigError(
                f"{pattern} would take a file out of those that are private, in a configuration that was merely found",
                place=place.of(("editor", "private")),
                hint="if it is your own, name it: --config FILE, or LASTWORD_CONFIG",
            )
    return editor


def _from_folder(table: dict[str, Any], file: Path | None) -> None:
    """Paths in a file are meant from its own folder, wherever somebody runs us."""
    for name in ("persona", "key_file"):
        if isinstance(table.get(name), str) and file is not None:
            table[name] = str(file.parent / Path(table[name]).expanduser())


def _check_values(config: ServerConfig, place: _Place) -> None:
    if not 0 <= config.port <= 65535:
        raise ConfigError(f"{config.port} is not a port", place=place.of(("server", "port")))
    for name in ServerLimits.__struct_fields__:
        value = getattr(config.limits, name)
        if value <= 0 and name != "retries":
            raise ConfigError(f"{name} has to be more than zero", place=place.of(("server", "limits", name)))
        if value < 0:
            raise ConfigError(f"{name} cannot be negative", place=place.of(("server", "limits", name)))


def _key(config: ServerConfig, environ: Mapping[str, str]) -> str | None:
    key = environ.get("LASTWORD_UPSTREAM_KEY") or (
        read_text(config.key_file, "key") if config.key_file is not None else None
    )
    key = key.strip() if key else None
    if key and not (key.isascii() and key.isprintable()):
        raise ConfigError("the key for the model's server holds characters that no key has")
    return key or None
