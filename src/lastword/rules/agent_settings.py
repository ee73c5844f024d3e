"""Where agents read which hooks they start. Our gate is one of those: whoever writes these files can take it away.

Only names are known here, and nothing of what stands in the files (hook/installing.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one agent."""

    folder: str
    """In a project, and in the person's home."""
    file: str
    """The person's own hooks, for all projects."""
    in_project: str
    """Their hooks for one project."""
    others: tuple[str, ...] = ()
    """Further files that bring hooks, or turn them off."""
    moved_by: str | None = None
    """The variable that names another folder than the one in the home."""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.file, self.in_project, *self.others)))

    def of_person(self) -> str:
        """The folder of the person's own settings."""
        named = os.environ.get(self.moved_by) if self.moved_by else None
        return named or os.path.join(os.path.expanduser("~"), self.folder)


SETTINGS: dict[str, AgentSettings] = {
    "claude": AgentSettings(
        folder=".claude", file="settings.json", in_project="settings.local.json", moved_by="CLAUDE_CONFIG_DIR"
    ),
    "codex": AgentSettings(
        folder=".codex", file="hooks.json", in_project="hooks.json", others=("config.toml",), moved_by="CODEX_HOME"
    ),
    "gemini": AgentSettings(folder=".gemini", file="settings.json", in_project="settings.json"),
}


# Where an agent was started, as it tells its hooks. It may have gone elsewhere since.
_STARTED_IN = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")


def projects_started_in() -> list[str]:
    """The folders in which agents above this program were started, links followed."""
    named = (os.environ.get(name, "") for name in _STARTED_IN)
    return [os.path.realpath(folder) for folder in named if os.path.isabs(folder)]


def settings_in(project: str) -> Iterator[str]:
    """The settings of every agent that has a folder in this project, whether they are there or not."""
    for agent in SETTINGS.values():
        yield from _within(f"{project}/{agent.folder}", agent)


def settings_of_person() -> Iterator[str]:
    """The person's own settings of every agent, whether they are there or not."""
    for agent in SETTINGS.values():
        yield from _within(agent.of_person(), agent)


def _within(folder: str, agent: AgentSettings) -> Iterator[str]:
    # Where a folder of this name is not there, no link is on the way to it, and whoever makes it gives it that name.
    if not folder.endswith(f"/{agent.folder}") or os.path.lexists(folder):
        yield from (f"{folder}/{name}" for name in agent.files)
