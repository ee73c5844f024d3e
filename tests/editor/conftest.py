"""A project on disk with something beside it that nobody may reach."""

from pathlib import Path

import pytest
from workbench import Workbench

from lastword.editor import ProjectEditor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "main.py").write_text("print('hello')\n")
    (project / "notes.txt").write_text("one\ntwo\n")
    return project


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    beside = tmp_path / "outside"
    beside.mkdir()
    (beside / "secret.txt").write_text("secret\n")
    return beside


@pytest.fixture
def editor(folder: Path) -> ProjectEditor:
    return ProjectEditor(folder)


@pytest.fixture
def bench(folder: Path) -> Workbench:
    return Workbench(folder)
