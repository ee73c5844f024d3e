"""What is remembered of clients, for whoever shares the memory: which are connected, and which results they are owed.

A client is there for as long as the program that serves it: over stdio that ends with its client. Over HTTP nobody says
goodbye, so there it says when the client was first heard.

A client gives up waiting before a person has read the card, and asks again. The same request of the same principal, for
the same tool with the same arguments, goes on with the same call, also after a restart, until the result was delivered
once. From then on an equal request is a new call. Both are keys of the journal that are taken once.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values

if TYPE_CHECKING:
    from lastword.journal import Journal

STREAM, KIND = "mcp", "mcp_client"
# Of the clients that were ever connected, so many are looked at.
MAX_LOOKED_AT = 200


class ConnectedClient(msgspec.Struct, frozen=True):
    """A client that a living program serves."""

    name: str
    """What it calls itself."""
    principal: str
    """`stdio`, or the id of its token."""
    since: float


class Greeter:
    """Notes each client once, when it first asks for something."""

    def __init__(self) -> None:
        self._met: set[tuple[str, str]] = set()

    def meet(self, journal: Journal, principal: str, client: str) -> None:
        """Write down that this client is there."""
        if (principal, client) in self._met or len(self._met) >= MAX_LOOKED_AT:
            return
        self._met.add((principal, client))
        facts = {"client": client, "principal": principal, "process": journal.process_name()}
        journal.note(STREAM, KIND, values.new_id(), facts)


async def connected_clients(journal: Journal) -> Sequence[ConnectedClient]:
    """The clients that are connected now, the newest last."""
    found = []
    lives: dict[str, bool] = {}
    for record in await journal.store.read(stream=STREAM, kind=KIND, last=MAX_LOOKED_AT):
        facts = journal.data_of(record)
        process = str(facts.get("process", ""))
        if process not in lives:
            lives[process] = journal.programs.does_live(process)
        if lives[process]:
            name, principal = str(facts.get("client", "")), str(facts.get("principal", ""))
            found.append(ConnectedClient(name, principal, record.at / 1e6))
    return found


# Two requests that race for the same place: one of them gets the next.
MAX_TIMES = 20


class OpenCall(msgspec.Struct, frozen=True):
    """A call whose result was not delivered."""

    id: str
    is_old: bool
    """Whether it was asked for before."""


class OpenCalls:
    """The calls of one principal."""

    def __init__(self, journal: Journal, session_id: str, key: bytes) -> None:
        self._journal = journal
        self._session_id = session_id
        self._key = key

    async def find(self, tool: str, arguments: dict[str, Any], client: str) -> OpenCall:
        """The call that this request goes on with, or a new one, which is written down before anything is asked."""
        name = self._name(tool, arguments)
        number = await self._first_free(name)
        for _ in range(MAX_TIMES):
            if number:
                record = await self._journal.store.taken(f"{name}:{number - 1}")
                assert record is not None
                known = record.subject
                if await self._journal.store.taken(_delivered(known)) is None:
                    return OpenCall(known, is_old=True)
            id = values.new_id()
            facts = {"tool": tool, "client": client}
            if await self._journal.claim(self._session_id, "mcp_call", id, facts, once=f"{name}:{number}"):
                return OpenCall(id, is_old=False)
            number += 1
        raise RuntimeError("the same request came from too many places at once")

    async def deliver(self, call_id: str, client: str) -> bool:
        """Whether this is the one time that the result is given away."""
        return await self._journal.claim(
            self._session_id, "mcp_delivered", call_id, {"client": client}, once=_delivered(call_id)
        )

    async def client_of(self, call_id: str) -> str:
        """Who asked for a call first, as it called itself."""
        for record in await self._journal.store.read(subject=call_id, kind="mcp_call", limit=1):
            return str(self._journal.data_of(record).get("client", ""))
        return ""

    def _name(self, tool: str, arguments: dict[str, Any]) -> str:
        # Keyed, because an argument may be a secret that could be guessed from its digest.
        facts = values.canonical([self._session_id, tool, arguments])
        return f"mcp:{hmac.new(self._key, facts, 'sha256').hexdigest()}"

    async def _first_free(self, name: str) -> int:
        """How many calls of this request there were: all numbers below it are taken, and none from it on."""

        async def is_taken(number: int) -> bool:
            return await self._journal.store.taken(f"{name}:{number}") is not None

        high = 1
        if not await is_taken(0):
            return 0
        while await is_taken(high):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if await is_taken(middle) else (low, middle)
        return high


def _delivered(call_id: str) -> str:
    return f"mcp-delivered:{call_id}"
