"""Diffs: true for every pair of texts, and readable where they can be."""

import random
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.editor import FileDiff, Preview, Row, compare, diff
from lastword.editor.diff import MAX_DIFF_LINES
from lastword.editor.edit_plan import EditStep, summary
from lastword.editor.text import count_lines, lines_of
from requirements import requirement
from tries import tries

texts = st.lists(st.sampled_from(["a", "b", "c", "", "d\r"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)


def changed(old: str | None, new: str | None) -> FileDiff:
    return FileDiff.of(Preview("a.txt", None, old, new))


def apply(diff: FileDiff, old: str) -> str:
    """The new text, from the old one and the hunks alone."""
    lines = lines_of(old)
    result: list[str] = []
    at = 0
    for hunk in diff.hunks:
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        result += lines[at:start]
        assert len(result) == (hunk.new_start - 1 if hunk.new_count else hunk.new_start)
        for line in hunk.lines:
            if line.kind != "added":
                assert lines[start].removesuffix("\n") == line.text
                assert line.old == start + 1
                start += 1
            if line.kind != "removed":
                result.append(line.text + ("" if line.no_newline else "\n"))
                assert line.new == len(result)
        at = start
    return "".join(result + lines[at:])


@requirement("EDIT-5")
@tries()
@given(texts, texts)
def test_the_hunks_lead_from_the_old_text_to_the_new(old: str, new: str):
    """A diff that does not is a lie on a card, whatever it looks like."""
    diff = changed(old, new)
    if "\r\n" not in old + new:
        assert apply(diff, old) == new


@tries()
@given(texts, texts)
def test_no_diff_is_shorter(old: str, new: str):
    """A second opinion on the number of lines that both texts keep: the longest common subsequence, by the book."""
    if "\r\n" in old + new:
        return
    diff = changed(old, new)
    a, b = lines_of(old), lines_of(new)
    kept = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, left in enumerate(a, 1):
        for j, right in enumerate(b, 1):
            kept[i][j] = kept[i - 1][j - 1] + 1 if left == right else max(kept[i - 1][j], kept[i][j - 1])
    assert diff.removed == len(a) - kept[-1][-1]
    assert diff.added == len(b) - kept[-1][-1]


@tries(10)
@given(texts.filter(lambda text: "\r" not in text), texts.filter(lambda text: "\r" not in text))
def test_patch_reads_what_the_terminal_shows(tmp_path_factory: pytest.TempPathFactory, old: str, new: str):
    """The rows are a unified diff that the usual program understands, but for our words at the top."""
    folder: Path = tmp_path_factory.mktemp("patch")
    rows = changed(old, new).rows(fold_lines=None)
    if old == new or not old or not new:
        return
    (folder / "a.txt").write_text(old)
    body = [r"\ No newline at end of file" if row.kind == "note" else row.text for row in rows[1:]]
    patch = "\n".join(["--- a/a.txt", "+++ b/a.txt", *body, ""])
    subprocess.run(["git", "apply", "--unidiff-zero", "-"], cwd=folder, input=patch, text=True, check=True)
    assert (folder / "a.txt").read_text() == new


def test_a_change_is_shown_with_its_surroundings():
    """As in every diff that people know."""
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("5\n", "five\n", 1).replace("19\n", "")
    assert [row.text for row in changed(old, new).rows()] == [
        "change a.txt (+1 -2)",
        "@@ -2,7 +2,7 @@",
        " 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8",
        "@@ -16,5 +16,4 @@",
        " 16", " 17", " 18", "-19", " 20",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("preview", "rows"),
    [
        (
            Preview("new.txt", None, None, "a\nb"),
            ["create new.txt (+2 -0)", "@@ -0,0 +1,2 @@", "+a", "+b", "\\ no line ending at the end of the file"],
        ),
        (Preview("new.txt", None, None, ""), ["create new.txt", "the file would be empty"]),
        (Preview("old.txt", "0", "a\n", None), ["delete old.txt (+0 -1)", "@@ -1,1 +0,0 @@", "-a"]),
        (
            Preview("old.bin", "0", None, None),
            ["delete old.bin", "the file is not text, so its content is not shown"],
        ),
        (Preview("a.txt", "0", "a\n", None, "b.txt"), ["rename a.txt to b.txt"]),
        (Preview("a.txt", "0", "a\n", "a\n"), ["leave a.txt", "the file would stay as it is"]),
        (
            Preview("a.txt", "0", "a\n", ""),
            ["change a.txt (+0 -1)", "the file would be empty", "@@ -1,1 +0,0 @@", "-a"],
        ),
        (
            Preview("a.txt", "0", "a\r\n", "a\nb\n"),
            ["change a.txt (+1 -0)", "lines end with CR LF", "@@ -1,1 +1,2 @@", " a", "+b"],
        ),
        (
            Preview("a.txt", "0", "a\r\nb\n", "a\nb\n"),
            ["change a.txt (+1 -1)", "@@ -1,2 +1,2 @@", "-a\r", "+a", " b"],
        ),
        (
            Preview("a.txt", "0", "a\n", "a"),
            ["change a.txt (+1 -1)", "@@ -1,1 +1,1 @@", "-a", "+a", "\\ no line ending at the end of the file"],
        ),
    ],
)
def test_every_kind_of_change_has_its_words(preview: Preview, rows: list[str]):
    """Also what lines alone do not show: line endings, an empty file, a file that is no text."""
    assert [row.text for row in FileDiff.of(preview).rows()] == rows


def test_a_long_diff_folds_and_says_what_is_not_shown():
    """Nothing is cut without saying so, and the counts are those of the hidden part."""
    rows = changed("old\n" * 50, "new\n" * 60).rows(fold_lines=70)
    assert len(rows) == 1 + 70 + 1
    assert rows[-1] == Row("fold", "… 41 more rows, with 41 lines added and 0 removed")
    assert len(changed("old\n" * 50, "new\n" * 60).rows(fold_lines=None)) == 1 + 1 + 110


def test_a_batch_is_counted_in_one_line():
    """One card, all its files, and one line that counts them."""
    steps = [EditStep("a.txt", "a\n", "b\n"), EditStep("c.txt", None, "c\n"), EditStep("d.txt", "d\n", None, "e.txt")]
    assert summary(steps) == "3 files, 2 lines added, 1 removed"
    assert summary(steps[:1]) == "1 file, 1 lines added, 1 removed"


def shuffled(count: int, kinds: int, seed: int) -> str:
    """Lines of some kinds in no order."""
    return "".join(f"{number}\n" for number in random.Random(seed).choices(range(kinds), k=count))


@requirement("EDIT-13")
def test_a_comparison_has_a_budget_and_says_when_it_ran_out():
    """Texts that differ everywhere would be compared for ever. What is shown instead is coarser, and still true."""
    old, new = shuffled(20_000, 50, 1), shuffled(20_000, 50, 2)
    diff = changed(old, new)
    assert diff.coarse
    assert str(diff.note).startswith("too much differs to compare every line, so whole blocks are shown as replaced")
    old, new = shuffled(2_000, 50, 1), shuffled(2_000, 50, 2)
    assert changed(old, new).coarse
    assert apply(changed(old, new), old) == new
    assert changed(old, new).rows()[1] == Row(
        "note", "too much differs to compare every line, so whole blocks are shown as replaced"
    )


@requirement("EDIT-13")
def test_many_changes_in_a_long_text_are_shown_where_they_are():
    """Beyond the budget, lines that occur once in both texts hold the comparison together."""
    lines = [f"{number} of many\n" for number in range(10_000)]
    old = "".join(lines)
    for number in range(0, 10_000, 5):
        lines[number] = f"{number} changed\n"
    diff = changed(old, "".join(lines))
    assert (diff.added, diff.removed, diff.coarse) == (2_000, 2_000, False)


def test_one_block_that_cannot_be_compared_does_not_spoil_the_others():
    """What comes after it is still shown line by line."""
    lines = [f"{number} of many\n" for number in range(2_000)]
    old, new = shuffled(3_000, 50, 1) + "".join(lines), shuffled(3_000, 50, 2)
    lines[1_000:1_002] = ["1001 of many\n"]  # A line is gone, and the one after it stays.
    diff = changed(old, new + "".join(lines))
    assert diff.coarse
    last = [line for line in diff.hunks[-1].lines if line.kind != "same"]
    assert [(line.kind, line.text) for line in last] == [("removed", "1000 of many")]


@requirement("EDIT-13")
def test_texts_that_share_nothing_need_no_budget():
    """Every line changed, as by a rename: no two lines are alike, and nobody has to look for them."""
    old = "".join(f"{number}\n" for number in range(50_000))
    diff = changed(old, old.replace("\n", "!\n"))
    assert (diff.added, diff.removed, diff.coarse) == (50_000, 50_000, False)


@tries()
@given(texts, texts, st.integers(0, 12))
def test_the_hunks_lead_from_the_old_text_to_the_new_when_the_budget_runs_out(old: str, new: str, budget: int):
    """Wherever the comparison is given up, the diff must not be a lie."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare, "MAX_STEPS", budget)
        diff = changed(old, new)
    if "\r\n" not in old + new:
        assert apply(diff, old) == new


@requirement("EDIT-13")
def test_a_long_line_is_shown_where_it_differs():
    """Two hundred thousand characters fill a hundred screens, and what matters is the one that changed."""
    old, new = "a" * 200_000 + "\n", "a" * 99_999 + "evil" + "a" * 100_000 + "\n"
    (hunk,) = changed(old, new).hunks
    removed, added = hunk.lines
    assert added.text == "a" * 200 + "evil" + "a" * 200
    assert (added.hidden_before, added.hidden_after) == (99_799, 99_800)
    assert (removed.text, removed.hidden_before, removed.hidden_after) == ("a" * 401, 99_799, 99_800)
    assert [row.text for row in changed(old, new).rows()][-1] == (
        "… a part of a line of 200,003 characters: 99,799 before it and 99,800 after it are not shown"
    )


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (None, "b" * 5_000, [("added", 2_000, 0, 3_000)]),
        ("x\n" + "b" * 5_000 + "\n", "y\n" + "b" * 5_000 + "\n", [("same", 200, 0, 4_800)]),
        ("b" * 5_000, "c" * 5_000, [("removed", 2_000, 0, 3_000), ("added", 2_000, 0, 3_000)]),
        ("b" * 5_000, "b" * 5_000 + "c" * 9_000, [("removed", 200, 4_800, 0), ("added", 2_000, 4_800, 7_200)]),
        ("b" * 5_000, "b" * 6_000, [("removed", 200, 4_800, 0), ("added", 1_200, 4_800, 0)]),
        ("b" * 5_000, "b", [("removed", 2_000, 0, 3_000)]),
        ("b" * 2_000, "c" * 2_000, []),
    ],
)
def test_a_long_line_never_hides_more_than_it_says(old: str | None, new: str, shown: list[object]):
    """New, unchanged, replaced, made longer, made shorter: what is not there is counted."""
    lines = [line for hunk in changed(old, new).hunks for line in hunk.lines]
    assert [
        (line.kind, len(line.text), line.hidden_before, line.hidden_after)
        for line in lines
        if line.hidden_before or line.hidden_after
    ] == shown


@tries()
@given(st.text("ab", max_size=30), st.text("ab", max_size=30))
def test_what_differs_in_a_long_line_is_shown_and_the_rest_is_the_same(old: str, new: str):
    """What is hidden of a line that was replaced is also in the other one, as long as the difference fits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lastword.editor.diff.MAX_LINE_CHARACTERS", 4)
        patch.setattr("lastword.editor.diff.AROUND_CHARACTERS", 1)
        lines = [line for hunk in changed(old, new).hunks for line in hunk.lines]
    wholes = {"removed": old, "added": new}
    for line in lines:
        whole = wholes[line.kind]
        assert whole == whole[: line.hidden_before] + line.text + whole[len(whole) - line.hidden_after :]
        assert len(line.text) <= 4 or not (line.hidden_before or line.hidden_after)
    if len(lines) == 2 and all(line.hidden_before + line.hidden_after for line in lines):
        removed, added = lines
        assert old[: removed.hidden_before] == new[: added.hidden_before]


def test_a_diff_that_nobody_can_read_is_cut_and_says_so():
    """Four million lines would take the memory of the machine and the patience of the person."""
    diff = changed("\n" * 200_000, "a\n" * 200_000)
    assert (diff.added, diff.removed) == (200_000, 200_000)
    assert sum(len(hunk.lines) for hunk in diff.hunks) == MAX_DIFF_LINES
    assert diff.note == "380000 more changed lines are too many to show"


def test_a_large_file_with_few_changes_is_compared_exactly():
    """The budget is for differences, not for size."""
    lines = [f"{number % 50}\n" for number in range(100_000)]
    old = "".join(lines)
    lines[500], lines[99_000] = "changed\n", ""
    diff = changed(old, "".join(lines))
    assert (diff.added, diff.removed, len(diff.hunks)) == (1, 2, 2)


def test_the_diff_of_long_texts_is_made_once_and_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch):
    """The tool, the card and every window want the same one; a process that runs for weeks wants its memory back."""
    monkeypatch.setattr("lastword.editor.diff._KEPT.most_characters", 450_000)
    texts = [("a\n" * 50_000, f"{name}\n" + "a\n" * 50_000) for name in "bcd"]
    first, second = (changed(*texts[0]), changed(*texts[1]))
    assert changed(*texts[0]) is first
    changed(*texts[2])  # There is room for two, and the first was wanted last.
    assert changed(*texts[0]) is first
    assert changed(*texts[1]) is not second
    assert changed("a\n", "b\n") is not changed("a\n", "b\n")


def test_the_same_change_of_another_file_is_another_diff():
    """What is kept is kept under everything that it was made from."""
    old, new = "a\n" * 50_000, "b\n" * 50_000
    one, other = (FileDiff.of(Preview(path, None, old, new)) for path in ("one.txt", "other.txt"))
    assert (one.path, other.path) == ("one.txt", "other.txt")
    assert FileDiff.of(Preview("one.txt", None, None, new)).kind == "created"


@tries()
@given(texts, st.integers(1, 5))
def test_a_text_is_cut_into_lines_whatever_the_block(text: str, block: int):
    """Cutting it in pieces is for the sake of others, and must not be seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lastword.editor.text.BLOCK_CHARACTERS", block)
        lines = lines_of(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") and "\n" not in line[:-1] for line in lines[:-1])
    assert all(lines)
    assert len(lines) == count_lines(text)


def test_lines_that_each_changed_a_little_are_shown_in_pairs():
    """Two thousand lines with a comment added are two thousand pairs, and not a red screen before a green one."""
    old = [f"value_{number} = {number}" for number in range(2_000)]
    new = [f"{line}  # counted" for line in old]
    diff = changed("\n".join(old) + "\n", "\n".join(new) + "\n")
    [hunk] = diff.hunks
    assert [line.kind for line in hunk.lines] == ["removed", "added"] * 2_000
    assert all((line.old or line.new) == place // 2 + 1 for place, line in enumerate(hunk.lines))
    assert [row.text for row in diff.rows()[2:4]] == ["-value_0 = 0", "+value_0 = 0  # counted"]


def test_a_line_that_was_put_between_does_not_part_the_pairs():
    """One more line among many that changed a little is one more line, and not a reason to show two blocks."""
    old = [f"value_{number} = {number}" for number in range(100)]
    new = [f"{line}  # counted" for line in old]
    new.insert(50, "import something")
    del new[80]
    [hunk] = changed("\n".join(old) + "\n", "\n".join(new) + "\n").hunks
    kinds = [line.kind for line in hunk.lines]
    assert kinds[:100] == ["removed", "added"] * 50
    assert kinds[100:103] == ["added", "removed", "added"]
    assert hunk.lines[100].text == "import something"
    assert kinds.count("removed") == 100
    assert kinds.count("added") == 100


def test_a_pair_says_which_words_are_new():
    """Where one word of a long line changed, a person should not have to find it."""
    [hunk] = changed("total = price * count  # net\n", "total = price * amount  # gross\n").hunks
    removed, added = hunk.lines
    assert [removed.text[start:end] for start, end in removed.changed] == ["count", "net"]
    assert [added.text[start:end] for start, end in added.changed] == ["amount", "gross"]


def test_words_of_very_many_long_lines_are_marked_within_bounds(monkeypatch):
    """Comparing word by word is worth a second, and not an hour: beyond the budget a line has one mark, still true."""
    old = "".join(f"{'a b ' * 150}{number} {'c d ' * 150}end of the line\n" for number in range(300))
    new = old.replace("a b c", "b a c").replace("d c d", "x c y").replace("end", "END")
    steps = 0

    def counting(one, other):
        nonlocal steps
        steps += len(one) * len(other)
        return compare.compare(one, other)

    monkeypatch.setattr(diff, "compare", counting)
    shown = changed(old, new)
    lines = len(old.splitlines()) ** 2
    assert steps - lines <= diff.MAX_WORD_STEPS
    for line in shown.hunks[0].lines:
        assert line.changed


@tries()
@given(st.text("ab =\u0301", max_size=20), st.text("ab =\u0301", max_size=20))
def test_without_what_is_marked_two_lines_of_a_pair_are_the_same(old: str, new: str):
    """A mark that hides a difference would be worse than none."""
    lines = [
        line for hunk in changed(f"{old} same words here\n", f"{new} same words here\n").hunks for line in hunk.lines
    ]
    kept = []
    for line in lines:
        text = line.text
        for start, end in reversed(line.changed):
            text = text[:start] + text[end:]
        kept.append(text)
    assert not any(line.changed for line in lines) or len(set(kept)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("one two\nthree four\n", "red fish\nblue fish\n"),  # other lines in their place
        ("value = 1\nother = 2\n", "value = 2\nother = 3\nthird = 4\n"),  # which belongs to which is not known
        ("value = 1\nsomething\n", "value = 2\nquite different\n"),  # not all of them
    ],
)
def test_lines_that_were_replaced_stay_together(old, new):
    """A pair that is none would tell a person to compare what has nothing in common."""
    [hunk] = FileDiff.of(Preview(path="a.py", base_digest=None, base=old, proposed=new)).hunks
    kinds = [line.kind for line in hunk.lines]
    assert kinds == sorted(kinds, reverse=True)


@pytest.mark.long
def test_texts_that_share_no_fixed_point_are_given_up_early():
    """Every way through such a block was kept, to walk back: 800,000 lines took seventy seconds and 300 MB."""
    one, other = ("\n".join(random.Random(seed).choices("abcdefgh", k=50_000)) for seed in (1, 2))
    tracemalloc.start()
    try:
        diff = changed(one, other)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert diff.coarse
    assert most < 20_000_000  # Half of it are the lines.
