"""`lastword mcp serve --http` as a program of its own, and the tokens that its clients need."""

import asyncio
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hook.gates import opened
from surfaces.screens import clean_environment, piped
from warm import warm_command


@contextmanager
def served(home: Path, *more: str) -> Iterator[int]:
    """The tools of a folder, on any free port of this machine."""
    command = warm_command("mcp", "serve", "--tools", "mine", "--http", "0", *more)
    server = subprocess.Popen(command, cwd=home, env=clean_environment(home), stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line)
        assert found, line + server.stderr.read()
        yield int(found[1])
    finally:
        server.terminate()
        server.communicate(timeout=60)


def token(home: Path, scope: str = "tools") -> str:
    """A new token of this scope, under its name."""
    made = piped("token", "create", scope, "--scope", scope, "--json", cwd=home)
    assert made.returncode == 0, made.stderr
    found: str = json.loads(made.stdout)["token"]
    return found


async def answered(home: Path, how: str = "--allow") -> str:
    """Somebody answers what waits, from another terminal."""
    async with opened(home) as queue:
        card = await queue.card()
        done = await asyncio.to_thread(piped, "answer", card.call_id, how, "--digest", card.digest, cwd=home)
        assert done.returncode == 0, done.stderr
        return card.call_id
