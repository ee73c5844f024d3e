"""What arrives at a terminal although nobody means the card: typing, pastes, held keys, replies of the terminal itself.

A stream is drawn from a seed, and played into a real pseudo-terminal with a card on its other end. Its pauses are those
of a quick or a slow typist, all of them shorter than the time after which a single press counts.
"""

import asyncio
import random
import time
from collections.abc import Callable

from prompt_toolkit.application import create_app_session

from lastword import Outcome, ToolRegistry
from lastword.terminal.keyboard import ALONE_SECONDS
from lastword.terminal.tty import ARMING_SECONDS
from lastword.tools import Effect
from surfaces.conftest import session_at
from surfaces.screens import PATIENCE_SECONDS, Terminal

Stream = list[tuple[float, str]]
"""Pauses, and what comes after each."""

SENTENCES = ("what is that", "allow all of that", "a dad had a salad", "yes, allow it", "add a note", "allow", "aaaa")
REPLIES = (
    "\x1b]11;rgb:aaaa/aaaa/adad\x1b\\",
    "\x1b]10;rgb:a1a1/d2d2/a3a3\x07",
    "\x1b[?62;22c",
    "\x1b[24;80R",
    "\x1bP>|terminal(a.a)\x1b\\",
    "\x1bP1+r616c6c6f77=61\x1b\\",
    "\x1b[I",
    "\x1b[<35;20;10M",
)
# Slow for a typist, and well below the time that makes a press count.
SLOWEST_KEY = 0.16
# How often a stream is played again whose writer was held up for so long that it was a deliberate press.
MAX_TRIES = 6


class Report:
    """What a stream did."""

    def __init__(self) -> None:
        self.approved = False
        """Before anybody meant to."""
        self.pressed: Outcome | None = None
        """What a deliberate press did afterwards; None when the stream had closed the card."""
        self.slowest = 0.0
        """The longest time between two pieces, as it really was."""


def draw(rng: random.Random, *, plain: bool) -> Stream:
    """A stream: several bursts, none of which is a single press."""
    stream: Stream = []
    for _ in range(rng.randint(2, 4)):
        stream += rng.choice((_typed, _pasted, _held, _replied))(rng)
    if plain:
        # Words are what answers there, so whole lines of them come with the rest.
        lines = [(rng.uniform(0.001, SLOWEST_KEY), f"{rng.choice(SENTENCES)}\n") for _ in range(3)]
        stream = [(0.0, "x"), *lines, *stream, (0.01, "\n"), (0.01, "allow\n"), (0.01, "x")]
    return [(0.0, stream[0][1]), *stream[1:]]


def _typed(rng: random.Random) -> Stream:
    pace = rng.uniform(0.03, SLOWEST_KEY)
    return [(pace, key) for key in rng.choice(SENTENCES) + rng.choice(("", "\r", " "))] + [(pace, "a")]


def _pasted(rng: random.Random) -> Stream:
    text = " ".join(rng.choices(SENTENCES, k=3))
    if rng.random() < 0.3:
        text = f"\x1b[200~{text}\x1b[201~"
    return [(0.005, piece) for piece in _pieces(rng, text, 4)]


def _held(rng: random.Random) -> Stream:
    return [(0.03, rng.choice("aaadvp"))] * rng.randint(2, 12)


def _replied(rng: random.Random) -> Stream:
    return [(rng.uniform(0.0, 0.15), piece) for piece in _pieces(rng, rng.choice(REPLIES), 6)]


def _pieces(rng: random.Random, text: str, most: int) -> list[str]:
    pieces = []
    while text:
        length = rng.randint(1, most)
        pieces.append(text[:length])
        text = text[length:]
    return pieces


async def attack(seed: int) -> Report:
    """Play a stream, begun before or on a card; then press as somebody who means it."""
    rng = random.Random(seed)
    plain = rng.random() < 0.25
    effect: Effect | None = rng.choice(("reversible", "irreversible", None))
    stream = draw(rng, plain=plain)
    # The piece after which the card comes; none for one that listened already when the first piece came.
    before = rng.choice((None, rng.randrange(len(stream))))
    report = Report()
    # Several terminals in one program: the library that reads lines would take them for one.
    with create_app_session(), Terminal(lines=50).attached() as terminal:
        ran: list[str] = []
        registry = ToolRegistry()

        @(registry.tool() if effect is None else registry.tool(effect=effect))
        def send(to: str) -> str:
            """Sends a letter."""
            ran.append(to)
            return "Sent."

        async with session_at(terminal, registry, plain=plain) as session:
            asking: asyncio.Task[Outcome] | None = None
            if before is None:
                asking = asyncio.create_task(session.call("send", {"to": "Ada"}))
                await terminal.until("Type one of these" if plain else "[Esc] close")
            last = time.monotonic()
            for number, (pause, piece) in enumerate(stream):
                await asyncio.sleep(pause)  # The speed of the fingers is what is tried here.
                began = time.monotonic()
                terminal.press(piece)
                report.slowest = max(report.slowest, time.monotonic() - last) if number else 0.0
                last = began
                if number == before:
                    asking = asyncio.create_task(session.call("send", {"to": "Ada"}))
            assert asking is not None
            # Whatever the last piece could still do, it has done by then.
            await asyncio.wait({asking}, timeout=ARMING_SECONDS + ALONE_SECONDS + 0.1)
            report.approved = bool(ran)
            if not asking.done():
                try:
                    report.pressed = await _press(terminal, asking, effect, plain=plain)
                finally:
                    asking.cancel()  # The terminal is given back before it is closed.
                    await asyncio.wait({asking})
            elif not ran:
                assert asking.result().kind == "denied"
    return report


async def _press(terminal: Terminal, asking: asyncio.Task[Outcome], effect: Effect | None, *, plain: bool) -> Outcome:
    """Allow it as a person does who has read the card, and tries again when the first press was too early."""
    async with asyncio.timeout(3 * PATIENCE_SECONDS):
        while not asking.done():
            asked = b"Type the name of the tool" if plain else b"Type allow and press Enter"
            seen = terminal.raw.count(asked)
            terminal.press("allow\n" if plain else "a")
            # Longer than a card needs to take a press, or to listen again.
            await _moments(asking, lambda: terminal.raw.count(asked) > seen)  # noqa: B023
            if effect != "reversible" and not asking.done():
                for key in "send\n" if plain else "allow\r":
                    await asyncio.sleep(0.15)
                    terminal.press(key)
                await _moments(asking, asking.done)
        return asking.result()


async def _moments(asking: asyncio.Task[Outcome], is_there: Callable[[], bool]) -> None:
    """Wait for something for as long as a person would before they press again."""
    until = time.monotonic() + 2 * (ARMING_SECONDS + ALONE_SECONDS)
    while time.monotonic() < until and not is_there():
        await asyncio.wait({asking}, timeout=0.05)


async def judge(seed: int) -> str:
    """What is wrong with how the card met this stream; empty when nothing is."""
    for _ in range(MAX_TRIES):
        try:
            report = await attack(seed)
        except TimeoutError:
            return f"seed {seed}: a deliberate press was not taken"
        if report.approved and report.slowest >= 0.9 * ALONE_SECONDS:
            continue  # This machine stood still, and what it typed then was one press: no stream at all.
        if report.approved:
            return f"seed {seed}: a stream approved the call; its slowest pause was {report.slowest:.3f} s"
        if report.pressed is not None and report.pressed.kind != "succeeded":
            return f"seed {seed}: a deliberate press did not approve: {report.pressed.kind}"
        return ""
    return f"seed {seed}: this machine was too busy to type, {MAX_TRIES} times"


async def judge_all(seeds: list[int], side_by_side: int = 10) -> list[str]:
    """All that is wrong. A few at a time: most of a stream is waiting."""
    turns = asyncio.Semaphore(side_by_side)

    async def one(seed: int) -> str:
        async with turns:
            return await judge(seed)

    return [wrong for wrong in await asyncio.gather(*map(one, seeds)) if wrong]
