"""How much the page loads first, how soon its card is there, and how fast an answer reaches another window.

    python bench/page.py [--json FILE]

The sizes are of the built files, as gzip, which every browser takes. The card is timed in Chromium, where that is
installed, from the moment `lastword up` printed its address. An answer is timed without a browser, from sending it in
one window until the event arrives in another, over loopback. The memory is what is kept for windows while scripts
print and the model speaks, as the allocator counts it.
"""

from __future__ import annotations

import gzip
import re
import shutil
import statistics
import sys
import tempfile
import threading
import time
import tracemalloc
from importlib.resources import files
from pathlib import Path

from figures import Result, arguments
from playwright.sync_api import expect, sync_playwright

from lastword.card import views
from lastword.web.shared_items import Feed, SharedItems

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsers import FLAGS
from surfaces.test_inbox_api import Neighbour
from surfaces.windows import Browserless, House, Up, told

# The whole browser, as people have it, and not the shell of the tests.
CHROMIUM = shutil.which("chromium")
ANSWERS = 100
VISITS = 5
MEGABYTES = 10
CARDS = 1_000
ANSWERED = 10


def first_load() -> tuple[int, int]:
    """The bytes of the page until it can be used, and of the editor that comes with the first diff."""
    static = files("lastword.web") / "static"
    index = (static / "index.html").read_bytes()
    named = re.findall(rb'(?:src|href)="/assets/([^"]+)"', index)
    assets = [file for file in (static / "assets").iterdir() if file.name.endswith(".gz")]
    sizes = {file.name.removesuffix(".gz"): len(file.read_bytes()) for file in assets}
    first = len(gzip.compress(index, 9)) + sum(sizes[name.decode()] for name in set(named))
    return first, sum(sizes.values()) + len(gzip.compress(index, 9)) - first


def time_to_card() -> list[tuple[float, float]]:
    """From the printed address to the card, and until the card can be answered, for each of several fresh starts."""
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for _ in range(VISITS):
            with tempfile.TemporaryDirectory() as folder:
                up = Up(Path(folder))
                page = browser.new_context().new_page()
                start = time.perf_counter()
                page.goto(up.key)
                page.wait_for_selector(".card")
                seen = time.perf_counter() - start
                page.wait_for_selector(".card[data-armed=true]")
                times.append((seen, time.perf_counter() - start))
                page.context.close()
                up.stop()
        browser.close()
    return times


def propagation() -> list[float]:
    """From sending an answer in one window to its event in another."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        house = House(Path(folder)).open()
        one = Browserless(house.address).enter(house.key())
        other = Browserless(house.address).enter(house.key())
        with other.events() as following:
            for _ in range(ANSWERS):
                call = house.call("add_up", numbers=[1], factor=1, rounded=True)
                data: dict[str, object] = {}
                while data.get("status") != "waiting":
                    _, _, data = following()
                card = data["card"]
                assert isinstance(card, dict)
                # A yes would be refused: nobody can have read the card as quickly as this.
                body = {"call_id": data["id"], "digest": card["digest"], "action": "deny"}
                start = time.perf_counter()
                sending = threading.Thread(target=one.post, args=("/page/answer", body))
                sending.start()
                while told(data).get("status") in (None, "waiting"):
                    _, _, data = following()
                times.append(time.perf_counter() - start)
                sending.join()
                call.result(10)
        house.close()
    return sorted(times)


def memory() -> tuple[float, float]:
    """What ten megabytes of streamed output leave with a window that reads none of it: at the most, and afterwards."""
    feed = Feed()
    shown = SharedItems(feed)
    tracemalloc.start()
    line = "a line of output " * 30
    for run in range(MEGABYTES // 2):
        shown.show(views.ScriptItem(id=f"r{run}", text="PRINT"))
        for _ in range(1_000_000 // len(line)):
            shown.printed(f"r{run}", line)
        for _ in range(1_000_000 // 20):
            shown.write("a word, and another ")
        shown.end_writing()
    after, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most / 1e6, after / 1e6


def inbox() -> tuple[float, list[float], float]:
    """A thousand cards of another program: until they are shown, each answer until its row says so, and the memory."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        house = House(Path(folder)).open()
        neighbour = Neighbour(house, Path(folder) / "done")
        calls = [neighbour.ask("add_note", page=f"page {n}", text="remember the milk") for n in range(CARDS)]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--enable-precise-memory-info"])
        page = browser.new_context().new_page()
        page.goto(house.key())
        expect(page).to_have_title(f"({CARDS}) lastword", timeout=60_000)
        start = time.perf_counter()
        page.get_by_role("link", name="Inbox").click()
        page.get_by_label("Group what is alike").uncheck()
        page.locator(".entry").nth(CARDS - 1).wait_for(state="attached")
        shown = time.perf_counter() - start
        times = []
        rows = page.locator(".row[data-stop]")
        for n in range(ANSWERED):
            rows.nth(CARDS // 2 + n).focus()
            page.wait_for_selector(f".pane .card[data-armed=true]:has-text('page {CARDS // 2 + n}')")
            start = time.perf_counter()
            page.keyboard.press("Control+Enter")
            page.locator(".entry.over").nth(n).wait_for(state="attached")
            times.append(time.perf_counter() - start)
        heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
        browser.close()
        for call in calls:
            call.cancel()
        house.close()
    return shown, sorted(times), heap


def main() -> None:
    wanted = arguments(__doc__).parse_args()
    result = Result(__doc__, peers=("playwright",))
    # Before anything runs tools here: below a program that does, `lastword up` refuses to start.
    visits = [] if CHROMIUM is None else time_to_card()
    first, later = first_load()
    result.table("", "KB as gzip", "target")
    result.row("first load", first / 1000, "≤ 60")
    result.row("the editor, with the first diff", later / 1000, None)
    most, after = memory()
    result.table("", "MB at the most", "MB afterwards", "target")
    result.row(f"a window, {MEGABYTES} MB of streamed output", most, after, "≤ 20")
    times = propagation()
    result.table("", "ms p50", "ms p99", "target p50")
    result.row("an answer reaches another window", median(times), times[int(len(times) * 0.99)] * 1000, "≤ 50")
    if CHROMIUM is None:
        result.note("Chromium is not installed: the time to the card was not measured.")
    else:
        result.row("the card is visible", median([seen for seen, _ in visits]), None, "≤ 1000")
        result.row("the card can be answered", median([armed for _, armed in visits]), None, None)
        shown, answered, heap = inbox()
        result.row(f"the inbox shows {CARDS:,} cards", shown * 1000, None, "≤ 2000")
        result.row(f"one of {CARDS:,} is answered", median(answered), answered[-1] * 1000, "≤ 300")
        result.table("", "MB", "target")
        result.row(f"memory of a window with {CARDS:,} cards", heap, "≤ 100")
    result.keep(wanted.json)


def median(seconds: list[float]) -> float:
    """In milliseconds."""
    return statistics.median(seconds) * 1000


if __name__ == "__main__":
    main()
