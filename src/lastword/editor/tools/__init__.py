"""The tools that come with the editor: an assistant reads, searches and changes the files of a project with them.

Whatever looks runs without asking, and does not see private files; one tool asks whether it may read one. Everything
that changes a file asks first, with the whole change on the card, writes exactly what was shown, and can be undone. All
of them need an editor: a session without one does not offer them.

    registry = ToolRegistry()
    editor_tools(registry)
    session = Session(registry, editor=ProjectEditor("project"), approver=…)

What does not live here: files, diffs and undo (the rooms beside this one).
"""

from __future__ import annotations

from lastword.editor.tools.reading import READERS
from lastword.editor.tools.surveying import SURVEYORS
from lastword.editor.tools.writing import WRITERS
from lastword.tools import Tool, ToolRegistry

EDITOR_TOOLS: tuple[Tool, ...] = (*READERS, *SURVEYORS, *WRITERS)
"""Every editor tool, in the order in which a model is told of them."""


def editor_tools(registry: ToolRegistry) -> list[Tool]:
    """Register the editor tools. An application's own tool of the same name stays, in the place of ours."""
    return [registry.add(tool) for tool in EDITOR_TOOLS if not registry.is_registered(tool.name)]
