"""The tools that write: what is on the card is what happens, and what cannot happen is said before anybody is asked."""

from pathlib import Path

import pytest
from foreign import ForeignEditor
from trees import tree
from workbench import Workbench

from lastword import Session, ToolRegistry
from lastword.consent import ApprovalRequest, UserAction
from lastword.editor import EDITOR_TOOLS, Preview, editor_tools
from lastword.editor.atomic_change import Writing
from lastword.editor.text import BOM
from lastword.errors import EditError, SessionError
from lastword.testing import ATTACKS, Attack, FixedApprover
from lastword.values import digest
from requirements import requirement

NOTES = b"one\ntwo\n"

# For each tool that writes: arguments that change notes.txt, and what becomes of it.
CHANGES = [
    ("replace_text", {"path": "notes.txt", "old": "two", "new": "2"}, b"one\n2\n"),
    ("insert_lines", {"path": "notes.txt", "operations": [{"start_line": 3, "content": "three"}]}, NOTES + b"three\n"),
    ("replace_lines", {"path": "notes.txt", "operations": [{"start_line": 1, "content": "1"}]}, b"1\ntwo\n"),
    ("write_file", {"path": "notes.txt", "text": "new\n"}, b"new\n"),
    ("edit_files", {"edits": [{"action": "write_file", "path": "notes.txt", "text": "new\n"}]}, b"new\n"),
    ("delete_file", {"path": "notes.txt"}, None),
    ("rename_file", {"path": "notes.txt", "new_path": "deep/er/todo.txt"}, None),
    ("fix_lint", {"path": "unused.py"}, NOTES),
]
names = [name for name, _, _ in CHANGES]


def now(folder: Path, path: str = "notes.txt") -> bytes | None:
    return (folder / path).read_bytes() if (folder / path).exists() else None


@pytest.fixture
def bench(bench: Workbench) -> Workbench:
    (bench.folder / "unused.py").write_text("import os\n\nprint(1)\n")
    return bench


def test_every_tool_that_writes_is_tried_here():
    """A tool that is added later must not slip through the tests below."""
    assert sorted(names) == sorted(tool.name for tool in EDITOR_TOOLS if tool.manifest.effect != "none")


@requirement("TOOL-46", "EDIT-7")
@pytest.mark.parametrize(("name", "arguments", "after"), CHANGES, ids=names)
async def test_a_change_is_shown_done_and_taken_back(bench: Workbench, name: str, arguments, after: bytes | None):
    """The whole way of one edit: the preview on the card, the file, the words, the undo."""
    before = tree(bench.folder)
    outcome = await bench.done(name, **arguments)
    (request,) = bench.approver.requests
    path = arguments.get("path", "notes.txt")
    (preview,) = request.preview
    was = before[path]
    assert was is not None
    assert (preview.path, preview.base_digest) == (path, digest(was[0]))
    assert dict(request.reads)[path] == preview.base_digest
    assert now(bench.folder) == after
    assert path in outcome.message
    assert outcome.changed[0] == path

    undone = await bench.session.undo(outcome.call_id)
    assert tree(bench.folder) == before
    assert set(undone.paths) == set(outcome.changed)
    assert name in undone.message


@pytest.mark.parametrize(("name", "arguments", "after"), CHANGES, ids=names)
async def test_a_denial_changes_nothing(bench: Workbench, name: str, arguments, after: bytes | None):
    """And the model reads why."""
    before = tree(bench.folder)
    bench.answers(lambda request: request.deny("not today"))
    outcome = await bench.call(name, **arguments)
    assert outcome.kind == "denied"
    assert "not today" in outcome.message
    assert tree(bench.folder) == before


@pytest.mark.parametrize("attack", ATTACKS, ids=str)
@pytest.mark.parametrize(("name", "arguments", "after"), CHANGES, ids=names)
async def test_no_attack_of_the_kit_gets_past_a_card(bench: Workbench, attack: Attack, name: str, arguments, after):
    """The kit is for everybody's tools, ours first."""
    before = tree(bench.folder)
    await attack.run(bench.registry, name, dict(arguments), bench.session.editor)
    assert tree(bench.folder) == before


@requirement("TOOL-46")
@pytest.mark.parametrize(("name", "arguments", "after"), CHANGES[:5], ids=names[:5])
async def test_a_file_changed_while_the_card_waits_is_asked_about_again(bench: Workbench, name: str, arguments, after):
    """Consent covers what was shown. The second card shows the second change, and only that one happens."""

    def somebody_writes(request: ApprovalRequest) -> UserAction:
        (bench.folder / "notes.txt").write_bytes(b"one\ntwo\nmore\n")
        return request.allow()

    bench.answers(somebody_writes, lambda request: request.deny())
    assert (await bench.call(name, **arguments)).kind == "denied"
    first, second = bench.approver.requests
    assert first.preview[0].base == "one\ntwo\n"
    assert second.preview[0].base == "one\ntwo\nmore\n"
    assert second.problem == "notes.txt changed while the question waited"
    assert now(bench.folder) == b"one\ntwo\nmore\n"

    bench.answers(ApprovalRequest.allow)
    await bench.done(name, **arguments)
    assert now(bench.folder) != b"one\ntwo\nmore\n"


@requirement("TOOL-46")
async def test_a_file_that_appears_while_the_card_waits_is_not_overwritten(bench: Workbench):
    """A card that said "create" was no leave to replace."""

    def somebody_creates(request: ApprovalRequest) -> UserAction:
        (bench.folder / "new.txt").write_bytes(b"theirs\n")
        return request.allow()

    bench.answers(somebody_creates, lambda request: request.deny())
    assert (await bench.call("write_file", path="new.txt", text="ours\n")).kind == "denied"
    assert [request.title for request in bench.approver.requests] == ["Create new.txt", "Change new.txt"]
    assert now(bench.folder, "new.txt") == b"theirs\n"


@requirement("TOOL-46", "TOOL-47")
async def test_a_person_may_edit_the_text_that_would_be_written(bench: Workbench):
    """What they wrote is what is written, they are not asked twice, and the model is told."""
    bench.answers(lambda request: request.edit(text="by a person\n"))
    outcome = await bench.done("write_file", path="notes.txt", text="by the model\n")
    assert now(bench.folder) == b"by a person\n"
    assert "The person changed the arguments of write_file" in outcome.message


async def test_an_edit_that_would_change_nothing_goes_back_to_the_person(bench: Workbench):
    """They see why, and the call as it was."""
    bench.answers(lambda request: request.edit(text="one\ntwo\n"), lambda request: request.close())
    assert (await bench.call("write_file", path="notes.txt", text="by the model\n")).kind == "denied"
    _, second = bench.approver.requests
    assert "nothing would change" in str(second.problem)
    assert (second.arguments["text"], second.author) == ("by the model\n", "model")


@requirement("TOOL-47")
async def test_a_person_who_names_another_file_sees_that_file_first(bench: Workbench):
    """The text is theirs, and yet what it would replace was never on a card."""
    bench.answers(lambda request: request.edit(path="src/main.py"), lambda request: request.deny())
    assert (await bench.call("write_file", path="notes.txt", text="by the model\n")).kind == "denied"
    _, second = bench.approver.requests
    assert second.preview[0].base == "print('hello')\n"
    assert bench.read("src/main.py") == b"print('hello')\n"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("replace_text", {"path": "notes.txt", "old": "three", "new": "3"}, "does not occur in the file"),
        ("replace_text", {"path": "notes.txt", "old": "  two\n", "new": "2"}, "line 2 is almost it"),
        ("replace_text", {"path": "notes.txt", "old": "o", "new": "0"}, "occurs 2 times, not once"),
        ("replace_text", {"path": "notes.txt", "old": "o", "new": "0", "count": 3}, "occurs 2 times, not 3 times"),
        ("replace_text", {"path": "notes.txt", "old": "wo", "new": "x", "whole_words": True}, "does not occur"),
        ("replace_text", {"path": "notes.txt", "old": "two", "new": "two"}, "nothing would change"),
        ("replace_text", {"path": "absent.txt", "old": "a", "new": "b"}, "there is no such file"),
        ("insert_lines", {"path": "notes.txt", "operations": [{"start_line": 4, "content": "x"}]}, "out of range"),
        ("replace_lines", {"path": "notes.txt", "operations": [{"start_line": 2, "content": "x\ny"}]}, "out of range"),
        ("write_file", {"path": "notes.txt", "text": "one\ntwo\n"}, "nothing would change"),
        ("write_file", {"path": "binary", "text": "x"}, "binary or not UTF-8"),
        ("write_file", {"path": "a.txt", "text": "nul\0"}, "holds a NUL character"),
        ("write_file", {"path": "src", "text": "x"}, "this is a folder"),
        ("write_file", {"path": "notes.txt/x", "text": "x"}, "this is a file, not a folder"),
        ("write_file", {"path": "../x", "text": "x"}, "leads upwards"),
        ("write_file", {"path": ".git/config", "text": "x"}, "git's own files"),
        ("write_file", {"path": "link.txt", "text": "x"}, "a symbolic link"),
        ("write_file", {"path": "x" * 300, "text": "x"}, "the system refused: file name too long"),
        ("rename_file", {"path": "notes.txt", "new_path": "src/main.py"}, "something of that name already"),
        ("rename_file", {"path": "absent.txt", "new_path": "b.txt"}, "there is no such file"),
        ("rename_file", {"path": "src", "new_path": "lib"}, "this is a folder"),
        ("delete_file", {"path": "absent.txt"}, "there is no such file"),
        ("delete_file", {"path": "src"}, "this is a folder"),
        ("fix_lint", {"path": "src/main.py"}, "nothing that can be fixed by itself"),
        ("fix_lint", {"path": "absent.py"}, "there is no such file"),
    ],
)
async def test_what_cannot_be_done_is_said_and_nobody_is_asked(
    bench: Workbench, outside: Path, name: str, arguments, words: str
):
    """A card for something impossible wastes a yes; a model told what is wrong repairs it."""
    (bench.folder / "binary").write_bytes(b"\0\xff")
    (bench.folder / "link.txt").symlink_to(outside / "secret.txt")
    before = tree(bench.folder)
    assert words in await bench.refused(name, **arguments)
    assert tree(bench.folder) == before
    assert (outside / "secret.txt").read_text() == "secret\n"


async def test_text_is_replaced_as_often_as_was_said_and_whole_words_only(bench: Workbench):
    """The number guards against a text that stands in more places than the model knows of."""
    (bench.folder / "a.py").write_text("def load(x): ...\nload(reload(1))\npreload = load\n")
    await bench.done("replace_text", path="a.py", old="load", new="read", whole_words=True, all=True)
    assert bench.read("a.py") == b"def read(x): ...\nread(reload(1))\npreload = read\n"
    await bench.done("replace_text", path="a.py", old="read", new=r"\1", count=3, whole_words=True)
    assert bench.read("a.py").count(rb"\1") == 3


@pytest.mark.parametrize(
    ("data", "arguments", "after"),
    [
        (b"one\r\ntwo\r\n", {"old": "one\ntwo", "new": "1\n2\n3"}, b"1\r\n2\r\n3\r\n"),
        (b"one\r\ntwo\r\n", {"old": "one", "new": "1\n2"}, b"1\r\n2\r\ntwo\r\n"),
        (BOM + b"one", {"old": "one", "new": "1"}, BOM + b"1"),
        (b"one\r\ntwo\n", {"old": "two", "new": "2"}, b"one\r\n2\n"),
    ],
)
async def test_a_file_keeps_its_form(bench: Workbench, data: bytes, arguments, after: bytes):
    """Models write one kind of line ending and no byte order mark; the file keeps its own."""
    (bench.folder / "a.txt").write_bytes(data)
    await bench.done("replace_text", path="a.txt", **arguments)
    assert bench.read("a.txt") == after


@requirement("EDIT-7")
async def test_a_batch_is_one_card_with_every_file_and_one_undo(bench: Workbench):
    """Several edits that belong together are decided about together."""
    before = tree(bench.folder)
    outcome = await bench.done(
        "edit_files",
        edits=[
            {"action": "replace_text", "path": "notes.txt", "old": "one", "new": "1"},
            {"action": "replace_text", "path": "notes.txt", "old": "1\ntwo", "new": "1\n2"},
            {"action": "write_file", "path": "new/file.txt", "text": "new\n"},
            {"action": "rename_file", "path": "src/main.py", "new_path": "src/app.py"},
            {"action": "delete_file", "path": "unused.py"},
        ],
    )
    (request,) = bench.approver.requests
    assert [(p.path, p.proposed, p.renamed_to) for p in request.preview] == [
        ("notes.txt", "1\n2\n", None),
        ("new/file.txt", "new\n", None),
        ("src/main.py", None, "src/app.py"),
        ("unused.py", None, None),
    ]
    assert (request.title, request.primary_button_label) == ("Change 4 files", "Change 4 files")
    assert request.message == "4 files, 3 lines added, 5 removed."
    assert outcome.message.splitlines() == [
        "Changed 4 files, 3 lines added, 5 removed.",
        "Changed notes.txt: 2 lines added, 2 removed. It has 2 lines now.",
        "Created new/file.txt, with 1 line.",
        "Renamed src/main.py to src/app.py.",
        "Deleted unused.py, with 3 lines.",
    ]
    await bench.session.undo(outcome.call_id)
    assert tree(bench.folder) == before


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        (
            [
                {"action": "write_file", "path": "a.txt", "text": "x"},
                {"action": "replace_text", "path": "notes.txt", "old": "three", "new": "3"},
            ],
            "notes.txt: the text to replace does not occur in the file (edit 2 of 2; nothing was changed)",
        ),
        (
            [
                {"action": "insert_lines", "path": "notes.txt", "operations": [{"start_line": 1, "content": "0"}]},
                {"action": "replace_text", "path": "notes.txt", "old": "one", "new": "1"},
            ],
            "insert_lines and replace_text both name this file",
        ),
        (
            [
                {"action": "rename_file", "path": "notes.txt", "new_path": "b.txt"},
                {"action": "write_file", "path": "b.txt", "text": "x"},
            ],
            "b.txt: two edits use this name",
        ),
        (
            [
                {"action": "rename_file", "path": "notes.txt", "new_path": "b.txt"},
                {"action": "rename_file", "path": "src/main.py", "new_path": "b.txt"},
            ],
            "b.txt: two edits use this name",
        ),
        (
            [{"action": "write_file", "path": "a.txt", "txt": "x"}],
            "edit 1 (write_file): the argument text (string) is missing: The whole text of the file.; "
            "unknown argument txt (did you mean text?)",
        ),
        ([{"action": "write_file", "path": "notes.txt", "text": "one\ntwo\n"}] * 1, "nothing would change"),
    ],
)
async def test_a_batch_with_one_impossible_edit_is_refused_whole(bench: Workbench, edits, words: str):
    """All or none, and the model is told which one."""
    before = tree(bench.folder)
    assert words in await bench.refused("edit_files", edits=edits)
    assert tree(bench.folder) == before


async def test_a_batch_that_names_an_unknown_action_does_not_fit(bench: Workbench):
    """The schema knows the actions."""
    outcome = await bench.call("edit_files", edits=[{"action": "burn", "path": "a"}])
    assert outcome.kind == "invalid_arguments"
    assert "edits[0].action" in outcome.message


async def test_more_files_than_a_card_can_show_are_refused(bench: Workbench, monkeypatch):
    """A list that nobody reads is no consent."""
    monkeypatch.setattr("lastword.editor.edit_plan.MAX_FILES", 2)
    edits = [{"action": "write_file", "path": f"{n}.txt", "text": "x"} for n in range(3)]
    assert "3 files; at most 2 are shown on one card" in await bench.refused("edit_files", edits=edits)


async def test_a_batch_that_fails_halfway_takes_back_what_it_wrote(bench: Workbench, monkeypatch):
    """A full disk or a changed mode at the second file: the first is as it was, and the model knows."""
    before = tree(bench.folder)
    prepare = Writing.prepare

    def full(self):
        if self.path == "second.txt":
            raise EditError("the system refused: no space left on device", place=self.path)
        return prepare(self)

    monkeypatch.setattr(Writing, "prepare", full)
    edits = [
        {"action": "write_file", "path": "made/first.txt", "text": "x"},
        {"action": "write_file", "path": "notes.txt", "text": "x"},
        {"action": "write_file", "path": "second.txt", "text": "x"},
    ]
    outcome = await bench.call("edit_files", edits=edits)
    assert outcome.kind == "failed"
    assert outcome.message.startswith("second.txt: the system refused: no space left on device; made/first.txt, ")
    assert "was taken back: nothing is changed" in outcome.message
    assert outcome.changed == ()
    assert tree(bench.folder) == before
    with pytest.raises(SessionError, match="this call changed no files"):
        await bench.session.undo(outcome.call_id)


async def test_what_cannot_be_taken_back_is_said(bench: Workbench, monkeypatch):
    """Somebody changed the first file in the middle of the batch. Then half of it stays, and that is what is told."""
    prepare = Writing.prepare

    def interfere(self):
        if self.path == "second.txt":
            (bench.folder / "notes.txt").write_bytes(b"by a person\n")
            raise EditError("the system refused: no space left on device", place=self.path)
        return prepare(self)

    monkeypatch.setattr(Writing, "prepare", interfere)
    edits = [{"action": "write_file", "path": path, "text": "x"} for path in ("notes.txt", "second.txt")]
    outcome = await bench.call("edit_files", edits=edits)
    assert outcome.kind == "failed"
    assert "could not be taken back (changed since: notes.txt" in outcome.message
    assert now(bench.folder) == b"by a person\n"


async def test_lint_is_fixed_in_one_file_or_in_all(bench: Workbench):
    """Only what is safe, with a diff before, and what is left is said."""
    (bench.folder / "left.py").write_text("import os\n\n\ndef f():\n    x = 1\n")
    outcome = await bench.done("fix_lint")
    (request,) = bench.approver.requests
    assert [preview.path for preview in request.preview] == ["left.py", "unused.py"]
    assert b"import os" not in bench.read("left.py") + bench.read("unused.py")
    assert "Left, and not to be fixed by itself:\nleft.py:" in outcome.message
    assert "F841" in outcome.message
    (bench.folder / "unused.py").write_text("import os\n\nprint(1)\n")
    outcome = await bench.done("fix_lint", path="unused.py")
    assert outcome.message.endswith("The linters find nothing more there.")


async def test_a_foreign_editor_is_edited_with_a_card_too():
    """Text edits work on any editor; deleting and renaming need one with bytes, and say so."""
    registry = ToolRegistry()
    editor_tools(registry)
    editor = ForeignEditor({"a.txt": "one\n"})
    approver = FixedApprover()
    async with Session(registry, editor=editor, approver=approver) as session:
        assert (await session.call("replace_text", {"path": "a.txt", "old": "one", "new": "1"})).success
        assert approver.requests[0].preview == (Preview("a.txt", digest(b"one\n"), "one\n", "1\n"),)
        assert editor.files == {"a.txt": "1\n"}
        outcome = await session.call("delete_file", {"path": "a.txt"})
        assert outcome.kind == "failed"
        assert "cannot delete or rename files" in outcome.message


async def test_an_editor_that_does_not_write_is_not_believed_to_have_written():
    """An interface with a boolean is easily ignored, and the model would be told of a change that is not there."""

    class Unwilling(ForeignEditor):
        async def update_file_content(self, path: str, content: str) -> bool:
            return False

    registry = ToolRegistry()
    editor_tools(registry)
    async with Session(registry, editor=Unwilling({"a.txt": "one\n"}), approver=FixedApprover()) as session:
        outcome = await session.call("replace_text", {"path": "a.txt", "old": "one", "new": "1"})
    assert outcome.kind == "failed"
    assert outcome.message.startswith("a.txt: the editor did not write it")
