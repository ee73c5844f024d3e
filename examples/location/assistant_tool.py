"""Tells the assistant where the person is, once, after they agreed.

A location is private, so this tool asks first. Where the location comes from is up to the host: by default the
environment variable LOCATION, and anything else through `use_source`.
"""

import os
from collections.abc import Callable
from typing import Any

from lastword import AssistantTool, UserAction


def from_environment() -> tuple[float, float]:
    """The location in LOCATION, as `latitude,longitude`."""
    latitude, longitude = os.environ["LOCATION"].split(",")
    return float(latitude), float(longitude)


source: Callable[[], tuple[float, float]] = from_environment


def use_source(function: Callable[[], tuple[float, float]]) -> None:
    """Take locations from this function from now on: it returns (latitude, longitude), or raises."""
    global source
    source = function


def request(params: dict[str, Any]) -> dict[str, Any]:
    return {
        "message": "The assistant wants to request your current location.",
        "primary_button_label": "Allow",
        "secondary_button_label": "Cancel",
    }


def execute(params: dict[str, Any], user_action: UserAction) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "User cancelled the location request."}
    try:
        latitude, longitude = source()
    except Exception:
        return {"success": False, "message": "Failed to retrieve user location."}
    return {
        "success": True,
        "message": "\n".join(
            [
                "User location retrieved successfully.",
                f"<latitude>{latitude}</latitude>",
                f"<longitude>{longitude}</longitude>",
            ]
        ),
    }


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
