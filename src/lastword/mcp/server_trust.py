"""What trust in a server is about, and what was trusted: how it is reached, and how it defines its tools.

Variables and headers stand here as they are written, with `${NAME}` in them, so that a secret which would go to a
stranger is seen to. A file that is an argument is part of it by its digest: `node ./server.js` changes by a pull.

The model and the person are given the pinned text of a definition alone. What cannot be seen in it is marked as on
cards. The schema stays as it is, but for the words in it that only describe.

What was trusted lies in the person's own folder and in no project, byte for byte. A server is known by the file that
names it and by its name there, so that two projects that call theirs the same have nothing to do with each other.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from lastword import values
from lastword.config import MCP_NAME, McpConfig
from lastword.display import visible
from lastword.errors import ConfigError, NotJSON, Problem
from lastword.mcp.secrets import own_file, write_private
from lastword.tools import Manifest, ToolKey, manifest_from, tool_id
from lastword.tools.guard import MARKER

# Larger ones are data, and not what a server does.
MAX_FILE_BYTES = 64 * 2**20
_INTERPRETERS = re.compile(
    r"(ba|da|a|k|z|c|tc|fi)?sh|busybox|env|perl|ruby|python|pypy|node|bun|deno|php|lua|tclsh|[gm]?awk|java"
)
# What a server gets of our environment: where things are, and in which language to speak.
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")

# What one server may say of its tools. The largest in use have a tenth of it.
MAX_TOOLS = 500
MAX_DEFINITION_BYTES = 256 * 1024
MAX_TOOL_NAME = 256

# Of a JSON Schema: words that describe, and values that are data whatever they are called.
_WORDS = frozenset({"description", "title", "$comment"})
_DATA = frozenset({"enum", "const", "default", "examples"})
# A card marks again what it shows; these pass for marks, and are none of a card's.
_AS_QUOTED = str.maketrans({"‹": "⟨", "›": "⟩"})


def check_server_name(name: str, place: str = "mcp") -> str:
    """The name, if a server may have it."""
    if not MCP_NAME.fullmatch(name):
        hint = "small letters, digits and hyphens, at most 32 of them"
        raise ConfigError(f"{name[:60]!r} is no name of an MCP server", place=place, hint=hint)
    return name


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """One server, as it would be reached now."""

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    folder: str | None = None
    program: str | None = None
    """The file that the command is; None when there is none of that name."""
    real_program: str | None = None
    """The same behind all links."""
    files: dict[str, str] = {}
    """The arguments that are files, and a program that comes with the folder, by their digests."""
    url: str | None = None
    headers: dict[str, str] = {}

    def facts(self) -> dict[str, Any]:
        """What a person agrees to, without what is empty."""
        facts: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        del facts["name"]
        return {key: value for key, value in facts.items() if value not in (None, {}, [])}

    @property
    def digest(self) -> str:
        return values.digest(values.canonical(self.facts()))

    def digest_with(self, *facts: Any) -> str:
        """Of the way and of what it leads to."""
        return values.digest(values.canonical([self.facts(), *facts]))

    def check(self) -> None:
        """Refuse what cannot be started, before anything is tried."""
        place = f"mcp.{self.name}"
        if self.url is None and self.program is None:
            raise ConfigError(f"there is no program {self.command}", place=place, hint="is it installed, and on PATH?")
        if self.folder is not None and not os.path.isdir(self.folder):
            raise ConfigError(f"there is no folder {self.folder}", place=place)

    def way(self) -> list[tuple[str, str]]:
        """How a server would be reached, as a person is shown it: nothing expanded, nothing left out."""
        if self.url is not None:
            way = [("address", marked(self.url))]
            return way + [("header", f"{marked(key)}: {marked(value)}") for key, value in self.headers.items()]
        program = marked(self.program or "there is none of that name")
        if self.real_program != self.program and self.real_program is not None:
            program += f" (really {marked(self.real_program)})"
        way = [
            ("command", marked(shlex.join([self.command or "", *self.args]))),
            ("program", program),
            ("folder", marked(self.folder or "")),
        ]
        way += [("variable", f"{marked(key)}={marked(value)}") for key, value in self.env.items()]
        return way + [("file", f"{marked(path)}, {digest[:16]}…") for path, digest in self.files.items()]

    def way_lines(self) -> list[str]:
        """The same in lines."""
        return [f"{what}: {value}" for what, value in self.way()]

    @property
    def rights(self) -> str:
        """What it means to start or contact it."""
        if self.url is None:
            return "It would run with all the rights of your account."
        return "What its tools are given would be sent there."

    def again(self) -> Launch:
        """The same way, looked at now."""
        if self.url is not None:
            return self
        assert self.folder is not None
        config = McpConfig(command=self.command, args=list(self.args), env=self.env, folder=Path(self.folder))
        return launch_of(self.name, config, Path(self.folder))


def launch_of(name: str, config: McpConfig, base: Path) -> Launch:
    """How the server of this configuration would be reached; `base` is the folder of its file."""
    if config.url is not None:
        return Launch(name=name, url=config.url, headers=dict(config.headers))
    assert config.command is not None
    folder = os.path.abspath(base / (config.folder or ""))
    program = _program(config.command, folder)
    return Launch(
        name=name,
        command=config.command,
        args=tuple(config.args),
        env=dict(config.env),
        folder=folder,
        program=program,
        real_program=None if program is None else os.path.realpath(program),
        files=dict(_files(config, folder, program)),
    )


def environment(own: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """All that a server gets: little of ours, what its configuration says, and the mark of what runs below us."""
    kept = {key: ours[key] for key in INHERITED if key in ours and not ours[key].startswith("()")}
    return kept | dict(own) | {MARKER: ours.get(MARKER, str(os.getpid()))}


def _program(command: str, folder: str) -> str | None:
    if os.sep in command:
        return shutil.which(os.path.normpath(os.path.join(folder, os.path.expanduser(command))))
    found = shutil.which(command)
    return None if found is None else os.path.abspath(found)


def _files(config: McpConfig, folder: str, program: str | None) -> Iterator[tuple[str, str]]:
    is_first, before = True, ""
    for argument in config.args:
        for part in dict.fromkeys((argument, argument.partition("=")[2])):
            path = os.path.join(folder, part)
            # What a server works on changes with its work. The first file may be what it is, whatever it looks like:
            # it counts, unless it is the value of a long option to something that is no interpreter.
            is_value = (before if part == argument else argument).startswith("--") and not _interprets(program)
            if not part or ((is_value or not is_first) and _is_database(path)):
                continue
            if (digest := _digest(path)) is not None:
                is_first = False
                yield part, digest
        before = argument
    if program is not None and os.path.realpath(program).startswith(os.path.realpath(folder) + os.sep):
        digest = _digest(program)
        if digest is not None:
            yield program, digest


def _interprets(program: str | None) -> bool:
    """Whether it is one of the programs that run files: a shell also runs the lines of a database."""
    return program is None or _INTERPRETERS.match(os.path.basename(os.path.realpath(program))) is not None


def _is_database(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except (OSError, ValueError):
        return False


def _digest(path: str) -> str | None:
    """The digest of a file; None for what is none, a folder say."""
    try:
        if not os.path.isfile(path):
            return None
        found = sha256()
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > MAX_FILE_BYTES:
                return "too large to be looked at"
            while chunk := file.read(2**20):
                found.update(chunk)
        return found.hexdigest()
    except (OSError, ValueError) as problem:
        return f"not readable ({type(problem).__name__})"


class Definition(msgspec.Struct, frozen=True):
    """Everything that a server says of one tool, as canonical JSON."""

    name: str
    text: str

    def fields(self) -> dict[str, Any]:
        found = values.decode(self.text.encode())
        assert isinstance(found, dict)
        return found

    def indented(self) -> str:
        """A line for each of its parts."""
        return json.dumps(self.fields(), ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def definition_of(tool: dict[str, Any]) -> Definition:
    """A definition as it came, in its canonical form. A Problem says why there is none."""
    name = tool.get("name")
    if not isinstance(name, str) or not name or len(name) > MAX_TOOL_NAME:
        raise Problem(f"a tool without a name of 1 to {MAX_TOOL_NAME} characters")
    try:
        text = values.canonical(tool)
    except NotJSON as problem:
        raise Problem(f"{visible(name)}: {problem.fact}") from None
    if len(text) > MAX_DEFINITION_BYTES:
        raise Problem(f"{visible(name)}: its definition has {len(text):,} bytes, at most {MAX_DEFINITION_BYTES:,}")
    return Definition(name, text.decode())


def digest_of(definitions: Iterable[Definition]) -> str:
    """One digest for all tools of a server, in whichever order it lists them."""
    listed = sorted((definition.name, definition.text) for definition in definitions)
    return values.digest(values.canonical([list(pair) for pair in listed]))


def offered_as(server: str, tool: str) -> str:
    """The id under which a server's tool is offered here."""
    return tool_id(server, tool)


def manifest_for(server: str, definition: Definition, standing: ToolKey = False) -> Manifest:
    """What is known here of a server's tool. What the server hints can only make its card louder.

    It always asks, unless the person has turned its key (`standing`) and a rule or a grant of theirs turns the other.
    """
    fields = definition.fields()
    id = offered_as(server, definition.name)
    description = fields.get("description")
    said = marked(description) if isinstance(description, str) and description.strip() else ""
    form = {
        "name": id,
        "inputSchema": _marked_schema(fields.get("inputSchema")),
        "annotations": fields.get("annotations") or {},
    }
    manifest = manifest_from(id, form)
    return msgspec.structs.replace(
        manifest,
        display_name=f"{marked(definition.name)} of the MCP server {server}",
        description=f"The MCP server {server} says of it: “{said}”"
        if said
        else f"The MCP server {server} says nothing.",
        require_approval=True,
        auto_approve=standing,
        idempotent=False,
        icon="network",
    )


def marked(text: str) -> str:
    """A server's words with a mark for everything in them that could not be seen."""
    return visible(text).translate(_AS_QUOTED)


def _marked_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_marked_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: marked(item) if key in _WORDS and isinstance(item, str) else item if key in _DATA else _marked_schema(item)
        for key, item in schema.items()
    }


def difference(before: Definition | None, after: Definition | None) -> list[str]:
    """What changed between two definitions, as marked lines of a diff."""
    old, new = (_lines(definition) for definition in (before, after))
    rows = difflib.unified_diff(old, new, "trusted", "now", lineterm="", n=2)
    return [marked(row) for row in rows]


def _lines(definition: Definition | None) -> list[str]:
    if definition is None:
        return []
    return json.dumps(definition.fields(), ensure_ascii=False, indent=1, sort_keys=True).split("\n")


class Pinned(msgspec.Struct, frozen=True, kw_only=True):
    """What was trusted of one server."""

    launch: dict[str, Any]
    tools: dict[str, str]
    """Each definition by the tool's name."""
    version: str = ""
    """What the server called itself. Shown, and nothing more."""
    standing: ToolKey = False
    """Which standing yes its tools may take: none, one for exact arguments, or one within bounds."""

    def __post_init__(self) -> None:
        if self.standing is True:  # As it was written down once. No preset is meant by it.
            msgspec.structs.force_setattr(self, "standing", "bounds")

    def definitions(self) -> list[Definition]:
        return [Definition(name, text) for name, text in self.tools.items()]

    def definition(self, name: str) -> Definition | None:
        text = self.tools.get(name)
        return None if text is None else Definition(name, text)

    def way_changed(self, launch: Launch) -> list[str]:
        """What is not as it was trusted on the way to the server, in words; nothing when all of it is."""
        now, before = launch.facts(), self.launch
        words = []
        for key in sorted(now.keys() | before.keys()):
            if now.get(key) != before.get(key):
                words.append(f"{key}: {_shown(before.get(key))} → {_shown(now.get(key))}")
        return words

    def changed_tools(self, tools: list[Definition]) -> list[tuple[Definition | None, Definition | None]]:
        """The tools that are not as they were trusted, each as it was and as it is."""
        now = {tool.name: tool for tool in tools}
        pairs = [(self.definition(name), now.get(name)) for name in sorted(now.keys() | self.tools.keys())]
        return [(before, after) for before, after in pairs if before != after]

    def change_lines(self, tools: list[Definition]) -> list[str]:
        """The same as a diff."""
        lines = []
        for before, after in self.changed_tools(tools):
            tool = after or before
            assert tool is not None
            what = "new" if before is None else "gone" if after is None else "changed"
            lines += [f"{marked(tool.name)}: {what}", *(f"  {row}" for row in difference(before, after)[2:])]
        return lines


class Pins:
    """All that this person trusted."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or own_file("mcp_trusted.json")

    def of(self, place: Path, name: str) -> Pinned | None:
        return self._read().get(_key(place, name))

    def keep(
        self,
        place: Path,
        launch: Launch,
        tools: Iterable[Definition],
        version: str = "",
        standing: ToolKey = False,
    ) -> Pinned:
        """Trust the server as it is. `standing` turns the key of its tools, which the person holds for them."""
        texts = {tool.name: tool.text for tool in tools}
        pinned = Pinned(launch=launch.facts(), tools=texts, version=version, standing=standing)
        write_private(self.file, self._read() | {_key(place, launch.name): pinned})
        return pinned

    def forget(self, place: Path, name: str) -> bool:
        known = self._read()
        if known.pop(_key(place, name), None) is None:
            return False
        write_private(self.file, known)
        return True

    def _read(self) -> dict[str, Pinned]:
        try:
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, Pinned])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as problem:
            # Nothing is trusted by a file that nobody can read, and nothing in it is overwritten either.
            hint = "mend it or take it away; then trust your servers again"
            raise ConfigError(f"cannot be read: {problem}", place=str(self.file), hint=hint) from None


def _key(place: Path, name: str) -> str:
    return f"{name} in {place.resolve()}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else marked(json.dumps(value, ensure_ascii=False))
