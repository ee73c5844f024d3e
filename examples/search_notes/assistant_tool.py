"""Searches notes, says how far it is, and keeps what it has found when it is stopped.

Notes are private, so it asks first; it changes nothing, so it may be auto-approved.
"""

from pathlib import Path
from typing import Any

from lastword import AssistantTool, UserAction

SUFFIXES = {".md", ".txt"}
# A model that gets more than this has asked for too common a word.
MAX_FOUND = 50


def read(path: Path) -> str:
    """The text of a note. A function of its own, so that a test can put a slow disk in its place."""
    return path.read_text(encoding="utf-8", errors="replace")


def request(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": f"Search {counted(notes_below(params['folder']))}?",
        "message": f"The assistant wants to read every note below {params['folder']} and look for “{params['word']}”.",
        "primary_button_label": "Search",
    }


def execute(params: dict[str, Any], user_action: UserAction) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "The notes were not searched."}
    word, notes = params["word"].casefold(), notes_below(params["folder"])
    found: list[str] = []
    done = 0
    AssistantTool.on_cancel = lambda: words(params["word"], found, f"{done} of {counted(notes)} searched")
    for path in notes:
        if AssistantTool.is_cancelled:
            break
        AssistantTool.report(f"{path.name}, {len(found)} found", id="search", fraction=done / len(notes))
        for number, line in enumerate(read(path).splitlines(), 1):
            if word in line.casefold():
                found.append(f"{path}:{number}: {line.strip()}")
        done += 1
    AssistantTool.report(f"{len(found)} found", id="search", fraction=1.0)
    return {"success": True, "message": words(params["word"], found, f"{counted(notes)} searched")}


def notes_below(folder: str) -> list[Path]:
    """Every note below the folder, without what is hidden."""
    below = (path for path in Path(folder).rglob("*") if path.suffix in SUFFIXES and path.is_file())
    return sorted(p for p in below if not any(part.startswith(".") for part in p.relative_to(folder).parts))


def counted(notes: list[Path]) -> str:
    return "1 note" if len(notes) == 1 else f"{len(notes)} notes"


def words(word: str, found: list[str], how_far: str) -> str:
    shown = found[:MAX_FOUND]
    more = [f"… and {len(found) - MAX_FOUND} more"] if len(found) > MAX_FOUND else []
    return "\n".join([f"“{word}” was found {len(found)} times; {how_far}.", *shown, *more])


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
