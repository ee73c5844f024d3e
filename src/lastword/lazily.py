"""Modules that are loaded when they are first used, for what many programs never need: start-up time is paid by all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, NoReturn

from lastword.errors import LastWordError


def load_later(name: str, *, extra: str | None = None) -> ModuleType:
    """The module of that name. It is imported when something of it is asked for, by whichever thread comes first.

    A package that only an `extra` brings may be missing: then whatever is asked of it says what to install.
    """
    if name in sys.modules:
        return sys.modules[name]
    if extra is not None and find_spec(name) is None:
        return _Missing(name, extra)
    return _Later(name)


def open_door(room: str) -> Callable[[str], Any]:
    """The `__getattr__` of a room's door, called there: what the door imports for type checkers is what others may use.

    A name is loaded with its module when it is first asked for, so a program pays only for what it uses of a room.
    """
    # The names of the code are in the order in which it uses them: after a module come those imported from it. They are
    # there too where no source is shipped.
    places: dict[str, str] = {}
    module = ""
    for name in sys._getframe(1).f_code.co_names:
        if name == room or name.startswith(f"{room}."):
            module = name
        elif module != room:  # A vocabulary is a module, which Python finds itself.
            places[name] = module

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(sys.modules[room], name, value)
        return value

    return load


@contextmanager
def brought_by(extra: str, *packages: str) -> Iterator[None]:
    """Around the imports of a module that is of no use without them: what is missing says what to install."""
    try:
        yield
    except ModuleNotFoundError as problem:
        name = (problem.name or "").partition(".")[0]
        if name not in packages:
            raise  # A package of theirs is broken, and to install them again would not mend it.
        raise _missing(name, extra) from None


def _missing(name: str, extra: str) -> LastWordError:
    return LastWordError(
        f"this needs the package {name}, which is not installed", hint=f"pip install 'lastword[{extra}]'"
    )


class _Later(ModuleType):
    """Hands on what is asked of it, and keeps that for the next time, as an import would.

    (A second thread can see a lazy module of the standard library half loaded.)
    """

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):  # Asked by Python itself, and by whoever looks through everything.
            raise AttributeError(attribute)
        value = getattr(import_module(self.__name__), attribute)
        setattr(self, attribute, value)
        return value


class _Missing(ModuleType):
    """Stands for a package that is not installed. It is in nobody's `sys.modules`, so installing it is enough."""

    def __init__(self, name: str, extra: str) -> None:
        super().__init__(name)
        self.__dict__["_extra"] = extra

    def __getattr__(self, attribute: str) -> NoReturn:
        if attribute.startswith("__"):  # Asked by Python itself, and by whoever looks through all modules.
            raise AttributeError(attribute)
        raise _missing(self.__name__, self.__dict__["_extra"])
