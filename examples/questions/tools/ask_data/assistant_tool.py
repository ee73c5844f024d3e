"""Runs one SELECT. The database is opened so that it cannot be changed, whatever the SQL says."""

import sqlite3
from pathlib import Path
from typing import Any

from lastword import AssistantTool

DATA = Path("shop.sql")
MAX_ROWS = 50
# Enough for any question about a small shop; an endless one stops here.
MAX_STEPS = 20_000_000


def execute(params: dict[str, Any]) -> dict[str, Any]:
    database = sqlite3.connect(":memory:")
    database.executescript(DATA.read_text(encoding="utf-8"))
    database.execute("PRAGMA query_only = ON")
    # Without this, the SQL could attach another file of the machine and read it.
    database.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    database.set_progress_handler(lambda: 1, MAX_STEPS)
    try:
        found = database.execute(params["sql"])
        rows = found.fetchmany(MAX_ROWS + 1)
        names = [column[0] for column in found.description or ()]
    except sqlite3.Error as problem:
        return {"success": False, "message": f"The SQL was not understood or not allowed: {problem}"}
    finally:
        database.close()
    lines = [" | ".join(names), *(" | ".join(map(str, row)) for row in rows[:MAX_ROWS])]
    if len(rows) > MAX_ROWS:
        lines.append(f"… and more: only {MAX_ROWS} rows are shown")
    return {"success": True, "message": "\n".join(lines)}


test_execute = AssistantTool.register_execute_tool(execute)
