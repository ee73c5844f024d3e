"""What one argument of a call may be: the vocabulary of `where`, and what each word of it means.

    is, in, not_in      these very values
    min, max            a number between them, both included
    length              at most so many characters, or elements of a list
    matches             a linear regular expression over the whole text
    under               a path to a folder or into it, wherever links lead
    command             one simple command: a program, a pattern for every argument, the folder it runs in
    each                every element of a list
    absent = true       it may be left out; alone: it must be
    any = true          whatever it is

Whatever JSON Schema can say is compiled to it; `under` and `command` are looked at here. A bound is *closed* when it
leaves no text or number open, and *exact* when it names every value. `from`, which says where a text comes from, is
read and refused: nothing knows that yet.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from lastword import values
from lastword.display import visible
from lastword.errors import NotJSON, did_you_mean
from lastword.rules import paths
from lastword.rules.paths import CommandBound, simple_words
from lastword.rules.value import (
    MAX_AGREED,
    brief,
    fits,
    listed,
    quoted,
    shown,
    shown_name,
    validator,
    whole_numbers,
    whole_pattern,
)

WORDS = ("is", "in", "not_in", "min", "max", "length", "matches", "under", "command", "each", "any", "absent", "from")
_COMMAND_WORDS = ("program", "args", "cwd")
_MISSING = {
    "args": 'a pattern for every argument: args = ["status"]; args = [] is none, and of a deny whatever follows',
    "cwd": 'the folder that it runs in, or below: cwd = "/home/you/project"; cwd = "/" is everywhere',
}

# A pattern that nobody can read bounds nothing that anybody has agreed to.
MAX_PATTERN = 1_000
# So many values stand in a list, and so many levels in an `each`.
MAX_VALUES = 10_000
MAX_LEVELS = 4
# Whether a bound holds for texts and lists of so many is tried. That it does for longer ones takes time, and no more.
MAX_TRIED = 1_000

Wrong = Callable[[str, str], NoReturn]
"""Says what is wrong with a bound, and what to write: it knows the file and the line."""


class Bound(msgspec.Struct, frozen=True):
    """What one argument may be."""

    terms: dict[str, Any]
    """As it was written."""
    schema: Any
    """The part of it that JSON Schema can say."""
    under: str | None = None
    command: CommandBound | None = None
    each: Bound | None = None
    counts_unclear: bool = False
    """Whether a path or a command line that cannot be told counts as meant: so it does for whoever asks or denies."""
    is_fixed: bool = False
    """Whether its folder is the very one that was named, and not where a link in its place leads: so it is for grants,
    whose folder was shown as it really was. A rule's is wherever its path leads at the moment."""

    @property
    def may_be_absent(self) -> bool:
        return "absent" in self.terms

    @property
    def must_be_absent(self) -> bool:
        return self.terms.keys() == {"absent"}

    @property
    def is_exact(self) -> bool:
        """Whether it names every value that fits."""
        return self.must_be_absent or not self.terms.keys().isdisjoint(("is", "in"))

    @property
    def is_closed(self) -> bool:
        """Whether it leaves no text and no number open."""
        terms = self.terms.keys()
        if self.is_exact or {"min", "max"} <= terms or not terms.isdisjoint(("under", "command")):
            return True
        return self.each is not None and self.each.is_closed and "length" in terms

    @property
    def names_folder(self) -> bool:
        """Whether it bounds a path by the folder it is in."""
        return self.under is not None or (self.each is not None and self.each.names_folder)

    @property
    def is_amount(self) -> bool:
        """Whether it is a number that can only add to a sum."""
        terms = self.terms
        known = [terms["is"]] if "is" in terms else terms.get("in")
        if known is not None:
            return all(type(value) in (int, float) and value >= 0 for value in known)
        return "min" in terms and terms["min"] >= 0

    @property
    def is_volatile(self) -> bool:
        """Whether the same value may fit now and not a moment later: the disk decides."""
        return self.under is not None or self.command is not None or (self.each is not None and self.each.is_volatile)

    @property
    def leads_elsewhere(self) -> bool:
        """Whether a fixed folder of it is not where it says, so that nothing can lie in it."""
        named = (self.under, None if self.command is None else self.command.cwd)
        if self.is_fixed and any(folder is not None and paths.leads_elsewhere(folder) for folder in named):
            return True
        return self.each is not None and self.each.leads_elsewhere

    def holds(self, value: Any, folder: Path) -> bool:
        """Whether a value that fits the schema fits the rest, too."""
        if self.under is not None and not self._is_inside(value, folder):
            return False
        if self.command is not None and not self._is_command(value, folder):
            return False
        return self.each is None or all(self.each.holds(element, folder) for element in value)

    def miss(self, value: Any, folder: Path) -> str | None:
        """What of a value does not fit, in words that follow the argument's name; None when all of it does."""
        terms = self.terms
        if self.must_be_absent:
            return "is given, and must not be"
        if "is" in terms and not values.equal(value, terms["is"]):
            return f"{shown(value)} is not {shown(terms['is'])}"
        if "in" in terms and not _is_among(value, terms["in"]):
            return f"{shown(value)} is none of {listed(terms['in'])}"
        if "not_in" in terms and _is_among(value, terms["not_in"]):
            return f"{shown(value)} is one of {listed(terms['not_in'])}"
        if "min" in terms or "max" in terms:
            if type(value) not in (int, float):
                return f"{shown(value)} is no number"
            if "max" in terms and value > terms["max"]:
                return f"{shown(value)} is more than {shown(terms['max'])}"
            if "min" in terms and value < terms["min"]:
                return f"{shown(value)} is less than {shown(terms['min'])}"
        return self._miss_of_text(value, folder)

    def _miss_of_text(self, value: Any, folder: Path) -> str | None:
        terms = self.terms
        if "length" in terms:
            if not isinstance(value, (str, list)):
                return f"{shown(value)} is neither a text nor a list"
            if len(value) > terms["length"]:
                what = "characters" if isinstance(value, str) else "elements"
                return f"has {len(value)} {what}, more than {terms['length']}"
        if self.each is not None:
            if not isinstance(value, list):
                return f"{shown(value)} is no list"
            for place, element in enumerate(value, 1):
                if said := self.each.miss(element, folder):
                    return f"element {place}, {said}"
        if "matches" in terms and not (isinstance(value, str) and fits(whole_pattern(terms["matches"]), value)):
            return f"{shown(value)} does not match {visible(brief(terms['matches']))}"
        if self.under is not None and not self._is_inside(value, folder):
            return f"{shown(value)} is not under {visible(self.under)}{self._elsewhere_words()}"
        if self.command is not None and not self._is_command(value, folder):
            return f"{shown(value)} is not {self.command.words}{self._elsewhere_words()}"
        return None

    def _elsewhere_words(self) -> str:
        return ", which leads elsewhere by now" if self.leads_elsewhere else ""

    def _is_inside(self, value: Any, folder: Path) -> bool:
        assert self.under is not None
        if not isinstance(value, str):
            return False
        if self.counts_unclear:
            return paths.may_be_inside(value, self.under, folder)
        return paths.is_inside(value, self.under, folder, is_fixed=self.is_fixed)

    def _is_command(self, value: Any, folder: Path) -> bool:
        assert self.command is not None
        if self.command.runs(value, folder):
            return True
        # A tool that takes the words of a command one by one runs the same.
        line = shlex.join(map(str, value)) if isinstance(value, list) else value
        return self.counts_unclear and isinstance(line, str) and self.command.may_run(line, folder)

    def words(self) -> str:
        """The bound for a sentence, after the argument's name."""
        terms, said = self.terms, []
        if "is" in terms:
            said.append("empty" if terms["is"] == "" else shown(terms["is"], MAX_AGREED))
        if "in" in terms:
            known = listed(terms["in"], MAX_AGREED)
            said.append(known if len(terms["in"]) == 1 else f"one of {known}")
        if "not_in" in terms:
            said.append(f"none of {listed(terms['not_in'])}")
        if "min" in terms and "max" in terms:
            at_most = f"at most {shown(terms['max'])}"
            said.append(at_most if terms["min"] == 0 else f"from {shown(terms['min'])} to {shown(terms['max'])}")
        elif "min" in terms or "max" in terms:
            said.append(f"at most {shown(terms['max'])}" if "max" in terms else f"at least {shown(terms['min'])}")
        if self.each is not None:
            said.append(f"each element {self.each.words()}")
        if "length" in terms:
            said.append(f"at most {terms['length']} long")
        if "matches" in terms:
            said.append(f"text like {quoted(terms['matches'])}")
        if self.under is not None:
            said.append(f"{quoted(self.under)} or inside it")
        if self.command is not None:
            said.append(self.command.words)
        if "any" in terms:
            said.append("whatever it is")
        if self.may_be_absent:
            said.append("or left out" if said else "left out")
        return ", ".join(said)

    def past(self, like: Any) -> Iterator[Any]:
        """Values just past the bound, of the kind of one that fits."""
        terms = self.terms
        for known in (terms["is"],) if "is" in terms else terms.get("in", ())[:3]:
            yield from _neighbours(known)
        if "max" in terms:
            yield from _above(terms["max"], 1)
        if "min" in terms:
            yield from _above(terms["min"], -1)
        if "length" in terms and self.is_exact is False and terms["length"] <= MAX_TRIED:
            yield "x" * (terms["length"] + 1)
            if isinstance(like, list):
                yield [like[0] if like else "x"] * (terms["length"] + 1)


def read_bound(
    table: Any, wrong: Wrong, level: int = 0, *, counts_unclear: bool = False, is_fixed: bool = False
) -> Bound:
    """The bound that a table of a policy file, or of a grant, means."""
    if not isinstance(table, Mapping) or not table:
        wrong("a bound is a table of words", 'as in to = { in = ["Ada", "Bo"] }')
    for word in table:
        if word not in WORDS:
            wrong(f"unknown bound {word}", did_you_mean(word, WORDS) or f"the bounds are {', '.join(WORDS)}")
    if "from" in table:
        wrong(
            "from is not yet there: nothing knows yet where a text comes from",
            "name the values with is or in; free text is asked about",
        )
    for word in ("any", "absent"):
        if word in table and table[word] is not True:
            wrong(f"{word} is {shown(table[word])}, expected true", f"{word} = true, or leave it out")
    if "any" in table and not table.keys() <= {"any", "absent", "not_in"}:
        wrong("any = true says the opposite of every other bound", "leave one of them out")
    if level > MAX_LEVELS:
        wrong(f"each stands inside of each more than {MAX_LEVELS} times", "write fewer levels, or is and in")
    under, command = _folder(table.get("under"), "under", wrong), _command(table.get("command"), wrong, is_fixed)
    each = None
    if "each" in table:
        each = read_bound(table["each"], wrong, level + 1, counts_unclear=counts_unclear, is_fixed=is_fixed)
    if each is not None and each.may_be_absent:
        wrong("an element of a list is there or is not", "leave absent out of each")
    schema = _schema(table, each, wrong, counts_unclear) if table.keys() != {"absent"} else False
    return Bound(dict(table), schema, under, command, each, counts_unclear, is_fixed)


def command_like(line: str, folder: str) -> Iterator[dict[str, Any]]:
    """The bound of this very command in this folder, if it is a simple one with arguments."""
    words = paths.simple_words(line)
    if words is not None and len(words) > 1:
        args = [paths.literal_pattern(word) for word in words[1:]]
        yield {"command": {"program": words[0], "args": args, "cwd": folder}}


def _schema(table: Mapping[str, Any], each: Bound | None, wrong: Wrong, counts_unclear: bool) -> Any:
    parts: list[Any] = []
    if "is" in table:
        parts.append({"const": _json(table["is"], "is", wrong)})
    for word in ("in", "not_in"):
        if word in table:
            known = table[word]
            if not isinstance(known, list) or not known or len(known) > MAX_VALUES:
                wrong(f"{word} is a list of 1 to {MAX_VALUES:,} values", f'{word} = ["Ada", "Bo"]')
            options = {"enum": [_json(value, word, wrong) for value in known]}
            parts.append(options if word == "in" else {"not": options})
    if "min" in table or "max" in table:
        parts.append(_between(table, wrong))
    if "length" in table:
        most = table["length"]
        if type(most) is not int or not 0 <= most <= values.MAX_SIZE:
            wrong("length is a whole number, the most characters or elements", "length = 80")
        parts.append({"type": ["string", "array"], "maxLength": most, "maxItems": most})
    if "matches" in table:
        parts.append({"type": "string", "pattern": _pattern(table["matches"], "matches", wrong)})
    if "under" in table or ("command" in table and not counts_unclear):
        parts.append({"type": "string"})
    if each is not None:
        parts.append({"type": "array", "items": each.schema})
    return True if not parts else parts[0] if len(parts) == 1 else {"allOf": parts}


def _between(table: Mapping[str, Any], wrong: Wrong) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "number"}
    for word, keyword in (("min", "minimum"), ("max", "maximum")):
        if word in table:
            limit = table[word]
            if type(limit) is not int and not (type(limit) is float and math.isfinite(limit)):
                wrong(f"{word} is {shown(limit)}, expected a number", f"{word} = 20")
            schema[keyword] = whole_numbers(limit)
    if "min" in table and "max" in table and table["min"] > table["max"]:
        wrong(f"min {table['min']} is more than max {table['max']}", "nothing would ever fit")
    return schema


def _pattern(text: Any, word: str, wrong: Wrong) -> str:
    if not isinstance(text, str) or not text or len(text) > MAX_PATTERN:
        hint = f"{word} = {'[' if word == 'args' else ''}'[a-z]+'{']' if word == 'args' else ''}, a text in quotes"
        wrong(f"{word} takes a regular expression of 1 to {MAX_PATTERN:,} characters", hint)
    whole = whole_pattern(text)
    try:
        # By itself first: a pattern that closes a bracket of ours would be two patterns, each half open.
        for pattern in (f"(?:{text})", text, whole):
            validator({"pattern": pattern})
    except ValueError:
        wrong(
            f"{shown(text)} is no linear regular expression",
            "without look-around and back-references; a backslash is written twice, or the text in single quotes",
        )
    return whole


def _folder(text: Any, word: str, wrong: Wrong) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or "\0" in text or not text.startswith(("/", "~/")):
        wrong(f"{word} is {shown(text)}, expected a whole path", f'{word} = "/home/you/notes", or "~/notes"')
    return os.path.expanduser(text)


def _command(table: Any, wrong: Wrong, is_fixed: bool) -> CommandBound | None:
    if table is None:
        return None
    hint = 'command = { program = "git", args = ["status"], cwd = "/home/you/project" }'
    if not isinstance(table, Mapping):
        wrong("a command is a table: a program, a pattern for every argument in args, and a cwd", hint)
    for word in table:
        if word not in _COMMAND_WORDS:
            wrong(f"a command has no {shown_name(word)}", did_you_mean(word, _COMMAND_WORDS) or hint)
    for word in _COMMAND_WORDS:
        if word not in table:
            wrong(f"{word} is missing", _MISSING.get(word, hint))
    program, args, cwd = (table[word] for word in _COMMAND_WORDS)
    if not isinstance(program, str) or simple_words(program) != (program,):
        wrong(f"program is {shown(program)}, expected one plain word", hint)
    if not isinstance(args, list):
        wrong("args is a list of patterns, [] for none", hint)
    for pattern in args:
        _pattern(pattern, "args", wrong)
    folder = _folder(cwd, "cwd", wrong)
    assert folder is not None
    return CommandBound(program, tuple(args), folder, is_fixed)


def _json(value: Any, word: str, wrong: Wrong) -> Any:
    try:
        return whole_numbers(values.plain(value))
    except NotJSON as problem:
        wrong(f"{word} holds what no argument can be: {problem.fact}", "texts, numbers, true, false, lists and tables")


def _is_among(value: Any, known: list[Any]) -> bool:
    """Whether a value is one of these. Of texts and numbers there may be thousands, so they are told apart at once."""
    if type(value) is str:
        return value in known
    if type(value) in (int, float):
        return any(value == one and type(one) is not bool for one in known)
    return any(values.equal(value, one) for one in known)


def _neighbours(known: Any) -> Iterator[Any]:
    """Values that look like this one and are another."""
    if isinstance(known, bool):
        yield from (not known, int(known), str(known).lower())
    elif isinstance(known, (int, float)):
        yield from _above(known, 1)
        yield from _above(known, -1)
        yield str(known)
    elif isinstance(known, str):
        yield from (f"{known} ", f"{known}\u200b", f"x{known}", [known])
    else:
        yield from ([known], {"value": known})


def _above(limit: int | float, sign: int) -> Iterator[int | float]:
    """The next numbers past a limit: the next whole one, and the next that a computer can tell apart."""
    yield (math.floor(limit) + 1) if sign > 0 else (math.ceil(limit) - 1)
    if abs(limit) <= values.MAX_SAFE_INTEGER:
        yield math.nextafter(limit, math.inf * sign)
