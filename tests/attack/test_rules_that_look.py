"""A tool's own rule decides by the arguments alone. One that looks around has not said that nobody need be asked."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastword import Session, ToolRegistry
from lastword.testing import FixedApprover
from requirements import requirement

LOOKS: dict[str, Callable[[str], bool]] = {
    "whether it is there": lambda path: os.path.exists(path),
    "whether it is there, by pathlib": lambda path: Path(path).exists(),
    "whether it is a file": lambda path: os.path.isfile(path),
    "whether it is a link": lambda path: os.path.islink(path),
    "where it leads": lambda path: os.path.realpath(path) != path,
    "its size": lambda path: os.stat(os.path.dirname(path)).st_size < 0,
    "whether it may be written": lambda path: not os.access(os.path.dirname(path), os.W_OK),
    "how much room there is": lambda path: os.statvfs("/").f_bavail < 0,
    "the list of its folder": lambda path: path in os.listdir(os.path.dirname(path)),
    "the entries of its folder": lambda path: any(entry.path == path for entry in os.scandir(os.path.dirname(path))),
    "names like it": lambda path: bool(list(Path(path).parent.glob("*.txt"))),
    "what the system says": lambda path: not Path("/proc/self/stat").read_text(),
    "a device": lambda path: Path("/dev/null").read_bytes() != b"",
}


@requirement("TOOL-62")
@pytest.mark.parametrize("rule", LOOKS.values(), ids=LOOKS)
async def test_a_rule_that_looks_whether_a_file_is_there_asks(registry: ToolRegistry, effects, rule, tmp_path: Path):
    """ "Ask only when something is overwritten" is the first rule that people write, and a file can come into being
    between the rule and the writing. Each of these says False here, and said that nobody need be asked.
    """
    target = tmp_path / "report.txt"

    @registry.tool(require_approval=rule)
    def save(path: str) -> None:
        """Write a report."""
        effects.append(path)

    session = Session(registry, approver=FixedApprover(lambda card: card.deny()))
    outcome = await session.call("save", {"path": str(target)})
    assert (outcome.kind, outcome.approval, effects) == ("denied", "person", [])


async def test_a_rule_that_only_computes_still_spares_the_question(registry: ToolRegistry, effects: list[Any]):
    """Also after rules that looked, and although it imports something and splits a path: that is no look."""

    def is_outside(path: str) -> bool:
        import posixpath

        return not posixpath.normpath(path).startswith("/tmp/")

    @registry.tool(require_approval=is_outside)
    def save(path: str) -> None:
        """Write a report."""
        effects.append(path)

    session = Session(registry, approver=FixedApprover(lambda card: card.deny()))
    outcome = await session.call("save", {"path": "/tmp/x/../y"})
    assert (outcome.kind, outcome.approval, effects) == ("succeeded", "waived", ["/tmp/x/../y"])
    assert os.stat in os.supports_dir_fd
    assert os.stat in os.supports_follow_symlinks
