"""`lastword serve` and `lastword token`: the assistant API on the command line.

With `--workers N` the first process binds the port, starts the others and looks after them; it answers nobody itself.
Whoever of them is free takes the next connection. They share nothing but the store, so a turn can go on at any of them.
One that dies is replaced; one that ends with an error ends all, since the next would end so too.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
import uvloop

from lastword import server as api
from lastword import talk
from lastword.commands.invocation import (
    DONE,
    FAILED,
    WITHOUT_TOKENS,
    WRONG_USAGE,
    CommandOption,
    ConfigError,
    LastWordError,
    Misused,
    complain,
    read_config,
    refuse_below,
    store_address,
)
from lastword.config import check_person
from lastword.server import Tokens

if TYPE_CHECKING:
    from lastword.config import Config

T = TypeVar("T")

# A worker that dies again and again should not keep a machine busy with starting it.
PAUSE_SECONDS = 0.5

MAX_WORKERS = 64

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option("--host", metavar="ADDRESS", help="Where to listen. Default: 127.0.0.1, for this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Default: 8811. 0 takes any free port.")
@click.option("--upstream", metavar="URL", help="The model's server, like http://127.0.0.1:11434/v1")
@click.option("--model", metavar="NAME", help="The model to ask when a request names none.")
@click.option("--persona", metavar="FILE", help="The system prompt that every conversation begins with.")
@click.option(
    "--workers",
    type=click.IntRange(1, MAX_WORKERS),
    default=1,
    metavar="N",
    help="How many processes run behind one port and one store. Default: 1.",
)
@CommandOption.server_store
@CommandOption.config
def serve(config: Path | None, workers: int, **flags: Any) -> int:
    """Serve the assistant API: OpenAI-compatible, with history and strict tool requests. It never runs a tool."""
    loaded = read_config(config, flags)
    if workers == 1:
        return uvloop.run(_serve(loaded))
    if store_address(loaded).is_memory:
        raise ConfigError(
            "a store in memory is not shared by several processes",
            place="--workers",
            hint="name one that is: --store sqlite:///FILE or postgresql://…",
        )
    # Loaded once, before there are several: they share it.
    _ = api.build_app, talk.ModelChoice, api.Stopping
    sock = api.Serving.bind(loaded.server.host, loaded.server.port)
    return Workers(sock, lambda *place: uvloop.run(_serve(loaded, *place))).run(workers)


async def _serve(config: Config, sock: socket.socket | None = None, number: int = 0, lifeline: int = -1) -> int:
    """Serve until a signal. One of several is given the socket, and ends when nobody is at the other end of a pipe."""
    server = config.server
    persona = config.persona_text()
    choice = await talk.ModelChoice.of(config)
    store = store_address(config).open()
    try:
        await Tokens(store).check_address(server.host)
        stopping = api.Stopping()
        built = api.build_app(
            store,
            choice.upstream,
            model=server.model,
            persona=persona,
            is_reasoning=server.reasoning,
            limits=server.limits,
            hosts=[server.host, *server.hosts],
            origins=server.origins,
            stopping=stopping,
            retention_days=server.retention_days,
        )
        sock = sock or api.Serving.bind(server.host, server.port)
        listening = api.Serving(built, stopping, server.limits, sock)
        if not number:
            host = f"[{server.host.strip('[]')}]" if ":" in server.host else server.host
            click.echo(f"Listening on http://{host}:{sock.getsockname()[1]}/v1")
            click.echo(f"{choice.words} Ctrl+C stops.")
            sys.stdout.flush()
        if lifeline >= 0:
            asyncio.get_running_loop().add_reader(lifeline, listening.handle_exit, signal.SIGTERM, None)
        listening.tune_gc()
        listening.allow_descriptors()
        await listening.serve_here()
    finally:
        await store.close()
    return DONE


@click.group()
def token() -> None:
    """Manage the tokens for the API."""


@token.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("chat",),
    metavar="SCOPE",
    help=f"What it may do; may be repeated: {', '.join(Tokens.SCOPES)}.",
)
@click.option("--person", metavar="NAME", help="Whose token it is: this person answers the cards of its calls.")
@CommandOption.server_store
@CommandOption.config
@CommandOption.json
def create(name: str, scopes: tuple[str, ...], person: str | None, as_json: bool, **where: Any) -> int:
    """Make a token. It is shown once: only its digest is kept."""

    async def work(tokens: Tokens) -> int:
        made, text = await tokens.create(name, scopes, check_person(person or ""))
        if as_json:
            click.echo(json.dumps({"id": made.id, "name": made.name, "scopes": sorted(made.scopes), "token": text}))
        else:
            click.echo(text)
            click.echo(f"{made.id}, for {name}: {', '.join(sorted(made.scopes))}. It is not shown again.", err=True)
        return DONE

    return _with_tokens(work, **where)


@token.command("list")
@CommandOption.server_store
@CommandOption.config
@CommandOption.json
def list_(as_json: bool, **where: Any) -> int:
    """Show the tokens, without their secrets."""

    async def work(tokens: Tokens) -> int:
        known = await tokens.all()
        if as_json:
            shown = [
                {
                    "id": entry.id,
                    "name": entry.name,
                    "scopes": sorted(entry.scopes),
                    "created": entry.created // 1_000_000,
                    "revoked": entry.revoked,
                }
                for entry in known
            ]
            click.echo(json.dumps(shown))
            return DONE
        for entry in known:
            state = "revoked" if entry.revoked else ", ".join(sorted(entry.scopes))
            click.echo(f"{entry.id}  {entry.name}  {state}")
        if not known:
            click.echo(f"No tokens: {WITHOUT_TOKENS}.")
        return DONE

    return _with_tokens(work, **where)


@token.command("revoke")
@click.argument("id")
@CommandOption.server_store
@CommandOption.config
def revoke(id: str, **where: Any) -> int:
    """End a token. A running server refuses it from the next request on."""

    async def work(tokens: Tokens) -> int:
        ended = await tokens.revoke(id)
        click.echo(f"Revoked {ended.id}, for {ended.name}.")
        if all(entry.revoked for entry in await tokens.all()):
            click.echo("It was the last: nobody can use the API until there is a new one.")
        return DONE

    return _with_tokens(work, **where)


def _with_tokens(work: Callable[[Tokens], Awaitable[T]], *, store: str | None, config: Path | None) -> T:
    refuse_below("lastword token")
    address = store_address(read_config(config, {"store": store}))
    opened = address.open()
    if address.is_memory:
        raise Misused(
            "tokens in memory are gone when this command ends",
            place="lastword token",
            hint="name the store that the server uses: --store sqlite:///FILE",
        )

    async def carry() -> T:
        try:
            refuse_below("lastword token", opened)
            return await work(Tokens(opened))
        finally:
            await opened.close()

    return asyncio.run(carry())


class Workers:
    """The processes that serve, seen from the one that started them."""

    def __init__(self, sock: socket.socket, serve: Callable[[socket.socket, int, int], int]) -> None:
        self._socket = sock
        self._serve = serve
        self._numbers: dict[int, int] = {}  # By process.
        self._is_ending = False
        # Its other end is open in this process alone: when that dies, however it does, every worker notices.
        self._lifeline, self._alive = os.pipe()

    def run(self, count: int) -> int:
        """Serve with so many until a signal, or until one ends with an error. The exit code for all."""
        before = {number: signal.signal(number, self._end) for number in SIGNALS}
        code = DONE
        try:
            for number in range(count):
                self._start(number)
            while self._numbers:
                ended, status = os.wait()
                number = self._numbers.pop(ended)
                if os.WIFSIGNALED(status) and not self._is_ending:
                    time.sleep(PAUSE_SECONDS)
                    self._start(number)
                elif not self._is_ending:
                    code = os.waitstatus_to_exitcode(status)
                    self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return code

    def _start(self, number: int) -> None:
        # A signal between the fork and what follows it would miss the new process, or run our handler in it.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            if self._is_ending:
                return
            # Nothing has threads or a loop yet, so a copy of this process is a whole one.
            child = os.fork()
            if child:
                self._numbers[child] = number
                return
            for known in SIGNALS:
                signal.signal(known, signal.SIG_DFL)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = FAILED
        try:
            os.close(self._alive)
            code = self._serve(self._socket, number, self._lifeline)
        except LastWordError as problem:
            complain(str(problem))
            code = WRONG_USAGE if isinstance(problem, ConfigError) else FAILED
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _end(self, number: int = 0, frame: FrameType | None = None) -> None:
        self._is_ending = True
        for child in list(self._numbers):
            os.kill(child, signal.SIGTERM)
