"""Which agents there are, what they call their tools, which of these only look, and the key that the person holds.

The key of an agent's tools says whether rules and grants of theirs may answer for them. It is turned where the hook is
installed, and lies in the person's own folder: an agent's settings may come with a project. Without a word of theirs
it is never.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from lastword.errors import ConfigError
from lastword.store import data_folder

if TYPE_CHECKING:
    from lastword.tools import ToolKey  # A call that only looks needs no tools, and an agent waits.

KEYS_FILE = "agent_keys.json"

WORDS: dict[str, ToolKey] = {"never": False, "exact": "exact", "bounds": "bounds"}
"""How a person names the positions of a key."""

SAYS = {
    "never": "every call of its tools asks you",
    "exact": "your rules and grants may answer for calls that they name exactly, folder included",
    "bounds": "your rules and grants may answer for calls within their bounds",
}
"""What each of them means for the tools of an agent."""


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one agent."""

    # A tool that no agent has. The doctor asks a gate about it, and a gate that works denies it.
    PROBE: ClassVar = "LastwordProbe"

    key: str
    name: str
    before: str
    """The event before a tool runs, which may still be stopped."""
    after: tuple[str, ...]
    """The events once it ran."""
    permission: str | None = None
    """The event in place of its own question to the person."""
    looks: frozenset[str]
    """Tools that change nothing and reach nothing. Nobody is asked about them here; the agent's own rules stay."""
    shells: frozenset[str]
    """Tools that run the `command` they are given."""
    edits: frozenset[str]
    """Tools that replace `old_string` by `new_string` in `file_path`."""
    edit_lists: frozenset[str] = frozenset()
    """The same with several `edits` of one file, in order."""
    writes: frozenset[str]
    """Tools that write `content` into `file_path`."""
    others: frozenset[str] = frozenset()
    """Further tools of its own. One that is in no list may be anybody's, and change with every start."""
    shell_arguments: frozenset[str] = frozenset(["command"])
    """What its shells are known to take. With anything else, nobody here knows what a command would do."""
    remark: str | None = None
    """The argument of its shells that says what a command is for. It is shown, and nothing acts on it."""
    shell_folder: str | None = None
    """The argument of its shells that names another folder to run in."""
    says_folder: bool = True
    """Whether its hook is told in which folder a command will run. Where it is not, nothing can stand for a person."""
    tells: frozenset[str] = frozenset()
    """What it says with every event, beside what is needed. Other programs start the hooks of its settings, too."""
    others_tell: frozenset[str] = frozenset()
    """What those other programs say, and it never does."""
    all_occurrences: str = "replace_all"
    """The argument by which an edit replaces every occurrence."""
    can_drop: bool = True
    """Whether arguments that a person took out are gone, or come back from those that the model gave."""
    has_comments: bool = False
    """Whether it reads settings with comments in them. One that does not takes none of them, and starts no hook."""
    default_seconds: float
    """How long it waits for a hook whose settings do not say."""

    @property
    def files(self) -> frozenset[str]:
        """The tools that change the file at `file_path`."""
        return self.edits | self.edit_lists | self.writes

    @property
    def own_tools(self) -> frozenset[str]:
        """The tools that it brings along and that do more than look."""
        return self.shells | self.files | self.others


CLAUDE = Agent(
    key="claude",
    name="Claude Code",
    before="PreToolUse",
    after=("PostToolUse", "PostToolUseFailure"),
    permission="PermissionRequest",
    looks=frozenset(
        [
            "Read", "Glob", "Grep", "LS", "NotebookRead", "BashOutput", "TaskOutput", "TodoRead", "TodoWrite",
            "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode",
            "ToolSearch", "ListMcpResourcesTool",
        ]
    ),
    shells=frozenset(["Bash"]),
    edits=frozenset(["Edit"]),
    edit_lists=frozenset(["MultiEdit"]),
    writes=frozenset(["Write"]),
    others=frozenset(["NotebookEdit", "WebFetch", "WebSearch"]),
    shell_arguments=frozenset(["command", "description", "timeout", "run_in_background"]),
    remark="description",
    tells=frozenset(["transcript_path", "permission_mode"]),
    # Cursor and VS Code: the folder that they name is that of the window, and not where a command runs.
    others_tell=frozenset(["cursor_version", "workspace_roots", "conversation_id", "sessionId", "timestamp"]),
    default_seconds=600,
)  # fmt: skip
CODEX = Agent(
    key="codex",
    name="Codex",
    before="PreToolUse",
    after=("PostToolUse",),
    permission="PermissionRequest",
    looks=frozenset(["update_plan", "view_image", "list_dir", "read_file", "grep_files"]),
    shells=frozenset(["Bash", "shell", "exec_command", "apply_patch"]),
    edits=frozenset(["Edit"]),
    writes=frozenset(["Write"]),
    # Its hook hears the command alone. That the model named a folder (`workdir`) with it stays between the two.
    says_folder=False,
    default_seconds=600,
)
GEMINI = Agent(
    key="gemini",
    name="Gemini CLI",
    before="BeforeTool",
    after=("AfterTool",),
    looks=frozenset(
        ["read_file", "read_many_files", "list_directory", "glob", "search_file_content", "grep_search", "write_todos"]
    ),
    shells=frozenset(["run_shell_command"]),
    edits=frozenset(["replace"]),
    writes=frozenset(["write_file"]),
    others=frozenset(["web_fetch", "google_web_search"]),
    shell_arguments=frozenset(["command", "description", "dir_path", "is_background"]),
    remark="description",
    shell_folder="dir_path",
    tells=frozenset(["transcript_path", "timestamp"]),
    all_occurrences="allow_multiple",
    can_drop=False,
    has_comments=True,
    default_seconds=60,
)

AGENTS: dict[str, Agent] = {agent.key: agent for agent in (CLAUDE, CODEX, GEMINI)}

# A gate gives up this much before the agent gives up on it.
MARGIN_SECONDS = 60.0


class AgentKeys:
    """What this person has turned, by agent."""

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or data_folder() / KEYS_FILE

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
