"""Who answered a question: a person and where they sat, or what stands for one. A value, never a manner of writing.

A name is whatever somebody called themselves, so nothing is ever told from it: somebody called `preset x` is a person.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec
from msgspec import UNSET, UnsetType

from lastword.display import displayable
from lastword.errors import LastWordError

Standing = Literal["person", "preset", "waiver", "line", "rule", "grant", "client", "below", "unknown"]
"""What answered: a person; a preset with both keys; a tool's own waiver; a line of a plan; a rule; a grant; a client's
dialogue; a command below a tool, which can only stop everything. `unknown` is what a later version wrote, and nothing
goes by it."""
Where = Literal["terminal", "page", "command", "program"]

# A name is for a line of a list. Whoever has a longer one is cut.
MAX_NAME = 200


class Answerer(msgspec.Struct, frozen=True):
    """Whoever answered."""

    kind: Standing
    name: str = ""
    """Of the person, the preset, the rule. Empty for a person of whom only the place is known."""
    where: Where | None = None
    """Where a person sat; None for everything that is no person."""
    principal: str | UnsetType = UNSET
    """As whom a person answered, where people have names; a name of their own choice says nothing of that."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise LastWordError(f"a name is text, not a {type(self.name).__name__}")
        msgspec.structs.force_setattr(self, "name", displayable(self.name)[:MAX_NAME])

    @property
    def whose(self) -> str:
        """The principal; empty where nobody was named."""
        return self.principal or ""

    def __str__(self) -> str:
        """For a sentence: allowed by …"""
        if self.kind == "person":
            name = self.name or displayable(self.whose)
            return f"{name} {_AT[self.where]}" if name and self.where in _AT else name or _ALONE[self.where]
        words = _WORDS[self.kind]
        return f"{words} {self.name}" if self.name else words


_AT: dict[Where | None, str] = {"terminal": "at the terminal", "page": "on the page", "command": "at the command line"}
_ALONE: dict[Where | None, str] = {
    "terminal": "the terminal",
    "page": "the page",
    "command": "a person at the command line",
    "program": "a program",
    None: "a person",
}
_WORDS: dict[Standing, str] = {
    "preset": "the preset",
    "waiver": "the tool's own rule",
    "line": "a line of the plan",
    "rule": "the rule",
    "grant": "the grant",
    "client": "the dialogue of",
    "below": "a command that a tool started",
    "unknown": "something that this version does not know",
}


_PLACES: tuple[Where, ...] = get_args(Where)


def person(name: str = "", where: Where = "program") -> Answerer:
    """A person, or a program that answers for one."""
    return Answerer("person", name, where)


def named(by: Answerer | str) -> Answerer:
    """Whoever a program says has answered. A text is a name, whatever it says."""
    return by if isinstance(by, Answerer) else person(by)


def answerer_of(approver: Any) -> Answerer:
    """Whoever answers through this approver: its `name` and, if it says so, `where` the person sits."""
    place = getattr(approver, "where", None)
    where: Where = "program" if place is None else next((known for known in _PLACES if known == place), "program")
    name = getattr(approver, "name", None)
    if not name and where == "program":
        name = getattr(approver, "__name__", None) or type(approver).__name__
    return person(str(name or ""), where)


# How an earlier version began the name of a preset. Its records are all that is ever read this way.
_ONCE_A_PRESET = "preset "


def read_answerer(written: Any) -> Answerer:
    """An answerer as a record has it. What is not understood is nobody, so that nothing starts by it."""
    if isinstance(written, str):
        if written.startswith(_ONCE_A_PRESET):
            return Answerer("preset", written.removeprefix(_ONCE_A_PRESET))
        return person(written)
    try:
        return msgspec.convert(written, Answerer)
    except msgspec.ValidationError:
        return Answerer("unknown")
