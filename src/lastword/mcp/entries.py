"""`[mcp.NAME]` in a lastword.toml: written at its end, and taken out again, with everything else left as it is.

The file is a person's. Whatever we write is read again before it counts: it must say what it said before, and the one
thing more or less.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from lastword.config import McpConfig, read_text, trusted
from lastword.errors import ConfigError
from lastword.mcp.names import check_server_name

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]")


def add_entry(file: Path, name: str, config: McpConfig) -> None:
    """Name a server in the file, which is made when it is not there."""
    check_server_name(name, str(file))
    text = _text(file)
    before = _tables(file, text)
    if name in before.get("mcp", {}):
        hint = f"lastword mcp remove {name} takes it out"
        raise ConfigError(f"there is an MCP server {name} already", place=str(file), hint=hint)
    entry = written(name, config)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = f"{text}{gap}{entry}"
    expected = {**before, "mcp": {**before.get("mcp", {}), name: _facts(config)}}
    _replace(file, after, expected)


def remove_entry(file: Path, name: str) -> None:
    """Take a server out of the file."""
    text = _text(file)
    before = _tables(file, text)
    if name not in before.get("mcp", {}):
        named = ", ".join(before.get("mcp", {})) or "none"
        raise ConfigError(f"there is no MCP server {name}", place=str(file), hint=f"there is: {named}")
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if header := _HEADER.match(line):
            parts = [part.strip().strip("\"'") for part in header[1].split(".")]
            inside = parts[:2] == ["mcp", name]
        if not inside:
            kept.append(line)
    after = re.sub(r"\n{3,}", "\n\n", "".join(kept)).rstrip("\n")
    after = f"{after}\n" if after else ""
    servers = {key: value for key, value in before["mcp"].items() if key != name}
    expected = {**before, "mcp": servers}
    if not servers:
        del expected["mcp"]
    _replace(file, after, expected)


def change_own(file: Path, change: Callable[[], None]) -> None:
    """Change the file for its person. One that they accepted stays accepted: the change is their own."""
    known = trusted(os.environ)
    was_accepted = file.exists() and known.covers_file(file, read_text(file, "configuration"))
    change()
    if was_accepted:
        known.remember_file(file, read_text(file, "configuration"))


def written(name: str, config: McpConfig) -> str:
    """The entry as TOML."""
    lines = [f"[mcp.{name}]"]
    for key, value in _facts(config).items():
        if isinstance(value, dict):
            inner = ", ".join(f"{_string(own)} = {_string(text)}" for own, text in value.items())
            lines.append(f"{key} = {{ {inner} }}")
        elif isinstance(value, list):
            lines.append(f"{key} = [{', '.join(map(_string, value))}]")
        else:
            lines.append(f"{key} = {value if isinstance(value, float) else _string(str(value))}")
    return "\n".join(lines) + "\n"


def _facts(config: McpConfig) -> dict[str, Any]:
    """What the entry says, without what it need not say."""
    usual = McpConfig()
    facts = {
        field: getattr(config, field)
        for field in McpConfig.__struct_fields__
        if getattr(config, field) != getattr(usual, field)
    }
    return {key: str(value) if isinstance(value, Path) else msgspec.to_builtins(value) for key, value in facts.items()}


def _string(text: str) -> str:
    # A basic string of TOML escapes as JSON does, but for what JSON leaves as it is.
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as problem:
        raise ConfigError(f"cannot be read: {type(problem).__name__}", place=str(file)) from None


def _tables(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise ConfigError(f"not TOML: {problem}", place=str(file)) from None


def _replace(file: Path, text: str, expected: dict[str, Any]) -> None:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        found = None
    if found != expected:
        raise ConfigError(
            "it is written in a way that cannot be changed without touching more of it",
            place=str(file),
            hint="change it by hand",
        )
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(descriptor)
    os.replace(part, file)
