"""Says what is in a table. The pattern of its argument keeps it in this folder."""

import csv
from pathlib import Path
from typing import Any

from lastword import AssistantTool

MAX_ROWS = 50


def execute(params: dict[str, Any]) -> dict[str, Any]:
    path = Path(params["file"])
    if not path.is_file():
        return {"success": False, "message": f"There is no {path}."}
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file)) or [[]]
    shown = [", ".join(row) for row in rows[:MAX_ROWS]]
    if len(rows) > MAX_ROWS:
        shown.append(f"… and {len(rows) - MAX_ROWS} more rows")
    return {"success": True, "message": "\n".join([f"{len(rows)} rows of {', '.join(head)}", *shown])}


test_execute = AssistantTool.register_execute_tool(execute)
