"""Clients of others in Python, each in its own environment: LangChain, LlamaIndex, llm. They print what they saw."""

import json
import subprocess
from typing import Any

import pytest
from other_clients import CLIENTS, PROGRAMME, PYTHON, Friend

from requirements import requirement


def seen_by(script: str, server: Any, *arguments: str) -> Any:
    """Run a client's programme against a server."""
    command = [str(PYTHON), str(CLIENTS / "python" / script), f"{server.url}/v1", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.mark.long
@requirement("API-67", "API-20")
def test_langchain_works_unchanged(house):
    """Both forms, whole and streamed; it goes on by the id of a response, or sends its history with our items in it."""
    seen = seen_by("langchain_client.py", house.server(house.model(Friend().reply)))
    expected = {**PROGRAMME, "streamed_tools": [["weather", {"city": "Lisbon"}]], "error": "context_length_exceeded"}
    assert seen["chat"] == expected
    assert seen["responses"] == {**expected, "again": ["Hello again."] * 3}


@pytest.mark.long
@requirement("API-67", "API-20")
def test_llamaindex_works_unchanged(house):
    """What it calls "like OpenAI" is us, in both forms."""
    seen = seen_by("llamaindex_client.py", house.server(house.model(Friend().reply)))
    expected = {**PROGRAMME, "error": "context_length_exceeded"}
    assert seen == {"chat": expected, "responses": expected}


@pytest.mark.long
@requirement("API-20")
def test_the_llm_command_works_unchanged(house, tmp_path):
    """An extra model of its own, as its page says to set one up."""
    seen = seen_by("llm_client.py", house.server(house.model(Friend().reply)), str(tmp_path))
    assert seen == {**PROGRAMME, "error": "context_length_exceeded"}
