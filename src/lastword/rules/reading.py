"""Policy files: from the text of a file to rules that have passed their own tests.

    [[rule]]
    name = "small lunches"
    tool = "pay"
    decide = "allow"
    limits = { calls = 10, sum = { amount = 100 }, per = "day" }
    [rule.where]
    to = { in = ["Ada", "Bo"] }
    amount = { min = 0.01, max = 20 }
    [rule.tests]
    match = [{ to = "Ada", amount = 20 }]
    not_match = [{ to = "Ada", amount = 20.01 }]

A mistake stops whatever wanted to read the file, with file, line, fact and hint: a rule that somebody relies on and
that is not there would be worse than none.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from lastword import values
from lastword.display import visible
from lastword.errors import NotJSON, did_you_mean
from lastword.rules.bounds import Bound, read_bound
from lastword.rules.parsing import Room, line_of, refuse, tables_in
from lastword.rules.places import Layer
from lastword.rules.rule import SAYINGS, Budget, PolicyRule, Where, is_amount
from lastword.rules.wording import quoted, shown, shown_name

# More than anybody writes by hand, and few enough to look at for every call of their tool.
MAX_RULES = 1_000
# As much as is read as a name, in the middle of a sentence of ours.
MAX_NAME = 60

_FIELDS = ("name", "tool", "decide", "limits", "where", "tests")
_LIMITS = ("calls", "sum", "per")
_TESTS = ("match", "not_match")
_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|mcp:[a-z0-9-]+/(?:\*|[^\s*]+)|(?!mcp:)[a-z]+:(?:\*|[^\s*]+)")

# What a name is made of beside letters of any script, the marks that belong to them, and digits.
_NAME_SIGNS = frozenset(" -_'/")
_NAME_KINDS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd"))


def read_rules(text: str, file: Path, layer: Layer) -> list[PolicyRule]:
    """The rules of one file. A ConfigError says where it is wrong."""
    tables = tables_in(text, file)
    lines = text.split("\n")
    for name in tables:
        if name != "rule":
            hint = "a policy file is made of [[rule]] tables"
            refuse(file, line_of(lines, name), f"unknown table {shown_name(name)}", hint)
    found = tables.get("rule", [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        refuse(file, line_of(lines, "rule"), "rule is no list of tables", "begin every rule with [[rule]]")
    if len(found) > MAX_RULES:
        refuse(file, 1, f"{len(found):,} rules, at most {MAX_RULES:,}", "in lists several values, to have fewer rules")
    heads = [number for number, line in enumerate(lines, 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    rules: dict[str, PolicyRule] = {}
    room = Room()
    for place, table in enumerate(found):
        begins = heads[place] if len(heads) == len(found) else line_of(lines, "rule")
        ends = heads[place + 1] - 1 if len(heads) == len(found) and place + 1 < len(heads) else len(lines)
        rule = _Reader(file, layer, lines, begins, ends).rule(table, room)
        if rule.name in rules:
            refuse(file, begins, f"two rules are called {rule.name}", "give each a name of its own")
        rules[rule.name] = rule
    return list(rules.values())


class _Reader:
    """Reads one rule, and knows where in its file it stands."""

    def __init__(self, file: Path, layer: Layer, lines: list[str], begins: int, ends: int) -> None:
        self._file, self._layer, self._lines = file, layer, lines
        self._begins, self._ends = begins, ends

    def rule(self, table: dict[str, Any], room: Room) -> PolicyRule:
        if too_much := room.take(table):
            names, fact, hint = too_much
            self._wrong(names[-1], fact, hint, *names[-2::-1])
        self._known(table, _FIELDS, "rule")
        name, tool, saying = (self._text(table, field) for field in ("name", "tool", "decide"))
        if wrong := _wrong_name(name):
            hint = f'letters, digits, spaces, - _ \' and /, at most {MAX_NAME} of them: name = "small lunches"'
            self._wrong("name", wrong, hint)
        if not _TOOL.fullmatch(tool):
            hint = 'tool = "pay"; all of an MCP server: "mcp:files/*"; of an agent: "claude:Bash", or "claude:*"'
            self._wrong("tool", f"{tool[:60]!r} is no tool", hint)
        if saying not in SAYINGS:
            hint = did_you_mean(saying, SAYINGS) or "allow, ask or deny"
            self._wrong("decide", f"decide is {saying[:60]!r}, expected allow, ask or deny", hint)
        if saying == "allow" and self._layer == "project":
            self._wrong("decide", "a project's file may only ask or deny", "what is allowed stands in your own file")
        bounds = self._where(table, is_allow=saying == "allow")
        where = Where(bounds, is_whole=saying == "allow")
        rule = PolicyRule(
            name=name,
            tool=tool,
            saying=saying,
            where=where,
            layer=self._layer,
            file=self._file,
            line=self._begins,
            budget=self._budget(table, bounds, saying),
        )
        self._test(rule, table.get("tests", {}))
        return rule

    def _where(self, table: dict[str, Any], *, is_allow: bool) -> dict[str, Bound]:
        where = table.get("where", {})
        if not isinstance(where, dict):
            self._wrong("where", "where is a table of arguments", "[rule.where]")
        bounds = {}
        if isinstance(limits := where.get("limits"), dict) and limits and limits.keys() <= set(_LIMITS):
            hint = "they stand below [rule.where], where they are the name of an argument: put them above"
            self._wrong("limits", "limits are no bound of an argument", hint)
        for name, written in where.items():

            def wrong(fact: str, hint: str, name: str = name) -> NoReturn:
                self._wrong(name, f"{shown_name(name)}: {fact}", hint, "where")

            bound = bounds[name] = read_bound(written, wrong, counts_unclear=not is_allow)
            if is_allow and not bound.is_closed:
                if other := {"min": "max", "max": "min"}.get(next((w for w in ("min", "max") if w in bound.terms), "")):
                    wrong(f"it has no {other}, and an allow needs both", f"{name} = {{ min = 0.01, max = 20 }}")
                wrong(
                    "it is left open, and an allow names what it allows; what is open needs a source, which cannot be "
                    "given yet",
                    "is, in, min and max, under or command; for a list each and length",
                )
        return bounds

    def _budget(self, table: dict[str, Any], bounds: Mapping[str, Bound], saying: str) -> Budget | None:
        if "limits" not in table:
            return None
        limits = table["limits"]
        hint = 'limits = { calls = 10, sum = { amount = 100 }, per = "day" }'
        if saying != "allow":
            self._wrong("limits", f"limits belong to an allow, and this rule says {saying}", "leave them out")
        if not isinstance(limits, dict) or not limits:
            self._wrong("limits", "limits are a table", hint)
        self._known(limits, _LIMITS, "limits")
        calls, sums, per = limits.get("calls"), limits.get("sum", {}), limits.get("per")
        if calls is not None and (type(calls) is not int or calls < 1):
            self._wrong("limits", f"calls is {shown(calls)}, expected a whole number above 0", hint)
        if per not in (None, "day"):
            self._wrong("limits", f'per is {shown(per)}, expected "day"', hint)
        if not isinstance(sums, dict) or (calls is None and not sums):
            self._wrong("limits", "limits say how many calls, or the sum of which argument", hint)
        for name, most in sums.items():
            if type(most) not in (int, float) or not 0 <= most < float("inf"):
                self._wrong("limits", f"the sum of {shown_name(name)} is a number, 0 or more", hint)
            bound = bounds.get(name)
            if bound is None:
                nearest = did_you_mean(name, list(bounds)) or f"{name} = {{ min = 0.01, max = 20 }}"
                self._wrong("limits", f"the sum of {shown_name(name)}: where says nothing of it", nearest)
            if bound.may_be_absent or not is_amount(bound):
                self._wrong(
                    "limits",
                    f"sum: {shown_name(name)} is not bounded to numbers of at least 0",
                    f"in where: {shown_name(name)} = {{ min = 0, max = … }}; what is no number cannot be summed",
                )
        return Budget(calls, {name: Decimal(str(most)) for name, most in sums.items()}, per)

    def _test(self, rule: PolicyRule, tests: Any) -> None:
        """Try the rule on the examples beside it, and on values just past its bounds."""
        if not isinstance(tests, dict):
            self._wrong("tests", "tests are a table", "[rule.tests]")
        self._known(tests, _TESTS, "tests")
        for kind in _TESTS:
            examples = tests.get(kind, [])
            if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
                self._wrong(kind, f"{kind} is a list of calls", f'{kind} = [{{ to = "Ada" }}]')
            if rule.saying == "allow" and not examples:
                hint = f'{kind} = [{{ to = "Ada", amount = 5 }}], with the arguments of the tool'
                self._wrong(kind, f"an allow needs a {kind}: a call that it is tried on", hint, "tests")
            for example in examples:
                self._try(rule, example, kind)
        for example in tests.get("match", [])[:1]:  # Another one differs in what is put in its place.
            self._try_past(rule, values.plain(example))

    def _try(self, rule: PolicyRule, example: dict[str, Any], kind: str) -> None:
        try:
            arguments: dict[str, Any] = values.plain(example)
        except NotJSON as problem:
            hint = "texts, numbers, true, false, lists and tables"
            self._wrong(kind, f"an example holds what no argument can be: {problem.fact}", hint)
        folder = self._folder(rule)
        misses, covers = rule.where.misses(arguments, folder), rule.where.covers(arguments, folder)
        if covers != (not misses):
            self._wrong(kind, "two ways of looking at this rule disagree; it is not used", "this is a bug of lastword")
        if kind == "match" and not covers:
            fact = f"{_example(arguments)} should match, and does not: {misses[0]}"
            self._wrong(kind, fact, _mending(rule.where, arguments))
        if kind == "not_match" and covers:
            self._wrong(
                kind,
                f"{_example(arguments)} should not match, and does",
                "tighten a bound until it does not fit, or change the example",
            )

    def _try_past(self, rule: PolicyRule, arguments: dict[str, Any]) -> None:
        for name, bound in rule.where.bounds.items():
            for value in bound.past(arguments.get(name)):
                if bound.miss(value, self._folder(rule)) is None:
                    continue  # `in` may hold the neighbour of one of its values.
                if rule.where.covers(arguments | {name: value}, self._folder(rule)):
                    self._wrong(
                        name, f"{shown_name(name)}: it matches just past its bound", "this is a bug of lastword"
                    )

    def _folder(self, rule: PolicyRule) -> Path:
        """Where the examples are meant from: a command's where it says that it runs, paths beside the file."""
        commands = (bound.command for bound in rule.where.bounds.values() if bound.command is not None)
        return next((Path(command.cwd) for command in commands), self._file.parent)

    def _text(self, table: dict[str, Any], field: str) -> str:
        value = table.get(field)
        if value is None:
            self._not_below(table, field)
        if not isinstance(value, str) or not value:
            self._wrong(field, f"{field} is missing" if value is None else f"{field} is no text", f'{field} = "…"')
        return value

    def _not_below(self, table: dict[str, Any], field: str) -> None:
        """Refuse a field of the rule that stands below the head of one of its tables, which TOML puts it into."""
        for inside in ("where", "tests", "limits"):
            if isinstance(inner := table.get(inside), dict) and field in inner:
                there = ", where it is the name of an argument" if inside == "where" else ""
                self._wrong(field, f"{field} is missing", f"it stands below [rule.{inside}]{there}: put it above")

    def _known(self, table: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        for name in table:
            if name not in known:
                hint = did_you_mean(name, known) or f"known here: {', '.join(known)}"
                self._wrong(name, f"unknown field {shown_name(name)} of {what}", hint, what)

    def _wrong(self, field: str, fact: str, hint: str, *inside: str) -> NoReturn:
        """Refuse the file at the line of a field, of a table it would stand in, or of the rule."""
        for name in (field, *inside):
            if (line := line_of(self._lines, name, self._begins, self._ends)) != self._begins:
                refuse(self._file, line, fact, hint)
        refuse(self._file, self._begins, fact, hint)


def _wrong_name(name: str) -> str | None:
    """What keeps a name from being plain words, or None.

    A card has it in a sentence of ours, without quotes. One with a full stop in it could go on as if we did.
    """
    if len(name) > MAX_NAME:
        return f"the name has {len(name):,} characters, at most {MAX_NAME}"
    for sign in name:
        if sign not in _NAME_SIGNS and unicodedata.category(sign) not in _NAME_KINDS:
            return f"a name is plain words, and this one holds {quoted(sign)}"
    if name != name.strip():
        return "a name neither begins nor ends with a space"
    if visible(name) != name or not unicodedata.is_normalized("NFC", name):
        return f"the name holds what cannot be seen, or passes for another letter: {name!a}"
    return None


def _mending(where: Where, arguments: dict[str, Any]) -> str:
    """What may be wrong with a rule that does not match its own example."""
    unspoken = [name for name in arguments if name not in where.bounds]
    for name in where.bounds:
        if name not in arguments and (nearest := did_you_mean(name, unspoken)):
            return f"{name}: {nearest}"
    if unspoken and where.is_whole:
        return f"an allow has a bound for every argument: {unspoken[0]} = {{ … }} below [rule.where]"
    return "change the bound, or the example"


def _example(arguments: dict[str, Any]) -> str:
    text = values.written(arguments).decode()
    return text if len(text) <= 120 else f"{text[:120]}…"
