"""The key that seals what a client carries from one round to the next: in a file that only its owner can read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from lastword.errors import ConfigError
from lastword.store import make_private

KEY_BYTES = 32


def sealing_key(file: Path) -> bytes:
    """The key of this person, made when it is first needed. It outlives the process, so that rounds do, too."""
    make_private(file.parent)
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        out.write(secrets.token_bytes(KEY_BYTES))
        out.flush()
        os.fsync(descriptor)
    try:
        os.link(part, file)  # Of two that make one at once, the first one's is everybody's.
    except FileExistsError:
        pass
    finally:
        part.unlink()
    if file.stat().st_mode & 0o077:
        raise ConfigError("others could read this key", place=str(file), hint="take it away; a new one is made")
    key = file.read_bytes()
    if len(key) != KEY_BYTES:
        raise ConfigError("this is no key", place=str(file), hint="take it away; a new one is made")
    return key
