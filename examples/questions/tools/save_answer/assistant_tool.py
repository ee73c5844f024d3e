"""Writes an answer down. A file that exists is not overwritten."""

from pathlib import Path
from typing import Any

from lastword import AssistantTool, UserAction

ANSWERS = Path("answers")


def request(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "message": f"Write answers/{params['name']}?\n\n{params['text']}",
        "primary_button_label": "Write file",
    }


def execute(params: dict[str, Any], user_action: UserAction) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Nothing was written."}
    ANSWERS.mkdir(exist_ok=True)
    try:
        with (ANSWERS / params["name"]).open("x", encoding="utf-8") as file:
            file.write(params["text"] + "\n")
    except FileExistsError:
        return {"success": False, "message": f"answers/{params['name']} exists already. Choose another name."}
    return {"success": True, "message": f"Wrote answers/{params['name']}."}


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
