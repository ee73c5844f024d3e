"""Moves a document from `inbox/` to `archive/FOLDER/`. Nothing is ever overwritten."""

from pathlib import Path
from typing import Any

from lastword import AssistantTool, UserAction

INBOX, ARCHIVE = Path("inbox"), Path("archive")


def request(params: dict[str, Any]) -> dict[str, Any]:
    new = "" if (ARCHIVE / params["folder"]).is_dir() else " That folder is new."
    return {
        "message": f"Move {params['name']} from the inbox to archive/{params['folder']}?{new}",
        "primary_button_label": "File it",
    }


def execute(params: dict[str, Any], user_action: UserAction) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": f"{params['name']} stays in the inbox."}
    source, target = INBOX / params["name"], ARCHIVE / params["folder"] / params["name"]
    if not source.is_file() or source.is_symlink():
        return {"success": False, "message": f"There is no document {params['name']} in the inbox."}
    if target.exists():
        return {"success": False, "message": f"There is a {params['name']} in archive/{params['folder']} already."}
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    return {"success": True, "message": f"Filed {params['name']} in archive/{params['folder']}."}


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
