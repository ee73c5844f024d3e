"""Code that was found, not named: run after one question, and again when it is other code."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from lastword import ToolRegistry
from lastword.author import NewTool
from lastword.errors import ConfigError, ToolLoadError
from lastword.tools.folder import MAX_FILES, Toolbox, ToolFolder, Unagreed
from lastword.tools.trust import Trust
from requirements import requirement


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("sys.pycache_prefix", None)
    return tmp_path


@pytest.fixture
def tool(here: Path) -> Path:
    NewTool("hello", "Greets.", False, "none").write(here / "tools")
    return Path("tools/hello")


class Asked:
    """Answers the question about found code, and remembers that it was asked."""

    def __init__(self, answer: Literal["yes", "always", "no"]) -> None:
        self.answer = answer
        self.questions: list[bool] = []
        self.times = 0

    def __call__(self, questions: Sequence[Unagreed]) -> list[Any]:
        self.times += 1
        self.questions += [question.is_changed for question in questions]
        return [self.answer for _ in questions]


def load(asked: Asked | None) -> list[str]:
    return [tool.name for tool in Toolbox.find().load(ToolRegistry(), ask=asked)]


@requirement("TOOL-16")
def test_one_question_and_never_again_for_the_same_code(tool: Path) -> None:
    """Re-asking is the loudest complaint there is."""
    asked = Asked("yes")
    assert load(asked) == ["hello"]
    assert load(asked) == ["hello"]
    assert load(None) == ["hello"]
    assert asked.questions == [False]


@requirement("TOOL-16")
@pytest.mark.parametrize("change", ["assistant_tool.py", "assistant_tool.json", "helper.py", "deep/er.py", "n.so"])
def test_changed_code_is_asked_about_again(tool: Path, change: str) -> None:
    """Anything that could be imported counts, and the manifest, which says whether a person is asked at all."""
    load(Asked("yes"))
    file = tool / change
    file.parent.mkdir(exist_ok=True)
    before = file.read_text() if file.exists() else ""
    file.write_text(before + "\n")
    asked = Asked("no")
    with pytest.raises(ToolLoadError, match="did not agree"):
        load(asked)
    assert asked.questions == [True]


@requirement("TOOL-16")
def test_what_cannot_be_imported_changes_nothing(tool: Path) -> None:
    """A tool may keep data beside its code."""
    load(Asked("yes"))
    (tool / "notes.txt").write_text("data")
    (tool / "__pycache__").mkdir()
    (tool / "__pycache__" / "helper.cpython-311.pyc").write_bytes(b"byte code")
    assert load(None) == ["hello"]


@requirement("TOOL-16")
def test_byte_code_that_came_with_a_tool_is_never_read(tool: Path) -> None:
    """A __pycache__ can hold other code than its source, so Python is sent to look elsewhere."""
    load(Asked("yes"))
    assert sys.pycache_prefix is not None
    assert Path(sys.pycache_prefix).is_relative_to(Path(os.environ["XDG_DATA_HOME"]))
    assert "__pycache__" in sys.pycache_prefix  # the guard lets byte code be written, by this name


@requirement("TOOL-16")
def test_always_covers_the_folder_while_it_is_mine_alone(tool: Path) -> None:
    """Who works on a tool of their own is asked once; not after others could have written it."""
    load(Asked("always"))
    (tool / "assistant_tool.py").write_text((tool / "assistant_tool.py").read_text() + "\n# edited\n")
    assert load(None) == ["hello"]
    (tool / "assistant_tool.py").chmod(0o666)
    with pytest.raises(ToolLoadError, match="has changed since somebody agreed"):
        load(None)


@requirement("TOOL-16")
def test_trust_does_not_travel_to_another_folder(tool: Path) -> None:
    """The same code in another place may find other things beside it."""
    load(Asked("yes"))
    tool.rename("tools/moved")
    with pytest.raises(ToolLoadError, match="nobody has agreed"):
        load(None)


@requirement("TOOL-16")
def test_a_named_folder_is_meant(tool: Path) -> None:
    """Who types --tools has answered the question."""
    assert [t.name for t in Toolbox.find(["tools"]).load(ToolRegistry(), ask=None)] == ["hello"]


@requirement("TOOL-16")
def test_no_code_runs_before_the_answer(tool: Path) -> None:
    """The question comes first, for every tool, and then the imports."""
    (tool / "assistant_tool.py").write_text("open('ran', 'w')")
    with pytest.raises(ToolLoadError):
        load(Asked("no"))
    assert not Path("ran").exists()


def test_code_behind_a_link_counts(tool: Path, here: Path) -> None:
    """A link can lead anywhere, and what it leads to can be imported."""
    outside = here / "outside"
    outside.mkdir()
    (outside / "x.py").write_text("1")
    (tool / "linked").symlink_to(outside)
    (tool / "loop").symlink_to(tool.resolve())
    before = ToolFolder(tool).digest()
    (outside / "x.py").write_text("2")
    assert ToolFolder(tool).digest() != before


def test_a_folder_of_thousands_is_refused_in_words(tool: Path) -> None:
    """Hashing somebody's whole environment would look like a hang."""
    (tool / "many").mkdir()
    for n in range(MAX_FILES + 1):
        (tool / "many" / f"m{n}.py").touch()
    with pytest.raises(ToolLoadError, match="more than 2000 files"):
        ToolFolder(tool).digest()


def test_only_this_user_can_read_the_list(tool: Path) -> None:
    """It says which code of whose runs here."""
    Trust().remember(ToolFolder(tool))
    file = Path(os.environ["XDG_DATA_HOME"]) / "lastword" / "trusted.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("damage", ["not json", "[]", '{"/x": {"digest": 3}}'])
def test_a_damaged_list_is_told_and_trusts_nothing(tool: Path, damage: str) -> None:
    """Neither a crash nor a yes."""
    file = Path(os.environ["XDG_DATA_HOME"]) / "lastword" / "trusted.json"
    file.parent.mkdir(parents=True)
    file.write_text(damage)
    file.chmod(0o600)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(None)


def test_a_list_that_others_may_write_is_not_believed(tool: Path) -> None:
    """Else anybody on the machine could agree for me."""
    Trust().remember(ToolFolder(tool))
    file = Path(os.environ["XDG_DATA_HOME"]) / "lastword" / "trusted.json"
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="not believed"):
        load(None)


@requirement("TOOL-16")
def test_a_folder_of_tools_is_one_question(tool: Path, here: Path) -> None:
    """Six questions in a row are read by nobody; one list is."""
    for n in range(5):
        NewTool(f"more_{n}", "Greets.", False, "none").write(here / "tools")
    asked = Asked("yes")
    assert len(load(asked)) == 6
    assert (asked.times, len(asked.questions)) == (1, 6)
    assert len(load(None)) == 6


@requirement("TOOL-16")
@pytest.mark.parametrize("answer", ["yes", "always"])
@pytest.mark.parametrize("changed", ["assistant_tool.py", "assistant_tool.json", "helper.py"])
def test_code_that_changes_between_the_list_and_the_answer_is_neither_run_nor_trusted(
    tool: Path, here: Path, answer: Literal["yes", "always", "no"], changed: str
) -> None:
    """Whoever can write the folder waits for the question. The yes was for what was listed."""
    NewTool("other", "Greets.", False, "none").write(here / "tools")

    def swap(questions: Sequence[Unagreed]) -> list[Any]:
        file = tool / changed
        before = file.read_text() if file.exists() else ""
        file.write_text("open('ran', 'w')" if file.name == "assistant_tool.py" else before + "\n")
        return [answer for _ in questions]

    with pytest.raises(ToolLoadError, match="changed while you were asked"):
        Toolbox.find().load(ToolRegistry(), ask=swap)
    assert not Path("ran").exists()
    assert not Trust().covers(ToolFolder(tool))
    assert Trust().covers(ToolFolder(Path("tools/other")))


@requirement("TOOL-16")
def test_one_no_among_several_keeps_the_others_and_loads_nothing(tool: Path, here: Path) -> None:
    """What was agreed to is not asked again; without all of its tools nothing starts."""
    NewTool("other", "Greets.", False, "none").write(here / "tools")
    with pytest.raises(ToolLoadError, match="did not agree"):
        Toolbox.find().load(ToolRegistry(), ask=lambda questions: ["yes", "no"])
    assert Trust().covers(ToolFolder(tool))
    assert not Trust().covers(ToolFolder(Path("tools/other")))
