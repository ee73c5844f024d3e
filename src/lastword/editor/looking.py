"""What both doubles of an editor let through: looking at the project, less what is private.

An editor of somebody else's offers less than ours (`SurveyProvider`). What it cannot say is made up for here as well as
it can be: its files are private by their names alone, and nothing is known to have been left out.

What does not live here: what was read and shown (recording.py), and what may be written.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context

from lastword.editor.findings import bounded
from lastword.editor.leftout import PRIVATE
from lastword.editor.private import by_name
from lastword.editor.provider import (
    LeftOut,
    LintError,
    LintReport,
    Listing,
    Part,
    ProjectProvider,
    ScriptEditorProvider,
    SurveyProvider,
    WhyPrivate,
)
from lastword.errors import EditError, PrivateFile


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
        return Context().run(project(self._editor).get_fixed_content, path)

    async def get_file_content(self, path: str) -> str | None:
        self._refuse_private(path)
        return await self._editor.get_file_content(path)

    def read_bytes(self, path: str) -> bytes | None:
        self._refuse_private(path)
        return project(self._editor).read_bytes(path)

    def reader(self) -> Callable[[str], bytes | None]:
        """`read_bytes` for many files in a row: what is private is looked up once."""
        provider, why_private = project(self._editor), self.privacy()

        def read(path: str) -> bytes | None:
            if not self._sees_private and (why := why_private(path)) is not None:
                raise private(path, why)
            return provider.read_bytes(path)

        return read

    def read_part(self, path: str, first_line: int, last_line: int | None, max_characters: int) -> Part | None:
        """Some lines of a file of any size, where the editor can read them."""
        self._refuse_private(path)
        if isinstance(self._editor, SurveyProvider):
            return self._editor.read_part(path, first_line, last_line, max_characters)
        raise EditError("this editor cannot read a file in parts", place=path)

    def file_mode(self, path: str) -> int | None:
        return project(self._editor).file_mode(path)

    def missing_folders(self, path: str) -> list[str]:
        return project(self._editor).missing_folders(path)

    def _refuse_private(self, path: str) -> None:
        if not self._sees_private and (why := self.privacy()(path)) is not None:
            raise private(path, why)


def private(path: str, why: str) -> PrivateFile:
    """The refusal of a private file, with the way to it."""
    return PrivateFile(
        f"this file is private ({why}), so what is in it is not looked at before a person was asked",
        place=path,
        hint="read_private_file asks them",
    )


def project(editor: ScriptEditorProvider) -> ProjectProvider:
    """The editor, if it has bytes and modes."""
    if isinstance(editor, ProjectProvider):
        return editor
    raise EditError("this editor has neither bytes nor modes, and cannot delete or rename files")
