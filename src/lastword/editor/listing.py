"""Which files make up a project: everything below the folder, less what git is told to ignore.

`.gitignore` files count in every folder, the innermost first, as git reads them: the last matching pattern of the
innermost file that has one decides, and nothing below an ignored folder comes back. What lies outside the project is
not read, so a user's global ignore file does not count.
"""

from __future__ import annotations

import msgspec

from lastword.editor.encoding import decode
from lastword.editor.folder import Folder, join
from lastword.editor.gitignore import Rule, decide, parse_rules
from lastword.editor.paths import name_problem
from lastword.errors import EditError

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
    rules: dict[str, list[Rule]] = {}

    def enter(path: str) -> bool:
        return not _ignored(path, rules, is_folder=True)

    for path, _, names in folder.walk(enter):
        if path:
            folders.append(path)
        if ".gitignore" in names and (read := _read_rules(folder, join(path, ".gitignore"))):
            rules[path] = read
        for name in names:
            file = join(path, name)
            if name_problem(name) is None and not _ignored(file, rules, is_folder=False):
                files.append(file)
        if len(files) + len(folders) > limit:
            return Listing(sorted(folders), sorted(files)[:limit], cut=True)
    return Listing(sorted(folders), sorted(files), cut=False)


def _read_rules(folder: Folder, path: str) -> list[Rule]:
    try:
        return parse_rules(decode(folder.read(path) or b"") or "")
    except EditError:
        # A link, or larger than any such file: no rules, and listing more is the safe side.
        return []


def _ignored(path: str, rules: dict[str, list[Rule]], *, is_folder: bool) -> bool:
    """Whether the innermost file that says anything about the path says that it is ignored."""
    folder = path
    while folder:
        folder = folder.rpartition("/")[0]
        if folder in rules:
            decision = decide(rules[folder], path[len(folder) + 1 :] if folder else path, is_folder=is_folder)
            if decision is not None:
                return decision
    return False
