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
PACKAGE = SOURCE / "assent"

# A room is a module of the package, or a folder. It imports rooms of earlier lines, never of its own or a later one.
LAYERS = [
    ["errors", "lazily", "display", "eager", "fresh", "outcome", "threads", "scripted"],
    ["values", "guard", "store", "apiclient", "cli"],
    ["manifest", "protocol", "script", "state"],
    ["signature", "context", "replies", "server"],
    ["tools", "config", "bounds", "feedback", "inprocess"],
    ["rehearsal"],
    ["loader", "execution", "model_choice"],
    ["registry", "scaffold", "trust"],
    ["editor", "toolbox"],
    ["approval"],
    ["journal", "events", "tour"],
    ["cards", "reports", "changes", "desk", "opening", "timeline"],
    ["calls"],
    ["recovery"],
    ["runs"],
    ["session"],
    ["authoring", "toolprompt"],
    ["satellite", "tooltests"],
    ["testing", "ways"],
    ["terminal"],
    ["web"],
    ["demo"],
    ["commands", "__main__"],
]
# The package itself loads its public names on first use, and the command line its commands: for start-up time.
LAZY = ("assent", "assent.cli", "assent.commands")
# What the server must never be able to reach: everything that could run a tool.
_ACTING = ("registry", "calls", "recovery", "session", "loader", "tools", "execution", "runs")
OUT_OF_REACH = {f"assent.{room}" for room in _ACTING}
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
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "assent")
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "assent":
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
        if depth[room(target)] >= depth[room(module)]
    ]
    assert upwards == []


def test_no_module_imports_itself_by_a_detour():
    """Also inside a room."""
    graph = {
        module: {target for target in imports(tree) if target != module and module.count(".") and target.count(".")}
        for module, tree in modules().items()
        if not module.startswith("assent.commands")
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
    assert lines == ["assent.execution: tool.execute"]


@requirement("TOOL-30")
def test_only_the_door_starts_an_execution():
    """And only a session, a run of a script for it, and the recovery of what one left behind come to the door."""
    calls = [
        (room(module), ast.unparse(node.func))
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    ]
    assert {where for where, what in calls if what == "Execution"} == {"calls"}
    assert {where for where, what in calls if what.endswith("door.carry_out")} == {"recovery", "runs", "session"}
    assert {where for where, what in calls if what.endswith("door.start_again")} == {"recovery"}
    assert {where for where, what in calls if what.endswith("_run_started")} == {"calls"}


@requirement("API-1")
def test_the_server_cannot_reach_what_runs_tools():
    """Not through any import, however long the way: look at what is there once all of it is loaded."""
    if not (PACKAGE / "server").is_dir():
        pytest.fail("the server is gone; take this test away with it")
    program = (
        "import importlib, pkgutil, sys, assent.server\n"
        "for found in pkgutil.walk_packages(assent.server.__path__, 'assent.server.'):\n"
        "    importlib.import_module(found.name)\n"
        "print('\\n'.join(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert OUT_OF_REACH & set(loaded.stdout.split()) == set()


def test_importing_the_package_loads_nothing():
    """`import assent` is cheap; what a program does not use it does not pay for."""
    program = "import sys, assent; print('\\n'.join(name for name in sys.modules if name.startswith('assent')))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert loaded.stdout.split() == ["assent"]


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
