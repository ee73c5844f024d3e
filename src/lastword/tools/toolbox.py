"""The folder tools at hand: `--tools DIR`, else `tools/` in the current folder.

Finding reads manifests and runs nothing. Loading imports code: of a folder that was named at once, of one that was
merely found after one question (trust.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lastword.errors import ManifestError, Problem, ToolLoadError, UnknownTool, did_you_mean
from lastword.tools.code import CODE_FILE, MANIFEST_FILE
from lastword.tools.loader import import_tool, read_manifest, tool_folders
from lastword.tools.manifest import Manifest
from lastword.tools.registry import ToolRegistry
from lastword.tools.tool import Tool
from lastword.tools.trust import Trust, read_no_caches

# Where `lastword new tool` writes, and where tools are looked for when nobody says otherwise.
HERE = Path("tools")

Answer = Literal["yes", "always", "no"]


@dataclass(frozen=True, slots=True)
class FoundCode:
    """A tool folder whose manifest is in order; its code has not been looked at."""

    folder: Path
    manifest: Manifest
    named: bool
    """With `--tools`, and not merely found."""


AskTrust = Callable[[FoundCode, bool], Answer]
"""Asks a person about a folder's code; the flag says whether they agreed to other code there before."""


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What was found, and what is wrong with the rest."""

    tools: tuple[FoundCode, ...]
    problems: tuple[Problem, ...]

    def lookup(self, name: str) -> FoundCode:
        """The tool of that id; an error with the nearest one otherwise."""
        found = [tool for tool in self.tools if tool.manifest.id == name]
        if len(found) > 1:
            places = " and ".join(str(tool.folder) for tool in found)
            raise ToolLoadError(
                f"there are two tools called {name}: {places}", hint=f"name one: --tools {found[0].folder}"
            )
        if found:
            return found[0]
        known = sorted(tool.manifest.id for tool in self.tools)
        if self.problems:  # perhaps it is one of those that cannot be read
            raise ManifestError(f"unknown tool {name}; and these could not be read:", self.problems)
        listed = f"the tools are: {', '.join(known)}" if known else "lastword new tool NAME makes one"
        raise UnknownTool(f"unknown tool {name}", hint=did_you_mean(name, known) or listed)

    def load(
        self,
        registry: ToolRegistry,
        *,
        ask: AskTrust | None,
        trust: Trust | None = None,
        only: Iterable[FoundCode] | None = None,
    ) -> list[Tool]:
        """Import the code of these tools into the registry. With nobody to ask, found code is refused in words."""
        wanted = self.tools if only is None else tuple(only)
        if only is None and self.problems:
            raise ManifestError("", self.problems)
        for found in wanted:
            agree(found, ask, trust)
        return [registry.add(import_tool(found.folder, found.manifest).tool()) for found in wanted]


def find_tools(named: Sequence[str | Path] = ()) -> Toolbox:
    """Read the manifests in the named folders, or in `tools/`."""
    if not named and not HERE.is_dir():
        raise ToolLoadError(
            "there are no tools here",
            place=f"{HERE}/",
            hint="lastword new tool NAME makes one; --tools DIR names another folder",
        )
    tools: list[FoundCode] = []
    problems: list[Problem] = []
    for place in named or [HERE]:
        folders = tool_folders(Path(place))
        if named and not folders:
            raise ToolLoadError(
                "there is no tool in this folder",
                place=str(place),
                hint=f"a tool is a folder with {MANIFEST_FILE} and {CODE_FILE}; lastword new tool NAME makes one",
            )
        for folder in folders:
            try:
                tools.append(FoundCode(folder, read_manifest(folder), bool(named)))
            except ManifestError as problem:
                problems += problem.problems
    return Toolbox(tuple(tools), tuple(problems))


def agree(found: FoundCode, ask: AskTrust | None, trust: Trust | None = None, *, by_naming: str = "--tools") -> None:
    """Make sure that somebody agreed to run the code of this tool: by naming it, now, or earlier."""
    if found.named:
        return
    read_no_caches()
    trust = trust or Trust()
    if trust.covers(found.folder):
        return
    if ask is None:
        fact = (
            "its code has changed since somebody agreed to run it"
            if trust.knows(found.folder)
            else "its code was found here, and nobody has agreed to run it yet"
        )
        raise ToolLoadError(
            fact, place=str(found.folder), hint=f"look at it, then name it: {by_naming} {found.folder.parent}"
        )
    answer = ask(found, trust.knows(found.folder))
    if answer == "no":
        raise ToolLoadError("you did not agree to run its code", place=str(found.folder))
    trust.remember(found.folder, whole_folder=answer == "always")
