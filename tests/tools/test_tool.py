"""A tool: how arguments reach it, and what its digest binds a yes to."""

import asyncio
import functools
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lastword
from lastword import Session, ToolRegistry
from lastword.errors import ArgumentsError, ManifestError, ToolLoadError
from lastword.journal import Journal
from lastword.store import SqliteStore
from lastword.testing import FixedApprover
from lastword.tools.manifest import parse_manifest
from lastword.tools.tool import MAX_PROBLEMS, Tool, digest_of_function
from lastword.values import canonical, decode, written
from requirements import requirement
from sending import CALL, MANIFEST, until
from tries import tries

GOLDEN = Path(__file__).parent.parent / "golden" / "arguments"


def tool_with(parameters, execute=lambda params: None, **fields) -> Tool:
    return Tool(parse_manifest(canonical(MANIFEST | {"parameters": parameters} | fields)), "assistant", execute)


@requirement("TOOL-31")
@pytest.mark.parametrize("case", sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "tool.parameters"))
def test_wrong_arguments_are_told_all_at_once_in_words_to_repair_from(case, golden):
    """Missing, unknown and wrong ones together; a secret is told to nobody, also when it is wrong."""
    tool = tool_with(json.loads((GOLDEN / "tool.parameters.json").read_text()))
    with pytest.raises(ArgumentsError) as refusal:
        tool.validate(json.loads((GOLDEN / f"{case}.json").read_text()))
    golden(GOLDEN / f"{case}.txt", str(refusal.value) + "\n")


@requirement("TOOL-31")
async def test_wrong_arguments_stop_at_the_door(registry: ToolRegistry, send, effects):
    """Before any card; the words are the outcome's message."""
    approver = FixedApprover()
    outcome = await Session(registry, approver=approver).call("send", {"amount": "5"})
    assert outcome.kind == "invalid_arguments"
    assert outcome.message == (
        "the arguments do not fit send:\n"
        "the argument to (string) is missing: Who gets it\n"
        'the argument amount must be a number, found the string "5"\n'
        "hint: nothing was done; correct the arguments and ask again"
    )
    assert approver.requests == []
    assert effects == []


@requirement("TOOL-31")
async def test_a_flood_of_wrong_arguments_is_answered_shortly_and_soon(registry: ToolRegistry, send):
    """A model's mistake must cost neither a megabyte of words nor seconds of everybody's loop."""
    began = time.process_time()
    outcome = await Session(registry).call("send", {f"key{i}": i for i in range(200_000)})
    assert outcome.kind == "invalid_arguments"
    assert outcome.message.count("unknown argument") < MAX_PROBLEMS
    assert "there is more" in outcome.message
    assert len((await Session(registry).call("x" * 1_000_000)).message) < 110_000
    assert time.process_time() - began < 5


@requirement("TOOL-31")
@tries()
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers() | st.floats() | st.text()))
def test_every_reader_gets_a_fresh_decoding_of_the_same_bytes(arguments):
    """Nobody can change what another sees."""

    def execute(params):
        pass

    tool = tool_with([], execute, additionalParameters=True)
    try:
        data = tool.validate(arguments)
    except ArgumentsError:
        return
    given = {"user_action": None, "editor": None, "context": None}
    first = tool.bind(data, given)[1]["params"]
    first["forged"] = first.clear()
    second = tool.bind(data, given)[1]["params"]
    assert written(second) == data
    assert second is not first


@requirement("TOOL-31")
async def test_numbers_are_the_same_number_to_every_reader(registry: ToolRegistry, assistant, effects):
    """5.0 is 5 on the card, in the request function and in the execution, and a large integer keeps its digits."""
    seen = []

    def request(params):
        seen.append(params["amount"])
        return {"message": "?"}

    assistant(request)
    approver = FixedApprover()
    session = Session(registry, approver=approver)
    await session.call("send", {"to": "Ann", "amount": 5.0})
    await session.call("send", {"to": "Ann", "amount": 2**70})
    values = [request.arguments["amount"] for request in approver.requests]
    assert seen == values == [params["amount"] for params in effects] == [5, 2**70]
    assert [type(value) for value in values] == [int, int]


@requirement("TOOL-15")
async def test_a_function_declares_what_it_needs_and_gets_it_by_name(registry: ToolRegistry, assistant):
    """In any order; `params` is a plain dict."""
    got: dict[str, Any] = {}

    def execute(context, params, user_action):
        got.update(params=params, call_id=context.call_id, primary=user_action.primary_confirmed)
        return {"success": True, "message": ""}

    assistant(None, execute)
    outcome = await Session(registry, approver=FixedApprover()).call("send", CALL)
    assert got == {"params": CALL, "call_id": outcome.call_id, "primary": True}
    assert type(got["params"]) is dict


@requirement("TOOL-15", "TOOL-11")
def test_a_function_that_wants_what_nobody_passes_is_refused_when_it_is_loaded():
    """A typing mistake in a name would otherwise be found at the first call, after somebody agreed."""
    with pytest.raises(ToolLoadError) as refusal:
        tool_with([], lambda parms: None)
    assert "declares the argument parms, which nobody will pass" in str(refusal.value)
    assert "did you mean params?" in str(refusal.value)
    with pytest.raises(ToolLoadError, match="declares the argument who"):
        Tool(parse_manifest(canonical(MANIFEST)), "assistant", lambda params: None, request=lambda who: None)


@pytest.mark.parametrize("flag", ["require_approval", "auto_approve", "script_editor_only"])
@pytest.mark.parametrize("value", [None, 0, "false"])
def test_a_flag_that_is_neither_true_nor_false_is_refused(registry: ToolRegistry, flag, value):
    """None is false to Python, and a tool must not lose its approval by a variable that was never set."""
    with pytest.raises(ManifestError, match="expected True or False"):
        registry.tool(**{flag: value})(lambda: None)


def test_two_shapes_of_one_name_in_one_tool_are_refused():
    """Their definitions are shared, and one would silently stand for both."""
    one, other = ({"$ref": "#/$defs/P", "$defs": {"P": {"type": kind}}} for kind in ("object", "array"))
    with pytest.raises(ManifestError, match="two different shapes are both called P"):
        tool_with([{"name": "a", "type": "any", "schema": one}, {"name": "b", "type": "any", "schema": other}])


@requirement("TOOL-2")
def test_a_default_is_fresh_each_time():
    """A list as a default would otherwise be shared by all calls."""
    schema = {"type": "array", "default": []}
    tool = tool_with([{"name": "a", "type": "array", "required": False, "schema": schema}])
    first = decode(tool.validate({}))
    first["a"].append(1)
    assert decode(tool.validate({})) == {"a": []}
    assert decode(tool.validate({"a": [2]})) == {"a": [2]}


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
