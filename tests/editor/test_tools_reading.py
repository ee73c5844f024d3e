"""The tools that look: exact, bounded, and free."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from foreign import ForeignEditor
from workbench import Workbench

from lastword import Session, ToolRegistry
from lastword.consent.outcome import MAX_MESSAGE
from lastword.editor import EDITOR_TOOLS, MAX_FILE_BYTES, editor_tools, read_tools
from lastword.editor.project_files import list_project
from lastword.tools import Tool
from requirements import requirement

READERS = ("read_file", "list_files", "search_files", "lint_files")
# Changes nothing, and asks all the same: what it reads goes to others.
PRIVATE = "read_private_file"


@requirement("TOOL-34")
async def test_without_an_editor_none_of_them_is_offered_or_callable():
    """A session without a project has no files to read or change."""
    registry = ToolRegistry()
    assert [tool.name for tool in editor_tools(registry)] == [tool.name for tool in EDITOR_TOOLS]
    assert registry.all(with_editor=False) == []
    async with Session(registry) as session:
        for tool in EDITOR_TOOLS:
            outcome = await session.call(tool.name, {"path": "a.txt"})
            assert outcome.kind == "unknown_tool"
            assert "works only on a project in an editor" in outcome.message


@requirement("TOOL-34")
def test_every_one_says_of_itself_what_it_is():
    """Readers run free; whatever writes asks, can be undone, and is never approved by a setting alone."""
    for tool in EDITOR_TOOLS:
        manifest = tool.manifest
        assert manifest.script_editor_only
        assert manifest.description.endswith((".", ")."))
        assert all(parameter.description for parameter in manifest.parameters)
        assert manifest.require_approval == (manifest.id not in READERS)
        assert manifest.effect == ("none" if manifest.id in (*READERS, PRIVATE) else "reversible")
        assert not manifest.auto_approve
        assert (tool.request is not None) == manifest.require_approval


def test_a_tool_of_the_applications_own_keeps_its_name():
    """Whoever brought a read_file of their own meant it."""

    def read_file(path: str) -> str:
        """Reads."""
        return path

    registry = ToolRegistry()
    own = registry.add(Tool.from_function(read_file))
    assert "read_file" not in [tool.name for tool in editor_tools(registry)]
    assert registry.lookup("read_file") is own


async def test_a_file_is_read_exactly_or_by_its_lines(bench: Workbench):
    """What a model quotes back in an edit must be what stands in the file, to the last space."""
    (bench.folder / "a.txt").write_bytes("\ufeffone \r\n\ttwo\r\nthree".encode())
    assert (await bench.done("read_file", path="a.txt")).value == "one \r\n\ttwo\r\nthree"
    assert (await bench.done("read_file", path="a.txt", first_line=2, last_line=2)).value == "\ttwo\r\n"
    numbered = await bench.done("read_file", path="a.txt", first_line=2, numbered=True)
    assert numbered.value == "2\t\ttwo\r\n3\tthree"
    assert numbered.approval == "not_needed"
    (bench.folder / "empty.txt").write_bytes(b"")
    assert (await bench.done("read_file", path="empty.txt")).value == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "absent.txt"}, "absent.txt: there is no such file"),
        ({"path": "main.py"}, "hint: did you mean src/main.py?"),
        ({"path": "src"}, "src: this is a folder, not a file"),
        ({"path": "../outside/secret.txt"}, "the path leads upwards"),
        ({"path": "/etc/passwd"}, "the path is absolute"),
        ({"path": "binary"}, "binary: the file is binary or not UTF-8"),
        ({"path": "notes.txt", "first_line": 2, "last_line": 1}, "there are no lines 2 to 1; the file has 2"),
        ({"path": "notes.txt", "last_line": 3}, "there are no lines 1 to 3; the file has 2"),
    ],
)
async def test_what_cannot_be_read_is_refused_with_a_way_out(bench: Workbench, outside: Path, arguments, words: str):
    """A refusal is a result that a model can act on, and never an internal error."""
    (bench.folder / "binary").write_bytes(b"\0\xff")
    assert words in await bench.refused("read_file", **arguments)


async def test_a_long_file_is_refused_and_never_cut(bench: Workbench):
    """Half a file that looks like a whole one is how the other half gets lost."""
    (bench.folder / "long.txt").write_text(("x" * 99 + "\n") * 801)
    words = await bench.refused("read_file", path="long.txt")
    assert "this is more than the 80,000 characters that are read at once" in words
    assert "with first_line and last_line: 1 to 800 fits" in words
    part = await bench.done("read_file", path="long.txt", last_line=800)
    assert len(part.value) == read_tools.MAX_READ_CHARACTERS
    assert part.message == part.value
    words = await bench.refused("read_file", path="long.txt", first_line=2, last_line=801, numbered=True)
    assert "2 to 771 fits" in words
    assert (await bench.done("read_file", path="long.txt", first_line=2, last_line=771, numbered=True)).success


@requirement("EDIT-12")
async def test_a_file_of_any_size_is_read_by_its_lines(bench: Workbench):
    """A log of many megabytes is beyond the editor, and yet somebody wants to see its end."""
    lines = [f"line {number} of a log that is long enough to be too long\n" for number in range(1, 250_001)]
    (bench.folder / "huge.log").write_text("\ufeff" + "".join(lines) + "the end")
    assert (bench.folder / "huge.log").stat().st_size > 3 * MAX_FILE_BYTES
    first = await bench.done("read_file", path="huge.log", last_line=1)
    assert first.value == "line 1 of a log that is long enough to be too long\n"
    last = await bench.done("read_file", path="huge.log", first_line=249_999)
    assert last.value.split("\n")[0].startswith("line 249999 ")
    assert last.value.endswith("\nthe end")
    numbered = await bench.done("read_file", path="huge.log", first_line=125_000, last_line=125_001, numbered=True)
    assert [line[:18] for line in numbered.value.splitlines()] == ["125000\tline 125000", "125001\tline 125001"]
    words = await bench.refused("read_file", path="huge.log", first_line=100_000)
    assert "with first_line and last_line: 100000 to " in words
    assert "there are no lines 250000 to 250002; the file has 250001" in await bench.refused(
        "read_file", path="huge.log", first_line=250_000, last_line=250_002
    )
    (bench.folder / "huge.bin").write_bytes(b"text\n" * MAX_FILE_BYTES + b"\xff\n")
    assert (await bench.done("read_file", path="huge.bin", last_line=2)).value == "text\ntext\n"
    assert "not UTF-8" in await bench.refused("read_file", path="huge.bin", first_line=MAX_FILE_BYTES - 2)


@requirement("EDIT-12")
async def test_a_line_of_any_length_is_read_by_its_characters(bench: Workbench):
    """A file that a program wrote may be one line. Lines are then no way to ask for less."""
    line = "".join(f"<{number}>" for number in range(40_000))
    (bench.folder / "one.js").write_text(f"first\n{line}\nlast\n")
    words = await bench.refused("read_file", path="one.js", first_line=2)
    assert "line 2 alone is longer: read a part of it, with first_character and last_character" in words
    part = await bench.done("read_file", path="one.js", first_line=2, first_character=4, last_character=9)
    assert part.value == line[3:9] == "<1><2>"
    rest = await bench.done("read_file", path="one.js", first_line=2, first_character=len(line))
    assert rest.value == ">\n"
    words = await bench.refused("read_file", path="one.js", first_line=2, first_character=1)
    assert "hint: say last_character: 80000, and go on from there" in words
    words = await bench.refused("read_file", path="one.js", first_line=1, last_character=7)
    assert "there are no characters 1 to 7; line 1 has 6" in words
    words = await bench.refused("read_file", path="one.js", first_line=1, last_line=2, last_character=3)
    assert "characters are those of one line" in words


@requirement("EDIT-3")
async def test_another_spelling_of_a_path_is_the_same_file(bench: Workbench):
    """Models write ./x for x. There is nothing to be learnt from a refusal."""
    assert (await bench.done("read_file", path="./notes.txt")).value == "one\ntwo\n"
    assert (await bench.done("read_file", path="src//./main.py")).success
    assert (await bench.done("list_files", folder="./src")).value["files"] == ["src/main.py"]
    assert (await bench.done("list_files", folder=".")).value["files"] == ["notes.txt", "src/main.py"]
    assert (await bench.done("lint_files", path="./src")).success
    (bench.folder / "a:b.txt").write_text("x")
    (bench.folder / "aux.c").write_text("int x;\n")
    assert (await bench.done("read_file", path="a:b.txt")).value == "x"
    assert (await bench.done("read_file", path="aux.c")).value == "int x;\n"
    assert "the path leads upwards" in await bench.refused("read_file", path="./../outside")
    assert "the path is absolute" in await bench.refused("read_file", path="//etc/passwd")


async def test_files_are_listed_without_what_git_ignores(bench: Workbench):
    """By folder and by pattern, which a model needs in a large project."""
    (bench.folder / ".gitignore").write_text("*.log\n")
    (bench.folder / "debug.log").write_text("x")

    async def listed(**arguments: str) -> list[str]:
        return (await bench.done("list_files", **arguments)).value["files"]

    assert await listed() == [".gitignore", "notes.txt", "src/main.py"]
    assert await listed(folder="src") == ["src/main.py"]
    assert await listed(folder="src/") == ["src/main.py"]
    assert await listed(pattern="*.py") == ["src/main.py"]
    assert await listed(pattern="*.rs") == []
    assert "there is no folder of that name" in await bench.refused("list_files", folder="sr")


async def test_too_many_files_are_refused_with_the_folders_to_choose_from(bench: Workbench, monkeypatch):
    """A cut list would be taken for the whole project."""
    monkeypatch.setattr("lastword.editor.read_tools.MAX_LISTED", 2)
    (bench.folder / "src" / "b.py").write_text("")
    words = await bench.refused("list_files")
    assert "3 files; at most 2 are listed at once" in words
    assert "the largest folders are src (2)" in words


async def test_a_search_gives_lines_and_files_and_says_when_it_stopped(bench: Workbench):
    """The lines for a model, the files for a script that goes through them."""
    (bench.folder / "src" / "b.py").write_text("print(1)\nprint(2)\n")
    found = (await bench.done("search_files", query="print")).value
    assert found["files"] == ["src/b.py", "src/main.py"]
    assert found["matches"][0] == {"path": "src/b.py", "line": 1, "text": "print(1)"}
    assert (found["searched"], found["stopped"]) == (3, None)
    cut = (await bench.done("search_files", query=r"PRINT\(\d", regex=True, ignore_case=True, max_matches=1)).value
    assert [match["line"] for match in cut["matches"]] == [1]
    assert cut["stopped"] == "stopped at 1 matches; search for something rarer"
    assert (await bench.done("search_files", query="print", pattern="*main*")).value["files"] == ["src/main.py"]
    assert "is not a regular expression" in await bench.refused("search_files", query="(?=a)", regex=True)
    outcome = await bench.call("search_files", query="x", max_matches=501)
    assert outcome.kind == "invalid_arguments"


async def test_lint_is_told_by_file_and_line(bench: Workbench):
    """So that a model can go to the place without reading everything."""
    (bench.folder / "src" / "b.py").write_text("import os\n")
    (bench.folder / "bad.json").write_text("{")
    everything = (await bench.done("lint_files")).value
    assert {finding["path"] for finding in everything["findings"]} == {"src/b.py", "bad.json"}
    assert (everything["checked"], everything["stopped"]) == (3, None)
    below = (await bench.done("lint_files", path="src")).value["findings"]
    assert [(finding["path"], finding["line"]) for finding in below][:1] == [("src/b.py", 1)]
    assert "F401" in below[0]["message"]
    assert "there is no such file" in await bench.refused("lint_files", path="sr")


def told(result: dict[str, Any]) -> dict[str, list[str]]:
    return {group["why"]: group["paths"] for group in result["left_out"]}


@requirement("EDIT-12")
async def test_what_is_not_in_a_list_is_named_with_the_reason(bench: Workbench, outside: Path):
    """Whoever reads a list takes it for the whole project."""
    (bench.folder / ".gitignore").write_text("*.log\nbuild/\n")
    (bench.folder / "debug.log").write_text("x")
    (bench.folder / "build").mkdir()
    (bench.folder / "build" / "out.o").write_text("x")
    (bench.folder / "link.txt").symlink_to(outside / "secret.txt")
    os.mkfifo(bench.folder / "src" / "pipe")
    (bench.folder / "bad\n.txt").write_text("x")
    listed = (await bench.done("list_files")).value
    assert listed["files"] == [".gitignore", "notes.txt", "src/main.py"]
    assert told(listed) == {
        "a name that no path may hold": ["bad\\n.txt"],
        "ignored by git": ["build/", "debug.log"],
        "a link, a pipe, a socket or a device": ["link.txt", "src/pipe"],
    }
    assert listed["note"] == (
        "Left out: bad\\n.txt (a name that no path may hold); build/, debug.log (ignored by git); "
        "link.txt, src/pipe (a link, a pipe, a socket or a device)."
    )
    assert told((await bench.done("list_files", folder="src")).value) == {
        "a link, a pipe, a socket or a device": ["src/pipe"]
    }
    # What is below a folder that was not entered may fit the pattern as well.
    assert told((await bench.done("list_files", pattern="*.py")).value) == {"ignored by git": ["build/"]}


@requirement("EDIT-12")
async def test_a_list_without_anything_left_out_says_so(bench: Workbench):
    """As data, so that a script can tell; and without a word too many."""
    assert (await bench.done("list_files")).value == {
        "files": ["notes.txt", "src/main.py"],
        "left_out": [],
        "note": None,
        "stopped": None,
    }


@requirement("EDIT-12")
async def test_many_files_that_were_left_out_are_counted(bench: Workbench):
    """A thousand of them are no news; that there are a thousand is."""
    (bench.folder / ".gitignore").write_text("*.log\n")
    for number in range(25):
        (bench.folder / f"{number:02}.log").write_text("x")
    listed = (await bench.done("list_files")).value
    (group,) = listed["left_out"]
    assert (group["count"], len(group["paths"])) == (25, 10)
    assert "09.log and 15 more (ignored by git)." in listed["note"]


@requirement("EDIT-12")
async def test_a_project_that_is_larger_than_a_list_says_so(bench: Workbench, monkeypatch: pytest.MonkeyPatch):
    """Also where only a part of the list was asked for: the part may be what is missing."""
    monkeypatch.setattr(list_project, "__kwdefaults__", {"limit": 1})
    stopped = "the project has more than the 100,000 files that are looked at"
    assert (await bench.done("list_files", pattern="*.txt")).value["stopped"] == stopped
    assert (await bench.done("search_files", query="one")).value["stopped"] == stopped


@requirement("EDIT-12")
async def test_what_was_not_searched_is_named_with_the_reason(bench: Workbench):
    """No match in a file that nobody looked at is no answer."""
    (bench.folder / "large.txt").write_bytes(b"one\n" * (MAX_FILE_BYTES // 4 + 1))
    (bench.folder / "latin.txt").write_bytes("zwölf one\n".encode("latin-1"))
    (bench.folder / ".gitignore").write_text("*.log\n")
    (bench.folder / "debug.log").write_text("one")
    found = (await bench.done("search_files", query="one")).value
    assert (found["files"], found["searched"]) == (["notes.txt"], 3)
    assert told(found) == {
        "larger than 4,000,000 bytes": ["large.txt"],
        "not text in UTF-8": ["latin.txt"],
        "ignored by git": ["debug.log"],
    }
    assert found["note"].startswith("Left out: large.txt (larger than 4,000,000 bytes); latin.txt (not text in UTF-8)")


@requirement("EDIT-12")
async def test_what_was_not_linted_is_named_with_the_reason(bench: Workbench):
    """No finding in a file that no linter looked at is no praise."""
    (bench.folder / "ruff.toml").write_text('exclude = ["old"]\nlint.select = ["F"]\n')
    (bench.folder / "old").mkdir()
    (bench.folder / "old" / "a.py").write_text("undefined\n")
    (bench.folder / "latin.py").write_bytes("# zwölf\n".encode("latin-1"))
    (bench.folder / "latin.json").write_bytes('{"a": "zwölf"}'.encode("latin-1"))
    (bench.folder / "large.json").write_bytes(b" " * (MAX_FILE_BYTES + 1))
    report = (await bench.done("lint_files")).value
    assert (report["findings"], report["checked"]) == ([], 2)
    assert told(report) == {
        "no linter for it": ["notes.txt"],
        "excluded by the settings of ruff": ["old/a.py"],
        "not text in UTF-8": ["latin.json", "latin.py"],
        "larger than 4,000,000 bytes": ["large.json"],
    }
    assert told((await bench.done("lint_files", path="old")).value) == {
        "excluded by the settings of ruff": ["old/a.py"]
    }


@requirement("EDIT-12")
async def test_more_findings_than_fit_are_cut_between_two_of_them(bench: Workbench):
    """JSON that ends in the middle of a finding cannot be read at all, and how many there are is part of the answer."""
    (bench.folder / "src" / "b.py").write_text("undefined\n" * 3_000)
    outcome = await bench.done("lint_files")
    assert len(outcome.message) < MAX_MESSAGE
    result = json.loads(outcome.message)
    given = len(result["findings"])
    assert 100 < given < 3_000
    assert all(set(finding) == {"path", "line", "message"} for finding in result["findings"])
    found = re.match(r"the first ([\d,]+) of ([\d,]+) findings are given; name a file or a folder", result["stopped"])
    assert found is not None
    assert int(found[1].replace(",", "")) == given
    assert int(found[2].replace(",", "")) >= 3_000


async def test_a_foreign_editor_is_read_and_searched_too():
    """Its files have no bytes; what they say is the same."""
    registry = ToolRegistry()
    editor_tools(registry)
    async with Session(registry, editor=ForeignEditor({"a.txt": "one\ntwo\n"})) as session:
        assert (await session.call("read_file", {"path": "a.txt"})).value == "one\ntwo\n"
        found = (await session.call("search_files", {"query": "two"})).value
        assert found["matches"] == [{"path": "a.txt", "line": 2, "text": "two"}]
        assert (await session.call("list_files")).value["files"] == ["a.txt"]
        assert (await session.call("lint_files")).value["findings"] == [{"path": "a.txt", "line": 1, "message": "odd"}]
