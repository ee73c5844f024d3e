"""Unlocks the door. Who has come in has come in, so this asks every time, and wants a word typed."""

from typing import Any

from lastword import AssistantTool, UserAction


def request(params: dict[str, Any]) -> dict[str, Any]:
    return {"message": "Unlock the front door?", "primary_button_label": "Unlock"}


def execute(params: dict[str, Any], user_action: UserAction, context: Any) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "The door stays locked."}
    context.set_state("front_door", "unlocked", {"description": "as far as this session knows"})
    return {"success": True, "message": "The front door is unlocked."}


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
