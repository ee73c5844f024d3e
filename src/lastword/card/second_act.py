"""The word that is typed out before a call is allowed that cannot be undone, or does not say whether it can.

One press can be an accident. A word in one place and a press in another are none: every surface asks for both, and the
paths below /page/ refuse an answer that comes without the word. A tool that says `reversible` or `none` needs the press
alone.
"""

from __future__ import annotations

from lastword.consent import ApprovalRequest

WORD = "allow"


def word_for(request: ApprovalRequest) -> str | None:
    """The word that this call needs besides a press; None where the press is enough."""
    return WORD if request.manifest.counts_as_irreversible else None


def why_two(request: ApprovalRequest) -> str:
    """Why it takes two acts, as the beginning of a sentence."""
    is_said = request.manifest.effect == "irreversible"
    return "this cannot be undone" if is_said else "its tool does not say whether this can be undone"


def is_typed(text: str | None, word: str) -> bool:
    """Whether this is the word. A phone begins it with a capital, and ends it with a space."""
    return text is not None and text.strip().casefold() == word
