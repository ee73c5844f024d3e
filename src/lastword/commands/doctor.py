"""`lastword doctor`: what is configured, found and answering, and what a model does with a tool."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvloop

from lastword.commands.invocation import (
    DONE,
    FAILED,
    WITHOUT_TOKENS,
    CommandOption,
    ConfigError,
    LastWordError,
    data_file,
    laid_aside_words,
    load_config,
    store_address,
)
from lastword.display import visible
from lastword.hook import AGENTS, SAYS, AgentKeys, Hooks, InstalledHook, is_denial, probe_for
from lastword.mcp import Gateways, McpServers, counted
from lastword.rules import Policy, PolicyPlaces
from lastword.server import HttpUpstream, ModelNames, Refusal, Tokens, is_loopback
from lastword.talk import KeptModel, try_model

if TYPE_CHECKING:
    from lastword.config import Config


@click.command()
@CommandOption.server_store
@CommandOption.config
@CommandOption.json
def doctor(as_json: bool, config: Path | None, store: str | None) -> int:
    """Say what is configured, what was found, and whether it answers.

    The exit code is 0 when everything is ok, and 1 when anything is BAD.
    """
    findings = uvloop.run(_examine(config, store))
    if as_json:
        click.echo(json.dumps([{"what": what, "well": well, "found": found} for what, well, found in findings]))
    else:
        width = max(len(what) for what, _, _ in findings)
        for what, well, found in findings:
            # What a server says of itself may be meant for the terminal.
            click.echo(f"{'ok ' if well else 'BAD'}  {what:<{width}}  {visible(found)}")
    return DONE if all(well for _, well, _ in findings) else FAILED


Finding = tuple[str, bool, str]


async def _examine(path: Path | None, store: str | None) -> list[Finding]:
    try:
        config = load_config(path, {"store": store})
    except LastWordError as problem:
        return [("configuration", False, str(problem).replace("\n", "; "))]
    findings: list[Finding] = [("configuration", True, str(config.file or "no lastword.toml here; using the defaults"))]
    if config.laid_aside:
        findings = [("configuration", False, laid_aside_words(config).replace("\n", "; "))]
    findings += await _examine_model(config)
    try:
        text = config.persona_text()
        findings.append(
            ("persona", True, "none" if text is None else f"{config.server.persona}, {len(text)} characters")
        )
    except ConfigError as problem:
        findings.append(("persona", False, str(problem)))
    findings += await _examine_store(config)
    # Every hook that was installed is proven by a call that it must deny.
    hooks = Hooks()
    gates = [_try_gate(kept, list(hooks.troubles(kept))) for kept in hooks.all()]
    return [*findings, *_examine_rules(), *_examine_mcp(config), *gates]


def _examine_rules() -> list[Finding]:
    """Nothing where there are none. With a broken file nothing starts, and here it is said which."""
    try:
        policy = Policy.load(PolicyPlaces.of(Path()))
    except LastWordError as problem:
        return [("rules", False, str(problem).replace("\n", "; "))]
    if policy is None:
        return []
    said = []
    for file in policy.files:
        rules = [rule for rule in policy.rules if rule.file == file.path]
        is_new = not file.is_accepted and any(rule.saying == "allow" for rule in rules)
        state = ", not accepted: it can only ask and deny" if is_new else ""
        said.append(f"{file.path}: {len(rules)} rule{'' if len(rules) == 1 else 's'}{state}")
    return [("rules", True, "; ".join(said))]


async def _examine_model(config: Config) -> list[Finding]:
    url, source = config.server.upstream, config.sources.get("upstream", "")
    upstream_key, name = config.upstream_key, config.server.model
    try:
        kept = None if url is not None else KeptModel.read(data_file("model.json"))
    except ConfigError as problem:
        return [("model's server", False, str(problem).replace("\n", "; "))]
    if kept is not None:
        url, source = kept.upstream, "chosen on the page"
        upstream_key, name = kept.key, name or kept.model
    if url is None:
        found = await HttpUpstream.find_local()
        if found is None:
            missing = "none is configured, and none answers at the usual local ports, so only the rehearsal model does"
            return [("model's server", False, f"{missing}; start one, or name it as upstream in lastword.toml")]
        source, url = f"{found[0]}, found at its usual port", found[1]
    key = ", with a key" if upstream_key else ""
    try:
        upstream = HttpUpstream(url, key=upstream_key, limits=config.server.limits)
    except ConfigError as problem:
        return [("model's server", False, f"{problem.fact} ({source})")]
    try:
        models = await upstream.models()
        if sys.stderr.isatty():
            click.echo("Asking the model three short questions. A large one takes a few minutes for this.", err=True)
        trial = await try_model(upstream, name) if name is not None or models else None
    except Refusal as problem:
        return [("model's server", False, f"{url} ({source}){key}: {problem.fact}")]
    finally:
        await upstream.close()
    findings: list[Finding] = [
        (
            "model's server",
            True,
            f"{url} ({source}){key}: answers, {len(models)} model{'' if len(models) == 1 else 's'}",
        )
    ]
    named = config.sources.get("model", source)
    if name is None:
        first = ModelNames.shown(models[0]) if models else "it has none"
        findings.append(("model", bool(models), f"none is named; `lastword` means its first: {first}"))
    elif (unlisted := ModelNames(models).why_unlisted(name)) is None:
        findings.append(("model", True, f"{name} ({named})"))
    else:
        # Some answer to names that they do not list.
        answers = trial is not None and trial.problem is None
        findings.append(("model", answers, f"{name} ({named}){' answers, but' if answers else ':'} {unlisted}"))
    if trial is not None:
        findings.append(("tools", bool(trial.handled), trial.words))
    return findings


def _examine_mcp(config: Config) -> list[Finding]:
    """The MCP servers of the configuration, and those of wrapped clients that stand outside of the gateway."""
    findings: list[Finding] = []
    for server in McpServers.of(config).all:
        why = server.why_not()
        words = (
            f"trusted, {counted(len(server.pinned.tools))}" if server.pinned is not None and not why else "; ".join(why)
        )
        hint = "" if not why else f"; lastword mcp trust {server.name} shows it and asks"
        findings.append((f"MCP server {server.name}", not why, f"{words}{hint}"))
    for file, names in Gateways().outside():
        words = f"outside of the gateway: {', '.join(names)}" if names else "every server stands behind lastword"
        findings.append((f"MCP client {file}", not names, words))
    return findings


# A gate that needs longer than this to say no would be given up by nobody, and yet something is wrong with it.
PROBE_SECONDS = 30


def _try_gate(kept: InstalledHook, troubles: list[str]) -> Finding:
    agent = AGENTS[kept.agent]
    what = f"hook of {agent.name}"
    if troubles:
        return (
            what,
            False,
            f"{visible(kept.file)}: {'; '.join(troubles)}; lastword hook uninstall {agent.key}, then install",
        )
    try:
        # As the agent does it: a shell, with the event on standard input.
        tried = subprocess.run(
            ["sh", "-c", kept.command], input=probe_for(agent), capture_output=True, timeout=PROBE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return what, False, f"{visible(kept.file)}: it did not answer within {PROBE_SECONDS} seconds"
    if not is_denial(agent, tried.returncode, tried.stdout):
        said = visible((tried.stderr or tried.stdout).decode("utf-8", "replace").strip()[:300])
        fact = f"it does not deny what must be denied (exit {tried.returncode}: {said})"
        return what, False, f"{visible(kept.file)}: {fact}; {agent.name} would go on without asking"
    if tried.returncode == 2:
        said = visible(tried.stderr.decode("utf-8", "replace").strip()[:300])
        return what, False, f"{visible(kept.file)}: it denies everything, since it fails: {said}"
    note = ", once you trusted it in /hooks of Codex" if agent.key == "codex" else ""
    try:
        key = AgentKeys().read().get(agent.key, "never")
    except ConfigError as problem:
        return what, False, str(problem).replace("\n", "; ")
    means = SAYS.get(key, SAYS["never"])
    return what, True, f"{visible(kept.file)}: a call that must be denied was denied{note}; {means}"


async def _examine_store(config: Config) -> list[Finding]:
    address = store_address(config)
    try:
        store = address.open()
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
    words = f"{live} in use, {made - live} revoked" if made else f"none: {WITHOUT_TOKENS}"
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
