"""What one argument of a call may be: the vocabulary of `where`, and what each word of it means.

    is, in, not_in      these very values
    min, max            a number between them, both included
    length              at most so many characters, or elements of a list
    matches             a linear regular expression over the whole text
    under               a path inside a folder, with symbolic links followed
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
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from lastword import values
from lastword.display import visible
from lastword.errors import NotJSON, did_you_mean
from lastword.lazily import load_later
from lastword.rules.command import simple_words

if TYPE_CHECKING:
    import jsonschema_rs
else:
    # A tenth of the start-up time, and nobody without rules needs it for them.
    jsonschema_rs = load_later("jsonschema_rs")

WORDS = ("is", "in", "not_in", "min", "max", "length", "matches", "under", "command", "each", "any", "absent", "from")
_COMMAND_WORDS = ("program", "args", "cwd")

# A pattern that nobody can read bounds nothing that anybody has agreed to.
MAX_PATTERN = 1_000
# So much memory may a pattern take when it is compiled: `(a{1000}){1000}` asks for more, and is refused in words.
MAX_PATTERN_BYTES = 1_000_000
# So many values stand in a list, and so many levels in an `each`.
MAX_VALUES = 10_000
MAX_LEVELS = 4
# How much of a value is repeated to whoever asks why it does not fit.
MAX_SHOWN = 60
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,60}")
# No path that anybody means has a second line.
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f]")
_IN_QUOTES = str.maketrans({"“": "‹U+201C›", "”": "‹U+201D›", "\n": "⏎"})

# Programs that run another one, which stands among their arguments.
_RUNNERS = frozenset(
    [
        "env", "sudo", "doas", "su", "command", "builtin", "exec", "eval", "nohup", "nice", "ionice", "time", "timeout",
        "setsid", "stdbuf", "xargs", "find", "parallel", "watch", "busybox", "sh", "bash", "dash", "zsh", "ksh", "fish",
        "ssh", "script", "strace", "chroot", "unshare", "systemd-run", "python", "python3", "perl", "ruby", "node",
        "awk",
    ]
)  # fmt: skip

Wrong = Callable[[str, str | None], NoReturn]
"""Says what is wrong with a bound, and what to write: it knows the file and the line."""


class CommandBound(msgspec.Struct, frozen=True):
    """One simple command, and where it runs."""

    program: str
    args: tuple[str, ...]
    """A pattern for each argument, over all of it."""
    cwd: str


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
    def is_volatile(self) -> bool:
        """Whether the same value may fit now and not a moment later: the disk decides."""
        return self.under is not None or self.command is not None or (self.each is not None and self.each.is_volatile)

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
            return f"{_shown(value)} is not {_shown(terms['is'])}"
        if "in" in terms and not any(values.equal(value, known) for known in terms["in"]):
            return f"{_shown(value)} is none of {_listed(terms['in'])}"
        if "not_in" in terms and any(values.equal(value, known) for known in terms["not_in"]):
            return f"{_shown(value)} is one of {_listed(terms['not_in'])}"
        if "min" in terms or "max" in terms:
            if type(value) not in (int, float):
                return f"{_shown(value)} is no number"
            if "max" in terms and value > terms["max"]:
                return f"{_shown(value)} is more than {_shown(terms['max'])}"
            if "min" in terms and value < terms["min"]:
                return f"{_shown(value)} is less than {_shown(terms['min'])}"
        return self._miss_of_text(value, folder)

    def _miss_of_text(self, value: Any, folder: Path) -> str | None:
        terms = self.terms
        if "length" in terms:
            if not isinstance(value, (str, list)):
                return f"{_shown(value)} is neither a text nor a list"
            if len(value) > terms["length"]:
                what = "characters" if isinstance(value, str) else "elements"
                return f"has {len(value)} {what}, more than {terms['length']}"
        if self.each is not None:
            if not isinstance(value, list):
                return f"{_shown(value)} is no list"
            for place, element in enumerate(value, 1):
                if said := self.each.miss(element, folder):
                    return f"element {place}, {said}"
        if "matches" in terms and not (isinstance(value, str) and _fits(_whole(terms["matches"]), value)):
            return f"{_shown(value)} does not match {visible(_brief(terms['matches']))}"
        if self.under is not None and not self._is_inside(value, folder):
            return f"{_shown(value)} is not under {visible(self.under)}"
        if self.command is not None and not self._is_command(value, folder):
            return f"{_shown(value)} is not {self._command_words()}"
        return None

    def _is_inside(self, value: Any, folder: Path) -> bool:
        assert self.under is not None
        if is_under(value, self.under, folder):
            return True
        return self.counts_unclear and (_is_unclear(value, folder) or is_under(value, self.under, folder, folded))

    def _is_command(self, value: Any, folder: Path) -> bool:
        assert self.command is not None
        if _runs(self.command, value, folder):
            return True
        return self.counts_unclear and isinstance(value, str) and _may_run(self.command, value, folder)

    def _command_words(self) -> str:
        assert self.command is not None
        line = " ".join((self.command.program, *self.terms["command"]["args"]))
        return f"the one simple command {_quoted(_brief(line))}, run in {_quoted(self.command.cwd)}"

    def words(self) -> str:
        """The bound for a sentence, after the argument's name."""
        terms, said = self.terms, []
        if "is" in terms:
            said.append("empty" if terms["is"] == "" else _shown(terms["is"]))
        if "in" in terms:
            said.append(_listed(terms["in"]) if len(terms["in"]) == 1 else f"one of {_listed(terms['in'])}")
        if "not_in" in terms:
            said.append(f"none of {_listed(terms['not_in'])}")
        if "min" in terms and "max" in terms:
            at_most = f"at most {_shown(terms['max'])}"
            said.append(at_most if terms["min"] == 0 else f"from {_shown(terms['min'])} to {_shown(terms['max'])}")
        elif "min" in terms or "max" in terms:
            said.append(f"at most {_shown(terms['max'])}" if "max" in terms else f"at least {_shown(terms['min'])}")
        if self.each is not None:
            said.append(f"each element {self.each.words()}")
        if "length" in terms:
            said.append(f"at most {terms['length']} long")
        if "matches" in terms:
            said.append(f"text like {_quoted(terms['matches'])}")
        if self.under is not None:
            said.append(f"inside {_quoted(self.under)}")
        if self.command is not None:
            said.append(self._command_words())
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
        if "length" in terms and self.is_exact is False:
            yield "x" * (terms["length"] + 1)
            if isinstance(like, list):
                yield [like[0] if like else "x"] * (terms["length"] + 1)


def read_bound(table: Any, wrong: Wrong, level: int = 0, *, counts_unclear: bool = False) -> Bound:
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
            wrong(f"{word} is {_shown(table[word])}, expected true", f"{word} = true, or leave it out")
    if "any" in table and not table.keys() <= {"any", "absent", "not_in"}:
        wrong("any = true says the opposite of every other bound", "leave one of them out")
    if level > MAX_LEVELS:
        wrong(f"each stands inside of each more than {MAX_LEVELS} times", None)
    under, command = _folder(table.get("under"), "under", wrong), _command(table.get("command"), wrong)
    each = read_bound(table["each"], wrong, level + 1, counts_unclear=counts_unclear) if "each" in table else None
    if each is not None and each.may_be_absent:
        wrong("an element of a list is there or is not", "leave absent out of each")
    schema = _schema(table, each, wrong) if table.keys() != {"absent"} else False
    return Bound(dict(table), schema, under, command, each, counts_unclear)


def folded(path: str) -> str:
    """A path as a disk takes it that knows neither case nor the ways to write one letter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def is_under(value: Any, folder: str, base: Path, spelled: Callable[[str], str] = str) -> bool:
    """Whether a path, followed to where it really leads, is this folder or lies inside of it."""
    if not isinstance(value, str) or not value or _UNPRINTED.search(value) or value.startswith("~"):
        return False  # A tool may take ~ for a home, and then it is another path than the one looked at here.
    if not (base.is_absolute() or value.startswith("/")):
        return False  # From nowhere certain it leads anywhere.
    try:
        there, inside = spelled(os.path.realpath(base / value)), spelled(os.path.realpath(folder))
    except (OSError, ValueError):
        return False
    return there == inside or there.startswith(inside.rstrip("/") + "/")


def _is_unclear(value: Any, base: Path) -> bool:
    """Whether a path may lead anywhere: to somebody's home, nowhere that can be looked at, or on from nobody knows."""
    if not isinstance(value, str):
        return False
    is_adrift = not base.is_absolute() and not value.startswith("/")
    return is_adrift or value.startswith("~") or "$" in value or _UNPRINTED.search(value) is not None


def validator(schema: Any) -> Any:
    """A validator whose patterns take time by the length of the text alone."""
    return jsonschema_rs.validator_for(
        schema, pattern_options=jsonschema_rs.RegexOptions(size_limit=MAX_PATTERN_BYTES), offline=True
    )


def _schema(table: Mapping[str, Any], each: Bound | None, wrong: Wrong) -> Any:
    parts: list[Any] = []
    if "is" in table:
        parts.append({"const": _json(table["is"], "is", wrong)})
    for word in ("in", "not_in"):
        if word in table:
            known = table[word]
            if not isinstance(known, list) or not known or len(known) > MAX_VALUES:
                wrong(f"{word} is a list of 1 to {MAX_VALUES:,} values", None)
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
    if "under" in table or "command" in table:
        parts.append({"type": "string"})
    if each is not None:
        parts.append({"type": "array", "items": each.schema})
    return True if not parts else parts[0] if len(parts) == 1 else {"allOf": parts}


def _between(table: Mapping[str, Any], wrong: Wrong) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "number"}
    for word, keyword in (("min", "minimum"), ("max", "maximum")):
        if word in table:
            limit = table[word]
            if type(limit) not in (int, float) or not math.isfinite(limit):
                wrong(f"{word} is {_shown(limit)}, expected a number", f"{word} = 20")
            schema[keyword] = limit
    if "min" in table and "max" in table and table["min"] > table["max"]:
        wrong(f"min {table['min']} is more than max {table['max']}", "nothing would ever fit")
    return schema


def _pattern(text: Any, word: str, wrong: Wrong) -> str:
    if not isinstance(text, str) or not text or len(text) > MAX_PATTERN:
        wrong(f"{word} takes a regular expression of 1 to {MAX_PATTERN:,} characters", None)
    whole = _whole(text)
    try:
        # By itself first: a pattern that closes a bracket of ours would be two patterns, each half open.
        for pattern in (f"(?:{text})", text, whole):
            validator({"pattern": pattern})
    except ValueError:
        wrong(
            f"{_shown(text)} is no linear regular expression",
            "without look-around and back-references; a backslash is written twice, or the text in single quotes",
        )
    return whole


def _folder(text: Any, word: str, wrong: Wrong) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or "\0" in text or not text.startswith(("/", "~/")):
        wrong(f"{word} is {_shown(text)}, expected a whole path", f'{word} = "/home/you/notes", or "~/notes"')
    return os.path.expanduser(text)


def _command(table: Any, wrong: Wrong) -> CommandBound | None:
    if table is None:
        return None
    hint = 'command = { program = "git", args = ["status"], cwd = "/home/you/project" }'
    if not isinstance(table, Mapping) or table.keys() != set(_COMMAND_WORDS):
        wrong("a command has a program, a pattern for every argument in args, and a cwd", hint)
    program, args, cwd = (table[word] for word in _COMMAND_WORDS)
    if not isinstance(program, str) or simple_words(program) != (program,):
        wrong(f"program is {_shown(program)}, expected one plain word", hint)
    if not isinstance(args, list):
        wrong("args is a list of patterns, [] for none", hint)
    patterns = tuple(_pattern(pattern, "args", wrong) for pattern in args)
    folder = _folder(cwd, "cwd", wrong)
    assert folder is not None
    return CommandBound(program, patterns, folder)


def _runs(bound: CommandBound, line: Any, folder: Path) -> bool:
    """Whether this line is that one command, to be run inside of its folder."""
    words = simple_words(line) if isinstance(line, str) else None
    return (
        words is not None and _names(bound, words) and folder.is_absolute() and is_under(str(folder), bound.cwd, folder)
    )


def _may_run(bound: CommandBound, line: str, folder: Path) -> bool:
    """Whether a line may do what is asked about or denied, as far as it can be told: by another name of the program, by
    one that runs others, as one of several commands, or from a folder that nobody knows."""
    words, name = simple_words(line), os.path.basename(bound.program)
    if words is None:
        return name in line
    if os.path.basename(words[0]) in _RUNNERS:
        return any(name in word for word in words[1:])
    if os.path.basename(words[0]) != name or (folder.is_absolute() and not is_under(str(folder), bound.cwd, folder)):
        return False
    return _names(bound, (bound.program, *words[1:]))


def _names(bound: CommandBound, words: tuple[str, ...]) -> bool:
    """Whether these are its program and its arguments."""
    if words[0] != bound.program or len(words) - 1 != len(bound.args):
        return False
    return all(_fits(pattern, word) for pattern, word in zip(bound.args, words[1:], strict=True))


def _fits(whole: str, text: str) -> bool:
    return bool(_matcher(whole).is_valid(text))


@lru_cache(maxsize=1_000)
def _matcher(whole: str) -> Any:
    return validator({"type": "string", "pattern": whole})


def _whole(pattern: str) -> str:
    """A pattern over all of a text."""
    return f"^(?:{pattern})$"


def _json(value: Any, word: str, wrong: Wrong) -> Any:
    try:
        return values.plain(value)
    except NotJSON as problem:
        wrong(f"{word} holds what no argument can be: {problem.fact}", "texts, numbers, true, false, lists and tables")


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


def _shown(value: Any) -> str:
    """A value in a sentence of ours."""
    if isinstance(value, str):
        return _quoted(_brief(value))
    if type(value) is int:
        return _brief(str(value))
    try:
        return visible(_brief(values.text(values.plain(value))))
    except NotJSON:
        return f"a {type(value).__name__}"


def _quoted(text: str) -> str:
    """A text in a sentence of ours, all of it."""
    if text.isascii() and text.isprintable():
        return f"“{text}”"
    # One that closes its quotes itself, or begins a line, could go on as if it were our words.
    return f"“{visible(text).translate(_IN_QUOTES)}”"


def shown_name(name: str) -> str:
    """The name of an argument in a sentence of ours. One that a model made up may be a sentence itself."""
    return name if _NAME.fullmatch(name) else _quoted(_brief(name))


def _brief(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _listed(known: list[Any]) -> str:
    shown = ", ".join(_shown(value) for value in known[:5])
    return f"{shown} and {len(known) - 5} more" if len(known) > 5 else shown
