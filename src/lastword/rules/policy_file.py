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

A cloned project brings a file along that nobody has looked at, and every command reads it. So it is also bounded what
reading may cost: each limit is far beyond what people write, and together they keep the time well below a second.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from lastword import values
from lastword.display import visible
from lastword.errors import ConfigError, NotJSON, did_you_mean
from lastword.rules.bounds import Bound, read_bound
from lastword.rules.rule import SAYINGS, Budget, PolicyRule, Where
from lastword.rules.value import is_large_pattern, quoted, shown, shown_name

if TYPE_CHECKING:
    from lastword.rules.policy_places import Layer

# More than anybody writes by hand, and few enough to look at for every call of their tool.
MAX_RULES = 1_000
# As much as is read as a name, in the middle of a sentence of ours.
MAX_NAME = 60
# Tables and lists inside of each other. A bound needs ten, and a parser that recurses has room for some hundreds.
MAX_LEVELS = 50
# As many as the largest number with a point has. Python takes too long to write down thousands.
MAX_DIGITS = 309
# The parts of one dotted name, `a.b.c`. The parser's time grows with their square.
MAX_PARTS = 50
# The longest name whose line is looked for by how it is written, and not just by where it stands.
MAX_FIELD = 200
# More than anybody writes by hand. Most take some hundredths of a millisecond, and are compiled a few times.
MAX_PATTERNS = 1_000
# Those that grow when they are compiled take up to 20 milliseconds each.
MAX_LARGE_PATTERNS = 20
# How often an example of a test is compared with a value of a bound: about a microsecond each.
MAX_COMPARISONS = 300_000

_NAME = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_NAME = re.compile(rf"(?<![A-Za-z0-9_-]){_NAME}(?:[ \t]*+\.[ \t]*+{_NAME}){{{MAX_PARTS}}}")
_LONG_NUMBER = re.compile(r"[0-9][0-9_]{1000}")
_BRACKET = re.compile(r"[\[{]")

_FIELDS = ("name", "tool", "decide", "limits", "where", "tests")
_LIMITS = ("calls", "sum", "per")
_TESTS = ("match", "not_match")
_TOOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|mcp:[a-z0-9-]+/(?:\*|[^\s*]+)|(?!mcp:)[a-z]+:(?:\*|[^\s*]+)")

# What a name is made of beside letters of any script, the marks that belong to them, and digits.
_NAME_SIGNS = frozenset(" -_'/")
_NAME_KINDS = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd"))


Names = tuple[str, ...]
"""Of the fields and tables that lead to a value, from the outermost on."""


def read_rules(text: str, file: Path, layer: Layer) -> list[PolicyRule]:
    """The rules of one file. A ConfigError says where it is wrong."""
    tables = _tables_in(text, file)
    lines = text.split("\n")
    for name in tables:
        if name != "rule":
            hint = "a policy file is made of [[rule]] tables"
            _refuse(file, _line_of(lines, name), f"unknown table {shown_name(name)}", hint)
    found = tables.get("rule", [])
    if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
        _refuse(file, _line_of(lines, "rule"), "rule is no list of tables", "begin every rule with [[rule]]")
    if len(found) > MAX_RULES:
        _refuse(file, 1, f"{len(found):,} rules, at most {MAX_RULES:,}", "in lists several values, to have fewer rules")
    heads = [number for number, line in enumerate(lines, 1) if re.match(r"\s*\[\[\s*rule\s*\]\]", line)]
    rules: dict[str, PolicyRule] = {}
    room = _Allowance()
    for place, table in enumerate(found):
        begins = heads[place] if len(heads) == len(found) else _line_of(lines, "rule")
        ends = heads[place + 1] - 1 if len(heads) == len(found) and place + 1 < len(heads) else len(lines)
        rule = _Reader(file, layer, lines, begins, ends).rule(table, room)
        if rule.name in rules:
            _refuse(file, begins, f"two rules are called {rule.name}", "give each a name of its own")
        rules[rule.name] = rule
    return list(rules.values())


def _tables_in(text: str, file: Path) -> dict[str, Any]:
    """What a file says in TOML. A ConfigError says where it is wrong."""
    if text.startswith("\ufeff"):
        _refuse(file, 1, "it begins with a byte order mark, which nobody sees", "save it as UTF-8 without one")
    if found := _LONG_NAME.search(text):
        line = text.count("\n", 0, found.start()) + 1
        _refuse(file, line, f"a name has more than {MAX_PARTS} parts", "as in [rule.where], or to.is")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        fact, _, where = str(problem).partition(" (at line ")
        line = int(where.partition(",")[0]) if where[:1].isdigit() else text.count("\n") + 1
        hint = 'texts stand in quotes, lists in [ ], tables in { }, each closed on its line: to = { in = ["Ada"] }'
        _refuse(file, line, f"not TOML: {fact[:1].lower()}{fact[1:]}", hint)
    except RecursionError:
        _refuse(file, _most(text, _BRACKET), *_too_deep())
    except ValueError:  # Python's own limit for the digits of a number; all else that is no TOML is told above.
        _refuse(file, _most(text, _LONG_NUMBER), *_too_long())


def _most(text: str, what: re.Pattern[str]) -> int:
    """The first line that has the most of something."""
    counts = [len(what.findall(line)) for line in text.split("\n")]
    return counts.index(max(counts)) + 1


def _too_deep() -> tuple[str, str]:
    return f"lists and tables stand inside of each other more than {MAX_LEVELS} times", "write fewer levels"


def _too_long() -> tuple[str, str]:
    return f"a number has more than {MAX_DIGITS} digits", "no argument is compared with such a one; leave it out"


class _Allowance:
    """How much of what takes time the rules of one file may still hold."""

    def __init__(self) -> None:
        self._patterns, self._large, self._comparisons = MAX_PATTERNS, MAX_LARGE_PATTERNS, MAX_COMPARISONS

    def take(self, rule: dict[str, Any]) -> tuple[Names, str, str] | None:
        """Make room for a rule. Where that cannot be: the names that lead to what is too much, a fact and a hint."""
        values = 0
        for path, value, level in _walk(rule):
            values += path[:1] == ("where",)
            if level > MAX_LEVELS:
                return path, *_too_deep()
            if type(value) is int and value.bit_length() > MAX_DIGITS * 3.33:
                return path, *_too_long()
            is_pattern = path[:1] == ("where",) and path[-1] in ("matches", "args") and isinstance(value, str)
            if is_pattern and (said := self._take_pattern(value)):
                return path, *said
        tests = rule.get("tests")
        lists = tests.values() if isinstance(tests, dict) else ()
        examples = sum(len(found) for found in lists if isinstance(found, list))
        self._comparisons -= examples * values
        if self._comparisons < 0:
            fact = f"to try the examples of this file takes more than {MAX_COMPARISONS:,} comparisons"
            return ("tests",), fact, "one example that matches and one that does not say enough, for most rules"
        return None

    def _take_pattern(self, text: str) -> tuple[str, str] | None:
        self._patterns -= 1
        if self._patterns < 0:
            return f"more than {MAX_PATTERNS:,} patterns in one file", "values that are known stand in a list, with in"
        self._large -= is_large_pattern(text)
        if self._large >= 0:
            return None
        hint = "length says how long a text may be; a class of letters that is repeated many times takes the most"
        return f"more than {MAX_LARGE_PATTERNS} patterns that are large when they are compiled", hint


def _walk(rule: dict[str, Any]) -> Iterator[tuple[Names, Any, int]]:
    """Every value of a rule with the names that lead to it, and how deep it lies. No deeper than is allowed."""
    stack: list[tuple[Names, Any, int]] = [((), rule, 0)]
    while stack:
        path, value, level = stack.pop()
        yield path, value, level
        if isinstance(value, dict):
            stack += (((*path, name), inner, level + 1) for name, inner in reversed(value.items()))
        elif isinstance(value, list):
            stack += ((path, inner, level + 1) for inner in reversed(value))


@dataclass
class _Reader:
    """Reads one rule, and knows where in its file it stands."""

    file: Path
    layer: Layer
    lines: list[str]
    begins: int
    ends: int

    def rule(self, table: dict[str, Any], room: _Allowance) -> PolicyRule:
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
        if saying == "allow" and self.layer == "project":
            self._wrong("decide", "a project's file may only ask or deny", "what is allowed stands in your own file")
        bounds = self._where(table, is_allow=saying == "allow")
        where = Where(bounds, is_whole=saying == "allow")
        rule = PolicyRule(
            name=name,
            tool=tool,
            saying=saying,
            where=where,
            layer=self.layer,
            file=self.file,
            line=self.begins,
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
            if bound.may_be_absent or not bound.is_amount:
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
        return next((Path(command.cwd) for command in commands), self.file.parent)

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
            if (line := _line_of(self.lines, name, self.begins, self.ends)) != self.begins:
                _refuse(self.file, line, fact, hint)
        _refuse(self.file, self.begins, fact, hint)


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


def _line_of(lines: list[str], field: str, begins: int = 1, ends: int | None = None) -> int:
    """The line on which a field is set, or its table begins; the first line looked at when it is not found."""
    if len(field) > MAX_FIELD:  # To compile a pattern of it would take longer than all the rest.
        return next(
            (number for number in range(begins, (ends or len(lines)) + 1) if field in lines[number - 1]), begins
        )
    name = re.escape(field)
    found = re.compile(rf"""\s*(?:\[+[^\[\]]*\b{name}\s*\]|(?:[\w."'-]+\.)?["']?{name}["']?\s*(?:=|\.))""")
    for number in range(begins, (len(lines) if ends is None else ends) + 1):
        if found.match(lines[number - 1]):
            return number
    return begins


def _refuse(file: Path, line: int, fact: str, hint: str) -> NoReturn:
    """Nothing starts while a file says this."""
    raise ConfigError(fact, place=f"{file}:{line}", hint=hint)
