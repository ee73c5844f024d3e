"""The page in the package: its sources are in order, a wheel has it, and a build that cannot make it says so."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import hatch_build  # noqa: E402  # it lies beside pyproject.toml, where hatchling looks for it


@pytest.fixture
def sources(tmp_path):
    """A page to build that nothing is known of yet."""
    ui = tmp_path / hatch_build.UI
    (ui / "src").mkdir(parents=True)
    for name in ("index.html", "package-lock.json", "tsconfig.json", "vite.config.mjs", "src/main.tsx"):
        (ui / name).write_text(name)
    return tmp_path


@pytest.fixture
def no_node(monkeypatch):
    """A machine without node, and without the wheel that brings it."""
    monkeypatch.setattr(hatch_build.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")


def hook(root):
    return hatch_build.PageBuildHook(str(root), {}, None, None, "", "wheel")  # type: ignore[arg-type]


def test_a_wheel_contains_the_built_page_and_not_its_sources(tmp_path):
    """What is installed serves the page without a node and without a network."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "lastword/web/static/index.html" in names
    assert [name for name in names if name.startswith("lastword/web/static/assets/index-") and name.endswith(".js")]
    assert not [name for name in names if "/ui/" in name or "node_modules" in name]


def test_a_wheel_without_its_page_is_not_built(sources, no_node):
    """It would install well and serve nothing."""
    with pytest.raises(SystemExit, match="the page could not be built: there is no node") as stopped:
        hook(sources).initialize("standard", {"artifacts": []})
    assert "hint:" in str(stopped.value)


def test_an_editable_install_goes_on_without_the_page_and_says_so(sources, no_node, capsys):
    """Somebody who works on the language does not need it."""
    hook(sources).initialize("editable", {"artifacts": []})
    assert "warning: the page could not be built" in capsys.readouterr().err
    # pip shows nothing of a build that went well, and ./run would start an old page, or none, without a word.
    said = sources / hatch_build.STATIC / hatch_build.NOT_BUILT
    assert said.read_text().startswith("the page could not be built: there is no node")
    (sources / hatch_build.STATIC / hatch_build.STAMP).write_text(hatch_build.digest_of(sources / hatch_build.UI))
    hook(sources).initialize("editable", {"artifacts": []})
    assert not said.exists()


def test_what_is_built_already_is_not_built_again(sources, no_node):
    """The second install works offline; a changed source is noticed."""
    static = sources / hatch_build.STATIC
    static.mkdir(parents=True)
    (static / hatch_build.STAMP).write_text(hatch_build.digest_of(sources / hatch_build.UI))
    data: dict[str, list[str]] = {"artifacts": []}
    hook(sources).initialize("standard", data)
    assert data["artifacts"] == [f"{hatch_build.STATIC}/**"]
    (sources / hatch_build.UI / "src" / "main.tsx").write_text("changed")
    with pytest.raises(SystemExit):
        hook(sources).initialize("standard", {"artifacts": []})


UI = ROOT / hatch_build.UI
PACKAGES = UI / "node_modules"

installed = pytest.mark.skipif(
    not PACKAGES.is_dir(), reason="the packages of the page are not installed; installing lastword again does it"
)


@installed
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


@installed
def test_the_packages_of_the_page_are_those_of_its_lock_file():
    """All of them: with other versions, or without the linter, the test above would prove something else."""
    locked = json.loads((UI / "package-lock.json").read_text())["packages"]
    named = json.loads((UI / "package.json").read_text())["devDependencies"]
    for name, version in named.items():
        installed = json.loads((PACKAGES / name / "package.json").read_text())
        assert installed["version"] == version == locked[f"node_modules/{name}"]["version"]
    assert "resolved" not in (UI / "package-lock.json").read_text(), "it would name the registry of whoever wrote it"
