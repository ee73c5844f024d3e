"""A settings file of another program with one value of it changed, and every byte around that as it was."""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path
from typing import Any

from lastword.errors import ConfigError
from lastword.mcp.definitions import marked

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[{}\[\],:]|[^\s{}\[\],:"/]+', re.DOTALL)
_SECRET = re.compile(r'(?i)("[^"]*(?:key|token|secret|password|authorization)[^"]*"\s*:\s*")[^"]*(?=")')


def shown_change(before: bytes, after: bytes, file: Path) -> list[str]:
    """What would change in the file, as a diff. Values that look like secrets are not shown again."""
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    rows = difflib.unified_diff(old, new, str(file), str(file), lineterm="", n=1)
    return [_SECRET.sub(r"\1…", marked(row)) for row in rows]


def with_value(text: bytes, key: str, value: dict[str, Any]) -> bytes:
    """The file with another value of a key of its outermost object, and every byte around it as it was."""
    decoded = text.decode("utf-8")
    start, end = _span(decoded, key)
    indent = re.search(r"[ \t]*\Z", decoded[: decoded.rfind(f'"{key}"', 0, start)])
    line_end = "\r\n" if "\r\n" in decoded else "\n"
    made = json.dumps(value, indent=2, ensure_ascii=False).replace("\n", line_end + (indent[0] if indent else ""))
    return f"{decoded[:start]}{made}{decoded[end:]}".encode()


def _span(text: str, key: str) -> tuple[int, int]:
    """Where the value of a key of the outermost object stands."""
    depth, last, start, wanted = 0, "", -1, False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if mark.startswith(("//", "/*")):
            continue
        if wanted and start < 0:
            start = token.start()
        depth += (mark in "{[") - (mark in "}]")
        if wanted and depth == 1:
            return start, token.end()
        if depth == 1 and mark == ":" and last == json.dumps(key):
            wanted = True
        last = mark
    raise ConfigError(f"{key} is written in a way that cannot be changed without touching more of it")


def write_whole(file: Path, data: bytes, mode: int) -> None:
    """Replace a file, whole or not at all."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as out:
        os.fchmod(descriptor, mode)
        out.write(data)
        out.flush()
        os.fsync(descriptor)
    os.replace(part, file)
