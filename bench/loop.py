"""How late a timer on the event loop is while something heavy runs, compared with an idle loop.

    python bench/loop.py [--json FILE]

Everything else in the program waits on the same loop: other windows, other calls, the key that stops them. Each work is
done a few times, and the least of its worst delays counts: a machine that others use makes any timer late now and then,
as the idle loop shows, and never early. Beside it stands the most processor time that the loop took between two ticks,
which is the part of the delay that is ours.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from figures import Result, arguments

import lastword
from lastword.call import Limits
from lastword.call.events import Printed, RunStarted
from lastword.card import Face, card_of
from lastword.editor import ProjectEditor, editor_tools
from lastword.server import build_app
from lastword.store import MemoryStore
from lastword.talk import Api, InProcessWire, ResolvedPreset, Said
from lastword.talk.rehearsal import Rehearsal
from lastword.talk.turn import Bounds
from lastword.web import AssistantSetup
from lastword.web.conversation import ConversationView

TICK_SECONDS = 0.005
TIMES = 3
TARGET = "≤ 100"
FILES = 5_000
LONG_LINE = 200_000

Work = Callable[[], Awaitable[Any]]


async def allow(request: lastword.ApprovalRequest) -> lastword.UserAction:
    """Draws the card on the loop first, as the terminal and the page do, each when it hears of it."""
    Face.of(request)
    await asyncio.sleep(0)
    card_of(request, "")
    await asyncio.sleep(0)
    return request.allow()


async def lateness(work: Work) -> tuple[float, float]:
    """The worst delay of a timer while this is done, and the loop's longest turn, in milliseconds."""
    worst = longest = 0.0

    async def tick() -> None:
        nonlocal worst, longest
        while True:
            due, before = time.perf_counter() + TICK_SECONDS, time.thread_time()
            await asyncio.sleep(TICK_SECONDS)
            worst, longest = max(worst, time.perf_counter() - due), max(longest, time.thread_time() - before)

    ticking = asyncio.ensure_future(tick())
    await asyncio.sleep(TICK_SECONDS)
    await work()
    await asyncio.sleep(2 * TICK_SECONDS)  # What kept the loop until the end is met here.
    ticking.cancel()
    return worst * 1000, longest * 1000


def scattered(seed: int) -> str:
    """Three megabytes: short lines in no order, which are as much work for a comparison as a text can be."""
    return "\n".join(random.Random(seed).choices(["abc", "bcd", "cde", "def"], k=750_000))


def heavy_in_an_editor(folder: Path) -> dict[str, Work]:
    tools = lastword.ToolRegistry()
    editor_tools(tools)
    # A machine that has much else to do may need longer for a card than a person would wait.
    limits = Limits(draw_timeout_seconds=120)
    session = lastword.Session(tools, approver=allow, editor=ProjectEditor(folder), limits=limits)
    many = folder / "many"
    many.mkdir()
    for number in range(FILES):
        (many / f"m{number}.py").write_text("import os\n\n\ndef f(x):\n    return x\n")

    async def call(tool: str, **given: Any) -> None:
        outcome = await session.call(tool, given)
        assert outcome.success, outcome.message

    texts = [scattered(1), scattered(2)]
    (folder / "big.txt").write_text(texts[0])

    async def diff() -> None:
        texts.reverse()  # Each time back to what it was the time before.
        await call("write_file", path="big.txt", text=texts[0])

    async def long_line() -> None:
        (folder / "long.txt").write_text("x" * (LONG_LINE // 2) + "y" + "x" * (LONG_LINE // 2) + "\n")
        await call("replace_text", path="long.txt", old="y", new="z")

    return {
        f"lint of {FILES:,} files": lambda: call("lint_files"),
        "a diff of 3 MB, and its card": diff,
        f"a diff with a line of {LONG_LINE:,} characters": long_line,
    }


def heavy_in_a_window() -> dict[str, Work]:
    store = MemoryStore()
    session = lastword.Session(lastword.ToolRegistry(), journal=lastword.Journal(store))
    api = Api(InProcessWire(build_app(store, Rehearsal(), log=lambda line: None)))
    preset = ResolvedPreset(
        preset=lastword.Preset(), protocol="script", model="lastword", persona=None, bounds=Bounds()
    )
    view = ConversationView(session, api, AssistantSetup({"default": preset}, "default", ""))

    async def printed() -> None:
        view.hear_session(RunStarted("r", None, "PRINT"))
        for line in ("é" * LONG_LINE, "x" * LONG_LINE):
            view.hear_session(Printed("r", line))
            await asyncio.sleep(0)

    async def said() -> None:
        for _ in range(LONG_LINE // 10):
            view.assistant.hear(Said("naïve word"))
            await asyncio.sleep(0)
        view.shown.note("It has come to its end.")

    return {
        f"a line of {LONG_LINE:,} characters, printed": printed,
        f"a line of {LONG_LINE:,} characters, said in words": said,
    }


def hostile_scripts() -> dict[str, Work]:
    tools = lastword.ToolRegistry()

    @tools.tool(require_approval=False)
    async def nothing() -> None:
        """Does nothing."""

    session = lastword.Session(tools)
    long = 'LET a = "1"\nFOR i IN RANGE(19) DO LET a = FORMAT("{a}{a}", {a: a}) END\n'
    texts = {
        "NUMBER of a long text, in a loop": long + "FOR i IN RANGE(2000) DO LET x = NUMBER(a) END",
        "CONTAINS in a long text, in a loop": long + 'FOR i IN RANGE(2000) DO LET x = CONTAINS(a, "11112") END',
        "== of long texts, in a loop": long
        + 'LET b = FORMAT("{a}", {a: a})\nFOR i IN RANGE(20000) DO LET x = a == b END',
        "a chain of 300,000 operators": "LET x = 1" + " + 1" * 300_000,
        "FOR over a million CALLs": "FOR i IN RANGE(1000000) DO CALL nothing {} END",
    }

    def run(text: str) -> Work:
        async def work() -> None:
            await session.run_script(text)

        return work

    return {name: run(text) for name, text in texts.items()}


async def main() -> None:
    wanted = arguments(__doc__).parse_args()
    result = Result(__doc__)
    result.table(f"the least of {TIMES}", "ms late at worst", "ms of work at once", "target")
    with TemporaryDirectory() as folder:
        works: dict[str, Work] = {"nothing at all": lambda: asyncio.sleep(1.0)}
        works |= heavy_in_an_editor(Path(folder)) | heavy_in_a_window() | hostile_scripts()
        for name, work in works.items():
            late, busy = map(min, zip(*[await lateness(work) for _ in range(TIMES)], strict=True))
            result.row(name, late, busy, None if name == "nothing at all" else TARGET)
    result.table("a plan, which is made outside of a loop", "ms", "growth", "target")
    took = {calls: planned(calls) for calls in (16_000, 32_000)}
    result.row("16,000 CALLs", took[16_000], None, None)
    result.row("32,000 CALLs", took[32_000], took[32_000] / took[16_000], "≤ 2.5")
    result.keep(wanted.json)


def planned(calls: int) -> float:
    """Milliseconds for a plan of so many CALLs, the best of a few."""
    spent = []
    for _ in range(TIMES):
        began = time.perf_counter()
        lastword.plan("CALL nothing {}\n" * calls)
        spent.append(time.perf_counter() - began)
    return min(spent) * 1000


if __name__ == "__main__":
    asyncio.run(main())
