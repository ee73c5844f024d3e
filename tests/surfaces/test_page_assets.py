"""The page's files over HTTP: small on the way, kept by browsers, and never another version than the index names."""

import gzip
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.web.endpoints import preferred
from surfaces.windows import House

sys.path.insert(0, str(Path(__file__).parents[2]))

import hatch_build  # it lies beside pyproject.toml, where hatchling looks for it

ASSETS = files("lastword.web") / "static" / "assets"
BUILT = [file.name for file in ASSETS.iterdir()] if ASSETS.is_dir() else []
NAMES = sorted(name for name in BUILT if not name.endswith((".br", ".gz")))


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("house")).open()
    yield house
    house.close()


def unpacked(data, encoding):
    if encoding is None:
        return data
    if encoding == "gzip":
        return gzip.decompress(data)
    node, _ = hatch_build.find_node()
    program = "process.stdout.write(require('zlib').brotliDecompressSync(require('fs').readFileSync(0)))"
    return subprocess.run([str(node), "-e", program], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        ("gzip, deflate, br, zstd", "br"),
        ("gzip, deflate", "gzip"),
        ("br;q=0.5, gzip;q=0.8", "gzip"),
        ("*", "br"),
        ("br;q=0, *", "gzip"),
        ("br;q=nonsense, gzip;q=0", None),
        ("identity", None),
        ("xgzip, brotli", None),
        ("", None),
        (None, None),
    ],
)
def test_a_file_is_sent_in_the_smallest_form_that_the_browser_takes(window, name, accepted, encoding):
    """Also an old one, and a program that knows no compression; whatever stands between must not mix them up."""
    status, headers, data = window.raw(
        "GET", f"/assets/{name}", headers={} if accepted is None else {"Accept-Encoding": accepted}
    )
    assert status == 200
    assert headers.get("content-encoding") == encoding
    assert headers["vary"] == "Accept-Encoding"
    assert unpacked(data, encoding) == (ASSETS / name).read_bytes()
    assert headers["content-length"] == str(len(data))
    assert encoding is None or len(data) < len((ASSETS / name).read_bytes())


def test_a_file_is_kept_for_good_and_the_index_is_asked_for_each_time(window):
    """A name that holds a digest never means anything else. Nothing but these files is kept at all."""
    for name in NAMES:
        assert re.search(r"-[\w-]{8}\.(js|css|svg)$", name)
        _, headers, _ = window.raw("GET", f"/assets/{name}")
        assert headers["cache-control"] == "public, max-age=31536000, immutable"
    _, headers, index = window.raw("GET", "/", headers={"Cookie": window.cookie})
    assert headers["cache-control"] == "no-cache"
    assert set(re.findall(r"/assets/([^\"]+)\"", index.decode())) <= set(NAMES)
    for path in ("/page/state", "/page/timeline", "/page/export", "/assets/nothing.js", "/enter?key=no"):
        _, headers, _ = window.raw("GET", path, headers={"Cookie": window.cookie})
        assert headers["cache-control"] == "no-store", path


@pytest.mark.parametrize("ending", [".br", ".gz"])
def test_the_compressed_forms_have_no_names_of_their_own(window, ending):
    """They are another form of a file. As files they would be of a type that no browser expects."""
    assert window.raw("GET", f"/assets/{NAMES[0]}{ending}")[0] == 404


PARTS = st.sampled_from(["gzip", "br", "*", ";q=", ";", "q", "=", ",", " ", "1", "0", ".", "-", "nan", "inf", "é"])


@given(st.lists(PARTS, max_size=12).map("".join))
def test_whatever_a_browser_says_that_it_takes_is_no_trouble(said):
    """The header is theirs to write."""
    assert set(preferred(said)) <= {"br", "gzip"}


def test_the_first_load_is_small_and_what_reading_needs_comes_later(window):
    """A person who opens the page to answer one card waits for the page, and not for Markdown, colours or an editor."""
    index = (files("lastword.web") / "static" / "index.html").read_text()
    first = set(re.findall(r"/assets/([\w.-]+)", index))
    # Whatever the script itself imports before it runs counts as well; what it imports later is called, with a bracket.
    for name in [name for name in first if name.endswith(".js")]:
        first |= set(re.findall(r'(?:from|import)"\./([\w.-]+\.js)"', (ASSETS / name).read_text()))
    size = sum(
        len(window.raw("GET", f"/assets/{name}", headers={"Cookie": window.cookie, "Accept-Encoding": "gzip"})[2])
        for name in first
    )
    assert size + len(gzip.compress(index.encode())) <= 60_000, size
    later = [name for name in NAMES if name not in first]
    for part in ("markdown", "highlight", "editor"):
        assert any(name.startswith(part) for name in later), part
