"""Getting out of the journal what calls returned beside their values: named in a list, saved into a folder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from pathlib import Path

from lastword.consent import Kept, clean_name, size_in_words
from lastword.display import visible
from lastword.errors import LastWordError
from lastword.journal import Journal, content_of
from lastword.store import Record


def held_by(records: Iterable[Record]) -> list[tuple[str, Kept]]:
    """What these records hold, each with the call that returned it."""
    return [(record.subject, kept) for record in records if record.kind == "finished" for kept in content_of(record)]


def listed(id: str, held: Sequence[tuple[str, Kept]]) -> Iterator[str]:
    """What there is, and how to get it."""
    if not held:
        return
    yield "Kept:"
    for call_id, kept in held:
        about = f": {kept.alt}" if kept.alt else ""
        of = "" if call_id == id else f" of {call_id}"
        facts = f"{kept.name}{of}, {kept.media_type}, {size_in_words(kept.size)}{about}"
        yield f"  {kept.kind:5}  {visible(facts)}"
    yield f"lastword show {id} --save DIR writes {'it' if len(held) == 1 else 'them'} into a folder."


async def save(journal: Journal, held: Sequence[tuple[str, Kept]], folder: Path) -> list[Path]:
    """Write everything into a folder, over nothing that is there."""
    try:
        saved = []
        for call_id, named in held:
            kept, data = await journal.content(call_id, named.digest)  # Proven, whatever the list says.
            saved.append(_write(folder, clean_name(named.name, kept.kind, kept.media_type), data))
        return saved
    except OSError as problem:
        raise LastWordError(f"it cannot be written: {problem.strerror}", place=str(folder)) from None


def _write(folder: Path, name: str, data: bytes) -> Path:
    """A new file of this name, or with a number behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, ending = os.path.splitext(name)
    for number in count(1):
        path = folder / (name if number == 1 else f"{stem}-{number}{ending}")
        try:
            # A link that somebody put there beforehand is not followed either.
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            continue
        return path
    raise AssertionError
