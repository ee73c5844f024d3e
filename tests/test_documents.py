"""The pages lead somewhere: each is in the index, whatever they point to is there, and their card is today's."""

import html
import re
import runpy
from pathlib import Path

import pytest

from lastword.testing import ATTACKS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for name in ("docs", "examples") for page in sorted((ROOT / name).rglob("*.md"))),
]
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")
# A path of the repository in code style: `tests/store/`, `python bench/report.py`.
PATH = re.compile(r"`(?:python )?((?:tests|bench|docs|examples|src)/[\w./-]*)[^`]*`")


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can name, as they are made from its headings."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_in_the_index():
    """A page that nobody can find is not read, and rots."""
    index = DOCS / "README.md"
    linked = {(DOCS / target).resolve() for target, _ in LINK.findall(index.read_text()) if target}
    assert {page for page in PAGES if DOCS in page.parents} - linked == {index}
    for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        assert ROOT / name in linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page):
    """A page that points nowhere was not read by who wrote it."""
    for target, anchor in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_is_there(page):
    """A decision says which tests hold it. When they move, the page goes along."""
    missing = [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()]
    assert missing == []


def test_decisions_are_numbered_without_a_gap():
    """They are cited by number."""
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [int(page.name[:2]) for page in pages] == list(range(1, len(pages) + 1))
    for number, page in enumerate(pages, 1):
        assert page.read_text().startswith(f"# {number}. ")


def test_a_page_that_counts_the_attacks_counts_them_right():
    """A number in a sentence is true on the day on which it is written, and nobody reads it again."""
    words = ("twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty")
    number = words[len(ATTACKS) - 12]
    counted = re.findall(r"`lastword\.testing\.ATTACKS` tries\s+(\S+) ways", (DOCS / "tools.md").read_text())
    assert counted == [number]
    assert f"ATTACKS = {len(ATTACKS)} of them: " in (DOCS / "reference.md").read_text()


def test_the_picture_shows_the_card_that_is_drawn_now():
    """Its words and their order; corners are the drawing library's. `python docs/pictures/draw.py` draws it anew."""
    pictures = DOCS / "pictures"
    drawn = runpy.run_path(str(pictures / "draw.py"))
    svg = (pictures / "card.svg").read_text()
    pieces = re.findall(r'<text class="card-r\d+" x="[^"]*" y="[^"]*" textLength[^>]*>(.*?)</text>', svg)
    shown = "".join(html.unescape("".join(pieces)).replace("\xa0", " ").split())
    card = "".join("".join(line.plain for line in drawn["lines"]()).split())
    assert shown == card
