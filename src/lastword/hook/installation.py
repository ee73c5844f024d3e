"""The settings of an agent with our hook in them, and back again, byte for byte.

What is remembered of each lies in the person's own folder: the file as it was, and as we wrote it. An agent's deadline
is set long, since it is a person who answers, and ours comes before it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.errors import ConfigError, NotJSON
from lastword.hook.agents import AGENTS, KEYS_FILE, MARGIN_SECONDS, Agent, AgentKeys
from lastword.mcp import JsonSettings, SettingsFiles, write_private
from lastword.rules import AgentSettings, PolicyRule
from lastword.store import StoreAddress, data_folder

if TYPE_CHECKING:
    from lastword.consent import People

# An hour for the person, and a minute for what comes after the call.
ASKED_SECONDS = 3_600
TOLD_SECONDS = 60

KEY = "hooks"


class InstalledHook(msgspec.Struct, frozen=True):
    """What is remembered of an agent's settings."""

    agent: str
    file: str
    before: str | None
    """As it was, as a text in which every byte stands for itself; None when there was no file."""
    after: str
    command: str


class HookChange(msgspec.Struct, frozen=True):
    """A change that nobody has agreed to yet."""

    agent: str
    file: Path
    before: bytes | None
    after: bytes | None
    command: str
    is_exact: bool = True
    """Whether, taking it back, the file becomes exactly what it was."""
    standing: str = "never"
    """Which rules and grants may answer for the agent's tools then (agents.py)."""

    @property
    def digest(self) -> str:
        parts = [b"-" if data is None else b"+" + data for data in (self.before, self.after)]
        parts += [] if self.standing == "never" else [self.standing.encode()]
        return sha256(b"\0".join(parts)).hexdigest()


class Hooks(SettingsFiles[InstalledHook]):
    """The settings of agents that our hook was put into."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(folder or data_folder() / "hooks", InstalledHook)

    def plan(
        self,
        agent: Agent,
        file: Path,
        store: str | None = None,
        standing: str | None = None,
        people: People | None = None,
    ) -> HookChange:
        """What would be written. A ConfigError says what stands against it."""
        if standing not in (None, "never") and not agent.says_folder:
            raise ConfigError(
                f"{PolicyRule.why_keyless(agent.name)}, so no rule or grant can allow one in your place",
                hint="rules that ask or deny hold all the same; leave --standing out",
            )
        file = file.resolve()  # The file that a link leads to is changed, and the link stays one.
        if self.kept_in(file).exists() and standing is not None:
            now = file.read_bytes() if file.exists() else None  # It is there, and only the key is turned.
            return HookChange(agent.key, file, now, now, command_for(agent, store, people), standing=standing)
        if self.kept_in(file).exists():
            hint = f"lastword hook uninstall {agent.key} takes it out"
            raise ConfigError("the hook is in it already", place=str(file), hint=hint)
        command = command_for(agent, store, people)
        before = file.read_bytes() if file.exists() else None
        found = _settings(before or b"{}", file, agent)
        hooks = _lists(found.get(KEY, {}), file)
        for event, entry in entries_for(agent, command).items():
            hooks[event] = [*hooks.get(event, []), entry]
        after = _with_hooks(before, found, hooks)
        return HookChange(agent.key, file, before, after, command, standing=standing or "never")

    def install(self, change: HookChange) -> Path | None:
        """Carry the change out, and return where the file lies as it was."""
        self.check(change.file, change.before)
        self._turn_key(change.agent, change.standing)
        if self.kept_in(change.file).exists():
            return None
        assert change.after is not None
        before = None if change.before is None else change.before.decode("latin-1")
        kept = InstalledHook(change.agent, str(change.file), before, change.after.decode("latin-1"), change.command)
        return self.change(change.file, change.before, change.after, kept)

    def plan_back(self, agent: Agent, file: Path) -> HookChange:
        """The change that takes it out again. A file that was edited since keeps what came to it."""
        file = file.resolve()
        kept = self.of(file)
        if kept is None:
            raise ConfigError("lastword did not put a hook into it", place=str(file))
        now = file.read_bytes() if file.exists() else None
        before = None if kept.before is None else kept.before.encode("latin-1")
        if now == kept.after.encode("latin-1") or now is None:
            return HookChange(agent.key, file, now, before if now is not None else None, kept.command)
        found = _settings(now, file, agent)
        hooks = {
            event: left
            for event, groups in _lists(found.get(KEY, {}), file).items()
            if (left := [group for group in groups if not _is_ours(group, kept.command)])
        }
        return HookChange(agent.key, file, now, _with_hooks(now, found, hooks), kept.command, is_exact=False)

    def uninstall(self, change: HookChange) -> None:
        """Carry that out."""
        self.check(change.file, change.before)
        self._turn_key(change.agent, "never")
        self.give_back(change.file, change.after)

    def _turn_key(self, agent: str, standing: str) -> None:
        keys = AgentKeys(self.folder.parent / KEYS_FILE)
        known = keys.read()
        if known.get(agent, "never") != standing:
            write_private(keys.file, known | {agent: standing})

    def troubles(self, kept: InstalledHook) -> Iterator[str]:
        """Why an agent would not start the hook, as far as its settings say."""
        agent = AGENTS[kept.agent]
        try:
            found = _settings(Path(kept.file).read_bytes(), Path(kept.file), agent)
            hooks = _lists(found.get(KEY, {}), Path(kept.file))
        except (OSError, ConfigError) as problem:
            yield f"its settings cannot be read: {problem}"
            return
        for event in entries_for(agent, kept.command):
            if not any(_is_ours(group, kept.command) for group in hooks.get(event, [])):
                yield f"the hook for {event} is not in its settings any more"
        if found.get("disableAllHooks") is True:
            yield "disableAllHooks is set, so no hook is started at all"


def command_for(agent: Agent, store: str | None = None, people: People | None = None) -> str:
    """The command line that the agent starts, in whatever folder it works.

    -P: without it Python would look for modules in that folder first, and who writes files there could be the gate.
    -E, the home, its data folder and the memory: agents take variables from files of a project, too (`.env`, say), and
    those must say neither which code is the gate, nor whose keys and rules count, nor who is asked.
    And whatever ends otherwise than with a yes ends with 2, also a Python that is gone: agents start it by a shell, and
    pass over every other failure.
    """
    ours = data_folder()
    places = {"HOME": Path.home()} | ({} if sys.platform == "darwin" else {"XDG_DATA_HOME": ours.parent})
    words = [sys.executable, "-E", "-P", "-m", "lastword", "hook", agent.key]
    words += ["--within", str(int(ASKED_SECONDS - MARGIN_SECONDS)), "--store", store or _memory(ours)]
    words += _whose(people) if people is not None else []
    return f"{' '.join(f'{name}={shlex.quote(str(at))}' for name, at in places.items())} {shlex.join(words)} || exit 2"


def _whose(people: People) -> list[str]:
    """Whose cards they are, where people have names, and who else may answer them."""
    others = [who for who in sorted(people.answers) if people.me and people.may_answer(who, people.me)]
    mine = ["--person", people.me] if people.me else []
    return mine + [word for who in others if who != people.me for word in ("--answerer", who)]


def _memory(ours: Path) -> str:
    """The address of the memory that this person's commands use."""
    named = os.environ.get("LASTWORD_STORE")
    if named and StoreAddress(named).holds_password:
        raise ConfigError(
            "LASTWORD_STORE holds a password, which does not belong into the settings of an agent",
            hint="put the password into ~/.pgpass, and say the rest with --store",
        )
    return named or f"sqlite:///{ours / StoreAddress.DEFAULT_FILE}"


def entries_for(agent: Agent, command: str) -> dict[str, dict[str, Any]]:
    """What stands in the agent's settings, by event."""
    unit = 1_000 if agent.key == "gemini" else 1
    entries = {}
    for event in (agent.before, *(["PermissionRequest"] if agent.key == "codex" else []), *agent.after):
        asked = event not in agent.after
        hook: dict[str, Any] = {"type": "command", "command": command}
        hook["timeout"] = (ASKED_SECONDS if asked else TOLD_SECONDS) * unit
        if agent.key == "gemini":
            hook["name"] = "lastword"
        if agent.key == "claude" and asked:
            # From 2.1.295 on: a hook that cannot start blocks the call. Versions before pass over it.
            hook["onFailure"] = "block"
        entries[event] = {"matcher": "*" if agent.key == "claude" else ".*", "hooks": [hook]}
    return entries


def settings_file(agent: Agent, project: Path | None) -> Path:
    """Where the agent reads its settings: the person's own, or those for them alone in a project."""
    settings = AgentSettings.OF[agent.key]
    if project is not None:
        return project / settings.folder / settings.in_project
    return Path(settings.of_person(), settings.file)


def probe_for(agent: Agent) -> bytes:
    """An event that a gate denies which works."""
    said = {"hook_event_name": agent.before, "session_id": "lastword-doctor", "cwd": os.sep}
    said |= {"tool_name": agent.PROBE, "tool_use_id": "probe", "tool_input": {}}  # type: ignore[dict-item]
    return json.dumps(said).encode()


def is_denial(agent: Agent, code: int, printed: bytes) -> bool:
    """Whether an agent takes this for a no."""
    if code == 2:
        return True
    try:
        told = values.parse(printed)
    except NotJSON:
        return False
    if code != 0 or not isinstance(told, dict):
        return False
    if agent.key == "gemini":
        return told.get("decision") == "deny"
    decided = told.get("hookSpecificOutput")
    return isinstance(decided, dict) and decided.get("permissionDecision") == "deny"


def _settings(data: bytes, file: Path, agent: Agent) -> dict[str, Any]:
    """The settings as the agent reads them: one that it cannot read has no hooks for it, and stops nothing."""
    try:
        found = values.parse(
            (JsonSettings(data).without_comments() if agent.has_comments else data.decode("utf-8")).strip() or "{}"
        )
    except (NotJSON, UnicodeDecodeError) as problem:
        fact = problem.fact if isinstance(problem, NotJSON) else "it is not UTF-8"
        hint = "mend it first" if agent.has_comments else "it may hold no comments and no last commas; mend it first"
        raise ConfigError(f"{agent.name} cannot read it: {fact}", place=str(file), hint=hint) from None
    if not isinstance(found, dict):
        raise ConfigError("it is no JSON object", place=str(file))
    return found


def _lists(hooks: Any, file: Path) -> dict[str, list[Any]]:
    if not isinstance(hooks, dict):
        raise ConfigError(f"{KEY} in it is no object", place=str(file))
    # Gemini CLI keeps settings of its hooks beside them.
    if wrong := [name for name, groups in hooks.items() if name[:1].isupper() and not isinstance(groups, list)]:
        raise ConfigError(f"{KEY}.{wrong[0]} in it is no list", place=str(file))
    return dict(hooks)


def _with_hooks(before: bytes | None, found: dict[str, Any], hooks: dict[str, Any]) -> bytes:
    if before is None or not before.strip():
        return (json.dumps({KEY: hooks}, indent=2, ensure_ascii=False) + "\n").encode()
    if KEY in found:
        return JsonSettings(before).with_value(KEY, hooks)
    # A new key at the beginning; all the rest stays where it is.
    text = before.decode("utf-8")
    place = _opening(text) + 1
    made = json.dumps(hooks, indent=2, ensure_ascii=False).replace("\n", "\n  ")
    return f'{text[:place]}\n  "{KEY}": {made}{"," if found else ""}{text[place:]}'.encode()


_LEADING = re.compile(r"(?:\ufeff|\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)


def _opening(text: str) -> int:
    """Where the outermost object begins, behind whatever comments stand before it."""
    found = _LEADING.match(text)
    return found.end() if found else 0


def _is_ours(group: Any, command: str) -> bool:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return isinstance(hooks, list) and any(isinstance(h, dict) and h.get("command") == command for h in hooks)
