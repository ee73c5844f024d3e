"""Whether a question about history costs only what it returns, and no more as the journal grows.

    python bench/scale.py [--max 1000000] [--folder DIR] [--memory] [--json FILE]

One journal grows from a thousand records to `--max`. Half of it is the page's own session, which has been open all the
time; the rest are other sessions. Three cards wait and two calls are in doubt since the beginning, and everything else
has ended. At every power of ten the same is asked: what waits, what is in doubt, the first picture of the page, the
state of the session as it is opened again, and one more turn of a conversation with an approved call in it. A picture
of a short journal has fewer items, so its figure is given for one of them as well. Each figure is the best of several,
because a machine that others use is slow now and then, and never fast.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from figures import Result, arguments

import lastword
from lastword.journal import data_of
from lastword.server import build_app
from lastword.store import Entry, MemoryStore, Record, SqliteStore, Store
from lastword.talk import Api, InProcessWire, Satellite
from lastword.talk.rehearsal import Rehearsal
from lastword.tools import ToolContext
from lastword.web import history

OWN = "page"
CALLS_OF_OTHERS = 50
WAITING, DOUBTFUL = 3, 2
GROUP = 1000
BEST_OF = 60
MAX_SECONDS = 5.0
ALLOWED_GROWTH = 1.5


async def allow(request: lastword.ApprovalRequest) -> lastword.UserAction:
    return request.allow()


def a_session(store: Store) -> lastword.Session:
    tools = lastword.ToolRegistry()

    @tools.tool
    async def pay(amount: float, context: ToolContext) -> float:
        """Pays."""
        context.set_state("paid last", amount)
        return amount

    return lastword.Session(tools, id=OWN, approver=allow, journal=lastword.Journal(store))


class History:
    """Calls that were made and have ended, of sessions that came and went: copies of one that was really made."""

    def __init__(self, life: list[Record]) -> None:
        self._life = life
        self._id = life[0].subject
        self._nonce = data_of(life[0])["nonce"]
        self._entries = self._calls()

    def more(self, wanted: int) -> list[Entry]:
        """At least so many entries, of whole calls."""
        return list(islice(self._entries, wanted + -wanted % len(self._life)))

    def open(self, call_id: str, *, started: bool) -> list[Entry]:
        """A call that waits, or is in doubt."""
        kinds = ("asked", "answered", "burned", "started") if started else ("asked",)
        return [self._copy(record, "left", call_id) for record in self._life if record.kind in kinds]

    def _calls(self) -> Iterator[Entry]:
        for number in count():
            stream = OWN if number % 2 else f"session-{number // 2 // CALLS_OF_OTHERS}"
            for record in self._life:
                yield self._copy(record, stream, f"call-{number}")

    def _copy(self, record: Record, stream: str, call_id: str) -> Entry:
        assert record.data is not None
        nonce = f"{call_id}{self._nonce}"
        once = record.once and record.once.replace(self._nonce, nonce).replace(self._id, call_id)
        data = record.data.replace(self._nonce.encode(), nonce.encode()).replace(self._id.encode(), call_id.encode())
        return Entry(stream, record.kind, call_id, record.at, data, once)


async def best(work: Callable[[], Awaitable[None]]) -> float:
    """Milliseconds."""
    spent: list[float] = []
    while len(spent) < BEST_OF and sum(spent) < MAX_SECONDS:
        began = perf_counter()
        await work()
        spent.append(perf_counter() - began)
    return min(spent) * 1000


async def measure(store: Store) -> dict[str, float]:
    journal = lastword.Journal(store)
    app = build_app(store, Rehearsal(), log=lambda line: None)
    api = Api(InProcessWire(app))
    session = a_session(store)
    satellite = Satellite(session, api)

    shown: list[object] = []

    async def waiting() -> None:
        assert len(await journal.waiting()) == WAITING

    async def doubtful() -> None:
        assert len(await journal.in_doubt()) == DOUBTFUL

    async def picture() -> None:
        shown[:] = (await history.remembered(session, api)).items

    async def reopen() -> None:
        async with a_session(store) as again:
            assert again.get_state_value("paid last") is not None

    async def turn() -> None:
        await satellite.say("pay 5")
        assert (await session.call("pay", {"amount": 5})).success

    async with session:
        await turn()
        questions = {
            "waiting cards": waiting,
            "calls in doubt": doubtful,
            "first picture": picture,
            "reopening": reopen,
            "one more turn": turn,
        }
        found = {name: await best(work) for name, work in questions.items()}
        found["first picture, an item"] = found["first picture"] / len(shown)
        return found


async def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--max", type=int, default=1_000_000, help="how many records there are in the end")
    parser.add_argument("--folder", type=Path, help="where the journal is made")
    parser.add_argument("--memory", action="store_true", help="measure the store in memory instead")
    wanted = parser.parse_args()
    result = Result(__doc__)
    with TemporaryDirectory(dir=wanted.folder) as folder:
        store: Store = MemoryStore() if wanted.memory else SqliteStore(Path(folder) / "journal.db")
        first = a_session(store)
        assert (await first.call("pay", {"amount": 1})).success
        await first.journal.close()  # From here on the process that made it is gone, and its copies can be in doubt.
        history = History(list(await store.read()))
        for number in range(WAITING + DOUBTFUL):
            await store.commit(*history.open(f"left-{number}", started=number >= WAITING))
        found: dict[int, dict[str, float]] = {}
        size = 1000
        while size <= wanted.max:
            while (missing := size - (await store.head()).seq) > 0:
                await store.commit(*history.more(min(GROUP, missing)))
            found[size] = await measure(store)
            size *= 10
        await store.close()

    sizes = list(found)
    result.table(f"milliseconds, best of {BEST_OF}", *(f"{size:,} records" for size in sizes), "growth", "target")
    for name in found[sizes[0]]:
        row = [found[size][name] for size in sizes]
        result.row(name, *row, row[-1] / row[0], f"≤ {ALLOWED_GROWTH}")
    result.keep(wanted.json)


if __name__ == "__main__":
    asyncio.run(main())
