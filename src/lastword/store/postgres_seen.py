"""Whether a store in PostgreSQL holds what this machine saw of it: its records against the head that is kept here.

There is a head file for each store and each user of a machine, in the folder of the user's data. A machine that has
none has seen nothing, and takes what it finds: so the folder is to be kept, as the journal of a container's volume is.

The file has two names: one for the address, by which another journal in the place of ours is noticed, and one for the
journal itself, by its first record. A replica that was promoted, or a copy that was restored, usually has another
address: by the second name it is known again.
"""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from pathlib import Path

from lastword.errors import StoreError
from lastword.store.contract import GENESIS, Behind, Head
from lastword.store.folders import make_private, sync_names
from lastword.store.head_file import HeadFile, lacking, start_refused

log = logging.getLogger("lastword")


class PostgresSeen:
    """The head that is kept of one store."""

    def __init__(self, file: Path, place: str) -> None:
        self._file = HeadFile(file)
        self._place = place
        self._of_journal: Path | None = None
        self._is_joined = False

    @property
    def knows_first(self) -> bool:
        """Whether it was said which journal this is."""
        return self._of_journal is not None

    def know_first(self, digest: str | None) -> None:
        """Say which journal this is, by the digest of its first record; None when there is none yet."""
        if digest is not None:
            name = sha256(digest.encode()).hexdigest()[:32]
            self._of_journal = self._file.path.with_name(f"journal-{name}-head")

    def read(self) -> Head | StoreError | None:
        """The head; None when none was seen yet. An error, not raised, when it cannot be read."""
        try:
            self._join()
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
        if self._of_journal is not None:
            # The file is a new one, and it is the one that counts for this journal from now on.
            self._of_journal.unlink(missing_ok=True)
            self._is_joined = False
            self._join()

    def keep(self, head: Head) -> None:
        """Keep a head that is durable in the store."""
        self._file.advance(head)

    def _join(self) -> None:
        """Give the file both of its names. Under an address that is new here, a journal that is known gets its head."""
        if self._of_journal is None or self._is_joined:
            return
        here, of_journal = self._file.path, self._of_journal
        try:
            for known, new in ((here, of_journal), (of_journal, here)):
                if known.exists() and not new.exists():
                    os.link(known, new, follow_symlinks=False)
                    sync_names(here.parent)
        except FileExistsError:
            pass  # Another process was as fast.
        except OSError as problem:
            # What is seen under this address counts as before.
            log.warning(
                "%s: under another address this journal would not be known again: %s", here.parent, problem.strerror
            )
        self._is_joined = here.exists()
