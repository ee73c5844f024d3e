"""Modules that are loaded when they are first used, for what many programs never need: start-up time is paid by all."""

from __future__ import annotations

import sys
from importlib.util import LazyLoader, find_spec, module_from_spec
from types import ModuleType


def load_later(name: str) -> ModuleType:
    """The module of that name. Its code runs when something of it is asked for."""
    if name in sys.modules:
        return sys.modules[name]
    spec = find_spec(name)
    assert spec is not None, name
    assert spec.loader is not None, name
    loader = LazyLoader(spec.loader)
    spec.loader = loader
    module = module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)
    return module
