"""Says what there is to ask about."""

import sqlite3
from pathlib import Path
from typing import Any

from lastword import AssistantTool

DATA = Path("shop.sql")


def execute(params: dict[str, Any]) -> dict[str, Any]:
    database = sqlite3.connect(":memory:")
    database.executescript(DATA.read_text(encoding="utf-8"))
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    lines = []
    for (table,) in tables:
        columns = database.execute("SELECT name, type FROM pragma_table_info(?)", [table]).fetchall()
        lines.append(f"{table}: " + ", ".join(f"{name} {kind.lower()}" for name, kind in columns))
    database.close()
    return {"success": True, "message": "\n".join(lines)}


test_execute = AssistantTool.register_execute_tool(execute)
