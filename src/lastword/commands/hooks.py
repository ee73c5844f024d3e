"""`lastword hook`: put the calls of Claude Code, Codex or Gemini CLI behind the cards, and take them out again."""

from __future__ import annotations

from pathlib import Path

import click

from lastword.cli import DONE, NOT_ALLOWED
from lastword.commands.options import apply_option, configured_memory, say, store_option
from lastword.commands.person import agreed, by_a_person
from lastword.hook import AGENTS, SAYS, WORDS, Agent, AgentKeys, HookChange, Hooks, main, settings_file
from lastword.mcp import JsonSettings

agent_argument = click.argument("agent", type=click.Choice(list(AGENTS)))
project_flag = click.option("--project", is_flag=True, help="In this folder only, and not for all of yours.")

_NEXT = {
    "claude": "New sessions of Claude Code ask here. Those that run now go on as they were.",
    "codex": "Codex skips a new hook until you trust it: start codex, type /hooks, and trust the three of lastword.",
    "gemini": "New sessions of Gemini CLI ask here. In a project it must be a folder that Gemini CLI trusts.",
}


@click.group()
def hook() -> None:
    """Put the calls of Claude Code, Codex or Gemini CLI behind your cards, and take them out again.

    These agents start `lastword hook AGENT` before each call of a tool and after it. A card appears on the page of
    `lastword up`, and what you say there is what the agent hears. Without a `lastword up` everything is denied.
    """


def _event_command(agent: Agent) -> click.Command:
    @click.command(agent.key, short_help=f"Answer one event of {agent.name}, which starts this itself.")
    @click.option(
        "--within", metavar="SECONDS", help="How long to wait for an answer. It must be less than the agent's."
    )
    @click.option("--store", metavar="URL", help="The memory to ask in. Without it: the user's own.")
    @click.option("--person", metavar="NAME", help="Whose cards they are, on a memory that several people share.")
    @click.option("--answerer", "answerers", multiple=True, metavar="NAME", help="Who else may answer them.")
    def event(within: str | None, store: str | None, person: str | None, answerers: tuple[str, ...]) -> int:
        given = {"--within": within, "--store": store, "--person": person}
        words = [word for name, value in given.items() if value for word in (name, value)]
        main([agent.key, *words, *(word for name in answerers for word in ("--answerer", name))])

    event.__doc__ = event.help = (
        f"Answer one event of {agent.name}: it comes on standard input, and the answer goes to standard output.\n\n"
        "Whatever goes wrong ends with the exit code 2, which denies the call."
    )
    return event


for _agent in AGENTS.values():
    hook.add_command(_event_command(_agent))


@hook.command(short_help="Have an agent ask here before it uses a tool.")
@agent_argument
@project_flag
@store_option
@click.option(
    "--standing",
    type=click.Choice(list(WORDS)),
    help="Which rules and grants of yours may answer for its tools: none, exact ones, or bounded ones too.",
)
@apply_option
def install(agent: str, project: bool, store: str | None, standing: str | None, apply: str | None) -> int:
    """Have an agent ask here before it uses a tool. The change to its settings is shown first, and they are kept.

    Each call asks you, unless you say with --standing that rules and grants of yours may answer. Where the hook is
    in place already, that is all that changes.
    """
    by_a_person("lastword hook install")
    hooks, which = Hooks(), AGENTS[agent]
    _, people = configured_memory()
    change = hooks.plan(which, settings_file(which, Path.cwd() if project else None), store, standing, people)
    _show(change)
    if standing is not None or change.standing != AgentKeys().read().get(agent, "never"):
        click.echo(f"  {which.name}: {SAYS[change.standing]}.", err=True)
    asked = "Change the settings like this?" if change.before != change.after else "Change it like this?"
    if not agreed(asked, apply, change.digest, "--apply"):
        return NOT_ALLOWED
    backup = hooks.install(change)
    if change.before == change.after:
        click.echo(f"{which.name}: {SAYS[change.standing]}.")
        return DONE
    kept = f" As they were they lie in {backup}." if backup else ""
    say(f"{which.name} asks lastword before it uses a tool, by {change.file}.{kept}")
    click.echo(_NEXT[agent])
    click.echo(
        "Start `lastword up` before you use it: without it everything is denied. `lastword doctor` tries the gate."
    )
    return DONE


@hook.command(short_help="Give an agent its settings back.")
@agent_argument
@project_flag
@apply_option
def uninstall(agent: str, project: bool, apply: str | None) -> int:
    """Give an agent its settings back, byte for byte. What was changed in them since stays, and the change is shown."""
    by_a_person("lastword hook uninstall")
    hooks, which = Hooks(), AGENTS[agent]
    change = hooks.plan_back(which, settings_file(which, Path.cwd() if project else None))
    if not change.is_exact:
        say(f"{change.file} was edited since. This is what would change:", err=True)
    _show(change)
    if AgentKeys().read().get(agent, "never") != "never":
        click.echo(f"  {which.name}: {SAYS['never']}.", err=True)
    if not agreed("Take the hook out?", apply, change.digest, "--apply"):
        return NOT_ALLOWED
    hooks.uninstall(change)
    say(f"Restored {change.file}" + (", byte for byte." if change.is_exact else "."))
    return DONE


def _show(change: HookChange) -> None:
    for line in JsonSettings(change.before or b"").change_lines(change.after or b"", change.file):
        click.echo(f"  {line}", err=True)
