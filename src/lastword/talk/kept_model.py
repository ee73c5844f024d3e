"""The model that a person chose on the page, also for the next start: its address, its name, and the key for it.

In a file that only they can read. Not in the store: that is exported, copied and shown, and a key is for nobody's eyes.
What is configured goes before it.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from lastword.errors import ConfigError
from lastword.store import make_private, open_to_read, sync_names

# An address, a name and a key are a tenth of this.
MAX_FILE_BYTES = 64 * 1024


class KeptModel(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed to ask it."""

    upstream: str
    model: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        """Without the key: whatever shows this may be kept somewhere."""
        return f"KeptModel(upstream={self.upstream!r}, model={self.model!r})"

    @property
    def words(self) -> str:
        """Which it is."""
        return f"{f'{self.model} at ' if self.model else ''}{self.upstream}"


def keep_model(file: Path, kept: KeptModel) -> None:
    """Write it down, in place of what was there. Whoever reads the file at the same time sees one of the two."""
    make_private(file.parent)
    new = file.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as opened:
        opened.write(msgspec.json.encode(kept))
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(new, file)
    sync_names(file.parent)


def read_kept_model(file: Path) -> KeptModel | None:
    """What was kept; None when nothing was. A file that others could have written or read is refused."""
    try:
        descriptor = open_to_read(file, os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ConfigError(f"the chosen model cannot be read: {problem.strerror}", place=str(file)) from None
    with os.fdopen(descriptor, "rb") as opened:
        facts = os.fstat(descriptor)
        if facts.st_uid != os.getuid() or facts.st_mode & 0o077:
            raise ConfigError(
                "others can read or write the file with the chosen model and its key",
                place=str(file),
                hint=f"make a new key, and remove the file: rm {file}",
            )
        try:
            if facts.st_size > MAX_FILE_BYTES:
                raise msgspec.DecodeError
            return msgspec.json.decode(opened.read(), type=KeptModel)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise ConfigError(
                "the file with the chosen model is damaged", place=str(file), hint="remove it, and choose again"
            ) from None
