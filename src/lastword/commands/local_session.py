"""A session for as long as one command needs it: its project, its rules, and who answers its cards.

A conversation (`lastword chat`, `edit` and `up`) has a model too. It is kept by the page (web/), and a terminal is a
window on it that uses the page's API: in the same process, or in that of a `lastword up` that runs already.
"""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec.structs import replace

from lastword.call import Limits, wait_for_answer
from lastword.call.events import Asked, Event, QuestionAsked
from lastword.commands.invocation import (
    AUTO_APPROVE,
    NOT_BY_ITSELF,
    CommandOption,
    LastWordError,
    Misused,
    ask_trust,
    complain,
    did_you_mean,
    load_config,
    people_of,
    read_config,
    refuse_below,
    remembering,
    say,
    trust_asker,
)
from lastword.config import is_own_memory
from lastword.editor import EDITOR_TOOLS, Privacy, ProjectEditor, editor_tools
from lastword.journal import Journal, cut
from lastword.lazily import load_later
from lastword.mcp import McpServers
from lastword.rules import Policy, PolicyPlaces
from lastword.session import Session
from lastword.tools import Tool, Toolbox, ToolRegistry

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lastword import talk, web
    from lastword.config import Config
    from lastword.consent import Approver
    from lastword.store import Store
    from lastword.tools import Manifest
else:
    # For conversations alone.
    talk, web = map(load_later, ("lastword.talk", "lastword.web"))

ELSEWHERE = "a tool or an agent started this on another memory than yours, where what was used of it is not counted"
# A notice is read in passing. `lastword runs` and `lastword show` have the rest.
MAX_NAMED = 3


def together(
    kind: type[msgspec.Struct], *options: Callable[[Callable[..., int]], Callable[..., int]]
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command these options, as one argument of this kind: `options`."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(command)
        def called(**given: Any) -> int:
            own = {name: given.pop(name) for name in kind.__struct_fields__ if name in given}
            return command(**given, options=kind(**own))

        for option in reversed(options):
            called = option(called)
        return called

    return decorate


class SessionOptions(msgspec.Struct, frozen=True):
    """What can be said to a command that carries something out, and the session that it opens then."""

    store: str | None
    folders: tuple[str, ...] = ()
    project: str | None = None
    auto_approve: bool = False
    wait: bool = False
    plain: bool = False
    as_json: bool = False

    def tools(self, *, asking: bool) -> ToolRegistry:
        """The tools of the folders, and the editor's for a project. `asking` asks about found code."""
        return load_tools(self.folders, self.project, asking=asking)

    def one_tool(
        self, tool: str, read: Callable[[Manifest], dict[str, Any]], *, asking: bool
    ) -> tuple[ToolRegistry, McpServers, dict[str, Any]]:
        """A registry with this tool, the MCP servers that must be up for it, and its arguments as `read` finds them.

        They are checked before any of the tool's code is imported.
        """
        registry = ToolRegistry()
        servers = _servers_with(tool, self.folders, registry)
        toolbox = None if registry.is_registered(tool) else self._toolbox_with(tool)
        if toolbox is None:
            if not registry.is_registered(tool):
                editor_tools(registry)
            return registry, servers, read(registry.lookup(tool).manifest)
        found = toolbox.lookup(tool)
        if found.manifest.script_editor_only and self.project is None:
            raise Misused(f"{tool} works on the files of a project", hint="name its folder: --project DIR")
        arguments = read(found.manifest)
        Tool(found.manifest, "assistant", None).validate(arguments)
        toolbox.load(registry, only=[found], ask=ask_trust if asking else None)
        return registry, servers, arguments

    def _toolbox_with(self, tool: str) -> Toolbox | None:
        """Where to look for a tool; None when it is the editor's own. A tool of that name in a folder comes first."""
        editors = [known.name for known in EDITOR_TOOLS]
        if tool not in editors and self.project is None:
            return Toolbox.find(self.folders)
        toolbox = Toolbox.find_any(self.folders)
        own = [found.manifest.id for found in toolbox.tools]
        if tool in own or (tool not in editors and toolbox.problems):
            return toolbox
        if tool not in editors:  # A name that nobody has is compared with theirs too.
            known = [*editors, *own]
            listed = f"the tools are: {', '.join(sorted(known))}"
            raise Misused(f"unknown tool {tool}", hint=did_you_mean(tool, known) or listed)
        if self.project is None:
            raise Misused(
                f"{tool} works only on a project in an editor, and there is none here", hint="name one: --project DIR"
            )
        return None

    def editor(self) -> ProjectEditor | None:
        return None if self.project is None else open_project(self.project)

    @asynccontextmanager
    async def session(
        self, registry: ToolRegistry, approver: Approver | None, *, of: str | None = None
    ) -> AsyncIterator[Session]:
        """Open a session: a new one, whose person first hears of calls in doubt, or that of a run. `wait` leaves cards
        to others."""
        policy = rules_here(self.project, self.store)
        async with remembering(self.store) as journal:
            if of is None and approver is not None:
                await tell_of_doubt(journal)
            if self.auto_approve:
                refuse_below(AUTO_APPROVE, journal.store, hint=NOT_BY_ITSELF)
            session = Session(
                registry,
                id=None if of is None else await session_of(journal, of),
                approver=wait_for_answer if self.wait else approver,
                journal=journal,
                editor=self.editor(),
                policy=policy,
            )
            if self.auto_approve:
                session.preset = replace(session.preset, auto_approve=True, name=AUTO_APPROVE)
            async with session:
                if self.wait:
                    say_what_waits(session, self.store)
                yield session

    def deciding(self, call_id: str, *, again: bool) -> Callable[[Journal], Awaitable[Session]]:
        """What makes the session of a call in doubt. Only to run it again takes tools, and the rules for them."""
        registry = self.tools(asking=False) if again else ToolRegistry()
        policy = rules_here(self.project, self.store) if again else None

        async def make(journal: Journal) -> Session:
            id = await session_of(journal, call_id)
            return Session(registry, id=id, journal=journal, editor=self.editor(), policy=policy)

        return make


def _servers_with(tool: str, folders: Sequence[str], registry: ToolRegistry) -> McpServers:
    """The MCP servers of the configuration, with their tools registered when this tool is one of them."""
    own = Toolbox.find_any(folders).tools
    if tool in {known.name for known in EDITOR_TOOLS} | {found.manifest.id for found in own}:
        return McpServers({}, Toolbox.HERE)
    servers, offered = McpServers.of(load_config()), ToolRegistry()
    told = servers.offer(offered)
    if not offered.is_registered(tool):
        for words in told:
            complain(words)  # Perhaps it is one of those that are not trusted.
        return McpServers({}, Toolbox.HERE)
    registry.add(offered.lookup(tool))
    return servers


async def session_of(journal: Journal, subject: str) -> str:
    """The session that a run or a call belongs to."""
    found = await journal.store.read(subject=subject, limit=1)
    if not found:
        raise Misused("nothing is remembered of it", place=subject, hint="lastword runs and approvals list ids")
    return found[0].stream


def answered_elsewhere(registry: ToolRegistry, id: str, journal: Journal, store: str | None, **facts: Any) -> Session:
    """A session whose questions are left to others, and named here."""
    # Nobody answers in this process, so the others are listened for from the first moment on.
    limits = Limits(watch_after_seconds=0)
    session = Session(registry, id=id, approver=wait_for_answer, journal=journal, limits=limits, **facts)
    say_what_waits(session, store)
    return session


def say_what_waits(session: Session, store: str | None) -> None:
    """Name each question that the session leaves to others, and how to answer it: nobody sees its card here."""
    there = f" --store {shlex.quote(store)}" if store else ""

    def hear(event: Event) -> None:
        if isinstance(event, Asked):
            request = event.request
            what, call_id = f"{cut(request.title)} ({request.tool})", request.call_id
        elif isinstance(event, QuestionAsked):
            question = event.question
            call_id = question.call_id
            what = f"{cut(question.display_name)} ({question.tool}) wants to know something"
        else:
            return
        complain(f"Waiting for an answer: {what}. From any terminal: lastword answer {call_id}{there}")

    session.listen(hear)


def rules_here(project: str | Path | None, store: str | None, config: Path | None = None) -> Policy | None:
    """The rules of organisation, user and project, for work on this memory. What they do not allow yet is said."""
    policy = Policy.load(PolicyPlaces.of(Path() if project is None else Path(project)))
    if policy is None:
        return None
    for file in policy.files:
        if not file.is_accepted and any(rule.saying == "allow" for rule in policy.rules if rule.file == file.path):
            complain(
                f"{file.path}: you have not accepted it as it is, so what it allows is asked about\n"
                "hint: lastword policy accept shows it and asks you"
            )
    return counted(policy, store, config)


def counted(policy: Policy, store: str | None, config: Path | None = None) -> Policy:
    """The rules for work on this memory: limits are counted in it, and in a new one they would begin anew."""
    return policy if is_own_memory(store, config) else policy.only_stricter(ELSEWHERE)


def open_project(folder: str | Path, config: Config | None = None) -> ProjectEditor:
    """The editor for a project folder, with what the configuration says of private files."""
    if config is None:
        config = read_config()
    try:
        Privacy(config.editor.private)
    except LastWordError as problem:
        raise Misused(f"editor.private: {problem.fact}", place=str(config.file), hint=problem.hint) from None
    return ProjectEditor(folder, private=config.editor.private)


def load_tools(folders: Sequence[str], project: str | None, *, asking: bool) -> ToolRegistry:
    """The tools of these folders, or of tools/ here, and the editor's for a project. `asking` asks about found code."""
    registry = ToolRegistry()
    Toolbox.find_any(folders).load(registry, ask=ask_trust if asking else None)
    if project is not None:
        editor_tools(registry)
    return registry


def every_tool(folders: Sequence[str]) -> ToolRegistry:
    """Every tool that a command started here could have: of folders, of the editor, of trusted MCP servers."""
    registry = ToolRegistry()
    Toolbox.find_any(folders).load(registry, ask=trust_asker())
    editor_tools(registry)
    McpServers.of(load_config()).offer(registry)
    return registry


async def explain(
    tool: Tool, arguments: Mapping[str, Any], journal: Journal, policy: Policy | None, project: str | None
) -> str:
    """What would be decided about a call of this tool, and why."""
    registry = ToolRegistry()
    registry.add(tool)
    editor = None if project is None else open_project(project)
    # Not opened: that would be written down, as of a program that loads these rules to go by them.
    return str(await Session(registry, journal=journal, editor=editor, policy=policy).explain(tool.name, arguments))


async def tell_of_doubt(journal: Journal) -> None:
    """Remind the person that calls wait for a decision about how they ended."""
    lives = await journal.in_doubt()
    if not lives:
        return
    count = "1 call is" if len(lives) == 1 else f"{len(lives)} calls are"
    named = [f"{life.call_id} ({life.started['tool']})" for life in lives[:MAX_NAMED] if life.started]
    more = f" and {len(lives) - MAX_NAMED} more" if len(lives) > MAX_NAMED else ""
    words = (
        f"{count} in doubt: {', '.join(named)}{more}. A program stopped in the middle, and nobody knows the end.\n"
        f"hint: look at what it changes, then decide: lastword resolve {lives[0].call_id}"
    )
    say(words, err=True, fits=True)


# A session's id is also a conversation's, and a part of a path.
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,99}")


class ChatOptions(msgspec.Struct, frozen=True):
    """What can be said to every command that opens a conversation."""

    folders: tuple[str, ...]
    preset: str | None
    session_id: str | None
    plain: bool
    store: str | None
    config: Path | None
    upstream: str | None
    model: str | None


conversation_options = together(
    ChatOptions,
    CommandOption.tools,
    click.option(
        "--upstream",
        metavar="URL",
        help="The model's server, like http://127.0.0.1:11434/v1. Default: as configured.",
    ),
    click.option("--model", metavar="NAME", help="The model of that server. Default: as configured."),
    click.option("--preset", metavar="NAME", help="The preset of lastword.toml to start with."),
    click.option("--session", "session_id", metavar="ID", help="Come back to an earlier session."),
    CommandOption.plain,
    CommandOption.store,
    CommandOption.config,
)


class Setup:
    """What the person brings: configuration, tools, a preset."""

    def __init__(
        self, options: ChatOptions, *, is_attended: bool, port: int | None = None, project: str | None = None
    ) -> None:
        flags = {"store": options.store, "port": port, "upstream": options.upstream, "model": options.model}
        self.config = read_config(options.config, flags)
        if options.session_id is not None and not SESSION_ID.fullmatch(options.session_id):
            raise Misused(
                "an id has letters, digits, `_`, `:` and `-`, at most 100, and begins with a letter or digit",
                place="--session",
            )
        self.preset = options.preset
        self.session_id = options.session_id
        self._project = None if project is None else open_project(project, self.config)
        self.command = "lastword chat" if self._project is None else f"lastword edit {self._project.folder}"
        self.is_attended = is_attended
        self.registry = load_tools(options.folders, project, asking=is_attended)
        self.policy = rules_here(project, self.config.server.store, self.config.file)
        # After all others: a tool of a server cannot take the name of one that is there.
        self.servers = McpServers.of(self.config)
        for words in self.servers.offer(self.registry):
            complain(words)

    @property
    def tour_hint(self) -> str:
        """What to type first, where the tour's tools are at hand and a person can type."""
        can_try = self.is_attended and self.registry.is_registered(talk.Tour.NOTE)
        return " Type tour for a walk of a minute." if can_try else ""

    @asynccontextmanager
    async def conversation(
        self,
        app: ASGIApp,
        api: talk.Api,
        store: Store,
        words: str,
        page: web.PageSetup,
        form: web.ModelForm | None = None,
        *,
        is_rehearsal: bool,
        is_answered: bool,
    ) -> AsyncIterator[tuple[Session, web.PageApp, web.PageGate]]:
        """The session, with its project and its MCP servers, and the page over it. `is_answered`: in some window."""
        presets = talk.ResolvedPreset.all_of(self.config.preset, is_rehearsal=is_rehearsal)
        chosen = talk.ResolvedPreset.find(presets, self.preset)
        editor = self._project
        async with self.servers, AsyncExitStack() as after:
            if editor is None and is_rehearsal:
                # For the tour: a folder that is thrown away, and tools that work in it.
                talk.Tour(self.registry).add()
                editor = ProjectEditor(after.enter_context(TemporaryDirectory(prefix="lastword-tour-")), "tour")
            session = Session(
                self.registry,
                id=self.session_id,
                approver=wait_for_answer if is_answered else None,
                journal=Journal(store, people=people_of(self.config)),
                preset=presets[chosen].preset,
                editor=editor,
                policy=self.policy,
            )
            assistant = web.AssistantSetup(presets, chosen, words, is_rehearsal, form)
            # Left before the page and the session are: whoever asks from then on would wait for nobody.
            seat = session.journal.programs.attending() if page.watches_others else nullcontext()
            async with session, web.open_page(app, session, api, assistant, page) as (front, gate):
                with seat:
                    yield session, front, gate
