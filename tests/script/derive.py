"""Random texts that a GBNF grammar admits: what a model that follows it could write.

Reads the part of GBNF that our grammars use: rules, strings, classes, groups, alternatives, `?`, `*` and `{m,n}`.
"""

import re
from random import Random
from typing import Any

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\[\^?(?:[^\]\\]|\\.)*\]|\{\d+,\d+\}|[a-z][a-zA-Z-]*|[()|?*])')
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "]": "]"}

QUOTED = ("char", "json-char")


class Grammar:
    """A grammar as a tree of choices, with the least depth at which each rule can end."""

    def __init__(self, text: str) -> None:
        self.rules: dict[str, Any] = {}
        self.left = 0
        self.loops: list[Any] = []
        for line in text.splitlines():
            if line.strip():
                name, _, body = line.partition(" ::= ")
                self.rules[name], rest = self.choice(TOKEN.findall(body))
                assert rest == []
        self.least: dict[str, int] = dict.fromkeys(self.rules, 1_000)
        for _ in self.rules:
            for name, body in self.rules.items():
                self.least[name] = min(self.least[name], 1 + self.depth(body))
        # From here on nothing changes, and thousands of texts ask for the same.
        self.known: dict[int, int] = {}

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
                if tokens[0] == "*":
                    self.loops.append(item)
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

    def depth_once(self, branch: Any) -> int:
        if id(branch) not in self.known:
            self.known[id(branch)] = self.depth([branch])
        return self.known[id(branch)]

    def endless_blanks(self) -> list[str]:
        """Where white space could go on for ever: what is repeated without a bound and may be blank, and the rules that
        come back to themselves through blanks alone. What stands between quotation marks is no white space.
        """
        blank: set[str] = set()
        while found := {
            name for name, body in self.rules.items() if name not in blank and self.can_be_blank(body, blank)
        }:
            blank |= found
        again = [str(item) for item in self.loops if self.can_be_blank(item, blank) and item not in QUOTED]
        ways = {name: self.through_blanks(body, blank) for name, body in self.rules.items()}
        for name in ways:
            reached, todo = set(), list(ways[name])
            while todo:
                if (to := todo.pop()) not in reached:
                    reached.add(to)
                    todo += ways[to]
            again += [name] * (name in reached)
        return again

    def can_be_blank(self, item: Any, blank: set[str]) -> bool:
        """Whether an item can be nothing but white space, or nothing at all."""
        if isinstance(item, list):
            return any(all(not low or self.can_be_blank(part, blank) for part, low, _ in branch) for branch in item)
        if item in self.rules:
            return item in blank
        if item[0] == '"':
            return not item[1:-1].replace("\\n", "").strip()
        return any(re.match(item, char) for char in " \t\r\n")

    def through_blanks(self, branches: Any, blank: set[str]) -> set[str]:
        """The rules that can follow where all that was read is white space."""
        reached: set[str] = set()
        for branch in branches:
            for item, low, _ in branch:
                reached |= self.through_blanks(item, blank) if isinstance(item, list) else {item} & self.rules.keys()
                if low and not self.can_be_blank(item, blank):
                    break
        return reached

    def derive(self, random: Random, size: int) -> str:
        """A text of about this many choices."""
        self.left = size
        return self.fill(random, self.rules["root"], 100)

    def fill(self, random: Random, branches: Any, depth: int) -> str:
        self.left -= 1
        if self.left < 0:
            # Enough: from here on the shortest way out.
            depth = 0
        possible = [branch for branch in branches if self.depth_once(branch) <= depth]
        branch = random.choice(possible or [min(branches, key=self.depth_once)])
        text = ""
        for item, low, high in branch:
            often = random.randint(low, high) if low != high and self.depth_of(item) < depth else low
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
            # What a class leaves open it leaves open in Python's patterns as well.
            return random.choice([char for char in "abcxyz {}:,é😀'/" if re.match(item, char)])
        chars = re.findall(r"(\\.|.)-(\\.|.)|(\\.|.)", body, re.DOTALL)
        start, end, single = random.choice(chars)
        if single:
            return ESCAPES[single[1]] if len(single) == 2 else single
        return chr(random.randint(ord(start), ord(end)))
