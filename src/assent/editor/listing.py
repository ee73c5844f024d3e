"""Which files make up a project: everything below the folder, less what git is told to ignore.

`.gitignore` files count in every folder, the innermost first, as git reads them: the last matching pattern of the
innermost file that has one decides, and nothing below an ignored folder comes back. What lies outside the project is
not read, so a user's global ignore file does not count.
"""

from __future__ import annotations

import msgspec
from pathspec import GitIgnoreSpec

from assent.editor.encoding import decode
from assent.editor.folder import Folder, join
from assent.editor.paths import name_problem
from assent.errors import EditError

# More than a person or a model will read. Beyond it the listing says that it was cut.
MAX_LISTED_FILES = 100_000


class Listing(msgspec.Struct, frozen=True):
    """The folders and files of a project, sorted."""

    folders: list[str]
    files: list[str]
    cut: bool
    """Whether there are more than could be listed."""


def list_project(folder: Folder, *, limit: int = MAX_LISTED_FILES) -> Listing:
    """Walk the project once. Names that no path may hold, links and special files are not part of it."""
    folders: list[str] = []
    files: list[str] = []
    rules: dict[str, GitIgnoreSpec] = {}

    def enter(path: str) -> bool:
        return not _ignored(path + "/", rules)

    for path, _, names in folder.walk(enter):
        if path:
            folders.append(path)
        if ".gitignore" in names and (spec := _read_rules(folder, join(path, ".gitignore"))):
            rules[path] = spec
        for name in names:
            file = join(path, name)
            if name_problem(name) is None and not _ignored(file, rules):
                files.append(file)
        if len(files) + len(folders) > limit:
            return Listing(sorted(folders), sorted(files)[:limit], cut=True)
    return Listing(sorted(folders), sorted(files), cut=False)


def _read_rules(folder: Folder, path: str) -> GitIgnoreSpec | None:
    try:
        text = decode(folder.read(path) or b"")
    except EditError:
        return None
    try:
        return GitIgnoreSpec.from_lines((text or "").split("\n"))
    except ValueError:
        # A pattern that means nothing to git either; the file is then no help, and listing more is the safe side.
        return None


def _ignored(path: str, rules: dict[str, GitIgnoreSpec]) -> bool:
    """Whether the innermost rules that say anything about the path say that it is ignored."""
    folder = path.rstrip("/")
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in rules:
            below = path[len(folder) + 1 :] if folder else path
            decision = rules[folder].check_file(below).include
            if decision is not None:
                return decision
    return False
