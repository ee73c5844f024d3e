"""The digest of a tool: other code is another tool, whichever way it was written."""

import asyncio
import functools
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lastword
from lastword.errors import ToolLoadError
from lastword.journal import Journal
from lastword.store import SqliteStore
from lastword.testing import FixedApprover
from lastword.tools.tool import digest_of_function
from requirements import requirement
from sending import until

SCHEMA = {"description": "Pays.", "parameters": [], "returns": "any"}


def made(source: str, name: str = "pay") -> Callable[..., Any]:
    """A function as a program would define it, without a file behind it."""
    names: dict[str, Any] = {"functools": functools}
    exec(source, names)
    return names[name]  # type: ignore[no-any-return]


# What stands as a default where a limit, a place or a moment is meant.
USUAL = """\
import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, re, uuid
E = enum.Enum("E", {"a1": 1, "a2": 2})
P = collections.namedtuple("P", "a")
@dataclasses.dataclass
class D: a: object
class Money(int): pass
"""
DEFAULTS = [
    "decimal.Decimal('1')", "fractions.Fraction(1, 3)", "E.a1", "P(1)", "D(decimal.Decimal(1))", "Money(1)",
    "datetime.datetime(2020, 3, 3, 1)", "datetime.date(2020, 3, 1)", "datetime.timedelta(1)", "pathlib.Path('/1')",
    "uuid.UUID(int=1)", "range(1)", "[decimal.Decimal(1)]", "{'a': decimal.Decimal(1)}", "lambda: 1",
    "re.compile('a' * 300 + '1')", "collections.OrderedDict(a=1)",
]  # fmt: skip
WRAPPER = """\
class Wrapper:
    def __init__(self, wrapped): self.__wrapped__ = wrapped
    def __call__(self, *args): return self.__wrapped__(*args)
"""

VERSIONS = {
    "a constant": ("def pay(args, context): return 1", "def pay(args, context): return 2"),
    "a whole number that equals a boolean": ("def pay(args, context): return 1", "def pay(args, context): return True"),
    "a name": ("def pay(args, context): return open", "def pay(args, context): return print"),
    "an operator": ("def pay(args, context): return args + 1", "def pay(args, context): return args - 1"),
    "a default": ("def pay(args, context, n=1): return n", "def pay(args, context, n=2): return n"),
    "a keyword default": ("def pay(args, context, *, n=1): return n", "def pay(args, context, *, n=2): return n"),
    "an inner function": (
        "def pay(args, context):\n def inner(): return 1\n return inner()",
        "def pay(args, context):\n def inner(): return 2\n return inner()",
    ),
    "a comprehension": (
        "def pay(args, context): return [x for x in args]",
        "def pay(args, context): return [x for x in args if x]",
    ),
    "a set of constants": (
        "def pay(args, context): return args in {'a', 'b'}",
        "def pay(args, context): return args in {'a', 'c'}",
    ),
    "an exception that is caught": (
        "def pay(args, context):\n try: return 1\n finally: pass",
        "def pay(args, context): return 1",
    ),
    "what is wrapped": (
        "def wrapped(args, context): return 1\n@functools.wraps(wrapped)\ndef pay(*a): return wrapped(*a)",
        "def wrapped(args, context): return 2\n@functools.wraps(wrapped)\ndef pay(*a): return wrapped(*a)",
    ),
    "a part that is given": (
        "def full(n, args, context): return n\npay = functools.partial(full, 1)",
        "def full(n, args, context): return n\npay = functools.partial(full, 2)",
    ),
    "an object that is called": (
        "class Pay:\n def __call__(self, args, context): return 1\npay = Pay()",
        "class Pay:\n def __call__(self, args, context): return 2\npay = Pay()",
    ),
    "a method": (
        "class Pay:\n def m(self, args, context): return 1\npay = Pay().m",
        "class Pay:\n def m(self, args, context): return 2\npay = Pay().m",
    ),
    "what a cache wraps": (
        "@functools.lru_cache\ndef pay(args, context): return 1",
        "@functools.lru_cache\ndef pay(args, context): return 2",
    ),
    "what an object wraps": (
        f"{WRAPPER}@Wrapper\ndef pay(args, context): return 1",
        f"{WRAPPER}@Wrapper\ndef pay(args, context): return 2",
    ),
    "a function that is given": (
        "def one(): return 1\ndef full(f, args, context): return f()\npay = functools.partial(full, one)",
        "def one(): return 2\ndef full(f, args, context): return f()\npay = functools.partial(full, one)",
    ),
    **{
        f"a default: {value}": (
            f"{USUAL}def pay(args, context, limit={value}): return limit",
            f"{USUAL}def pay(args, context, limit={value.replace('1', '2')}): return limit",
        )
        for value in DEFAULTS
    },
}


@requirement("TOOL-5")
@pytest.mark.parametrize("what", VERSIONS)
def test_other_code_is_another_digest(what: str):
    """A yes that was given to the first must not start the second."""
    first, second = VERSIONS[what]
    assert digest_of_function(made(first)) != digest_of_function(made(second))


@requirement("TOOL-5")
@pytest.mark.parametrize("what", VERSIONS)
def test_the_same_code_is_the_same_digest_wherever_it_stands(what: str):
    """Moved down the file, or loaded again: nobody is asked again for that."""
    source = VERSIONS[what][0]
    assert digest_of_function(made(source)) == digest_of_function(made("# moved\n\n\n" + source))


@requirement("TOOL-5")
def test_the_digest_of_a_function_is_the_same_in_another_process():
    """Sets of constants are ordered by chance in each process, and approvals outlive one."""
    program = (
        "from lastword.tools.tool import digest_of_function as d\n"
        "def pay(a): return a in {'x', 'y', 'z', 'q'}\nprint(d(pay))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


@requirement("TOOL-5", "TOOL-45")
@pytest.mark.parametrize("way", ["register", "decorator", "folder"])
async def test_a_yes_given_to_one_version_does_not_start_another_after_a_restart(way: str, tmp_path: Path):
    """The card was answered, the program died, and its author changed the code. What was agreed to is gone."""
    ran: list[int] = []

    def registry(version: int) -> lastword.ToolRegistry:
        found = lastword.ToolRegistry()
        if way == "folder":
            folder = tmp_path / "pay"
            folder.mkdir(exist_ok=True)
            (folder / "assistant_tool.json").write_text(
                '{"displayName": "Pay", "id": "pay", "description": "Pays.", "parameters": [], "requireApproval": true}'
            )
            (folder / "assistant_tool.py").write_text(
                "from lastword import AssistantTool\n"
                "def pay(): return {'success': True, 'message': 'paid'}\n"
                "AssistantTool.register_execute_tool_with_approval(pay)\n"
            )
            (folder / "rates.py").write_text(f"RATE = {version}\n")  # what the tool would import
            found.load(folder)
            return found
        names: dict[str, Any] = {"ran": ran}
        arguments = "args, context" if way == "register" else ""
        exec(f"def pay({arguments}) -> int:\n    'Pay.'\n    ran.append({version})\n    return {version}", names)
        if way == "register":
            found.register("pay", SCHEMA, names["pay"], require_approval=True)
        else:
            found.tool(names["pay"])
        return found

    deaf = lastword.Limits(watch_after_seconds=3600)
    journal = Journal(SqliteStore(tmp_path / "store.db"))
    left = lastword.Session(registry(1), "s", approver=lastword.wait_for_answer, journal=journal, limits=deaf)
    task = asyncio.create_task(left.call("pay", call_id="c"))
    await until(left.pending)
    for file in filter(Path.is_file, tmp_path.glob("store.db*")):  # What the disk has of a program that dies now.
        shutil.copy(file, tmp_path / f"left-{file.name}")
    allowed = left.pending()[0].allow()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    journal = Journal(SqliteStore(tmp_path / "left-store.db"))
    [facts] = await journal.waiting()
    assert await journal.answer(facts, allowed, "ada")
    again = FixedApprover(lambda request: request.deny())
    async with lastword.Session(registry(2), "s", approver=again, journal=journal) as session:
        outcome = await session.call("pay", call_id="c")
    assert outcome.kind == "denied", outcome
    assert ran == []
    assert [request.tool for request in again.requests] == ["pay"]
    await journal.close()


@requirement("TOOL-5")
def test_two_functions_never_count_as_the_same_tool():
    """What they reach through closures and globals is not in the digest, so equal code proves nothing."""
    registry = lastword.ToolRegistry()

    def make(rate: int) -> Callable[..., Any]:
        return lambda args, context: rate

    registry.register("pay", SCHEMA, make(1))
    with pytest.raises(ToolLoadError, match="there is another tool called pay"):
        registry.register("pay", SCHEMA, make(2))
