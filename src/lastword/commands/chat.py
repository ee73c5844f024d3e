"""`lastword chat`, `edit` and `up`: a satellite at this terminal, with the server elsewhere or in the same process.

`up` has the API, the page and a chat for one person in one process, on this machine only; `chat --attach` joins it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import click
from starlette.responses import Response

from lastword.commands.invocation import DONE, Misused, complain, data_file, people_of, refuse_below, say, store_address
from lastword.commands.local_session import ChatOptions, Setup, conversation_options, tell_of_doubt
from lastword.server import ChangingUpstream, HttpUpstream, Serving, Stopping, build_app, is_loopback
from lastword.talk import Api, ApiError, HttpWire, InProcessWire, KeptModel, ModelChoice, Rehearsal, ResolvedPreset
from lastword.terminal import LineComposer, PipeComposer, PlainComposer, TerminalChat, Window, is_dumb, is_interactive
from lastword.web import (
    JoinableServer,
    JoinFile,
    ModelForm,
    NoBrowser,
    PageSetup,
    begins_session,
    find_joinable,
    left_unfinished,
    open_browser,
    open_last,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from lastword.session import Session
    from lastword.store import Store
    from lastword.talk import Wire
    from lastword.terminal import Composer
    from lastword.web import PageApp, PageGate

# How often a key is looked for: it opens once, and another terminal may be quicker each time.
ATTEMPTS = 5
LOOPBACK = "127.0.0.1"
NO_BROWSER = "no browser could be opened from here\nhint: open the address above, in a browser of this machine"

server_option = click.option("--server", metavar="URL", help="A lastword server. Default: one in this process.")


@click.command()
@server_option
@click.option(
    "--attach",
    is_flag=False,
    flag_value="",
    metavar="[URL]",
    help="Join the conversation of a `lastword up` that runs: the one of this folder, or the one at URL.",
)
@conversation_options
def chat(server: str | None, attach: str | None, options: ChatOptions) -> int:
    """Talk with the assistant in this terminal. It asks before it does anything that needs your yes."""
    if attach is not None:
        check_alone(
            {
                "--server": server,
                "--tools": options.folders,
                "--preset": options.preset,
                "--session": options.session_id,
                "--store": options.store,
                "--config": options.config,
                "--upstream": options.upstream,
                "--model": options.model,
            }
        )
        refuse_below("--attach")  # whoever is in the person's conversation chooses its preset
        asyncio.run(join(attach, plain=options.plain))
        return DONE
    return _open(server, options)


@click.command()
@click.argument("project", metavar="DIR")
@server_option
@conversation_options
def edit(project: str, server: str | None, options: ChatOptions) -> int:
    """Talk about a project: the assistant reads and searches it, and every change waits for your yes."""
    return _open(server, options, project)


def _open(server: str | None, options: ChatOptions, project: str | None = None) -> int:
    """Chat until the person leaves. Refused when a model is named that another server chooses."""
    for name, given in (("--upstream", options.upstream), ("--model", options.model)):
        if server is not None and given is not None:
            raise Misused(
                f"the server at {server} chooses its own model",
                place=name,
                hint="leave out --server, or name the model in a preset",
            )
    seat = Seat(plain=options.plain)
    setup = Setup(options, is_attended=seat.is_attended, project=project)
    asyncio.run(_chat_elsewhere(seat, setup, server) if server else _chat_here(seat, setup))
    return DONE


async def _chat_elsewhere(seat: Seat, setup: Setup, url: str) -> None:
    wire = HttpWire(url, os.environ.get("LASTWORD_TOKEN"))
    store = store_address(setup.config).open()
    try:
        await _talk(seat, setup, wire, store, None, f"Server: {wire.url}.")
    finally:
        await wire.close()
        await store.close()


async def _chat_here(seat: Seat, setup: Setup) -> None:
    async with assistant_api(setup, log=None) as (app, store, choice, *_), InProcessWire.alive(app):
        await _talk(seat, setup, InProcessWire(app), store, choice, choice.words)


async def _talk(seat: Seat, setup: Setup, wire: Wire, store: Store, choice: ModelChoice | None, words: str) -> None:
    """Chat over this wire until the person leaves."""
    api, id = Api(wire), setup.session_id
    is_rehearsal = choice.is_rehearsal if choice else Rehearsal.NAME in await api.models()
    if id is not None and await begins_session(store, id):
        words = f"{words} There was no session {id}: it begins now."
    # Without a person at the terminal there is no window that could answer.
    nowhere, alone, is_answered = Response(status_code=404), PageSetup(watches_others=False), seat.is_attended
    async with setup.conversation(
        nowhere, api, store, words, alone, is_rehearsal=is_rehearsal, is_answered=is_answered
    ) as (session, front, gate):
        if seat.is_attended:
            await tell_of_doubt(session.journal)
        beside = find_here(find_joinable(data_file("open"))) if seat.is_attended else []
        await seat.talk(
            seat.window(front, gate),
            words=[
                f"{words}{setup.tour_hint}",
                *(
                    f"A `lastword up` of this folder runs at {found.address}; `lastword chat --attach` joins its "
                    "conversation."
                    for found in beside
                ),
            ],
            farewell=lambda id: f"Left. `{setup.command} --session {id}` comes back to it.",
        )


class Seat:
    """The terminal, and whether a person is at it."""

    def __init__(self, *, plain: bool) -> None:
        self.is_attended = is_interactive()
        self.plain = plain or is_dumb() or not (sys.stdin.isatty() and sys.stdout.isatty())

    @staticmethod
    def window(front: PageApp, gate: PageGate) -> Window:
        """One at this terminal, of a page in this process."""
        return Window(InProcessWire(front), gate.admit("terminal"))

    async def talk(
        self,
        window: Window,
        *,
        words: Iterable[str] = (),
        farewell: Callable[[str], str],
        until: asyncio.Future[None] | None = None,
    ) -> None:
        """Chat in this window until the person leaves, or `until` is done."""
        chat = TerminalChat(
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
            until.add_done_callback(lambda done: chat.leave())
        await chat.talk(self._composer(chat))

    def _composer(self, chat: TerminalChat) -> Composer:
        if not sys.stdin.isatty():
            return PipeComposer(sys.stdin)
        if self.plain:
            return PlainComposer(sys.stdin, sys.stdout)
        return LineComposer(chat.words, data_file("chat_history"))


@asynccontextmanager
async def assistant_api(
    setup: Setup, *, log: Any
) -> AsyncIterator[tuple[ASGIApp, Store, ModelChoice, Stopping, ChangingUpstream]]:
    """The assistant API in this process, over the person's own store."""
    config = setup.config
    async with AsyncExitStack() as after:
        choice = await ModelChoice.of(config, kept=KeptModel.read(data_file("model.json")))
        store = store_address(setup.config).open()
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


def check_alone(others: Mapping[str, object]) -> None:
    """Refuse what would be ignored."""
    if unused := [name for name, value in others.items() if value]:
        raise Misused(
            "joins a conversation as it is; it takes no tools, preset, session, store or configuration",
            place="--attach",
            hint=f"leave out {', '.join(unused)}",
        )


async def join(named: str, *, plain: bool) -> None:
    """Chat in the conversation of a server that runs already."""
    wire, window = await _enter(named)
    try:
        await Seat(plain=plain).talk(
            window,
            words=[f"Joined the conversation at {wire.url}. What you say and answer shows in its other windows too."],
            farewell=lambda id: "Left. The conversation goes on; `lastword chat --attach` comes back to it.",
        )
    finally:
        await wire.close()


async def _enter(named: str) -> tuple[HttpWire, Window]:
    parts = urlsplit(named)
    key = parse_qs(parts.query).get("key", [""])[0]
    for attempt in range(ATTEMPTS):
        found = JoinableServer(f"{parts.scheme}://{parts.netloc}", key, "") if key else _find(named)
        wire = HttpWire(found.address)
        host = urlsplit(found.address).hostname or ""
        if parts.scheme != "https" and not is_loopback(host):
            raise Misused(f"{host} is another machine, and http would show it everything", place="--attach")
        try:
            return wire, await Window.enter(wire, found.key)
        except Exception as problem:
            await wire.close()
            # Another terminal took the key from under our hands; there is a new one by now.
            if key or attempt == ATTEMPTS - 1 or not isinstance(problem, ApiError) or problem.status != 403:
                raise
    raise AssertionError("the last attempt raises")


def _find(named: str) -> JoinableServer:
    """The server to join: at an address, or of this folder, or the only one."""
    known = find_joinable(data_file("open"))
    if named:
        known = [found for found in known if found.address == named.rstrip("/").removesuffix("/v1")]
        if not known:
            raise Misused(
                f"no `lastword up` of yours runs at {named}",
                place="--attach",
                hint="take the address with a key that the page makes under Settings",
            )
    chosen = find_here(known) or known
    if not chosen:
        raise Misused("no `lastword up` of yours runs", place="--attach", hint="start one: lastword up")
    if len(chosen) > 1:
        listed = ", ".join(f"{found.address} ({found.folder})" for found in chosen)
        raise Misused(f"several of yours run: {listed}", place="--attach", hint="name one: --attach URL")
    return chosen[0]


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Default: 8811. 0 takes any free port.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
@conversation_options
def up(port: int | None, is_opened: bool, options: ChatOptions) -> int:
    """Start everything for one person, on this machine only: the API, the page, and a chat if this is a terminal."""
    refuse_below("lastword up")  # whoever reads its key answers its cards
    seat = Seat(plain=options.plain)
    setup = Setup(options, is_attended=seat.is_attended, port=port)
    asyncio.run(_up(seat, setup, is_opened=is_opened))
    return DONE


async def _up(seat: Seat, setup: Setup, *, is_opened: bool) -> None:
    config = setup.config.server
    # At a person's terminal the access log would hide the conversation.
    log = None if is_interactive() else sys.stderr.write
    async with assistant_api(setup, log=log) as (app, store, choice, stopping, models), AsyncExitStack() as after:
        sock = Serving.bind(LOOPBACK, config.port)
        address = f"http://{LOOPBACK}:{sock.getsockname()[1]}"
        setup.session_id = await _session_to_open(setup, store)

        def use(kept: KeptModel) -> None:
            upstream = HttpUpstream(kept.upstream, key=kept.key, limits=config.limits)
            models.change(upstream, config.model or kept.model)

        with_model = ResolvedPreset.all_of(setup.config.preset)
        form = ModelForm(data_file("model.json"), use, with_model, config.limits, is_rehearsal=choice.is_rehearsal)
        page = PageSetup(
            limits=config.limits,
            hosts=config.hosts,
            origins=config.origins,
            log=log,
            folder=str(Path.cwd()),
            servers=setup.servers,
        )
        session, front, gate = await after.enter_async_context(
            setup.conversation(
                app,
                Api(InProcessWire(app)),
                store,
                choice.fact,  # Of the model the bare fact: its form is right below.
                page,
                None if config.upstream else form,
                is_rehearsal=choice.is_rehearsal,
                is_answered=True,
            )
        )
        serving = Beside(front, stopping, config.limits, sock)
        serving.allow_descriptors()
        is_chat = seat.is_attended and sys.stdout.isatty()
        stops = "Ctrl+D stops." if is_chat else "Ctrl+C stops."
        _say_what_is_up(setup, address, session, choice)
        say(f"Open {address}/enter?key={gate.make_key()} to see the page; the key works once. {stops}", fits=True)
        sys.stdout.flush()
        running = asyncio.ensure_future(serving.serve_here())
        after.enter_context(JoinFile(data_file("open"), address, gate, Path.cwd()).published())
        if is_opened:
            try:
                after.enter_context(open_browser(gate, address, data_file("open"), lambda: complain(NO_BROWSER)))
            except NoBrowser:
                complain(NO_BROWSER)
        try:
            if is_chat:
                again = f"lastword up --session {session.id}"
                await seat.talk(
                    seat.window(front, gate),
                    farewell=lambda id: f"Stopped. `{again}` comes back to it.",
                    until=running,
                )
            else:
                await _until_told(running)
        finally:
            front.end_streams()
            serving.should_exit = True
            await running


async def _session_to_open(setup: Setup, store: Store) -> str | None:
    """The one that was named, else one that was left unfinished, else the last one of this folder."""
    if setup.session_id is not None:
        if await begins_session(store, setup.session_id):
            say(f"There was no session {setup.session_id}: it begins now.", fits=True)
        return setup.session_id
    people = people_of(setup.config)
    if (left := await left_unfinished(store, people)) is not None:
        say(f"Going on with session {left}: something was left unfinished in it.", fits=True)
        return left
    # Another `up` of this folder has its conversation open already.
    if find_here(find_joinable(data_file("open"))):
        return None
    return await open_last(store, str(Path.cwd()), people)


def _say_what_is_up(setup: Setup, address: str, session: Session, choice: ModelChoice) -> None:
    config = setup.config.server
    words = [f"Listening on {address}/v1, for this machine only. Other programs need a token: `lastword token create`."]
    if not is_loopback(config.host):
        words.append(f"(host = {config.host} is for `lastword serve`.)")
    words.append(f"Remembering in {config.store or data_file()}, session {session.id}.")
    if setup.servers.all:
        words.append(f"MCP servers: {', '.join(server.in_words for server in setup.servers.all)}.")
    say("\n".join([*words, f"{choice.words}{setup.tour_hint}"]), fits=True)


class Beside(Serving):
    """A server that leaves signals to the chat beside it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _until_told(running: asyncio.Future[None]) -> None:
    """Wait for a signal, or for the server to end by itself."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    running.add_done_callback(lambda done: told.set())
    await told.wait()


def find_here(known: Iterable[JoinableServer]) -> list[JoinableServer]:
    """Those that were started in this folder."""
    return [found for found in known if found.folder == str(Path.cwd())]
