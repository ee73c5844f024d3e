"""The formatter: the same tree, the same comments, and nothing left to change."""

import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.script import PlacedError, format_script, parse, plan
from lastword.script.tokens import tokens_and_comments
from requirements import requirement
from script.programs import Writer
from tries import tries


def shape(node: Any) -> Any:
    """A tree without the places of its tokens."""
    if isinstance(node, msgspec.Struct):
        fields = [name for name in node.__struct_fields__ if not name.endswith(("at", "ats")) and name != "source"]
        return (type(node).__name__, *(shape(getattr(node, name)) for name in fields))
    if isinstance(node, tuple):
        return tuple(shape(one) for one in node)
    return (type(node).__name__, node)


def comments(text: str) -> list[str]:
    return sorted(piece.rstrip() for _, piece, is_comment in tokens_and_comments(text) if is_comment)


@requirement("NUWA-52")
@tries()
@given(st.integers(0, 2**32), st.integers(1, 20))
def test_formatting_keeps_the_tree_and_the_comments_and_is_done_at_once(seed: int, size: int) -> None:
    """Parse, print, parse again gives the same tree; a second time changes nothing; no comment is lost."""
    random = Random(seed)
    lines = Writer(random, size).program().split("\n")
    for number in range(len(lines)):
        if random.random() < 0.3:
            lines[number] += f" // note {number}  "
        if random.random() < 0.1:
            lines[number] = f"// above {number}\n\n\n{lines[number]}"
    text = "\n".join(lines)
    formatted = format_script(text)
    # Parentheses that the tree does not need are gone, so the depth of the text may be less.
    assert shape(parse(formatted).body) == shape(parse(text).body)
    assert comments(formatted) == comments(text)
    assert format_script(formatted) == formatted


@requirement("NUWA-52")
@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("LET a=1 LET b=(a)(2)", "LET a = 1\nLET b = a\n2\n"),
        ("LET b = (a) (1 + 2) * 3", "LET b = (a)\n(1 + 2) * 3\n"),
        ("LET b = 1 ([2][0]) + 3 (-4)", "LET b = 1\n([2][0] + 3)\n(-4)\n"),
        ("PRINT(((1+2))*3 - (4 - 5))", "PRINT((1 + 2) * 3 - (4 - 5))\n"),
        ("LET x = 0.0000001 LET y = 1000000000000000000000.5", "LET x = 0.0000001\nLET y = 1000000000000000000000\n"),
        ('LET o = {"a": 1, "b c": 2, "END": 3}', 'LET o = {a: 1, "b c": 2, "END": 3}\n'),
        ("IF a THEN ELSE END", "IF a THEN\nELSE\nEND\n"),
        ("// only a comment", "// only a comment\n"),
        ("", ""),
        ("PRINT(1) // one\n\n\n\nPRINT(2)\n// end", "PRINT(1)  // one\n\nPRINT(2)\n// end\n"),
        ("LET a = [1, // inside\n 2]", "// inside\nLET a = [1, 2]\n"),
        ("FOR x IN l DO // loop\n// first\nEND // end", "FOR x IN l DO  // loop\n  // first\nEND  // end\n"),
        ("CALL t { END: 1 }", "CALL t { END: 1 }\n"),
        ('LET o = {"": 1}', 'LET o = {"": 1}\n'),
        ("CALL t {}\n[1]", "CALL t {}\n[1]\n"),
        ("CALL t {}\n-1 + 2", "CALL t {}\n-1 + 2\n"),
        ("CALL t {} (1)", "CALL t {}\n1\n"),
        ("(CALL t {}) + 1", "(CALL t {} + 1)\n"),
        ("(CALL t {}).x[0]", "(CALL t {}.x[0])\n"),
        ("(CALL t {})\n[1]", "(CALL t {}[1])\n"),
        ("LET a = CALL t {}.x\nb (CALL t {}.x)", "LET a = CALL t {}.x\nb(CALL t {}.x)\n"),
        ("LET a = (b) (CALL t {}.x)", "LET a = (b)\n(CALL t {}.x)\n"),
        ('PRINT("\\u00e9\\n\\"")', 'PRINT("é\\n\\"")\n'),
    ],
)
def test_a_text_is_laid_out_like_this(text: str, formatted: str) -> None:
    """The corners, one by one."""
    assert format_script(text) == formatted
    assert shape(parse(formatted).body) == shape(parse(text).body)


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(
    ["", "END", "a", "_", "é", "a b"]
)


@requirement("NUWA-52")
@tries()
@given(st.dictionaries(KEYS, st.integers(0, 9), max_size=5))
def test_whatever_a_key_is_it_is_written_so_that_it_is_read_again(value: dict[str, int]) -> None:
    """A key is any text, the empty one too; only what looks like a name stands without quotes."""
    written = ", ".join(f"{json.dumps(key)}: {number}" for key, number in value.items())
    text = f"PRINT({{{written}}})"
    formatted = format_script(text)
    assert shape(parse(formatted).body) == shape(parse(text).body)
    assert format_script(formatted) == formatted
    steps = plan(f"CALL t {{ o: {{{written}}} }}")
    assert steps[0].arguments[0].value == value


def test_a_long_call_stands_on_several_lines() -> None:
    """A line that nobody reads to its end hides what it does."""
    text = 'CALL write_file { path: "a/rather/long/path/to/a/file.md", '
    text += 'text: FORMAT("{a} and {b}", {a: first, b: second}) }'
    assert format_script(text) == (
        'CALL write_file {\n  path: "a/rather/long/path/to/a/file.md",\n'
        '  text: FORMAT("{a} and {b}", {a: first, b: second})\n}\n'
    )


def test_a_text_that_does_not_parse_is_refused() -> None:
    """Nothing is guessed into shape."""
    with pytest.raises(PlacedError, match="never closed"):
        format_script("IF a THEN")
