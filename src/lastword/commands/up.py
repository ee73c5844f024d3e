"""`lastword up`: the API, the page and a chat for one person, in one process and on this machine only."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import click

from lastword.call import wait_for_answer
from lastword.cli import DONE, complain
from lastword.commands.attach import data_file, find_here, join_folder, model_file
from lastword.commands.chat import ChatOptions, Setup, assistant_api, conversation_options
from lastword.commands.configuration import people_of
from lastword.journal import attending
from lastword.server import (
    HttpUpstream,
    Serving,
    is_loopback,
)
from lastword.session import Session
from lastword.store import Store
from lastword.talk import (
    Api,
    InProcessWire,
    KeptModel,
    ModelChoice,
    find_preset,
    resolve_presets,
    usual_protocol,
)
from lastword.terminal import Window, fitted, is_interactive
from lastword.tools.guard import refuse_below
from lastword.web import (
    AssistantSetup,
    JoinFile,
    ModelForm,
    NoBrowser,
    PageSetup,
    begins_session,
    find_joinable,
    left_unfinished,
    open_browser,
    open_last,
    open_page,
)

LOOPBACK = "127.0.0.1"
NO_BROWSER = "no browser could be opened from here\nhint: open the address above, in a browser of this machine"


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Without it: 8811. 0 takes any free one.")
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
@conversation_options
def up(port: int | None, is_opened: bool, options: ChatOptions) -> int:
    """Start everything for one person, on this machine only: the API, the page, and a chat if this is a terminal."""
    refuse_below("lastword up")  # whoever reads its key answers its cards
    asyncio.run(_up(Setup(options, port=port), is_opened=is_opened))
    return DONE


async def _up(setup: Setup, *, is_opened: bool) -> None:
    config = setup.config.server
    # At a person's terminal the access log would hide the conversation.
    log = None if is_interactive() else sys.stderr.write
    async with assistant_api(setup, log=log) as (app, store, choice, stopping, models), AsyncExitStack() as after:
        sock = Serving.bind(LOOPBACK, config.port)
        address = f"http://{LOOPBACK}:{sock.getsockname()[1]}"
        setup.session_id = await _session_to_open(setup, store)
        presets = resolve_presets(setup.config.preset, usual_protocol(is_rehearsal=choice.is_rehearsal))
        chosen = find_preset(presets, setup.preset)
        session = await after.enter_async_context(
            setup.session(store, wait_for_answer, presets[chosen].preset, is_rehearsal=choice.is_rehearsal)
        )

        def use(kept: KeptModel) -> None:
            upstream = HttpUpstream(kept.upstream, key=kept.key, limits=config.limits)
            models.change(upstream, config.model or kept.model)

        with_model = resolve_presets(setup.config.preset, usual_protocol(is_rehearsal=False))
        form = ModelForm(model_file(), use, with_model, config.limits, is_rehearsal=choice.is_rehearsal)
        front, gate = await after.enter_async_context(
            open_page(
                app,
                session,
                Api(InProcessWire(app)),
                # Of the model the bare fact: its form is right below.
                AssistantSetup(
                    presets, chosen, choice.fact, choice.is_rehearsal, form=None if config.upstream else form
                ),
                PageSetup(
                    limits=config.limits,
                    hosts=config.hosts,
                    origins=config.origins,
                    log=log,
                    folder=str(Path.cwd()),
                    servers=setup.servers,
                ),
            )
        )
        after.enter_context(attending(store))
        serving = Beside(front, stopping, config.limits, sock)
        serving.allow_descriptors()
        is_chat = setup.seat.is_attended and sys.stdout.isatty()
        stops = "Ctrl+D stops." if is_chat else "Ctrl+C stops."
        _say_what_is_up(setup, address, session, choice)
        say(f"Open {address}/enter?key={gate.make_key()} to see the page; the key works once. {stops}")
        sys.stdout.flush()
        running = asyncio.ensure_future(serving.serve_here())
        after.enter_context(JoinFile(join_folder(), address, gate, Path.cwd()).published())
        if is_opened:
            try:
                after.enter_context(open_browser(gate, address, join_folder(), lambda: complain(NO_BROWSER)))
            except NoBrowser:
                complain(NO_BROWSER)
        try:
            if is_chat:
                window = Window(InProcessWire(front), gate.admit("terminal"))
                again = f"lastword up --session {session.id}"
                await setup.seat.talk(
                    window, farewell=lambda id: f"Stopped. `{again}` comes back to it.", until=running
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
            say(f"There was no session {setup.session_id}: it begins now.")
        return setup.session_id
    people = people_of(setup.config)
    if (left := await left_unfinished(store, people)) is not None:
        say(f"Going on with session {left}: something was left unfinished in it.")
        return left
    # Another `up` of this folder has its conversation open already.
    if find_here(find_joinable(join_folder())):
        return None
    return await open_last(store, str(Path.cwd()), people)


def _say_what_is_up(setup: Setup, address: str, session: Session, choice: ModelChoice) -> None:
    config = setup.config.server
    say(f"Listening on {address}/v1, for this machine only. Other programs need a token: `lastword token create`.")
    if not is_loopback(config.host):
        say(f"(host = {config.host} is for `lastword serve`.)")
    say(f"Remembering in {config.store or data_file()}, session {session.id}.")
    if setup.servers.all:
        say(f"MCP servers: {', '.join(server.in_words for server in setup.servers.all)}.")
    say(f"{choice.words}{setup.tour_hint}")


def say(words: str) -> None:
    """A line of ours. On a screen it breaks between words; for a program it is one line."""
    click.echo(fitted(words, sys.stdout))


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
