"""What `where` means, written down a second time by somebody who had all the time in the world.

No schema, no shortcuts, one line for each word of the vocabulary. And calls that are drawn to lie near the bounds.
"""

import math
import os
import random
import re
from pathlib import Path
from typing import Any

from lastword import values
from lastword.rules.bounds import read_bound
from lastword.rules.rule import Where


def covers(where: dict[str, Any], arguments: dict[str, Any], folder: Path, *, is_whole: bool) -> bool:
    if is_whole and not arguments.keys() <= where.keys():
        return False
    return all(
        fits(bound, arguments[name], folder) if name in arguments else "absent" in bound
        for name, bound in where.items()
    )


def fits(bound: dict[str, Any], value: Any, folder: Path) -> bool:
    if set(bound) == {"absent"}:
        return False
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    checks = [
        "is" not in bound or same(value, bound["is"]),
        "in" not in bound or any(same(value, known) for known in bound["in"]),
        "not_in" not in bound or not any(same(value, known) for known in bound["not_in"]),
        "min" not in bound or (is_number and value >= bound["min"]),
        "max" not in bound or (is_number and value <= bound["max"]),
        "length" not in bound or (isinstance(value, (str, list)) and len(value) <= bound["length"]),
        "matches" not in bound or (isinstance(value, str) and re.fullmatch(bound["matches"], value) is not None),
        "each" not in bound or (isinstance(value, list) and all(fits(bound["each"], v, folder) for v in value)),
        "under" not in bound or (isinstance(value, str) and lies_under(value, bound["under"], folder)),
    ]
    return all(checks)


def same(left: Any, right: Any) -> bool:
    """JSON equality: true is not 1, 1.0 is 1, and the order of keys means nothing."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return left == right
    return type(left) is type(right) and left == right


def lies_under(value: str, under: str, folder: Path) -> bool:
    if not value or any(ord(letter) < 32 or letter == "\x7f" for letter in value):
        return False
    if value.startswith(("~", "/proc")) or "$" in value or value.strip() != value:
        return False
    if (
        value[0] == "-"
        or ":" in value.split("/")[0]
        or any(part in value.lower() for part in ("\\", "`", "{", "%2e", "%2f"))
    ):
        return False
    ways = (f"{folder}/{value}" if value[0] != "/" else value, os.path.abspath(folder / value))
    return all(Path(os.path.realpath(way)).is_relative_to(os.path.realpath(under)) for way in ways)


TEXTS = [
    "",
    "a",
    "A",
    "Ada",
    "Аda",
    "Ada ",
    "Ada\u200b",
    "\u00e9",
    "e\u0301",
    "tea",
    "a\nb",
    "\n",
    "😀",
    "1",
    "true",
    "x" * 9,
]
# Beyond 2**53 a float stands for another number than its digits say, and JSON and Python may take it for either.
LARGE = [2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 2**64 + 1, 2**70, 10**22, 10**30, 10**300]
NUMBERS = [0, -0.0, 1, 1.5, -1, 19.99, 20, 20.01, 1e300, 5e-324, 0.1, *LARGE]
NUMBERS += [-number for number in LARGE] + [float(sign * number) for number in LARGE for sign in (1, -1)]
OTHERS: list[Any] = [
    True,
    False,
    None,
    [],
    {},
    [1],
    ["Ada"],
    ["Ada", "Ada"],
    {"a": 1},
    {"a": [1, True]},
    [[]],
    ["Ada", 3],
]
PATTERNS = ["a", "[a-z]+", "A.a", "(tea|a)", "[^x]*", "a|b", "x{9}", "\\S*", "", "[0-9]*", "Ada ?"]
PATHS = [
    "in",
    "in/x",
    "in/../out",
    "in/link/x",
    "inside",
    "/",
    "~/x",
    "in/./x",
    "../p/in",
    "link",
    "in\0x",
    "in/missing/x",
    "in/$HOME",
    " in/x",
    "in/x\u00a0",
    "in/link/../x",
    "up/../x",
    "up/../in/x",
    "/proc/self/cwd",
    "-in",
    "file:///etc/passwd",
    "host:in",
    "in/a:b",
    "in\\..\\..",
    "in/{x,y}",
    "in/`id`",
    "in/%2E%2e/x",
]


def random_value(chance: random.Random) -> Any:
    pool = chance.choice((TEXTS, NUMBERS, OTHERS, PATHS))
    value: Any = chance.choice(pool)
    if chance.random() < 0.1:
        value = [value] * chance.randint(0, 4)
    elif chance.random() < 0.05:
        value = {"a": value}
    elif isinstance(value, int) and abs(value) > 2**53 and chance.random() < 0.3:
        value = chance.choice((float(value), value + 1, value - 1, int(float(value))))
    elif isinstance(value, float) and chance.random() < 0.3:
        value = math.nextafter(value, chance.choice((-math.inf, math.inf)))
    return values.plain(value)


def random_bound(chance: random.Random, folder: Path, level: int = 0) -> dict[str, Any]:
    bound: dict[str, Any] = {}
    if chance.random() < 0.3:
        bound["is"] = random_value(chance)
    if chance.random() < 0.3:
        bound["in"] = [random_value(chance) for _ in range(chance.randint(1, 4))]
    if chance.random() < 0.15:
        bound["not_in"] = [random_value(chance) for _ in range(chance.randint(1, 3))]
    if chance.random() < 0.2:
        bound["min"] = chance.choice(NUMBERS)
    if chance.random() < 0.2:
        bound["max"] = max(chance.choice(NUMBERS), bound.get("min", -math.inf))
    if chance.random() < 0.2:
        bound["length"] = chance.choice((0, 1, 3, 9))
    if chance.random() < 0.15:
        bound["matches"] = chance.choice([p for p in PATTERNS if p])
    if chance.random() < 0.15:
        bound["under"] = str(folder / chance.choice(("in", "in/", "missing", ".")))
    if level < 2 and chance.random() < 0.15:
        bound["each"] = random_bound(chance, folder, level + 1)
        bound["each"].pop("absent", None)
    if not bound:
        bound["any"] = True
    if level == 0 and chance.random() < 0.2:
        bound["absent"] = True
        if chance.random() < 0.3:
            return {"absent": True}
    return bound


def near(bound: dict[str, Any], chance: random.Random) -> Any:
    """A value that this bound was made for, or nearly."""
    known = [bound["is"]] if "is" in bound else list(bound.get("in", []))
    known += [bound[word] for word in ("min", "max") if word in bound]
    if "each" in bound and chance.random() < 0.7:
        return [near(bound["each"], chance) for _ in range(chance.randint(0, 3))]
    if not known or chance.random() < 0.3:
        return random_value(chance)
    value = chance.choice(known)
    if type(value) in (int, float) and abs(value) < 1e308 and chance.random() < 0.3:
        value = chance.choice((float(value), int(value)))  # The same number as the other kind, or nearly.
    return values.plain(value)


class Disagreement(AssertionError):
    """The compiled bounds and these here do not say the same."""


def compare(chance: random.Random, folder: Path, calls: int) -> int:
    """Try so many random calls on one random rule; how many of them matched."""

    def wrong(fact: str, hint: str | None) -> Any:
        raise AssertionError(fact)

    where = {name: random_bound(chance, folder) for name in chance.sample(("a", "b", "c"), chance.randint(1, 3))}
    is_whole, matched = chance.random() < 0.6, 0
    compiled = Where({name: read_bound(bound, wrong) for name, bound in where.items()}, is_whole=is_whole)
    for _ in range(calls):
        arguments = {name: near(bound, chance) for name, bound in where.items() if chance.random() < 0.95}
        if chance.random() < 0.05:
            arguments["extra"] = 1
        meant = covers(where, arguments, folder, is_whole=is_whole)
        said, missed = compiled.covers(arguments, folder), compiled.misses(arguments, folder)
        if meant != said or meant != (not missed):
            raise Disagreement(f"{where} {arguments}: meant {meant}, compiled {said}, told {missed}")
        matched += meant
    return matched


def folder_with_links(folder: Path) -> Path:
    """A folder in which paths lead to where they do not seem to lead."""
    (folder / "in").mkdir(parents=True)
    (folder / "out").mkdir()
    (folder / "in/link").symlink_to("../out")
    (folder / "link").symlink_to("in")
    (folder / "in/deep").mkdir()
    (folder / "up").symlink_to("in/deep")
    return folder
