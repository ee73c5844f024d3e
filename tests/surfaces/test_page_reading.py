"""What a model writes, as the page shows it: Markdown drawn, code in colours, and nothing of it able to act."""

from playwright.sync_api import Page, expect

WRITTEN = """# What I found

The **release notes** are _nearly_ done; see [the guide](https://example.org/guide) and https://example.org/.

1. Read `notes.md`
2. Write the table
   - first the names
   - then the ~~dates~~ days

- [x] tests
- [ ] docs

> A quote
>
> > inside a quote

| file | lines |
|:-----|------:|
| a.py | 12 |
| b.py | 7 |

```python
def greet(name):
    # say it
    return f"Hello, {name}", 42
```

```
plain text
```

---

The end.
"""

HOSTILE = """[press](javascript:alert(1)) [data](data:text/html,<script>alert(1)</script>) <script>alert(2)</script>

<img src=x onerror=alert(3)> <a href="javascript:alert(4)">x</a> <style>body{display:none}</style>

<div onclick="alert(5)">

**bold <b onmouseover=alert(6)>inside</b>**

</div>

![picture](https://tracker.example/pixel.png) ![x](javascript:alert(7))

[bank](https://bank.example@evil.example/) [rel](/page/lock) [frag](#settings)

[jav&#x61;script](jav&#x61;script:alert(8))

[https://bank.example](https://evil.example/)

<https://example.org/a\u202egpj.exe> [hid\u200bden](https://example.org/\u202e)

> > > > > > > > > > > > > > > > > > > > deep

[ref]: javascript:alert(9)

[ref]

```"><script>alert(10)</script>
rm -rf\u200b /
```
"""


def say(page: Page, words: str) -> None:
    page.get_by_label("Message to the assistant").fill(words)
    page.get_by_role("button", name="Send").click()


def test_what_a_model_writes_is_drawn(houses, windows):
    """People read headings, lists, tables and code; raw signs are for programs. A link says where it leads, in a window
    of its own: its name is the model's choice, and the address is what a person has to know before following it."""
    page = windows(houses(WRITTEN).key())
    say(page, "go")
    prose = page.locator(".message.assistant .prose")
    expect(prose.locator("h2")).to_have_text("What I found")
    expect(prose.locator("strong")).to_have_text("release notes")
    expect(prose.locator("em")).to_have_text("nearly")
    expect(prose.locator("ol > li")).to_have_count(2)
    expect(prose.locator("ol ul > li")).to_have_count(2)
    expect(prose.get_by_role("img", name="done", exact=True)).to_have_count(1)
    expect(prose.locator("blockquote blockquote")).to_have_text("inside a quote")
    expect(prose.get_by_role("cell", name="12")).to_have_class("right")
    expect(prose.locator("figure pre").first).to_have_text(
        'def greet(name):\n    # say it\n    return f"Hello, {name}", 42'
    )
    expect(prose.locator("figure .tok-keyword").first).to_have_text("def")
    expect(prose.locator("figure .tok-comment")).to_have_text("# say it")
    expect(prose.locator("p").last).to_have_text("The end.")
    link = page.get_by_role("link", name="the guide")
    expect(link).to_have_text("the guide (https://example.org/guide)")
    for name, value in {"target": "_blank", "href": "https://example.org/guide"}.items():
        expect(link).to_have_attribute(name, value)
    assert "noopener" in (link.get_attribute("rel") or "")
    expect(page.get_by_role("link", name="https://example.org/", exact=True)).to_have_text("https://example.org/")


def test_a_piece_of_code_can_be_copied(houses, windows):
    """What is in the clipboard is what was shown."""
    page = windows(houses(WRITTEN).key(), permissions=["clipboard-read", "clipboard-write"])
    say(page, "go")
    page.locator("figure.code-block").first.get_by_role("button", name="Copy").click()
    expect(page.locator("figure.code-block").first.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == 'def greet(name):\n    # say it\n    return f"Hello, {name}", 42'


def test_hostile_markdown_is_text(houses, windows):
    """No link, image or markup of a model's acts, fetches or hides. The fixture watches errors and requests."""
    page = windows(houses(HOSTILE).key())
    spoken: list[str] = []
    page.on("dialog", lambda dialog: (spoken.append(dialog.message), dialog.dismiss()))
    say(page, "go")
    message = page.locator(".message.assistant")
    expect(message.locator(".prose figure")).to_have_count(1)
    found = message.evaluate(
        """node => ({
            hrefs: [...node.querySelectorAll('[href]')].map(a => a.getAttribute('href')),
            tags: [...new Set([...node.querySelectorAll('*')].map(e => e.localName))].sort(),
            handlers: [...node.querySelectorAll('*')].flatMap(e => e.getAttributeNames()).filter(
                name => name.startsWith('on') || name === 'src' || name === 'style'),
        })"""
    )
    assert found["handlers"] == []
    assert not {"script", "img", "style", "iframe", "b"} & set(found["tags"])
    assert sorted(found["hrefs"]) == ["https://evil.example/", "https://tracker.example/pixel.png"]
    expect(message).to_contain_text("[press](javascript:alert(1))")
    expect(message).to_contain_text("<script>alert(2)</script>")
    expect(message).to_contain_text("<img src=x onerror=alert(3)>")
    expect(message).to_contain_text("https://bank.example (https://evil.example/)")
    expect(message).to_contain_text("Picture: picture (https://tracker.example/pixel.png)")
    expect(message.locator("mark.odd").first).to_contain_text("202E")
    expect(message.locator("figure mark.odd")).to_contain_text("200B")
    assert message.locator("blockquote").count() <= 14
    assert spoken == []


def test_a_message_of_nothing_but_signs_is_shown_and_the_page_goes_on(houses, windows):
    """A parser that takes the square of the time, or its stack, must not take the window with it. That it gets none of
    the signs that would do that is told in blocks.test.ts."""
    page = windows(houses(">" * 40_000, "after").key())
    say(page, "go")
    expect(page.locator(".message.assistant .as-written")).to_contain_text(">" * 200)
    say(page, "again")
    expect(page.locator(".message.assistant .prose").last).to_have_text("after")


def test_an_answer_says_what_the_models_server_counted(houses, windows):
    """Tokens cost. Where they are counted a person need not guess, and where they are not nothing is made up."""
    page = windows(houses({"name": "count", "arguments": {"to": 1}}, "Three.", "Four.").key())
    say(page, "go")
    expect(page.locator(".message.assistant .used").last).to_have_text("Used: count · 4 tokens")
