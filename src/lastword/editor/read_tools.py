"""Tools that look: they read one file, or list, search and lint the whole project.

What does not fit is refused with a way to ask for less, and never cut in silence: half a file that looks like a whole
one is how a model comes to delete the other half. Each tool gives a script a value it can go on with; what was not
looked at is named with the reason, as data and in a sentence.

Reading asks nobody, unless the file is private: what is in such a file goes to the assistant, and to whoever runs its
model, only when a person said so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import wraps
from typing import Annotated, Any

import msgspec

from lastword import __version__
from lastword.editor.provider import (
    MAX_LISTED_FILES,
    EditError,
    LeftOut,
    Listing,
    TooLarge,
    is_below,
    off_loop,
    plain,
    spelt,
)
from lastword.editor.recording import LookingEditor, RecordingEditor
from lastword.editor.search import MAX_MATCHES, Found, search
from lastword.editor.text import Part, lines_of
from lastword.tools import Tool

# A result beyond 100,000 characters would be cut; a text must come whole or not at all.
MAX_READ_CHARACTERS = 80_000
# The longest line of which a part can be read, so that it fits into memory whole.
MAX_LINE_CHARACTERS = 4_000_000
# More paths than anybody looks through. A folder or a pattern makes them fewer.
MAX_LISTED = 2_000
# What a search gives when nobody says how much.
MATCHES = 100
# A result beyond 100,000 characters would be cut. Findings are given as long as they fit, one by one.
MAX_FINDINGS_CHARACTERS = 60_000
# The paths that are named for one reason. The others are counted: a thousand ignored files are no news.
NAMED = 10

Number = Annotated[int, msgspec.Meta(ge=1)]


async def read_file(
    path: str,
    editor: LookingEditor,
    first_line: Number = 1,
    last_line: Number | None = None,
    numbered: bool = False,
    first_character: Number | None = None,
    last_character: Number | None = None,
) -> str:
    """Reads a text file of the project, whole or some of its lines, exactly as it stands.

    Args:
        path: The file, relative to the project, such as src/main.py.
        first_line: The first line to read; the first line of a file is 1.
        last_line: The last line to read; without it, the last one of the file.
        numbered: Whether each line is preceded by its number and a tab, for edits by line.
        first_character: Only for one line that is too long to be read whole: its first character to read, from 1.
        last_character: The last character of that line to read; without it, the last one of the line.
    """
    path = plain(path)
    if first_character is not None or last_character is not None:
        return await _part_of_line(editor, path, first_line, last_line, first_character or 1, last_character)
    part = await _part(editor, path, first_line, last_line, MAX_READ_CHARACTERS)
    lines = part.lines
    if numbered:
        lines = [f"{number}\t{line}" for number, line in enumerate(lines, first_line)]
    fitting = _fitting(lines, MAX_READ_CHARACTERS)
    if part.is_whole and fitting == len(lines):
        return "".join(lines)
    raise EditError(
        f"this is more than the {MAX_READ_CHARACTERS:,} characters that are read at once",
        place=path,
        hint=f"read a part at a time, with first_line and last_line: {first_line} to {first_line + fitting - 1} fits"
        if fitting
        else f"line {first_line} alone is longer: read a part of it, with first_character and last_character",
    )


async def ask_to_read(params: dict[str, Any], editor: RecordingEditor) -> dict[str, Any]:
    """The card for a private file. What is in the file is not on it: somebody may be looking over a shoulder."""
    path = plain(params["path"])
    try:
        if not editor.exists(path):
            raise await editor.no_such_file(path)
        why = await off_loop(editor.privacy(), path)
        if why is None:
            raise EditError("this file is not private", place=path, hint="read_file reads it without asking anybody")
        await _note_digest(editor, path)
    except EditError as problem:
        raise problem.as_tool_error() from problem
    return {
        "title": f"Read {path}",
        "message": f"{path} is private: {why}. {_which_part(params)} would be given to the assistant, and with it to "
        "whoever runs its model. That cannot be taken back.",
        "primary_button_label": "Let it read",
    }


async def _note_digest(editor: RecordingEditor, path: str) -> None:
    """Whoever says yes says it to the file as it is now."""
    try:
        await editor.get_file_content(path)
    except TooLarge:
        return  # Such a file is read a part at a time, and its digest would take as long as reading all of it.


def _which_part(params: dict[str, Any]) -> str:
    first, last = params["first_line"], params.get("last_line")
    if params.get("first_character") is not None or params.get("last_character") is not None:
        return f"A part of line {first}"
    if last is None:
        return "Its whole text" if first == 1 else f"Its text from line {first} on"
    return f"Line {first}" if first == last else f"Lines {first} to {last}"


async def _part(editor: LookingEditor, path: str, first_line: int, last_line: int | None, max_characters: int) -> Part:
    """Some lines of a file; refuses lines that it has not."""
    part: Part | None
    try:
        text = await editor.text_of(path)
    except TooLarge:
        part = await off_loop(editor.read_part, path, first_line, last_line, max_characters)
        if part is None:
            raise await editor.no_such_file(path) from None
    else:
        part = await off_loop(_part_of, text, first_line, last_line, max_characters)
    if part.total is not None:
        last = part.total if last_line is None else last_line
        if last > part.total or first_line > max(last, 1):
            raise EditError(f"there are no lines {first_line} to {last}; the file has {part.total}", place=path)
    return part


def _part_of(text: str, first_line: int, last_line: int | None, max_characters: int) -> Part:
    lines = lines_of(text)
    wanted = lines[first_line - 1 : last_line]
    fitting = _fitting(wanted, max_characters)
    return Part(wanted[:fitting], is_whole=fitting == len(wanted), total=len(lines))


def _fitting(lines: Sequence[str], max_characters: int) -> int:
    """How many lines, from the first, fit."""
    for number, line in enumerate(lines):
        max_characters -= len(line)
        if max_characters < 0:
            return number
    return len(lines)


async def _part_of_line(
    editor: LookingEditor, path: str, line: int, last_line: int | None, first: int, last: int | None
) -> str:
    if last_line not in (None, line):
        raise EditError("characters are those of one line", place=path, hint=f"say last_line: {line}, or leave it out")
    part = await _part(editor, path, line, line, MAX_LINE_CHARACTERS)
    if not part.lines:
        raise EditError(
            f"line {line} has more than the {MAX_LINE_CHARACTERS:,} characters of which a part can be read", place=path
        )
    text = part.lines[0]
    last = len(text) if last is None else last
    if last > len(text) or first > last:
        raise EditError(f"there are no characters {first} to {last}; line {line} has {len(text)}", place=path)
    if last - first >= MAX_READ_CHARACTERS:
        raise EditError(
            f"{last - first + 1:,} characters; at most {MAX_READ_CHARACTERS:,} are read at once",
            place=path,
            hint=f"say last_character: {first + MAX_READ_CHARACTERS - 1}, and go on from there",
        )
    return text[first - 1 : last]


async def list_files(editor: LookingEditor, folder: str = "", pattern: str = "") -> dict[str, Any]:
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
    editor: LookingEditor,
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


async def lint_files(editor: LookingEditor, path: str = "") -> dict[str, Any]:
    """Says what the linters find in the project. Gives findings ({path, line, message}, empty when there are none),
    checked (how many files), stopped (why there may be more, or null), left_out (files that were not checked: groups
    of {why, count, paths}) and note (left_out in a sentence).

    Args:
        path: Only this file, or what is below this folder.
    """
    path = plain(path)
    if path and not editor.exists(path):
        raise await editor.no_such_file(path)
    return await off_loop(_report, editor, path)


def _report(editor: LookingEditor, path: str) -> dict[str, Any]:
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
        room -= len(msgspec.json.encode(one)) + 1
        if room < 0:
            return found[:number]
    return found


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
    """What was not looked at, by reason, in the order in which the reasons come up: as data, and in a sentence."""
    by_reason: dict[str, list[str]] = {}
    for one in left_out:
        by_reason.setdefault(one.why, []).append(one.path)
    groups = [{"why": why, "count": len(paths), "paths": sorted(paths)[:NAMED]} for why, paths in by_reason.items()]
    said = []
    for why, paths in by_reason.items():
        more = f" and {len(paths) - NAMED:,} more" if len(paths) > NAMED else ""
        said.append(f"{', '.join(sorted(paths)[:NAMED])}{more} ({why})")
    return {"left_out": groups, "note": f"Left out: {'; '.join(said)}." if said else None}


def _cut(listing: Listing) -> str | None:
    return f"the project has more than the {MAX_LISTED_FILES:,} files that are looked at" if listing.cut else None


def reader(function: Callable[..., Any], request: Callable[..., Any] | None = None, **facts: Any) -> Tool:
    """A tool that looks; with a request function, after a person was asked."""

    @wraps(function)
    async def read(*arguments: Any, **named: Any) -> Any:
        try:
            return await function(*arguments, **named)
        except EditError as problem:
            raise problem.as_tool_error() from problem

    tool = Tool.from_function(
        function,
        request=request,
        require_approval=request is not None,
        script_editor_only=True,
        effect="none",
        idempotent=True,
        **facts,
    )
    return replace(tool, execute=read, **OURS)


OURS: dict[str, Any] = {"code": f"lastword {__version__}".encode(), "spell": spelt}
"""What the editor's tools have in common. Another version is another tool: it stands for their code in digests."""

READERS = (
    reader(read_file, icon="doc.text", color="systemGray"),
    reader(
        read_file,
        ask_to_read,
        id="read_private_file",
        description="Reads a private file of the project, one that usually holds secrets or that git ignores, after "
        "the person was asked. Ask for it only when its text is needed: a private file can be changed without reading.",
        icon="lock.doc",
        color="systemOrange",
    ),
    reader(list_files, icon="folder", color="systemGray"),
    reader(search_files, icon="magnifyingglass", color="systemGray"),
    reader(lint_files, icon="checkmark.circle", color="systemGray"),
)
