"""The shape of the code: imports point one way, one line runs a tool, the server cannot."""

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Awaitable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import pytest

import lastword
from lastword.consent import ALLOWED, DENIED
from lastword.errors import StoreError
from lastword.store import Entry, MemoryStore
from lastword.testing import FixedApprover
from requirements import requirement

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE = SOURCE / "lastword"

# A room is a folder of the package, or a module of its root. It imports rooms of earlier lines, never of a later one;
# inside a line there are no imports either, but for the foundations, which stand on each other.
LAYERS = [
    ["errors", "lazily", "display", "log", "values"],
    ["wire", "script", "store"],
    ["server", "tools"],
    ["config", "editor"],
    ["consent"],
    ["journal", "card"],
    ["rules"],
    ["call"],
    ["runs"],
    ["session"],
    ["author", "talk", "adapters"],
    ["mcp"],
    ["hook"],
    ["terminal", "web", "testing"],
    ["demo", "cli", "pytest_plugin"],
    ["commands", "__main__"],
]
# The package itself loads its public names on first use, and the command line its commands: for start-up time.
LAZY = ("lastword", "lastword.cli", "lastword.commands")
# Functions that import the module whose name they are given.
LOADERS = ("load_later", "import_module", "__import__")
# What the server must never be able to reach: everything that could run a tool.
OUT_OF_REACH = ("tools", "call", "runs", "session", "author", "talk", "adapters", "mcp", "hook")
MAX_ROOT_MODULES = 14
MAX_MODULE_LINES = 450
MAX_FUNCTION_LINES = 80
MAX_DOOR_NAMES = 20
DOOR_SLACK = 5
THIN_MODULE_LINES = 60
MAX_EDGES_PER_MODULE = 3.95
"""How many modules of ours a module imports when it runs, on average: what a reader has to open besides it."""
# Doors that hand out more than others, and why. A number only goes down.
WIDE_DOORS: dict[str, tuple[int, str]] = {}
# Modules and functions that are longer, at most so long. A number only goes down.
LONG_MODULES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}
# Short modules that one other imports, and why they stand alone.
THIN_MODULES = {"lastword.journal.sessions": "only the door of its room imports it, for others"}
# A room may hand out a vocabulary as a module: the many struct types of a wire format, the sentences for a model.
VOCABULARIES = {
    "lastword.call.events",
    "lastword.card.responses",
    "lastword.card.views",
    "lastword.consent.deciders",
    "lastword.consent.outcome",
    "lastword.script.prompt",
    "lastword.tools.content",
    "lastword.tools.questions",
}
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "base", "constants", "misc"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its name, parsed."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(), str(path))
    return found


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """By module, every node of its tree: most tests here look at all of them."""
    return {module: list(ast.walk(tree)) for module, tree in modules().items()}


@cache
def lengths() -> dict[str, int]:
    return {
        str(path.relative_to(PACKAGE)): len(path.read_text().splitlines()) for path in sorted(PACKAGE.rglob("*.py"))
    }


def imports(module: ast.AST) -> Iterator[str]:
    """The modules of ours that a piece of code imports, also those that it names to have them loaded later."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "lastword")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lastword":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in LOADERS:
            yield from (name.value for name in node.args if isinstance(name, ast.Constant) and name.value in modules())


@cache
def targets(module: str) -> tuple[str, ...]:
    """What a module imports."""
    return tuple(imports(modules()[module]))


@cache
def edges() -> dict[str, set[str]]:
    """By module, the others that it imports when it runs. One that is only named, to be loaded later, is none."""
    return {
        module: {target for statement in _at_run_time(tree) for target in imports(statement)} - {module}
        for module, tree in modules().items()
    }


def _at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """The imports of a piece of code but for those that only type checkers read."""
    if isinstance(tree, (ast.Import, ast.ImportFrom)):
        yield tree
    inside: Iterable[ast.AST] = ast.iter_child_nodes(tree)
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.unparse(tree.test):
        inside = tree.orelse
    for node in inside:
        yield from _at_run_time(node)


def is_door(module: str) -> bool:
    return (SOURCE / module.replace(".", "/") / "__init__.py").is_file()


def handed_out(door: str) -> set[str]:
    """The names that a door has for others: what it loads late, and what it makes itself."""
    tree = modules()[door]
    late = [node for branch in tree.body if isinstance(branch, ast.If) and branch.orelse for node in branch.body]
    aliases = [alias for node in late if isinstance(node, ast.ImportFrom) for alias in node.names]
    made = [node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
    return {alias.name for alias in aliases} | {name for name in made if not name.startswith("_")}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def test_every_room_has_its_place():
    """A new module is put into LAYERS on purpose, where it belongs."""
    placed = [name for layer in LAYERS for name in layer]
    assert sorted(set(placed)) == sorted(placed)
    unplaced = {room(module) for module in modules()} - {"", *placed}
    assert unplaced == set(), "put them into LAYERS, above what they import"


def test_imports_point_one_way():
    """A room knows only rooms below it."""
    depth = {name: place for place, layer in enumerate(LAYERS) for name in layer}
    upwards = [
        f"{module} imports {target}"
        for module in modules()
        for target in targets(module)
        if room(module) in depth and room(target) in depth and room(target) != room(module)
        if depth[room(target)] >= depth[room(module)] and not depth[room(module)] == depth[room(target)] == 0
    ]
    assert upwards == []


def doors_on_the_way(module: str, target: str) -> list[str]:
    """The rooms that somebody enters who imports a module, the outermost first. A folder inside of a room is one."""
    parts = target.split(".")
    names = [".".join(parts[:depth]) for depth in range(2, len(parts) + 1)]
    return [
        name for name in names if (SOURCE / name.replace(".", "/")).is_dir() and not f"{module}.".startswith(f"{name}.")
    ]


def test_a_room_is_entered_by_its_door():
    """Who is not in a room imports from its `__init__`, never from a module behind it. A folder inside of a room is a
    room with a door of its own, for the rest of the outer one as well."""
    past = [
        f"{module} imports {target}"
        for module in modules()
        for target in targets(module)
        if (doors := doors_on_the_way(module, target)) and doors[-1] != target
        if module != "lastword" and target not in VOCABULARIES
    ]
    assert past == []


def test_an_import_names_its_module_in_full():
    """A relative one would be overlooked by the tests here, and by whoever searches for users of a module."""
    relative = [
        f"{module}: {ast.unparse(node)}"
        for module, found in nodes().items()
        for node in found
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []


def test_no_module_imports_itself_by_a_detour():
    """Also inside a room."""
    graph = {
        module: {target for target in targets(module) if target != module and module.count(".") and target.count(".")}
        for module in modules()
    }
    packages = {module for module in graph if (PACKAGE.parent / module.replace(".", "/") / "__init__.py").is_file()}
    for package in packages:  # what a package gathers for its users is not what its modules know
        graph[package] = {target for target in graph[package] if not target.startswith(package + ".")}
    TopologicalSorter(graph).prepare()


def test_no_import_hides_in_a_function():
    """A cycle that is dodged is a cycle. Loading names and commands on first use is the exception."""
    hidden = [
        f"{module}: {ast.unparse(node)}"
        for module, found in nodes().items()
        if not module.startswith(LAZY[1:]) and module != LAZY[0]
        for function in found
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert hidden == []


@requirement("TOOL-30")
def test_few_can_see_an_implementation():
    """Whoever looks for a way around consent looks here: nobody else reads the attribute, under whatever name they
    would call it then. A tool knows its own, authors and their tests bring theirs. A store executes SQL, not tools."""
    readers = {
        module.removeprefix("lastword.")
        for module, found in nodes().items()
        if room(module) != "store"
        for node in found
        if (isinstance(node, ast.Attribute) and node.attr == "execute" and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Constant) and node.value == "execute")
    }
    owners = {"tools.tool", "tools.folder", "tools.registry", "author.assistant_tool", "testing"}
    assert readers == {"call.execution"} | owners


class _Witness:
    """Implementations that note which line of which file called them."""

    def __init__(self, way: str) -> None:
        self.callers: list[tuple[str, int]] = []
        self.registry = lastword.ToolRegistry()

        async def takes_its_time(user_action: lastword.UserAction) -> str:
            """Comes to its end later, on the loop."""
            return "done"

        @functools.wraps(takes_its_time)  # An async tool for all who look; its caller is on the stack only when called.
        def on_the_loop(**given: Any) -> Awaitable[str]:
            self._note()
            return takes_its_time(**given)

        def at_once(user_action: lastword.UserAction) -> str:
            """Also hears of a no."""
            self._note()
            return "done"

        function, inline = on_the_loop if way == "on the loop" else at_once, way == "inline"
        self.registry.tool(id="free", require_approval=False, inline=inline)(function)
        self.registry.tool(id="asking", inline=inline)(function)

    def _note(self) -> None:
        caller = sys._getframe(2)
        self.callers.append((caller.f_code.co_filename, caller.f_lineno))


class _LosesEnds(MemoryStore):
    """A store that fails when the end of a call is written: the call is in doubt then."""

    is_failing = False

    async def commit(self, *entries: Entry) -> bool:
        if self.is_failing and "finished" in [entry.kind for entry in entries]:
            raise StoreError("the disk is gone")
        return await super().commit(*entries)


@requirement("TOOL-30")
@pytest.mark.parametrize("way", ["inline", "in a thread", "on the loop"])
async def test_exactly_one_line_runs_an_implementation(way: str):
    """Seen from inside the implementation, by every way that leads to it: an alias would be another line."""
    witness, store = _Witness(way), _LosesEnds()
    approver = FixedApprover([ALLOWED, ALLOWED, ALLOWED, DENIED, ALLOWED])
    async with lastword.Session(witness.registry, approver=approver, journal=lastword.Journal(store)) as session:
        assert (await session.call("free")).success
        assert (await session.call("asking")).success
        assert (await session.call("asking", call_id="named")).success
        assert (await session.run_script("CALL free {}\nCALL asking {}")).status == "done"
        assert (await session.call("asking")).kind == "denied"
        store.is_failing = True
        assert (await session.call("asking", call_id="in doubt")).kind == "outcome_unknown"
        store.is_failing = False
        assert (await session.resolve("in doubt", "again")).success
    assert len(witness.callers) == 8
    [(file, line)] = set(witness.callers)
    assert Path(file).name == "execution.py"
    assert "The one line that runs an implementation" in Path(file).read_text().split("\n")[line - 1]


@requirement("TOOL-30")
def test_only_the_door_starts_an_execution():
    """And only a session, a run of a script for it, and the recovery of what one left behind come to the door."""
    users: dict[str, set[str]] = {}
    for module, found in nodes().items():
        for node in found:
            if isinstance(node, ast.ImportFrom) and node.module:
                # Looked at where it is imported, since whoever calls it afterwards may call it by another name.
                for alias in node.names:
                    users.setdefault(f"{node.module}.{alias.name}", set()).add(module.removeprefix("lastword."))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    users.setdefault(alias.name, set()).add(module.removeprefix("lastword."))
            elif isinstance(node, ast.Attribute):
                users.setdefault(f".{node.attr}", set()).add(module.removeprefix("lastword."))
    assert users["lastword.call.execution.Execution"] == {"call.draw"}  # For a tool that words a no, under the guard.
    assert users["lastword.call.execution.Attempt"] == users["lastword.call.draw.decline"] == {"call.door"}
    whole = [f"lastword.call.{part}" for part in ("execution", "draw", "door")]
    assert [name for name in whole if name in users] == [], "import what is needed of it, so that this test sees it"
    assert users[".carry_out"] == {"call.recovery", "runs", "session"}
    assert users[".start_again"] == {"call.door", "call.recovery"}  # The door tells its journal of it.
    assert users["._run_started"] == {"call.door"}


@requirement("API-1")
def test_the_server_cannot_reach_what_runs_tools():
    """Not through any import, however long the way: look at what is there once all of it is loaded."""
    if not (PACKAGE / "server").is_dir():
        pytest.fail("the server is gone; take this test away with it")
    program = (
        "import importlib, pkgutil, sys, lastword.server\n"
        "for found in pkgutil.walk_packages(lastword.server.__path__, 'lastword.server.'):\n"
        "    importlib.import_module(found.name)\n"
        "print('\\n'.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    reached = {room(name) for name in loaded.stdout.split() if name.startswith("lastword.")}
    assert reached & set(OUT_OF_REACH) == set()


def test_importing_the_package_loads_nothing_but_what_loads_the_rest():
    """`import lastword` is cheap; what a program does not use it does not pay for."""
    program = "import sys, lastword; print('\\n'.join(name for name in sys.modules if name.startswith('lastword')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert sorted(loaded.stdout.split()) == ["lastword", "lastword.errors", "lastword.lazily"]


def test_a_session_loads_neither_the_language_nor_what_only_some_need():
    """One import in the wrong module and every program pays for all of it when it starts."""
    program = "import sys\nfrom lastword import Session, ToolRegistry\nprint('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert {room(name) for name in loaded if name.startswith("lastword.")} & {
        "script",
        "server",
        "terminal",
        "web",
    } == set()
    assert loaded & {"apsw", "ruff", "tomllib", "starlette", "click", "lastword.editor.lint"} == set()


def test_the_house_is_small():
    """A stranger reads the root at a glance, and a module in one sitting."""
    root = [path.stem for path in PACKAGE.glob("*.py")]
    assert len(root) <= MAX_ROOT_MODULES, root
    long = {name: lines for name, lines in lengths().items() if lines > LONG_MODULES.get(name, MAX_MODULE_LINES)}
    assert long == {}, "look for the second noun"


def test_a_function_is_read_without_turning_the_page():
    """What is longer has a second verb in it."""
    lines = {
        f"{module}.{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for module, found in nodes().items()
        for node in found
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }
    long = {name: length for name, length in lines.items() if length > LONG_FUNCTIONS.get(name, MAX_FUNCTION_LINES)}
    assert long == {}


def test_a_door_is_narrow():
    """Whoever uses a room learns the names of its door. A number that is no longer needed is lowered."""
    names = {module: len(handed_out(module)) for module in modules() if is_door(module) and module != "lastword"}
    allowed = {door: most for door, (most, _) in WIDE_DOORS.items()}
    wide = {door: count for door, count in names.items() if count > allowed.get(door, MAX_DOOR_NAMES)}
    assert wide == {}, "who uses them? A name with one user belongs where it is used"
    unneeded = {door: names.get(door, 0) for door, most in allowed.items() if names.get(door, 0) < most - DOOR_SLACK}
    assert unneeded == {}, "lower their numbers in WIDE_DOORS"


def test_a_module_hides_something_worth_hiding():
    """A short one that a single other module imports is a step somebody must take, and a part of that other."""
    importers: dict[str, set[str]] = {}
    lines = lengths()
    for module in modules():
        for target in {*targets(module)} - {module}:
            importers.setdefault(target, set()).add(module)
    thin = {
        module
        for module in modules()
        if len(importers.get(module, ())) == 1 and not is_door(module)
        if lines[f"{module.removeprefix('lastword.').replace('.', '/')}.py"] < THIN_MODULE_LINES
    }
    assert thin - set(THIN_MODULES) == set(), f"put them into {[importers[module] for module in thin]}"


def test_a_reader_opens_few_modules():
    """Every import at run time is one that somebody may have to open to understand a module."""
    found = edges()
    assert sum(map(len, found.values())) / len(found) <= MAX_EDGES_PER_MODULE


def test_one_name_is_one_thing():
    """A class that two rooms call by the same name makes its reader look twice."""
    places: dict[str, set[str]] = {}
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, set()).add(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_room_hides_a_public_name():
    """Importing a room binds its name in the package: `lastword.plan` must stay the function."""
    rooms = {room(module) for module in modules()} - {""}
    assert rooms & set(lastword.__all__) == set()


def test_the_page_and_the_terminal_do_not_know_each_other():
    """Both show the same things, which live below them."""
    crossing = [
        f"{module} imports {target}"
        for module in modules()
        for target in targets(module)
        if {room(module), room(target)} == {"web", "terminal"}
    ]
    assert crossing == []


def test_the_picture_of_the_rooms_is_the_code():
    """ARCHITECTURE.md names the same rooms in the same order as the layers that are proven here."""
    page = (SOURCE.parent / "ARCHITECTURE.md").read_text()
    table = page[page.index("| layer | rooms |") :].split("\n\n")[0].split("\n")[2:]
    drawn = [re.findall(r"`(\w+)`", row.split("|")[2]) for row in table]
    assert drawn == LAYERS


def test_the_map_names_every_module_of_its_rooms():
    """A map on which a house is missing sends whoever trusts it into another street."""
    page = (SOURCE.parent / "ARCHITECTURE.md").read_text()
    rows = page[page.index("| room | module: what it tells |") :].split("\n\n")[0].split("\n")[2:]
    for row in rows:
        place, told = (part.strip() for part in row.strip("|").split("|"))
        there = {path.stem for path in (PACKAGE / place.strip("`")).glob("*.py")} - {"__init__"}
        named = set(re.findall(r"`(\w+)`", told.partition(" `tools/trust`")[0]))
        assert there <= named, place
        assert named - there <= {"where"}, place  # A word of the language of rules.


def test_a_module_that_another_names_is_there():
    """`name.py` is in the same room, `room/name.py` in another; whoever is sent there finds it."""
    of_others = {"src/main.py", "assistant_tool.py"}  # A file of a project, and one of a tool.
    lost = set()
    for path in PACKAGE.rglob("*.py"):
        named = set(re.findall(r"(?<![\w/.\"'-])((?:\w+/)*[a-z_]+\.py)\b(?![\"'])", path.read_text())) - of_others
        places = (path.parent, PACKAGE, SOURCE.parent)
        lost |= {
            f"{path.relative_to(PACKAGE)}: {name}" for name in named if not any((at / name).is_file() for at in places)
        }
    assert lost == set()


def test_files_are_named_by_their_noun():
    """What must not exist: a drawer."""
    names = {path.stem for path in PACKAGE.rglob("*.py")}
    assert names & FORBIDDEN_NAMES == set()
    classes = {node.name for found in nodes().values() for node in found if isinstance(node, ast.ClassDef)}
    assert [name for name in classes if name.endswith(("Manager", "Service", "Factory"))] == []


def test_every_module_says_what_lives_in_it():
    """A docstring at the top, in every module that has code."""
    silent = [name for name, tree in modules().items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []
