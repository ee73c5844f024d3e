"""Says which lights are on. The house is a fake: its lights live in the state of the session."""

from typing import Any

from lastword import AssistantTool

ROOMS = ("hall", "kitchen", "living room", "bedroom")


def execute(params: dict[str, Any], context: Any) -> dict[str, Any]:
    lights = context.get_state_value("lights") or {}
    lines = [f"{room}: {f'on, {lights[room]} %' if lights.get(room) else 'off'}" for room in ROOMS]
    return {"success": True, "message": "\n".join(lines)}


test_execute = AssistantTool.register_execute_tool(execute)
