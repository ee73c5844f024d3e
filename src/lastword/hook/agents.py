"""Which agents there are, what they call their tools, and which of these only look."""

from __future__ import annotations

import msgspec


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one agent."""

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
    all_occurrences: str = "replace_all"
    """The argument by which an edit replaces every occurrence."""
    can_drop: bool = True
    """Whether arguments that a person took out are gone, or come back from those that the model gave."""
    has_comments: bool = False
    """Whether it reads settings with comments in them. One that does not takes none of them, and starts no hook."""
    default_seconds: float
    """How long it waits for a hook whose settings do not say."""


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
    all_occurrences="allow_multiple",
    can_drop=False,
    has_comments=True,
    default_seconds=60,
)

AGENTS: dict[str, Agent] = {agent.key: agent for agent in (CLAUDE, CODEX, GEMINI)}

# A tool that no agent has. The doctor asks a gate about it, and a gate that works denies it.
PROBE = "LastwordProbe"
