"""What `lastword test` does with a tool: its manifest, its own tests, and a denial that it must respect.

Tests are functions named `test_*`, sync or async, without arguments, alone or in a class `Test*`, in
`assistant_tool.py` and in `test_*.py` beside it. They run without pytest, and pytest runs them too.
"""

from __future__ import annotations

import asyncio
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, ModuleType
from typing import Any

from lastword.author.assistant_tool import try_out
from lastword.consent import DENIED
from lastword.editor import ProjectEditor
from lastword.errors import ArgumentsError, ManifestError, ToolLoadError
from lastword.tools import Loading, Manifest, Parameter, Tool, ToolFolder

# What pytest and unittest call around the tests of a class.
_PREPARES = ("setup_method", "setup_class", "teardown_method", "teardown_class", "setUp", "setUpClass")
MANIFEST, LOADS, RESPECTS_A_DENIAL = "the manifest is in order", "the code loads", "a denial is respected"
DENIAL_NOT_TRIED = "a denial could not be tried"


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was checked about a tool."""

    tool: str
    name: str
    passed: bool
    problem: str | None = None
    """What to mend, in words, when it did not pass."""


def run_tool_tests(folder: str | Path) -> list[Checked]:
    """Check every tool at this path: one tool folder, or a folder of them."""
    return [result for tool in ToolFolder.all_in(Path(folder)) for result in check_tool(tool)]


def tool_beside(file: str) -> ModuleType:
    """The tool's Python file that lies beside this one, loaded: for a test's `tool = tool_beside(__file__)`."""
    return _load(Path(file).resolve().parent)


def check_tool(folder: ToolFolder) -> Iterator[Checked]:
    """Everything there is to check about the tool in one folder, in order."""
    try:
        manifest = folder.manifest()
    except ManifestError as problem:
        yield Checked(folder.path.name, MANIFEST, False, str(problem))
        return
    yield Checked(manifest.id, MANIFEST, True)
    try:
        here = folder.load(manifest)
        tool = here.tool()
    except (ToolLoadError, ManifestError) as problem:
        yield Checked(manifest.id, LOADS, False, str(problem))
        return
    yield Checked(manifest.id, LOADS, True)
    if manifest.require_approval:
        yield _check_denial(tool)
    assert here.module is not None
    with _beside(folder.path, here):
        yield from _run_tests(manifest.id, here.module, folder.path / ToolFolder.CODE_FILE)
        for file in sorted(folder.path.glob("test_*.py")):
            try:
                module = _import(file, manifest.id)
            except Exception as problem:
                yield Checked(manifest.id, file.name, False, _told(problem, file))
            else:
                yield from _run_tests(manifest.id, module, file)


def sample_arguments(manifest: Manifest) -> dict[str, Any]:
    """Arguments that could be meant: examples, defaults and first choices where the schemas give them."""
    return {p.name: _sample(p) for p in manifest.parameters if p.required}


_loaded: dict[Path, Loading] = {}
"""The tools whose tests are running, by folder: `tool_beside` gives a test the very module that is checked."""


def _load(folder: Path) -> ModuleType:
    here = _loaded.get(folder) or ToolFolder(folder).load()
    assert here.module is not None
    return here.module


@contextmanager
def _beside(folder: Path, here: Loading) -> Iterator[None]:
    place = folder.resolve()
    _loaded[place] = here
    try:
        yield
    finally:
        del _loaded[place]


def _check_denial(tool: Tool) -> Checked:
    """Deny a call and see whether the tool acts all the same. It runs under the guard, so nothing happens."""
    arguments = sample_arguments(tool.manifest)
    try:
        tool.validate(arguments)
    except ArgumentsError as problem:
        return Checked(
            tool.name,
            RESPECTS_A_DENIAL,
            False,
            f"no sample arguments could be made up:\n{problem}\n"
            f'hint: give the parameter an example in {ToolFolder.MANIFEST_FILE}: "schema": {{"examples": [...]}}',
        )
    with TemporaryDirectory() as project:
        session, seen = try_out(tool, DENIED, ProjectEditor(project))
        try:
            outcome = session.call_sync(tool.name, arguments)
        finally:
            session.close_sync()
    if outcome.kind == "refused":
        return Checked(tool.name, RESPECTS_A_DENIAL, False, f"{outcome.message}\nThe arguments were {arguments}.")
    if not seen:
        # Its request function has its reasons, such as a state that is not there. Nothing was denied.
        return Checked(tool.name, f"{DENIAL_NOT_TRIED}: {outcome.message.splitlines()[0]}", True)
    if outcome.overstepped is not None:
        problem_words = (
            f"it tried to {outcome.overstepped} although the person had said no\n"
            "hint: return before doing anything unless user_action.primary_confirmed"
        )
        return Checked(tool.name, RESPECTS_A_DENIAL, False, problem_words)
    return Checked(tool.name, RESPECTS_A_DENIAL, True)


def _sample(parameter: Parameter) -> Any:
    schema = parameter.schema or {}
    for key in ("examples", "enum"):
        if isinstance(schema.get(key), list) and schema[key]:
            return schema[key][0]
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    kind = schema.get("type", parameter.type)
    if kind in ("number", "integer"):
        return schema.get("minimum", schema.get("maximum", 1))
    if kind == "string":
        length = schema.get("minLength", 0)
        return parameter.name.ljust(length, "x")[: schema.get("maxLength", max(length, len(parameter.name)))]
    return {"boolean": False, "null": None, "array": [], "object": {}}.get(str(kind), parameter.name)


def _run_tests(tool: str, module: ModuleType, file: Path) -> Iterator[Checked]:
    for name, found in list(vars(module).items()):
        if getattr(found, "__module__", None) != module.__name__:
            continue
        if name.startswith("test_") and inspect.isfunction(found):
            yield _run_test(tool, name, found, file)
        elif inspect.isclass(found) and (name.startswith("Test") or hasattr(found, "setUp")):
            yield from _run_class(tool, found, file)


def _run_class(tool: str, found: type, file: Path) -> Iterator[Checked]:
    """The tests of a class, each on an instance of its own."""
    needs = [name for name in _PREPARES if name in dir(found)] or (["arguments"] if "__init__" in vars(found) else [])
    for name in [name for name in dir(found) if name.startswith("test_") and callable(getattr(found, name))]:
        if needs:
            problem = f"its class needs {needs[0]}, which lastword test does not call\nhint: run it with pytest"
            yield Checked(tool, f"{found.__name__}.{name}", False, problem)
        else:
            yield _run_test(tool, f"{found.__name__}.{name}", getattr(found(), name), file)


def _run_test(tool: str, name: str, function: Callable[[], Any], file: Path) -> Checked:
    wanted = [p.name for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    if wanted:
        problem = f"it takes {', '.join(wanted)}, and lastword test passes nothing\nhint: run it with pytest"
        return Checked(tool, name, False, problem)
    try:
        result = function()
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except Exception as failure:
        return Checked(tool, name, False, _told(failure, file))
    return Checked(tool, name, True)


def _import(file: Path, tool: str) -> ModuleType:
    module = ModuleType(f"lastword_tests_of_{tool}_{file.stem}")
    module.__file__ = str(
        file.resolve()
    )  # As Python does it: a test may change the folder and still find what is beside it.
    sys.modules[module.__name__] = module
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    return module


def _told(problem: BaseException, file: Path) -> str:
    """Where a test failed and with what: the last line of the tool's own files, and the values in sight there."""
    if isinstance(problem, SyntaxError):
        return f"{problem.filename}:{problem.lineno}: {problem.msg}"
    frames = [(f, line) for f, line in traceback.walk_tb(problem.__traceback__)]
    own = [(f, line) for f, line in frames if Path(f.f_code.co_filename).parent == file.parent] or frames[-1:]
    frame, line = own[-1]
    linecache.checkcache(frame.f_code.co_filename)  # the file may have been edited since it was last shown
    source = linecache.getline(frame.f_code.co_filename, line).strip()
    kind = type(problem).__name__
    told = [f"{frame.f_code.co_filename}:{line}: {kind}{f': {problem}' if str(problem) else ''}", f"  {source}"]
    if isinstance(problem, AssertionError) and not str(problem):
        told += _values_in(frame, source)
    return "\n".join(told)


def _values_in(frame: FrameType, source: str) -> Iterator[str]:
    names = set(re.findall(r"[A-Za-z_]\w*", source))
    for name, value in frame.f_locals.items():
        if name in names:
            shown = repr(value)
            yield f"  {name} = {shown if len(shown) <= 200 else shown[:200] + '…'}"
