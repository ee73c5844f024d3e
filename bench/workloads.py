"""Nine scripts and the plain Python that means the same, for bench/script.py.

a to e run long enough that only running counts. f and g are cold: reading, checking and running a text that was never
seen. h is many runs at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Workload:
    """A script, its twin in Python, and what both are given."""

    title: str
    script: str
    twin: str
    variables: Callable[[], dict[str, Any]] = field(default=dict)
    tool: str = "none"
    """none, sync, async, or sleeping: what the tool `fetch` is."""
    repeats: int = 1
    at_once: int = 0
    """How many runs share one event loop; 0 for one after the other."""
    written_out: tuple[tuple[str, str], ...] = ()
    """What to replace in the twin for peers that have no f-strings."""

    @property
    def simple_twin(self) -> str:
        text = self.twin
        for old, new in self.written_out:
            text = text.replace(old, new)
        return text


def orders(count: int) -> list[dict[str, Any]]:
    return [
        {
            "number": n,
            "customer": f"customer {n % 83}",
            "price": n * 0.5,
            "amount": n % 9,
            "labels": ["order", f"group {n % 4}"],
            "paid": n % 3 != 1,
        }
        for n in range(count)
    ]


ARITHMETIC = Workload(
    "arithmetic, 100,000 rounds",
    """
FOR n IN numbers DO
  LET a = n * 3 + 1
  LET b = (a - n) / 4
  LET c = b * b - a
END
PRINT("end")
""",
    """
for n in numbers:
    a = n * 3 + 1
    b = (a - n) / 4
    c = b * b - a
print("end")
""",
    lambda: {"numbers": list(range(100_000))},
)

NESTED = Workload(
    "loops in loops, 300 × 300",
    """
FOR i IN rows DO
  FOR j IN columns DO
    IF (i + j) % 4 == 0 THEN
      LET cell = i * j
    ELSE
      LET cell = i - j
    END
  END
END
PRINT("end")
""",
    """
for i in rows:
    for j in columns:
        if (i + j) % 4 == 0:
            cell = i * j
        else:
            cell = i - j
print("end")
""",
    lambda: {"rows": list(range(300)), "columns": list(range(300))},
)

RECORDS = Workload(
    "10,000 records",
    """
FOR o IN orders DO
  LET row = {number: o.number, sum: o.price * o.amount, labels: [o.customer, o.labels[1]], flags: {paid: o.paid}}
  LET who = row.labels[0]
  IF row.sum > 250 AND row.flags.paid THEN
    LET large = [row.number, who, row.sum]
  END
END
PRINT("end")
""",
    """
for o in orders:
    row = {"number": o["number"], "sum": o["price"] * o["amount"],
           "labels": [o["customer"], o["labels"][1]], "flags": {"paid": o["paid"]}}
    who = row["labels"][0]
    if row["sum"] > 250 and row["flags"]["paid"]:
        large = [row["number"], who, row["sum"]]
print("end")
""",
    lambda: {"orders": orders(10_000)},
)

CALLS = Workload(
    "10,000 CALLs, answered at once",
    """
FOR n IN numbers DO
  LET r = CALL fetch { id: n, kind: "row" }
END
PRINT("end")
""",
    """
for n in numbers:
    r = fetch(id=n, kind="row")
print("end")
""",
    lambda: {"numbers": list(range(10_000))},
    tool="sync",
)

AWAITED_CALLS = Workload(
    "10,000 CALLs, awaited",
    CALLS.script,
    """
for n in numbers:
    r = await fetch(id=n, kind="row")
print("end")
""",
    CALLS.variables,
    tool="async",
)

FORMATS = Workload(
    "20,000 FORMATs",
    """
FOR n IN numbers DO
  LET line = FORMAT("row {n}: {name} weighs {w}, fresh: {fresh}", {n: n, name: name, w: n * 2.5, fresh: true})
END
PRINT("end")
""",
    """
for n in numbers:
    line = f"row {n}: {name} weighs {n * 2.5}, fresh: {True}"
print("end")
""",
    lambda: {"numbers": list(range(20_000)), "name": "apple"},
    written_out=(
        (
            'f"row {n}: {name} weighs {n * 2.5}, fresh: {True}"',
            '"row {}: {} weighs {}, fresh: {}".format(n, name, n * 2.5, True)',
        ),
    ),
)

SHORT = Workload(
    "cold, 5 lines",
    """
LET row = CALL fetch { id: 3, kind: "row" }
LET weight = 7.5
IF weight * 3 > 20 THEN
  PRINT(FORMAT("row {id} weighs {w}", {id: row.id, w: weight * 3}))
END
""",
    """
row = fetch(id=3, kind="row")
weight = 7.5
if weight * 3 > 20:
    print(f"row {row['id']} weighs {weight * 3}")
""",
    tool="sync",
    repeats=100,
    written_out=(("f\"row {row['id']} weighs {weight * 3}\"", '"row {} weighs {}".format(row["id"], weight * 3)'),),
)

_BLOCK = """
LET row@ = CALL fetch { id: @, kind: "part @" }
LET share@ = row@.id * 5 + @ / 8
LET parts@ = [{name: "left", size: @}, {name: "right", size: share@}]
FOR p IN parts@ DO
  LET line = FORMAT("{name}: {size}", {name: p.name, size: p.size})
  IF p.size > 12 AND NOT (p.name == "none") THEN
    PRINT(line)
  END
END
LET sum@ = parts@[0].size + parts@[1].size
"""
_TWIN_BLOCK = """
row@ = fetch(id=@, kind="part @")
share@ = row@["id"] * 5 + @ / 8
parts@ = [{"name": "left", "size": @}, {"name": "right", "size": share@}]
for p in parts@:
    line = f"{p['name']}: {p['size']}"
    if p["size"] > 12 and not (p["name"] == "none"):
        print(line)
sum@ = parts@[0]["size"] + parts@[1]["size"]
"""

LONG = Workload(
    "cold, 200 lines",
    "".join(_BLOCK.replace("@", str(n)) for n in range(20)),
    "".join(_TWIN_BLOCK.replace("@", str(n)) for n in range(20)),
    tool="sync",
    repeats=10,
    written_out=(("f\"{p['name']}: {p['size']}\"", '"{}: {}".format(p["name"], p["size"])'),),
)

MANY = Workload(
    "1,000 at once, 5 waits each",
    """
LET a = CALL fetch { id: @, kind: "a" }
LET b = CALL fetch { id: a.id + 1, kind: "b" }
LET c = CALL fetch { id: b.id + 1, kind: "c" }
IF c.id > 0 THEN
  LET d = CALL fetch { id: c.id + 1, kind: "d" }
END
LET e = CALL fetch { id: c.id + 2, kind: "e" }
PRINT(e.id)
""",
    """
a = await fetch(id=@, kind="a")
b = await fetch(id=a["id"] + 1, kind="b")
c = await fetch(id=b["id"] + 1, kind="c")
if c["id"] > 0:
    d = await fetch(id=c["id"] + 1, kind="d")
e = await fetch(id=c["id"] + 2, kind="e")
print(e["id"])
""",
    tool="sleeping",
    at_once=1_000,
)

WORKLOADS: dict[str, Workload] = {
    "a": ARITHMETIC,
    "b": NESTED,
    "c": RECORDS,
    "d": CALLS,
    "d2": AWAITED_CALLS,
    "e": FORMATS,
    "f": SHORT,
    "g": LONG,
    "h": MANY,
}
