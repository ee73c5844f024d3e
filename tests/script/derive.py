"""Random texts that a GBNF grammar admits: what a model that follows it could write.

Reads the part of GBNF that our grammars use: rules, strings, classes, groups, alternatives, `?`, `*` and `{m,n}`.
"""

import re
from random import Random
from typing import Any

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\[\^?(?:[^\]\\]|\\.)*\]|\{\d+,\d+\}|[a-z][a-zA-Z-]*|[()|?*])')
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "]": "]"}


class Grammar:
    """A grammar as a tree of choices, with the least depth at which each rule can end."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Any] = {}
        self.left = 0
        for line in text.splitlines():
            if line.strip():
                name, _, body = line.partition(" ::= ")
                self.rules[name], rest = self.choice(TOKEN.findall(body))
                assert rest == []
        self.least: dict[str, int] = dict.fromkeys(self.rules, 1_000)
        for _ in self.rules:
            for name, body in self.rules.items():
                self.least[name] = min(self.least[name], 1 + self.depth(body))

    def choice(self, tokens: list[str]) -> tuple[Any, list[str]]:
        branches: list[list[Any]] = [[]]
        while tokens and tokens[0] != ")":
            token, *tokens = tokens
            if token == "|":
                branches.append([])
                continue
            if token == "(":
                item, tokens = self.choice(tokens)
                assert tokens.pop(0) == ")"
            else:
                item = token
            low, high = 1, 1
            if tokens and tokens[0] in ("?", "*"):
                low, high = (0, 1) if tokens.pop(0) == "?" else (0, 3)
            elif tokens and tokens[0].startswith("{"):
                low, high = map(int, tokens.pop(0)[1:-1].split(","))
            branches[-1].append((item, low, min(high, low + 3)))
        return branches, tokens

    def depth(self, branches: Any) -> int:
        return min(max((self.depth_of(item) for item, low, _ in branch if low), default=0) for branch in branches)

    def depth_of(self, item: Any) -> int:
        if isinstance(item, list):
            return self.depth(item)
        return self.least[item] if item in self.rules else 0

    def derive(self, random: Random, size: int) -> str:
        """A text of about this many choices."""
        self.left = size
        return self.fill(random, self.rules["root"], 100)

    def fill(self, random: Random, branches: Any, depth: int) -> str:
        self.left -= 1
        if self.left < 0:
            # Enough: from here on the shortest way out.
            depth = 0
        possible = [branch for branch in branches if self.depth([branch]) <= depth]
        branch = random.choice(possible or [min(branches, key=lambda one: self.depth([one]))])
        text = ""
        for item, low, high in branch:
            often = random.randint(low, high) if self.depth_of(item) < depth else low
            for _ in range(often):
                text += self.one(random, item, depth)
        return text

    def one(self, random: Random, item: Any, depth: int) -> str:
        if isinstance(item, list):
            return self.fill(random, item, depth)
        if item in self.rules:
            return self.fill(random, self.rules[item], depth - 1)
        body = re.sub(r"\\x([0-9A-F]{2})", lambda match: chr(int(match[1], 16)), item[1:-1])
        if item[0] == '"':
            return re.sub(r"\\(.)", lambda match: ESCAPES[match[1]], body)
        if body.startswith("^"):
            return random.choice("abcxyz {}:,é😀'/")
        chars = re.findall(r"(\\.|.)-(\\.|.)|(\\.|.)", body, re.DOTALL)
        start, end, single = random.choice(chars)
        if single:
            return ESCAPES[single[1]] if len(single) == 2 else single
        return chr(random.randint(ord(start), ord(end)))
