"""Tools from folders: two files each, and the question whether to trust code that was found and not named.

A folder with `assistant_tool.json` and `assistant_tool.py` is a tool. The JSON can be read without running anything;
the Python is imported when the tool is loaded. While it is, `AssistantTool` (authoring.py) speaks for it.
"""

from __future__ import annotations

import hashlib
import sys
import traceback
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from lastword.errors import ManifestError, Problem, ToolLoadError
from lastword.tools.code import CODE_FILE, MANIFEST_FILE, code_of, digest_of_folder
from lastword.tools.descent import mark
from lastword.tools.manifest import Manifest, parse_manifest
from lastword.tools.tool import Tool


@dataclass
class Loading:
    """A tool whose Python file is being imported, and what it has registered so far."""

    manifest: Manifest
    folder: Path
    code: bytes
    """What is run: the bytes of the Python file as they were read once."""
    folder_digest: str
    request: Callable[..., Any] | None = None
    execute: Callable[..., Any] | None = None
    needs_approval: Callable[..., Any] | None = None
    with_approval: bool | None = None
    module: ModuleType | None = None

    def tool(self) -> Tool:
        """The finished tool, once what was registered fits the manifest."""
        manifest, place = self.manifest, str(self.folder / CODE_FILE)
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
                hint=f"change one of the two; {MANIFEST_FILE} decides what the person is told",
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


loading: ContextVar[Loading | None] = ContextVar("lastword_loading", default=None)


def tool_folders(folder: Path) -> list[Path]:
    """The tool folders at this path: the folder itself, or those directly inside it."""
    if (folder / MANIFEST_FILE).is_file():
        return [folder]
    if not folder.is_dir():
        hint = "name a tool folder, or a folder of them; lastword new tool NAME makes tools/NAME"
        raise ToolLoadError("there is no such folder", place=str(folder), hint=hint)
    return sorted(path.parent for path in folder.glob(f"*/{MANIFEST_FILE}"))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a tool folder. Runs no code."""
    file = folder / MANIFEST_FILE
    return parse_manifest(file.read_bytes(), str(file))


def load(folder: Path) -> list[Tool]:
    """Import the tools at this path. Every broken manifest is reported at once, before any code runs."""
    folders = tool_folders(folder)
    manifests: list[tuple[Path, Manifest]] = []
    problems: list[Problem] = []
    for path in folders:
        try:
            manifests.append((path, read_manifest(path)))
        except ManifestError as problem:
            problems += problem.problems
    if problems:
        raise ManifestError("", problems)
    return [import_tool(path, manifest).tool() for path, manifest in manifests]


def refuse_other_code(folder: Path, digest: str, agreed: str) -> None:
    """Refuse code that is not what a person was asked about."""
    if digest != agreed:
        raise ToolLoadError(
            "its code changed while you were asked about it, so it was not run",
            place=str(folder),
            hint="look at what changed it, and start again; you will be asked about it as it is now",
        )


def import_tool(folder: Path, manifest: Manifest, *, agreed: str | None = None) -> Loading:
    """Run the Python file of a tool, once, and collect what it registers. `agreed` is what a person agreed to run."""
    mark()  # Its code may start a process while it is loaded, and keep it for commands to come.
    file = folder / CODE_FILE
    here = Loading(manifest, folder, code_of(folder), digest_of_folder(folder))
    if agreed is not None:
        refuse_other_code(folder, here.folder_digest, agreed)
    # The name is the file's, so that two folders with a tool of the same id do not share a module.
    name = f"lastword_tool_{manifest.id}_{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:8]}"
    module = ModuleType(name)
    module.__file__ = str(file.resolve())  # As Python does it: its code may change the folder.
    here.module = module
    token = loading.set(here)
    sys.modules[name] = module
    try:
        # The bytes that are digested are the bytes that are run: the file is not read a second time.
        exec(compile(here.code, str(file), "exec"), module.__dict__)
    except ToolLoadError:
        raise
    except (Exception, SystemExit) as problem:  # One tool that exits must not end whoever loads a folder of them.
        line = next(
            (f.lineno for f in reversed(traceback.extract_tb(problem.__traceback__)) if f.filename == str(file)), None
        )
        if isinstance(problem, SyntaxError):
            line = problem.lineno
        place = f"{file}:{line}" if line else str(file)
        raise ToolLoadError(
            f"it raised {type(problem).__name__} while it was loaded: {problem}", place=place
        ) from problem
    finally:
        loading.reset(token)
    return here
