"""`lastword mcp serve` and `approver`: our tools for MCP clients, and our cards for what Claude Code asks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import uvicorn

# The doors are lazy: the SDK takes a second, and `lastword mcp list` needs none of it.
from lastword import hook, mcp, values
from lastword.call import Limits, wait_for_answer
from lastword.cli import DONE, complain
from lastword.commands.local_session import load_tools, open_project, rules_here, say_what_waits
from lastword.commands.options import (
    config_option,
    project_option,
    read_config,
    remembering,
    store_option,
    tools_option,
)
from lastword.mcp import McpServers, sealing_key
from lastword.server import Serving, Tokens
from lastword.session import Session
from lastword.store import data_folder
from lastword.tools.guard import note_agent, refuse_below

if TYPE_CHECKING:
    from lastword.config import Config
    from lastword.consent import Preset
    from lastword.editor import ScriptEditorProvider
    from lastword.journal import Journal
    from lastword.rules import Policy
    from lastword.tools import ToolRegistry

BY_CLIENT = "--approve client"
BY_PERSON = "leave it out; a person answers on the page of lastword up, or with lastword answer"
LOOPBACK = "127.0.0.1"
# Nobody answers in this process, so the others are listened for from the first moment on.
ANSWERED_ELSEWHERE = Limits(watch_after_seconds=0)


@click.command(short_help="Offer your tools to an MCP client; a person answers.")
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Over HTTP, with tokens.")
@click.option(
    "--approve",
    type=click.Choice(["person", "client"]),
    default="person",
    help="client: its own dialogue turns the key of a preset, for tools that permit auto-approval.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=1),
    default=50.0,
    metavar="SECONDS",
    help="When to tell a client that a call still waits. Without it: 50.",
)
@tools_option
@project_option
@store_option
@config_option
def serve(
    port: int | None,
    approve: str,
    patience: float,
    folders: tuple[str, ...],
    project: str | None,
    store: str | None,
    config: Path | None,
) -> int:
    """Offer your tools, and those of trusted MCP servers, to an MCP client: over stdio, or HTTP with --http PORT.

    Before anything sensitive happens a person is asked: on the page of `lastword up`, or with `lastword answer`.
    """
    if approve == "client":
        # Whoever starts it below a tool is the client as well, and accepts its own dialogue. An agent above is no sign
        # of that: Claude Code has our hook, and starts this server itself, as its child, to show its person a dialogue.
        refuse_below(BY_CLIENT, agents=False, hint=BY_PERSON)
    loaded = read_config(config, {"store": store})
    asyncio.run(_serve(loaded, folders, project, port, by_client=approve == "client", patience=patience))
    return DONE


async def _serve(
    config: Config, folders: tuple[str, ...], project: str | None, port: int | None, *, by_client: bool, patience: float
) -> None:
    registry = load_tools(folders, project, asking=False)
    editor = None if project is None else open_project(project, config)
    policy = rules_here(project, config.server.store, config.file)
    async with AsyncExitStack() as after:
        journal = await after.enter_async_context(remembering(config.server.store))
        if by_client:
            refuse_below(BY_CLIENT, journal.store, agents=False, hint=BY_PERSON)
        servers = await after.enter_async_context(McpServers.of(config))
        for words in servers.offer(registry):
            complain(words)
        facts = {"approve_by_client": by_client, "patience_seconds": patience, "over_http": port is not None}
        server = await after.enter_async_context(_tools(registry, journal, editor, config, policy, facts))
        if port is None:
            await server.run_over_stdio()
        else:
            await _over_http(server, journal, port)


@asynccontextmanager
async def _tools(
    registry: ToolRegistry,
    journal: Journal,
    editor: ScriptEditorProvider | None,
    config: Config,
    policy: Policy | None,
    facts: dict[str, Any],
) -> AsyncIterator[mcp.ToolServer]:
    tokens = Tokens(journal.store)

    async def open_session(id: str, preset: Preset | None) -> Session:
        whose = await tokens.person_of(id.removeprefix("mcp-").removesuffix("-dialogue")) or journal.people.me
        # Two people who serve over pipes have a session each.
        name = f"{id}-{whose}" if whose else id
        session = Session(
            registry,
            id=name,
            approver=wait_for_answer,
            journal=journal,
            preset=preset,
            editor=editor,
            principal=whose,
            policy=policy,
            limits=ANSWERED_ELSEWHERE,
        )
        # On standard error, where clients keep what a server complains of.
        say_what_waits(session, config.server.store)
        return await session.open()

    key = sealing_key(data_folder(sys.platform, os.environ, Path.home()) / "mcp_key")
    server = mcp.ToolServer(open_session, key, **facts)
    try:
        yield server
    finally:
        await server.close()


async def _over_http(server: mcp.ToolServer, journal: Journal, port: int) -> None:
    """Until a signal, for this machine alone."""
    sock = Serving.bind(LOOPBACK, port)
    there = sock.getsockname()[1]
    tokens = Tokens(journal.store, always_needed=True)
    app = server.http_app(tokens, there)
    config = uvicorn.Config(app, http="httptools", lifespan="on", access_log=False, log_config=None, ws="none")
    click.echo(f"Listening on http://{LOOPBACK}:{there}{server.PATH}, for this machine only.", err=True)
    click.echo("A client needs a token: lastword token create NAME --scope tools. Ctrl+C stops.", err=True)
    await uvicorn.Server(config).serve(sockets=[sock])


@click.command(short_help="Answer what Claude Code asks with --permission-prompt-tool.")
@click.option(
    "--within", type=click.FloatRange(min=1, max=86_400), default=3_540.0, show_default=True, metavar="SECONDS",
    help="How long to wait for an answer.",
)  # fmt: skip
@store_option
def approver(within: float, store: str | None) -> int:
    """Answer what `claude -p --permission-prompt-tool` asks, over stdio: a card on the page of `lastword up`.

    In the configuration of Claude Code: the command `lastword mcp approver` as a server named lastword, and then
    --permission-prompt-tool mcp__lastword__approve.
    """
    asyncio.run(_answer(within, store))
    return DONE


async def _answer(within: float, store: str | None) -> None:
    note_agent()
    session = f"approver {values.new_id()}"
    async with remembering(store) as journal:

        async def decide(tool: str, given: dict[str, Any], tool_use: str | None) -> dict[str, Any] | str:
            said = hook.HookInput(
                agent=hook.CLAUDE,
                event="PermissionRequest",
                session=session,
                tool=tool,
                arguments=given,
                cwd=os.getcwd(),
                tool_use=tool_use,
            )
            verdict = await hook.ask(journal, said, within)
            return verdict.arguments if isinstance(verdict, hook.Allowed) else verdict.why

        await mcp.PermissionServer(decide).run_over_stdio()
