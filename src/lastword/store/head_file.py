"""The last head that was seen of a store, in a small file outside of it: how a store is known that has fallen behind.

A store can lose its newest records without a trace: its log is deleted, it is restored from a copy, another is put in
its place. What is left is a chain that holds. Only somebody who remembers how far it went can tell; and approvals that
were spent in what is missing are unspent in what is left. So where the store ends is written here whenever something
was written that cannot be taken back, and read before anything of that kind is written again.

The file holds the head twice, and the older one is overwritten: a write that is torn by a crash costs nothing. It
only ever moves forward, whichever of several processes comes last; backwards only by a person's word.

Of a store in a file it lies beside that file (sqlite_file.py). Of a store on a server there is one for each user of a
machine, in the folder of the user's data. A machine that has none has seen nothing, and takes what it finds: so the
folder is to be kept, as the journal of a container's volume is.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from lastword.store.chain import GENESIS, Behind, Head, StoreError
from lastword.store.private_files import data_folder, make_private, sync_names

if TYPE_CHECKING:
    from lastword.store.address import PostgresAddress

# A disk writes a sector whole or not at all, so the two heads never share one.
SLOT_BYTES = 512
SLOTS = 2

log = logging.getLogger("lastword")


class HeadFile:
    """The file of one store. Nothing is kept open: it may be replaced by hand at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def files(self) -> tuple[Path, Path]:
        """The file, and the one that takes its place when it is made anew."""
        return self.path, self.path.with_name(f"{self.path.name}.new")

    def read(self) -> Head | None:
        """The head; None when there is no file. StoreError when there is something that is no head."""
        try:
            with self._opened(os.O_RDONLY, fcntl.LOCK_SH) as descriptor:
                return max(self._slots(descriptor), key=_seq)
        except FileNotFoundError:
            return None

    def known(self) -> Head | StoreError | None:
        """The head; None when none was seen yet. An error, not raised, when it cannot be read."""
        try:
            return self.read()
        except StoreError as problem:
            return problem

    def make(self, head: Head) -> None:
        """Make the file. Whoever calls this keeps others from making it too."""
        new = self.files[1]
        with self._explained():
            new.unlink(missing_ok=True)
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(new, flags, 0o600)
            try:
                os.write(descriptor, _slot(head) * SLOTS)
                _sync(descriptor)
            finally:
                os.close(descriptor)
            new.replace(self.path)
            sync_names(self.path.parent)

    def advance(self, head: Head) -> None:
        """Keep a head, unless one that is further was kept already."""
        try:
            with self._opened(os.O_RDWR, fcntl.LOCK_EX) as descriptor, self._explained():
                slots = self._slots(descriptor)
                if max(map(_seq, slots)) < head.seq:
                    older = min(range(SLOTS), key=lambda place: _seq(slots[place]))
                    os.pwrite(descriptor, _slot(head), older * SLOT_BYTES)
                    _sync(descriptor)
        except FileNotFoundError:
            raise StoreError(
                "the file that says how far the journal went was deleted at this moment",
                place=str(self.path),
                hint="lastword journal accept makes a new one",
            ) from None

    @contextmanager
    def _opened(self, flags: int, lock: int) -> Iterator[int]:
        try:
            # A link could lead to a head that somebody else moves, a pipe would let us wait for ever.
            descriptor = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise self._refusal(_words(problem)) from problem
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise self._refusal("it is not a file")
            fcntl.flock(descriptor, lock)
            yield descriptor
        finally:
            os.close(descriptor)

    def _slots(self, descriptor: int) -> list[Head | None]:
        with self._explained():
            content = os.pread(descriptor, SLOTS * SLOT_BYTES + 1, 0)
        slots = [_parse(content[place * SLOT_BYTES : (place + 1) * SLOT_BYTES]) for place in range(SLOTS)]
        if not any(slots) or len(content) != SLOTS * SLOT_BYTES:
            raise self._refusal("it holds no head")
        return slots

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            raise self._refusal(_words(problem)) from problem

    def _refusal(self, why: str) -> StoreError:
        return StoreError(
            f"the head that was last seen of the journal cannot be read or kept: {why}",
            place=str(self.path),
            hint="check its owner, mode and folder, or move it away; lastword journal accept makes a new one",
        )


class PostgresKnownHead:
    """The head that is kept here of one store on a server.

    The file has two names: one for the address, by which another journal in the place of ours is noticed, and one for
    the journal itself, by its first record. A replica that was promoted, or a copy that was restored, usually has
    another address: by the second name it is known again.
    """

    def __init__(self, folder: Path | None, address: PostgresAddress) -> None:
        self.folder = data_folder() / "heads" if folder is None else folder
        self._file = HeadFile(self.folder / f"{address.digest}-head")
        self._place = address.shown
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
            self._of_journal = self.folder / f"journal-{name}-head"

    def read(self) -> Head | StoreError | None:
        """The head; None when none was seen yet. An error, not raised, when it cannot be read."""
        self._join()
        return self._file.known()

    def refusal(self, seen: Head | StoreError | None, found: Head, digest: str | None) -> StoreError | None:
        """Why nothing may be written now that cannot be taken back. Where nothing was seen yet, this is seen now."""
        behind = missing(seen, found, digest)
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
            make_private(self.folder)
        except OSError as problem:
            raise StoreError(
                f"the folder for what was seen of the journal cannot be made: {problem.strerror}",
                place=str(self.folder),
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


def missing(known: Head | StoreError | None, found: Head, digest: str | None) -> Behind | None:
    """What a store lacks that ends at `found`, and whose record of the known number has this digest."""
    if known is None:
        return None
    if isinstance(known, StoreError):
        return Behind(known.fact, found, None)
    if known.digest == (GENESIS if not known.seq else digest):
        return None
    if known.seq > found.seq:
        # At least: what was written since it fell behind has taken the place of what is missing.
        count = known.seq - found.seq
        lost = "1 record is" if count == 1 else f"{count} records are"
        fact = f"at least {lost} missing: it ends at record {found.seq}, and record {known.seq} was seen"
    else:
        fact = f"record {known.seq} is not the one that was seen: another journal, or a copy that went its own way"
    return Behind(fact, found, known)


def start_refused(behind: Behind, place: str) -> StoreError:
    """Why nothing that cannot be taken back is written."""
    return StoreError(
        f"nothing approved starts here: {behind.fact}",
        place=place,
        hint="approvals that were spent may be unspent in it; lastword journal accept shows what is known and asks",
    )


def _slot(head: Head) -> bytes:
    """A head as it stands in the file: for a person one line, for a program with what shows that it is whole."""
    text = str(head)
    return f"{text} {_seal(text)}\n".encode().rjust(SLOT_BYTES)


def _parse(slot: bytes) -> Head | None:
    try:
        text, _, seal = slot.decode().strip().partition(" ")
        return Head.parse(text) if seal == _seal(text) else None
    except (UnicodeDecodeError, StoreError):
        return None


def _seal(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _words(problem: OSError) -> str:
    # The system speaks of too many levels of links.
    return "it is a link" if problem.errno == errno.ELOOP else problem.strerror or str(problem)


def _seq(head: Head | None) -> int:
    return -1 if head is None else head.seq


def _sync(descriptor: int) -> None:
    # Where the system has two kinds of sync, only the full one reaches the disk.
    if hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fdatasync(descriptor)
