"""The shape of the code: imports point one way, one line runs a tool, the server cannot."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from requirements import requirement

SOURCE = Path(__file__).parent.parent / "src"
PACKAGE = SOURCE / "lastword"

# A room is a folder of the package, or a module of its root. It imports rooms of earlier lines, never of a later one;
# inside a line there are no imports either, but for the foundations, which stand on each other.
LAYERS = [
    ["errors", "lazily", "display", "ids", "log", "values"],
    ["wire", "script", "store"],
    ["server", "tools"],
    ["config", "editor"],
    ["consent"],
    ["journal", "card"],
    ["call"],
    ["runs"],
    ["session"],
    ["author", "talk"],
    ["terminal", "web", "testing"],
    ["demo", "cli"],
    ["commands", "__main__"],
]
# The package itself loads its public names on first use, and the command line its commands: for start-up time.
LAZY = ("lastword", "lastword.cli", "lastword.commands")
# What the server must never be able to reach: everything that could run a tool.
OUT_OF_REACH = ("tools", "call", "runs", "session", "author", "talk")
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "base", "constants", "misc"}


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its name, parsed."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(), str(path))
    return found


def imports(module: ast.AST) -> Iterator[str]:
    """The modules of ours that a piece of code imports."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "lastword")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lastword":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module


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
        for module, tree in modules().items()
        for target in imports(tree)
        if room(module) in depth and room(target) in depth and room(target) != room(module)
        if depth[room(target)] >= depth[room(module)] and not depth[room(module)] == depth[room(target)] == 0
    ]
    assert upwards == []


def test_no_module_imports_itself_by_a_detour():
    """Also inside a room."""
    graph = {
        module: {target for target in imports(tree) if target != module and module.count(".") and target.count(".")}
        for module, tree in modules().items()
        if not module.startswith("lastword.commands")
    }
    packages = {module for module in graph if (PACKAGE.parent / module.replace(".", "/") / "__init__.py").is_file()}
    for package in packages:  # what a package gathers for its users is not what its modules know
        graph[package] = {target for target in graph[package] if not target.startswith(package + ".")}
    TopologicalSorter(graph).prepare()


def test_no_import_hides_in_a_function():
    """A cycle that is dodged is a cycle. Loading names and commands on first use is the exception."""
    hidden = [
        f"{module}: {ast.unparse(node)}"
        for module, tree in modules().items()
        if not module.startswith(LAZY[1:]) and module != LAZY[0]
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert hidden == []


@requirement("TOOL-30")
def test_exactly_one_line_runs_an_implementation():
    """Whoever looks for a way around consent has one line to look at. A store's connection executes SQL, not tools."""
    lines = [
        f"{module}: {ast.unparse(node.func)}"
        for module, tree in modules().items()
        if room(module) != "store"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "execute"
    ]
    assert lines == ["lastword.call.execution: tool.execute"]


@requirement("TOOL-30")
def test_only_the_door_starts_an_execution():
    """And only a session, a run of a script for it, and the recovery of what one left behind come to the door."""
    calls = [
        (module.removeprefix("lastword."), ast.unparse(node.func))
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]
    assert {where for where, what in calls if what == "Execution"} == {"call.door"}
    assert {where for where, what in calls if what.endswith("door.carry_out")} == {"call.recovery", "runs", "session"}
    assert {where for where, what in calls if what.endswith("door.start_again")} == {"call.recovery"}
    assert {where for where, what in calls if what.endswith("_run_started")} == {"call.door"}


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


def test_importing_the_package_loads_nothing():
    """`import lastword` is cheap; what a program does not use it does not pay for."""
    program = "import sys, lastword; print('\\n'.join(name for name in sys.modules if name.startswith('lastword')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert loaded.stdout.split() == ["lastword"]


def test_files_are_named_by_their_noun():
    """What must not exist: a drawer."""
    names = {path.stem for path in PACKAGE.rglob("*.py")}
    assert names & FORBIDDEN_NAMES == set()
    classes = {node.name for tree in modules().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    assert [name for name in classes if name.endswith(("Manager", "Service", "Factory"))] == []


def test_every_module_says_what_lives_in_it():
    """A docstring at the top, in every module that has code."""
    silent = [name for name, tree in modules().items() if tree.body and not ast.get_docstring(tree)]
    assert silent == []
