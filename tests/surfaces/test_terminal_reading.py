"""What a model writes, as a terminal shows it: Markdown drawn while it arrives, and nothing of it able to act."""

import re
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword.display import visible
from lastword.terminal.model_words import MAX_HELD_LINES, ModelWords

WRITTEN = """# What I found

The **release notes** are _nearly_ done; see [the guide](https://example.org/guide).

1. Read `notes.md`
2. Write the table
   - first the names

> A quote

| file | lines |
|:-----|------:|
| a.py | 12 |

```python
def greet(name):
    return f"Hello, {name}", 42
```

The end.
"""


class Screen(StringIO):
    def isatty(self) -> bool:
        return True


def spoken(text: str, step: int = 7, screen: StringIO | None = None, *, plain: bool = False) -> str:
    """What is on the screen after a text arrived in pieces."""
    screen = screen or StringIO()
    speech = ModelWords(screen, plain=plain)
    for end in range(step, len(text), step):
        speech.say("m", visible(text[:end]))
    speech.say("m", visible(text), is_whole=True)
    return screen.getvalue()


@pytest.mark.parametrize("step", [1, 7, 1_000])
def test_markdown_is_drawn_as_it_arrives(step):
    """The signs are for programs. However the words arrive, the same is on the screen."""
    lines = [line.rstrip() for line in spoken(WRITTEN, step).splitlines()]
    assert all(line.startswith("┃") for line in lines)
    said = [line.removeprefix("┃").strip() for line in lines]
    assert "What I found" in said
    assert "The release notes are nearly done; see the guide (https://example.org/guide)." in " ".join(said)
    assert "1 Read notes.md" in said
    assert "• first the names" in said
    assert "▌ A quote" in said
    assert any(re.fullmatch(r"a\.py\s+12", line) for line in said)
    assert "def greet(name):" in said
    assert 'return f"Hello, {name}", 42' in said
    assert said[-1] == "The end."
    assert not {"**", "```", "|--", "# What"} & {
        sign for sign in ("**", "```", "|--", "# What") if sign in "\n".join(said)
    }


def test_code_and_words_have_colours_where_there_are_any(monkeypatch):
    """Legible without; easier with."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = spoken(WRITTEN, screen=Screen())
    assert "\x1b[1mrelease\x1b[0m \x1b[1mnotes\x1b[0m" in shown
    assert re.search("\x1b\\[[0-9;]+mdef\x1b\\[0m", shown)
    assert set(re.findall("\x1b.[0-9;]*(.)", shown)) == {"m"}


def test_plain_sentences_stay_as_they_were_written():
    """Whoever listens to a screen reader chose lines without signs of ours; the model's words are not ours."""
    said = [line.removeprefix("  ") for line in spoken(WRITTEN, plain=True).splitlines()[1:]]
    assert said == WRITTEN.rstrip().splitlines()


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("see [bank](https://evil.example/) now", "see bank (https://evil.example/) now"),
        ("see [x](javascript:alert(1)) now", "see [x](javascript:alert(1)) now"),
        ("see ![pixel](https://tracker.example/p.png) now", "see Picture: pixel (https://tracker.example/p.png) now"),
        ("see <b>html</b> now", "see <b>html</b> now"),
        ("a &#x202E;&#27;[2J&lt; b", "a &#x202E;&#27;[2J&lt; b"),
        ("[hid](https://a.example/%E2%80%AE%1B) x", "hid (https://a.example/%E2%80%AE%1B) x"),
        ("<https://a.example/%E2%80%AEx> x", "https://a.example/%E2%80%AEx x"),
        ("[r]: https://evil.example/\n\n[r]", "[r]: https://evil.example/\n\n[r]"),
        ("**a\u202eb\x1b[2J**", "a‹U+202E›b‹U+001B›[2J"),
        (
            "[bold red]x[/] [link=https://e.example]y[/link] :bomb:",
            "[bold red]x[/] [link=https://e.example]y[/link] :bomb:",
        ),
        ("- [bold]x[/bold] &#x202E;\n", "• [bold]x[/bold] &#x202E;"),
        ("# \x1b]0;title\x07 &#x200B;\n", "‹U+001B›]0;title‹U+0007› &#x200B;"),
        ("| a\u202e | &#x202E; |\n|---|---|\n| <i>x</i> | [y](javascript:z) |\n", "a‹U+202E›"),
        ("```\u202e\nrm\x1b[2J &#27;\n```\n", "rm‹U+001B›[2J &#27;"),
    ],
)
@pytest.mark.parametrize("step", [1, 1_000])
def test_hostile_markdown_is_text(written, shown, step):
    """No style hides where a link leads, no entity brings back what was marked, and nothing but words is written."""
    screen = StringIO()
    text = spoken(written, step, screen)
    lines = [line.removeprefix("┃").strip() for line in text.splitlines()]
    assert shown in "\n".join(lines)
    assert not {"\x1b", "\x07", "\u202e", "\u200b"} & set(text)


def test_a_long_piece_of_code_does_not_wait_for_its_end():
    """A model writes for minutes; whoever watches sees that it does."""
    screen = StringIO()
    speech = ModelWords(screen, plain=False)
    code = "```python\n" + "".join(f"line_{number} = {number}\n" for number in range(3 * MAX_HELD_LINES))
    speech.say("m", code)
    assert f"line_{MAX_HELD_LINES - 1} =" in screen.getvalue()
    speech.say("m", f"{code}```\n\nThe **end**.", is_whole=True)
    shown = screen.getvalue()
    assert [int(number) for number in re.findall(r"line_\d+ = (\d+)", shown)] == list(range(3 * MAX_HELD_LINES))
    assert "```" not in shown
    assert shown.endswith("┃ The end.\n")


@pytest.mark.parametrize("step", [1, 7, 1_000])
@pytest.mark.parametrize("after", ["", "\n\nThat is **all**."])
@pytest.mark.parametrize(
    "table",
    [
        "file | lines\n--- | ---:\na.py | 12\nb.py | 7",
        "file | lines\n:-|-:\na.py | 12\nb.py | 7",
        "file | lines |\n--- | --- |\na.py | 12 |\nb.py | 7 |",
        "| file | lines |\n|---|---|\n| a.py | 12 |\n| b.py | 7 |",
    ],
)
def test_a_table_is_drawn_however_its_rows_begin(table, after, step):
    """Half of the models write rows without a bar at their beginning, and people saw the signs."""
    said = [line.removeprefix("┃").strip() for line in spoken(f"Here:\n\n{table}{after}", step).splitlines()]
    rows = [re.split(r"\s{2,}", line) for line in said if re.search(r"\S\s{2,}\S", line)]
    assert rows == [["file", "lines"], ["a.py", "12"], ["b.py", "7"]]
    assert not any("|" in line or "---" in line for line in said)
    assert said[0] == "Here:"
    assert not after or said[-1] == "That is all."


@pytest.mark.parametrize("step", [1, 7, 1_000])
@pytest.mark.parametrize(
    "text", ["use a | b there\nand go on", "a | b\n-- is no rule | of a table", "a | b", "a |\n\n--- | ---"]
)
def test_a_bar_in_a_sentence_makes_no_table_of_it(text, step):
    """The second line decides, and what was held back until then is written as it is."""
    shown = "\n".join(line.removeprefix("┃").strip() for line in spoken(text, step).splitlines())
    assert shown.startswith(text.split("\n")[0])


def test_a_sentence_does_not_wait_for_its_end_because_it_might_become_a_table():
    """A model may think for a minute after its first word. Once a bar makes a table of it, that word is taken back."""
    screen = Screen()
    speech = ModelWords(screen, plain=False)
    speech.say("m", "file ")
    assert screen.getvalue() == "┃ file"
    speech.say("m", "file | lines\n--- | ---\na.py | 12", is_whole=True)
    shown = re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue())
    assert shown.startswith("┃ file\r\x1b[K┃ ")
    assert shown.count("file") == 2


@pytest.mark.parametrize(
    "written",
    [
        ">" * 5_000 + " kept",
        "> " * 200 + "kept",
        "- " * 200 + "kept",
        "".join("  " * depth + "- kept\n" for depth in range(60)),
        "> 1. " * 100 + "**kept**",
        "|" + "kept|" * 500 + "\n|" + "-|" * 500 + "\n|" + "kept|" * 500,
    ],
    ids=["quotes", "spaced quotes", "lists", "steps", "mixed", "columns"],
)
def test_what_is_nested_too_deeply_or_too_wide_to_be_drawn_is_shown_as_it_was_written(written):
    """A parser and a layout each have a limit, and dropped without a word what was beyond it."""
    shown = re.sub(r"[┃\s]", "", spoken(written, 10_000))
    assert shown.count("kept") == written.count("kept")


@settings(deadline=None, max_examples=150)
@given(st.text("ab1 \n*_`#>|-[]()<~.\\", max_size=60), st.integers(1, 9))
def test_no_letter_is_lost_whatever_the_signs_mean(text, step):
    """Signs may become styles; a word that was written is shown, behind our bar."""
    # What is taken back because it turned out to begin a table is not on the screen any more.
    shown = re.sub(r"[^\n]*\r\x1b\[K", "", spoken(text, step, Screen()))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert all(line.startswith("┃") for line in shown.splitlines())
    assert sorted(re.findall("[ab]", shown)) == sorted(re.findall("[ab]", text))
