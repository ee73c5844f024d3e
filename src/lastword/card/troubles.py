"""What is said when something breaks inside the program: one sentence for the person, with the id under which the log
has the traceback."""

from __future__ import annotations

import logging

from lastword import ids
from lastword.display import visible
from lastword.errors import LastWordError

log = logging.getLogger("lastword")


def trouble(what: str, problem: BaseException) -> str:
    """Log a problem with its traceback; gives back what to say of it. `what` says what does not work because of it."""
    id = ids.new(8)[8:]  # Random, and short enough to be read aloud.
    log.error("%s: %s", id, what, exc_info=problem)
    # The text of an error that is not ours may hold anything, and means nothing in a conversation.
    words = f": {visible(str(problem))}" if isinstance(problem, LastWordError) else "."
    return f"{what} ({id} in the log){words}".replace("\n", " ")
