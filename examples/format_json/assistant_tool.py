"""Formats JSON. It reads nothing, changes nothing and sends nothing, so it asks nobody."""

import json
from typing import Any

from lastword import AssistantTool


def execute(params: dict[str, Any]) -> dict[str, Any]:
    try:
        value = json.loads(params["text"])
    except json.JSONDecodeError as problem:
        return {"success": False, "message": f"Line {problem.lineno}, column {problem.colno}: {problem.msg}"}
    text = json.dumps(value, indent=params["indent"], sort_keys=params["sort_keys"], ensure_ascii=False)
    return {"success": True, "message": text}


test_execute = AssistantTool.register_execute_tool(execute)
