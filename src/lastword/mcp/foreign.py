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
# Under which names servers stand.
_KEYS = ("mcpServers", "servers")

_SECRET_VARIABLE = re.compile(r"(?i)(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT)$")
_SECRET_HEADER = re.compile(r"(?i)(authorization|cookie|.*(key|token|secret).*)")
_REFERENCE = re.compile(r"\$\{(?:env:|input:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
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
    for key in _KEYS:
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


def named_elsewhere(found: dict[str, Any], key: str) -> list[str]:
    """Servers that such a file names anywhere but under its own key: for single projects, say, as Claude Code does."""
    names: list[str] = []
    waiting: list[tuple[Any, tuple[str, ...]]] = [(item, (name,)) for name, item in found.items()]
    while waiting:
        value, path = waiting.pop()
        if isinstance(value, list):
            waiting += [(item, path) for item in value]
        if not isinstance(value, dict):
            continue
        if path[-1] in _KEYS and path != (key,):
            names += [f"{name} ({', '.join(path[:-1]) or path[-1]})" for name, own in value.items() if _is_server(own)]
        waiting += [(item, (*path, name)) for name, item in value.items()]
    return sorted(names)


def _is_server(entry: Any) -> bool:
    return isinstance(entry, dict) and any(isinstance(entry.get(way), str) for way in ("command", "url", "serverUrl"))


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
    entry = _in_place(entry, {"workspaceFolder": str(project_of(file)), "userHome": str(Path.home())})
    env = _texts(entry.get("env") or {}, "env", place)
    headers = _texts(entry.get("headers") or {}, "headers", place)
    env = {key: _moved(ours, key, value, secrets, _SECRET_VARIABLE) for key, value in env.items()}
    headers = {key: _moved(ours, key, value, secrets, _SECRET_HEADER) for key, value in headers.items()}
    command, url, args = entry.get("command"), entry.get("url") or entry.get("serverUrl"), entry.get("args") or []
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        raise ConfigError("args is no list of texts", place=place)
    for said in (command, url, entry.get("cwd"), *args):
        if isinstance(said, str) and (found := _VARIABLE.search(said)):
            hint = "write there what it stands for; a secret may only be named in env and headers"
            raise ConfigError(f"{found[0][:60]} in its command or address would not be put in", place=place, hint=hint)
    if isinstance(command, str) and url is None:
        folder = entry.get("cwd")
        config = McpConfig(command=command, args=args, env=env, folder=Path(folder) if folder else None)
    elif isinstance(url, str) and command is None:
        config = McpConfig(url=url, headers=headers)
    else:
        raise ConfigError("it has neither a command nor a url, or both", place=place)
    named = {found for text in (*env.values(), *headers.values()) for found in NAMED.findall(text)}
    return ForeignServer(name, ours, config, secrets, tuple(sorted(named - secrets.keys())))


def _in_place(entry: Any, known: dict[str, str]) -> Any:
    """The entry with the folders that VS Code puts in, wherever it names them."""
    if isinstance(entry, str):
        return _VARIABLE.sub(lambda found: known.get(found[1], found[0]), entry)
    if isinstance(entry, list):
        return [_in_place(item, known) for item in entry]
    return {key: _in_place(item, known) for key, item in entry.items()} if isinstance(entry, dict) else entry


def project_of(file: Path) -> Path:
    """The folder of the project that such a file belongs to, if it belongs to one."""
    parent = file.resolve().parent
    return parent.parent if parent.name in (".vscode", ".cursor", ".claude", ".gemini") else parent


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


_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)


def without_comments(data: bytes) -> str:
    """The text without comments and last commas, which VS Code allows in its files."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise NotJSON("it is not UTF-8") from None
    # One after the other: a comment may stand behind a last comma.
    for unwanted in (_COMMENT, _LAST_COMMA):
        text = unwanted.sub(lambda found: found[1] or "", text)
    return text
