"""How things stand around a question when it is put. None of it is shown or run, so the digest of the request does not
cover it."""

from __future__ import annotations

import msgspec


class Whence(msgspec.Struct, frozen=True):
    """What whoever answers elsewhere has to know of the session that asks."""

    stops: int = 0
    """How often everything had been stopped by then."""
    folder: str = ""
    """From where its paths and commands are meant; empty where no grant can be given, which alone asks for it."""
    user: str | None = None
    """For whom the session works, as its program calls them: a grant from this card serves nobody else's."""


NOWHERE = Whence()
