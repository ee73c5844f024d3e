"""Which files make up a project: everything below the folder, less what git is told to ignore.

`.gitignore` files count in every folder, the innermost first, as git reads them: the last matching pattern of the
innermost file that has one decides, and nothing below an ignored folder comes back. What lies outside the project is
not read, so a user's global ignore file does not count.
"""

from __future__ import annotations

from collections.abc import Callable

from lastword.editor.encoding import decode
from lastword.editor.folder import Folder, join
from lastword.editor.gitignore import Rule, decide, parse_rules
from lastword.editor.paths import name_problem, parts_of
from lastword.editor.provider import MAX_FILE_BYTES, LeftOut, Listing
from lastword.errors import EditError

# More than a person or a model will read. Beyond it the listing says that it was cut.
MAX_LISTED_FILES = 100_000

IGNORED = "ignored by git"


def list_project(folder: Folder, *, limit: int = MAX_LISTED_FILES) -> Listing:
    """Walk the project once. Names that no path may hold, links and special files are not part of it."""
    folders: list[str] = []
    files: list[str] = []
    left_out: list[LeftOut] = []
    ignoring = Ignoring(folder)

    def enter(path: str) -> bool:
        if ignoring.ignores(path, is_folder=True):
            left_out.append(LeftOut(path + "/", IGNORED))
            return False
        return True

    for path, _, names, not_part in folder.walk(enter):
        if path:
            folders.append(path)
        left_out += not_part
        ignoring.look_in(path, has_file=".gitignore" in names)
        for name in names:
            file = join(path, name)
            if name_problem(name) is not None:
                continue
            if ignoring.ignores(file, is_folder=False):
                left_out.append(LeftOut(file, IGNORED))
            else:
                files.append(file)
        if len(files) + len(folders) > limit:
            return Listing(sorted(folders), sorted(files)[:limit], _by_path(left_out), cut=True)
    return Listing(sorted(folders), sorted(files), _by_path(left_out))


class Ignoring:
    """What the `.gitignore` files of a project say. Each is read once, so this is good for one piece of work."""

    def __init__(self, folder: Folder, read: Callable[[Folder, str], str] | None = None) -> None:
        self._folder = folder
        self._read = read or _text_of
        self._rules: dict[str, list[Rule]] = {}

    def look_in(self, folder: str, *, has_file: bool = True) -> None:
        """Read the file of one folder, unless it is known."""
        if folder not in self._rules:
            text = self._read(self._folder, join(folder, ".gitignore")) if has_file else ""
            self._rules[folder] = parse_rules(text)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the innermost file that says anything about the path says that it is ignored.

        The folders above it must have been looked in, and must not be ignored themselves.
        """
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            if rules := self._rules.get(folder):
                decision = decide(rules, path[len(folder) + 1 :] if folder else path, is_folder=is_folder)
                if decision is not None:
                    return decision
        return False

    def covers(self, path: str) -> bool:
        """Whether a file is ignored, by itself or with a folder that it lies in."""
        parts = parts_of(path)
        for end in range(1, len(parts) + 1):
            self.look_in("/".join(parts[: end - 1]))
            if self.ignores("/".join(parts[:end]), is_folder=end < len(parts)):
                return True
        return False


def whatever_it_holds(folder: Folder, path: str) -> str:
    """The text of an ignore file, as far as it is one: for whoever would rather ignore too much than too little.

    A link is no ignore file to git either.
    """
    try:
        with folder.opened(path) as file:
            return "" if file is None else (file.read(MAX_FILE_BYTES) or b"").decode("utf-8", "replace")
    except EditError:
        return ""


def _text_of(folder: Folder, path: str) -> str:
    try:
        return decode(folder.read(path) or b"") or ""
    except EditError:
        # A link, or larger than any such file: no rules, and listing more is the safe side.
        return ""


def _by_path(left_out: list[LeftOut]) -> tuple[LeftOut, ...]:
    return tuple(sorted(left_out, key=lambda one: one.path))
