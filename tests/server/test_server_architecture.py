"""The server cannot run a tool: it cannot even import the code that does."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lastword.server
from requirements import requirement

ROOM = Path(lastword.server.__file__).parent
MAY = (
    "lastword.display",
    "lastword.errors",
    "lastword.lazily",
    "lastword.log",
    "lastword.values",
    "lastword.wire",
    "lastword.script",
    "lastword.store",
    "lastword.server",
)


@requirement("API-1")
@pytest.mark.parametrize("module", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_a_server_module_imports_only_what_it_may(module):
    """Read from the text, so that an import inside a function is found as well."""
    for node in ast.walk(ast.parse(module.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name == "lastword" or name.startswith("lastword."):
                assert any(name == room or name.startswith(room + ".") for room in MAY), f"{module.name} imports {name}"
            assert name.partition(".")[0] not in ("importlib", "runpy", "pickle", "subprocess"), name


def test_importing_lastword_loads_nothing_of_the_server():
    """`import lastword` stays light for those who only want tools."""
    heavy = ("aiohttp", "uvicorn", "starlette", "prometheus_client")
    script = f"import sys, lastword\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
