"""How much the page loads first, how soon its card is there, and how fast an answer reaches another window.

    python bench/page.py [--json FILE]

The sizes are of the built files, as gzip, which every browser takes. The card is timed in Chromium, where that is
installed, from the moment `lastword up` printed its address. An answer is timed without a browser, from sending it in
one window until the event arrives in another, over loopback.
"""

from __future__ import annotations

import gzip
import re
import statistics
import sys
import tempfile
import threading
import time
from importlib.resources import files
from pathlib import Path

from figures import Result, arguments
from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from surfaces.windows import CHROMIUM, FLAGS, Browserless, House, Up

ANSWERS = 100
VISITS = 5


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
                body = {"call_id": data["id"], "digest": card["digest"], "action": "allow"}
                start = time.perf_counter()
                sending = threading.Thread(target=one.post, args=("/page/answer", body))
                sending.start()
                while data.get("status") == "waiting":
                    _, _, data = following()
                times.append(time.perf_counter() - start)
                sending.join()
                call.result(10)
        house.close()
    return sorted(times)


def main() -> None:
    wanted = arguments(__doc__).parse_args()
    result = Result(__doc__, peers=("playwright",))
    first, later = first_load()
    result.table("", "KB as gzip", "target")
    result.row("first load", first / 1000, "≤ 60")
    result.row("the editor, with the first diff", later / 1000, None)
    times = propagation()
    result.table("", "ms p50", "ms p99", "target p50")
    result.row("an answer reaches another window", median(times), times[int(len(times) * 0.99)] * 1000, "≤ 50")
    if CHROMIUM is None:
        result.note("Chromium is not installed: the time to the card was not measured.")
    else:
        visits = time_to_card()
        result.row("the card is visible", median([seen for seen, _ in visits]), None, "≤ 1000")
        result.row("the card can be answered", median([armed for _, armed in visits]), None, None)
    result.keep(wanted.json)


def median(seconds: list[float]) -> float:
    """In milliseconds."""
    return statistics.median(seconds) * 1000


if __name__ == "__main__":
    main()
