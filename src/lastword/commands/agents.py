"""What the agents of other programs start: `lastword hook`, `lastword mcp serve` and `lastword mcp approver`.

A hook puts the calls of Claude Code, Codex or Gemini CLI behind the cards, and takes them out again; `mcp serve` offers
our tools to MCP clients, and `mcp approver` answers what Claude Code asks for with --permission-prompt-tool.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

# The doors are lazy: the SDK takes a second, and `lastword mcp list` needs none of it.
from lastword import hook as hooks
from lastword import mcp, server, values
from lastword.commands.invocation import (
    DONE,
    NOT_ALLOWED,
    CommandOption,
    agreed,
    by_a_person,
    complain,
    configured_memory,
    data_file,
    note_agent,
    read_config,
    refuse_below,
    remembering,
    say,
)
from lastword.lazily import load_later

if TYPE_CHECKING:
    import uvicorn

    from lastword.commands import local_session
    from lastword.config import Config
    from lastword.consent import Preset
    from lastword.editor import ScriptEditorProvider
    from lastword.journal import Journal
    from lastword.rules import Policy
    from lastword.session import Session
    from lastword.tools import ToolRegistry
else:
    # A hook that is installed or taken out needs no session, and serves nobody.
    uvicorn = load_later("uvicorn")
    local_session = load_later("lastword.commands.local_session")

BY_CLIENT = "--approve client"
BY_PERSON = "leave it out; a person answers on the page of lastword up, or with lastword answer"
LOOPBACK = "127.0.0.1"


@click.command(short_help="Offer your tools to an MCP client; a person answers.")
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Over HTTP, with tokens.")
@click.option(
    "--approve",
    type=click.Choice(["person", "client"]),
    default="person",
    help="Who answers. client: its own dialogue counts as the key of a preset, for tools that permit auto-approval.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=1),
    default=50.0,
    metavar="SECONDS",
    help="When to tell a client that a call still waits. Default: 50.",
)
@CommandOption.tools
@CommandOption.project
@CommandOption.store
@CommandOption.config
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
    registry = local_session.load_tools(folders, project, asking=False)
    editor = None if project is None else local_session.open_project(project, config)
    policy = local_session.rules_here(project, config.server.store, config.file)
    async with AsyncExitStack() as after:
        journal = await after.enter_async_context(remembering(config.server.store))
        if by_client:
            refuse_below(BY_CLIENT, journal.store, agents=False, hint=BY_PERSON)
        servers = await after.enter_async_context(mcp.McpServers.of(config))
        for words in servers.offer(registry):
            complain(words)
        facts = {"approve_by_client": by_client, "patience_seconds": patience, "over_http": port is not None}
        served = await after.enter_async_context(_tools(registry, journal, editor, config, policy, facts))
        if port is None:
            await served.run_over_stdio()
        else:
            await _over_http(served, journal, port)


@asynccontextmanager
async def _tools(
    registry: ToolRegistry,
    journal: Journal,
    editor: ScriptEditorProvider | None,
    config: Config,
    policy: Policy | None,
    facts: dict[str, Any],
) -> AsyncIterator[mcp.ToolServer]:
    tokens = server.Tokens(journal.store)

    async def open_session(id: str, preset: Preset | None) -> Session:
        whose = await tokens.person_of(id.removeprefix("mcp-").removesuffix("-dialogue")) or journal.people.me
        # Two people who serve over pipes have a session each.
        name = f"{id}-{whose}" if whose else id
        # Said on standard error, where clients keep what a server complains of.
        session = local_session.answered_elsewhere(
            registry, name, journal, config.server.store,
            preset=preset, editor=editor, principal=whose, policy=policy,
        )  # fmt: skip
        return await session.open()

    key = mcp.sealing_key(data_file("mcp_key"))
    served = mcp.ToolServer(open_session, key, **facts)
    try:
        yield served
    finally:
        await served.close()


async def _over_http(served: mcp.ToolServer, journal: Journal, port: int) -> None:
    """Until a signal, for this machine alone."""
    sock = server.Serving.bind(LOOPBACK, port)
    there = sock.getsockname()[1]
    tokens = server.Tokens(journal.store, always_needed=True)
    app = served.http_app(tokens, there)
    config = uvicorn.Config(app, http="httptools", lifespan="on", access_log=False, log_config=None, ws="none")
    click.echo(f"Listening on http://{LOOPBACK}:{there}{served.PATH}, for this machine only.", err=True)
    click.echo("A client needs a token: lastword token create NAME --scope tools. Ctrl+C stops.", err=True)
    await uvicorn.Server(config).serve(sockets=[sock])


@click.command(short_help="Answer what Claude Code asks with --permission-prompt-tool.")
@click.option(
    "--within", type=click.FloatRange(min=1, max=86_400), default=3_540.0, show_default=True, metavar="SECONDS",
    help="How long to wait for an answer.",
)  # fmt: skip
@CommandOption.store
def approver(within: float, store: str | None) -> int:
    """Answer what `claude -p --permission-prompt-tool` asks, over stdio: a card on the page of `lastword up`.

    In the configuration of Claude Code, add the command `lastword mcp approver` as a server named lastword. Then use
    --permission-prompt-tool mcp__lastword__approve.
    """
    asyncio.run(_answer(within, store))
    return DONE


async def _answer(within: float, store: str | None) -> None:
    note_agent()
    session = f"approver {values.new_id()}"
    async with remembering(store) as journal:

        async def decide(tool: str, given: dict[str, Any], tool_use: str | None) -> dict[str, Any] | str:
            said = hooks.HookInput(
                agent=hooks.CLAUDE,
                event="PermissionRequest",
                session=session,
                tool=tool,
                arguments=given,
                cwd=os.getcwd(),
                tool_use=tool_use,
            )
            verdict = await hooks.ask(journal, said, within)
            return verdict.arguments if isinstance(verdict, hooks.Allowed) else verdict.why

        await mcp.PermissionServer(decide).run_over_stdio()


agent_argument = click.argument("agent", type=click.Choice(list(hooks.AGENTS)))
project_flag = click.option("--project", is_flag=True, help="For this folder only, not for all your folders.")

_NEXT = {
    "claude": "New sessions of Claude Code ask here. Those that run now go on as they were.",
    "codex": "Codex skips a new hook until you trust it: start codex, type /hooks, and trust the three of lastword.",
    "gemini": "New sessions of Gemini CLI ask here. In a project it must be a folder that Gemini CLI trusts.",
}


@click.group()
def hook() -> None:
    """Put the calls of Claude Code, Codex or Gemini CLI behind your cards, or undo that.

    These agents start `lastword hook AGENT` before and after each tool call. A card appears on the page of `lastword
    up`, and the agent gets the answer that you give there. Without a `lastword up` everything is denied.
    """


def _event_command(agent: hooks.Agent) -> click.Command:
    @click.command(agent.key, short_help=f"Answer one event of {agent.name}, which starts this itself.")
    @click.option(
        "--within", metavar="SECONDS", help="How long to wait for an answer. It must be less than the agent's."
    )
    @click.option("--store", metavar="URL", help="The store to ask in. Default: your own.")
    @click.option("--person", metavar="NAME", help="Whose cards they are, on a store that several people share.")
    @click.option("--answerer", "answerers", multiple=True, metavar="NAME", help="Who else may answer them.")
    def event(within: str | None, store: str | None, person: str | None, answerers: tuple[str, ...]) -> int:
        given = {"--within": within, "--store": store, "--person": person}
        words = [word for name, value in given.items() if value for word in (name, value)]
        hooks.main([agent.key, *words, *(word for name in answerers for word in ("--answerer", name))])

    event.__doc__ = event.help = (
        f"Answer one event of {agent.name}: it comes on standard input, and the answer goes to standard output.\n\n"
        "If anything goes wrong, the exit code is 2, which denies the call."
    )
    return event


for _agent in hooks.AGENTS.values():
    hook.add_command(_event_command(_agent))


@hook.command(short_help="Have an agent ask here before it uses a tool.")
@agent_argument
@project_flag
@CommandOption.store
@click.option(
    "--standing",
    type=click.Choice(list(hooks.WORDS)),
    help="Which of your rules and grants may answer for its tools: none, exact ones, or bounded ones too.",
)
@CommandOption.apply
def install(agent: str, project: bool, store: str | None, standing: str | None, apply: str | None) -> int:
    """Have an agent ask here before it uses a tool.

    You see the change to its settings first, and a copy of the settings is kept. Each call asks you, unless you say
    with --standing that rules and grants of yours may answer. If the hook is installed already, only that changes.
    """
    by_a_person("lastword hook install")
    installed, which = hooks.Hooks(), hooks.AGENTS[agent]
    _, people = configured_memory()
    change = installed.plan(which, hooks.settings_file(which, Path.cwd() if project else None), store, standing, people)
    _show(change)
    if standing is not None or change.standing != hooks.AgentKeys().read().get(agent, "never"):
        click.echo(f"  {which.name}: {hooks.SAYS[change.standing]}.", err=True)
    asked = "Change the settings like this?" if change.before != change.after else "Change it like this?"
    if not agreed(asked, apply, change.digest, "--apply"):
        return NOT_ALLOWED
    backup = installed.install(change)
    if change.before == change.after:
        click.echo(f"{which.name}: {hooks.SAYS[change.standing]}.")
        return DONE
    kept = f" As they were they lie in {backup}." if backup else ""
    say(f"{which.name} asks lastword before it uses a tool, by {change.file}.{kept}")
    click.echo(_NEXT[agent])
    click.echo(
        "Start `lastword up` before you use it: without it everything is denied. `lastword doctor` tries the gate."
    )
    return DONE


@hook.command(short_help="Restore an agent's settings.")
@agent_argument
@project_flag
@CommandOption.apply
def uninstall(agent: str, project: bool, apply: str | None) -> int:
    """Restore an agent's settings, byte for byte. Later changes to them stay, and the change is shown first."""
    by_a_person("lastword hook uninstall")
    installed, which = hooks.Hooks(), hooks.AGENTS[agent]
    change = installed.plan_back(which, hooks.settings_file(which, Path.cwd() if project else None))
    if not change.is_exact:
        say(f"{change.file} was edited since. This is what would change:", err=True)
    _show(change)
    if hooks.AgentKeys().read().get(agent, "never") != "never":
        click.echo(f"  {which.name}: {hooks.SAYS['never']}.", err=True)
    if not agreed("Take the hook out?", apply, change.digest, "--apply"):
        return NOT_ALLOWED
    installed.uninstall(change)
    say(f"Restored {change.file}" + (", byte for byte." if change.is_exact else "."))
    return DONE


def _show(change: hooks.HookChange) -> None:
    for line in mcp.JsonSettings(change.before or b"").change_lines(change.after or b"", change.file):
        click.echo(f"  {line}", err=True)
