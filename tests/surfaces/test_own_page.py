"""The example with approvals in a page of its own: what its server refuses, what its page shows, and a kill between."""

import importlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from requirements import requirement

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_page"
HOME = "http://127.0.0.1"
REFUND = {"tool": "refund", "arguments": {"customer": "Ada", "amount": 49.9}}
STOCK = {"tool": "set_stock", "arguments": {"item": "lamp", "count": 9}}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("OWN_PAGE_STORE", f"sqlite:///{tmp_path}/own.db")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    sys.modules.pop("app", None)
    app = importlib.import_module("app").app

    with TestClient(app, base_url=HOME, headers={"Origin": HOME}) as client:
        yield client
    sys.modules.pop("app", None)


def until(client: TestClient, what: str) -> list[dict[str, Any]]:
    for _ in range(2000):
        if found := client.get("/desk").json()[what]:
            return list(found)
    raise AssertionError(f"{what} stayed empty")


def test_an_answer_is_one_to_the_card_that_was_shown(client: TestClient):
    """With its digest, once; and what cannot be undone takes its word, whatever another page leaves out."""
    client.post("/calls", json=REFUND)
    [card] = until(client, "cards")
    where = f"/calls/{card['id']}/answer"
    yes = {"digest": card["digest"], "allow": True, "word": "allow"}
    assert client.post(where, json=yes | {"digest": "0" * 64}).status_code == 409
    assert client.post(where, json=yes | {"word": ""}).status_code == 422
    assert client.post("/calls/other/answer", json=yes).status_code == 409
    assert client.get("/desk").json()["ended"] == []
    assert client.post(where, json=yes).status_code == 200
    [ended] = until(client, "ended")
    assert ended["message"] == "Refunded 49.90 to Ada."
    assert client.post(where, json=yes).status_code == 409


def test_a_no_reaches_whoever_asked_with_its_reason(client: TestClient):
    client.post("/calls", json=STOCK)
    [card] = until(client, "cards")
    assert not card["takes_word"]
    client.post(
        f"/calls/{card['id']}/answer", json={"digest": card["digest"], "allow": False, "reason": "I counted 12"}
    )
    [ended] = until(client, "ended")
    assert ended["kind"] == "denied"
    assert "I counted 12" in ended["message"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 400),
    ],
)
def test_no_other_page_presses_its_buttons(client: TestClient, headers: dict[str, str], status: int):
    """Neither by a form of its own, nor by a name of its own that leads to this machine."""
    client.post("/calls", json=STOCK)
    [card] = until(client, "cards")
    where, yes = f"/calls/{card['id']}/answer", {"digest": card["digest"], "allow": True}
    assert client.post(where, json=yes, headers=headers).status_code == status
    assert client.get("/desk").json()["ended"] == []


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The program as its first lines say to start it."""
    command = [sys.executable, "-m", "uvicorn", "app:app", "--port", "0"]
    there = os.environ | {"OWN_PAGE_STORE": f"sqlite:///{folder}/own.db"}
    program = subprocess.Popen(command, cwd=EXAMPLE, env=there, stderr=subprocess.PIPE, text=True)
    assert program.stderr is not None
    try:
        said = ""
        for line in program.stderr:
            said += line
            if found := re.search(r"running on (http://\S+)", line):
                yield found[1], program
                return
        raise AssertionError(said)
    finally:
        program.kill()
        program.communicate()


@requirement("TOOL-71")
def test_a_card_is_still_there_after_a_kill_and_runs_once(windows, tmp_path: Path):
    """Asked, killed, started again, and only then allowed: by a typed word and a press, and not by Enter."""
    with served(tmp_path) as (address, program):
        page = windows(address)
        page.get_by_role("button", name="ask for a refund").click()
        expect(page.locator("article")).to_have_count(1)
        program.send_signal(signal.SIGKILL)
        program.wait()
    with served(tmp_path) as (address, _):
        page = windows(address)
        card = page.locator("article")
        expect(card.get_by_role("heading")).to_have_text("Refund Ada")
        allow = card.get_by_role("button", name="Refund")
        expect(allow).to_be_disabled()
        card.get_by_label("Type allow").fill("allow")
        expect(allow).to_be_enabled()
        allow.press("Enter")
        card.get_by_label("Type allow").press("Enter")
        expect(page).to_have_title("(1) The shop's desk")
        allow.click()
        expect(page.get_by_text("refund succeeded")).to_have_count(1)
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        page.reload()
        expect(page.get_by_text("Nothing waits for you.")).to_be_visible()


def test_what_a_model_writes_is_never_more_than_text(windows, tmp_path: Path):
    """No markup, no turned writing, nothing that cannot be seen."""
    with served(tmp_path) as (address, _):
        page = windows(address)
        page.evaluate(
            """arguments => send("/calls", {tool: "send_letter", arguments})""",
            {"to": "<img src=x onerror=alert(1)>", "news": "12\u202e05\u200b"},
        )
        card = page.locator("article")
        expect(card.locator("dd").nth(0)).to_have_text("<img src=x onerror=alert(1)>")
        expect(card.locator("dd").nth(1)).to_have_text("12⟨U+202E⟩05⟨U+200B⟩")
        assert page.locator("article img").count() == 0
