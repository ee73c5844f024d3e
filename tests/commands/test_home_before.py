"""What a person configured and accepted with an earlier version holds with this one."""

import json
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from surfaces.screens import piped

# A configuration, a policy and a tool that its rule allows, all accepted, and the hook of Claude Code with its key. The
# commands of commit 91fb2d6 wrote these files. Where they named their folder and their Python stand marks.
WRITTEN = Path(__file__).with_name("home_before.json")
SETTINGS = ".claude/settings.json"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The same files in a folder of today."""
    settings = str(tmp_path.resolve() / SETTINGS)
    marks = {
        "@HOME@": str(tmp_path),
        "@PYTHON@": sys.executable,
        "@MARK@": sha256(settings.encode()).hexdigest()[:12],
    }
    for name, text in json.loads(WRITTEN.read_text()).items():
        for mark, meant in marks.items():
            name, text = name.replace(mark, meant), text.replace(mark, meant)
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_a_policy_accepted_before_is_accepted(home: Path):
    """Whoever upgrades is not asked again what was agreed to, neither of the file nor of the tool that it allows."""
    said = piped("policy", "check", "--tools", "tools", cwd=home)
    assert "(user, accepted)\n" in said.stdout
    assert [line.split(" (")[0].split() for line in said.stdout.splitlines()[1:]] == [
        ["allow", "small", "lunches"],
        ["deny", "never", "Mallory"],
    ]
    assert said.returncode == 0


@pytest.mark.parametrize(
    ("to", "amount", "code", "word"),
    [("Ada", 12, 0, "small lunches"), ("Ada", 25, 3, "nobody"), ("Mallory", 5, 3, "never Mallory")],
    ids=["allowed", "outside its bounds", "denied"],
)
def test_a_rule_accepted_before_decides(home: Path, to: str, amount: int, code: int, word: str):
    """A rule's yes runs the call without a question, its no and its silence do not run it."""
    said = piped("call", "pay", f"to={to}", f"amount={amount}", "--tools", "tools", cwd=home)
    assert said.returncode == code
    assert word in said.stdout + said.stderr
    assert (home / "paid").exists() == (code == 0)


def test_a_configuration_accepted_before_counts(home: Path):
    """It was read and agreed to as it is. Without its line among what was accepted, its preset would not count."""
    assert "notes  not trusted" in piped("mcp", "list", cwd=home).stdout
    assert "have not accepted" not in piped("chat", "--preset", "careful", cwd=home).stderr
    accepted = home / ".data/lastword/trusted.json"
    accepted.write_text(accepted.read_text().replace("lastword.toml", "another.toml"))
    assert "this does not count: server.limits, preset.careful" in piped("chat", cwd=home).stderr


def test_a_hook_installed_before_comes_out_byte_for_byte(home: Path):
    """What was kept of the agent's settings then is given back now."""
    shown = piped("hook", "uninstall", "claude", cwd=home)
    assert "edited" not in shown.stdout + shown.stderr
    [digest] = [line.rpartition("--apply ")[2] for line in shown.stderr.splitlines() if "--apply " in line]
    assert piped("hook", "uninstall", "claude", "--apply", digest, cwd=home).returncode == 0
    assert (home / SETTINGS).read_text() == '{\n  "theme": "dark",\n  "hooks": {"PreToolUse": []}\n}\n'
