"""Lists a day of the calendar. The calendar is a fake: it lives in the state of the session."""

from typing import Any

from lastword import AssistantTool


def execute(params: dict[str, Any], context: Any) -> dict[str, Any]:
    events = (context.get_state_value("calendar") or {}).get(params["day"], {})
    lines = [f"{hour}:00 {title}" for hour, title in sorted(events.items(), key=lambda event: int(event[0]))]
    return {"success": True, "message": "\n".join(lines) or "Nothing on that day."}


test_execute = AssistantTool.register_execute_tool(execute)
