"""From an address to a journal. Apart from the journal, so that who needs no file loads no database."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from lastword.journal.journal import Journal
from lastword.store import default_path, open_store


def open_journal(address: str = "memory:") -> Journal:
    """The journal at an address: `memory:`, `sqlite:///FILE`, `postgresql://…`. It connects when it is first used."""
    return Journal(open_store(address))


def open_default_journal(address: str | None = None) -> Journal:
    """The journal at an address; without one, at LASTWORD_STORE; without that, in the user's data folder."""
    address = address or os.environ.get("LASTWORD_STORE")
    if not address:
        address = f"sqlite:///{default_path(sys.platform, os.environ, Path.home())}"
    return open_journal(address)
