"""Where other programs read which MCP servers they start. Our gateway is one of those: whoever writes these files can
take it away, or put a server beside it.

Only names are known here, and where it is remembered which files were wrapped (mcp/gateway.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from lastword.store import data_folder

# In a project, and in the person's home or where they moved it to.
NAMES = (".mcp.json", ".claude.json")


class _Wrapped(msgspec.Struct, frozen=True):
    """Of what is remembered of a client's file, where it lies."""

    file: str


def gateways_folder() -> Path:
    """Where a record lies for every file that was wrapped."""
    return data_folder(sys.platform, os.environ, Path.home()) / "gateways"


def wrapped_files() -> Iterator[str]:
    """The clients' files that were wrapped. A record that says nothing is none: only a person has changed it."""
    folder = gateways_folder()
    for record in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            yield msgspec.json.decode(record.read_bytes(), type=_Wrapped).file
        except (OSError, msgspec.DecodeError):
            continue
