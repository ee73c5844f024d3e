"""The OpenAPI document says what the server does, and the server does what it says."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from lastword.server.auth import Tokens
from lastword.server.operations import OPERATIONS
from lastword.store import MemoryStore
from requirements import requirement

# What many examples run into, and is right: a response whose conversation was deleted is gone, and nobody can take back
# more turns than there are. No schema says either.
RIGHT = ["--exclude-checks", "ensure_resource_availability,positive_data_acceptance"]
REPLIES = ["Hello.", '{"tool_request": {"name": "t"}}', "```\n{}", "PRINT(1)"]


@requirement("API-27")
@pytest.mark.parametrize("examples", [3, pytest.param(50, marks=pytest.mark.long)])
def test_schemathesis_finds_nothing(house, tmp_path, examples):
    """All checks on: statuses, schemas, headers, rubbish refused, good input accepted, auth that is not ignored.

    In the long tests also with every value at the edge of what a schema allows: more than a thousand requests.
    """
    store = MemoryStore()
    _, token = asyncio.run(Tokens(store).create("tester", ["admin"]))
    turns = iter(range(10**9))
    model = house.model(lambda _: REPLIES[next(turns) % len(REPLIES)])
    server = house.server(model, store=store, limits={"requests_per_minute": 10**9}, model="scripted")
    command = [
        str(Path(sys.executable).parent / "schemathesis"),
        *["run", f"{server.url}/openapi.json", "--checks", "all", "--max-examples", str(examples), "--seed", "1"],
        *["--header", f"Authorization: Bearer {token}", "--request-timeout", "60", "--no-color"],
        *["--generation-database", "none"],
        *["--phases", "examples,fuzzing,stateful" + (",coverage" if examples == 50 else "")],
        *(RIGHT if examples == 50 else []),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-16000:] + done.stderr[-2000:]
    assert f"{len(OPERATIONS)} selected / {len(OPERATIONS)} total" in done.stdout
