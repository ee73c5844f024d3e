"""Folding, and what is left alone. Hostile text is in attack/test_hostile_text.py."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword import display
from lastword.display import displayable, fold, visible
from requirements import requirement


@requirement("TOOL-44")
@settings(deadline=None, max_examples=200)
@given(st.text(), st.integers(1, 10), st.none() | st.integers(1, 10))
def test_folding_loses_nothing_without_counting_it(text, lines, width):
    """What is shown is the beginning, and the number says how many lines are not."""
    shown, hidden = fold(text, lines, width)
    assert shown.count("\n") + 1 <= lines
    if hidden == 0:
        assert shown.replace("\n", "") == text.replace("\n", "")
    else:
        assert text.replace("\n", "").startswith(shown.replace("\n", ""))
        assert hidden > 0


@pytest.mark.parametrize(
    ("text", "lines", "width", "shown"),
    [
        ("a\nb\nc", 2, None, ("a\nb", 1)),
        ("a\nb", 2, None, ("a\nb", 0)),
        ("abcdef", 2, 2, ("ab\ncd", 1)),
        ("", 1, 5, ("", 0)),
        ("\n\n", 2, None, ("\n", 1)),
    ],
)
def test_folding_by_lines_and_by_width(text, lines, width, shown):
    """A long line is as long as many."""
    assert fold(text, lines, width) == shown


def test_plain_text_stays_as_it_is():
    """Nobody should have to read around marks that mark nothing."""
    assert visible("Send 5 € to Ann?") == "Send 5 € to Ann?"
    assert visible("Send\u200b") != "Send\u200b"
    assert visible("") == ""


def test_half_characters_have_a_replacement():
    """And whole ones, also outside of the basic plane, stay."""
    assert displayable("a\ud83d") == "a\ufffd"
    assert displayable("😀 é") == "😀 é"


def test_a_long_text_is_asked_about_each_of_its_characters_once():
    """A window marks on the loop what a model says: the script of every letter of 200,000 took half a second there."""
    before = display._script.cache_info(), display._kind.cache_info()
    display.visible("naïve слово " * 10_000)
    after = display._script.cache_info(), display._kind.cache_info()
    assert sum(now.hits + now.misses - then.hits - then.misses for then, now in zip(before, after, strict=True)) < 100
