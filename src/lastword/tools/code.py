"""What a tool's digest covers of its code, so that a yes given to one version starts no other, also after a restart.

Of a folder: every file that Python could import from it. Of a function: its byte code with constants, names and
defaults, and that of the functions inside of it. What it reaches through closures, globals and imported modules is not
covered, and neither is a change of the interpreter's own: other byte code is other code, and somebody is asked again.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from importlib.machinery import all_suffixes
from pathlib import Path
from types import CodeType
from typing import Any

from lastword import values
from lastword.errors import ToolLoadError

MANIFEST_FILE = "assistant_tool.json"
CODE_FILE = "assistant_tool.py"

# A tool is a handful of files. A folder with more than this holds something else, and hashing it would take long.
MAX_FILES = 2_000


def code_of(folder: Path) -> bytes:
    """The Python file of a tool folder."""
    file = folder / CODE_FILE
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise ToolLoadError(
            f"{CODE_FILE} is missing", place=str(folder), hint=f"a tool is {MANIFEST_FILE} and {CODE_FILE}"
        ) from None


def digest_of_folder(folder: Path) -> str:
    """Changes when anything changes that Python could import from the folder, or the manifest that goes with it."""
    found = [[str(path.relative_to(folder)), values.digest(path.read_bytes())] for path in code_files(folder)]
    return values.digest(values.canonical(found))


def code_files(folder: Path) -> list[Path]:
    """Every file below the folder that Python could import, and the manifest; through links too."""
    suffixes = tuple(all_suffixes())
    found: list[Path] = []
    seen: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        # A link can lead back to where it is; each real folder is visited once.
        if os.path.realpath(here) in seen:
            folders.clear()
            continue
        seen.add(os.path.realpath(here))
        # Byte code is left out because it is never read from there: see `read_no_caches` in trust.py.
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        found += [Path(here, name) for name in sorted(files) if name.endswith(suffixes) or name == MANIFEST_FILE]
        if len(found) > MAX_FILES:
            raise ToolLoadError(
                f"it holds more than {MAX_FILES} files that Python can import",
                place=str(folder),
                hint="a tool's folder holds the tool alone; put what it uses into a package",
            )
    return found


def digest_of_function(function: Callable[..., Any]) -> str:
    """Changes when the function's own code does, or that of what it wraps."""
    return values.digest("\n".join(_described(function)).encode("utf-8", "surrogatepass"))


def _described(function: Any) -> Iterator[str]:
    while True:
        if isinstance(function, functools.partial):
            yield f"partial {_constant(function.args)} {_constant(function.keywords)}"
            function = function.func
            continue
        if not inspect.isroutine(function) and callable(function):
            yield f"object of {type(function).__qualname__}"
            function = type(function).__call__
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if not isinstance(code, CodeType):  # Written in another language: its name is all there is.
            yield f"built in {getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
            return
        yield from _code(code)
        yield f"defaults {_constant(function.__defaults__)} {_constant(function.__kwdefaults__)}"
        if not hasattr(function, "__wrapped__"):
            return
        function = function.__wrapped__


def _code(code: CodeType) -> Iterator[str]:
    yield f"code {code.co_name} {code.co_flags} {code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
    yield code.co_code.hex()
    yield code.co_exceptiontable.hex()
    yield f"{code.co_names} {code.co_varnames} {code.co_freevars} {code.co_cellvars}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield _constant(constant)


def _constant(value: Any) -> str:
    """A constant in words that do not depend on where it lies in memory, or on the order of a set."""
    kind = type(value)
    if kind in (str, bytes, int, float, complex, bool, type(None), type(...)):
        return f"{kind.__name__} {value!r}"
    if kind in (tuple, list):
        return f"{kind.__name__} [{', '.join(map(_constant, value))}]"
    if kind in (set, frozenset):
        return f"{kind.__name__} [{', '.join(sorted(map(_constant, value)))}]"
    if kind is dict:
        return f"dict [{', '.join(f'{_constant(k)}: {_constant(v)}' for k, v in value.items())}]"
    return f"a {kind.__module__}.{kind.__qualname__}"
