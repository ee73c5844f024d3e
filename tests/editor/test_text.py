"""The text of a file: what structured edits make of it, and some lines of one of any size."""

import io
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lastword.editor import decode
from lastword.editor.text import BOM, MAX_OPERATIONS, Operation, insert, lines_of, read_lines, replace
from lastword.errors import EditError, NotText
from requirements import requirement
from tries import tries

line = st.text(alphabet="ab \r\u2028\x0bé", max_size=4).filter(lambda text: not text.endswith("\r"))
ending = st.sampled_from(["\n", "\r\n"])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Texts with every kind of ending, also none at the end."""
    body = "".join(draw(line) + draw(ending) for _ in range(draw(st.integers(0, 8))))
    return body + draw(st.sampled_from(["", "last", "\n"]))


@st.composite
def batches(draw: st.DrawFn, *, past_the_end: int) -> tuple[str, list[Operation]]:
    """A text with operations that name different lines of it."""
    text = draw(texts())
    count = len(lines_of(text)) + past_the_end
    starts = draw(st.lists(st.integers(1, count), unique=True, max_size=5)) if count else []
    contents = st.sampled_from(["x", "x\n", "x\r\ny", "\n"])
    return text, [Operation(start_line=start, content=draw(contents)) for start in starts]


@requirement("EDIT-2")
@tries()
@given(batches(past_the_end=1), st.randoms())
def test_insertions_in_any_order_give_the_same_text(batch: tuple[str, list[Operation]], dice: random.Random):
    """Every line number refers to the file as it was, so the order cannot matter."""
    text, operations = batch
    shuffled = dice.sample(operations, len(operations))
    assert insert(text, shuffled) == insert(text, operations)


@requirement("EDIT-2")
@tries()
@given(batches(past_the_end=1))
def test_insertions_keep_every_old_line_and_go_before_the_line_they_name(batch: tuple[str, list[Operation]]):
    """A model of the operation by hand: walk the old lines, and put each content before its own."""
    text, operations = batch
    contents = {op["start_line"]: op["content"] for op in operations}
    old = [bare(one) for one in lines_of(text)]
    expected: list[str] = []
    for number, one in enumerate([*old, None], 1):
        if number in contents:
            expected += [bare(new) for new in lines_of(contents[number])]
        if one is not None:
            expected.append(one)
    assert [bare(one) for one in lines_of(insert(text, operations))] == expected


@requirement("EDIT-2")
@tries()
@given(batches(past_the_end=0), st.randoms())
def test_replacements_in_any_order_give_the_same_text_or_the_same_refusal(
    batch: tuple[str, list[Operation]], dice: random.Random
):
    """All or nothing holds whatever the order: a batch is refused as a whole or applied as a whole."""
    text, operations = batch
    shuffled = dice.sample(operations, len(operations))

    def outcome(given: list[Operation]) -> str:
        try:
            return replace(text, given)
        except EditError as refusal:
            return type(refusal).__name__

    assert outcome(shuffled) == outcome(operations)


@requirement("EDIT-2")
@tries()
@given(texts().filter(lambda text: bool(lines_of(text))), st.data())
def test_replacing_a_line_changes_that_line_and_no_ending(text: str, data: st.DataObject):
    """The replaced line lends its ending, so mixed files and files without a last one stay what they are."""
    lines = lines_of(text)
    number = data.draw(st.integers(1, len(lines)))
    changed = lines_of(replace(text, [Operation(start_line=number, content="new\n")]))
    old = lines[number - 1]
    assert changed == [*lines[: number - 1], "new" + old[len(bare(old)) :], *lines[number:]]


@requirement("EDIT-2")
@pytest.mark.parametrize(
    ("text", "start", "content", "expected"),
    [
        ("", 1, "x", "x"),
        ("", 1, "x\r\ny", "x\r\ny"),
        ("a", 1, "x", "x\na"),
        ("a", 2, "x", "a\nx"),
        ("a", 2, "x\n", "a\nx\n"),
        ("a\n", 2, "x", "a\nx\n"),
        ("a\r\nb", 2, "x\ny", "a\r\nx\r\ny\r\nb"),
        ("a\r\nb", 3, "x\ny", "a\r\nb\r\nx\r\ny"),
        ("a\nb\n", 2, "\n", "a\n\nb\n"),
    ],
)
def test_an_insertion_takes_the_line_ending_of_its_place(text: str, start: int, content: str, expected: str):
    """A file with one kind of ending keeps it, and a missing last one stays missing unless the content brings it."""
    assert insert(text, [Operation(start_line=start, content=content)]) == expected


@requirement("EDIT-2")
@pytest.mark.parametrize(
    ("edit", "start", "content", "words"),
    [
        (insert, 0, "x", "line 0 is out of range; the file has 3 lines, so 1 to 4 can be inserted before"),
        (insert, 5, "x", "line 5 is out of range"),
        (insert, -1, "x", "line -1 is out of range"),
        (replace, 0, "x", "lines 0 to 0 are out of range; the file has 3"),
        (replace, 4, "x", "lines 4 to 4 are out of range"),
        (replace, 3, "x\ny", "lines 3 to 4 are out of range"),
        (insert, True, "x", "start_line must be a whole number, not True"),
        (insert, 1.0, "x", "start_line must be a whole number, not 1.0"),
        (insert, "1", "x", "start_line must be a whole number, not '1'"),
        (insert, 1, None, "content must be a string, not None"),
        (replace, 1, "", 'the content is empty; an empty line is "\\n"'),
    ],
)
def test_an_impossible_operation_refuses_the_whole_batch_in_words(edit, start, content, words):
    """The good operation beside it must not apply: all or none."""
    good = Operation(start_line=2, content="good")
    with pytest.raises(EditError) as refusal:
        edit("1\n2\n3\n", [good, {"start_line": start, "content": content}], path="a.txt")
    assert words in str(refusal.value)
    assert str(refusal.value).startswith("a.txt: ")
    assert "nothing was changed" in str(refusal.value)


@requirement("EDIT-2")
def test_overlapping_replacements_are_refused():
    """Which of the two should win could only depend on their order."""
    with pytest.raises(EditError, match="the 2 lines from line 1 overlap those from line 2"):
        replace("1\n2\n3\n", [{"start_line": 2, "content": "b"}, {"start_line": 1, "content": "a\nb"}])
    assert replace("1\n2\n3\n", [{"start_line": 2, "content": "b"}, {"start_line": 1, "content": "a"}]) == "a\nb\n3\n"


@requirement("EDIT-2")
@pytest.mark.parametrize("edit", [insert, replace])
def test_two_operations_on_one_line_are_refused(edit):
    """Two insertions before one line have no order but the one they came in."""
    with pytest.raises(EditError, match="two operations name line 2; join them into one"):
        edit("1\n2\n", [{"start_line": 2, "content": "a"}, {"start_line": 2, "content": "b"}])


def test_every_problem_of_a_batch_is_named_at_once():
    """A model repairs in one go what it hears in one go."""
    with pytest.raises(EditError) as refusal:
        insert("1\n", [{"start_line": 9, "content": "a"}, {"start_line": 1, "content": ""}, "no operation"])  # type: ignore[list-item]
    assert "line 9 is out of range" in str(refusal.value)
    assert "operation 2: the content is empty" in str(refusal.value)
    assert "operation 3: start_line must be a whole number, not None" in str(refusal.value)


def test_an_endless_batch_is_refused():
    """A batch beyond the limit is a new file."""
    with pytest.raises(EditError, match="at most 10000"):
        insert("", [Operation(start_line=1, content="x")] * (MAX_OPERATIONS + 1))


def bare(one: str) -> str:
    return one.removesuffix("\n").removesuffix("\r") if one.endswith("\n") else one


texts_of_odd_characters = st.lists(
    st.sampled_from(["", "a", "bcd", "grüße", "日本", "🙂", "e\r", "\ufeff"]), max_size=8
).flatmap(lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)]))


@requirement("EDIT-12")
@tries()
@example("日本", False, 1, 1, None, 1)  # The cut falls behind a character that alone would fit.
@given(
    texts_of_odd_characters,
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
        patch.setattr("lastword.editor.text.BLOCK_BYTES", block)
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
        patch.setattr("lastword.editor.text.BLOCK_BYTES", 2)
        with pytest.raises(NotText):
            read_lines(io.BytesIO(data).read, 2, None, 100, path="a.txt")
        assert read_lines(io.BytesIO(data).read, 1, 1, 0, path="a.txt").lines == []
