"""Name → tool: registering, looking up, forgetting. Loading tools from folders is loader.py's business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, Unpack, overload

from lastword.errors import ManifestError, Problem, ToolLoadError, UnknownTool, did_you_mean
from lastword.tools.context import ToolContext
from lastword.tools.facts import Facts, RegisterFacts, ToolFacts, wrong_facts
from lastword.tools.guard import refuse_if_watched
from lastword.tools.loader import load
from lastword.tools.manifest import RESERVED, Manifest, parse_schema
from lastword.tools.signature import manifest_of
from lastword.tools.state import State, StateOwner
from lastword.tools.tool import Function, Tool

F = TypeVar("F", bound=Callable[..., Any])


class ToolRegistry(StateOwner):
    """The tools an application offers. One registry may serve many sessions; each session has its own state."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self._state = State()  # for whoever uses the registry without a session

    def register(
        self,
        name: str,
        schema: Mapping[str, Any],
        execute: Function,
        **facts: Unpack[RegisterFacts],
    ) -> Tool:
        """Add a tool by schema: `execute(args, context)` returns a JSON value.

        The host application vouches for such a tool, so it needs no approval unless `require_approval` says so.
        `inline` keeps a small, pure, sync function on the event loop.
        """
        if wrong := list(wrong_facts(facts, RegisterFacts.__annotations__, None)):
            raise ManifestError("", [Problem(problem.fact, place=name, hint=problem.hint) for problem in wrong])
        manifest = parse_schema({"name": name, **schema}, require_approval=facts.get("require_approval", False))
        if manifest.id != name:
            raise ToolLoadError(f"registered as {name}, but its schema says {manifest.id}", place=name)
        if not callable(execute):
            raise ToolLoadError("the implementation is not callable", place=name, hint="pass a function(args, context)")
        return self.add(Tool(manifest, "registry", execute, inline=facts.get("inline", False)))

    @overload
    def tool(self, function: F, /) -> F: ...

    @overload
    def tool(self, /, **facts: Unpack[ToolFacts]) -> Callable[[F], F]: ...

    def tool(self, function: F | None = None, /, **facts: Unpack[ToolFacts]) -> F | Callable[[F], F]:
        """Decorate a typed function: its signature, hints and docstring become the manifest."""

        def add(function: F) -> F:
            self.add(tool_from(function, **facts))
            return function

        return add if function is None else add(function)

    def load(self, folder: str | Path) -> list[Tool]:
        """Load one tool folder, or a folder of them."""
        return [self.add(tool) for tool in load(Path(folder))]

    def add(self, tool: Tool | Function) -> Tool:
        """Add a finished tool, or a function that `@tool` made one."""
        refuse_if_watched("add a tool")
        if not isinstance(tool, Tool):
            made = getattr(tool, "__lastword_tool__", None)
            tool = made if isinstance(made, Tool) else tool_from(tool)
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
        return self._tools[tool.name]

    def unregister(self, name: str) -> None:
        refuse_if_watched("forget the tool ", name)
        self.lookup(name)
        del self._tools[name]

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

    def create_tool_context(self) -> ToolContext:
        """A context on the registry's own state, for calling a function by hand."""
        return ToolContext(self._state)


def tool_from(function: Function, *, inline: bool = False, **facts: Unpack[Facts]) -> Tool:
    """A tool from a typed function."""
    manifest, converters = manifest_of(function, **facts)
    if wrong := list(wrong_facts({"inline": inline}, ToolFacts.__annotations__, None)):
        raise ManifestError("", [Problem(problem.fact, place=manifest.id) for problem in wrong])
    return Tool(manifest, "function", function, inline=inline, converters=converters)


@overload
def tool(function: F, /) -> F: ...


@overload
def tool(**facts: Unpack[ToolFacts]) -> Callable[[F], F]: ...


def tool(function: F | None = None, /, **facts: Unpack[ToolFacts]) -> F | Callable[[F], F]:
    """Mark a typed function as a tool; `registry.add(function)` takes it. It stays an ordinary function."""

    def mark(function: F) -> F:
        function.__lastword_tool__ = tool_from(function, **facts)  # type: ignore[attr-defined]
        return function

    return mark if function is None else mark(function)
