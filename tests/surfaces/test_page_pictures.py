"""How the page looks: pictures that are kept and compared, axe on every view, and contrast measured on the pixels.

LASTWORD_WRITE_GOLDEN=1 keeps new pictures: look at every one of them.
"""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from PIL import Image, ImageChops, ImageFilter
from playwright.sync_api import Browser, Page, expect

from surfaces.test_page_reading import WRITTEN
from surfaces.windows import ARMED, HELLO, PATIENCE_SECONDS, WELCOME, House, Scripted, read_to_end, settled

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
AXE = ROOT / "src" / "lastword" / "web" / "ui" / "node_modules" / "axe-core" / "axe.min.js"

SIZES: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1240, "height": 900}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "is_mobile": True,
        "has_touch": True,
    },
}
# Each is played once, and a picture is taken wherever it comes by. What would change a later scene has its own story.
STORIES = (("card", "settings", "grave", "chat", "reading", "conversations"), ("timeline",), ("acts",))
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# The other two pairs are looked at in the long tests.
LOOKS = (("light", "wide"), ("dark", "phone"))
ALL_LOOKS = (
    *LOOKS,
    *(pytest.param(theme, size, marks=pytest.mark.long) for theme, size in (("dark", "wide"), ("light", "phone"))),
)


# Fonts are drawn a little differently on every machine: a place has changed when it differs by so many levels.
CHANGED_LEVEL = 40
# Beyond this share of changed places around any place, something was added, taken away or moved. Over a whole picture a
# button is next to nothing; around itself it is much.
MAX_CHANGED = 0.2
AROUND_PIXELS = 8
# WCAG 2 AA for text; large text may have less.
MIN_CONTRAST = 4.5
MIN_CONTRAST_LARGE = 3.0
# Letters that are drawn large have their colour.
SCALE = 2
SCALED = {"device_scale_factor": SCALE}
# How far a stroke may stay behind its colour: thin letters are drawn lighter than they are meant.
DRAWN_LIGHTER = 0.85


class Clock:
    """Stands still, unless somebody moves it: what is in a picture must be the same every time."""

    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """A conversation to look at, up to the scene that is wanted."""

    def __init__(self, folder: Path) -> None:
        (folder / "hello.py").write_text(HELLO)
        self.clock = Clock()
        self.house = House(
            folder,
            id="pictures",
            clock=self.clock,
            model=Scripted(
                {"name": "read_file", "arguments": {"path": "hello.py"}},
                {"name": "write_file", "arguments": {"path": "hello.py", "text": WELCOME}},
                "Done. `greet` now returns “Welcome, …!” and the script prints it.\n\nShall I publish **1.4.0**?",
                {"name": "publish", "arguments": {"version": "1.4.0", "index": "https://upload.example/simple"}},
                "You are right, that was the real index. I will use the test index the next time you ask.",
                WRITTEN,
            ),
        ).open()

    def play(self, page: Page, last: str) -> Iterator[str]:
        """What happens up to this scene: stops at each that is on the way."""
        self.say(page, "Greet people with Welcome instead of Hello, and return the greeting instead of printing it.")
        expect(page.locator(ARMED)).to_contain_text("Write file")
        settled(page)
        yield "card"
        if last == "card":
            return
        if last in ("conversations", "acts"):
            page.get_by_role("link", name="Settings").click()
            expect(page.get_by_role("heading", name="Who approves")).to_be_visible()
            yield "settings"
            if last == "acts":
                self.act(page)
                yield "acts"
                return
            page.get_by_role("link", name="Chat").click()
        self.clock.now += 6.2
        read_to_end(page)
        page.locator(f"{ARMED} .primary").click()
        expect(page.locator(".message.assistant")).to_contain_text("Shall I publish")
        self.clock.now += 9
        self.say(page, "Yes, to the test index.")
        settled(page)
        self.clock.now += 14.5
        yield "grave"
        page.locator(ARMED).get_by_role("button", name="Deny with a reason").click()
        page.locator(".denying textarea").fill("That is the real index.")
        settled(page)  # The field has pushed the buttons away.
        page.locator(".denying .deny").click()
        expect(page.locator(".message.assistant").last).to_contain_text("You are right")
        yield "chat"
        if last == "timeline":
            self.go_on(page)
            yield "timeline"
            return
        self.read(page)
        yield "reading"
        self.list(page)
        yield "conversations"

    def act(self, page: Page) -> None:
        page.get_by_role("radio", name="trusting").check()
        expect(page.get_by_text("The preset approves by itself")).to_have_count(1)
        page.get_by_role("button", name="Make an address").click()
        expect(page.get_by_label("Address with a key")).to_have_count(1)
        page.get_by_role("main").get_by_role("button", name="Stop everything").click()
        told = page.get_by_role("main").get_by_role("status").filter(has_text="Everything is stopped.")
        expect(told).to_have_count(1)
        # Who asked is called otherwise in every run.
        page.evaluate(
            "for (const li of document.querySelectorAll('.stopped li')) li.textContent ="
            " li.textContent.replace(/by (a program|[^ ]*), process \\d+/, 'by agent.py, process 4242')"
        )
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")

    def read(self, page: Page) -> None:
        self.clock.now += 30
        self.say(page, "Write it up.")
        expect(page.locator(".tok-keyword").first).to_be_visible()
        expect(page.get_by_role("button", name="Send")).to_be_visible()

    def list(self, page: Page) -> None:
        self.clock.now += 60
        page.get_by_role("button", name="New conversation").click()
        expect(page.locator(".message")).to_have_count(0)
        page.get_by_role("button", name="Conversations", exact=True).click()
        expect(page.locator(".shelf li")).to_have_count(2)

    def go_on(self, page: Page) -> None:
        self.clock.now += 7_400
        self.house.call("count", to=1).result(PATIENCE_SECONDS)
        self.clock.now += 2
        asking = self.house.call("publish", version="1.4.0", index="https://test.example/simple")
        settled(page)
        self.clock.now += 21
        page.locator(ARMED).locator(".word").press_sequentially("allow")
        page.locator(ARMED).get_by_role("button", name="Allow").click()
        assert asking.result(PATIENCE_SECONDS).success
        page.get_by_role("link", name="Timeline").click()
        expect(page.locator(".bars details")).to_have_count(5)
        page.locator(".bars summary").nth(2).click()

    def say(self, page: Page, words: str) -> None:
        page.get_by_label("Message to the assistant").fill(words)
        page.get_by_role("button", name="Send").click()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.house.close()


def window_of(browser: Browser, house: House, **options: Any) -> Page:
    context = browser.new_context(timezone_id="UTC", locale="en-GB", reduced_motion="reduce", **options)
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    page = context.new_page()
    page.goto(house.key())
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    return page


def picture_of(page: Page, clip: Any = None) -> Image.Image:
    """What is on the screen, or on this part of it, once everything is where it belongs and nothing blinks."""
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur(); document.fonts.ready")
    # The id of a call is another one every time.
    page.evaluate("document.querySelectorAll('.steps > p.mono').forEach(id => id.textContent = '0'.repeat(32))")
    page.evaluate(
        "document.querySelectorAll('main [role=status] > div').forEach(line => "
        "line.textContent = line.textContent.replace(/[0-9a-f]{32}/, '0'.repeat(32)))"
    )
    # So are the key of an address and the port.
    page.evaluate(
        "document.querySelectorAll('input[readonly].mono').forEach(field => field.value = 'http://127.0.0.1')"
    )
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return Image.open(io.BytesIO(page.screenshot(caret="hide", clip=clip))).convert("RGB")


@pytest.mark.parametrize(("theme", "size"), ALL_LOOKS)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story[-1])
def test_the_page_looks_as_it_was_agreed(browser, stage, story, theme, size):
    """Light and dark, wide and phone: whatever changes how it looks is looked at."""
    page = window_of(browser, stage.house, color_scheme=theme, **SIZES[size])
    seen = [
        scene for scene in stage.play(page, story[-1]) if scene in story and compared(page, f"{scene}-{theme}-{size}")
    ]
    assert seen == list(story)
    page.context.close()


@pytest.mark.parametrize(
    ("scene", "size", "least", "theme"),
    [
        ("card", "wide", 9, "light"),
        pytest.param("card", "phone", 9, "dark", marks=pytest.mark.long),
        pytest.param("acts", "phone", 8, "light", marks=pytest.mark.long),
    ],
)
def test_a_picture_without_one_of_its_buttons_is_another_picture(browser, stage, scene, size, least, theme):
    """A comparison that lets a button go missing compares nothing."""
    page = window_of(browser, stage.house, color_scheme=theme, **SIZES[size])
    assert list(stage.play(page, scene))[-1] == scene
    whole = picture_of(page)
    assert most_changed(whole, picture_of(page))[0] == 0
    width, height = whole.size
    scale = width / page.evaluate("innerWidth")
    found = page.locator("button:visible, a:visible, .effect, .path").element_handles()
    buttons = [button for button in found if button.evaluate(IN_SIGHT)]
    assert len(buttons) >= least
    for button in buttons:
        box = button.bounding_box()
        assert box is not None
        # What is far from it stays as it is.
        left, above = (max(0, int(box[side]) - 40) for side in ("x", "y"))
        right, below = int(box["x"] + box["width"]) + 40, int(box["y"] + box["height"]) + 40
        around = [int(side * scale) for side in (left, above, right, below)]
        part = whole.crop((around[0], around[1], min(width, around[2]), min(height, around[3])))
        clip = {"x": left, "y": above, "width": part.width / scale, "height": part.height / scale}
        button.evaluate("button => button.style.visibility = 'hidden'")
        changed, _, _ = most_changed(part, picture_of(page, clip))
        button.evaluate("button => button.style.visibility = ''")
        assert changed > MAX_CHANGED, f"{theme}: {button.text_content()} could go missing"
    page.context.close()


def compared(page: Page, name: str) -> bool:
    """Whether a picture is there that looks like this."""
    compare(PICTURES / f"{name}.png", picture_of(page))
    return True


def compare_in_both(page: Page, name: str, size: str, steady: str = "() => {}") -> None:
    """The same in the light and in the dark, once what is another every time was made steady."""
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        page.evaluate(steady)
        compared(page, f"{name}-{theme}-{size}")


def compare(kept: Path, picture: Image.Image) -> None:
    """Compare roughly: a letter may be drawn elsewhere by a hair, a button may not."""
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        kept.parent.mkdir(parents=True, exist_ok=True)
        picture.save(kept, optimize=True)
    before = Image.open(kept).convert("RGB")
    changed, x, y = most_changed(before, picture)
    assert changed <= MAX_CHANGED, f"{kept.name} looks different around {x}, {y}: {changed:.0%} of the places there"


def most_changed(before: Image.Image, after: Image.Image) -> tuple[float, int, int]:
    """Around which place most has changed, and which share of the places there."""
    assert after.size == before.size
    rough = [image.convert("L").filter(ImageFilter.BoxBlur(2)) for image in (after, before)]
    levels = ImageChops.difference(*rough).point([255 if level > CHANGED_LEVEL else 0 for level in range(256)])
    around = levels.filter(ImageFilter.BoxBlur(AROUND_PIXELS))
    levels_around = around.tobytes()
    most = max(levels_around)
    place = levels_around.index(most)
    return most / 255, place % around.width, place // around.width


def views(page: Page, stage: Stage) -> Iterator[str]:
    """Every view there is, one after the other, with something in it."""
    yield from stage.play(page, "card")
    page.locator(ARMED).get_by_role("button", name="Edit arguments").click()
    page.locator(ARMED).get_by_role("button", name="Deny with a reason").click()
    yield "card being answered"
    page.locator(".denying").get_by_role("button", name="Back").click()
    page.locator(ARMED).get_by_role("button", name="Edit the text").click()
    read_to_end(page)  # It is another form, and to be seen as such.
    yield "text being edited"
    page.locator(f"{ARMED} .primary").click()
    expect(page.locator(".message.assistant")).to_contain_text("Shall I publish")
    stage.say(page, "Yes, to the test index.")
    expect(page.locator(ARMED)).to_contain_text("Cannot be undone")
    yield "irreversible card"
    page.locator(ARMED).get_by_role("button", name="Deny", exact=True).click()
    expect(page.locator(".message.assistant").last).to_contain_text("You are right")
    page.get_by_role("button", name="Details").first.click()
    yield "chat"
    stage.read(page)
    yield "reading"
    stage.list(page)
    yield "conversations"
    page.locator(".shelf .title:not([aria-current])").click()
    expect(page.locator(".message.you").last).to_contain_text("Write it up.")
    page.get_by_role("link", name="Timeline").click()
    page.locator(".bars summary").first.click()
    expect(page.locator(".steps").first).to_be_visible()
    yield "timeline"
    page.get_by_role("link", name="Settings").click()
    expect(page.get_by_role("heading", name="Who approves")).to_be_visible()
    yield "settings"


def picture_with_texts(page: Page) -> tuple[Image.Image, list[Any]]:
    """What a window shows, and where its texts stood while it was taken: before and after in the same places."""
    for _ in range(50):
        page.evaluate("scrollTo(0, 0)")
        before = page.evaluate(TEXTS)
        screen = Image.open(io.BytesIO(page.screenshot(caret="hide"))).convert("RGB")
        if before == page.evaluate(TEXTS):
            return screen, before
    raise AssertionError("the page does not come to rest")


@pytest.mark.parametrize("size", ["wide", pytest.param("phone", marks=pytest.mark.long)])
def test_nothing_on_any_view_keeps_people_out(browser, stage, size):
    """What axe can find of it. And every text can be read against what is behind it: measured on the pixels, because
    rules about colours are satisfied by white on white."""
    viewport = {"viewport": {"width": 390 if size == "phone" else 900, "height": 1400}}
    page = window_of(browser, stage.house, **SIZES[size] | SCALED | viewport)
    for view in views(page, stage):
        assert [f"{view}: {told}" for told in found_by_axe(page, "document")] == []
        for theme in THEMES:
            page.emulate_media(color_scheme=theme)
            assert [f"{view}, {theme}: {told}" for told in hard_to_read(page)] == []
    page.context.close()


def hard_to_read(page: Page) -> list[str]:
    """Each text on the screen that has too little contrast."""
    screen, texts = picture_with_texts(page)
    assert len(texts) > 5
    found: list[str] = []
    for words, x, y, width, height, pixels, weight in texts:
        right, below = int((x + width) * SCALE), int((y + height) * SCALE)
        contrast = contrast_in(screen.crop((int(x * SCALE), int(y * SCALE), right, below)))
        is_large = pixels >= 24 or (pixels >= 18.6 and weight >= 600)
        if contrast < (MIN_CONTRAST_LARGE if is_large else MIN_CONTRAST) * DRAWN_LIGHTER:
            found.append(f"“{words}” has a contrast of {contrast:.1f}")
    return found


def found_by_axe(page: Page, where: str) -> list[str]:
    """What axe has against this part of the page."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate(f"axe.run({where}, {{resultTypes: ['violations']}})")
    return [f"{problem['id']}: {problem['nodes'][0]['html'][:160]}" for problem in found["violations"]]


# Neither beyond the edges of the window nor covered.
IN_SIGHT = """element => {
    const box = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}"""

# Every piece of text that is on the screen and not covered, with its place and size; also inside the editor.
TEXTS = """() => {
    const found = [];
    const walk = root => {
        const nodes = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        for (let node; (node = nodes.nextNode()); ) {
            const words = node.textContent.trim(), parent = node.parentElement;
            if (!words || !parent || parent.closest("button:disabled, option, script, noscript, .unseen")) continue;
            if (!parent.checkVisibility({visibilityProperty: true})) continue;
            const range = document.createRange();
            range.selectNodeContents(node);
            const box = [...range.getClientRects()].sort((a, b) => b.width - a.width)[0];
            if (!box || box.width < 4 || box.height < 6 || box.top < 60 || box.bottom > innerHeight - 4) continue;
            const x = box.left + box.width / 2, y = box.top + box.height / 2;
            let top = document.elementFromPoint(x, y);
            while (top?.shadowRoot) {
                const inner = top.shadowRoot.elementFromPoint(x, y);
                if (!inner || inner === top) break;
                top = inner;
            }
            if (!top || !(top === parent || parent.contains(top) || top.contains(parent))) continue;
            const style = getComputedStyle(parent);
            const size = [parseFloat(style.fontSize), +style.fontWeight];
            found.push([words.slice(0, 40), box.left, box.top, box.width, box.height, ...size]);
        }
        for (const element of root.querySelectorAll("*")) if (element.shadowRoot) walk(element.shadowRoot);
    };
    walk(document.body);
    return found;
}"""


def contrast_in(box: Image.Image) -> float:
    """Between what is behind, the commonest colour, and whatever stands out most from it and is no speck."""
    colors: Any = box.getcolors(box.width * box.height)
    counted = sorted(colors, reverse=True)
    behind = luminance(counted[0][1])
    ratios = [ratio(luminance(color), behind) for times, color in counted if times > 2]
    return max(ratios, default=1.0)


def ratio(one: float, other: float) -> float:
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


def luminance(color: tuple[int, int, int]) -> float:
    parts = [c / 255 for c in color]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
