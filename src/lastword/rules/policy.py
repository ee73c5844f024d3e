"""All rules that hold, looked up by tool, and who decides about a call: before a card is drawn, after it, and when the
call starts.

The strictest wins: any deny, then any ask, then an allow. An allow counts only while its file and the tool behind it
are as a person accepted them; an ask and a deny count at once. Among allows one without limits wins; where all have
limits each of them may be enough, in the order of their names. The order in which they are written decides nothing.

What a file allows counts once a person has accepted it as it is (`lastword policy accept`), for the tools that they saw
then. A rule stands for the preset's key and never for the tool's. A tool with `autoApprove: "exact"` takes a standing
yes only where every argument is given exactly, and so never the preset's, which knows no arguments at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lastword import values
from lastword.consent import deciders
from lastword.display import visible
from lastword.lazily import load_later
from lastword.rules.policy_places import Layer, PolicyPlaces, text_of
from lastword.rules.rule import NO_KEY, ONLY_EXACT, Budget, PolicyRule, Saying, any_of

if TYPE_CHECKING:
    from lastword.consent import Call, Preset
    from lastword.rules import policy_file
    from lastword.tools import Manifest, Tool, ToolRegistry, Trust
else:
    # A session without rules reads no files.
    policy_file = load_later("lastword.rules.policy_file")

# How many rules are compared for the one line on a card. `lastword policy explain` compares all of them.
MAX_COMPARED = 5

Folder = Callable[[], Path]
"""Says from which folder paths and commands are meant. Asked only where a rule speaks of such."""
NOWHERE = Path("/")

CHANGED_TOOL = "the tool is not the one that was accepted for it; lastword policy accept"
NEW_FILE = "its file is not accepted as it is; lastword policy accept"
_UNLIMITED = Budget()

Decision = deciders.Nobody | deciders.Auto | deciders.Ruled | deciders.Forbidden | deciders.Person

Unaccepted = Callable[[PolicyRule, "Tool"], str | None]
"""Why an allow does not count for a tool as it is, or None: nobody has accepted the file, or the tool."""


class PolicyFile(msgspec.Struct, frozen=True):
    """A file that was read."""

    path: Path
    layer: Layer
    digest: str
    is_accepted: bool
    text: str = ""

    @property
    def state(self) -> str:
        """What its rules can do, for people. A project's file asks and denies, whoever accepts it."""
        if self.layer == "project":
            return "it can only ask and deny"
        return "accepted" if self.is_accepted else "not accepted: it can only ask and deny"


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say of one call."""

    saying: Saying | None = None
    """None when no rule speaks of it, or none that counts."""
    rule: PolicyRule | None = None
    but: str = ""
    """Why the rule, which would allow it, does not count."""
    others: tuple[PolicyRule, ...] = ()
    """Further rules that allow it, where the rule has limits: it may have nothing left."""


_SILENT = Verdict()


class Policy:
    """The rules of all layers, in no order."""

    def __init__(self, rules: Iterable[PolicyRule], unaccepted: Unaccepted, files: Sequence[PolicyFile] = ()) -> None:
        self.rules = tuple(rules)
        self.files = tuple(files)
        self._unaccepted = unaccepted
        self._by_tool: dict[tuple[str, str | None], _ToolRules | None] = {}
        self._last: tuple[Tool, bytes, Verdict] | None = None

    @classmethod
    def vouched(cls, text: str, registry: ToolRegistry, file: Path | str = "policy.toml") -> Policy:
        """A user's policy for which a program vouches, and for its own tools as they are registered now.

        For hosts that bring their rules along: a person who runs commands accepts theirs with `lastword policy accept`.
        """
        known = {tool.name: tool.digest for tool in registry.all()}

        def unaccepted(rule: PolicyRule, tool: Tool) -> str | None:
            return None if known.get(tool.name) == tool.digest else CHANGED_TOOL

        return cls(policy_file.read_rules(text, Path(file), "user"), unaccepted)

    @classmethod
    def load(cls, places: PolicyPlaces, trust: Trust | None = None) -> Policy | None:
        """All rules that hold; None when there is no file. A ConfigError says what is wrong: then nothing starts."""
        trust = places.accepted() if trust is None else trust
        files: list[PolicyFile] = []
        rules: list[PolicyRule] = []
        for layer, path in places.layers():
            text = text_of(path, places.owner if layer == "organisation" else None)
            if text is None:
                continue
            rules += policy_file.read_rules(text, path, layer)
            files.append(PolicyFile(path, layer, trust.digest_of(text), trust.covers_file(path, text), text))
        if not files:
            return None
        accepted = {file.path for file in files if file.is_accepted}
        known = trust.rules()

        def unaccepted(rule: PolicyRule, tool: Tool) -> str | None:
            if rule.file not in accepted:
                return NEW_FILE
            return None if known.get(trust.rule_name(rule.key, tool.name)) == tool.digest else CHANGED_TOOL

        return cls(rules, unaccepted, files)

    def only_stricter(self, why: str) -> Policy:
        """The same rules where none of their allows counts, for this reason: they can only ask and deny."""
        return Policy(self.rules, lambda rule, tool: why, self.files)

    def facts(self) -> dict[str, Any]:
        """Which files it was read from, as they were: for the journal."""
        return {
            "files": [
                {"path": str(file.path), "layer": file.layer, "digest": file.digest, "accepted": file.is_accepted}
                for file in self.files
            ]
        }

    def speaks_of(self, tool: Tool) -> bool:
        """Whether any rule may say something of the tool's calls, or of those that they stand for."""
        return self._rules_of(tool) is not None or tool.consists_of is not None

    def verdict(self, tool: Tool, call: Call, folder: Folder) -> Verdict:
        """What the rules say of a call, and of the calls of other tools that it stands for."""
        found = self._of_call(tool, call.arguments, folder)
        if tool.consists_of is None or found.saying == "deny":
            return found
        strictest = found
        for part, given in tool.consists_of(values.decode(call.arguments)):
            said = self._of_part(part, given, folder)
            if said.saying == "deny":
                return said
            # What allows a part says nothing of the whole: a batch does not become looser by what it is made of.
            if said.saying == "ask" and strictest.saying != "ask":
                strictest = said
        return strictest

    def _of_part(self, tool: Tool, given: dict[str, Any], folder: Folder) -> Verdict:
        rules = self._rules_of(tool)
        if rules is None:
            return _SILENT
        # As a call of that tool would have them: what was left out is there by its default.
        arguments = {name: values.decode(default) for name, default in tool.defaults.items()} | given
        return self._strictest(rules, tool, arguments, tool.folder_from(folder))

    def _of_call(self, tool: Tool, data: bytes, folder: Folder) -> Verdict:
        rules = self._rules_of(tool)
        if rules is None:
            return _SILENT
        last = self._last
        if last is not None and last[0] is tool and last[1] is data:
            return last[2]  # Asked again about the very same bytes: nothing that decides has changed.
        here = tool.folder_from(folder) if rules.is_volatile else NOWHERE
        found = self._strictest(rules, tool, values.decode(data), here)
        if not rules.is_volatile:
            self._last = tool, data, found
        return found

    def _strictest(self, rules: _ToolRules, tool: Tool, arguments: dict[str, Any], folder: Path) -> Verdict:
        for saying, group in (("deny", rules.deny), ("ask", rules.ask)):
            if (rule := next(iter(group.all(arguments, folder)), None)) is not None:
                return Verdict(saying, rule)  # type: ignore[arg-type]  # It is one of the two.
        found, limited = _SILENT, []
        for rule in rules.allow.all(arguments, folder):
            but = rule.why_unfit(tool) or self._unaccepted(rule, tool) or ""
            if but or not rule.has_key(tool):
                found = found if found.rule is not None else Verdict(None if but else "allow", rule, but)
            elif rule.budget is None:
                return Verdict("allow", rule)
            else:
                limited.append(rule)
        return Verdict("allow", limited[0], others=tuple(limited[1:])) if limited else found

    why_keyless = staticmethod(PolicyRule.why_keyless)

    @staticmethod
    def by_keys(manifest: Manifest, preset: Preset) -> deciders.Nobody | deciders.Auto | deciders.Person:
        """Whose yes a call of this tool needs where no rule speaks of it."""
        if not manifest.require_approval:
            return deciders.NOBODY
        if preset.auto_approve and manifest.auto_approve is True:
            return deciders.AUTO

        # Two keys, and at least one is missing. The card tells the person which.
        if manifest.auto_approve is True:
            return deciders.Person(("preset",))
        return deciders.Person(("tool",)) if preset.auto_approve else deciders.Person(("preset", "tool"))

    def why_unaccepted(self, rule: PolicyRule, tool: Tool) -> str | None:
        """Why an allow does not count for a tool as it is, or None."""
        return self._unaccepted(rule, tool)

    def nearest(
        self, tool: Tool, arguments: dict[str, Any], folder: Folder, most: int | None = MAX_COMPARED
    ) -> tuple[PolicyRule, list[str]] | None:
        """The allow that misses least of this call, and what misses; None when there is none for the tool."""
        rules = self._rules_of(tool)
        if rules is None:
            return None
        here = tool.folder_from(folder) if rules.is_volatile else NOWHERE
        best: tuple[PolicyRule, list[str]] | None = None
        for rule in rules.allow.rules[:most]:
            misses = rule.where.misses(arguments, here, tool.secrets)
            if (but := rule.why_unfit(tool)) is not None:
                misses.append(but)
            if best is None or len(misses) < len(best[1]):
                best = rule, misses
        return best

    def _rules_of(self, tool: Tool) -> _ToolRules | None:
        key = tool.name, tool.address
        try:
            return self._by_tool[key]
        except KeyError:
            mine = [rule for rule in self.rules if rule.speaks_of(tool)]
            # In the order of their names, so that the same is decided and said in whatever order they are written;
            # those without limits first, since none of the others is looked at then.
            mine.sort(key=lambda rule: (rule.budget is not None, rule.name, str(rule.file), rule.line))
            found = self._by_tool[key] = _ToolRules(mine) if mine else None
            return found


class PolicyReview:
    """A policy, read for its author before it decides about anything."""

    def __init__(self, policy: Policy, registry: ToolRegistry) -> None:
        self._policy = policy
        self._tools = registry.all()

    def allowed(self) -> Iterator[tuple[PolicyRule, Tool]]:
        """Each rule that allows, with each tool that it speaks of."""
        for rule in self._policy.rules:
            if rule.saying == "allow":
                yield from ((rule, tool) for tool in self._tools if rule.speaks_of(tool))

    def outdated(self) -> Iterator[str]:
        """Rules of an accepted file that allow nothing any more, since their tool has changed."""
        accepted = {file.path for file in self._policy.files if file.is_accepted}
        for rule, tool in self.allowed():
            if rule.file in accepted and (why := self._policy.why_unaccepted(rule, tool)):
                yield f"{rule}: it allows nothing of {tool.name}: {why}"

    def notes(self) -> Iterator[str]:
        """What its author may not have meant."""
        for rule in self._policy.rules:
            yield from (f"{rule}: {note}" for note in rule.notes(self._tools))


class _ToolRules:
    """The rules of one tool."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.deny, self.ask, self.allow = (
            _Group([rule for rule in rules if rule.saying == saying]) for saying in ("deny", "ask", "allow")
        )
        self.is_volatile = any(rule.where.is_volatile for rule in rules)


class _Group:
    """Rules that say the same of one tool. That none of them speaks of a call is found in one look."""

    def __init__(self, rules: Sequence[PolicyRule]) -> None:
        self.rules = tuple(rules)

    @cached_property
    def _any(self) -> Any:
        return any_of(rule.where for rule in self.rules)

    def all(self, arguments: dict[str, Any], folder: Path) -> Iterable[PolicyRule]:
        if not self.rules:
            return ()
        try:
            if not self._any.is_valid(arguments):
                return ()
        except ValueError:
            pass  # One of them is nested more deeply than a validator can compare, and each is looked at by itself.
        return (rule for rule in self.rules if rule.where.covers(arguments, folder))


def decide(tool: Tool, preset: Preset, policy: Policy | None, call: Call, folder: Folder) -> Decision:
    """Say whose yes a call needs. The strictest word wins, whoever said it."""
    if policy is None or not policy.speaks_of(tool):
        return Policy.by_keys(tool.manifest, preset)  # As for nearly every call, and all of them pay for the look.
    said = policy.verdict(tool, call, folder)
    if said.saying is None and said.rule is None:
        found = Policy.by_keys(tool.manifest, preset)
        return (
            _with_nearest(found, tool, policy, call.arguments, folder) if isinstance(found, deciders.Person) else found
        )
    assert said.rule is not None
    if said.saying == "deny":
        return deciders.Forbidden(str(said.rule))
    if said.saying == "ask":
        return deciders.Person((), f"Asked because the rule {said.rule} says so.", is_ruled=True, why=str(said.rule))
    found = Policy.by_keys(tool.manifest, preset)
    if not isinstance(found, deciders.Person):
        return found
    if why := _why_not(tool, said):
        but = f"the rule {said.rule} would allow it, but {why}"
        turned = f"; {PolicyRule.key_of(tool)}" if why in (NO_KEY, ONLY_EXACT) else ""
        return deciders.Person(found.missing, f"Asked. {but[:1].upper()}{but[1:]}.", why=f"{but}{turned}")
    return _by_rule(said.rule, tuple(_by_rule(other) for other in said.others) if said.others else ())


def _by_rule(rule: PolicyRule, others: tuple[deciders.Ruled, ...] = ()) -> deciders.Ruled:
    budget = rule.budget or _UNLIMITED
    return deciders.Ruled(str(rule), rule.key, budget.calls, budget.sums, budget.per, others)


def _why_not(tool: Tool, said: Verdict) -> str:
    """Why an allow that speaks of a call is not enough; empty when it is."""
    assert said.rule is not None
    if tool.manifest.auto_approve is False:
        return PolicyRule.why_keyless(tool.carried_out_by or "") or NO_KEY
    if tool.manifest.auto_approve == "exact" and not said.rule.where.is_exact:
        return ONLY_EXACT
    return said.but


class Explanation(msgspec.Struct, frozen=True):
    """What would be decided about a call that nobody makes, and why, in words that are marked."""

    saying: Saying
    why: str
    """The rule or the grant that decides; where a person is asked, the rule that comes nearest, and what misses."""
    sentence: str = ""
    """The same in a whole sentence, for a person."""

    def __post_init__(self) -> None:
        if not self.sentence:
            msgspec.structs.force_setattr(self, "sentence", f"{self.why[:1].upper()}{self.why[1:]}.")

    def __str__(self) -> str:
        return f"{self.saying}. {self.why}"

    @classmethod
    def of(
        cls, found: Decision, tool: Tool, preset: Preset, policy: Policy | None, call: Call, folder: Folder
    ) -> Explanation:
        """What was decided, in words."""
        match found:
            case deciders.Nobody():
                return cls("allow", "This tool asks nobody")
            case deciders.Auto():
                return cls("allow", f"The preset {visible(preset.name)} and the tool both say so")
            case deciders.Ruled():
                return cls("allow", found.rule, f"The rule {found.rule} allows it.")
            case deciders.Forbidden():
                return cls("deny", found.rule, f"The rule {found.rule} denies it.")
        if found.is_ruled:
            return cls("ask", found.why, f"The rule {found.why} wants it asked each time.")
        if found.why:
            return cls("ask", found.why)
        if policy is None:
            return cls("ask", "There are no rules")
        words = _nearest_words(policy, tool, call.arguments, folder, None)
        if words is None:
            return cls("ask", f"No rule allows calls of {visible(tool.name)}")
        return cls("ask", f"Nearest: {words}", f"The rule that comes nearest is {words}.")


def _with_nearest(found: deciders.Person, tool: Tool, policy: Policy, data: bytes, folder: Folder) -> deciders.Person:
    if tool.manifest.auto_approve is False:
        return found  # No rule could have allowed it.
    words = _nearest_words(policy, tool, data, folder, MAX_COMPARED)
    return found if words is None else deciders.Person(found.missing, f"Asked. Nearest rule: {words}.")


def _nearest_words(policy: Policy, tool: Tool, data: bytes, folder: Folder, most: int | None) -> str | None:
    """The rule that comes nearest, and what misses, in a line."""
    best = policy.nearest(tool, values.decode(data), folder, most)
    return None if best is None else f"{best[0]}: {best[0].where.miss_words(best[1])}"
