"""Who may hold a connection when there are too many: whoever is being answered, then whoever came last.

A connection that asks for nothing costs a place and nothing else, and a thousand of them are made in a moment. So the
full house does not turn away who comes; it shows out who has waited longest without asking. First from the address
that is over its share, since others should not pay for it. Only a house full of people who are being answered is full.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from functools import lru_cache
from typing import Protocol

from lastword.server.limits import ServerLimits


class Holder(Protocol):
    """A connection, as far as this room is concerned."""

    address: str
    since: float
    """When it last began to wait: for its first request, for the next, or for the rest of one."""

    def rank(self) -> int | None:
        """How soon it may be shown out: 0 asks for nothing, 1 is still asking; None is being answered."""

    def show_out(self) -> None:
        """Close it."""


class OpenConnections:
    """All connections of a server."""

    def __init__(self, limits: ServerLimits) -> None:
        self._limits = limits
        self._holders: dict[Holder, None] = {}
        self._by_address: Counter[str] = Counter()

    def admit(self, holder: Holder) -> str | None:
        """Take a connection in, making room if need be; says why not when there is none to make."""
        here = self._by_address[holder.address]
        if here >= self._limits.connections_per_address and not self._make_room(holder.address):
            return f"more than {self._limits.connections_per_address} connections of one address are in use"
        if len(self._holders) >= self._limits.connections and not self._make_room(None):
            return f"more than {self._limits.connections} connections are in use"
        self._holders[holder] = None
        self._by_address[holder.address] += 1
        return None

    def forget(self, holder: Holder) -> None:
        """The connection is closed, or about to be."""
        if holder in self._holders:
            del self._holders[holder]
            self._by_address[holder.address] -= 1
            if not self._by_address[holder.address]:
                del self._by_address[holder.address]

    def _make_room(self, address: str | None) -> bool:
        """Show out the one that has waited longest for nothing; of the largest crowd when the whole house is full."""
        best: tuple[int, int, float] | None = None
        chosen: Holder | None = None
        for holder in self._holders:
            if address is not None and holder.address != address:
                continue
            rank = holder.rank()
            if rank is None:
                continue
            value = (rank, -self._by_address[holder.address], holder.since)
            if best is None or value < best:
                best, chosen = value, holder
        if chosen is None:
            return False
        self.forget(chosen)
        chosen.show_out()
        return True


@lru_cache(maxsize=1024)
def network_of(host: str) -> str:
    """Whom an address counts for. A household has 2^64 addresses of the newer kind, and is one neighbour."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
