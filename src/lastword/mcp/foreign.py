"""The files in which other programs name MCP servers: `mcpServers` of Claude Desktop, Claude Code and Cursor, and
`servers` of VS Code.

What is plainly a secret in such a file becomes one of ours; everything else is taken as it stands, so that the person
who is asked sees it. A variable such as NODE_OPTIONS could change what a program does, and is never hidden.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from lastword import values
from lastword.config import MCP_NAME, McpConfig
from lastword.errors import ConfigError, NotJSON
from lastword.mcp.secrets import NAMED

MAX_FILE_BYTES = 4_000_000

_SECRET_VARIABLE = re.compile(r"(?i)(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT)$")
_SECRET_HEADER = re.compile(r"(?i)(authorization|cookie|.*(key|token|secret).*)")
_REFERENCE = re.compile(r"\$\{(?:env:|input:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_SCHEME = re.compile(r"(?i)(bearer|basic|token)\s+")


class ForeignServer(msgspec.Struct, frozen=True):
    """A server that another program's file names."""

    name: str
    """The name it has there."""
    ours: str
    """The name it gets here."""
    config: McpConfig
    secrets: dict[str, str]
    """What was taken out of it, by the name that stands there now."""
    missing: tuple[str, ...]
    """The names that stand there, and whose secrets are known to nobody yet."""


def read_foreign(file: Path) -> tuple[dict[str, Any], str]:
    """A file of another program, and under which key it names servers."""
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"larger than {MAX_FILE_BYTES:,} bytes", place=str(file))
        found = values.parse(without_comments(file.read_bytes()))
    except OSError as problem:
        raise ConfigError(f"cannot be read: {problem.strerror}", place=str(file)) from None
    except NotJSON as problem:
        place = f"{file}:{problem.place}" if problem.place else str(file)
        raise ConfigError(problem.fact, place=place) from None
    for key in ("mcpServers", "servers"):
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            return found, key
    raise ConfigError("it names no MCP servers: there is neither mcpServers nor servers in it", place=str(file))


def servers_in(file: Path) -> list[ForeignServer]:
    """Every server that such a file names."""
    found, key = read_foreign(file)
    taken: set[str] = set()
    servers = []
    for name, entry in found[key].items():
        server = _server(file, name, entry, taken)
        taken.add(server.ours)
        servers.append(server)
    return servers


def our_name(name: str, taken: set[str]) -> str:
    """A name for a server here, as near to its own as it may be."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:28] or "server"
    made, number = plain, 2
    while made in taken:
        made, number = f"{plain}-{number}", number + 1
    assert MCP_NAME.fullmatch(made)
    return made


def _server(file: Path, name: str, entry: Any, taken: set[str]) -> ForeignServer:
    place = f"{file}: {name}"
    if not isinstance(entry, dict):
        raise ConfigError("found no object that says how the server is started", place=place)
    if entry.get("type") == "sse":
        raise ConfigError("it speaks the older way over events, which is not spoken here", place=place)
    ours, secrets = our_name(name, taken), dict[str, str]()
    env = _texts(entry.get("env", {}), "env", place)
    headers = _texts(entry.get("headers", {}), "headers", place)
    env = {key: _moved(ours, key, value, secrets, _SECRET_VARIABLE) for key, value in env.items()}
    headers = {key: _moved(ours, key, value, secrets, _SECRET_HEADER) for key, value in headers.items()}
    command, url, args = entry.get("command"), entry.get("url") or entry.get("serverUrl"), entry.get("args", [])
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise ConfigError("args is no list of texts", place=place)
    if isinstance(command, str) and url is None:
        folder = entry.get("cwd")
        config = McpConfig(command=command, args=args, env=env, folder=Path(folder) if folder else None)
    elif isinstance(url, str) and command is None:
        config = McpConfig(url=url, headers=headers)
    else:
        raise ConfigError("it has neither a command nor a url, or both", place=place)
    named = {found for text in (*env.values(), *headers.values()) for found in NAMED.findall(text)}
    return ForeignServer(name, ours, config, secrets, tuple(sorted(named - secrets.keys())))


def _moved(server: str, key: str, value: str, secrets: dict[str, str], secret: re.Pattern[str]) -> str:
    """The value with a name in place of what is secret in it."""
    if _REFERENCE.search(value):
        return _REFERENCE.sub(lambda found: f"${{{found[1]}}}", value)
    if not value or not secret.search(key):
        return value
    name = re.sub(r"[^A-Z0-9]+", "_", f"{server}_{key}".upper())
    name = name if name[0].isalpha() else f"MCP_{name}"
    scheme = _SCHEME.match(value)
    kept = value[scheme.end() :] if scheme else value
    secrets[name] = kept
    return f"{scheme[0] if scheme else ''}${{{name}}}"


def _texts(found: Any, what: str, place: str) -> dict[str, str]:
    if not isinstance(found, dict) or not all(isinstance(value, (str, int, float, bool)) for value in found.values()):
        raise ConfigError(f"{what} is no object of texts", place=place)
    return {key: value if isinstance(value, str) else values.canonical(value).decode() for key, value in found.items()}


_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/|,(?=\s*[}\]])', re.DOTALL)


def without_comments(data: bytes) -> str:
    """The text without comments and last commas, which VS Code allows in its files."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotJSON("it is not UTF-8") from None
    return _COMMENT.sub(lambda found: found[1] or "", text)
