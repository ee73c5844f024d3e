"""`lastword up --open`: the page comes up by itself, and its key is read by nobody else on the machine."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

from surfaces.conftest import Run
from surfaces.windows import Browserless, Up

RECORDER = """
import sys
from pathlib import Path
Path(sys.argv[1]).write_text(sys.argv[2])
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the browser says what it was started with: a pipe, so that reading it waits for the browser."""
    (tmp_path / "recorder.py").write_text(RECORDER)
    os.mkfifo(tmp_path / "started")
    monkeypatch.setenv("BROWSER", f"{sys.executable} {tmp_path / 'recorder.py'} {tmp_path / 'started'} %s")
    return tmp_path / "started"


def handed_over(started: Path) -> Path:
    """The file that the browser was started with."""
    given = started.read_text()
    assert given.startswith("file://")
    assert "key=" not in given
    return Path(unquote(urlsplit(given).path))


def test_the_browser_is_handed_a_private_file_and_no_key(tmp_path: Path, started: Path) -> None:
    """Every account of the machine reads the command line of every program; a key there would let them answer."""
    up = Up(tmp_path, 0, "--open")
    try:
        file = handed_over(started)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        leads_to = re.search(r"http://[^\"]+", file.read_text())
        assert leads_to is not None
        assert urlsplit(leads_to[0]).query != urlsplit(up.key).query  # the printed one still opens once
        key = urlsplit(leads_to[0]).query
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        assert key not in listed
        Browserless(up.address).enter(leads_to[0])
        assert not file.exists()
    finally:
        up.stop()


def test_a_file_that_nobody_used_is_gone_with_the_server(tmp_path: Path, started: Path) -> None:
    """A key must not outlive what it opens."""
    up = Up(tmp_path, 0, "--open")
    file = handed_over(started)
    assert file.exists()
    up.stop()
    assert not file.exists()


def test_the_file_opens_the_page_in_a_real_browser(tmp_path: Path, started: Path, browser: Browser) -> None:
    """A browser that a file led here holds the cookie back, and would see "This window has no key"."""
    up = Up(tmp_path, 0, "--open")
    try:
        page = browser.new_page()
        page.goto(handed_over(started).as_uri())
        page.wait_for_url(f"{up.address}/")
        page.get_by_role("textbox").first.wait_for()
        page.close()
    finally:
        up.stop()


@pytest.mark.parametrize("browser", ["", "w3m"])
def test_without_a_browser_the_address_is_pointed_at_and_the_server_stays(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, browser: str
) -> None:
    """On a machine without a screen; and a browser in the terminal would draw over the chat."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    if browser:
        (bin_folder / browser).write_text("#!/bin/sh\ntouch ran\n")
        (bin_folder / browser).chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_folder))
    monkeypatch.setenv("TERM", "xterm")
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    program = run("up", "--port", "0", "--open", columns=150)
    program.until("no browser could be opened from here")
    program.until("asks ▸")
    assert program.leave() == 0
    assert not (tmp_path / "ran").exists()
