"""Which files a project consists of: git is the judge."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.editor import ProjectEditor
from lastword.editor.project_files import list_project
from lastword.editor.project_folder import Folder
from requirements import requirement
from tries import tries

FILES = ["a.py", "b.log", "!odd", "[b", "build/out.o", "build/keep/c.py", "src/a.py", "src/b.log", "src/build/x"]
FILES += ["src/deep/b.log"]
NAMES = ["*.log", "build", "*", "?.log", "a**", "*b*l*g", "b\\.log", "\\!odd", "a.py ", "", "#comment", "\\"]
FOLDERS = ["build/", "keep/", "**/build/", "src/**/", "/build", "**/deep", "deep/**", "src/*", "src/d*p", "/**"]
BACK = ["!b.log", "!build/", "!src/a.py", "!*.py", "!/src/", "!**/a.py"]
SETS = ["[ab].py", "[!a].py", "[[:alpha:]].*", "[b", "[a-]*", "[]b]*", "[^[:punct:]]*"]
DEEP = ["src/**/b.log", "**/*.o", "**", "src/**/deep/**/b.log"]


def git(folder: Path, *arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return sorted(filter(None, done.stdout.split("\0")))


def make(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


patterns = st.lists(st.sampled_from([*NAMES, *FOLDERS, *BACK, *SETS, *DEEP]), max_size=5)


@requirement("EDIT-1")
@tries(12)
@given(patterns, patterns)
def test_the_listing_is_what_git_would_add(tmp_path_factory: pytest.TempPathFactory, root: list[str], inner: list[str]):
    """The outer and the inner .gitignore in every combination; git itself says what is right."""
    folder = tmp_path_factory.mktemp("project")
    make(folder, dict.fromkeys(FILES, "x") | {".gitignore": "\n".join(root), "src/.gitignore": "\n".join(inner)})
    git(folder, "init", "--quiet")
    expected = git(folder, "ls-files", "--others", "--exclude-standard", "-z")
    assert ProjectEditor(folder).get_all_files() == expected


def test_folders_are_listed_unless_ignored(tmp_path: Path):
    """An empty folder is a folder; an ignored one is not part of the project."""
    make(tmp_path, {"src/deep/a.py": "", "node_modules/x/y.js": "", ".gitignore": "node_modules/\n", ".git/config": ""})
    (tmp_path / "empty").mkdir()
    editor = ProjectEditor(tmp_path)
    assert editor.get_all_folders() == ["empty", "src", "src/deep"]
    assert editor.get_all_files() == [".gitignore", "src/deep/a.py"]


async def test_an_ignored_file_can_still_be_read_and_written(tmp_path: Path):
    """Ignoring keeps noise out of a listing; it forbids nothing."""
    make(tmp_path, {".gitignore": "*.log\n", "a.log": "x"})
    editor = ProjectEditor(tmp_path)
    assert await editor.get_file_content("a.log") == "x"
    assert await editor.update_file_content("a.log", "y")


def test_names_that_no_path_may_hold_are_not_listed(tmp_path: Path):
    """A listing offers only what can be opened."""
    make(tmp_path, {"fine.txt": "", "bad\n.txt": "", "trailing.": "", ".lastword-0123456789abcdef.tmp": ""})
    (tmp_path / "odd\u202e").mkdir()
    (tmp_path / "odd\u202e" / "inside.txt").write_text("")
    editor = ProjectEditor(tmp_path)
    assert editor.get_all_files() == ["fine.txt"]
    assert editor.get_all_folders() == []
    assert [(one.path, one.why) for one in editor.listing().left_out] == [
        ("bad\\n.txt", "a name that no path may hold"),
        ("odd\\u202e", "a name that no path may hold"),
        ("trailing.", "a name that no path may hold"),
    ]


def test_a_listing_is_bounded_and_says_so(tmp_path: Path):
    """Nobody reads a hundred thousand names, and nobody should wait for more."""
    make(tmp_path, {f"{name}.txt": "" for name in range(30)})
    folder = Folder(tmp_path)
    whole, part = list_project(folder), list_project(folder, limit=10)
    assert (len(whole.files), whole.cut) == (30, False)
    assert (len(part.files), part.cut) == (10, True)


def test_a_folder_of_endless_depth_is_left_at_the_last_that_a_path_can_name(tmp_path: Path):
    """Whatever is listed can be opened; what cannot be named is not walked for ever."""
    deep = tmp_path
    for _ in range(70):
        deep = deep / "d"
        deep.mkdir()
        (deep / "f").write_text("x")
    editor = ProjectEditor(tmp_path)
    files = editor.get_all_files()
    assert len(files) == 63
    assert all(editor.read_bytes(path) == b"x" for path in files)


def test_a_gitignore_that_is_no_text_is_not_obeyed(tmp_path: Path):
    """Also one that is a link to the outside: it is not read."""
    make(tmp_path / "outside", {"rules": "*.txt\n"})
    make(tmp_path / "project", {"a.txt": ""})
    (tmp_path / "project" / ".gitignore").symlink_to(tmp_path / "outside" / "rules")
    assert ProjectEditor(tmp_path / "project").get_all_files() == ["a.txt"]
    (tmp_path / "project" / ".gitignore").unlink()
    (tmp_path / "project" / ".gitignore").write_bytes(b"*.txt\n\0\xff")
    assert ProjectEditor(tmp_path / "project").get_all_files() == [".gitignore", "a.txt"]


def test_a_hostile_pattern_does_not_hold_the_listing_up(tmp_path: Path):
    """A .gitignore comes with the project. Tried in every way, these would take longer than the sun has left."""
    deep = "/".join(["a"] * 60)
    make(tmp_path, {".gitignore": "*a" * 100 + "*b\n" + "**/a/" * 30 + "**/b\n", "a" * 250: "", f"{deep}/c": ""})
    assert ProjectEditor(tmp_path).get_all_files() == sorted([".gitignore", "a" * 250, f"{deep}/c"])
