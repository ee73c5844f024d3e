"""Lists what was paid. It only looks, and asks nobody."""

import json
from pathlib import Path
from typing import Any

from lastword import AssistantTool

LEDGER = Path("ledger.json")
OPENING_BALANCE = 2500.0


def execute() -> dict[str, Any]:
    payments = json.loads(LEDGER.read_text(encoding="utf-8")) if LEDGER.exists() else {}
    lines = [f"{entry['amount']:.2f} to {entry['payee']} ({entry['reference']})" for entry in payments.values()]
    left = OPENING_BALANCE - sum(entry["amount"] for entry in payments.values())
    return {"success": True, "message": "\n".join([*(lines or ["Nothing was paid yet."]), f"{left:.2f} is left."])}


test_execute = AssistantTool.register_execute_tool(execute)
