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
from lastword.tools.code import CODE_FILE, MANIFEST_FILE, digest_of_folder
from lastword.tools.loader import import_tool, read_manifest, refuse_other_code, tool_folders
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


@dataclass(frozen=True, slots=True)
class Unagreed:
    """Code that a person is asked about, as it lay there when they were asked."""

    found: FoundCode
    digest: str
    is_changed: bool
    """They agreed to other code in this folder before."""


AskTrust = Callable[[Sequence[Unagreed]], Sequence[Answer]]
"""Asks a person about the code of these tools, all of which lie before them; an answer for each."""


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
        agreed = agree(wanted, ask, trust)
        return [
            registry.add(import_tool(found.folder, found.manifest, agreed=agreed.get(found.folder)).tool())
            for found in wanted
        ]


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


def agree(
    wanted: Sequence[FoundCode], ask: AskTrust | None, trust: Trust | None = None, *, by_naming: str = "--tools"
) -> dict[Path, str]:
    """Make sure that somebody agreed to run the code of these tools: by naming it, now, or earlier.

    One question for all of them. What is agreed to is what lay there when it was asked: the digest of each folder that
    was asked about is given back, for whoever imports it.
    """
    found_here = [found for found in wanted if not found.named]
    if not found_here:
        return {}
    read_no_caches()
    trust = trust or Trust()
    questions = [
        Unagreed(found, digest_of_folder(found.folder), trust.knows(found.folder))
        for found in found_here
        if not trust.covers(found.folder)
    ]
    if not questions:
        return {}
    if ask is None:
        first = questions[0]
        fact = (
            "its code has changed since somebody agreed to run it"
            if first.is_changed
            else "its code was found here, and nobody has agreed to run it yet"
        )
        folder = first.found.folder
        raise ToolLoadError(fact, place=str(folder), hint=f"look at it, then name it: {by_naming} {folder.parent}")
    answers = list(zip(questions, ask(questions), strict=True))
    for question, answer in answers:
        folder = question.found.folder
        if answer != "no" and digest_of_folder(folder) == question.digest:
            trust.remember(folder, question.digest, whole_folder=answer == "always")
    for question, answer in answers:
        if answer == "no":
            raise ToolLoadError("you did not agree to run its code", place=str(question.found.folder))
    agreed = {question.found.folder: question.digest for question in questions}
    for folder, digest in agreed.items():
        refuse_other_code(folder, digest_of_folder(folder), digest)
    return agreed
