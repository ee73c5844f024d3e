"""The double of an editor for acting after an approval: what was shown is what is written, and can be taken back.

`SealedEditor` writes a previewed file only with the previewed content, notes what it refused, and has what is needed to
take a change back remembered before it happens.

The changes of a call fold into one step for each file, from what it was before the first to what the last left, and are
taken back byte for byte, all of them or none. Every file is looked at before the first is touched: if somebody has
worked on one since, nothing is taken back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from lastword.editor.provider import (
    Change,
    Conflict,
    NotAllowedNow,
    NotText,
    OnScreen,
    Preview,
    ProjectProvider,
    Remembering,
    ScriptEditorProvider,
)
from lastword.editor.recording import LookingEditor, content_of, digest_of, name_taken, with_bytes
from lastword.editor.text import Operation, decode, encode, insert, keep_newlines, replace
from lastword.store import refuse_if_watched

log = logging.getLogger("lastword")

Guards = Callable[[str], str | None]
"""Says of the file at a path why it is a person who changes it, or None: `has rules, which …`."""


class SealedEditor(LookingEditor):
    """An editor that writes what was previewed and nothing else: what a tool's execute function gets.

    Without previews every path may be written: the tool showed no diff, and the person agreed to its arguments alone.
    Private files are there only for a call that a person was asked about; for any other, `guards` names the files that
    it must not write.
    """

    def __init__(
        self,
        editor: ScriptEditorProvider,
        previews: Iterable[Preview] = (),
        remember: Remembering | None = None,
        *,
        sees_private: bool = False,
        guards: Guards | None = None,
    ) -> None:
        super().__init__(editor, sees_private=sees_private)
        self._guards = guards
        # A preview without a path is words, and says nothing about files.
        self._previews = {preview.path: preview for preview in previews if preview.path}
        self._remember = remember
        self._left: dict[str, str | None] = {}
        self.changes: list[Change] = []
        """What was changed, in order."""
        self._closed = False
        self.violations: list[str] = []
        """Every write that was refused because something else had been shown, or nothing to anybody, in words."""

    def close(self) -> None:
        """The call is over: a tool that was cancelled or kept this editor writes nothing more with it."""
        self._closed = True

    @property
    def shown(self) -> tuple[str, ...]:
        """The files that the person was shown a change of."""
        return tuple(self._previews)

    def private_shown(self) -> str | None:
        """The first of them that is private."""
        why_private = self.privacy()
        return next((path for path in self._previews if why_private(path) is not None), None)

    def open_diff_editor(self, path: str, content: str) -> None:
        self._say_if_unseen("open_diff_editor", path)
        self._editor.open_diff_editor(path, content)

    def show_deletion(self, path: str) -> None:
        self._say_if_unseen("show_deletion", path)
        with_bytes(self._editor).show_deletion(path)

    def show_rename(self, path: str, new_path: str) -> None:
        self._say_if_unseen("show_rename", path)
        with_bytes(self._editor).show_rename(path, new_path)

    def _say_if_unseen(self, method: str, path: str) -> None:
        """An editor without a screen of its own shows what a card shows, and the card has been answered."""
        if isinstance(self._editor, OnScreen) and not self._editor.has_screen:
            log.warning(
                "%s(%r) in an execute function shows nothing: nobody looks at a card any more. "
                "Call it in the request function, or in the action of its preview_button.",
                method,
                path,
            )

    async def update_file_content(self, path: str, content: str) -> bool:
        content = await self._agreed_content("update_file_content", path, content)
        before = await content_of(self._editor, path)
        if before is None:
            return False
        return await self._write(path, before, content, self._editor.update_file_content)

    async def write_to_file(self, path: str, content: str) -> bool:
        content = await self._agreed_content("write_to_file", path, content)
        before = await content_of(self._editor, path)
        return await self._write(path, before, content, self._editor.write_to_file)

    async def insert_content(self, path: str, operations: Sequence[Operation]) -> bool:
        return await self._edit("insert_content", path, lambda text: insert(text, operations, path=path))

    async def replace_in_file(self, path: str, operations: Sequence[Operation]) -> bool:
        return await self._edit("replace_in_file", path, lambda text: replace(text, operations, path=path))

    async def delete_file(self, path: str) -> bool:
        preview = self._agreed("delete_file", path)
        if preview is not None:
            if preview.proposed is not None or preview.renamed_to is not None:
                raise self._violated("delete_file", path, "something else than its deletion was shown")
            await self._check_base(preview)
        editor = with_bytes(self._editor)
        before = editor.read_bytes(path)
        if before is None:
            return False
        gone = Change(path, before, None, editor.file_mode(path))
        return await self._change([gone], lambda: editor.delete_file(path))

    async def rename_file(self, path: str, new_path: str) -> bool:
        preview = self._agreed("rename_file", path)
        self._refuse_guarded("rename_file", new_path)
        if preview is not None:
            if preview.renamed_to != new_path:
                raise self._violated("rename_file", path, f"a rename to {new_path} was not shown")
            await self._check_base(preview)
        editor = with_bytes(self._editor)
        # Under another name it could be read by whoever asks nobody.
        self._refuse_private(path)
        before, mode = editor.read_bytes(path), editor.file_mode(path)
        if before is None:
            return False
        if editor.read_bytes(new_path) is not None:
            raise name_taken(new_path)
        gone = Change(path, before, None, mode)
        there = Change(new_path, None, before, None, mode, self._folders(new_path))
        return await self._change([gone, there], lambda: editor.rename_file(path, new_path))

    async def restore(self, change: Change) -> None:
        raise self._violated("restore", change.path, "a tool does not undo; a person does")

    async def take_back(self) -> list[str]:
        """Undo what this editor has changed so far, for a call that cannot do the rest; returns the paths."""
        for change in self.changes:
            self._refuse_when_over(change.path)
        restored = await Change.take_back(with_bytes(self._editor), self.changes)
        for first in {change.path: change for change in reversed(self.changes)}.values():
            self._left[first.path] = digest_of(first.before)
            if self._remember is not None:
                self._remember.has_changed(Change(first.path, first.before, first.before, first.mode, first.mode))
        self.changes = []
        return restored

    async def _edit(self, method: str, path: str, edit: Callable[[str], str]) -> bool:
        """Work out what the operations make of the file first, and write that if it is what was shown."""
        self._agreed(method, path)
        before = await content_of(self._editor, path)
        if before is None:
            return False
        # A project's file is not read as the tool reads it: that would make a file that changed since look familiar.
        text = decode(before) if self.has_bytes else await self._editor.get_file_content(path)
        if text is None:
            raise NotText("the file is binary or not UTF-8, and has no lines to edit", place=path)
        content = await self._agreed_content(method, path, edit(text))
        return await self._write(path, before, content, self._editor.update_file_content)

    async def _agreed_content(self, method: str, path: str, content: str) -> str:
        """The content that was shown, if this is it."""
        preview = self._agreed(method, path)
        if preview is None:
            return content
        if preview.proposed is None or not _same_when_written(preview.base, preview.proposed, content):
            raise self._violated(method, path, "this is not the content that was shown")
        await self._check_base(preview)
        return preview.proposed

    def _agreed(self, method: str, path: str) -> Preview | None:
        """What was shown of this path; None when nothing was shown at all."""
        self._refuse_guarded(method, path)
        preview = self._previews.get(path)
        if preview is None and self._previews:
            raise self._violated(method, path, f"only {', '.join(self._previews)} was shown")
        return preview

    def _refuse_guarded(self, method: str, path: str) -> None:
        if self._guards is not None and (why := self._guards(path)) is not None:
            hint = "give the tool a request function that shows the change, so that a person is asked"
            raise self._violated(method, path, f"it {why}, and nobody was asked", hint)

    def _violated(self, method: str, path: str, fact: str, hint: str | None = None) -> NotAllowedNow:
        self.violations.append(f"{method} {path}: {fact}")
        return NotAllowedNow(
            f"{method} was refused: {fact}",
            place=path,
            hint=hint or "write exactly what the request function previewed, or ask again with another preview",
        )

    async def _check_base(self, preview: Preview) -> None:
        """The file must be what was shown, or what this editor itself has made of it since."""
        expected = self._left.get(preview.path, preview.base_digest)
        if digest_of(await content_of(self._editor, preview.path)) != expected:
            raise _moved_on(preview.path)

    async def _write(
        self, path: str, before: bytes | None, content: str, write: Callable[[str, str], Awaitable[bool]]
    ) -> bool:
        """Write a text. `before` is what the file holds; what it will hold must be known before it does."""
        if isinstance(self._editor, ProjectProvider):
            mode = self._editor.file_mode(path)
            # What mode a new file gets is the system's business, and known only afterwards.
            change = Change(path, before, encode(content, before, path=path), mode, mode, self._folders(path))
        else:
            change = Change(path, before, content.encode("utf-8", "surrogatepass"))
        return change.before == change.after or await self._change([change], lambda: write(path, content))

    def _folders(self, path: str) -> tuple[str, ...]:
        return tuple(with_bytes(self._editor).missing_folders(path))

    async def _change(self, changes: Sequence[Change], write: Callable[[], Awaitable[bool]]) -> bool:
        """Have what is about to happen remembered, do it, and note what it came to, also when it failed halfway."""
        for change in changes:
            await _let_others_run()
            self._refuse_when_over(change.path)
            if self._remember is not None:
                await self._remember.will_change(change)
        await _let_others_run()
        for change in changes:
            # Remembering takes its time, and the file or the call may have moved on.
            self._refuse_when_over(change.path)
            if await content_of(self._editor, change.path) != change.before:
                raise _moved_on(change.path)
        try:
            return await write()
        finally:
            for change in changes:
                await self._note(change)

    def _refuse_when_over(self, path: str) -> None:
        refuse_if_watched(f"write {path} through an editor it kept")
        if self._closed:
            # Not a breach of what was shown: it was told to stop, and had not heard it yet.
            raise NotAllowedNow("a write was refused: its call is over", place=path)

    async def _note(self, planned: Change) -> None:
        path, before = planned.path, planned.before
        after = await content_of(self._editor, path)
        if after == before:
            return
        left_mode = self._editor.file_mode(path) if isinstance(self._editor, ProjectProvider) else None
        change = Change(path, before, after, planned.mode, left_mode, planned.made_folders)
        self._left[path] = digest_of(after)
        self.changes.append(change)
        if self._remember is not None:
            self._remember.has_changed(change)


async def _let_others_run() -> None:
    """Reading, comparing and hashing a large file takes a moment each; they need not take it in one piece."""
    await asyncio.sleep(0)


def _moved_on(path: str) -> Conflict:
    return Conflict("the file changed after it was shown", place=path, hint="ask again with a new diff")


def _same_when_written(base: str | None, shown: str, content: str) -> bool:
    """Whether both texts become the same file. Line endings that the file's own will replace make no difference."""
    return shown == content or (base is not None and keep_newlines(base, shown) == keep_newlines(base, content))
