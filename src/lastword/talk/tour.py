"""The tools of the rehearsal model's tour: one to allow, one to deny, one to stop. Nothing of them leaves the folder.

They are ordinary tools and pass through the same door. The note is written through the editor of the session, which in
a tour is a temporary folder.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lastword.talk.rehearsal import NOTE, POSTCARD
from lastword.tools import Manifest, Parameter, Tool, ToolContext, ToolRegistry

if TYPE_CHECKING:
    from lastword.consent import UserAction
    from lastword.editor import ScriptEditorProvider

# A count that can be watched, and stopped before it ends.
COUNT_SECONDS = 0.15
COUNT = "tour_count"


class Tour:
    """Its tools, beside whatever tools there are."""

    NOTE = NOTE

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    def remove(self) -> None:
        """Take the tools away again: a model would offer to send postcards."""
        for name in (NOTE, POSTCARD, COUNT):
            if self._registry.is_registered(name):
                self._registry.unregister(name)

    def add(self) -> None:
        """Put them there."""
        registry = self._registry
        registry.add(self.note_tool(NOTE, "Write Note", "Adds a line to a note, in the folder of the tour."))

        @registry.tool(icon="paperplane", color="orange", effect="irreversible", display_name="Send Postcard")
        def tour_postcard(to: str, text: str) -> str:
            """Sends a postcard. (Not really: it belongs to the tour.)"""
            return f"A postcard to {to} would be on its way: {text}"

        @registry.tool(icon="timer", color="purple", require_approval=False, effect="none", display_name="Count")
        async def tour_count(context: ToolContext[Any], to: int = 60) -> str:
            """Counts slowly, and says how far it is. Ctrl+C stops it and keeps what it has."""
            reached = 0
            context.on_cancel = lambda: f"It had counted to {reached}."
            for reached in range(1, to + 1):
                context.report(f"counting, {reached} of {to}", "count", fraction=reached / to)
                await asyncio.sleep(COUNT_SECONDS)
            return f"Counted to {to}."

    @staticmethod
    def note_tool(id: str, display_name: str, description: str) -> Tool:
        """A tool with a preview: what the card shows is all that it may write."""

        async def proposed(params: dict[str, Any], editor: ScriptEditorProvider) -> str:
            return f"{await editor.get_file_content(params['path']) or ''}{params['text']}\n"

        async def request(params: dict[str, Any], editor: ScriptEditorProvider) -> dict[str, Any]:
            content = await proposed(params, editor)
            return {
                "message": f"The assistant wants to add a line to {params['path']}.",
                "primary_button_label": "Write note",
                "preview_button": {
                    "label": "The change",
                    "action": lambda: editor.open_diff_editor(params["path"], content),
                },
            }

        async def execute(
            params: dict[str, Any], user_action: UserAction, editor: ScriptEditorProvider
        ) -> dict[str, Any]:
            if not user_action.primary_confirmed:
                return {"success": False, "message": "The note was not written."}
            await editor.write_to_file(params["path"], await proposed(params, editor))
            return {"success": True, "message": f"Wrote a line to {params['path']}."}

        manifest = Manifest(
            id=id,
            display_name=display_name,
            description=description,
            icon="pencil",
            color="systemBlue",
            parameters=(Parameter("path", "string", "The file."), Parameter("text", "string", "The line.")),
            script_editor_only=True,
            effect="reversible",
        )
        return Tool(manifest, "assistant", execute, request=request)
