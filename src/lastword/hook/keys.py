"""The key of each agent's tools, which the person holds: whether rules and grants of theirs may answer for them.

It is turned where the hook is installed (installing.py), and lies in the person's own folder: an agent's settings may
come with a project. Without a word of theirs it is never.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import msgspec

from lastword.errors import ConfigError
from lastword.hook.agents import Agent
from lastword.store import data_folder
from lastword.tools import ToolKey

KEYS_FILE = "agent_keys.json"

WORDS: dict[str, ToolKey] = {"never": False, "exact": "exact", "bounds": "bounds"}
"""How a person names the positions of a key."""

SAYS = {
    "never": "every call of its tools asks you",
    "exact": "your rules and grants may answer for calls that they name exactly, folder included",
    "bounds": "your rules and grants may answer for calls within their bounds",
}
"""What each of them means for the tools of an agent."""


class AgentKeys:
    """What this person has turned, by agent."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or data_folder(sys.platform, os.environ, Path.home()) / KEYS_FILE

    def of(self, agent: Agent) -> ToolKey:
        return WORDS.get(self.read().get(agent.key, "never"), False)

    def read(self) -> dict[str, str]:
        """What was turned, in the words of `WORDS`. A ConfigError when it cannot be believed."""
        try:
            facts = self.file.stat()
            if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise ConfigError(
                    "others could have written this list of keys, so it is not believed",
                    place=str(self.file),
                    hint="delete it, and install the hooks again",
                )
            return msgspec.json.decode(self.file.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as problem:
            hint = "delete it, and install the hooks again"
            raise ConfigError(f"cannot be read: {problem}", place=str(self.file), hint=hint) from None
