"""Which MCP clients are connected: written down by the program that serves them, and read by whoever shares the memory.

A client is there for as long as the program that serves it: over stdio that ends with its client. Over HTTP nobody says
goodbye, so there it says when the client was first heard.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lastword import ids
from lastword.journal import Journal, data_of, does_live

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
        journal.note(STREAM, KIND, ids.new(), facts)


async def connected(journal: Journal) -> Sequence[ConnectedClient]:
    """The clients that are connected now, the newest last."""
    found = []
    lives: dict[str, bool] = {}
    for record in await journal.store.read(stream=STREAM, kind=KIND, last=MAX_LOOKED_AT):
        facts = data_of(record)
        process = str(facts.get("process", ""))
        if process not in lives:
            lives[process] = does_live(journal.store, process)
        if lives[process]:
            name, principal = str(facts.get("client", "")), str(facts.get("principal", ""))
            found.append(ConnectedClient(name, principal, record.at / 1e6))
    return found
