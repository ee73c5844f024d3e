"""Name → tool: registering, looking up, forgetting. Loading tools from folders is folder.py's business.

A tool may be registered with a description as other programs have them: our own schema, a plain JSON Schema of the
arguments, or the tool form of the OpenAI API, the Anthropic API or MCP. The JSON Schema that went in is kept whole; our
parameters are read off it for the card and for scripts. How a tool of ours looks to others is told by its `Manifest`.

The owner of a foreign tool is an MCP server, or an agent whose hook asks here. No two pairs of owner and tool have one
id (`tool_id`). A name that can be an id is kept whole: `files__read_file`. In such an id two underscores follow each
other where the first one stands, since the name of a server has none. Every other name is made readable and ends with a
digest of the pair; there a letter or digit follows the first underscore, so that neither form can pass for the other.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec

from lastword import values
from lastword.errors import ManifestError, NotJSON, Problem, ToolLoadError, UnknownTool, did_you_mean
from lastword.store import refuse_if_watched
from lastword.tools.context import State, StateOwner, ToolContext
from lastword.tools.declaration import RegisterFacts, ToolFacts, manifest_facts, refuse_wrong_facts, simple_type
from lastword.tools.folder import load_all
from lastword.tools.json_schema import validator_for
from lastword.tools.manifest import MAX_ID_LENGTH, NAME, RESERVED, Effect, Manifest, Parameter, parse_schema
from lastword.tools.tool import Function, Tool

log = logging.getLogger("lastword")

F = TypeVar("F", bound=Callable[..., Any])


class ToolChanged(msgspec.Struct, frozen=True):
    """The tools of a registry are not what they were."""

    what: Literal["added", "replaced", "removed"]
    tool: str


class ToolRegistry(StateOwner):
    """The tools an application offers. One registry may serve many sessions; each session has its own state."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._listeners: list[Callable[[ToolChanged], None]] = []
        self._state = State()  # for whoever uses the registry without a session

    def register(
        self,
        name: str,
        schema: Any,
        execute: Function,
        **facts: Unpack[RegisterFacts],
    ) -> Tool:
        """Add a tool by schema: `execute(args, context)` gives a value. Asks nobody unless `require_approval` says so.

        The host application vouches for such a tool; `@tool` and a tool in a folder ask unless they are told not to.
        The schema is ours, a JSON Schema of the arguments, or the tool form of OpenAI, Anthropic or MCP. `request`
        draws the card. `inline` keeps a small, pure, sync function on the event loop.
        """
        manifest = manifest_from(name, schema)
        known = [parameter.name for parameter in manifest.parameters]
        refuse_wrong_facts(facts, RegisterFacts.__annotations__, known, name)
        if not callable(execute):
            raise ToolLoadError("the implementation is not callable", place=name, hint="pass a function(args, context)")
        asks = facts.get("require_approval", False)
        rule = asks if callable(asks) else None
        tool = Tool(
            _with_facts(manifest, facts),
            "registry",
            execute,
            request=facts.get("request"),
            needs_approval=rule,
            inline=facts.get("inline", False),
        )
        return self.add(tool)

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, /, **facts: Unpack[ToolFacts]) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **facts: Unpack[ToolFacts]) -> F | Callable[[F], F]:
        """Decorate a typed function: its signature, hints and docstring become the manifest."""

        def add(function: F) -> F:
            self.add(Tool.from_function(function, **facts))
            return function

        return add if function is None else add(function)

    def load(self, folder: str | Path) -> list[Tool]:
        """Load one tool folder, or a folder of them."""
        return [self.add(tool) for tool in load_all(Path(folder))]

    def add(self, tool: Tool | Function) -> Tool:
        """Add a finished tool, or a function that `@tool` made one."""
        refuse_if_watched("add a tool")
        tool = _made(tool)
        if tool.name in RESERVED:
            raise ToolLoadError(
                f"{tool.name} is a keyword of scripts, so no CALL could name it",
                place=tool.folder or tool.name,
                hint="give the tool another name",
            )
        known = self._tools.get(tool.name)
        if known is not None and (known.digest != tool.digest or (known.execute is not tool.execute and not tool.code)):
            raise ToolLoadError(
                f"there is another tool called {tool.name}",
                place=tool.folder or tool.name,
                hint="rename one of them, or unregister the first",
            )
        if known is None:
            self._tools[tool.name] = tool
            self._tell("added", tool.name)
        return self._tools[tool.name]

    def replace(self, tool: Tool | Function) -> Tool:
        """Put a tool in the place of the one with its name. A card of the old one that waits is asked again."""
        refuse_if_watched("replace a tool")
        tool = _made(tool)
        self.lookup(tool.name)
        self._tools[tool.name] = tool
        self._tell("replaced", tool.name)
        return tool

    def unregister(self, name: str) -> None:
        refuse_if_watched("forget the tool ", name)
        self.lookup(name)
        del self._tools[name]
        self._tell("removed", name)

    def listen(self, listener: Callable[[ToolChanged], None]) -> Callable[[], None]:
        """Call `listener` whenever a tool is added, replaced or removed; returns what stops it."""
        refuse_if_watched("listen to the registry")
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def _tell(self, what: Literal["added", "replaced", "removed"], name: str) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(ToolChanged(what, name))
            except Exception:
                # Whoever watches must not keep a tool from being added; one that failed would fail again.
                log.exception("a listener of the registry failed and hears nothing more")
                self._listeners.remove(listener)

    def lookup(self, name: str) -> Tool:
        """The tool of that exact name; an error with the nearest one otherwise."""
        tool = self._tools.get(name)
        if tool is None:
            hint = did_you_mean(name, self._tools) or (
                f"the tools are: {', '.join(sorted(self._tools))}" if self._tools else "no tools are registered"
            )
            raise UnknownTool(f"unknown tool {name}", hint=hint)
        return tool

    def find(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def is_registered(self, name: str) -> bool:
        return name in self._tools

    def get_schema(self, name: str) -> Manifest:
        return self.lookup(name).manifest

    def get_all_schemas(self) -> list[Manifest]:
        return [tool.manifest for tool in self._tools.values()]

    def all(self, *, with_editor: bool = True) -> list[Tool]:
        """Every tool, in the order of registration; without those that need an editor where there is none."""
        return [t for t in self._tools.values() if with_editor or not t.manifest.script_editor_only]

    def openai_tools(self) -> list[dict[str, Any]]:
        """Every tool as `tools` of OpenAI's chat completions takes it."""
        return [tool.manifest.openai_form() for tool in self._tools.values()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """Every tool as `tools` of Anthropic's messages takes it."""
        return [tool.manifest.anthropic_form() for tool in self._tools.values()]

    def mcp_tools(self) -> list[dict[str, Any]]:
        """Every tool as `tools/list` of MCP lists it."""
        return [tool.manifest.mcp_form() for tool in self._tools.values()]

    def create_tool_context(self) -> ToolContext[Any]:
        """A context on the registry's own state, for calling a function by hand."""
        return ToolContext(self._state)


def _made(tool: Tool | Function) -> Tool:
    """A finished tool, whatever was given: a tool, a function that `@tool` marked, or a typed function."""
    if isinstance(tool, Tool):
        return tool
    made = getattr(tool, "__lastword_tool__", None)
    return made if isinstance(made, Tool) else Tool.from_function(tool)


def _with_facts(manifest: Manifest, facts: RegisterFacts) -> Manifest:
    """What a schema says, and what was said beside it. A schema that asks for approval gets it either way."""
    secret = facts.get("secret") or ()
    parameters = tuple(
        msgspec.structs.replace(parameter, secret=parameter.secret or parameter.name in secret)
        for parameter in manifest.parameters
    )
    asks = manifest.require_approval or facts.get("require_approval", False) is not False
    return msgspec.structs.replace(
        manifest, **(manifest_facts(facts) | {"parameters": parameters, "require_approval": asks})
    )


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(**facts: Unpack[ToolFacts]) -> Callable[[F], F]: ...


def tool(function: F | None = None, /, **facts: Unpack[ToolFacts]) -> F | Callable[[F], F]:
    """Mark a typed function as a tool; `registry.add(function)` takes it. It stays an ordinary function."""

    def mark(function: F) -> F:
        function.__lastword_tool__ = Tool.from_function(function, **facts)  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)


class ForeignForm(msgspec.Struct, frozen=True):
    """What a foreign form says of a tool."""

    name: str | None
    description: str
    schema: Any
    title: Any = None
    effect: Effect | None = None
    idempotent: bool = False


def manifest_from(name: str, schema: Any) -> Manifest:
    """The manifest of a tool that is registered under this name with any of the forms."""
    place = f"schema of {name}"
    if hasattr(schema, "model_dump"):  # An object of the MCP SDK, or of another library that is built like it.
        schema = schema.model_dump(by_alias=True, exclude_none=True, mode="json")
    if not isinstance(schema, Mapping):
        raise ManifestError("", [Problem(f"found a {type(schema).__name__}, expected a schema", place=place)])
    try:
        plain: dict[str, Any] = values.plain(dict(schema))
    except NotJSON as problem:
        raise ManifestError("", [Problem(problem.fact, place=place, hint=problem.hint)]) from None
    given = _foreign(plain)
    if given is None:
        manifest = parse_schema({"name": name, **plain})
        _refuse_other_name(name, manifest.id)
        return manifest
    if given.name is not None and NAME.match(given.name):
        _refuse_other_name(name, given.name)
    if problems := list(_wrong(name, given, place)):
        raise ManifestError("", problems)
    return Manifest(
        id=name,
        display_name=given.title or name.replace("_", " ").strip().capitalize(),
        description=given.description or given.title or name.replace("_", " "),
        parameters=tuple(_parameters(given.schema)),
        require_approval=False,
        additional_parameters=given.schema.get("additionalProperties", True) is not False,
        effect=given.effect,
        idempotent=given.idempotent,
        arguments=given.schema,
    )


def _foreign(schema: dict[str, Any]) -> ForeignForm | None:
    """What a form that is not ours says; None for ours."""
    inner = schema.get("function")
    if schema.get("type") == "function" and isinstance(inner, dict):
        return _described(inner, "parameters")
    if schema.get("type") == "function":
        return _described(schema, "parameters")
    if "input_schema" in schema:
        return _described(schema, "input_schema")
    if "inputSchema" in schema:
        hints = schema.get("annotations")
        given = _described(schema, "inputSchema")
        return given if not isinstance(hints, dict) else _hinted(given, hints)
    if schema.get("type") == "object" or "properties" in schema or "$schema" in schema or "$defs" in schema:
        return ForeignForm(None, str(schema.get("description", "")), schema, schema.get("title"))
    return None


def _described(form: dict[str, Any], key: str) -> ForeignForm:
    schema = form.get(key, {"type": "object", "properties": {}})
    name, title = form.get("name"), form.get("title")
    return ForeignForm(name, str(form.get("description") or ""), schema, title)


def _hinted(given: ForeignForm, hints: dict[str, Any]) -> ForeignForm:
    """What a server says of its own tool. A hint can make a card more careful, and never less."""
    effect: Effect | None = "irreversible" if hints.get("destructiveHint") is True else None
    return msgspec.structs.replace(given, effect=effect, title=given.title or hints.get("title"))


def _wrong(name: str, given: ForeignForm, place: str) -> Iterator[Problem]:
    if not NAME.match(name):
        yield Problem(
            f"the name {name[:60]!r} is no id of a tool",
            place=place,
            hint="letters, digits and underscores, not starting with a digit",
        )
    if given.title is not None and not isinstance(given.title, str):
        yield Problem("title is not a text", place=place)
    if not isinstance(given.schema, dict):
        found = type(given.schema).__name__
        yield Problem(f"the schema of the arguments is a {found}, expected an object", place=place)
        return
    if given.schema.get("type", "object") != "object":
        kind = given.schema["type"]
        yield Problem(f"the arguments are described as {kind}, expected an object of named arguments", place=place)
        return
    try:
        validator_for(given.schema)
    except ValueError as problem:
        yield Problem(f"the schema of the arguments is not a JSON Schema: {problem}", place=place)


def _refuse_other_name(registered: str, said: str) -> None:
    if registered != said:
        fact = f"registered as {registered}, but its schema says {said}"
        raise ToolLoadError(fact, place=registered, hint="use one name for it")


def _parameters(schema: dict[str, Any]) -> Iterator[Parameter]:
    """The arguments that a schema names at its top, for the card, the prompt and scripts."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    required = schema.get("required", ())
    for name, described in properties.items():
        own = described if isinstance(described, dict) else {}
        yield Parameter(
            name=name,
            type=simple_type({**own, "$defs": schema.get("$defs", {})}),
            description=str(own.get("description", "")),
            required=name in required,
            schema=own or None,
        )


# Enough that nobody finds a second name for somebody else's id; a registry holds each id once in any case.
DIGEST_DIGITS = 16

_PLAIN_SERVER = re.compile(r"[a-z][a-z0-9]*")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9_]+")
_OTHER = re.compile(r"[^A-Za-z0-9]+")


def tool_id(server: str, tool: str) -> str:
    """The id under which a tool of a server is registered."""
    plain = f"{server}__{tool}"
    if _PLAIN_SERVER.fullmatch(server) and _PLAIN_TOOL.fullmatch(tool) and len(plain) <= MAX_ID_LENGTH:
        return plain
    # The length stands before the server's name, so that no pair can be read as another one.
    pair = f"{len(server)}:{server}:{tool}".encode("utf-8", "surrogatepass")
    digest = sha256(pair).hexdigest()[:DIGEST_DIGITS]
    readable = _OTHER.sub("_", tool).strip("_") or "tool"
    head = f"{_letters(server)}_{readable}"[: MAX_ID_LENGTH - DIGEST_DIGITS - 1]
    return f"{head}_{digest}"


def _letters(server: str) -> str:
    """The name of a server without what no id may hold."""
    kept = server.replace("-", "")
    return kept if kept[:1].isalpha() else f"mcp{kept}"
