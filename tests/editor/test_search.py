"""Search: what is there is found, and no pattern can hold it up."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.editor import MAX_FILE_BYTES, ProjectEditor
from lastword.editor.provider import LeftOut
from lastword.editor.search import Found, Match, search
from lastword.errors import EditError
from requirements import requirement
from tries import tries

FILES = {
    "a.txt": b"one\ntwo two\r\nThree\n",
    "b.txt": b"\xef\xbb\xbftwo",
    "c.bin": b"two\0",
    "d.txt": "zwölf\n".encode("latin-1") + b"two\n",
    "e.txt": b"",
}


def found(query: str, files: dict[str, bytes] = FILES, **options: Any) -> Found:
    return search(files, files.get, query, **options)


def places(result: Found) -> list[tuple[str, int, str]]:
    return [(match.path, match.line, match.text) for match in result.matches]


def test_a_search_is_literal_and_names_each_line_once():
    """Binary files and other encodings are not searched, as everywhere in the editor, and that is said."""
    unread = (LeftOut("c.bin", "not text in UTF-8"), LeftOut("d.txt", "not text in UTF-8"))
    assert found("two") == Found([Match("a.txt", 2, "two two"), Match("b.txt", 1, "two")], 3, left_out=unread)
    assert places(found("t.o")) == []
    assert places(found("three")) == []
    assert places(found("three", ignore_case=True)) == [("a.txt", 3, "Three")]
    assert places(found("one\ntwo")) == [("a.txt", 1, "one")]


def test_a_regular_expression_is_matched_line_by_line():
    """Anchors are those of the line, whatever its ending."""
    assert places(found("^t.o( two)?$", regex=True)) == [("a.txt", 2, "two two"), ("b.txt", 1, "two")]
    assert places(found(r"^\w{5}$", regex=True)) == [("a.txt", 3, "Three")]
    assert places(found("THREE", regex=True, ignore_case=True)) == [("a.txt", 3, "Three")]
    assert places(found("one.*two", regex=True)) == []


@tries()
@given(st.text(alphabet="ab\n\r.", max_size=20), st.text(alphabet="ab.", min_size=1, max_size=2), st.booleans())
def test_a_literal_search_finds_the_lines_that_hold_the_query(text: str, query: str, ignore_case: bool):
    """The obvious way, line by line, as a second opinion on the quick one."""
    lines = text.split("\n")
    expected = [number for number, line in enumerate(lines, 1) if query in line]
    assert [match.line for match in found(query, {"x": text.encode()}, ignore_case=ignore_case).matches] == expected


@tries()
@given(st.text(alphabet="ab\n", max_size=20), st.sampled_from(["a+b", "^a", "b$", "^$", "(ab)*b", "[^a]", "a.b"]))
def test_a_regular_expression_finds_what_pythons_finds(text: str, pattern: str):
    """On patterns that both engines know, they agree."""
    lines = text.removesuffix("\n").split("\n") if text else []
    expected = [number for number, line in enumerate(lines, 1) if re.search(pattern, line)]
    assert [match.line for match in found(pattern, {"x": text.encode()}, regex=True).matches] == expected


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "^(a|a?)+$", "(.*a){25}$", "(?:a?){30}a{30}$"])
def test_a_catastrophic_pattern_is_merely_a_pattern(pattern: str):
    """Python's engine would try each of these in more ways than there are seconds left."""
    assert places(found(pattern, {"x": b"a" * 20 + b"!\n" + b"b" * 100_000}, regex=True)) == []


@pytest.mark.parametrize("pattern", ["(", "[", "(?=a)", r"(a)\1", "a{1000000}", r"\d{1,1000}{1000}", "*"])
def test_a_pattern_that_cannot_be_searched_for_is_refused_in_words(pattern: str):
    """Broken, unknown to the engine, or larger than its memory: the model reads which way out there is."""
    with pytest.raises(EditError, match="or search literally"):
        found(pattern, regex=True)


@pytest.mark.parametrize("query", ["", "x" * 1001, "half \ud800"])
def test_a_query_that_is_none_is_refused(query: str):
    """An empty one would match every line."""
    with pytest.raises(EditError, match="search"):
        found(query)


def test_matches_are_bounded_and_say_so():
    """What was found is still true, and the model learns that there is more."""
    result = found("x", {"a": b"x\n" * 30, "b": b"x\n"}, max_matches=10)
    assert len(result.matches) == 10
    assert result.stopped == "stopped at 10 matches; search for something rarer"
    assert result.left_out == (LeftOut("b", "not searched: the search had stopped"),)
    assert found("x", {"a": b"x\n" * 10}, max_matches=10) == Found(
        [Match("a", line, "x") for line in range(1, 11)], searched=1
    )
    assert found("x", {"a": b"x\n" * 10, "b": b"x\n"}, max_matches=10).stopped is not None


def test_time_is_bounded_and_says_so():
    """Before each file, since one file is small."""
    result = found("x", {"a": b"x\n"}, timeout_seconds=-1.0)
    unsearched = (LeftOut("a", "not searched: the search had stopped"),)
    assert result == Found([], 0, "stopped after -1 seconds; search in fewer files", unsearched)


def test_a_long_line_is_cut_and_says_so():
    """A generated file on one line would fill the conversation."""
    (match,) = found("x", {"a": b"x" * 1000}).matches
    assert match.text == "x" * 300 + "… (700 more characters)"


@requirement("EDIT-12")
def test_a_search_of_a_project_names_what_could_not_be_opened(editor: ProjectEditor, folder: Path, outside: Path):
    """A file that became a link since it was listed is not followed, one that is gone or too large is not there."""
    (folder / "gone.txt").write_text("x")
    (folder / "large.txt").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    files = editor.get_all_files()
    (folder / "notes.txt").unlink()
    (folder / "notes.txt").symlink_to(outside / "secret.txt")
    (folder / "gone.txt").unlink()
    result = search(files, editor.read_bytes, "secret")
    assert result.matches == []
    assert {one.path: one.why for one in result.left_out} == {
        "gone.txt": "gone since it was listed",
        "large.txt": "larger than 4,000,000 bytes",
        "notes.txt": "this is a symbolic link, and only plain files and folders are opened",
    }
    assert result.searched == 1
    assert [match.path for match in search(files, editor.read_bytes, "hello").matches] == ["src/main.py"]
