"""An agent's tool as one of ours. On its card a command is a command, an edit a diff against the file, anything else
arguments.

What is worked out here is what the agent's own tool would do. Where that cannot be worked out nobody is shown a guess:
the agent is told to look again, or the card says that there is no diff and why. Rules know these tools by their
addresses: `claude:Bash`, or all of one agent, `claude:*`.
"""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lastword import consent
from lastword.editor import MAX_FILE_BYTES, RecordingEditor, decode
from lastword.errors import ArgumentsError, EditError, NotText, ToolError
from lastword.hook.agents import AGENTS, Agent, AgentKeys
from lastword.hook.event import FOLDER, HookInput
from lastword.tools import Manifest, Parameter, Tool, ToolKey, tool_id

if TYPE_CHECKING:
    from lastword.rules import Policy, PolicyRule, Saying

Params = dict[str, Any]
Request = Callable[..., Any]

# What a tool of this kind is called on the card.
_ICONS = {"shell": "terminal", "file": "pencil"}


def tool_for(said: HookInput, turned: ToolKey | None = None) -> tuple[Tool, OneFile | None]:
    """The agent's tool as ours, and the file that its card compares with, if it changes one.

    Its key is as the person left it, unless it is known already.
    """
    agent, name, own = said.agent, said.tool, said.own_tool
    changes_file = own in agent.files and "file_path" in said.arguments
    given = said.arguments.get("file_path")
    file: OneFile | None = None
    request: Request = _plain(said)
    key = said.key_for(AgentKeys().of(agent) if turned is None else turned)
    if own in agent.shells and isinstance(said.arguments.get("command"), str):
        request = _command(said)
    elif changes_file and isinstance(given, str) and given and "\0" not in given:
        file = OneFile(os.path.join(said.cwd or os.sep, given))
        if key is not False and not file.can_be_shown():
            key = False
        request = _change(said, file, is_standing=key is not False)
    # What the card shows beside the arguments is this one. A person who changes it sees no other card for that.
    shown = "command" if request.__name__ == "command" else "content" if file and own in agent.writes else None
    parameters = [] if shown is None else [Parameter(shown, "string")]
    if said.has_folder:
        parameters.append(
            Parameter(FOLDER, "string", "the folder that it is carried out in", schema={"format": "path"})
        )
    manifest = Manifest(
        id=tool_id(agent.key, name),
        display_name=f"{agent.name}: {name}",
        description=f"{agent.name} carries this out itself once you allow it; lastword does not run it.",
        icon=_ICONS["file"] if file else _ICONS["shell"] if shown else None,
        parameters=tuple(parameters),
        additional_parameters=True,
        content_parameter=shown,
        auto_approve=key,
    )
    tool = Tool(
        manifest,
        "assistant",
        None,
        request=_in_its_folder(said, request),
        code=b"handed over",
        carried_out_by=agent.name,
        address=f"{agent.key}:{name}",
        works_in=(said.folder if agent.says_folder else None) or Path(),
    )
    return tool, file


def known_tool(agent: Agent, name: str, turned: ToolKey, folder: str = os.sep) -> Tool:
    """An agent's tool as its ordinary calls have it: for whoever accepts a rule about it, or asks what rules say."""
    given: Params = {"command": ""} if name in agent.shells else {}
    if name in agent.files:
        given = {"file_path": os.path.join(os.sep, "file"), "content": ""}
    said = HookInput(agent=agent, event=agent.before, session="-", tool=name, arguments=given, cwd=folder)
    return tool_for(said, turned)[0]


def agents_tool(address: str, folder: str | None = None) -> Tool | None:
    """The tool that an address names, as the calls of that agent in a folder have it; None when it names none."""
    key, colon, name = address.partition(":")
    agent = AGENTS.get(key)
    if agent is None or not colon or not name or name == "*":
        return None
    where = os.path.realpath(folder) if folder else os.sep
    return known_tool(agent, name, AgentKeys().of(agent), where)


def agents_tools(rules: Iterable[PolicyRule]) -> Iterator[Tool]:
    """The tools of agents that rules speak of."""
    rules = list(rules)
    if not rules:
        return
    keys = AgentKeys()
    for agent in AGENTS.values():
        turned = keys.of(agent)
        named = {rule.tool.removeprefix(f"{agent.key}:") for rule in rules if rule.tool.startswith(f"{agent.key}:")}
        for name in sorted(agent.own_tools | agent.looks | named - {"*"}):
            tool = known_tool(agent, name, turned)
            if any(rule.speaks_of(tool) for rule in rules):
                yield tool


def ruled(said: HookInput, policy: Policy | None) -> Saying | None:
    """What the rules say of a call; None when they say nothing that counts."""
    if policy is None:
        return None
    tool, _ = tool_for(said)
    try:
        meant = consent.Call("", tool.name, tool.validate(said.acting()))
    except ArgumentsError:
        return None  # It will be refused for that.
    return policy.verdict(tool, meant, Path.cwd).saying


def _in_its_folder(said: HookInput, request: Request) -> Request:
    """The same card, for nothing but the folder that the agent is in: nobody here can move it."""
    if not said.has_folder:
        return request
    folder = str(said.folder)

    def refuse_another(params: Params) -> None:
        if params.get(FOLDER) != folder:
            raise ToolError(
                "the folder of a call cannot be changed here", hint="deny it, and say which folder is meant"
            )

    if inspect.iscoroutinefunction(request):

        async def changing(params: Params, editor: RecordingEditor) -> Any:
            refuse_another(params)
            return await request(params, editor)

        return changing

    def showing(params: Params) -> Any:
        refuse_another(params)
        return request(params)

    return showing


def _plain(said: HookInput) -> Request:
    def arguments(params: Params) -> dict[str, Any]:
        return {"title": f"Use {said.tool}", "message": _where(said)}

    return arguments


def _command(said: HookInput) -> Request:
    def command(params: Params) -> dict[str, Any]:
        line = params.get("command")
        if not isinstance(line, str) or not line.strip():
            raise ToolError("there is no command in it", hint="say the command to run")
        # A command is read as what would be typed, and all of it is read.
        return {
            "title": "Run a command",
            "message": _where(said),
            "preview_button": {"label": "Command", "action": lambda: line},
        }

    return command


def _change(said: HookInput, file: OneFile, *, is_standing: bool = False) -> Request:
    agent = said.agent

    async def change(params: Params, editor: RecordingEditor) -> dict[str, Any]:
        if params.get("file_path") != said.arguments["file_path"]:
            # The diff would be against another file than the one that this card is kept in step with.
            raise ToolError("the file of an edit cannot be changed here", hint="deny it, and say which file is meant")
        real = file.real_path()
        shown = file.path if real == file.path else f"{file.path}, a link to {real}"
        try:
            old = await editor.get_file_content(real)
        except EditError as problem:
            if is_standing:
                # It could be shown a moment ago. What cannot be looked at is for a person, and for nothing else.
                raise ToolError(f"{real} has just become something else", hint="ask again") from None
            words = f"No diff can be shown: {problem.fact}. {agent.name} would change it all the same."
            return {"title": f"Change {real}", "message": f"{shown}\n{words}"}
        new = _new_content(agent, said.tool, params, old, real)
        verb = "Create" if old is None else "Change"

        def show() -> None:
            editor.open_diff_editor(real, new)

        return {
            "title": f"{verb} {real}",
            "message": shown if real != file.path else _where(said),
            "preview_button": {"label": "Show the change", "action": show},
        }

    return change


def _new_content(agent: Agent, tool: str, params: Params, old: str | None, path: str) -> str:
    """What the file would hold. ToolError when that is not certain, for the model to mend."""
    if tool in agent.writes:
        content = params.get("content")
        if not isinstance(content, str):
            raise ToolError("content is missing, or no text")
        return content
    edits = params.get("edits") if tool in agent.edit_lists else [params]
    if not isinstance(edits, list) or not edits:
        raise ToolError("edits is missing, empty, or no list")
    text = old
    for number, edit in enumerate(edits, 1):
        place = f"{path}, edit {number}" if len(edits) > 1 else path
        text = _edited(agent, edit, text, place)
    assert text is not None
    return text


def _edited(agent: Agent, edit: Any, text: str | None, place: str) -> str:
    old, new = (edit.get("old_string"), edit.get("new_string")) if isinstance(edit, dict) else (None, None)
    if not isinstance(old, str) or not isinstance(new, str):
        raise ToolError(f"{place}: old_string and new_string are not both texts")
    if text is None or old == "":
        if old == "" and not text:
            return new  # That is how these tools make a file.
        fact = "there is no such file" if text is None else "old_string is empty, and the file is not"
        raise ToolError(f"{place}: {fact}", hint="read it again, or write it whole")
    # A file with \\r\\n is edited with \\n, as the agents show it.
    if "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    count = text.count(old)
    if count == 0:
        raise ToolError(f"{place}: old_string is not in the file as it is now", hint="read the file again")
    if edit.get(agent.all_occurrences) is True:
        return text.replace(old, new)
    if count > 1:
        raise ToolError(f"{place}: old_string is in the file {count} times", hint="give more of the lines around it")
    return text.replace(old, new, 1)


def _where(said: HookInput) -> str:
    lines = [f"In {said.folder or said.cwd}" if said.cwd else "In a folder that it does not say"]
    if remark := said.remark:
        # On one line and without quotes of its own, so that it cannot go on as if it were our words.
        words = " ".join(remark.split()).translate({0x201C: '"', 0x201D: '"'})
        lines.append(f"{said.agent.name} says of it: “{words}”")
    if said.event == said.agent.permission:
        lines.append(f"{said.agent.name} asks because its own rules ask.")
    return "\n".join(lines)


class OneFile:
    """An editor over the one file that a path leads to, links followed as the agent will follow them. It is read, and
    never written here.

    The file is known by where it really lies. When the path leads elsewhere later, what was looked at is not there.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def real_path(self) -> str:
        """Where the path leads now."""
        return os.path.realpath(self.path)

    def can_be_shown(self) -> bool:
        """Whether a change of it would be shown as a diff."""
        try:
            _text_of(self.real_path())
        except EditError:
            return False
        return True

    @property
    def script_name(self) -> str:
        return os.path.basename(self.path)

    def exists(self, path: str) -> bool:
        return path == self.real_path() and os.path.exists(path)

    def get_all_folders(self) -> list[str]:
        return []

    def get_all_files(self) -> list[str]:
        return [self.real_path()]

    async def get_file_content(self, path: str) -> str | None:
        """Its text; None when it is not there. EditError when it is not a text of bearable size."""
        if path != self.real_path():
            raise EditError("the path leads elsewhere now", place=path)
        return _text_of(path)

    async def update_file_content(self, path: str, content: str) -> bool:
        self._refuse(path)

    async def write_to_file(self, path: str, content: str) -> bool:
        self._refuse(path)

    async def insert_content(self, path: str, operations: Sequence[Any]) -> bool:
        self._refuse(path)

    async def replace_in_file(self, path: str, operations: Sequence[Any]) -> bool:
        self._refuse(path)

    def open_diff_editor(self, path: str, content: str) -> None:
        """Nobody looks at a screen here."""

    def get_lint_errors(self) -> dict[str, list[Any]]:
        return {}

    def _refuse(self, path: str) -> NoReturn:
        raise EditError("the agent writes it, and nobody else", place=path)


def _text_of(path: str) -> str | None:
    try:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise EditError("it is no regular file", place=path)
        if found.st_size > MAX_FILE_BYTES:
            raise EditError(f"it has {found.st_size:,} bytes, more than can be shown", place=path)
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        raise EditError(f"it cannot be read: {problem.strerror}", place=path) from None
    text = decode(data)
    if text is None or len(data) > MAX_FILE_BYTES:
        raise NotText("it is binary, not UTF-8, or too large", place=path)
    return text
