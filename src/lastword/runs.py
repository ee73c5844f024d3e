"""A script being carried out: its CALLs go through the door, and the journal makes it survive its process.

A run is its text, its variables, and what its CALLs and NOWs gave. While the process lives, a coroutine waits. After a
restart the script is run again from the top, and whatever the journal holds is given to it instead of being done; if it
asks for something else than the journal holds, it stops. Each CALL has the id `RUN.n`, so the journal itself
knows what belongs to the run.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from lastword import script, values
from lastword.call import Door, difference, recover
from lastword.call.events import Printed, RunFinished, RunStarted
from lastword.consent import LiveRun, Outcome, Preset, deciders
from lastword.errors import ArgumentsError, SessionError, did_you_mean
from lastword.journal import Life, RunPast
from lastword.rules import Grants, Policy
from lastword.script import (
    CallFailed,
    Concealed,
    Machine,
    PlacedError,
    ScriptLimits,
    Signature,
    SignatureParameter,
    Site,
    Step,
    aside,
    prompt,
    read,
)

if TYPE_CHECKING:
    from lastword.tools import Manifest, StateOwner, Tool, ToolRegistry

# Bumped whenever the same text could run differently. A run of another version is refused, and never guessed.
LANGUAGE_VERSION = 3

Status = Literal["done", "failed", "cancelled", "waiting"]


class Run(msgspec.Struct, frozen=True):
    """How a run stands. `waiting` means that a call in doubt needs a person before it can go on."""

    run_id: str
    status: Status
    output: list[str]
    variables: dict[str, Any]
    error: PlacedError | None = None
    warnings: tuple[PlacedError, ...] = ()
    errors: tuple[PlacedError, ...] = ()
    """Everything the checker found, when it kept the script from starting."""
    in_doubt: str | None = None
    """The call that a waiting run needs a decision about."""


@dataclass
class DoorHost:
    """The host that a script sees: tools behind the door, journaled time, and output that is heard."""

    _door: Door
    _run_id: str
    _name: str | None
    _past: RunPast
    _live: LiveRun
    _kept: Concealed
    _calls: int = 0
    _nows: int = 0
    _origins: dict[int, str] = field(default_factory=dict)
    _denials: int = 0
    """How many calls were denied in a row, those that nobody was asked about not counted."""
    _denies_rest: bool = False
    """Whether a person has said no to whatever else this script would ask for."""
    in_doubt: str | None = None

    def lookup(self, name: str) -> Any:
        tool = self._door.setting.registry.find(name)
        if tool is None or (tool.manifest.script_editor_only and self._door.setting.editor is None):
            known = [t.name for t in self._door.setting.registry.all(with_editor=self._door.setting.editor is not None)]
            raise CallFailed("ToolNotFound", f"unknown tool {name}", hint=did_you_mean(name, known))
        return partial(self._call, tool)

    def now(self) -> int:
        self._nows += 1
        if self._nows <= len(self._past.nows):
            return self._past.nows[self._nows - 1]
        now = time.time_ns() // 1_000_000
        self._door.journal.note(self._door.setting.session_id, "run_now", self._run_id, {"now": now})
        return now

    def printed(self, line: str) -> None:
        if self._door.setting.audience.listeners:
            self._door.setting.audience.tell(Printed(self._run_id, self._kept.clean(line)))

    def _call(self, tool: Tool, arguments: dict[str, Any], site: Site) -> Any:
        if self._live.is_stopped:
            raise CallFailed("Cancelled", f"{tool.name} was not called: {Outcome.STOPPED}")
        call_id = f"{self._run_id}.{self._calls}"
        self._calls += 1
        records = self._past.calls.get(call_id)
        if records is None:
            if not self._past.is_whole:
                return self._go_on(tool, call_id, arguments, site)
            return self._begin(tool, call_id, arguments, site)
        if not (site.tries or self._denials) and (value := RunPast.value_of(records, tool, arguments)) is not UNSET:
            return value
        life = Life.of(call_id, records)
        if life.finished is None:
            _same(life, tool, arguments)
            recovered = recover(self._door, life, tool.name, arguments, self._origin(site), resumable=True)
            return self._wait(tool, recovered, site)
        if life.started is not None and difference(life, tool, arguments) is None:
            return self._tell(tool, life.outcome(), site)
        return self._replay(tool, life, arguments, site)

    def _begin(self, tool: Tool, call_id: str, arguments: dict[str, Any], site: Site) -> Any:
        if self._denies_rest or (self._past.denied and self._was_denied(tool, arguments)):
            denied = self._door.turn_down(call_id, tool.name, arguments, before=not self._denies_rest)
            if denied is not None:
                return self._judge(tool, denied, site)
        # Somebody who stops waiting for the run leaves its card waiting: the run can be resumed.
        result = self._door.carry_out(
            call_id, tool.name, arguments, self._origin(site), resumable=True, denials=self._denials
        )
        return self._judge(tool, result, site) if isinstance(result, Outcome) else self._wait(tool, result, site)

    def _was_denied(self, tool: Tool, arguments: dict[str, Any]) -> bool:
        try:
            return _key(tool, arguments) in self._past.denied
        except ArgumentsError:
            return False

    async def _go_on(self, tool: Tool, call_id: str, arguments: dict[str, Any], site: Site) -> Any:
        """The first call of which the journal knows nothing. It may have been made to forget it."""
        await self._door.journal.prove_since(self._run_id)
        self._past.is_whole = True
        value = self._begin(tool, call_id, arguments, site)
        return await value if isawaitable(value) else value

    async def _replay(self, tool: Tool, life: Life, arguments: dict[str, Any], site: Site) -> Any:
        """A call that never started, or whose arguments a person changed: what was asked for is in its whole life."""
        whole = await self._door.journal.life(life.call_id)
        _same(whole, tool, arguments)
        self._hear(tool, whole)
        return self._tell(tool, life.outcome(), site)

    async def _wait(self, tool: Tool, result: Awaitable[Outcome], site: Site) -> Any:
        outcome = await result
        if outcome.kind == "denied":
            self._hear(tool, await self._door.journal.life(outcome.call_id))
        return self._judge(tool, outcome, site)

    def _hear(self, tool: Tool, life: Life) -> None:
        """What a person's no to this call means for the rest. The journal says so, also to whoever resumes the run."""
        if life.answered is None or life.asked is None or life.outcome().kind != "denied":
            return
        if life.answered.get("reason") == Outcome.STOPPED:
            return  # It was said to everything that waited. Whoever resumes the run wants what comes next.
        self._denies_rest = self._denies_rest or bool(life.answered.get("rest"))
        with suppress(ArgumentsError):
            self._past.denied.add(_key(tool, life.asked["arguments"]))

    def _judge(self, tool: Tool, outcome: Outcome, site: Site) -> Any:
        if outcome.kind == "succeeded" and outcome.gave_value:
            # Nearly always there is nothing else to be told.
            return self._tell(tool, outcome, site) if self._denials or site.tries else outcome.value
        if self._live.is_stopped:
            raise CallFailed("Cancelled", f"{tool.name} did not come to its end: {Outcome.STOPPED}")
        if outcome.kind == "outcome_unknown" and not outcome.still_acts and outcome.approval != "not_needed":
            self.in_doubt = outcome.call_id
        return self._tell(tool, outcome, site)

    def _tell(self, tool: Tool, outcome: Outcome, site: Site) -> Any:
        """What the script is told of a call, which may have been one more that was denied."""
        if outcome.kind == "denied":
            self._denials += outcome.approval != "rule"  # That was no person.
        elif outcome.approval in ("person", "auto", "rule", "grant"):
            self._denials = 0
        return _told(tool, outcome, site)

    def _origin(self, site: Site) -> str:
        """Where in the script a call stands, in words. A line in a loop is looked up once."""
        origin = self._origins.get(site.index)
        if origin is None:
            origin = self._origins[site.index] = script_origin(site.line, self._name or "the script")
        return origin


script_origin = "line {} of {}".format
"""The origin of a call that a script makes in this line: words for people, which the journal keeps and cards read."""


def _key(tool: Tool, arguments: Any) -> tuple[str, bytes]:
    """What makes two calls the same: what would be shown and run, whether a default was written out or not."""
    return tool.name, values.canonical(values.decode(tool.validate(arguments)))


def _same(life: Life, tool: Tool, arguments: dict[str, Any]) -> None:
    """Stop a replay that asks for something else than the journal holds."""
    if (found := difference(life, tool, arguments)) is not None:
        raise CallFailed("ReplayDivergence", f"the journal has {found} here", hint=_CHANGED)


_CHANGED = "the script or a tool changed since the run began; start a new run"


def _told(tool: Tool, outcome: Outcome, site: Site) -> Any:
    """What the script is told of a call: its value, or where it tries, what became of it."""
    if not site.tries or outcome.kind in ("unknown_tool", "outcome_unknown"):
        # A script that went on in doubt might do again what was done.
        return _value(tool, outcome)
    value = outcome.value if outcome.gave_value else None
    return {"success": outcome.success, "message": outcome.message, "value": value, "kind": outcome.kind}


def _value(tool: Tool, outcome: Outcome) -> Any:
    """What a CALL gives to the script, or why it stops."""
    kind = outcome.kind
    if kind == "unknown_tool":
        raise CallFailed("ToolNotFound", outcome.message)
    if kind == "invalid_arguments":
        raise CallFailed("ToolArgument", outcome.message)
    if kind in ("raised", "outcome_unknown"):
        raise CallFailed("ToolExecution", outcome.message)
    if outcome.gave_value:
        return outcome.value
    if tool.style == "assistant" or (kind in ("succeeded", "failed") and tool.style == "function"):
        return outcome.result()
    if kind == "succeeded":
        return None  # A person took it as done, and did not say what it gave.
    raise CallFailed("Cancelled" if kind == "cancelled" else "ToolExecution", outcome.message)


def check(text: str, registry: ToolRegistry | None = None, variables: Iterable[str] = ()) -> list[PlacedError]:
    """Everything wrong with a script before it runs: errors and warnings, each with its place."""
    return script.check(text, None if registry is None else signatures(registry, Preset()), variables)


def plan(text: str, registry: ToolRegistry | None = None) -> list[Step]:
    """What a script may do, before it does anything: every CALL, how often it may run, and who will be asked."""
    return script.plan(text, None if registry is None else signatures(registry, Preset()))


def script_prompt(
    registry: ToolRegistry,
    state: StateOwner | None = None,
    guidance: str | None = None,
    *,
    today: date | None = None,
) -> str:
    """The instructions that a model needs to write scripts: the language, the tools, the state, and the day."""
    known = None if state is None else state.format_state_for_prompt()
    return prompt.script_prompt(signatures(registry, Preset()), known, guidance, today=today or date.today())


def script_grammar(registry: ToolRegistry) -> str:
    """A GBNF grammar that admits only scripts that parse and name only registered tools and parameters."""
    return script.script_grammar(signatures(registry, Preset()))


# What was told of a tool last, with the preset it was told for: every run asks for all of them.
_told_before: WeakKeyDictionary[Tool, tuple[Preset, Signature]] = WeakKeyDictionary()


def signatures(registry: ToolRegistry, preset: Preset, *, with_editor: bool = True) -> dict[str, Signature]:
    """What the language is told of the tools."""
    told = {}
    for tool in registry.all(with_editor=with_editor):
        known = _told_before.get(tool)
        if known is None or known[0] != preset:
            reports = tool.style == "assistant"
            returns, has_rule = "object" if reports else tool.manifest.returns, tool.needs_approval is not None
            known = preset, signature_of(tool.manifest, preset, returns, reports=reports, has_rule=has_rule)
            _told_before[tool] = known
        told[tool.name] = known[1]
    return told


EFFECT_WORDS = {"none": "changes nothing", "reversible": "can be undone", "irreversible": "cannot be undone"}


def signature_of(
    manifest: Manifest, preset: Preset, returns: str, *, reports: bool = False, has_rule: bool = False
) -> Signature:
    """What the language is told of one tool. What a CALL of it gives depends on how its code is written."""
    needs_person = isinstance(Policy.by_keys(manifest, preset), deciders.Person)
    return Signature(
        name=manifest.id,
        description=manifest.description,
        parameters=tuple(
            SignatureParameter(p.name, p.type, p.description, p.required, p.secret, p.schema)
            for p in manifest.parameters
        ),
        returns=returns,
        needs_person=needs_person,
        may_pass=needs_person and (has_rule or manifest.auto_approve is not False),
        additional=manifest.additional_parameters,
        effect=None if manifest.effect is None else EFFECT_WORDS[manifest.effect],
        display_name=manifest.display_name,
        reports=reports,
    )


async def start(
    door: Door,
    text: str,
    variables: Mapping[str, Any] | None,
    *,
    checked: bool,
    name: str | None,
    limits: ScriptLimits | None,
    run_id: str | None = None,
    denied: Collection[tuple[str, bytes]] = (),
) -> Run:
    """Run a script from its beginning, or go on with it when the journal has a run of the given id."""
    given = dict(variables or {})
    kept = await conceal_script(door.setting.registry, text)
    hidden = dict.fromkeys(kept.variables.intersection(given), Concealed.NOT_KEPT)
    facts, _ = values.reduce(
        {
            "text": kept.text,
            "name": name,
            "variables": given | hidden,
            "checked": checked,
            "version": LANGUAGE_VERSION,
        }
    )
    if door.setting.principal:
        facts["principal"] = door.setting.principal
    if facts["text"] != text or hidden:
        facts["hides_secrets"] = True
    known_as, run_id = run_id, run_id or values.new_id()
    with door.journal.holding("run", run_id):
        # Asked while nobody else can begin it: of two who came at once, the second finds what the first has done.
        if known_as and await door.journal.store.read(subject=run_id, kind="run_started", limit=1):
            return await _resume(door, run_id, limits)
        door.journal.note(door.setting.session_id, "run_started", run_id, facts)
        return await _run(door, run_id, RunPast(set(denied), facts), given, limits, text, kept)


async def conceal_script(registry: ToolRegistry, text: str) -> Concealed:
    """A script as it may be remembered and shown: without what flows into secret arguments of the tools."""
    secrets = {}
    for tool in registry.all():
        if tool.secrets:
            secrets[tool.name] = tool.secrets
    return await aside(text, Concealed.of, text, secrets) if secrets else Concealed(text)


async def resume(door: Door, run_id: str, limits: ScriptLimits | None = None) -> Run:
    """Run a script again from the top, with what the journal holds instead of what was done."""
    with door.journal.holding("run", run_id):
        return await _resume(door, run_id, limits)


async def _resume(door: Door, run_id: str, limits: ScriptLimits | None) -> Run:
    past, store, session_id = RunPast(set(), is_whole=False), door.journal.store, door.setting.session_id
    records = await store.read(stream=session_id, below=run_id, kind=RunPast.ENDED)
    ended = next((place for place in range(len(records), 0, -1) if records[place - 1].kind == "finished"), 0)
    # Calls come one after the other: whatever is not over was asked for after the last that is.
    after = records[ended - 1].seq if ended else 0
    going_on = await store.read(stream=session_id, below=run_id, kind=RunPast.GOING_ON, after=after)
    later = [record for record in records[ended:] if record.subject == run_id]
    await store.prove((*records[:ended], *later, *going_on))
    for record in (*records[:ended], *later, *going_on):
        past.add(record, run_id)
    facts = past.began
    if not facts:
        raise SessionError(
            f"there is no run {run_id} in this session", place=session_id, hint="lastword runs lists them"
        )
    if facts["version"] != LANGUAGE_VERSION:
        raise SessionError(
            f"the run was started by a version of the language ({facts['version']}) that this one ({LANGUAGE_VERSION}) "
            "does not replay",
            place=run_id,
            hint="finish it with the version that started it, or start a new run",
        )
    if facts.get("hides_secrets"):
        raise SessionError(
            "the secrets in this script were not kept, so it cannot go on", place=run_id, hint="start a new run"
        )
    return await _run(door, run_id, past, facts["variables"], limits, facts["text"], Concealed(facts["text"]))


async def _run(
    door: Door,
    run_id: str,
    past: RunPast,
    variables: dict[str, Any],
    limits: ScriptLimits | None,
    text: str,
    kept: Concealed,
) -> Run:
    """Carry out a text. `kept` is the same as it may be told: everything that leaves goes through it."""
    name, setting, facts = past.began["name"], door.setting, past.began
    if setting.audience.listeners:
        setting.audience.tell(RunStarted(run_id, name, facts["text"]))
    known = None
    if facts["checked"]:
        known = signatures(setting.registry, setting.preset, with_editor=setting.editor is not None)
    try:
        parsed, found = await aside(text, read, text, name, known, variables)
    except PlacedError as problem:
        return _ended(door, past, Run(run_id, "failed", [], {}, problem), kept)
    warnings: tuple[PlacedError, ...] = ()
    if found:
        errors = tuple(problem for problem in found if problem.severity == "error")
        warnings = tuple(problem for problem in found if problem.severity == "warning")
        if errors:
            return _ended(door, past, Run(run_id, "failed", [], {}, errors[0], warnings, errors), kept)
    live = setting.runs[run_id] = LiveRun(await door.journal.stops())
    host = DoorHost(door, run_id, name, past, live, kept)
    try:
        machine = await aside(text, Machine, parsed, host, variables, limits)
        result = await machine.run()
    finally:
        del setting.runs[run_id]
    status: Status = "waiting" if host.in_doubt else result.status
    run = Run(run_id, status, result.output, result.variables, result.error, warnings, in_doubt=host.in_doubt)
    if (setting.gave or past.calls) and status != "waiting":  # It may have been given before the run was resumed.
        await Grants(door.journal).end_session(setting.session_id, run_id)
    return _ended(door, past, run, kept)


def _ended(door: Door, past: RunPast, run: Run, kept: Concealed) -> Run:
    error = None if run.error is None else kept.told(run.error)
    if run.status != "waiting" and not past.ended:
        facts = {
            "status": run.status,
            "output": [kept.clean(line) for line in run.output] if kept.spelled else run.output,
            "error": error,
        }
        door.journal.note(door.setting.session_id, "run_finished", run.run_id, facts)
    if door.setting.audience.listeners:
        door.setting.audience.tell(RunFinished(run.run_id, run.status, error))
    return run
