"""`lastword serve`, `lastword token` and `lastword doctor`: the assistant API on the command line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import uvloop

from lastword.cli import DONE, FAILED
from lastword.config import Config, load
from lastword.errors import ConfigError, LastWordError
from lastword.server.app import build_app
from lastword.server.auth import SCOPES, Tokens
from lastword.server.chat import CONFIGURED
from lastword.server.presence import Stopping
from lastword.server.refusal import Refusal
from lastword.server.serving import Serving, bind, check_address, is_loopback, tune_gc
from lastword.server.upstream import HttpUpstream, find_local
from lastword.store import Store
from lastword.store.address import default_path, open_store
from lastword.store.memory import MemoryStore
from lastword.talk.model_choice import choose_model

T = TypeVar("T")

config_option = click.option(
    "--config", type=click.Path(path_type=Path), metavar="FILE", help="Instead of lastword.toml in this folder."
)
store_option = click.option("--store", metavar="URL", help="Where everything is remembered: sqlite:///FILE or memory:")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a program.")


@click.command(short_help="Serve the assistant API. It never runs a tool.")
@click.option("--host", metavar="ADDRESS", help="Where to listen. Without it: 127.0.0.1, for this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), metavar="PORT", help="Without it: 8811. 0 takes any free one.")
@click.option("--upstream", metavar="URL", help="The model's server, like http://127.0.0.1:11434/v1")
@click.option("--model", metavar="NAME", help="The model to ask when a request names none.")
@click.option("--persona", metavar="FILE", help="The system prompt that every conversation begins with.")
@store_option
@config_option
def serve(config: Path | None, **flags: Any) -> int:
    """Serve the assistant API: OpenAI-compatible, with history and strict tool requests. It never runs a tool."""
    loaded = load(config, environ=os.environ, flags=flags)
    return uvloop.run(_serve(loaded))


async def _serve(config: Config) -> int:
    server = config.server
    persona = config.persona_text()
    choice = await choose_model(config)
    store = open_store(_address(config))
    try:
        await check_address(server.host, store)
        stopping = Stopping()
        app = build_app(
            store,
            choice.upstream,
            model=server.model,
            persona=persona,
            limits=server.limits,
            hosts=[server.host, *server.hosts],
            origins=server.origins,
            stopping=stopping,
        )
        sock = bind(server.host, server.port)
        serving = Serving(app, stopping, server.limits, sock)
        host = f"[{server.host.strip('[]')}]" if ":" in server.host else server.host
        click.echo(f"Listening on http://{host}:{sock.getsockname()[1]}/v1")
        click.echo(f"{choice.words} Ctrl+C stops.")
        sys.stdout.flush()
        tune_gc()
        await serving.serve_here()
    finally:
        await store.close()
    return DONE


@click.group()
def token() -> None:
    """Tokens for whoever may use the API."""


@token.command("create")
@click.argument("name")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    default=("chat",),
    metavar="SCOPE",
    help=f"May be repeated: {', '.join(SCOPES)}.",
)
@store_option
@config_option
@json_option
def create(name: str, scopes: tuple[str, ...], as_json: bool, **where: Any) -> int:
    """Make a token. It is shown once: only its digest is kept."""

    async def work(tokens: Tokens) -> int:
        made, text = await tokens.create(name, scopes)
        if as_json:
            click.echo(json.dumps({"id": made.id, "name": made.name, "scopes": sorted(made.scopes), "token": text}))
        else:
            click.echo(text)
            click.echo(f"{made.id}, for {name}: {', '.join(sorted(made.scopes))}. It is not shown again.", err=True)
        return DONE

    return _with_tokens(work, **where)


@token.command("list")
@store_option
@config_option
@json_option
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
            click.echo("No tokens: the API is open to this machine, and to nobody else.")
        return DONE

    return _with_tokens(work, **where)


@token.command("revoke")
@click.argument("id")
@store_option
@config_option
def revoke(id: str, **where: Any) -> int:
    """End a token. A running server refuses it from the next request on."""

    async def work(tokens: Tokens) -> int:
        ended = await tokens.revoke(id)
        click.echo(f"Revoked {ended.id}, for {ended.name}.")
        if all(entry.revoked for entry in await tokens.all()):
            click.echo("It was the last: nobody can use the API until there is a new one.")
        return DONE

    return _with_tokens(work, **where)


@click.command()
@store_option
@config_option
@json_option
def doctor(as_json: bool, config: Path | None, store: str | None) -> int:
    """Say what is configured, what was found, and whether it answers."""
    findings = uvloop.run(_examine(config, store))
    if as_json:
        click.echo(json.dumps([{"what": what, "well": well, "found": found} for what, well, found in findings]))
    else:
        width = max(len(what) for what, _, _ in findings)
        for what, well, found in findings:
            click.echo(f"{'ok ' if well else 'BAD'}  {what:<{width}}  {found}")
    return DONE if all(well for _, well, _ in findings) else FAILED


Finding = tuple[str, bool, str]


async def _examine(path: Path | None, store: str | None) -> list[Finding]:
    try:
        config = load(path, environ=os.environ, flags={"store": store})
    except LastWordError as problem:
        return [("configuration", False, str(problem).replace("\n", "; "))]
    findings: list[Finding] = [("configuration", True, str(config.file or "no lastword.toml here; using the defaults"))]
    findings += await _examine_model(config)
    try:
        text = config.persona_text()
        findings.append(
            ("persona", True, "none" if text is None else f"{config.server.persona}, {len(text)} characters")
        )
    except ConfigError as problem:
        findings.append(("persona", False, str(problem)))
    findings += await _examine_store(config)
    return findings


async def _examine_model(config: Config) -> list[Finding]:
    url, source = config.server.upstream, config.sources.get("upstream", "")
    if url is None:
        found = await find_local()
        if found is None:
            missing = "none is configured, and none answers at the usual local ports, so only the rehearsal model does"
            return [("model's server", False, f"{missing}; start one, or name it as upstream in lastword.toml")]
        source, url = f"{found[0]}, found at its usual port", found[1]
    key = ", with a key" if config.upstream_key else ""
    try:
        upstream = HttpUpstream(url, key=config.upstream_key, limits=config.server.limits)
    except ConfigError as problem:
        return [("model's server", False, f"{problem.fact} ({source})")]
    try:
        models = await upstream.models()
    except Refusal as problem:
        return [("model's server", False, f"{url} ({source}){key}: {problem.fact}")]
    finally:
        await upstream.close()
    findings: list[Finding] = [("model's server", True, f"{url} ({source}){key}: answers, {len(models)} models")]
    name = config.server.model
    if name is None:
        first = models[0] if models else "it has none"
        findings.append(("model", bool(models), f"none is named; `{CONFIGURED}` means its first: {first}"))
    elif name in models:
        findings.append(("model", True, f"{name} ({config.sources['model']})"))
    else:
        findings.append(("model", False, f"{name} ({config.sources['model']}) is not among: {', '.join(models[:8])}"))
    return findings


async def _examine_store(config: Config) -> list[Finding]:
    address = _address(config)
    try:
        store = open_store(address)
    except LastWordError as problem:
        return [("store", False, str(problem).replace("\n", "; "))]
    try:
        head = await store.head()
        live = sum(not entry.revoked for entry in await Tokens(store).all())
        made = len(await Tokens(store).all())
    except LastWordError as problem:
        return [("store", False, str(problem).replace("\n", "; "))]
    finally:
        await store.close()
    host = config.server.host
    words = f"{live} in use, {made - live} revoked" if made else "none: open to this machine only"
    reachable = is_loopback(host) or live > 0
    where = "this machine only" if is_loopback(host) else "other machines too"
    return [
        ("store", True, f"{address}, {head.seq} records"),
        ("tokens", live > 0 or not made, words),
        (
            "address",
            reachable,
            f"{host}:{config.server.port}, {where}" + ("" if reachable else ", and there is no token"),
        ),
    ]


def _with_tokens(work: Callable[[Tokens], Awaitable[T]], *, store: str | None, config: Path | None) -> T:
    opened: Store = open_store(_address(load(config, environ=os.environ, flags={"store": store})))
    if isinstance(opened, MemoryStore):
        raise LastWordError(
            "tokens in memory are gone when this command ends",
            place="lastword token",
            hint="name the store that the server uses: --store sqlite:///FILE",
        )

    async def carry() -> T:
        try:
            return await work(Tokens(opened))
        finally:
            await opened.close()

    return asyncio.run(carry())


def _address(config: Config) -> str:
    """The configured store, or the one in the user's data folder."""
    return config.server.store or f"sqlite:///{default_path(sys.platform, os.environ, Path.home())}"
