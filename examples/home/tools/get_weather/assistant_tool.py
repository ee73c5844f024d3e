"""Says what the weather will be like. A fake that behaves: the same day in the same city is always the same."""

from datetime import date
from hashlib import sha256
from typing import Any

from lastword import AssistantTool

SKIES = ("clear", "cloudy", "rainy", "windy")


def execute(params: dict[str, Any]) -> dict[str, Any]:
    try:
        day = date.fromisoformat(params["day"])
    except ValueError:
        return {"success": False, "message": f"{params['day']} is not a day of the calendar."}
    dice = sha256(f"{params['city'].casefold()} {day}".encode()).digest()
    summer = 10 - abs(7 - day.month) * 3
    degrees = 14 + summer + dice[0] % 7
    return {"success": True, "message": f"{params['city']}, {day}: {degrees} degrees, {SKIES[dice[1] % 4]}."}


test_execute = AssistantTool.register_execute_tool(execute)
