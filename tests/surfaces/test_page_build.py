"""The page in the package: a wheel has it, built and whole; a build that cannot make it says so in words."""

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
