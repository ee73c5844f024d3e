"""The editor interface: what a tool may do with the files of a project, and the data that passes through it.

`ScriptEditorProvider` is the interface of the seeds, and all that a foreign editor has to offer. `ProjectProvider` is
what our own editor adds to it: bytes, modes, deleting and renaming, so that consent can be exact and every change can
be undone. `SurveyProvider` is what it adds for those who only look: what was left out and why, files of any size, and
which of them are private. `Preview` is what a person was shown; `Change` is what really happened.

What a search, a listing or a lint did not look at is named with the reason (`LeftOut`): whoever reads a result takes it
for the whole, and a file that is passed over without a word is a bug that nobody looks for. What is refused is an
`EditError`, here for whoever implements or uses an editor.

What does not live here: files on disk (project.py), the doubles that record and seal (recording.py, sealed.py), the
edits themselves (text.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextvars import Context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar, runtime_checkable

import msgspec

# What an editor refuses with is a part of what it offers.
from lastword.errors import Conflict as Conflict
from lastword.errors import EditError as EditError
from lastword.errors import NotAllowedNow as NotAllowedNow
from lastword.errors import NotText as NotText
from lastword.errors import PathRefused as PathRefused
from lastword.errors import PrivateFile as PrivateFile
from lastword.errors import TooLarge as TooLarge

if TYPE_CHECKING:
    from lastword.editor.text import Operation, Part

T = TypeVar("T")

# Text that people review is smaller; a change is kept twice (before and after) in the journal.
MAX_FILE_BYTES = 4_000_000
# More than a person or a model will read. Beyond it the listing says that it was cut.
MAX_LISTED_FILES = 100_000


class LintError(TypedDict):
    """One finding of a linter; `line` counts from 1."""

    line: int
    message: str


class ScriptEditorProvider(Protocol):
    """What an editor offers to tools. Reading and writing are async, the rest sync.

    Paths are relative to the project, with `/` between their parts. A write returns False when there is nothing to
    write to, and raises an `EditError` when it is refused: either way nothing changed.
    """

    @property
    def script_name(self) -> str:
        """The name of the project."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder of that name."""

    def get_all_folders(self) -> list[str]:
        """Every folder of the project, sorted."""

    def get_all_files(self) -> list[str]:
        """Every file of the project, sorted."""

    async def get_file_content(self, path: str) -> str | None:
        """The text of a file; None when it is absent or not text."""

    async def update_file_content(self, path: str, content: str) -> bool:
        """Replace the text of a file that exists; False when it does not."""

    async def write_to_file(self, path: str, content: str) -> bool:
        """Write a file, creating it and its folders where they are missing."""

    async def insert_content(self, path: str, operations: Sequence[Operation]) -> bool:
        """Put each content before its line, all or none; False when the file does not exist."""

    async def replace_in_file(self, path: str, operations: Sequence[Operation]) -> bool:
        """Put the lines of each content in the place of as many lines, all or none; False when there is no file."""

    def open_diff_editor(self, path: str, content: str) -> None:
        """Show what the file would become. Changes nothing.

        In a request function, and in the action of its preview button, it becomes part of the card. Elsewhere it is
        seen only where the editor has a screen of its own.
        """

    def get_lint_errors(self) -> dict[str, list[LintError]]:
        """What the linters find in the project now, by path."""


@runtime_checkable
class ProjectProvider(ScriptEditorProvider, Protocol):
    """An editor whose files have bytes and modes: what exact consent and undo need."""

    def read_bytes(self, path: str) -> bytes | None:
        """The bytes of a file as they are on disk; None when there is no such file."""

    def file_mode(self, path: str) -> int | None:
        """The permission bits of a file; None when there is no such file."""

    def missing_folders(self, path: str) -> list[str]:
        """The folders that writing this file would have to make, outermost first."""

    def get_fixed_content(self, path: str) -> str | None:
        """The text of a file as the safe fixes of its linter would leave it; None when nothing can fix it."""

    async def delete_file(self, path: str) -> bool:
        """Remove a file; False when there is none."""

    async def rename_file(self, path: str, new_path: str) -> bool:
        """Move a file to a name that is free; False when there is no such file."""

    async def restore(self, change: Change) -> None:
        """Take one change back, byte for byte; refuses when the file is not what the change left."""

    def show_deletion(self, path: str) -> None:
        """Show that the file would be gone. Changes nothing."""

    def show_rename(self, path: str, new_path: str) -> None:
        """Show that the file would move. Changes nothing."""


WhyPrivate = Callable[[str], str | None]
"""Says in words why a file is private, or None. It looks at the project once, and is good for one piece of work."""


@runtime_checkable
class SurveyProvider(Protocol):
    """An editor that says what it did not look at, and which files are nobody's business unless a person says so."""

    def listing(self) -> Listing:
        """Folders and files in one walk, and what is not among them."""

    def lint_report(self) -> LintReport:
        """What the linters find in the files that are not private, and which files they did not look at."""

    def read_part(self, path: str, first_line: int, last_line: int | None, max_characters: int) -> Part | None:
        """Some lines of a file of any size; None when there is no such file."""

    def privacy(self) -> WhyPrivate:
        """A judge of which files are private now."""


@runtime_checkable
class InFolder(Protocol):
    """An editor whose project is a folder of this machine, so that an undo can find it again."""

    @property
    def folder(self) -> Path:
        """Where the project is."""


@runtime_checkable
class OnScreen(Protocol):
    """An editor that says whether there is a screen on which it shows a diff besides that of a card."""

    @property
    def has_screen(self) -> bool:
        """Whether somebody would see what `open_diff_editor` shows now."""


def folder_of(editor: object) -> Path | None:
    """Where an editor's project is; None when it is not a folder of this machine."""
    return editor.folder if isinstance(editor, InFolder) else None


class Remembering(Protocol):
    """Who keeps what is needed to take changes back, also when the program dies in the middle of one."""

    async def will_change(self, change: Change) -> None:
        """Keep what is about to happen. Raises an `EditError` when it cannot be kept; then it must not happen."""

    def has_changed(self, change: Change) -> None:
        """Keep that it happened, and what it came to."""


Findings = dict[str, list[LintError]]
"""What linters found, by path and by line."""


class LeftOut(msgspec.Struct, frozen=True):
    """Something that was not looked at."""

    path: str
    why: str
    """In words, the same for all that were left out for the same reason."""


class Listing(msgspec.Struct, frozen=True):
    """The folders and files of a project, sorted."""

    folders: list[str]
    files: list[str]
    left_out: tuple[LeftOut, ...] = ()
    """What is in the folder and not in the list, besides git's own files."""
    cut: bool = False
    """Whether there are more than could be listed."""


class LintReport(msgspec.Struct, frozen=True):
    """What the linters say of a project."""

    findings: Findings
    checked: tuple[str, ...] = ()
    """The files that were looked at."""
    fixable: tuple[str, ...] = ()
    """The files in which something can be fixed without a thought."""
    left_out: tuple[LeftOut, ...] = ()


class Preview(msgspec.Struct, frozen=True):
    """What a person was shown of one file: sealed with the approval, stored, and drawn on any surface."""

    path: str
    base_digest: str | None
    """SHA-256 of the bytes the file had when it was shown; None when it was absent."""
    base: str | None
    """The text it had; None when it was absent, or not text (which only a deletion or a rename may show)."""
    proposed: str | None
    """The text it would have; None when it would be gone from this path."""
    renamed_to: str | None = None
    """Where its bytes would go, unchanged, when it is to be renamed."""


class Change(msgspec.Struct, frozen=True):
    """What one write did to one file: enough to take it back."""

    path: str
    before: bytes | None
    """None when the file was absent."""
    after: bytes | None
    """None when the file is gone."""
    mode: int | None = None
    """The permission bits it had before; None when it was absent or the editor knows no modes."""
    left_mode: int | None = None
    """The permission bits it was left with; None when it is gone, or when nobody knows."""
    made_folders: tuple[str, ...] = ()
    """The folders that were made for it, outermost first."""

    @staticmethod
    def fold(changes: Sequence[Change]) -> list[Change]:
        """One change for each path: from what it was first to what it was left as. What came to nothing is dropped."""
        steps: dict[str, Change] = {}
        for change in changes:
            first = steps.get(change.path, change)
            steps[change.path] = Change(
                change.path, first.before, change.after, first.mode, change.left_mode, first.made_folders
            )
        return [step for step in steps.values() if step._differs or step.made_folders]

    @staticmethod
    async def take_back(editor: ProjectProvider, changes: Sequence[Change]) -> list[str]:
        """Restore every file that these changes touched; returns the paths, in the order in which they were restored.

        All of them or none. Every file is looked at before the first is touched: if somebody has worked on one since,
        nothing is taken back.
        """
        steps = [step for step in reversed(Change.fold(changes)) if not step._is_restored(editor)]
        touched = [step.path for step in steps if editor.read_bytes(step.path) != step.after]
        if touched:
            raise Conflict(
                f"changed since: {', '.join(touched)}; nothing was taken back",
                hint="undo the later changes first, or restore the file by hand",
            )
        done: list[str] = []
        for step in steps:
            try:
                await editor.restore(step)
            except EditError as problem:
                if not done:
                    raise
                raise EditError(
                    f"{step.path} could not be restored ({problem.fact}); {', '.join(done)} already was",
                    hint="remove what stands in the way and undo again: what is restored stays restored",
                ) from problem
            if step._differs:
                done.append(step.path)
        return done

    @property
    def _differs(self) -> bool:
        return self.before != self.after or self.mode != self.left_mode

    def _is_restored(self, editor: ProjectProvider) -> bool:
        """Whether an undo that stopped halfway has been here. Mode and folders tell only where the bytes do not."""
        if self.before != self.after:
            return editor.read_bytes(self.path) == self.before
        return not self.made_folders and editor.file_mode(self.path) == self.mode


# What a person or a model can still make use of.
MAX_FINDINGS = 2_000


def bounded(findings: Findings) -> Findings:
    """Cut at the limit, with a last finding that says so."""
    result: Findings = {}
    left = MAX_FINDINGS
    total = sum(len(found) for found in findings.values())
    for path, found in findings.items():
        if left <= len(found) and total > MAX_FINDINGS:
            said = f"and {total - MAX_FINDINGS + 1} more findings in this file and others"
            result[path] = [*found[: left - 1], LintError(line=found[-1]["line"], message=said)]
            return result
        result[path] = found
        left -= len(found)
    return result


# The reasons that come up in several places.
PRIVATE = "private"
NOT_TEXT = "not text in UTF-8"
TOO_LARGE = f"larger than {MAX_FILE_BYTES:,} bytes"
GONE = "gone since it was listed"


def why_unread(problem: EditError) -> str:
    """Why a file could not be read, in the words of a group."""
    if isinstance(problem, PrivateFile):
        return PRIVATE
    return TOO_LARGE if isinstance(problem, TooLarge) else problem.fact


async def off_loop(function: Callable[..., T], *arguments: object) -> T:
    """Call a function of ours, which only looks, in a thread, and wait for it.

    It runs in an empty context, so that the guard, which forbids a tool's request function to start threads and
    processes, does not mistake our threads for the tool's.
    """
    loop = asyncio.get_running_loop()
    return await Context().run(loop.run_in_executor, None, function, *arguments)


PATHS = ("path", "new_path", "folder")
"""The arguments of editor tools that are paths."""


def plain(path: str) -> str:
    """The one spelling of a path that a model wrote in another: `./src//main.py` is `src/main.py`."""
    if path.startswith("/"):
        return path
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def spelt(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an editor tool with every path in its one spelling, those of the edits of a batch as well."""
    plainly: dict[str, Any] = {name: plain(arguments[name]) for name in PATHS if isinstance(arguments.get(name), str)}
    if isinstance(edits := arguments.get("edits"), list):
        plainly["edits"] = [spelt(edit) for edit in edits]
    return {**arguments, **plainly}


def is_below(path: str, folder: str) -> bool:
    """Whether a path is this file, or lies below this folder. Everything lies below the project itself."""
    return not folder or path == folder or path.startswith(f"{folder}/")
