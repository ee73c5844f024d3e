"""What a path may look like before anything on disk is asked.

A path has one spelling, so that what was shown and what is written can be compared as text. These rules keep out what
no project needs and what some system reads differently from how it looks. They are manners, not the wall: that nothing
leads out of the project, and that no device is opened, is enforced with directory file descriptors, in folder.py.
Names that are devices elsewhere (`aux.c`, `nul`) are ordinary files on the systems that this runs on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from lastword.errors import PathRefused

# Longer and deeper than any path a person reads on a card; below every system's own limit.
MAX_PATH_LENGTH = 1000
MAX_PATH_PARTS = 64

TEMPORARY = re.compile(r"\.lastword-[0-9a-f]{16}\.tmp")
"""The names of files that are being written. Nobody else may use them, and they are never listed."""


PATHS = ("path", "new_path", "folder")
"""The arguments of editor tools that are paths."""


def plain(path: str) -> str:
    """The one spelling of a path that a model wrote in another: `./src//main.py` is `src/main.py`."""
    if path.startswith("/"):
        return path
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def with_plain_paths(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an editor tool with every path in its one spelling, those of the edits of a batch as well."""
    spelt: dict[str, Any] = {name: plain(arguments[name]) for name in PATHS if isinstance(arguments.get(name), str)}
    if isinstance(edits := arguments.get("edits"), list):
        spelt["edits"] = [with_plain_paths(edit) for edit in edits]
    return {**arguments, **spelt}


def parts_of(path: str) -> tuple[str, ...]:
    """The names on the way to a file, outermost first; refuses what is not a plain relative path."""
    if not isinstance(path, str) or not path:
        raise PathRefused(f"{path!r} is not a path", hint="give a path relative to the project, such as src/main.py")
    if len(path) > MAX_PATH_LENGTH:
        raise PathRefused(f"a path of {len(path)} characters; at most {MAX_PATH_LENGTH} are taken")
    shown = ascii(path)[1:-1] if _hidden(path) else path
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:/", path):
        raise PathRefused(
            "the path is absolute", place=shown, hint="give a path relative to the project, such as src/main.py"
        )
    parts = tuple(path.split("/"))
    if len(parts) > MAX_PATH_PARTS:
        raise PathRefused(f"a path of {len(parts)} parts; at most {MAX_PATH_PARTS} are taken", place=shown)
    if ".." in parts:
        raise PathRefused("the path leads upwards", place=shown, hint="name the file without ..")
    if "" in parts or "." in parts:
        plain = "/".join(part for part in parts if part not in ("", "."))
        raise PathRefused("the path has empty parts", place=shown, hint=f"write {plain}" if plain else None)
    for part in parts:
        if problem := name_problem(part):
            raise PathRefused(problem, place=shown)
    return parts


def name_problem(name: str) -> str | None:
    """What is wrong with one name of a path, in words, or None."""
    if not (name.isascii() and name.isprintable()) and (hidden := _hidden(name)):
        return f"the name holds U+{ord(hidden):04X}, which cannot be seen or typed"
    if "\\" in name:
        return "the name holds a backslash; parts of a path are separated by /"
    if name[-1] in ". ":
        return "the name ends with a dot or a space, which some systems drop"
    folded = name.casefold()
    if folded == ".git":
        return "git's own files are not part of the project"
    if TEMPORARY.fullmatch(folded):
        return "the name is kept for files that are being written"
    return None


def folded(name: str) -> str:
    """What a name is on a system that ignores case and the way accents are written."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _hidden(text: str) -> str | None:
    """The first control, format, surrogate or line-breaking character."""
    return next((c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")), None)
