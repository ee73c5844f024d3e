"""Tools in folders: two files each, found, agreed to and loaded.

A folder with `assistant_tool.json` and `assistant_tool.py` is a tool. The JSON can be read without running anything;
the Python is imported when the tool is loaded. While it is, `AssistantTool` (author) speaks for it. Of a folder that
was named (`--tools DIR`) the code is imported at once; of one that was merely found, after one question (trust.py).
"""

from __future__ import annotations

import hashlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Literal, Protocol

from lastword import values
from lastword.errors import ManifestError, Problem, ToolLoadError, UnknownTool, did_you_mean
from lastword.tools.guard import mark
from lastword.tools.manifest import Manifest, parse_manifest
from lastword.tools.tool import Tool
from lastword.tools.trust import Trust, read_no_caches

# A tool is a handful of files. A folder with more than this holds something else, and hashing it would take long.
MAX_FILES = 2_000


@dataclass(frozen=True, slots=True)
class ToolFolder:
    """A folder that is a tool, or that somebody takes for one."""

    MANIFEST_FILE: ClassVar = "assistant_tool.json"
    CODE_FILE: ClassVar = "assistant_tool.py"

    path: Path

    def __str__(self) -> str:
        return str(self.path)

    @classmethod
    def all_in(cls, place: Path) -> list[ToolFolder]:
        """The tool folders at this path: the folder itself, or those directly inside it."""
        if (place / cls.MANIFEST_FILE).is_file():
            return [cls(place)]
        if not place.is_dir():
            hint = "name a tool folder, or a folder of them; lastword new tool NAME makes tools/NAME"
            raise ToolLoadError("there is no such folder", place=str(place), hint=hint)
        return [cls(path.parent) for path in sorted(place.glob(f"*/{cls.MANIFEST_FILE}"))]

    def manifest(self) -> Manifest:
        """What the tool says of itself. Runs no code."""
        file = self.path / self.MANIFEST_FILE
        return parse_manifest(file.read_bytes(), str(file))

    def code(self) -> bytes:
        """The Python file."""
        try:
            return (self.path / self.CODE_FILE).read_bytes()
        except FileNotFoundError:
            hint = f"a tool is {self.MANIFEST_FILE} and {self.CODE_FILE}"
            raise ToolLoadError(f"{self.CODE_FILE} is missing", place=str(self), hint=hint) from None

    def files(self) -> list[Path]:
        """Every file below the folder that Python could import, and the manifest; through links too."""
        suffixes = tuple(all_suffixes())
        found: list[Path] = []
        seen: set[str] = set()
        for here, folders, files in os.walk(self.path, followlinks=True):
            # A link can lead back to where it is; each real folder is visited once.
            if os.path.realpath(here) in seen:
                folders.clear()
                continue
            seen.add(os.path.realpath(here))
            # Byte code is left out because it is never read from there: see `read_no_caches` in trust.py.
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            wanted = (name for name in sorted(files) if name.endswith(suffixes) or name == self.MANIFEST_FILE)
            found += [Path(here, name) for name in wanted]
            if len(found) > MAX_FILES:
                raise ToolLoadError(
                    f"it holds more than {MAX_FILES} files that Python can import",
                    place=str(self),
                    hint="a tool's folder holds the tool alone; put what it uses into a package",
                )
        return found

    def digest(self) -> str:
        """Changes when anything changes that Python could import from the folder, or the manifest that goes with it."""
        found = [[str(file.relative_to(self.path)), values.digest(file.read_bytes())] for file in self.files()]
        return values.digest(values.canonical(found))

    def read(self, manifest: Manifest | None = None) -> Loading:
        """The tool before its code has run."""
        return Loading(self.manifest() if manifest is None else manifest, self, self.code(), self.digest())

    def load(self, manifest: Manifest | None = None, *, agreed: str | None = None) -> Loading:
        """Run the Python file, once, and collect what it registers. `agreed` is what a person agreed to run."""
        mark()  # Its code may start a process while it is loaded, and keep it for commands to come.
        here = self.read(manifest)
        if agreed is not None:
            self._refuse_other_code(here.folder_digest, agreed)
        here.run()
        return here

    def refuse_other_code(self, agreed: str) -> None:
        """Refuse code that is not what a person was asked about."""
        self._refuse_other_code(self.digest(), agreed)

    def _refuse_other_code(self, found: str, agreed: str) -> None:
        if found != agreed:
            raise ToolLoadError(
                "its code changed while you were asked about it, so it was not run",
                place=str(self),
                hint="look at what changed it, and start again; you will be asked about it as it is now",
            )


@dataclass
class Loading:
    """A tool whose Python file is being imported, and what it has registered so far."""

    current: ClassVar[ContextVar[Loading | None]] = ContextVar("lastword_loading", default=None)

    manifest: Manifest
    folder: ToolFolder
    code: bytes
    """What is run: the bytes of the Python file as they were read once."""
    folder_digest: str
    request: Callable[..., Any] | None = None
    execute: Callable[..., Any] | None = None
    needs_approval: Callable[..., Any] | None = None
    with_approval: bool | None = None
    module: ModuleType | None = None

    def run(self) -> None:
        """Run the bytes of the Python file as a module."""
        file = self.folder.path / ToolFolder.CODE_FILE
        # The name is the file's, so that two folders with a tool of the same id do not share a module.
        place = hashlib.sha256(str(self.folder.path.resolve()).encode()).hexdigest()[:8]
        self.module = ModuleType(f"lastword_tool_{self.manifest.id}_{place}")
        self.module.__file__ = str(file.resolve())  # As Python does it: its code may change the folder.
        token = self.current.set(self)
        sys.modules[self.module.__name__] = self.module
        try:
            # The bytes that are digested are the bytes that are run: the file is not read a second time.
            exec(compile(self.code, str(file), "exec"), self.module.__dict__)
        except ToolLoadError:
            raise
        except (Exception, SystemExit) as problem:  # One tool that exits must not end whoever loads a folder of them.
            frames = reversed(traceback.extract_tb(problem.__traceback__))
            line = next((frame.lineno for frame in frames if frame.filename == str(file)), None)
            if isinstance(problem, SyntaxError):
                line = problem.lineno
            raise ToolLoadError(
                f"it raised {type(problem).__name__} while it was loaded: {problem}",
                place=f"{file}:{line}" if line else str(file),
            ) from problem
        finally:
            self.current.reset(token)

    def tool(self) -> Tool:
        """The finished tool, once what was registered fits the manifest."""
        manifest, place = self.manifest, str(self.folder.path / ToolFolder.CODE_FILE)
        if self.execute is None:
            wanted = "register_execute_tool_with_approval" if manifest.require_approval else "register_execute_tool"
            raise ToolLoadError(
                "it registers no execute function", place=place, hint=f"AssistantTool.{wanted}(function)"
            )
        if self.with_approval != manifest.require_approval:
            raise ToolLoadError(
                f"requireApproval is {str(manifest.require_approval).lower()}, but the code registers "
                + ("register_execute_tool_with_approval" if self.with_approval else "register_execute_tool"),
                place=place,
                hint=f"change one of the two; {ToolFolder.MANIFEST_FILE} decides what the person is told",
            )
        if self.request is not None and not manifest.require_approval:
            raise ToolLoadError(
                "it registers an approval request, but requireApproval is false", place=place, hint="set it to true"
            )
        # The file that is run is in the digest as it was read, and the files that it may import as they lay there.
        covered = self.code + b"\0" + self.folder_digest.encode()
        return Tool(
            manifest,
            "assistant",
            self.execute,
            request=self.request,
            needs_approval=self.needs_approval,
            code=covered,
            folder=str(self.folder),
        )


def load_all(place: Path) -> list[Tool]:
    """Import the tools at this path. Every broken manifest is reported at once, before any code runs."""
    found, problems = _read(ToolFolder.all_in(place), named=True)
    if problems:
        raise ManifestError("", problems)
    return [each.folder.load(each.manifest).tool() for each in found]


@dataclass(frozen=True, slots=True)
class FoundCode:
    """A tool folder whose manifest is in order; its code has not been looked at."""

    folder: ToolFolder
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


AskTrust = Callable[[Sequence[Unagreed]], Sequence[Literal["yes", "always", "no"]]]
"""Asks a person about the code of these tools, all of which lie before them; an answer for each."""


class TakesTools(Protocol):
    """A registry, as far as loading is concerned."""

    def add(self, tool: Tool, /) -> Tool: ...


@dataclass(frozen=True, slots=True)
class Toolbox:
    """The folder tools at hand: what was found, and what is wrong with the rest. Finding reads manifests only."""

    # Where `lastword new tool` writes, and where tools are looked for when nobody says otherwise.
    HERE: ClassVar = Path("tools")

    tools: tuple[FoundCode, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def find(cls, named: Sequence[str | Path] = ()) -> Toolbox:
        """Read the manifests in the named folders, or in `tools/`, which has to be there then."""
        if not named and not cls.HERE.is_dir():
            raise ToolLoadError(
                "there are no tools here",
                place=f"{cls.HERE}/",
                hint="lastword new tool NAME makes one; --tools DIR names another folder",
            )
        folders: list[ToolFolder] = []
        for place in named or [cls.HERE]:
            inside = ToolFolder.all_in(Path(place))
            if named and not inside:
                raise ToolLoadError(
                    "there is no tool in this folder",
                    place=str(place),
                    hint=f"a tool is a folder with {ToolFolder.MANIFEST_FILE} and {ToolFolder.CODE_FILE}; "
                    "lastword new tool NAME makes one",
                )
            folders += inside
        tools, problems = _read(folders, named=bool(named))
        return cls(tuple(tools), tuple(problems))

    @classmethod
    def find_any(cls, named: Sequence[str | Path] = ()) -> Toolbox:
        """The same, and an empty one where no folder is named and there is no `tools/`."""
        return cls.find(named) if named or cls.HERE.is_dir() else cls()

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
        registry: TakesTools,
        *,
        ask: AskTrust | None,
        trust: Trust | None = None,
        only: Iterable[FoundCode] | None = None,
    ) -> list[Tool]:
        """Import the code of these tools into the registry. With nobody to ask, found code is refused in words."""
        if only is None and self.problems:
            raise ManifestError("", self.problems)
        wanted = self if only is None else Toolbox(tuple(only))
        agreed = wanted.agree(ask, trust)
        return [
            registry.add(found.folder.load(found.manifest, agreed=agreed.get(found.folder)).tool())
            for found in wanted.tools
        ]

    def agree(
        self, ask: AskTrust | None, trust: Trust | None = None, *, by_naming: str = "--tools"
    ) -> dict[ToolFolder, str]:
        """Make sure that somebody agreed to run the code of these tools: by naming it, now, or earlier.

        One question for all of them. What is agreed to is what lay there when it was asked: the digest of each folder
        that was asked about is given back, for whoever imports it.
        """
        found_here = [found for found in self.tools if not found.named]
        if not found_here:
            return {}
        read_no_caches()
        trust = trust or Trust()
        questions = [
            Unagreed(found, found.folder.digest(), trust.knows(found.folder))
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
            hint = f"look at it, then name it: {by_naming} {folder.path.parent}"
            raise ToolLoadError(fact, place=str(folder), hint=hint)
        answers = list(zip(questions, ask(questions), strict=True))
        for question, answer in answers:
            folder = question.found.folder
            if answer != "no" and folder.digest() == question.digest:
                trust.remember(folder, question.digest, whole_folder=answer == "always")
        for question, answer in answers:
            if answer == "no":
                raise ToolLoadError("you did not agree to run its code", place=str(question.found.folder))
        for question in questions:
            question.found.folder.refuse_other_code(question.digest)
        return {question.found.folder: question.digest for question in questions}


def _read(folders: Iterable[ToolFolder], *, named: bool) -> tuple[list[FoundCode], list[Problem]]:
    """The tools whose manifests are in order, and everything that is wrong with the others."""
    tools: list[FoundCode] = []
    problems: list[Problem] = []
    for folder in folders:
        try:
            tools.append(FoundCode(folder, folder.manifest(), named))
        except ManifestError as problem:
            problems += problem.problems
    return tools, problems
