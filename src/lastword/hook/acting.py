"""What of an agent's call acts: the arguments that rules look at and a person agrees to, and the folder among them.

The folder is none of the agent's arguments, and decides what a command does as much as they do: `git status` runs what
the configuration of that folder names. So it is shown and bounded like one, under the name `cwd`, with links followed,
and taken out again before the agent is answered. A remark says what a command is for, in other words each time, and
nothing acts on it: it is shown as the agent's words, and is no part of the call.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastword.hook.contract import HookInput

if TYPE_CHECKING:
    from lastword.tools.manifest import ToolKey  # A call that only looks needs no tools, and an agent waits.

FOLDER = "cwd"


def folder_of(said: HookInput) -> Path | None:
    """The folder that the call would be carried out in, links followed; None when it is not said."""
    if not os.path.isabs(said.cwd) or "\0" in said.cwd:
        return None
    other = said.arguments.get(said.agent.shell_folder) if said.agent.shell_folder and _is_shell(said) else None
    return Path(os.path.realpath(os.path.join(said.cwd, other if isinstance(other, str) and "\0" not in other else "")))


def has_folder(said: HookInput) -> bool:
    """Whether the folder is among what is shown and bounded: it is said, and the call has no argument of that name."""
    return folder_of(said) is not None and FOLDER not in said.arguments


def why_unclear(said: HookInput) -> str | None:
    """Why nobody can say what a call means, or None: a tool that takes no folder was given one under our name."""
    if FOLDER in said.arguments and said.tool in said.agent.own_tools | said.agent.looks:
        return f"{said.tool} takes no argument {FOLDER}, so nobody knows what it would do. Leave it out."
    return None


def acting(said: HookInput) -> dict[str, Any]:
    """What a person is asked about, and what rules look at."""
    remark = _remark(said)
    found = {name: value for name, value in said.arguments.items() if name != remark}
    return found | {FOLDER: str(folder_of(said))} if has_folder(said) else found


def as_given(said: HookInput, allowed: dict[str, Any]) -> dict[str, Any]:
    """Arguments that were allowed, as the agent knows them: without the folder, and with its remark."""
    remark = _remark(said)
    found = {remark: said.arguments[remark]} if remark is not None and remark in said.arguments else {}
    is_ours = FOLDER not in said.arguments and (has_folder(said) or not said.is_before)
    return found | {name: value for name, value in allowed.items() if name != FOLDER or not is_ours}


def remark_of(said: HookInput) -> str:
    """What the agent says that a command is for; empty when it says nothing."""
    remark = _remark(said)
    text = said.arguments.get(remark) if remark is not None else None
    return text.strip() if isinstance(text, str) else ""


def key_for(said: HookInput, turned: ToolKey) -> ToolKey:
    """The key of an agent's tool, for this very call: as the person turned it, or less.

    Nothing stands for them where it is not certain what would run, and where: a folder that is not said, a tool that
    may be any server's, a question that the agent's own rules ask. A shell that is given more than we know of takes a
    yes to exact arguments at most.
    """
    agent = said.agent
    if said.event != agent.before or not agent.says_folder or not has_folder(said):
        return False
    if said.tool not in agent.own_tools:
        return False
    if _is_shell(said) and not said.arguments.keys() <= agent.shell_arguments:
        return turned and "exact"
    return turned


def _is_shell(said: HookInput) -> bool:
    return said.tool in said.agent.shells


def _remark(said: HookInput) -> str | None:
    return said.agent.remark if _is_shell(said) else None
