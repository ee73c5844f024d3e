"""Turns lights on and off. A light is nothing to be asked about every time, so a preset may auto-approve it."""

from typing import Any

from lastword import AssistantTool, UserAction


def request(params: dict[str, Any]) -> dict[str, Any]:
    what = f"on, at {params['brightness']} %" if params["on"] else "off"
    return {"message": f"Turn the light in the {params['room']} {what}?", "primary_button_label": "Set light"}


def execute(params: dict[str, Any], user_action: UserAction, context: Any) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "The light was left as it is."}
    lights = context.get_state_value("lights") or {}
    lights[params["room"]] = params["brightness"] if params["on"] else 0
    context.set_state("lights", lights, {"description": "brightness in percent, by room"})
    return {"success": True, "message": f"The light in the {params['room']} is {'on' if params['on'] else 'off'}."}


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
