"""Tools that look at the whole project: they list it, search it and lint it, and ask nobody.

Each gives a script a value it can go on with: paths, matches with their lines, findings. What was not looked at is
named with the reason, as data and in a sentence; private files are among it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from typing import Annotated, Any

import msgspec

from lastword import values
from lastword.editor.leftout import grouped, in_words
from lastword.editor.listing import MAX_LISTED_FILES
from lastword.editor.looking import LookingEditor
from lastword.editor.offloop import off_loop
from lastword.editor.paths import plain
from lastword.editor.provider import LeftOut, Listing
from lastword.editor.recording import SealedEditor
from lastword.editor.search import MAX_MATCHES, Found, search
from lastword.editor.tools.reading import no_such_file, reader
from lastword.errors import EditError

# More paths than anybody looks through. A folder or a pattern makes them fewer.
MAX_LISTED = 2_000
# What a search gives when nobody says how much.
MATCHES = 100
# A result beyond 100,000 characters would be cut. Findings are given as long as they fit, one by one.
MAX_FINDINGS_CHARACTERS = 60_000


async def list_files(editor: SealedEditor, folder: str = "", pattern: str = "") -> dict[str, Any]:
    """Lists the files of the project. Gives files (a list of paths), left_out (what is in the folder and not in the
    list: groups of {why, count, paths}), stopped (why there may be more, or null) and note (left_out in a sentence).

    Args:
        folder: Only files below this folder, such as src.
        pattern: Only paths that match this pattern, such as *.py or docs/*.md; * also matches across folders.
    """
    folder = plain(folder)
    listing = await _listing(editor, folder, pattern)
    files = listing.files
    if len(files) > MAX_LISTED:
        start = len(folder) + 1 if folder else 0
        below = Counter(file[start:].partition("/")[0] for file in files if "/" in file[start:])
        largest = ", ".join(f"{name} ({count:,})" for name, count in below.most_common(12))
        raise EditError(
            f"{len(files):,} files; at most {MAX_LISTED:,} are listed at once",
            place=folder or None,
            hint=f"name a folder or a pattern; the largest folders are {largest}" if below else "name a pattern",
        )
    return {"files": files, "stopped": _cut(listing)} | _told(listing.left_out)


async def search_files(
    query: str,
    editor: SealedEditor,
    folder: str = "",
    pattern: str = "",
    regex: bool = False,
    ignore_case: bool = False,
    max_matches: Annotated[int, msgspec.Meta(ge=1, le=MAX_MATCHES)] = MATCHES,
) -> dict[str, Any]:
    """Finds the lines of the project's files that hold a text. Gives matches ({path, line, text}), files (each path
    once), searched (how many files), stopped (why there may be more, or null), left_out (files that were not searched:
    groups of {why, count, paths}) and note (left_out in a sentence).

    Args:
        query: The text to find, literally; or a regular expression, with regex.
        folder: Only files below this folder, such as src.
        pattern: Only paths that match this pattern, such as *.py.
        regex: Whether the query is a regular expression, matched line by line, without look-around.
        ignore_case: Whether upper and lower case are the same.
        max_matches: How many lines at most.
    """
    listing = await _listing(editor, plain(folder), pattern)
    read = editor.reader() if editor.has_bytes else await _texts(editor, listing.files)

    def find() -> Found:
        return search(listing.files, read, query, regex=regex, ignore_case=ignore_case, max_matches=max_matches)

    found = await off_loop(find)
    return {
        "matches": [msgspec.to_builtins(match) for match in found.matches],
        "files": list(dict.fromkeys(match.path for match in found.matches)),
        "searched": found.searched,
        "stopped": found.stopped or _cut(listing),
    } | _told((*found.left_out, *listing.left_out))


async def lint_files(editor: SealedEditor, path: str = "") -> dict[str, Any]:
    """Says what the linters find in the project. Gives findings ({path, line, message}, empty when there are none),
    checked (how many files), stopped (why there may be more, or null), left_out (files that were not checked: groups
    of {why, count, paths}) and note (left_out in a sentence).

    Args:
        path: Only this file, or what is below this folder.
    """
    path = plain(path)
    if path and not editor.exists(path):
        raise await no_such_file(editor, path)
    return await off_loop(_report, editor, path)


def _report(editor: SealedEditor, path: str) -> dict[str, Any]:
    report = editor.lint_report()
    found = [{"path": file, **one} for file, ones in report.findings.items() if is_below(file, path) for one in ones]
    given = _as_many_as_fit(found)
    stopped = None
    if len(given) < len(found):
        stopped = f"the first {len(given):,} of {len(found):,} findings are given; name a file or a folder, by path"
    checked = sum(is_below(file, path) for file in report.checked)
    left_out = [one for one in report.left_out if is_below(one.path, path)]
    return {"findings": given, "checked": checked, "stopped": stopped} | _told(left_out)


def _as_many_as_fit(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Whole findings, as many as a result may hold: JSON that ends in the middle of one cannot be read at all."""
    room = MAX_FINDINGS_CHARACTERS
    for number, one in enumerate(found):
        room -= len(values.canonical(one)) + 1
        if room < 0:
            return found[:number]
    return found


def is_below(path: str, folder: str) -> bool:
    """Whether a path is this file, or lies below this folder. Everything lies below the project itself."""
    return not folder or path == folder or path.startswith(f"{folder}/")


async def _listing(editor: LookingEditor, folder: str, pattern: str) -> Listing:
    """What is below a folder and fits a pattern, and what was left out there."""
    listing = await off_loop(editor.listing)
    files = [file for file in listing.files if is_below(file, folder)]
    if folder and not files:
        raise EditError("there is no folder of that name with files in it", place=folder)
    left_out = [one for one in listing.left_out if is_below(one.path, folder)]
    if pattern:
        pattern = pattern.removeprefix("./")
        files = [file for file in files if fnmatchcase(file, pattern)]
        # What is below a folder that was not entered is not known, so the folder itself stays among them.
        left_out = [one for one in left_out if one.path.endswith("/") or fnmatchcase(one.path, pattern)]
    return Listing(listing.folders, files, tuple(left_out), listing.cut)


async def _texts(editor: LookingEditor, files: list[str]) -> Callable[[str], bytes | None]:
    """A way to read the files of an editor that has no bytes; what it refuses, it refuses when it is read."""
    texts: dict[str, bytes | EditError | None] = {}
    for file in files:
        try:
            text = await editor.get_file_content(file)
        except EditError as problem:
            texts[file] = problem
            continue
        texts[file] = None if text is None else text.encode("utf-8", "surrogatepass")

    def read(path: str) -> bytes | None:
        found = texts.get(path)
        if isinstance(found, EditError):
            raise found
        return found

    return read


def _told(left_out: Iterable[LeftOut]) -> dict[str, Any]:
    groups = grouped(left_out)
    return {"left_out": msgspec.to_builtins(groups), "note": in_words(groups)}


def _cut(listing: Listing) -> str | None:
    return f"the project has more than the {MAX_LISTED_FILES:,} files that are looked at" if listing.cut else None


SURVEYORS = (
    reader(list_files, icon="folder", color="systemGray"),
    reader(search_files, icon="magnifyingglass", color="systemGray"),
    reader(lint_files, icon="checkmark.circle", color="systemGray"),
)
