"""A disk that can fail: it loses power, fills up, reports errors. SQLite writes to it through a VFS of its own.

Everything is written to real files, as always. Beside them the disk remembers what of each file a real disk would be
sure to hold: its content at the last sync, and the writes since. When the power goes, a seeded choice of those writes
is there, in any order, whole or torn; the rest is not. Names that were made or deleted are sure once the folder was
synced.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw
from typing_extensions import Buffer

SECTOR = 512

# Called with the operation (write, sync, truncate, delete, read, control) and the file's name; may raise.
Fault = Callable[[str, str], None]


@dataclass
class Image:
    """What a disk holds of one file."""

    sure: bytes = b""
    unsure: list[tuple[int, bytes] | int] = field(default_factory=list)
    """Writes as (offset, bytes), truncations as a size."""
    name_is_sure: bool = False
    deleted: bool = False
    before: "Image | None" = None
    """The deleted file whose name this one took, while the name may still lead to either."""

    def sync(self) -> None:
        content = bytearray(self.sure)
        for change in self.unsure:
            _apply(content, change)
        self.sure, self.unsure = bytes(content), []

    def after_a_cut(self, chance: random.Random) -> bytes | None:
        """What is found afterwards; None when there is no file of that name."""
        if self.deleted and chance.random() < 0.5:
            return None
        if not self.name_is_sure and chance.random() < 0.5:
            return self.before.after_a_cut(chance) if self.before else None
        content = bytearray(self.sure)
        kept = chance.choice([0.0, 0.5, 0.9, 1.0])
        changes = [change for change in self.unsure if chance.random() < kept]
        if chance.random() < 0.3:
            chance.shuffle(changes)
        for change in changes:
            if isinstance(change, tuple) and chance.random() < 0.2:
                offset, data = change
                torn = chance.randrange(len(data) + 1)
                change = (offset, data[: torn if chance.random() < 0.3 else torn // SECTOR * SECTOR])
            _apply(content, change)
        return bytes(content)


def _apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        del content[change:]
        return
    offset, data = change
    if not data:
        return
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


class Disk(apsw.VFS):
    """The default disk of every connection that is opened while `failing_disk` lasts."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "unix")
        self.images: dict[str, Image] = {}
        self.fault: Fault | None = None
        self.operations = 0
        self.cut_at: int | None = None
        self.found: dict[str, bytes] | None = None
        """After a cut: the files as they are when the power is back."""
        self._chance = random.Random(0)

    def cut_power_at(self, operation: int, seed: int) -> None:
        self.cut_at = operation
        self._chance = random.Random(seed)

    def replace(self) -> None:
        """A new disk: nothing fails any more."""
        self.fault = self.cut_at = None

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        image = self.images.get(Path(path).name)
        if image is None or image.deleted:
            image = self.images[Path(path).name] = Image(before=image)
        return DiskFile(self, image, path, name, flags)

    def xDelete(self, path: str, sync_folder: bool) -> None:
        self.operate("delete", path)
        super().xDelete(path, sync_folder)
        if image := self.images.get(Path(path).name):
            image.deleted = True
        if sync_folder:
            self.sync_folder()

    def sync_folder(self) -> None:
        """From here on every name is sure, and what was deleted stays deleted."""
        self.images = {name: image for name, image in self.images.items() if not image.deleted}
        for image in self.images.values():
            image.name_is_sure = True

    def operate(self, kind: str, path: str) -> None:
        """Count an operation, and fail if it is time to."""
        if kind not in ("read", "control"):
            self.operations += 1
        if self.cut_at is not None and self.operations >= self.cut_at:
            if self.found is None:
                self.found = {}
                for name, image in self.images.items():
                    if (content := image.after_a_cut(self._chance)) is not None:
                        self.found[name] = content
            raise apsw.IOError("the power is gone")
        if self.fault is not None:
            self.fault(kind, Path(path).name)


class DiskFile(apsw.VFSFile):
    """A file on it."""

    def __init__(
        self, disk: Disk, image: Image, path: str, name: apsw.URIFilename | str | None, flags: list[int]
    ) -> None:
        super().__init__("unix", name, flags)
        self._disk = disk
        self._image = image
        self._path = path
        if path.endswith(".db"):
            # Made before SQLite sees it, with its name synced.
            image.name_is_sure = True

    def xRead(self, amount: int, offset: int) -> bytes:
        self._disk.operate("read", self._path)
        return super().xRead(amount, offset)

    def xWrite(self, data: Buffer, offset: int) -> None:
        # Before the operation: power that goes during a write may leave the write behind.
        self._image.unsure.append((offset, bytes(data)))
        self._disk.operate("write", self._path)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self._image.unsure.append(size)
        self._disk.operate("truncate", self._path)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        self._disk.operate("sync", self._path)
        super().xSync(flags)
        self._image.sync()
        if not self._image.name_is_sure:
            # SQLite syncs the folder with the first sync of a log that it made.
            self._disk.sync_folder()

    def xFileControl(self, operation: int, pointer: int) -> bool:
        self._disk.operate(f"control {operation}", self._path)
        return super().xFileControl(operation, pointer)


@contextmanager
def failing_disk() -> Iterator[Disk]:
    """Every connection opened inside is on one new disk."""
    disk = Disk("failing-disk")
    apsw.set_default_vfs("failing-disk")
    try:
        yield disk
    finally:
        apsw.set_default_vfs("unix")
        disk.unregister()
