"""The tools that look: exact, bounded, and free."""

from pathlib import Path

import pytest
from foreign import ForeignEditor
from workbench import Workbench

from lastword import Session, ToolRegistry
from lastword.editor.tools import EDITOR_TOOLS, editor_tools, reading
from lastword.tools.registry import tool_from
from requirements import requirement

READERS = ("read_file", "list_files", "search_files", "lint_files")


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
        assert manifest.effect == ("none" if manifest.id in READERS else "reversible")
        assert not manifest.auto_approve
        assert (tool.request is not None) == manifest.require_approval


def test_a_tool_of_the_applications_own_keeps_its_name():
    """Whoever brought a read_file of their own meant it."""

    def read_file(path: str) -> str:
        """Reads."""
        return path

    registry = ToolRegistry()
    own = registry.add(tool_from(read_file))
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
    (bench.folder / "long.txt").write_text("x" * 99 + "\n" * 1)
    (bench.folder / "long.txt").write_text(("x" * 99 + "\n") * 801)
    words = await bench.refused("read_file", path="long.txt")
    assert "80,100 characters in 801 lines; at most 80,000 are read at once" in words
    assert "first_line and last_line" in words
    part = await bench.done("read_file", path="long.txt", last_line=800)
    assert len(part.value) == reading.MAX_READ_CHARACTERS
    assert part.message == part.value


async def test_files_are_listed_without_what_git_ignores(bench: Workbench):
    """By folder and by pattern, which a model needs in a large project."""
    (bench.folder / ".gitignore").write_text("*.log\n")
    (bench.folder / "debug.log").write_text("x")
    assert (await bench.done("list_files")).value == [".gitignore", "notes.txt", "src/main.py"]
    assert (await bench.done("list_files", folder="src")).value == ["src/main.py"]
    assert (await bench.done("list_files", folder="src/")).value == ["src/main.py"]
    assert (await bench.done("list_files", pattern="*.py")).value == ["src/main.py"]
    assert (await bench.done("list_files", pattern="*.rs")).value == []
    assert "there is no folder of that name" in await bench.refused("list_files", folder="sr")


async def test_too_many_files_are_refused_with_the_folders_to_choose_from(bench: Workbench, monkeypatch):
    """A cut list would be taken for the whole project."""
    monkeypatch.setattr(reading, "MAX_LISTED", 2)
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
    assert {finding["path"] for finding in everything} == {"src/b.py", "bad.json"}
    below = (await bench.done("lint_files", path="src")).value
    assert [(finding["path"], finding["line"]) for finding in below][:1] == [("src/b.py", 1)]
    assert "F401" in below[0]["message"]
    assert "there is no such file" in await bench.refused("lint_files", path="sr")


async def test_a_foreign_editor_is_read_and_searched_too():
    """Its files have no bytes; what they say is the same."""
    registry = ToolRegistry()
    editor_tools(registry)
    async with Session(registry, editor=ForeignEditor({"a.txt": "one\ntwo\n"})) as session:
        assert (await session.call("read_file", {"path": "a.txt"})).value == "one\ntwo\n"
        found = (await session.call("search_files", {"query": "two"})).value
        assert found["matches"] == [{"path": "a.txt", "line": 2, "text": "two"}]
