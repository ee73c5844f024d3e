"""Whether a store in PostgreSQL holds what this machine saw of it: its records against the head that is kept here.

There is a head file for each store and each user of a machine, in the folder of the user's data. A machine that has
none has seen nothing, and takes what it finds: so the folder is to be kept, as the journal of a container's volume is.
"""

from __future__ import annotations

from pathlib import Path

from lastword.errors import StoreError
from lastword.store import GENESIS, Behind, Head
from lastword.store.folders import make_private
from lastword.store.head_file import HeadFile, lacking, start_refused


class PostgresSeen:
    """The head that is kept of one store."""

    def __init__(self, file: Path, place: str) -> None:
        self._file = HeadFile(file)
        self._place = place

    def read(self) -> Head | StoreError | None:
        """The head; None when none was seen yet. An error, not raised, when it cannot be read."""
        try:
            return self._file.read()
        except StoreError as problem:
            return problem

    def missing(self, seen: Head | StoreError | None, found: Head, digest: str | None) -> Behind | None:
        """What a store lacks that ends at `found`, and whose record of the seen number has this digest."""
        if seen is None:
            return None
        if isinstance(seen, StoreError):
            return Behind(seen.fact, found, None)
        if seen.digest == (GENESIS if not seen.seq else digest):
            return None
        return lacking(found, seen)

    def refusal(self, seen: Head | StoreError | None, found: Head, digest: str | None) -> StoreError | None:
        """Why nothing may be written now that cannot be taken back. Where nothing was seen yet, this is seen now."""
        behind = self.missing(seen, found, digest)
        if behind is not None:
            return start_refused(behind, self._place)
        if seen is not None:
            return None
        try:
            self.accept(found)
        except StoreError as problem:
            return problem
        return None

    def accept(self, head: Head) -> None:
        """Let this head count, whatever was there before."""
        try:
            make_private(self._file.path.parent)
        except OSError as problem:
            raise StoreError(
                f"the folder for what was seen of the journal cannot be made: {problem.strerror}",
                place=str(self._file.path.parent),
                hint="check its owner and mode",
            ) from problem
        self._file.make(head)

    def keep(self, head: Head) -> None:
        """Keep a head that is durable in the store."""
        self._file.advance(head)
