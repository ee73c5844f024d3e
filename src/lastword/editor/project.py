"""The editor over a project folder: what tools read, change, diff and lint.

Reading gives the text as it is in the file, without a byte order mark; writing keeps the file's form (text.py). A
file that changed since this editor last read it is not overwritten: who read the old one must look at the new one
first.

The methods that read are async as the interface demands, and yet never wait: a file is small. Those that change
something wait for the disk beside the loop, before and after the change, and not between its last look and its rename:
what could be interrupted there would be neither done nor undone.

What does not live here: descriptors (project_folder.py), atomic changes (atomic_change.py), consent (recording.py),
taking changes back (provider.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from lastword.editor.atomic_change import Changing, Deleting, Renaming, Writing, sweep
from lastword.editor.lint import PYTHON, Linter, default_linters, fixed_python, lint
from lastword.editor.project_files import Ignoring, Privacy, list_project, whatever_it_holds
from lastword.editor.project_folder import Folder
from lastword.editor.provider import (
    PRIVATE,
    Change,
    Conflict,
    LeftOut,
    LintError,
    LintReport,
    Listing,
    NotText,
    Preview,
    WhyPrivate,
    bounded,
    off_loop,
)
from lastword.editor.recording import RecordingEditor, digest_of
from lastword.editor.text import Operation, Part, decode, encode, insert, read_lines, replace
from lastword.store import refuse_if_watched


class ProjectEditor:
    """A `ProjectProvider` for the files below one folder. Opening it removes what a killed writer left behind."""

    def __init__(
        self,
        folder: str | Path,
        name: str | None = None,
        *,
        linters: Mapping[str, Linter] | None = None,
        private: Iterable[str] = (),
        show: Callable[[Preview], None] | None = None,
    ) -> None:
        """`private` are patterns for more files that hold secrets, as in a .gitignore; `!` takes one of ours back."""
        self._folder = Folder(Path(folder))
        self._privacy = Privacy(private)
        self._name = name or self._folder.root.name
        self._linters = default_linters() if linters is None else dict(linters)
        self._show = show
        self._seen: dict[str, str | None] = {}
        sweep(self._folder)

    @property
    def script_name(self) -> str:
        return self._name

    @property
    def folder(self) -> Path:
        """Where the project is."""
        return self._folder.root

    def exists(self, path: str) -> bool:
        return self._folder.kind(path) is not None

    def listing(self) -> Listing:
        """Folders and files in one walk, and what is not among them."""
        return list_project(self._folder)

    def privacy(self) -> WhyPrivate:
        ignoring = Ignoring(self._folder, whatever_it_holds)

        def why(path: str) -> str | None:
            return self._privacy.why(path) or ("git is told to ignore it" if ignoring.covers(path) else None)

        return why

    def get_all_folders(self) -> list[str]:
        return self.listing().folders

    def get_all_files(self) -> list[str]:
        return self.listing().files

    def get_lint_errors(self) -> dict[str, list[LintError]]:
        return bounded(self._lint(self.get_all_files()).findings)

    def lint_report(self) -> LintReport:
        listing, why_private = self.listing(), self.privacy()
        private = {path for path in listing.files if why_private(path) is not None}
        report = self._lint([path for path in listing.files if path not in private])
        left_out = [*listing.left_out, *report.left_out, *(LeftOut(path, PRIVATE) for path in sorted(private))]
        return msgspec.structs.replace(report, left_out=tuple(left_out))

    def _lint(self, files: Sequence[str]) -> LintReport:
        return lint(self._folder.root, files, self.read_bytes, self._linters)

    def read_part(self, path: str, first_line: int, last_line: int | None, max_characters: int) -> Part | None:
        with self._folder.opened(path) as file:
            if file is None:
                return None
            return read_lines(lambda size: file.read(size) or b"", first_line, last_line, max_characters, path=path)

    async def get_file_content(self, path: str) -> str | None:
        data = self.read_bytes(path)
        self._seen[path] = digest_of(data)
        return None if data is None else decode(data)

    def read_bytes(self, path: str) -> bytes | None:
        return self._folder.read(path)

    def file_mode(self, path: str) -> int | None:
        return self._folder.mode(path)

    def missing_folders(self, path: str) -> list[str]:
        return self._folder.missing_folders(path)

    def get_fixed_content(self, path: str) -> str | None:
        data = self.read_bytes(path)
        text = None if data is None else decode(data)
        if text is None or not path.endswith(PYTHON):
            return None
        return fixed_python(self._folder.root, path, text)

    async def update_file_content(self, path: str, content: str) -> bool:
        current = self._current(path)
        if current is None:
            return False
        await self._write(path, encode(content, current, path=path), over=current)
        return True

    async def write_to_file(self, path: str, content: str) -> bool:
        current = self._current(path)
        await self._write(path, encode(content, current, path=path), over=current)
        return True

    async def insert_content(self, path: str, operations: Sequence[Operation]) -> bool:
        return await self._edit(path, lambda text: insert(text, operations, path=path))

    async def replace_in_file(self, path: str, operations: Sequence[Operation]) -> bool:
        return await self._edit(path, lambda text: replace(text, operations, path=path))

    async def delete_file(self, path: str) -> bool:
        current = self._current(path)
        if current is None:
            return False
        await self._change(Deleting(self._folder, path, current), {path: None})
        return True

    async def rename_file(self, path: str, new_path: str) -> bool:
        current = self._current(path)
        if current is None:
            return False
        await self._change(Renaming(self._folder, path, new_path, current), {path: None, new_path: digest_of(current)})
        return True

    async def restore(self, change: Change) -> None:
        current = self.read_bytes(change.path)
        if current != change.after:
            raise Conflict(
                "the file changed since, so the change was not taken back",
                place=change.path,
                hint="compare it by hand; nothing was written",
            )
        if change.before is not None:
            # A mode that somebody has set since is theirs.
            ours = change.left_mode in (None, self.file_mode(change.path))
            writing = Writing(self._folder, change.path, change.before, current, change.mode if ours else None)
            await self._change(writing, {change.path: digest_of(change.before)})
            return
        if current is not None:
            await self._change(Deleting(self._folder, change.path, current), {change.path: None})
        for folder in reversed(change.made_folders):
            self._folder.remove_if_empty(folder)

    @property
    def has_screen(self) -> bool:
        """Whether somebody would see a diff that is not on a card: with `show`, they do."""
        return self._show is not None

    def open_diff_editor(self, path: str, content: str) -> None:
        self._present(lambda recorder: recorder.open_diff_editor(path, content))

    def show_deletion(self, path: str) -> None:
        self._present(lambda recorder: recorder.show_deletion(path))

    def show_rename(self, path: str, new_path: str) -> None:
        self._present(lambda recorder: recorder.show_rename(path, new_path))

    def _present(self, preview: Callable[[RecordingEditor], None]) -> None:
        """Hand what would change to the surface at hand, as the same data that a card is drawn from."""
        recorder = RecordingEditor(self, sees_private=True)
        preview(recorder)
        if self._show is not None:
            for shown in recorder.previews:
                self._show(shown)

    async def _edit(self, path: str, edit: Callable[[str], str]) -> bool:
        current = self._current(path)
        if current is None:
            return False
        text = decode(current)
        if text is None:
            raise NotText("the file is binary or not UTF-8, and has no lines to edit", place=path)
        await self._write(path, encode(edit(text), current, path=path), over=current)
        return True

    def _current(self, path: str) -> bytes | None:
        """The bytes a write would replace, unless they are not those that were read."""
        current = self.read_bytes(path)
        found = digest_of(current)
        if self._seen.get(path, found) != found:
            raise Conflict(
                "the file changed since it was read, and nothing was written",
                place=path,
                hint="read it again, then decide",
            )
        return current

    async def _write(self, path: str, data: bytes, *, over: bytes | None) -> None:
        if data == over:
            self._seen[path] = digest_of(data)
            return
        await self._change(Writing(self._folder, path, data, over), {path: digest_of(data)})

    async def _change(self, changing: Changing, seen: Mapping[str, str | None]) -> None:
        """Change something, and wait for the disk beside the loop; `seen` is what this editor knows from then on."""
        # The guard sees what a tool does, and not what a thread of ours does for it.
        refuse_if_watched(f"write {changing.path} through the editor")
        try:
            await off_loop(changing.prepare)
        except BaseException:
            changing.leave()  # Whoever was cancelled meanwhile has changed nothing.
            raise
        changing.finish()
        self._seen.update(seen)
        try:
            await off_loop(changing.settle)
        except asyncio.CancelledError:
            changing.settle()  # It may not have begun.
            raise
