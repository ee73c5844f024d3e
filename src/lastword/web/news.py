"""What a satellite has to tell beside the model's words, as a line in the conversation."""

from __future__ import annotations

from lastword.card import one_line
from lastword.talk import Forgotten, Outgrown, Repairing, Retrying


def told(heard: Retrying | Repairing | Outgrown | Forgotten) -> str:
    """One sentence for the person."""
    match heard:
        case Retrying(problem, attempt):
            return f"Trying again ({attempt}): {one_line(problem.fact, 300)}"
        case Repairing(reason):
            # Its first line says what; the excerpts and hints below it are for whoever writes it again.
            first, _, _ = reason.partition("\n")
            return f"The model is told what was wrong with its message: {one_line(first, 300)}"
        case Outgrown():
            return (
                "This conversation is longer than the model can see. From now on its oldest turns are left out of "
                "what it is shown; here and in the memory they stay."
            )
    return "The server has forgotten this conversation. A new one begins; tools and state stay."
