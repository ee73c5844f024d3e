"""Lists what waits in `inbox/`, in the folder where the assistant was started."""

from pathlib import Path
from typing import Any

from lastword import AssistantTool

INBOX = Path("inbox")


def execute(params: dict[str, Any]) -> dict[str, Any]:
    documents = sorted(path for path in INBOX.glob("*") if path.is_file()) if INBOX.is_dir() else []
    lines = [f"{path.name} ({path.stat().st_size} bytes): {first_line(path)}" for path in documents]
    return {"success": True, "message": "\n".join(lines) or "The inbox is empty."}


def first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().strip()[:80]


test_execute = AssistantTool.register_execute_tool(execute)
