"""A project's files: looked at while a card is drawn, changed as it was sealed, and put back."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.editor.diff import DiffLine, DrawnOnce, FileDiff, Row
    from lastword.editor.project import ProjectEditor
    from lastword.editor.project_files import Privacy
    from lastword.editor.provider import (
        MAX_FILE_BYTES,
        PATHS,
        Change,
        Preview,
        ProjectProvider,
        ScriptEditorProvider,
        folder_of,
    )
    from lastword.editor.recording import RecordingEditor, changed_bytes, still_current
    from lastword.editor.sealed import SealedEditor
    from lastword.editor.text import decode
    from lastword.editor.write_tools import EDITOR_TOOLS, editor_tools
else:
    __getattr__ = open_door(__name__)
