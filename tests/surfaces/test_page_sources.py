"""The sources of the page: linted, type-checked, and with unit tests of their own, which node runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import hatch_build  # noqa: E402  # it lies beside pyproject.toml, where hatchling looks for it

UI = ROOT / hatch_build.UI
PACKAGES = UI / "node_modules"

pytestmark = pytest.mark.skipif(
    not PACKAGES.is_dir(), reason="the packages of the page are not installed; installing lastword again does it"
)


@pytest.mark.parametrize("script", ["lint", "types", "test"])
def test_the_sources_of_the_page_are_in_order(script):
    """`npm run lint`, `npm run types` and `npm test`, on the node that also builds the page."""
    node, npm = hatch_build.find_node()
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    run = [str(node), str(npm)] if npm.suffix == ".js" else [str(npm)]
    done = subprocess.run(
        [*run, "run", script], cwd=UI, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_packages_of_the_page_are_those_of_its_lock_file():
    """All of them: with other versions, or without the linter, the test above would prove something else."""
    locked = json.loads((UI / "package-lock.json").read_text())["packages"]
    named = json.loads((UI / "package.json").read_text())["devDependencies"]
    for name, version in named.items():
        installed = json.loads((PACKAGES / name / "package.json").read_text())
        assert installed["version"] == version == locked[f"node_modules/{name}"]["version"]
    assert "resolved" not in (UI / "package-lock.json").read_text(), "it would name the registry of whoever wrote it"
