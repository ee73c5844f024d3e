"""Browsers for tests, each started once for all files of a process: a window costs little, and a browser much."""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

# The shell is Chromium without its own windows and menus: the same pages, with less than half of the work. The whole
# browser is for tests that need to know which window is in front, and for all of them when the long ones are run.
WHOLE = shutil.which("chromium")
CHROMIUM = shutil.which(os.environ.get("TEST_BROWSER") or "chromium-headless-shell") or WHOLE
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--font-render-hinting=none",  # Pictures are compared.
)

Launch = Callable[[str | None], AbstractContextManager[Browser]]


@pytest.fixture(scope="session")
def launch() -> Iterator[Launch]:
    """Starts browsers."""
    started: dict[str | None, Browser] = {}
    with sync_playwright() as playwright:
        loop = asyncio.get_running_loop()

        @contextmanager
        def start(program: str | None) -> Iterator[Browser]:
            # Playwright leaves its loop marked as running. Tests that are coroutines would find no place for theirs.
            asyncio._set_running_loop(loop)
            try:
                if program not in started:
                    started[program] = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
                yield started[program]
            finally:
                asyncio._set_running_loop(None)

        asyncio._set_running_loop(None)
        yield start
        asyncio._set_running_loop(loop)
        for browser in started.values():
            browser.close()


@pytest.fixture(scope="session")
def left_windows() -> dict[Any, list[Page]]:
    """Windows that tests have left as they found them, by their browser and its options, for those that come after."""
    return {}


@pytest.fixture
def browser(launch: Launch, request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium; `whole_browser` for the one with windows of its own."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed; the last lines of ./test say so")
    with launch(WHOLE if "whole_browser" in request.fixturenames else CHROMIUM) as browser:
        yield browser


@pytest.fixture
def whole_browser() -> None:
    """The browser knows which of its windows is in front. In its shell each of them is."""
    if WHOLE is None:
        pytest.skip("Chromium is not installed; the last lines of ./test say so")
