"""What results hold, on the page and in the terminal: images are drawn, files offered, and nothing else happens."""

import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import lastword
from lastword.testing.scripted import ScriptedModel
from requirements import requirement
from surfaces.conftest import Houses, MakeTool, Run
from surfaces.windows import PATIENCE_SECONDS, Browserless, House

ROOT = Path(__file__).parents[2]


def png(width: int, height: int) -> bytes:
    """Bars on white, as a PNG."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    def bar(x: int, y: int) -> bytes:
        tall = (x // 40 * 37 + 60) % height
        return b"\x0f\x5c\x5c" if x % 40 < 28 and height - y < tall else b"\xff\xff\xff"

    rows = b"".join(b"\0" + b"".join(bar(x, y) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNG = png(320, 180)
HTML = b"<html><script>document.title = 'taken over'</script><h1>Allowed</h1></html>"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' onload=\"document.title='taken over'\"/>"


def add_tools(registry: lastword.ToolRegistry) -> None:
    @registry.tool(require_approval=False, display_name="Plot sales", icon="chart")
    def plot() -> lastword.ToolResult:
        """Draw the sales."""
        csv = lastword.File(b"month,sales\n1,60\n", name="sales.csv")
        return lastword.ToolResult(
            "Sales rose in May.", [lastword.Image(PNG, name="sales.png", alt="Sales by month"), csv]
        )

    @registry.tool(require_approval=False)
    def lie() -> list[Any]:
        """Return what is no image."""
        page = lastword.Image(HTML, media_type="image/png", name="a.png")
        drawing = lastword.Image(SVG, media_type="image/svg+xml", name="b.svg")
        return [page, drawing, lastword.File(HTML + b" ", media_type="text/html", name="../../c\u202e\n.html"), "words"]


@pytest.fixture
def house(houses: Houses) -> House:
    house = houses()
    add_tools(house.session.registry)
    return house


def path_of(call_id: str, digest: str) -> str:
    return f"/page/content?call_id={call_id}&digest={digest}"


def fetch(window: Browserless, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    return window.raw(method, path, headers={"Cookie": window.cookie, **headers})


@requirement("TOOL-64")
def test_an_image_is_served_as_what_it_is_and_may_be_kept(house, window):
    """The page draws it; opened by itself it can load nothing and run nothing."""
    outcome = house.call("plot").result(PATIENCE_SECONDS)
    status, found, body = fetch(window, path_of(outcome.call_id, outcome.content[0].digest))
    assert (status, body) == (200, PNG)
    assert found["content-type"] == "image/png"
    assert found["content-disposition"] == "inline; filename*=UTF-8''sales.png"
    assert found["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'; sandbox"
    assert found["x-content-type-options"] == "nosniff"
    assert found["cache-control"] == "private, max-age=31536000, immutable"
    assert found["cross-origin-resource-policy"] == "same-origin"


@requirement("TOOL-64")
def test_what_is_no_image_is_only_ever_saved(house, window):
    """HTML that is called a picture, a drawing that could hold a script: each is bytes, under a name of ours."""
    outcome = house.call("lie").result(PATIENCE_SECONDS)
    names = []
    for kept in outcome.content:
        status, found, _ = fetch(window, path_of(outcome.call_id, kept.digest))
        assert status == 200
        assert found["content-type"] in ("application/octet-stream", "text/plain; charset=utf-8")
        assert found["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert found["x-content-type-options"] == "nosniff"
        assert "sandbox" in found["content-security-policy"]
        names.append(found["content-disposition"].partition("''")[2])
    assert names == ["a.png", "b.svg", "c.html", "text.txt"]


@requirement("TOOL-64", "API-52")
def test_content_needs_the_cookie_and_comes_to_no_other_site(house, window):
    """A picture is as private as the rest of the conversation."""
    outcome = house.call("plot").result(PATIENCE_SECONDS)
    path = path_of(outcome.call_id, outcome.content[0].digest)
    assert Browserless(house.address).raw("GET", path)[0] == 401
    assert fetch(window, path, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert fetch(window, path, "POST")[0] == 405


@requirement("TOOL-64")
@pytest.mark.parametrize(
    ("call", "digest"),
    [
        ("{call}", "0" * 64),
        ("{call}", ""),
        ("{call}", "../../../etc/passwd"),
        ("{call}", "%00"),
        ("{other}", "{digest}"),
        ("", "{digest}"),
        ("nothing", "{digest}"),
    ],
)
def test_only_what_the_journal_names_for_this_call_is_served(house, window, call, digest):
    """The digest of something that is kept for another reason opens nothing."""
    one, other = house.call("plot").result(PATIENCE_SECONDS), house.call("lie").result(PATIENCE_SECONDS)
    facts = {"call": one.call_id, "other": other.call_id, "digest": one.content[0].digest}
    status, _, body = fetch(window, path_of(call.format(**facts), digest.format(**facts)))
    assert status == 404
    assert json.loads(body)["error"]["code"] == "unknown_content"


@requirement("TOOL-64")
def test_what_was_pruned_or_changed_is_refused_in_words(house, window):
    """What is gone is said to be gone, and what is not what it was is not shown."""
    one = house.call("plot").result(PATIENCE_SECONDS)
    path = path_of(one.call_id, one.content[0].digest)
    held = house.store._contents
    held[one.content[0].digest] = b"\x89PNG\r\n\x1a\nforged"
    status, _, body = fetch(window, path)
    assert status == 409
    assert b"forged" not in body
    assert "was changed after it was written" in json.loads(body)["error"]["message"]
    assert house.do(house.session.journal.prune(4e9)).contents == 2
    status, _, body = fetch(window, path)
    assert status == 404
    assert "pruned" in json.loads(body)["error"]["message"]


@requirement("TOOL-64")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_draws_images_and_offers_files(house, windows, scheme, tmp_path):
    """A person sees the picture beside the words, and gets the file with one press."""
    page = windows(house.key(), color_scheme=scheme)
    house.call("plot").result(PATIENCE_SECONDS)
    image = page.get_by_role("img", name="Sales by month")
    expect(image).to_be_visible()
    expect(image).to_have_js_property("naturalWidth", 320)
    row = page.locator(".call.good")
    expect(row).to_contain_text("Sales rose in May.")
    expect(row).not_to_contain_text("kept for the person")
    expect(row).to_contain_text("text/csv, 17 bytes")
    with page.expect_download() as download:
        row.get_by_role("link", name="sales.csv").click()
    assert download.value.suggested_filename == "sales.csv"
    assert Path(download.value.path()).read_bytes() == b"month,sales\n1,60\n"
    page.reload()
    expect(page.get_by_role("img", name="Sales by month")).to_be_visible()
    page.screenshot(path=str(tmp_path / f"{scheme}.png"))


@requirement("TOOL-64")
def test_nothing_that_lies_about_its_type_is_drawn_or_run(house, page):
    """A tool may pass on what a stranger wrote. The page shows a name, a type and a size."""
    house.call("lie").result(PATIENCE_SECONDS)
    expect(page.locator(".content")).to_have_count(4)
    expect(page.locator(".content img")).to_have_count(0)
    for name in ("a.png", "b.svg", "c.html"):
        with page.expect_download() as download:
            page.get_by_role("link", name=name).click()
        assert download.value.suggested_filename == name
    expect(page).to_have_title("lastword")


@requirement("TOOL-64")
def test_an_image_that_cannot_be_shown_any_more_says_so(house, windows):
    """A broken picture says nothing; a sentence does."""
    one = house.call("plot").result(PATIENCE_SECONDS)
    house.store._contents[one.content[0].digest] = b"forged"
    page = windows(house.key())
    expect(page.locator(".content.image .problem")).to_contain_text("It cannot be shown.")
    expect(page.locator(".content img")).to_have_count(0)


DRAW = """
import lastword
def execute(params):
    image = lastword.Image(b"\\x89PNG\\r\\n\\x1a\\n" + bytes(3000), name="a\\u202e.png", alt="Sales by month")
    return lastword.ToolResult({"success": True, "message": "Drawn."}, [image])
AssistantTool.register_execute_tool(execute)
"""


@requirement("TOOL-64")
def test_the_chat_names_what_a_call_returned_and_says_how_to_keep_it(run: Run, make_tool: MakeTool, tmp_path: Path):
    """A terminal draws no pictures. The command that it names writes the file, and the model is given the image."""
    make_tool("draw", DRAW, requireApproval=False, effect="none")
    with ScriptedModel([json.dumps({"tool_request": {"name": "draw", "arguments": {}}}), "Look."]) as model:
        program = run("chat", "--tools", "tools", LASTWORD_UPSTREAM=model.url)
        program.until("▸")
        program.say("Draw.", "┃ Look.")
        assert "✓ draw (done): Drawn." in program.text
        assert "┊ image a.png, image/png, 3 KB: Sales by month" in program.text
        named = re.search(r"To keep: lastword show (\w+) --save DIR", program.text)
        assert named is not None
        assert model.requests[-1]["messages"][-1]["content"][1]["type"] == "image_url"
        program.say("/quit")
        program.finish()
    saving = run("show", named[1], "--save", "kept")
    saving.until("wrote kept/a.png")
    assert saving.finish() == 0
    assert (tmp_path / "kept" / "a.png").stat().st_size == 3008
