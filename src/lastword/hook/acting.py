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
from lastword.rules import reads_two_ways

if TYPE_CHECKING:
    from lastword.tools import ToolKey  # A call that only looks needs no tools, and an agent waits.

FOLDER = "cwd"
# What agents call the file that a tool of theirs changes.
_FILES = ("file_path", "notebook_path")


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
    """Why nobody can say what a call means, or None: a tool that takes no folder was given one under our name, or a
    file is named in a way that leads the agent elsewhere than the card."""
    agent = said.agent
    if FOLDER in said.arguments and said.own_tool in agent.own_tools | agent.looks:
        return f"{said.tool} takes no argument {FOLDER}, so nobody knows what it would do. Leave it out."
    for path in (said.arguments.get(name) for name in _FILES if said.own_tool in agent.own_tools):
        if isinstance(path, str) and path.startswith("~"):
            return f"Whether {path[:200]} is in a home or in a folder called ~, nobody knows here. Give the whole path."
        if isinstance(path, str) and "\0" not in path and reads_two_ways(path, Path(said.cwd or "/")):
            return f"Which file {path[:200]} is depends on who reads it. Give the whole path, without .. behind a link."
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

    Nothing stands for them where it is not certain what would run, and where: a folder that is not said or not there
    (an agent whose folder is gone may go on in another), a file behind a link, a tool that may be any server's, a
    question that the agent's own rules ask, another program that starts this agent's hooks. A shell that is given more
    than we know of takes a yes to exact arguments at most.
    """
    agent = said.agent
    if said.event != agent.before or not said.is_its_own or not agent.says_folder or not has_folder(said):
        return False
    if said.own_tool not in agent.own_tools or not os.path.isdir(str(folder_of(said))):
        return False
    if not _is_where_it_says(said):
        return False
    if _is_shell(said) and not said.arguments.keys() <= agent.shell_arguments:
        return turned and "exact"
    return turned


def _is_shell(said: HookInput) -> bool:
    return said.own_tool in said.agent.shells


def _is_where_it_says(said: HookInput) -> bool:
    """Whether the file that would be changed is the one that is named. A link may lead to another one tomorrow."""
    named = {name: said.arguments[name] for name in _FILES if name in said.arguments}
    if said.own_tool in said.agent.files and "file_path" not in named:
        return False
    for path in named.values():
        if not isinstance(path, str) or not path or "\0" in path:
            return False
        whole = os.path.join(said.cwd, path)
        if os.path.realpath(whole) != os.path.abspath(whole):
            return False
    return True


def _remark(said: HookInput) -> str | None:
    return said.agent.remark if _is_shell(said) else None
