"""A script without the secrets that stand in it, for whatever keeps or shows its text.

Secret is what flows into a secret argument of a CALL: the literals of that argument, and those of every LET, SET and
FOR whose variable it uses, however many steps away. The order of statements is not looked at: too much hidden harms
nobody. What a CALL gave is not in the text, so what went into that CALL is not hidden by it.

The same words elsewhere, in a comment or in what the script prints, are found by their spelling.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from lastword.script.nodes import Access, CallNode, For, Let, Literal, Name, Script, Set, children
from lastword.script.parser import parse
from lastword.script.tokens import PlacedError, cut, find_token

# Shorter texts are hidden where they flow into a secret, and not looked for elsewhere: they could be anything.
MIN_SPELLED = 4


class Concealed(msgspec.Struct, frozen=True):
    """A text without its secrets. `variables` are the initial ones that are secret too."""

    NOT_KEPT: ClassVar = "[a secret, not kept]"
    """What stands in place of a secret wherever a text is remembered or shown."""

    text: str
    variables: frozenset[str] = frozenset()
    spelled: tuple[str, ...] = ()

    @property
    def is_changed(self) -> bool:
        """Whether there was something to hide."""
        return bool(self.spelled or self.variables)

    def clean(self, text: str) -> str:
        """Something that the script said, or that was said about it, without its secrets."""
        for secret in self.spelled:
            text = text.replace(secret, self.NOT_KEPT)
        return text

    def told(self, error: PlacedError) -> str:
        """An error without the line that it quotes, when that may hold a part of a secret."""
        if not self.is_changed:
            return str(error)
        told = PlacedError(error.fact, hint=error.hint)
        told.place = error.place
        return self.clean(str(told))

    @classmethod
    def of(cls, text: str, secrets: Mapping[str, Collection[str]]) -> Concealed:
        """Hide what flows into a script's secret arguments, by tool. What does not parse is scrubbed by their names."""
        names = {name for given in secrets.values() for name in given}
        if not names:
            return cls(text)
        try:
            script = parse(text)
        except PlacedError:
            return cls.scrubbed(text, names)
        found = _Found(script, secrets)
        if not found.literals and not found.variables:
            return cls(text)
        tokens = cut(text)
        spans: list[tuple[int, int]] = []
        for literal in found.literals:
            offset, _ = find_token(text, literal.at)
            spans.append((offset, offset + len(tokens[literal.at])))
        spelled = _spellings(
            literal.value for literal in found.literals if isinstance(literal.value, str | int | float)
        )
        hidden, end = [], 0
        for start, stop in sorted(set(spans)):
            hidden += [text[end:start], json.dumps(cls.NOT_KEPT)]
            end = stop
        cleaned = cls("", spelled=spelled).clean("".join([*hidden, text[end:]]))
        return cls(cleaned, frozenset(found.variables), spelled)

    @classmethod
    def scrubbed(cls, text: str, names: Collection[str]) -> Concealed:
        """A text that only resembles a request or a script: whatever stands behind the name of a secret goes."""
        named = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        # The name, perhaps in quotes, a colon or an equals sign, and a quoted text or a run of anything but separators.
        pattern = re.compile(
            rf"""(?<![\w])(\\*["'“‘]?(?:{named})\\*["'”’]?\s*[:=]\s*)"""
            r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\\"(?:(?!\\").)*\\"|[^\s,}\])]+)"""
        )
        values: list[str] = []

        def replace(found: re.Match[str]) -> str:
            values.append(found[2].strip("\\\"'“”‘’"))
            return found[1] + json.dumps(cls.NOT_KEPT)

        text = pattern.sub(replace, text)
        spelled = _spellings(values)
        return cls(cls("", spelled=spelled).clean(text), spelled=spelled)

    def __repr__(self) -> str:
        return f"Concealed({self.text!r})"


class _Found:
    """The literals and the variables of a script that flow into a secret."""

    def __init__(self, script: Script, secrets: Mapping[str, Collection[str]]) -> None:
        self.literals: list[Literal] = []
        assigned: dict[str, list[Any]] = {}
        waiting: list[Any] = []
        for node in _everything(script.body):
            match node:
                case Let() | Set():
                    assigned.setdefault(node.name, []).append(node.value)
                case For():
                    assigned.setdefault(node.name, []).append(node.items)
                case CallNode():
                    hidden = secrets.get(node.tool, ())
                    waiting += [value for key, value in zip(node.keys, node.values, strict=True) if key in hidden]
        self.variables: set[str] = set()
        while waiting:
            node = waiting.pop()
            match node:
                case Literal(kind="string" | "number"):
                    self.literals.append(node)
                case Name() if node.name not in self.variables:
                    self.variables.add(node.name)
                    waiting += assigned.get(node.name, ())
                case CallNode():
                    pass
                case Access():
                    waiting.append(node.target)
                case _:
                    waiting += children(node)


def _everything(body: Any) -> Iterator[Any]:
    """Every node of a tree, whatever kinds of nodes there are."""
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node
        elif isinstance(node, msgspec.Struct):
            yield node
            waiting += (getattr(node, name) for name in node.__struct_fields__)


def _spellings(values: Any) -> tuple[str, ...]:
    """How the values may be written: as they are, and as JSON. The longest first, since one may hold another."""
    found: set[str] = set()
    for value in values:
        text = value if isinstance(value, str) else json.dumps(value)
        found |= {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return tuple(sorted((text for text in found if len(text) >= MIN_SPELLED), key=lambda text: (-len(text), text)))
