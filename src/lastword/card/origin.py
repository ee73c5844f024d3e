"""Where in a script a call stands: as words for people and the journal, and as a number to point at the line.

The journal keeps the words. Both directions are here, so that nothing else needs to know how they are put.
"""

from __future__ import annotations

import re

_IN_A_SCRIPT = re.compile(r"line ([1-9][0-9]{0,8}) of ")


def script_origin(line: int, name: str | None) -> str:
    """The origin of a call that a script makes in this line."""
    return f"line {line} of {name or 'the script'}"


def script_line(origin: str) -> int | None:
    """The line that such an origin names; None for any other origin."""
    found = _IN_A_SCRIPT.match(origin)
    return int(found[1]) if found else None
