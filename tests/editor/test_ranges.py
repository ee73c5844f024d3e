"""Some lines of a file of any size: the same lines as if the whole file had been read."""

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lastword.editor import ranges
from lastword.editor.edits import lines_of
from lastword.editor.encoding import BOM, decode
from lastword.editor.ranges import read_lines
from lastword.errors import NotText
from requirements import requirement

texts = st.lists(st.sampled_from(["", "a", "bcd", "grüße", "日本", "🙂", "e\r", "\ufeff"]), max_size=8).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)


@requirement("EDIT-12")
@settings(deadline=None, max_examples=500)
@example("日本", False, 1, 1, None, 1)  # The cut falls behind a character that alone would fit.
@given(
    texts,
    st.booleans(),
    st.integers(1, 7),
    st.integers(1, 10),
    st.none() | st.integers(0, 10),
    st.integers(0, 30),
)
def test_a_part_is_what_the_whole_would_give(
    text: str, marked: bool, block: int, first: int, more: int | None, most: int
):
    """However the blocks fall: in the middle of a character, at the end of a line, behind the last one."""
    last = None if more is None else first + more
    data = (BOM if marked else b"") + text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "BLOCK_BYTES", block)
        part = read_lines(io.BytesIO(data).read, first, last, most, path="a.txt")
    whole = decode(data)
    assert whole is not None
    lines = lines_of(whole)
    wanted = lines[first - 1 : last]
    fitting = next((n for n in range(len(wanted) + 1) if sum(map(len, wanted[: n + 1])) > most), len(wanted))
    assert part.lines == wanted[:fitting]
    asked_for = len(lines) if last is None else last
    assert part.is_whole == (fitting == len(wanted) and first <= max(asked_for, 1) and asked_for <= len(lines))
    assert part.total in (None, len(lines))
    if not part.is_whole and fitting == len(wanted):
        assert part.total == len(lines)  # Whoever asked for lines that are not there is told how many are.


@pytest.mark.parametrize("data", [b"one\n\xff\n", b"one\n\xe2\x82", b"one\n\0\n"])
def test_what_is_not_text_is_refused_where_it_is_read(data: bytes):
    """The lines before it can be read all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "BLOCK_BYTES", 2)
        with pytest.raises(NotText):
            read_lines(io.BytesIO(data).read, 2, None, 100, path="a.txt")
        assert read_lines(io.BytesIO(data).read, 1, 1, 0, path="a.txt").lines == []
