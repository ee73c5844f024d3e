"""The double of an editor for those who look, before anybody was asked: nothing can be written with it.

`RecordingEditor` reads, notes what it read, turns every diff into a `Preview`, and refuses and notes every write, so a
tool that swallows the exception is found out all the same. What it shares with the other double (sealed.py) is
`LookingEditor`: looking at the project, less what is private. An editor of somebody else's offers less than ours
(`SurveyProvider`). What it cannot say is made up for as well as it can be: its files are private by their names alone,
and nothing is known to have been left out.

What takes its time, such as comparing texts, walking folders and waiting for a linter, is done beside the event loop
(`off_loop`): everybody else's timers, keys and cards live on the loop.

What does not live here: asking anybody (call/desk.py), the audit hook that guards everything else (tools/guard).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import Context
from typing import Any, TypeVar

from lastword.editor.project_files import by_name
from lastword.editor.provider import (
    PRIVATE,
    Change,
    LeftOut,
    LintError,
    LintReport,
    Listing,
    Preview,
    ProjectProvider,
    ScriptEditorProvider,
    SurveyProvider,
    WhyPrivate,
    bounded,
    off_loop,
)
from lastword.editor.text import Operation, Part, decode, encode
from lastword.errors import EditError, NotAllowedNow, NotText, PrivateFile, did_you_mean
from lastword.values import digest

T = TypeVar("T")

# How many names are compared to find the one that was meant.
MAX_COMPARED = 2_000

AtHome = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]
"""How to await, from another event loop, what belongs to the one where the editor lives."""


class LookingEditor:
    """The part of an editor that only looks."""

    def __init__(self, editor: ScriptEditorProvider, *, sees_private: bool) -> None:
        self._editor = editor
        self._sees_private = sees_private

    @property
    def script_name(self) -> str:
        return self._editor.script_name

    @property
    def has_bytes(self) -> bool:
        """Whether files can be read as bytes, deleted and renamed; a foreign editor has only text."""
        return isinstance(self._editor, ProjectProvider)

    def exists(self, path: str) -> bool:
        return self._editor.exists(path)

    def get_all_folders(self) -> list[str]:
        return self._editor.get_all_folders()

    def get_all_files(self) -> list[str]:
        return self._editor.get_all_files()

    def listing(self) -> Listing:
        """Folders and files, and what is not among them."""
        if isinstance(self._editor, SurveyProvider):
            return self._editor.listing()
        return Listing(self.get_all_folders(), self.get_all_files())

    def privacy(self) -> WhyPrivate:
        """A judge of which files are private now."""
        return self._editor.privacy() if isinstance(self._editor, SurveyProvider) else by_name().why

    def get_lint_errors(self) -> dict[str, list[LintError]]:
        if self._sees_private:
            # Linters are processes of ours that only read. In an empty context the guard, which forbids a tool to
            # start any, does not see them.
            return Context().run(self._editor.get_lint_errors)
        return bounded(self.lint_report().findings)

    def lint_report(self) -> LintReport:
        """What the linters find in files that are not private, whoever asks: its words may quote what is in them."""
        if isinstance(self._editor, SurveyProvider):
            return Context().run(self._editor.lint_report)
        why_private = self.privacy()
        everything = Context().run(self._editor.get_lint_errors)
        findings = {path: found for path, found in everything.items() if why_private(path) is None}
        left_out = tuple(LeftOut(path, PRIVATE) for path in everything if path not in findings)
        return LintReport(findings, tuple(findings), tuple(findings), left_out)

    def get_fixed_content(self, path: str) -> str | None:
        self._refuse_private(path)
        return Context().run(with_bytes(self._editor).get_fixed_content, path)

    async def get_file_content(self, path: str) -> str | None:
        self._refuse_private(path)
        return await self._editor.get_file_content(path)

    def read_bytes(self, path: str) -> bytes | None:
        self._refuse_private(path)
        return with_bytes(self._editor).read_bytes(path)

    def reader(self) -> Callable[[str], bytes | None]:
        """`read_bytes` for many files in a row: what is private is looked up once."""
        provider, why_private = with_bytes(self._editor), self.privacy()

        def read(path: str) -> bytes | None:
            if not self._sees_private and (why := why_private(path)) is not None:
                raise _private_refusal(path, why)
            return provider.read_bytes(path)

        return read

    def read_part(self, path: str, first_line: int, last_line: int | None, max_characters: int) -> Part | None:
        """Some lines of a file of any size, where the editor can read them."""
        self._refuse_private(path)
        if isinstance(self._editor, SurveyProvider):
            return self._editor.read_part(path, first_line, last_line, max_characters)
        raise EditError("this editor cannot read a file in parts", place=path)

    def file_mode(self, path: str) -> int | None:
        return with_bytes(self._editor).file_mode(path)

    def missing_folders(self, path: str) -> list[str]:
        return with_bytes(self._editor).missing_folders(path)

    async def text_of(self, path: str) -> str:
        """The text of a file that is there; why there is none otherwise."""
        text = await self.get_file_content(path)
        if text is None:
            if self.exists(path):
                raise NotText("the file is binary or not UTF-8, and cannot be read as text", place=path)
            raise await self.no_such_file(path)
        return text

    async def no_such_file(self, path: str) -> EditError:
        """The refusal of a path that leads nowhere, with the one that was probably meant."""

        def nearest() -> str | None:
            files = self.get_all_files()
            name = path.rpartition("/")[2]
            same_name = [file for file in files if file.rpartition("/")[2] == name]
            hint = did_you_mean(path, same_name or files[:MAX_COMPARED])
            return f"did you mean {same_name[0]}?" if hint is None and same_name else hint

        hint = await off_loop(nearest)
        return EditError("there is no such file", place=path, hint=hint or "list_files names those there are")

    def _refuse_private(self, path: str) -> None:
        if not self._sees_private and (why := self.privacy()(path)) is not None:
            raise _private_refusal(path, why)


class RecordingEditor(LookingEditor):
    """An editor that looks and never writes: what a tool's request function gets.

    It sees private files when a card comes of it: the person decides by what is in them.
    """

    def __init__(
        self, editor: ScriptEditorProvider, at_home: AtHome | None = None, *, sees_private: bool = False
    ) -> None:
        super().__init__(editor, sees_private=sees_private)
        self._at_home = at_home
        self._texts: dict[str, str | None] = {}
        self._previews: dict[str, Preview] = {}
        self.reads: dict[str, str | None] = {}
        """Every file that was read, with the digest it had when it was first read."""
        self.attempts: list[str] = []
        """Every write that was tried, in words."""

    @property
    def previews(self) -> tuple[Preview, ...]:
        """What was shown, in order. Who shows one file twice has shown the second."""
        return tuple(self._previews.values())

    def exists(self, path: str) -> bool:
        found = self._editor.exists(path)
        if not found:
            self.reads.setdefault(path, None)
        return found

    def get_fixed_content(self, path: str) -> str | None:
        self.read_bytes(path)
        return super().get_fixed_content(path)

    async def get_file_content(self, path: str) -> str | None:
        self._refuse_private(path)
        # The digest comes first: a file that changes between the two reads is then found stale, and never fresh.
        content = await self._await(content_of(self._editor, path))
        self.reads.setdefault(path, digest_of(content))
        self._texts[path] = text = await self._await(self._editor.get_file_content(path))
        return text

    async def _await(self, reading: Coroutine[Any, Any, T]) -> T:
        # A tool looks on an event loop of its own, and somebody else's editor may live on the session's.
        if self._at_home is None or isinstance(self._editor, ProjectProvider):
            return await reading
        found: T = await self._at_home(reading)
        return found

    def read_bytes(self, path: str) -> bytes | None:
        data = super().read_bytes(path)
        self.reads.setdefault(path, digest_of(data))
        return data

    def open_diff_editor(self, path: str, content: str) -> None:
        if isinstance(self._editor, ProjectProvider):
            data = self.read_bytes(path)
            # Nobody should be asked to approve what could not be written.
            encode(content, data, path=path)
            base = None if data is None else decode(data)
        else:
            base = self._foreign_base(path)
        self._previews[path] = Preview(path, self.reads[path], base, content)

    def show_deletion(self, path: str) -> None:
        data = self._present(path)
        self._previews[path] = Preview(path, self.reads[path], decode(data), None)

    def show_rename(self, path: str, new_path: str) -> None:
        data = self._present(path)
        if self.read_bytes(new_path) is not None:
            raise name_taken(new_path)
        self._previews[path] = Preview(path, self.reads[path], decode(data), None, new_path)

    async def update_file_content(self, path: str, content: str) -> bool:
        raise self._attempted("update_file_content", path)

    async def write_to_file(self, path: str, content: str) -> bool:
        raise self._attempted("write_to_file", path)

    async def insert_content(self, path: str, operations: Sequence[Operation]) -> bool:
        raise self._attempted("insert_content", path)

    async def replace_in_file(self, path: str, operations: Sequence[Operation]) -> bool:
        raise self._attempted("replace_in_file", path)

    async def delete_file(self, path: str) -> bool:
        raise self._attempted("delete_file", path)

    async def rename_file(self, path: str, new_path: str) -> bool:
        raise self._attempted("rename_file", path)

    async def restore(self, change: Change) -> None:
        raise self._attempted("restore", change.path)

    def _attempted(self, method: str, path: str) -> NotAllowedNow:
        self.attempts.append(f"{method} {path}")
        return NotAllowedNow(
            f"{method} writes, and nothing may be written before a person has agreed",
            place=path,
            hint="show the change with open_diff_editor here, and write in the execute function",
        )

    def _present(self, path: str) -> bytes:
        data = self.read_bytes(path)
        if data is None:
            raise EditError("there is no such file", place=path)
        return data

    def _foreign_base(self, path: str) -> str | None:
        """What a file of an editor without bytes holds now. Reading it is async, so it must have been read before."""
        if path in self._texts:
            text = self._texts[path]
            if text is None and self._editor.exists(path):
                raise NotText("the file is binary or not UTF-8, so it cannot be edited as text", place=path)
            return text
        if self.exists(path):
            raise EditError(
                "the diff of a file that was not read cannot be shown",
                place=path,
                hint="await editor.get_file_content(path) before open_diff_editor(path, content)",
            )
        return None


async def still_current(editor: ScriptEditorProvider, reads: Mapping[str, str | None]) -> list[str]:
    """The paths whose content is not what it was when it was read, sorted."""
    if isinstance(editor, ProjectProvider):
        return changed_bytes(editor, reads)
    changed = []
    for path, was in reads.items():
        try:
            if digest_of(await content_of(editor, path)) != was:
                changed.append(path)
        except EditError:
            changed.append(path)
    return sorted(changed)


def changed_bytes(editor: ProjectProvider, reads: Mapping[str, str | None]) -> list[str]:
    """The same, for an editor whose files are read at once: in a thread, so that many or large ones hold up nobody."""
    changed = []
    for path, was in reads.items():
        try:
            if digest_of(editor.read_bytes(path)) != was:
                changed.append(path)
        except EditError:  # What can no longer be read, say because a link took its place, is not what was read.
            changed.append(path)
    return sorted(changed)


def _private_refusal(path: str, why: str) -> PrivateFile:
    """The refusal of a private file, with the way to it."""
    return PrivateFile(
        f"this file is private ({why}), so what is in it is not looked at before a person was asked",
        place=path,
        hint="read_private_file asks them",
    )


def with_bytes(editor: ScriptEditorProvider) -> ProjectProvider:
    """The editor, if it has bytes and modes."""
    if isinstance(editor, ProjectProvider):
        return editor
    raise EditError("this editor has neither bytes nor modes, and cannot delete or rename files")


async def content_of(editor: ScriptEditorProvider, path: str) -> bytes | None:
    """The bytes of a file, or for an editor that has none those of its text."""
    if isinstance(editor, ProjectProvider):
        return editor.read_bytes(path)
    text = await editor.get_file_content(path)
    return None if text is None else text.encode("utf-8", "surrogatepass")


def digest_of(data: bytes | None) -> str | None:
    return None if data is None else digest(data)


def name_taken(path: str) -> EditError:
    return EditError("there is a file of that name already", place=path, hint="choose a name that is free")
