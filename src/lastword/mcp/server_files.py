"""The files that name MCP servers: `[mcp.NAME]` in a lastword.toml, `mcpServers` of Claude Desktop, Claude Code and
Cursor, and `servers` of VS Code.

A lastword.toml is a person's. An entry is written at its end, and taken out again, with everything else left as it is.
Whatever we write is read again before it counts: it must say what it said before, and the one thing more or less.

What is plainly a secret in another program's file becomes one of ours; everything else is taken as it stands, so that
the person who is asked sees it. A variable such as NODE_OPTIONS could change what a program does, and is never hidden.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lastword import values
from lastword.config import MCP_NAME, McpConfig, read_text, trusted
from lastword.errors import ConfigError, NotJSON
from lastword.mcp.secrets import NAMED
from lastword.mcp.server_trust import check_server_name, marked
from lastword.store import write_whole

MAX_FILE_BYTES = 4_000_000
# Under which names servers stand.
_KEYS = ("mcpServers", "servers")
_SECRET_VARIABLE = re.compile(r"(?i)(^|_)(API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT)$")
_SECRET_HEADER = re.compile(r"(?i)(authorization|cookie|.*(key|token|secret).*)")
_REFERENCE = re.compile(r"\$\{(?:env:|input:)?([A-Za-z_][A-Za-z0-9_]*)(?::-[^}]*)?\}")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_SCHEME = re.compile(r"(?i)(bearer|basic|token)\s+")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+', re.DOTALL)
_SECRET = re.compile(r'(?i)("[^"]*(?:key|token|secret|password|authorization)[^"]*"\s*:\s*")[^"]*(?=")')
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]")


class ServerEntries:
    """The servers that a lastword.toml names. One that its person accepted stays accepted: the change is their own."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def add(self, name: str, config: McpConfig) -> None:
        """Name a server in the file, which is made when it is not there."""
        with self._accepted_as_before():
            file = self.file
            check_server_name(name, str(file))
            text = _text(file)
            before = _tables(file, text)
            if name in before.get("mcp", {}):
                hint = f"lastword mcp remove {name} takes it out"
                raise ConfigError(f"there is an MCP server {name} already", place=str(file), hint=hint)
            gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
            expected = {**before, "mcp": {**before.get("mcp", {}), name: _facts(config)}}
            _replace(file, f"{text}{gap}{written(name, config)}", expected)

    @staticmethod
    def entry(way: Sequence[str], given: dict[str, str], folder: Path | None = None, *, is_address: bool) -> McpConfig:
        """How a server is reached: at an address, given headers; or by a command, given variables."""
        if is_address:
            return McpConfig(url=way[0], headers=given)
        return McpConfig(command=way[0], args=list(way[1:]), env=given, folder=folder)

    def remove(self, name: str) -> None:
        """Take a server out of the file."""
        with self._accepted_as_before():
            file = self.file
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

    @contextmanager
    def _accepted_as_before(self) -> Iterator[None]:
        known = trusted(os.environ)
        was_accepted = self.file.exists() and known.covers_file(self.file, read_text(self.file, "configuration"))
        yield
        if was_accepted:
            known.remember_file(self.file, read_text(self.file, "configuration"))


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
        fact = "it is written in a way that cannot be changed without touching more of it"
        raise ConfigError(fact, place=str(file), hint="change it by hand")
    write_whole(file, text.encode(), file.stat().st_mode & 0o777 if file.exists() else None)


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
        found = JsonSettings(file.read_bytes()).parsed()
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


class JsonSettings(msgspec.Struct, frozen=True):
    """A settings file of another program, as bytes. One value of it is changed, and every byte around it stays."""

    data: bytes

    def parsed(self) -> Any:
        """What it says."""
        return values.parse(self.without_comments())

    def without_comments(self) -> str:
        """The text without comments and last commas, which VS Code allows in its files."""
        try:
            text = self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise NotJSON("it is not UTF-8") from None
        # One after the other: a comment may stand behind a last comma.
        for unwanted in (_COMMENT, _LAST_COMMA):
            text = unwanted.sub(lambda found: found[1] or "", text)
        return text

    def with_value(self, key: str, value: dict[str, Any]) -> bytes:
        """The file with another value of a key of its outermost object."""
        decoded = self.data.decode("utf-8")
        start, end = _span(decoded, key)
        indent = re.search(r"[ \t]*\Z", decoded[: decoded.rfind(f'"{key}"', 0, start)])
        line_end = "\r\n" if "\r\n" in decoded else "\n"
        made = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", line_end + (indent[0] if indent else ""))
        return f"{decoded[:start]}{made}{decoded[end:]}".encode()

    def change_lines(self, after: bytes, file: Path) -> list[str]:
        """What would change in the file, as a diff. Values that look like secrets are not shown again."""
        old, new = (data.decode("utf-8", "replace").splitlines() for data in (self.data, after))
        rows = difflib.unified_diff(old, new, str(file), str(file), lineterm="", n=1)
        return [_SECRET.sub(r"\1…", marked(row)) for row in rows]


def _span(text: str, key: str) -> tuple[int, int]:
    """Where the value of a key of the outermost object stands."""
    depth, last, start, wanted = 0, "", -1, False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark.startswith(("//", "/*")):
            continue
        if wanted and start < 0:
            start = token.start()
        depth += (mark in "{[") - (mark in "}]")
        if wanted and depth == 1:
            return start, token.end()
        if depth == 1 and mark == ":" and last == json.dumps(key):
            wanted = True
        last = mark
    raise ConfigError(f"{key} is written in a way that cannot be changed without touching more of it")
