"""Run by `lastword test`, and by pytest."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lastword.testing import tool_beside

tool: Any = tool_beside(__file__)


def test_an_empty_ledger_says_so() -> None:
    with TemporaryDirectory() as folder:
        tool.LEDGER = Path(folder, "ledger.json")
        assert tool.test_execute()["message"] == "Nothing was paid yet.\n2500.00 is left."


def test_what_was_paid_is_listed() -> None:
    with TemporaryDirectory() as folder:
        tool.LEDGER = Path(folder, "ledger.json")
        tool.LEDGER.write_text(json.dumps({"key": {"payee": "Ada", "amount": 500, "reference": "lamp"}}))
        assert tool.test_execute()["message"] == "500.00 to Ada (lamp)\n2000.00 is left."
