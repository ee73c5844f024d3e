"""What one more turn of a conversation costs the server as the conversation grows.

    python bench/conversation.py [--max 5000] [--turns 200] [--json FILE]

Three conversations are brought to their tenth, two hundredth and `--max`th turn through the API itself. Then one turn
is added to each by turns, and the first quartile of many is taken: the short one is begun anew every time, so that it
stays short. The model answers at once from inside the program, so what is left is the server. The model is shown the
newest two hundred turns and no more; the tenth turn has nine to show. With nine shown everywhere, only the length
differs.
"""

import asyncio
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import msgspec
from figures import Result, arguments

from lastword.server import Abilities, Completion, ServerLimits, build_app
from lastword.store import MemoryStore, SqliteStore, Store
from lastword.talk import InProcessWire

SHORT, WINDOW = 10, 200
ALLOWED_GROWTH = 1.5


class Parrot:
    """A model that costs nothing and always says the same."""

    async def complete(self, body: dict[str, Any]) -> Completion:
        # As a real one's server would have it: encoded.
        msgspec.json.encode(body)
        return Completion.checked({"choices": [{"message": {"role": "assistant", "content": "I see."}}], "model": "m"})

    def stream(self, body: dict[str, Any]) -> Any:
        raise NotImplementedError

    async def models(self) -> list[str]:
        return ["m"]

    async def abilities(self) -> Abilities:
        return Abilities()

    async def close(self) -> None:
        pass


async def measure(store: Store, shown: int, longest: int, turns: int) -> dict[int, float]:
    limits = ServerLimits(requests_per_minute=100_000_000, history_turns=shown)
    app = build_app(store, Parrot(), model="m", limits=limits, log=lambda line: None)
    wire = InProcessWire(app)

    async def turn(id: str) -> float:
        said = {"conversation_id": id, "messages": [{"role": "user", "content": "And what do you say to that?"}]}
        body = msgspec.json.encode(said)
        start = perf_counter()
        async with wire.exchange("POST", "/v1/chat/completions", body) as response:
            assert response.status == 200
            await response.read()
        return perf_counter() - start

    async with InProcessWire.alive(app):
        for length, id in ((WINDOW, "window"), (longest, "long")):
            for _ in range(length - 1):
                await turn(id)
        spent: dict[int, list[float]] = {SHORT: [], WINDOW: [], longest: []}
        for number in range(turns):
            for _ in range(SHORT - 1):
                await turn(f"short-{number}")
            spent[SHORT].append(await turn(f"short-{number}"))
            spent[WINDOW].append(await turn("window"))
            spent[longest].append(await turn("long"))
    # A machine that others use is slow now and then, and never fast; the first quartile is what the work itself takes.
    return {length: quantiles(times)[0] * 1e6 for length, times in spent.items()}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--max", type=int, default=5000, help="the turn of the longest conversation")
    parser.add_argument("--turns", type=int, default=200, help="how many are measured at each length")
    given = parser.parse_args()
    result = Result(__doc__)
    result.table("one more turn, µs", f"turn {SHORT}", f"turn {WINDOW}", f"turn {given.max}", "last / first", "target")
    with TemporaryDirectory() as folder:
        for name, store, shown, target in (
            ("on SQLite", SqliteStore(Path(folder) / "bench.db"), WINDOW, f"≤ {ALLOWED_GROWTH}"),
            ("in memory, nine turns shown", MemoryStore(), SHORT - 1, f"≤ {ALLOWED_GROWTH}"),
            ("in memory, two hundred shown", MemoryStore(), WINDOW, f"≤ {ALLOWED_GROWTH}"),
        ):
            first, window, last = asyncio.run(_with(store, shown, given.max, given.turns)).values()
            result.row(name, first, window, last, last / first, target)
    result.keep(given.json)


async def _with(store: Store, shown: int, longest: int, turns: int) -> dict[int, float]:
    try:
        return await measure(store, shown, longest, turns)
    finally:
        await store.close()


if __name__ == "__main__":
    main()
