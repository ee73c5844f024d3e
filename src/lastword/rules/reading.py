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
import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

from lastword import values
from lastword.errors import ConfigError, NotJSON, did_you_mean
from lastword.rules.bounds import Bound, read_bound
from lastword.rules.places import Layer
from lastword.rules.rule import SAYINGS, Budget, PolicyRule, Where, is_amount

# More than anybody writes by hand, and few enough to look at for every call of their tool.
MAX_RULES = 1_000
MAX_NAME = 80

_FIELDS = ("name", "tool", "decide", "limits", "where", "tests")
_LIMITS = ("calls", "sum", "per")
_TESTS = ("match", "not_match")
_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|mcp:[a-z0-9-]+/(?:\*|[^\s*]+)|(?!mcp:)[a-z]+:(?:\*|[^\s*]+)")


def read_rules(text: str, file: Path, layer: Layer) -> list[PolicyRule]:
    """The rules of one file. A ConfigError says where it is wrong."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        fact, _, where = str(problem).partition(" (at line ")
        line = where.partition(",")[0] if where[:1].isdigit() else str(text.count("\n") + 1)
        raise ConfigError(f"not TOML: {fact[:1].lower()}{fact[1:]}", place=f"{file}:{line}") from None
    lines = text.split("\n")
    for name in tables:
        if name != "rule":
            _wrong(file, _line_of(lines, name), f"unknown table {name}", "a policy file is made of [[rule]] tables")
    found = tables.get("rule", [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        _wrong(file, _line_of(lines, "rule"), "rule is no list of tables", "begin every rule with [[rule]]")
    if len(found) > MAX_RULES:
        _wrong(file, 1, f"{len(found):,} rules, at most {MAX_RULES:,}", None)
    heads = [number for number, line in enumerate(lines, 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    rules: list[PolicyRule] = []
    for place, table in enumerate(found):
        begins = heads[place] if len(heads) == len(found) else _line_of(lines, "rule")
        ends = heads[place + 1] - 1 if len(heads) == len(found) and place + 1 < len(heads) else len(lines)
        rule = _Reader(file, layer, lines, begins, ends).rule(table)
        if any(known.name == rule.name for known in rules):
            _wrong(file, begins, f"two rules are called {rule.name}", "give each a name of its own")
        rules.append(rule)
    return rules


class _Reader:
    """Reads one rule, and knows where in its file it stands."""

    def __init__(self, file: Path, layer: Layer, lines: list[str], begins: int, ends: int) -> None:
        self._file, self._layer, self._lines = file, layer, lines
        self._begins, self._ends = begins, ends

    def rule(self, table: dict[str, Any]) -> PolicyRule:
        self._known(table, _FIELDS, "rule")
        name, tool, saying = (self._text(table, field) for field in ("name", "tool", "decide"))
        if len(name) > MAX_NAME or not name.isprintable():
            self._wrong("name", f"a name is one line of at most {MAX_NAME} characters", None)
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
        for name, written in where.items():

            def wrong(fact: str, hint: str | None, name: str = name) -> NoReturn:
                self._wrong(name, f"{name}: {fact}", hint)

            bound = bounds[name] = read_bound(written, wrong, counts_unclear=not is_allow)
            if is_allow and not bound.is_closed:
                wrong(
                    "it is left open, and an allow names what it allows: an open text or number needs a source, "
                    "which cannot be given yet",
                    "is, in, min and max, under or command; for a list each and length",
                )
        return bounds

    def _budget(self, table: dict[str, Any], bounds: Mapping[str, Bound], saying: str) -> Budget | None:
        if "limits" not in table:
            return None
        limits = table["limits"]
        hint = 'limits = { calls = 10, sum = { amount = 100 }, per = "day" }'
        if not isinstance(limits, dict) or not limits or saying != "allow":
            self._wrong("limits", "limits are a table, and of an allow", hint)
        self._known(limits, _LIMITS, "limits")
        calls, sums, per = limits.get("calls"), limits.get("sum", {}), limits.get("per")
        if calls is not None and (type(calls) is not int or calls < 1):
            self._wrong("limits", "calls is a whole number above 0", hint)
        if per not in (None, "day"):
            self._wrong("limits", f'per is {per!r}, expected "day"', hint)
        if not isinstance(sums, dict) or (calls is None and not sums):
            self._wrong("limits", "limits say how many calls, or the sum of which argument", hint)
        for name, most in sums.items():
            if type(most) not in (int, float) or not 0 <= most < float("inf"):
                self._wrong("limits", f"the sum of {name} is a number, 0 or more", hint)
            bound = bounds.get(name)
            if bound is None or bound.may_be_absent or not is_amount(bound):
                self._wrong("limits", f"a summed argument is a number of at least 0: {name}", f"{name} = {{ min = 0 }}")
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
                self._wrong(kind, f"an allow needs a {kind}: a call that it is tried on", hint, inside="tests")
            for example in examples:
                self._try(rule, example, kind)
        for example in tests.get("match", []):
            self._try_past(rule, _plain(example) or {})

    def _try(self, rule: PolicyRule, example: dict[str, Any], kind: str) -> None:
        arguments = _plain(example)
        if arguments is None:
            self._wrong(kind, f"{example} is no call: an argument of it cannot be one", None)
        folder = self._folder(rule)
        misses, covers = rule.where.misses(arguments, folder), rule.where.covers(arguments, folder)
        if covers != (not misses):
            self._wrong(kind, "two ways of looking at this rule disagree; it is not used", "this is a bug of lastword")
        if kind == "match" and not covers:
            self._wrong(kind, f"{_example(arguments)} should match, and does not: {misses[0]}", None)
        if kind == "not_match" and covers:
            self._wrong(kind, f"{_example(arguments)} should not match, and does", "bound what makes the difference")

    def _try_past(self, rule: PolicyRule, arguments: dict[str, Any]) -> None:
        for name, bound in rule.where.bounds.items():
            for value in bound.past(arguments.get(name)):
                if bound.miss(value, self._folder(rule)) is None:
                    continue  # `in` may hold the neighbour of one of its values.
                if rule.where.covers(arguments | {name: value}, self._folder(rule)):
                    self._wrong(name, f"{name}: it matches just past its bound", "this is a bug of lastword")

    def _folder(self, rule: PolicyRule) -> Path:
        """Where the examples are meant from: a command's where it says that it runs, paths beside the file."""
        commands = (bound.command for bound in rule.where.bounds.values() if bound.command is not None)
        return next((Path(command.cwd) for command in commands), self._file.parent)

    def _text(self, table: dict[str, Any], field: str) -> str:
        value = table.get(field)
        if not isinstance(value, str) or not value:
            self._wrong(field, f"{field} is missing" if value is None else f"{field} is no text", f'{field} = "…"')
        return value

    def _known(self, table: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
        for name in table:
            if name not in known:
                hint = did_you_mean(name, known) or f"known here: {', '.join(known)}"
                self._wrong(name, f"unknown field {name} of {what}", hint, inside=what)

    def _wrong(self, field: str, fact: str, hint: str | None, inside: str = "") -> NoReturn:
        """Refuse the file at the line of a field, of the table it would stand in, or of the rule."""
        for name in (field, inside) if inside else (field,):
            if (line := _line_of(self._lines, name, self._begins, self._ends)) != self._begins:
                _wrong(self._file, line, fact, hint)
        _wrong(self._file, self._begins, fact, hint)


def _plain(example: dict[str, Any]) -> dict[str, Any] | None:
    try:
        arguments: dict[str, Any] = values.plain(example)
    except NotJSON:
        return None
    return arguments


def _example(arguments: dict[str, Any]) -> str:
    text = values.written(arguments).decode()
    return text if len(text) <= 120 else f"{text[:120]}…"


def _line_of(lines: list[str], field: str, begins: int = 1, ends: int | None = None) -> int:
    """The line on which a field is set, or its table begins; the first line looked at when it is not found."""
    name = re.escape(field)
    found = re.compile(rf"""\s*(?:\[+[^\[\]]*\b{name}\s*\]|(?:[\w."'-]+\.)?["']?{name}["']?\s*(?:=|\.))""")
    for number in range(begins, (len(lines) if ends is None else ends) + 1):
        if found.match(lines[number - 1]):
            return number
    return begins


def _wrong(file: Path, line: int, fact: str, hint: str | None) -> NoReturn:
    raise ConfigError(fact, place=f"{file}:{line}", hint=hint)
