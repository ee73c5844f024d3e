"""What a tool's digest covers of its code, so that a yes given to one version starts no other, also after a restart.

Of a folder: every file that Python could import from it. Of a function: its byte code with constants, names and
defaults, that of the functions inside of it, and of what it wraps. What it reaches through closures, globals, objects
of its own and imported modules is not covered, and neither is a change of the interpreter's own: other byte code is
other code, and somebody is asked again.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from importlib.machinery import all_suffixes
from pathlib import Path, PurePath
from types import CodeType
from typing import Any
from uuid import UUID

from lastword import values
from lastword.errors import ToolLoadError

MANIFEST_FILE = "assistant_tool.json"
CODE_FILE = "assistant_tool.py"

# A tool is a handful of files. A folder with more than this holds something else, and hashing it would take long.
MAX_FILES = 2_000
# How deep wrappers wrap, and defaults hold others. What holds itself must not be followed for ever.
MAX_LEVELS = 20


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


def _described(function: Any, levels: int = MAX_LEVELS) -> Iterator[str]:
    if levels <= 0:
        yield "and more"
        return
    if isinstance(function, functools.partial):
        yield f"partial {_constant(function.args, levels)} {_constant(function.keywords, levels)}"
        yield from _described(function.func, levels - 1)
        return
    if not inspect.isroutine(function) and callable(function):
        yield f"object of {type(function).__qualname__}"
        yield from _described(type(function).__call__, levels - 1)
    else:
        function = getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if isinstance(code, CodeType):
            yield from _code(code)
            defaults, named = function.__defaults__, function.__kwdefaults__
            yield f"defaults {_constant(defaults, levels)} {_constant(named, levels)}"
        else:  # Written in another language: its name is all there is, but for what it wraps, as a cache does.
            yield f"built in {getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    wrapped = getattr(function, "__wrapped__", None)
    if callable(wrapped):
        yield from _described(wrapped, levels - 1)


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


def _constant(value: Any, levels: int = MAX_LEVELS) -> str:
    """A value in words that do not depend on where it lies in memory, or on the order of a set."""
    kind = type(value)
    if kind in _PLAIN:
        return f"{kind.__name__} {value!r}"
    name = kind.__name__ if kind in _HOLDING else f"a {kind.__module__}.{kind.__qualname__}"
    if levels <= 0:
        return name
    inner = functools.partial(_constant, levels=levels - 1)
    if isinstance(value, Enum):
        return f"{name} {value.name}"
    if isinstance(value, (tuple, list)):
        return f"{name} [{', '.join(map(inner, value))}]"
    if isinstance(value, (set, frozenset)):
        return f"{name} [{', '.join(sorted(map(inner, value)))}]"
    if isinstance(value, dict):
        return f"{name} [{', '.join(f'{inner(k)}: {inner(v)}' for k, v in value.items())}]"
    for plain in (*_PLAIN, *_SAID):
        if isinstance(value, plain):
            return f"{name} {plain.__repr__(value)}"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if is_dataclass(value):
        held = {field.name: getattr(value, field.name, None) for field in fields(value)}
        return f"{name} {inner(held)}"
    if isinstance(value, re.Pattern):  # which cuts what it says of itself
        return f"{name} {value.pattern!r} {value.flags}"
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        return f"{name} [{', '.join(_described(value, levels - 1))}]"
    return name


_PLAIN: tuple[Any, ...] = (str, bytes, int, float, complex, bool, type(None), type(...))
_HOLDING = (tuple, list, set, frozenset, dict)
# What else a default usually is, and says of itself as it will after a restart.
_SAID: tuple[Any, ...] = (Decimal, Fraction, datetime, date, time, timedelta, timezone, UUID, PurePath, range, slice)
