"""Texts that people and models read, kept beside the tests: a change shows in the review.

Run with LASTWORD_SNAPSHOTS=write to write them anew, then look at the difference.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "snapshots"


def matches_snapshot(name: str, text: str) -> bool:
    """Whether a text is what it was when somebody last looked at it."""
    path = FOLDER / name
    if os.environ.get("LASTWORD_SNAPSHOTS") == "write":
        path.write_text(text)
    return path.read_text() == text
