"""What is left out where it could not be set up; `./test` names it in its last lines."""

from pathlib import Path

import pytest
from real_servers import CHECKS, INSTALLED

_NEEDED = {
    "test_real_servers.py": INSTALLED / "installed.json",
    "test_conformance.py": CHECKS / "installed.json",
    "test_python_servers.py": CHECKS / "installed",
}
collect_ignore = [name for name, file in _NEEDED.items() if not file.exists()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Whose folder, home and memory these are, for commands in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / ".data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path
