"""The cases recorded from the language's reference implementation, and those where our own specification decides."""

import json
from pathlib import Path
from typing import Any

import pytest

from lastword.script import PlacedError
from requirements import requirement
from script.hosts import TestHost, run

CASES = [json.loads(line) for line in (Path(__file__).parent / "conformance.jsonl").read_text().splitlines()]
ALLOWED = {"syntax": {"LexError", "ParseError"}, "syntax-or-limit": {"LexError", "ParseError", "LimitExceeded"}}


@requirement("NUWA-1", "NUWA-2", "NUWA-3", "NUWA-10", "NUWA-20", "NUWA-30", "NUWA-31", "NUWA-80", "NUWA-81", "NUWA-82")
@pytest.mark.parametrize("waits", [False, True], ids=["at-once", "awaited"])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_a_recorded_case_prints_and_fails_as_recorded(case: dict[str, Any], waits: bool) -> None:
    """A script means the same here as where it was recorded, whether its tools answer at once or later."""
    host = TestHost(waits=waits)
    error: PlacedError | None
    try:
        result = await run(case["script"], host)
        error, output = result.error, result.output
    except PlacedError as problem:
        error, output = problem, []
    assert output == host.lines == case["output"]
    if case["error"] is None:
        assert error is None
    else:
        assert error is not None
        assert type(error).__name__ in ALLOWED.get(case["error"], {case["error"]})
        assert case.get("line") in (None, error.line)
