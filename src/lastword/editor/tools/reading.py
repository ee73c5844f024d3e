"""Tools that look at a project. They change nothing and ask nobody.

Each gives a script a value it can go on with: a text, a list of paths, matches with their lines. What does not fit is
refused with a way to ask for less, and never cut in silence: half a file that looks like a whole one is how a model
comes to delete the other half.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import wraps
from typing import Annotated, Any

import msgspec

from lastword import __version__
from lastword.editor import ScriptEditorProvider
from lastword.editor.edits import lines_of
from lastword.editor.recording import SealedEditor
from lastword.editor.search import MAX_MATCHES, search
from lastword.errors import EditError, NotText, ToolError, did_you_mean
from lastword.tools.signature import manifest_of
from lastword.tools.tool import Tool

# A result beyond 100,000 characters would be cut; a text must come whole or not at all.
MAX_READ_CHARACTERS = 80_000
# More paths than anybody looks through. A folder or a pattern makes them fewer.
MAX_LISTED = 2_000
# How many names are compared to find the one that was meant.
MAX_COMPARED = 2_000
# What a search gives when nobody says how much.
MATCHES = 100

Line = Annotated[int, msgspec.Meta(ge=1)]


async def read_file(
    path: str,
    editor: ScriptEditorProvider,
    first_line: Line = 1,
    last_line: Line | None = None,
    numbered: bool = False,
) -> str:
    """Reads a text file of the project, whole or some of its lines, exactly as it stands.

    Args:
        path: The file, relative to the project, such as src/main.py.
        first_line: The first line to read; the first line of a file is 1.
        last_line: The last line to read; without it, the last one of the file.
        numbered: Whether each line is preceded by its number and a tab, for edits by line.
    """
    lines = lines_of(await text_of(editor, path))
    last = len(lines) if last_line is None else last_line
    if last > len(lines) or first_line > max(last, 1):
        raise EditError(f"there are no lines {first_line} to {last}; the file has {len(lines)}", place=path)
    wanted = lines[first_line - 1 : last]
    if numbered:
        wanted = [f"{number}\t{line}" for number, line in enumerate(wanted, first_line)]
    size = sum(map(len, wanted))
    if size > MAX_READ_CHARACTERS:
        raise EditError(
            f"{size:,} characters in {len(wanted):,} lines; at most {MAX_READ_CHARACTERS:,} are read at once",
            place=path,
            hint="read a part at a time, with first_line and last_line",
        )
    return "".join(wanted)


async def list_files(editor: ScriptEditorProvider, folder: str = "", pattern: str = "") -> list[str]:
    """Lists the files of the project, without those that git ignores.

    Args:
        folder: Only files below this folder, such as src.
        pattern: Only paths that match this pattern, such as *.py or docs/*.md; * also matches across folders.
    """
    files = await _files(editor, folder, pattern)
    if len(files) > MAX_LISTED:
        start = len(folder) + 1 if folder else 0
        below = Counter(file[start:].partition("/")[0] for file in files if "/" in file[start:])
        largest = ", ".join(f"{name} ({count:,})" for name, count in below.most_common(12))
        raise EditError(
            f"{len(files):,} files; at most {MAX_LISTED:,} are listed at once",
            place=folder or None,
            hint=f"name a folder or a pattern; the largest folders are {largest}" if below else "name a pattern",
        )
    return files


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
    once), searched (how many files) and stopped (why there may be more, or null).

    Args:
        query: The text to find, literally; or a regular expression, with regex.
        folder: Only files below this folder, such as src.
        pattern: Only paths that match this pattern, such as *.py.
        regex: Whether the query is a regular expression, matched line by line, without look-around.
        ignore_case: Whether upper and lower case are the same.
        max_matches: How many lines at most.
    """
    files = await _files(editor, folder, pattern)
    read: Callable[[str], bytes | None] = editor.read_bytes
    if not editor.has_bytes:
        texts = {file: await editor.get_file_content(file) or "" for file in files}
        read = {file: text.encode("utf-8", "surrogatepass") for file, text in texts.items()}.get
    found = await asyncio.to_thread(
        search, files, read, query, regex=regex, ignore_case=ignore_case, max_matches=max_matches
    )
    return {
        "matches": [msgspec.to_builtins(match) for match in found.matches],
        "files": list(dict.fromkeys(match.path for match in found.matches)),
        "searched": found.searched,
        "stopped": found.stopped,
    }


async def lint_files(editor: ScriptEditorProvider, path: str = "") -> list[dict[str, Any]]:
    """Says what the linters find in the project: a list of {path, line, message}. Empty when there is nothing.

    Args:
        path: Only findings in this file, or below this folder.
    """
    findings = await asyncio.to_thread(editor.get_lint_errors)
    if path and not editor.exists(path):
        raise no_such_file(editor, path)
    return [
        {"path": file, **finding}
        for file, found in findings.items()
        if not path or file == path or file.startswith(f"{path}/")
        for finding in found
    ]


async def text_of(editor: ScriptEditorProvider, path: str) -> str:
    """The text of a file that is there; why there is none otherwise."""
    text = await editor.get_file_content(path)
    if text is None:
        if editor.exists(path):
            raise NotText("the file is binary or not UTF-8, and cannot be read as text", place=path)
        raise no_such_file(editor, path)
    return text


def no_such_file(editor: ScriptEditorProvider, path: str) -> EditError:
    """The refusal of a path that leads nowhere, with the one that was probably meant."""
    files = editor.get_all_files()
    name = path.rpartition("/")[2]
    same_name = [file for file in files if file.rpartition("/")[2] == name]
    hint = did_you_mean(path, same_name or files[:MAX_COMPARED])
    if hint is None and same_name:
        hint = f"did you mean {same_name[0]}?"
    return EditError("there is no such file", place=path, hint=hint or "list_files names those there are")


def in_words(problem: EditError) -> ToolError:
    """A refusal of the editor as the result of a call: its words are for the model."""
    return ToolError(problem.fact, place=problem.place, excerpt=problem.excerpt, hint=problem.hint)


async def _files(editor: ScriptEditorProvider, folder: str, pattern: str) -> list[str]:
    files = await asyncio.to_thread(editor.get_all_files)
    folder = folder.removesuffix("/")
    if folder not in ("", "."):
        files = [file for file in files if file.startswith(f"{folder}/")]
        if not files:
            raise EditError("there is no folder of that name with files in it", place=folder)
    return [file for file in files if fnmatchcase(file, pattern)] if pattern else files


def _reader(function: Callable[..., Any], **facts: Any) -> Tool:
    @wraps(function)
    async def read(*arguments: Any, **named: Any) -> Any:
        try:
            return await function(*arguments, **named)
        except EditError as problem:
            raise in_words(problem) from problem

    manifest, converters = manifest_of(
        function, require_approval=False, script_editor_only=True, effect="none", idempotent=True, **facts
    )
    return Tool(manifest, "function", read, converters=converters, code=CODE)


CODE = f"lastword {__version__}".encode()
"""What stands for the code of these tools in their digests: another version is another tool."""

READERS = (
    _reader(read_file, icon="doc.text", color="systemGray"),
    _reader(list_files, icon="folder", color="systemGray"),
    _reader(search_files, icon="magnifyingglass", color="systemGray"),
    _reader(lint_files, icon="checkmark.circle", color="systemGray"),
)
