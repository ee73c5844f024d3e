"""From an address to a journal. Apart from journal.py, so that who needs no file loads no database."""

from __future__ import annotations

from assent.journal import Journal
from assent.store.address import open_store


def open_journal(address: str = "memory:") -> Journal:
    """The journal at an address: `memory:`, or `sqlite:///FILE`. It connects when it is first used."""
    return Journal(open_store(address))
