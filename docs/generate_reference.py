"""Writes docs/reference.md: every public name with its signature and what its docstring says.

    python docs/generate_reference.py

A test compares the committed page with a fresh one, so the page cannot fall behind the code.
"""

import ast
import inspect
import itertools
import re
import textwrap
import typing
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import lastword
from lastword import errors, testing

PAGE = Path(__file__).parent / "reference.md"
HEAD = """# Reference

Generated from the code by `docs/generate_reference.py`. What is neither on this page nor on
[that of the adapters](adapters.md) is not public.
"""


def generate() -> str:
    """The whole page."""
    parts = [HEAD, "## `lastword`\n"]
    parts += [entry("lastword", name, getattr(lastword, name)) for name in lastword.__all__]
    parts += ["## `lastword.testing`\n", f"{summary(testing)}\n"]
    parts += [entry("lastword.testing", name, getattr(testing, name)) for name in testing.__all__]
    parts += [
        "## `lastword.errors`\n",
        "What is raised on purpose. A denial, a failing tool and a time that is up are outcomes, and no errors.\n",
    ]
    parts += [*tree(errors.LastWordError), ""]
    return "\n".join(parts).rstrip() + "\n"


def entry(module: str, name: str, value: Any) -> str:
    """One name: its signature, its text, its methods."""
    lines = [f"### `{module}.{name}`", ""]
    if inspect.isclass(value) or inspect.isroutine(value):
        lines += ["```python", f"{name}{signature(value)}", "```", ""]
    elif type(value).__name__ in lastword.__all__:
        return "\n".join([*lines, "```python", f"{name} = {value!r}", "```", ""])
    elif type(value).__module__.startswith("lastword"):
        value = type(value)  # an object that stands for itself, such as AssistantTool
    else:
        lines += ["```python", f"{name} = {shown(value)}", "```", ""]
    if text := documented(value):
        lines += [text, ""]
    if inspect.isclass(value):
        lines += [*fields(value), *members(value)]
    return "\n".join(lines)


def tree(error: type[Exception], depth: int = 0) -> Iterator[str]:
    """An error and those that are special cases of it, each with its first sentence."""
    is_public = not error.__name__.startswith("_")
    if is_public:
        yield f"{'  ' * depth}* `{error.__name__}`{told(error)}"
    for special in sorted(error.__subclasses__(), key=lambda found: found.__name__):
        if special.__module__ == errors.__name__:
            yield from tree(special, depth + is_public)


def fields(value: type) -> Iterator[str]:
    """The fields that say something of themselves, in the order in which they stand."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(value)))
    except (OSError, TypeError):
        return
    [body] = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    for node, after in itertools.pairwise(body):
        is_field = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        name = ast.unparse(node.target) if is_field else "_"
        if not name.startswith("_") and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield f"* `{name}`: {' '.join(str(after.value.value).split())}"


def members(value: type) -> Iterator[str]:
    """The public methods and properties of a class, in alphabetical order, with their first sentences."""
    found = []
    for name in sorted(dir(value)):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(value, name)
        is_method = not isinstance(member, staticmethod)
        if isinstance(member, (staticmethod, classmethod)):
            member = member.__func__
        if isinstance(member, (property, cached_property)):
            found.append(f"* `{name}`{told(member)}")
        elif inspect.isfunction(member):
            prefix = "await " if inspect.iscoroutinefunction(member) else ""
            found.append(f"* `{prefix}{name}{signature(member, method=is_method)}`{told(member)}")
    if found:
        yield from [*found, ""]


def told(member: Any) -> str:
    text = summary(member)
    return f": {text}" if text else ""


def summary(value: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())


def documented(value: Any) -> str:
    """A docstring of the object's own; what Python says of its type is no documentation."""
    own = inspect.getdoc(value) or ""
    return "" if own == inspect.getdoc(type(value)) else own


def signature(value: Any, *, method: bool = False) -> str:
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = list(found.parameters.values())[1 if method else 0 :]
    return shown(found.replace(parameters=parameters))


def shown(value: Any) -> str:
    """A signature or a type without what differs between versions of Python and places in memory."""
    text = repr(value) if typing.get_origin(value) else str(value)
    text = re.sub(r"<function \S+ at 0x[0-9a-f]+>|<factory>|<object object at 0x[0-9a-f]+>", "…", text)
    if isinstance(value, tuple):
        text = f"{len(value)} of them: " + ", ".join(f"`{item}`" for item in value)
    text = re.sub(r"(?:(?<=: )|(?<=> ))'([^']*)'", r"\1", text)  # annotations that are kept as text
    text = re.sub(r"<built-in function (\w+)>", r"\1", text)
    return re.sub(r"\b(?:lastword|collections|typing)(?:\.[a-z_]+)*\.(?=[A-Z])", "", text)


if __name__ == "__main__":
    PAGE.write_text(generate())
