"""Other accounts of the same machine reach every port on it. What they can do with that of a `lastword up`: nothing."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastword.testing.scripted import ScriptedModel
from requirements import requirement
from surfaces.windows import Browserless, Up

SECRET = "the gate's code is 4711"


class Opened:
    """A `lastword up` in which a person has said something, and whoever comes from outside."""

    def __init__(self, folder: Path, model: ScriptedModel) -> None:
        self._folder = folder
        self.model = model
        self.up = Up(folder, 0, "--session", "mine")
        self.window = Browserless(self.up.address).enter(self.up.key)
        self.stranger = Browserless(self.up.address)
        with self.window.events() as following:
            assert self.window.post("/page/say", {"text": SECRET})[0] == 200
            seen = following()[2]
            while seen.get("busy") is not False or len(model.requests) < 1:
                seen = following()[2]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        given = {"Content-Type": "application/json", **headers}
        status, _, data = self.stranger.raw(method, path, body, given)
        return status, data.decode()

    def token(self, *scopes: str) -> str:
        chosen = [part for scope in scopes for part in ("--scope", scope)]
        made = subprocess.run(
            [sys.executable, "-m", "lastword", "token", "create", "outside", "--json", *chosen],
            cwd=self._folder,
            env={**os.environ, "XDG_DATA_HOME": str(self._folder / "data"), "HOME": str(self._folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        return str(json.loads(made.stdout)["token"])


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with ScriptedModel(lambda body: "I keep it to myself.") as model, pytest.MonkeyPatch.context() as environment:
        environment.setenv("LASTWORD_UPSTREAM", model.url)
        opened = Opened(tmp_path_factory.mktemp("up"), model)
        try:
            yield opened
        finally:
            opened.up.stop()


HI = {"messages": [{"role": "user", "content": "Hi"}]}
ATTEMPTS: list[tuple[str, str, Any]] = [
    ("GET", "/v1/conversations", None),
    ("GET", "/v1/conversations/mine", None),
    ("DELETE", "/v1/conversations/mine", None),
    ("POST", "/v1/chat/completions", {**HI, "conversation_id": "mine"}),
    ("POST", "/v1/chat/completions", HI),
    ("GET", "/v1/models", None),
    ("GET", "/metrics", None),
]
PRETENCES: list[dict[str, str]] = [
    {},
    {"Authorization": "Bearer none"},
    {"Authorization": "Bearer lastword_00000000_" + "A" * 43},
    {"lastword.inside": "true", "X-Lastword-Inside": "1"},
    {"X-Forwarded-For": "127.0.0.1", "Host": "localhost"},
    {"Cookie": "lastword_0=x"},
]


@requirement("API-51")
def test_another_account_of_this_machine_gets_nothing_of_the_conversation_of_lastword_up(opened: Opened):
    """They read, spoke in and deleted it while there were no tokens: that state let everybody in who could connect."""
    asked = len(opened.model.requests)
    for headers in PRETENCES:
        for method, path, body in ATTEMPTS:
            status, said = opened.ask(method, path, body, **headers)
            assert status == 401, (headers, method, path, said)
            assert "lastword token create" in said
            assert SECRET not in said
    assert len(opened.model.requests) == asked  # nobody spoke
    assert SECRET in str(opened.window.get("/page/state")[1]["items"])  # and nothing is gone


@requirement("API-51")
def test_a_token_lets_an_outside_program_in_and_only_to_its_own_conversations(opened: Opened):
    """The page's conversation belongs to the program itself, and a token with `chat` is somebody else."""
    bearer = {"Authorization": f"Bearer {opened.token('chat')}"}
    assert opened.ask("POST", "/v1/chat/completions", {**HI, "conversation_id": "theirs"}, **bearer)[0] == 200
    status, said = opened.ask("GET", "/v1/conversations", **bearer)
    assert (status, re.findall(r'"id":"(\w+)"', said)) == (200, ["theirs"])
    for method, path, body in ATTEMPTS[1:4]:
        assert opened.ask(method, path, body, **bearer)[0] == 404
    # The person goes on as before.
    assert opened.window.post("/page/say", {"text": "Still there?"})[0] == 200


@requirement("API-51")
def test_what_says_that_the_process_lives_is_open_and_says_nothing_else(opened: Opened):
    """A supervisor has no token. What it may ask holds nothing of the conversation."""
    for path in ("/healthz", "/readyz"):
        assert opened.ask("GET", path) == (200, '{"status":"ok"}')
