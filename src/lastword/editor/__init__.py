"""A project's files: looked at while a card is drawn, changed as it was sealed, and put back."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.editor.diff import KEPT_FROM_CHARACTERS as KEPT_FROM_CHARACTERS
    from lastword.editor.diff import DiffLine as DiffLine
    from lastword.editor.diff import DrawnOnce as DrawnOnce
    from lastword.editor.diff import FileDiff as FileDiff
    from lastword.editor.diff import Row as Row
    from lastword.editor.diff import diff_of as diff_of
    from lastword.editor.diff import unified as unified
    from lastword.editor.project import ProjectEditor as ProjectEditor
    from lastword.editor.project_files import Privacy as Privacy
    from lastword.editor.project_folder import PATHS as PATHS
    from lastword.editor.project_folder import folded as folded
    from lastword.editor.provider import MAX_FILE_BYTES as MAX_FILE_BYTES
    from lastword.editor.provider import Change as Change
    from lastword.editor.provider import LintError as LintError
    from lastword.editor.provider import Preview as Preview
    from lastword.editor.provider import ProjectProvider as ProjectProvider
    from lastword.editor.provider import ScriptEditorProvider as ScriptEditorProvider
    from lastword.editor.provider import folder_of as folder_of
    from lastword.editor.recording import RecordingEditor as RecordingEditor
    from lastword.editor.recording import changed_bytes as changed_bytes
    from lastword.editor.recording import still_current as still_current
    from lastword.editor.sealed import SealedEditor as SealedEditor
    from lastword.editor.sealed import fold as fold
    from lastword.editor.sealed import undo as undo
    from lastword.editor.text import Operation as Operation
    from lastword.editor.text import decode as decode
    from lastword.editor.write_tools import EDITOR_TOOLS as EDITOR_TOOLS
    from lastword.editor.write_tools import editor_tools as editor_tools
else:
    __getattr__ = open_door(__name__)
