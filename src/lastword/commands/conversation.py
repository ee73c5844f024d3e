"""What `lastword chat`, `edit` and `up` are made of: their options, what the person brings, the API in this process.

The conversation is kept by the page (web/), and the terminal is a window on it that uses the page's API: in the same
process, or in that of a `lastword up` that runs already.
"""

from __future__ import annotations

import asyncio
import functools
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import msgspec
from starlette.responses import Response
from starlette.types import ASGIApp

from lastword.call import wait_for_answer
from lastword.cli import Misused, complain
from lastword.commands.local_session import load_tools, open_project, rules_here, tell_of_doubt
from lastword.commands.options import (
    config_option,
    data_file,
    people_of,
    plain_option,
    read_config,
    store_address,
    store_option,
    tools_option,
)
from lastword.editor import ProjectEditor
from lastword.journal import Journal
from lastword.mcp import McpServers
from lastword.server import (
    ChangingUpstream,
    Stopping,
    build_app,
)
from lastword.session import Session
from lastword.store import Store, open_store
from lastword.talk import NAME as REHEARSAL
from lastword.talk import (
    NOTE,
    Api,
    InProcessWire,
    ModelChoice,
    Wire,
    add_tour,
    choose_model,
    find_preset,
    read_kept_model,
    resolve_presets,
    usual_protocol,
)
from lastword.terminal import (
    Composer,
    LineComposer,
    PipeComposer,
    PlainComposer,
    TerminalChat,
    Window,
    is_dumb,
    is_interactive,
)
from lastword.web import (
    AssistantSetup,
    JoinableServer,
    PageSetup,
    begins_session,
    find_joinable,
    open_page,
)

if TYPE_CHECKING:
    from lastword.consent import Approver, Preset

# A session's id is also a conversation's, and a part of a path.
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_:-]{0,99}")

preset_option = click.option("--preset", metavar="NAME", help="A preset of lastword.toml to begin with.")
session_option = click.option("--session", "session_id", metavar="ID", help="Come back to an earlier session.")
upstream_option = click.option(
    "--upstream", metavar="URL", help="The model's server, like http://127.0.0.1:11434/v1. Without it: as configured."
)
model_option = click.option("--model", metavar="NAME", help="The model of that server. Without it: as configured.")


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


def conversation_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command these options, together as its argument `options`."""

    @functools.wraps(command)
    def called(**given: Any) -> int:
        together = {name: given.pop(name) for name in ChatOptions.__struct_fields__}
        return command(**given, options=ChatOptions(**together))

    for option in (
        config_option,
        store_option,
        plain_option,
        session_option,
        preset_option,
        model_option,
        upstream_option,
        tools_option,
    ):
        called = option(called)
    return called


def check_session_id(session_id: str | None) -> None:
    """Refuse an id that could not name a conversation."""
    if session_id is not None and not SESSION_ID.fullmatch(session_id):
        raise Misused(
            "an id has letters, digits, `_`, `:` and `-`, at most 100, and begins with a letter or digit",
            place="--session",
        )


class Seat:
    """The terminal, and whether a person is at it."""

    def __init__(self, *, plain: bool) -> None:
        self.is_attended = is_interactive()
        self.plain = plain or is_dumb() or not (sys.stdin.isatty() and sys.stdout.isatty())

    async def talk(
        self,
        window: Window,
        *,
        words: Iterable[str] = (),
        farewell: Callable[[str], str],
        until: asyncio.Future[None] | None = None,
    ) -> None:
        """Chat in this window until the person leaves, or `until` is done."""
        talk = TerminalChat(
            window,
            words=words,
            farewell=farewell,
            can_answer=self.is_attended,
            stdin=sys.stdin,
            screen=sys.stdout,
            cards=sys.stderr,
            plain=self.plain,
        )
        if until is not None:
            until.add_done_callback(lambda done: talk.leave())
        await talk.talk(self._composer(talk))

    def _composer(self, talk: TerminalChat) -> Composer:
        if not sys.stdin.isatty():
            return PipeComposer(sys.stdin)
        if self.plain:
            return PlainComposer(sys.stdin, sys.stdout)
        return LineComposer(talk.words, data_file("chat_history"))


class Setup:
    """What the person brings: configuration, tools, a preset, a terminal."""

    def __init__(self, options: ChatOptions, *, port: int | None = None, project: str | None = None) -> None:
        flags = {"store": options.store, "port": port, "upstream": options.upstream, "model": options.model}
        self.config = read_config(options.config, flags)
        check_session_id(options.session_id)
        self.preset = options.preset
        self.session_id = options.session_id
        self._project = None if project is None else open_project(project, self.config)
        self._command = "lastword chat" if self._project is None else f"lastword edit {self._project.folder}"
        self.seat = Seat(plain=options.plain)
        self.registry = load_tools(options.folders, project, asking=self.seat.is_attended)
        self.policy = rules_here(project, self.config.server.store, self.config.file)
        # After all others: a tool of a server cannot take the name of one that is there.
        self.servers = McpServers.of(self.config)
        for words in self.servers.offer(self.registry):
            complain(words)

    def open_store(self) -> Store:
        """The configured store, or the one in the user's data folder."""
        return open_store(store_address(self.config))

    @property
    def tour_hint(self) -> str:
        """What to type first, where the tour's tools are at hand and a person can type."""
        return (
            " Type tour for a walk of a minute." if self.seat.is_attended and self.registry.is_registered(NOTE) else ""
        )

    @contextmanager
    def project(self, *, is_rehearsal: bool) -> Iterator[ProjectEditor | None]:
        """The project to work on. For the tour: a folder that is thrown away, and tools that work in it."""
        if self._project is not None or not is_rehearsal:
            yield self._project
            return
        add_tour(self.registry)
        with TemporaryDirectory(prefix="lastword-tour-") as folder:
            yield ProjectEditor(folder, "tour")

    @asynccontextmanager
    async def session(
        self, store: Store, approver: Approver | None, preset: Preset, *, is_rehearsal: bool
    ) -> AsyncIterator[Session]:
        """The session of the conversation, with its project and its MCP servers."""
        async with self.servers:
            with self.project(is_rehearsal=is_rehearsal) as editor:
                session = Session(
                    self.registry,
                    id=self.session_id,
                    approver=approver,
                    journal=Journal(store, people=people_of(self.config)),
                    preset=preset,
                    editor=editor,
                    policy=self.policy,
                )
                async with session:
                    yield session

    async def talk(self, wire: Wire, store: Store, choice: ModelChoice | None, words: str) -> None:
        """Chat over this wire until the person leaves."""
        api = Api(wire)
        is_rehearsal = choice.is_rehearsal if choice else REHEARSAL in await api.models()
        presets = resolve_presets(self.config.preset, usual_protocol(is_rehearsal=is_rehearsal))
        chosen = find_preset(presets, self.preset)
        if self.session_id is not None and await begins_session(store, self.session_id):
            words = f"{words} There was no session {self.session_id}: it begins now."
        async with AsyncExitStack() as after:
            # Without a person at the terminal there is no window that could answer.
            approver = wait_for_answer if self.seat.is_attended else None
            session = await after.enter_async_context(
                self.session(store, approver, presets[chosen].preset, is_rehearsal=is_rehearsal)
            )
            if self.seat.is_attended:
                await tell_of_doubt(session.journal)
            front, gate = await after.enter_async_context(
                open_page(
                    Response(status_code=404),
                    session,
                    api,
                    AssistantSetup(presets, chosen, words, is_rehearsal),
                    PageSetup(watches_others=False),
                )
            )
            beside = find_here(find_joinable(data_file("open"))) if self.seat.is_attended else []
            await self.seat.talk(
                Window(InProcessWire(front), gate.admit("terminal")),
                words=[f"{words}{self.tour_hint}", *map(_beside, beside)],
                farewell=lambda id: f"Left. `{self._command} --session {id}` comes back to it.",
            )


def _beside(found: JoinableServer) -> str:
    return f"A `lastword up` of this folder runs at {found.address}; `lastword chat --attach` joins its conversation."


@asynccontextmanager
async def assistant_api(
    setup: Setup, *, log: Any
) -> AsyncIterator[tuple[ASGIApp, Store, ModelChoice, Stopping, ChangingUpstream]]:
    """The assistant API in this process, over the person's own store."""
    config = setup.config
    async with AsyncExitStack() as after:
        choice = await choose_model(config, kept=read_kept_model(data_file("model.json")))
        store = setup.open_store()
        after.push_async_callback(store.close)
        stopping, models = Stopping(), ChangingUpstream(choice.upstream)
        app = build_app(
            store,
            models,
            model=config.server.model or choice.model,
            persona=config.persona_text(),
            is_reasoning=config.server.reasoning,
            limits=config.server.limits,
            hosts=config.server.hosts,
            origins=config.server.origins,
            log=log or (lambda line: None),
            stopping=stopping,
            # Any account of this machine reaches a port on it, and the conversation is this person's alone.
            open_to_machine=False,
            retention_days=config.server.retention_days,
        )
        yield app, store, choice, stopping, models


def find_here(known: Iterable[JoinableServer]) -> list[JoinableServer]:
    """Those that were started in this folder."""
    return [found for found in known if found.folder == str(Path.cwd())]
