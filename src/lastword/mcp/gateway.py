"""A client's configuration with all of its servers behind one entry of ours, and back again, byte for byte.

What is remembered of each lies in the person's own folder: the file as it was, the file as we wrote it, and the
servers, in a configuration of their own. Nothing is trusted by being wrapped.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from lastword.errors import ConfigError, NotJSON
from lastword.mcp.secrets import SecretFile, write_private
from lastword.mcp.server_files import (
    ForeignServer,
    JsonSettings,
    named_elsewhere,
    project_of,
    read_foreign,
    servers_in,
    written,
)
from lastword.mcp.server_trust import marked, offered_as
from lastword.rules import ProtectedFile
from lastword.store import write_whole

ENTRY = "lastword"
# What an entry may say. Whatever else is in one could be a restriction that would be lost.
_KNOWN = frozenset({"type", "command", "args", "env", "cwd", "url", "serverUrl", "headers"})
# In which files beside it Claude Code keeps its rules.
_RULES = (".claude/settings.json", ".claude/settings.local.json")
# What Claude Code writes as an underscore in the name of a server.
_NOT_IN_RULES = re.compile(r"[^A-Za-z0-9_-]")


Kept = TypeVar("Kept", bound=msgspec.Struct)


class Wrapped(msgspec.Struct, frozen=True):
    """What is remembered of a client's file."""

    file: str
    before: str
    """As it was, as a text in which every byte stands for itself."""
    after: str
    config: str
    servers: tuple[str, ...]


class Wrapping(msgspec.Struct, frozen=True):
    """A change that nobody has agreed to yet."""

    file: Path
    before: bytes
    after: bytes
    servers: tuple[ForeignServer, ...]
    config: Path
    outside: tuple[str, ...] = ()
    """Servers that the file names elsewhere, and that stay where they are."""

    @property
    def digest(self) -> str:
        return sha256(self.before + b"\0" + self.after).hexdigest()


class SettingsFiles(Generic[Kept]):
    """Files of other programs that were changed by us. What is kept of each lies in the person's own folder."""

    def __init__(self, folder: Path, kept: type[Kept]) -> None:
        self.folder = folder
        self._type = kept

    def all(self) -> list[Kept]:
        found = sorted(self.folder.glob("*.json")) if self.folder.is_dir() else []
        return [msgspec.json.decode(file.read_bytes(), type=self._type) for file in found]

    def of(self, file: Path) -> Kept | None:
        """What is kept of a file; None when it was not changed by us."""
        kept = self.kept_in(file)
        return msgspec.json.decode(kept.read_bytes(), type=self._type) if kept.exists() else None

    def kept_in(self, file: Path) -> Path:
        readable = re.sub(r"[^A-Za-z0-9]+", "-", file.name).strip("-")
        return self.folder / f"{readable}-{sha256(str(file.resolve()).encode()).hexdigest()[:12]}.json"

    def check(self, file: Path, now: bytes | None) -> None:
        """Refuse a file that is not as it was when its change was shown."""
        if (file.read_bytes() if file.exists() else None) != now:
            raise ConfigError("it changed meanwhile, and was left as it is", place=str(file))

    def change(self, file: Path, before: bytes | None, after: bytes, kept: Kept) -> Path | None:
        """Write a file, and return where it lies as it was."""
        write_private(self.kept_in(file), kept)
        file.parent.mkdir(parents=True, exist_ok=True)
        backup = None if before is None else _backup(file)
        if backup is not None and before is not None:
            write_whole(backup, before)
        write_whole(file, after, file.stat().st_mode & 0o777 if backup else 0o600)
        return backup

    def give_back(self, file: Path, after: bytes | None) -> None:
        """Write a file as it shall be without us, or take it away where there was none."""
        if after is None:
            file.unlink(missing_ok=True)
        else:
            write_whole(file, after, file.stat().st_mode & 0o777)
        self.kept_in(file).unlink()


class Gateways(SettingsFiles[Wrapped]):
    """The files of clients that were wrapped."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder or ProtectedFile.gateways_folder(), Wrapped)

    def plan(self, file: Path) -> Wrapping:
        """What would be written. A ConfigError says what stands against it."""
        file = file.resolve()  # The file that a link leads to is changed, and the link stays one.
        found, key = read_foreign(file)
        if ENTRY in found[key]:
            ours = self.of(file) is not None
            hint = f"lastword mcp unwrap {file} takes it out" if ours else "take it out, or give it another name there"
            raise ConfigError(f"it has an entry {ENTRY} already", place=str(file), hint=hint)
        if not found[key]:
            raise ConfigError("it names no servers, so there is nothing to put behind lastword", place=str(file))
        for name, entry in found[key].items():
            if isinstance(entry, dict) and (more := sorted(entry.keys() - _KNOWN)):
                fact = f"{marked(name)} says {', '.join(map(marked, more))}, which would be lost behind lastword"
                hint = "take it out, and say it in lastword's words where there are any"
                raise ConfigError(fact, place=str(file), hint=hint)
        servers = tuple(servers_in(file))
        if lost := list(_lost_rules(file, found, servers)):
            fact = f"rules of the client would not match any more: {'; '.join(lost)}"
            raise ConfigError(fact, place=str(file), hint="add the same rules for the new names; then wrap it")
        config = self.kept_in(file).with_suffix(".toml")
        before = file.read_bytes()
        # With -P no file in the folder that the client is started in passes for lastword.
        entry = {"command": sys.executable, "args": ["-P", "-m", "lastword", "mcp", "serve", "--config", str(config)]}
        outside = tuple(marked(name) for name in named_elsewhere(found, key))
        return Wrapping(file, before, JsonSettings(before).with_value(key, {ENTRY: entry}), servers, config, outside)

    def wrap(self, plan: Wrapping, secrets: SecretFile) -> Path | None:
        """Carry the change out, and return where the file lies as it was."""
        self.check(plan.file, plan.before)
        for server in plan.servers:
            for name, value in server.secrets.items():
                secrets.keep(name, value)
        folder = _folder(plan.file)
        entries = [written(server.ours, _in(server, folder)) for server in plan.servers]
        write_private(plan.config, "\n".join(entries).encode())
        before, after = plan.before.decode("latin-1"), plan.after.decode("latin-1")
        names = tuple(server.name for server in plan.servers)
        return self.change(
            plan.file, plan.before, plan.after, Wrapped(str(plan.file), before, after, str(plan.config), names)
        )

    def plan_back(self, file: Path) -> tuple[bytes, bytes, bool]:
        """The file as it is, as it would be, and whether that is exactly what it was."""
        file = file.resolve()
        kept = self.of(file)
        if kept is None:
            raise ConfigError("this file was not wrapped by lastword", place=str(file))
        now, before = file.read_bytes(), kept.before.encode("latin-1")
        if now == kept.after.encode("latin-1"):
            return now, before, True
        # It was edited since: what came keeps its place, and what was behind us comes back beside it.
        found, key = read_foreign(file)
        old = JsonSettings(before).parsed().get(key)
        if old is None:
            hint = f"as it was it lies in {_backup(file)}"
            fact = f"its servers stand under {key} now, and did not when it was wrapped"
            raise ConfigError(fact, place=str(file), hint=hint)
        servers = {name: entry for name, entry in found[key].items() if name != ENTRY}
        return now, JsonSettings(now).with_value(key, {**old, **servers}), False

    def unwrap(self, file: Path, now: bytes, after: bytes) -> None:
        """Carry that out. The servers stay known, and so does the trust in them, for another time."""
        self.check(file.resolve(), now)
        self.give_back(file.resolve(), after)

    def outside(self) -> Iterator[tuple[str, list[str]]]:
        """Each wrapped file with the servers in it that do not stand behind us, or why that cannot be told."""
        for kept in self.all():
            try:
                found, key = read_foreign(Path(kept.file))
            except ConfigError as problem:
                yield kept.file, [problem.fact]
                continue
            names = [marked(name) for name in (*found[key], *named_elsewhere(found, key)) if name != ENTRY]
            yield kept.file, names if ENTRY in found[key] else [*names, f"there is no entry {ENTRY} any more"]


def _lost_rules(file: Path, found: dict[str, Any], servers: tuple[ForeignServer, ...]) -> Iterator[str]:
    """The rules of Claude Code that name tools of these servers, and have no counterpart for the new names."""
    above = _folder(file)
    places = {file.resolve(): found}
    for place in (*(above / rules for rules in _RULES), *(Path.home() / rules for rules in _RULES)):
        if place.is_file() and place.resolve() not in places:
            try:
                places[place.resolve()] = JsonSettings(place.read_bytes()).parsed()
            except NotJSON:
                fact = "it cannot be read, and may hold rules that name these servers"
                raise ConfigError(fact, place=str(place)) from None
    for place, content in places.items():
        for name, rules in _rule_lists(content):
            for rule in rules:
                for server in servers:
                    new = _new_name(rule, server)
                    covering = {new, f"mcp__{ENTRY}"} if rule == _of_server(server) else {new}
                    if new is not None and not covering & set(rules):
                        yield f"{marked(rule)} in {name} of {place} ({marked(new)} would be its new name)"


def _new_name(rule: str, server: ForeignServer) -> str | None:
    """How a rule of Claude Code about tools of this server would have to be written now; None for any other rule."""
    before = _of_server(server)
    tool = rule.removeprefix(f"{before}__") if rule.startswith(f"{before}__") else "*" if rule == before else None
    if tool is None:
        return None
    if tool == "*":
        one = offered_as(server.ours, "x")  # All ids of a server's tools begin as this one does.
        return f"mcp__{ENTRY}__{one[: one.index('_x') + 1]}*"
    return f"mcp__{ENTRY}__{offered_as(server.ours, tool)}"


def _of_server(server: ForeignServer) -> str:
    """A rule about all tools of a server, as it was before."""
    return f"mcp__{_NOT_IN_RULES.sub('_', server.name)}"


def _rule_lists(content: Any) -> Iterator[tuple[str, list[str]]]:
    """Every list of texts in a file, however deep, under its name."""
    waiting = [("", content)]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}".lstrip("."), item) for key, item in value.items()]
        elif isinstance(value, list):
            if texts := [item for item in value if isinstance(item, str)]:
                yield name, texts
            waiting += [(name, item) for item in value if isinstance(item, (dict, list))]


def _folder(file: Path) -> Path:
    """Where a client starts the servers of such a file: in its project, or nowhere in particular."""
    parent, project = file.resolve().parent, project_of(file)
    return project if project != parent or file.name == ".mcp.json" else Path.home()


def _backup(file: Path) -> Path:
    return file.with_name(f"{file.name}.before-lastword")


def _in(server: ForeignServer, folder: Path) -> Any:
    config = server.config
    if config.url is not None:
        return config
    return msgspec.structs.replace(config, folder=folder / (config.folder or ""))
