"""What is public: the same in the package, in its types and in the reference."""

import ast
import importlib
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import lastword
from lastword import testing

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_all_is_what_the_package_hands_out():
    """A name in one and not in the other could be seen and not had, or had and not seen."""
    tree = ast.parse((ROOT / "src" / "lastword" / "__init__.py").read_text())
    guarded = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [alias.name for node in guarded.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert lastword.__all__ == sorted(imported)
    assert dir(lastword) == sorted([*lastword.__all__, "__version__"])


def test_every_public_name_can_be_had_first():
    """In an interpreter that has loaded nothing of ours, whichever name is asked for first."""
    program = """
import importlib, sys
for name in importlib.import_module("lastword").__all__:
    for module in [module for module in sys.modules if module.split(".")[0] == "lastword"]:
        del sys.modules[module]
    package = importlib.import_module("lastword")
    namespace = {}
    exec(f"from lastword import {name}", namespace)
    assert namespace[name] is getattr(package, name), name
"""
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)


def test_an_unknown_name_is_an_attribute_error():
    """As for any module; hasattr works."""
    assert not hasattr(lastword, "nothing")
    with pytest.raises(AttributeError, match="module 'lastword' has no attribute 'nothing'"):
        importlib.import_module("lastword").nothing  # noqa: B018


def test_the_kit_says_what_is_public():
    """Everything in __all__ exists. Constants come first, as the linter wants them."""
    assert testing.__all__ == sorted(testing.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(testing, name) for name in testing.__all__)


@pytest.mark.parametrize("name", ["reference", "commands"])
def test_a_generated_page_is_what_the_code_says(name):
    """Generated, committed, compared: every name, command and option is in the docs."""
    generator, page = DOCS / f"generate_{name}.py", DOCS / f"{name}.md"
    written = runpy.run_path(str(generator))["generate"]()
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        page.write_text(written)
    assert written == page.read_text(), f"python docs/{generator.name} writes it again"


def test_the_reference_has_every_public_name():
    """What a page of the reference leaves out nobody finds."""
    page = (DOCS / "reference.md").read_text()
    assert [name for name in lastword.__all__ if f"### `lastword.{name}`" not in page] == []


def test_the_glossary_explains_every_public_name_once():
    """Each belongs to one noun. A new name that belongs to none is a new noun, or is named wrongly."""
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|([^|]*)\|$", (DOCS / "glossary.md").read_text(), re.MULTILINE)[1:]
    nouns = [noun for noun, _, _ in rows]
    assert nouns == sorted(set(nouns), key=str.lower)
    assert sorted(name for _, _, names in rows for name in re.findall(r"`(\w+)`", names)) == sorted(lastword.__all__)


def test_the_version_is_the_one_that_is_built():
    """One number, in two places that must not part."""
    assert f'version = "{lastword.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_an_import_that_a_page_once_showed_still_works_and_says_its_new_place():
    """The guide to satellites of version 0.3 took HttpWire from there. It holds for one version."""
    sys.modules.pop("lastword.talk.httpwire", None)
    with pytest.warns(DeprecationWarning, match=r"in lastword\.talk\.apiclient now"):
        old = importlib.import_module("lastword.talk.httpwire")
    assert old.HttpWire is importlib.import_module("lastword.talk.apiclient").HttpWire
