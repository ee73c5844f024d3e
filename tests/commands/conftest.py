"""An empty folder to stand in, and commands whose words are read."""

import json
from pathlib import Path

import pytest

from commands.paying import MANIFEST, PAY, Transcript, mask, with_digest
from lastword.cli import run


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with a memory of its own and one tool."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LASTWORD_LOG", raising=False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    folder = Path("mine/pay")
    folder.mkdir(parents=True)
    (folder / "assistant_tool.json").write_text(json.dumps(MANIFEST))
    (folder / "assistant_tool.py").write_text(PAY)
    return tmp_path


@pytest.fixture
def transcript(capsys: pytest.CaptureFixture[str]) -> Transcript:
    """Runs commands, and gives what a person would have read, without times and digests."""

    def play(*commands: str) -> str:
        played = []
        for command in commands:
            code = run(with_digest(command.split()))
            said = capsys.readouterr()
            played.append(f"$ lastword {command}\n{said.out}{said.err}[exit {code}]\n")
        return mask("\n".join(played))

    return play
