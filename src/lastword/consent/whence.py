"""How things stand around a question when it is put. None of it is shown or run, so the digest of the request does not
cover it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Whence(msgspec.Struct, frozen=True):
    """What whoever answers elsewhere has to know of the session that asks."""

    stops: int = 0
    """How often everything had been stopped by then."""
    folder: str = ""
    """From where its paths and commands are meant. This and what follows are for grants, and empty without any."""
    path_schemas: Mapping[str, Any] = {}
    """What the tool says of arguments that may be paths."""
    user: str | None = None
    """The digest of the user for whom the session works: a grant from this card serves nobody else's."""


NOWHERE = Whence()
