"""Lint: real linters, and never a silence where one could not look."""

import sys
from pathlib import Path

import pytest
from trees import tree

from lastword.editor import ProjectEditor, RecordingEditor
from lastword.editor.lint import Linter, command_linter, default_linters, fixed_python, script_linter, text_linter
from lastword.editor.provider import MAX_FINDINGS, LintError
from lastword.errors import EditError
from lastword.script import Signature
from lastword.tools.guard import Guard
from requirements import requirement


def lines(found: list[LintError]) -> list[int]:
    return [one["line"] for one in found]


@requirement("EDIT-6")
def test_python_is_linted_by_ruff(editor: ProjectEditor, folder: Path):
    """Its own rules and words, with the line."""
    (folder / "ruff.toml").write_text('lint.select = ["F"]\n')
    (folder / "src/main.py").write_text("import os\n\n\nprint(undefined)\n")
    (folder / "src/types.pyi").write_text("def f( -> int: ...\n")
    found = editor.get_lint_errors()
    assert list(found) == ["src/main.py", "src/types.pyi"]
    assert found["src/main.py"] == [
        {"line": 1, "message": "F401 `os` imported but unused"},
        {"line": 4, "message": "F821 Undefined name `undefined`"},
    ]
    assert lines(found["src/types.pyi"])[0] == 1


def test_the_projects_own_settings_choose_the_rules(editor: ProjectEditor, folder: Path):
    """Lint that disagrees with the project's own is noise."""
    (folder / "src/main.py").write_text("import os\n\nundefined\n")
    (folder / "ruff.toml").write_text('lint.select = ["F821"]\n')
    assert lines(editor.get_lint_errors()["src/main.py"]) == [3]


def test_a_request_function_may_lint_though_it_may_start_no_process(editor: ProjectEditor, folder: Path):
    """The linter is ours and only reads; the guard is for what the tool starts itself."""
    (folder / "src/main.py").write_text("undefined\n")
    guard = Guard("the request function")
    with guard.watching():
        assert list(RecordingEditor(editor).get_lint_errors()) == ["src/main.py"]
    assert guard.violations == []


@requirement("EDIT-5")
def test_lint_changes_nothing_whatever_the_project_is_set_to(
    editor: ProjectEditor, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Ruff can be told to fix files, to keep a cache and to write elsewhere. Looking must stay looking."""
    (folder / "src/main.py").write_text("import os\n")
    (folder / "ruff.toml").write_text('fix = true\nunsafe-fixes = true\ncache-dir = "cache"\noutput-format = "full"\n')
    monkeypatch.setenv("RUFF_OUTPUT_FILE", str(folder / "report.txt"))
    before = tree(folder)
    assert list(editor.get_lint_errors()) == ["src/main.py"]
    assert list(RecordingEditor(editor).get_lint_errors()) == ["src/main.py"]
    assert tree(folder) == before


def test_broken_settings_are_a_finding_and_no_silence(editor: ProjectEditor, folder: Path):
    """No findings would read as a clean project."""
    (folder / "ruff.toml").write_text('required-version = "==0.0.1"\n')
    found = editor.get_lint_errors()
    assert found["src/main.py"][0]["message"].startswith("ruff could not check the 1 Python files of the project: ")
    assert "0.0.1" in found["src/main.py"][0]["message"]


@requirement("EDIT-6")
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.json", '{\n  "a" 1\n}\n', 2),
        ("a.json", "", 1),
        ("a.json", "[" * 100_000, 1),
        ("a.json", "9" * 5000, 1),
        ("a.toml", "a = 1\nb =\n", 2),
        ("a.toml", "a = 1\na = 2\n", 2),
        ("a.toml", "a = 1\n\nb = [1,\n", 3),
        ("a.toml", "a = " + "[" * 100_000, 1),
    ],
)
def test_json_and_toml_are_read_by_their_parsers(editor: ProjectEditor, folder: Path, name: str, text: str, line: int):
    """The place is the line where the parser stopped, and endless nesting is a finding like any other."""
    (folder / name).write_text(text)
    found = editor.get_lint_errors()
    assert lines(found[name]) == [line]
    assert "line" not in found[name][0]["message"]


def test_sound_files_have_no_findings(editor: ProjectEditor, folder: Path):
    """Also with a byte order mark, and also files that are no text at all."""
    (folder / "a.json").write_bytes(b'\xef\xbb\xbf{"a": [1]}\r\n')
    (folder / "a.toml").write_text("a = 1\n")
    (folder / "b.json").write_bytes(b"\0\1\2")
    assert editor.get_lint_errors() == {}


def test_ignored_files_are_not_linted(editor: ProjectEditor, folder: Path):
    """The listing says what the project is."""
    (folder / ".gitignore").write_text("*.json\n")
    (folder / "a.json").write_text("{")
    assert editor.get_lint_errors() == {}


@requirement("EDIT-6")
def test_scripts_are_linted_by_our_own_checker(editor: ProjectEditor, folder: Path):
    """What the checker would say before a run, the editor says while the script is written."""
    (folder / "a.nuwa").write_text("LET a = 1\nLET b = a + c\nCALL nothing {}\n")
    (folder / "b.nuwa").write_text("LET a =\n")
    found = editor.get_lint_errors()
    assert lines(found["a.nuwa"]) == [2]
    assert found["a.nuwa"][0]["message"].startswith("UndefinedVariable ")
    assert found["b.nuwa"][0]["message"].startswith("ParseError ")


@requirement("EDIT-6")
def test_who_knows_the_tools_can_have_their_calls_checked(folder: Path):
    """A session hands its own signatures to the table; a project alone does not know which tools there will be."""
    (folder / "a.nuwa").write_text("CALL raed {}\n")
    table = {**default_linters(), ".nuwa": script_linter({"read": Signature("read")})}
    found = ProjectEditor(folder, linters=table).get_lint_errors()
    assert found == {"a.nuwa": [{"line": 1, "message": "ToolNotFound unknown tool raed (did you mean read?)"}]}


def test_any_function_of_a_text_can_be_a_linter(folder: Path):
    """The table is open: an ending and a function."""
    seen: list[str] = []

    def check(text: str) -> list[LintError]:
        seen.append(text)
        return [LintError(line=2, message="too short")]

    editor = ProjectEditor(folder, linters={**default_linters(), ".txt": text_linter(check)})
    assert editor.get_lint_errors() == {"notes.txt": [{"line": 2, "message": "too short"}]}
    assert seen == ["one\ntwo\n"]


SHOUT = "import sys; print(f'{sys.argv[1]}:3:1: too quiet'); print(f'{sys.argv[1]}:1: too loud'); sys.exit(1)"


def with_command(folder: Path, *words: str) -> dict[str, list[LintError]]:
    table: dict[str, Linter] = {".txt": command_linter(" ".join(f"'{word}'" for word in words))}
    return ProjectEditor(folder, linters=table).get_lint_errors()


@requirement("EDIT-6")
def test_other_linters_are_commands(folder: Path):
    """The usual form of a finding, path:line:column: message, is what most of them can print."""
    (folder / "shout.py").write_text(SHOUT)
    assert with_command(folder, sys.executable, "shout.py", "{path}") == {
        "notes.txt": [{"line": 1, "message": "too loud"}, {"line": 3, "message": "too quiet"}]
    }


def test_a_path_is_one_argument_and_never_an_option(folder: Path):
    """No shell looks at it, whatever the model called the file."""
    for name in ("-rf.txt", "a b;touch x.txt", "$(touch y).txt"):
        (folder / name).write_text("")
    (folder / "echo.py").write_text("import sys; print(f'x:1: {sys.argv[1:]}')")
    found = with_command(folder, sys.executable, "echo.py", "{path}")
    assert {path: one[0]["message"] for path, one in found.items()} == {
        name: repr([f"./{name}"]) for name in ("-rf.txt", "a b;touch x.txt", "$(touch y).txt", "notes.txt")
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no-such-linter", "{path}"), "no-such-linter is not installed"),
        ((sys.executable, "absent.py", "{path}"), "failed"),
    ],
)
def test_a_linter_that_cannot_run_is_a_finding(folder: Path, words: tuple[str, ...], said: str):
    """No findings would read as a clean project."""
    assert said in with_command(folder, *words)["notes.txt"][0]["message"]


def test_a_linter_that_hangs_is_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """Somebody is waiting for the card."""
    monkeypatch.setattr("lastword.editor.lint.LINT_TIMEOUT_SECONDS", 0.2)
    (folder / "hang.py").write_text("import sys; sys.stdin.read(); import signal; signal.pause()")
    assert (
        "took longer than 0.2 seconds"
        in with_command(folder, sys.executable, "hang.py", "{path}")["notes.txt"][0]["message"]
    )


def test_a_linter_is_given_no_key_of_ours(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A project brings its own commands, and they can talk to anybody."""
    (folder / "keys.py").write_text(
        "import os, sys\n"
        "print(f'{sys.argv[1]}:1: ' + ' '.join(v for v in os.environ.values() if v.startswith('sk-')))\n"
    )
    for name, value in (("LASTWORD_UPSTREAM_KEY", "sk-ours"), ("LASTWORD_TOKEN", "sk-token"), ("OTHER", "sk-theirs")):
        monkeypatch.setenv(name, value)
    assert with_command(folder, sys.executable, "keys.py", "{path}")["notes.txt"][0]["message"] == "sk-theirs"


def test_a_command_without_a_place_for_the_path_is_refused():
    """It would lint nothing, or everything."""
    with pytest.raises(EditError, match=r"write \{path\} in its place"):
        command_linter("shellcheck")


def test_findings_are_bounded_and_say_so(editor: ProjectEditor, folder: Path):
    """A generated file can have more than anybody reads."""
    (folder / "src/main.py").write_text("undefined\n" * (MAX_FINDINGS + 500))
    found = editor.get_lint_errors()
    assert sum(len(one) for one in found.values()) == MAX_FINDINGS
    assert found["src/main.py"][-1]["message"].startswith("and ")


def test_a_project_is_linted_wherever_it_stands(tmp_path: Path):
    """Ruff passes over folders of these names when it meets them; the project itself may well stand in one."""
    project = tmp_path / "build" / "venv" / "node_modules" / "project"
    (project / "venv").mkdir(parents=True)
    (project / "a.py").write_text("undefined\n")
    (project / "venv" / "b.py").write_text("undefined\n")
    assert list(ProjectEditor(project).get_lint_errors()) == ["a.py"]


def test_only_files_of_the_project_are_reported(editor: ProjectEditor, folder: Path, outside: Path):
    """A link leads out, and ruff has no reason to know."""
    (outside / "b.py").write_text("undefined\n")
    (folder / "link.py").symlink_to(outside / "b.py")
    (folder / "linked").symlink_to(outside)
    assert editor.get_lint_errors() == {}


def test_fixes_are_a_text_and_not_a_write(folder: Path):
    """A fix is shown as a diff before it is written, like every other change."""
    before = tree(folder)
    assert fixed_python(folder, "src/main.py", "import os\nprint(1)\n") == "print(1)\n"
    assert tree(folder) == before


def test_a_fix_leaves_line_endings_alone(folder: Path):
    """A file that has nothing to fix comes back as it was, to the last byte, and is not asked about."""
    assert fixed_python(folder, "src/main.py", "print(1)\r\nprint(2)\r\n") == "print(1)\r\nprint(2)\r\n"
    assert fixed_python(folder, "src/main.py", "import os\r\n\r\nprint(1)\r\n") == "\r\nprint(1)\r\n"


def test_a_text_that_cannot_be_fixed_comes_back_as_it_was(folder: Path):
    """Ruff leaves alone what it cannot parse."""
    assert fixed_python(folder, "src/main.py", "def f(\n") == "def f(\n"
