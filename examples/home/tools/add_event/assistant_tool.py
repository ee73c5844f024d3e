"""Puts something into the calendar. An hour that is taken stays taken: nothing is overwritten."""

from typing import Any

from lastword import AssistantTool, UserAction


def request(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "message": f"Add “{params['title']}” on {params['day']} at {params['hour']}:00?",
        "primary_button_label": "Add",
    }


def execute(params: dict[str, Any], user_action: UserAction, context: Any) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Nothing was added."}
    calendar = context.get_state_value("calendar") or {}
    day = calendar.setdefault(params["day"], {})
    hour = str(params["hour"])
    if hour in day:
        return {"success": False, "message": f"{hour}:00 is taken: {day[hour]}. Choose another hour."}
    day[hour] = params["title"]
    context.set_state("calendar", calendar, {"description": "titles by day and hour"})
    return {"success": True, "message": f"Added “{params['title']}”."}


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
