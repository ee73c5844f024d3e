"""Name → tool: registering, looking up, forgetting. Loading tools from folders is folder.py's business."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, overload

import msgspec

from lastword.errors import ManifestError, Problem, ToolLoadError, UnknownTool, did_you_mean
from lastword.store import refuse_if_watched
from lastword.tools.context import ToolContext
from lastword.tools.declaration import RegisterFacts, SharedFacts, ToolFacts, wrong_facts
from lastword.tools.folder import load_all
from lastword.tools.foreign import manifest_from
from lastword.tools.manifest import RESERVED, Manifest
from lastword.tools.state import State, StateOwner
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
        if wrong := list(wrong_facts(facts, RegisterFacts.__annotations__, known)):
            raise ManifestError("", [Problem(problem.fact, place=name, hint=problem.hint) for problem in wrong])
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
    said = {name: value for name, value in facts.items() if name in _OF_MANIFEST and value is not None}
    secret = facts.get("secret") or ()
    parameters = tuple(
        msgspec.structs.replace(parameter, secret=parameter.secret or parameter.name in secret)
        for parameter in manifest.parameters
    )
    asks = manifest.require_approval or facts.get("require_approval", False) is not False
    return msgspec.structs.replace(manifest, **(said | {"parameters": parameters, "require_approval": asks}))


_OF_MANIFEST = frozenset(SharedFacts.__annotations__) - {"secret", "require_approval"}


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
