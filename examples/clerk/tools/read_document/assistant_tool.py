"""Reads a document. The name is a name and never a path: the manifest's pattern sees to that."""

from pathlib import Path
from typing import Any

from lastword import AssistantTool

INBOX = Path("inbox")


def execute(params: dict[str, Any]) -> dict[str, Any]:
    path = INBOX / params["name"]
    if not path.is_file() or path.is_symlink():
        return {"success": False, "message": f"There is no document {params['name']} in the inbox."}
    return {"success": True, "message": path.read_text(encoding="utf-8", errors="replace")}


test_execute = AssistantTool.register_execute_tool(execute)
