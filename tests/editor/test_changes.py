"""What calls change is on record before it happens, and `session.undo` takes it back: byte for byte, whole, once."""

import asyncio
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_undo import contents, edits, modes
from trees import Tree, tree
from workbench import Workbench

from lastword import Session, ToolRegistry
from lastword.call import changes, take_back
from lastword.call.changes import ChangeLog
from lastword.consent import Call
from lastword.editor import Change, ProjectEditor, ProjectProvider, ScriptEditorProvider, SealedEditor
from lastword.errors import Conflict, LastWordError, SessionError, StoreError
from lastword.journal import Journal, data_of
from lastword.store import Entry, MemoryStore
from lastword.tools import Tool
from requirements import requirement
from tries import tries


class WatchingStore(MemoryStore):
    """Says what a file holds at the moment when a record becomes durable, and dies when it is told to."""

    def __init__(self, file: Path, dies_at: str = "") -> None:
        super().__init__()
        self.file = file
        self.dies_at = dies_at
        self.seen: list[tuple[str, bytes]] = []

    def append(self, entry: Entry) -> None:
        if not self.dies_at:  # what nobody waited for is lost when the program dies
            super().append(entry)

    async def commit(self, *entries: Entry) -> bool:
        if self.dies_at in [entry.kind for entry in entries]:
            raise StoreError("the disk is gone")
        self.seen += [(entry.kind, self.file.read_bytes()) for entry in entries]
        return await super().commit(*entries)


@requirement("EDIT-7")
async def test_what_is_about_to_change_is_durable_while_the_file_is_still_the_old_one(folder: Path):
    """A crash after the write must not lose the only copy of what was there."""
    store = WatchingStore(folder / "notes.txt")
    bench = Workbench(folder, Journal(store))
    outcome = await bench.done("write_file", path="notes.txt", text="new\n")
    assert ("changing_file", b"one\ntwo\n") in store.seen
    assert store.seen[-1] == ("finished", b"new\n")
    records = await bench.journal.store.read(subject=outcome.call_id)
    assert [record.kind for record in records] == [
        "asked", "answered", "burned", "started", "changing_file", "changed_file", "finished"
    ]  # fmt: skip


async def test_a_change_that_cannot_be_written_down_does_not_happen(folder: Path):
    """What could not be undone is not done, and the model is told."""
    bench = Workbench(folder, Journal(WatchingStore(folder / "notes.txt", dies_at="changing_file")))
    outcome = await bench.call("write_file", path="notes.txt", text="new\n")
    assert outcome.kind == "failed"
    assert "could not be written down before it happens, so it does not (the disk is gone)" in outcome.message
    assert bench.read("notes.txt") == b"one\ntwo\n"


async def test_one_call_may_not_change_more_than_can_be_kept(bench: Workbench, monkeypatch):
    """The journal is for undo, and not an archive."""
    monkeypatch.setattr(changes, "MAX_CALL_BYTES", 15)
    await bench.done("write_file", path="notes.txt", text="12345\n")
    outcome = await bench.call("write_file", path="src/main.py", text="12345678\n")
    assert outcome.kind == "failed"
    assert "more than the 15 bytes that can be kept for undo" in outcome.message
    assert bench.read("src/main.py") == b"print('hello')\n"


async def test_a_file_that_changes_while_it_is_written_down_is_a_conflict(folder: Path):
    """Remembering takes a moment, in which another program may write."""

    class Interfering(MemoryStore):
        async def commit(self, *entries: Entry) -> bool:
            if entries[0].kind == "changing_file":
                (folder / "notes.txt").write_bytes(b"by a person\n")
            return await super().commit(*entries)

    bench = Workbench(folder, Journal(Interfering()))
    outcome = await bench.call("write_file", path="notes.txt", text="new\n")
    assert outcome.kind == "failed"
    assert "the file changed after it was shown" in outcome.message
    assert bench.read("notes.txt") == b"by a person\n"
    with pytest.raises(SessionError, match="this call changed no files"):
        await bench.session.undo(outcome.call_id)


async def test_a_call_cancelled_while_it_is_written_down_writes_nothing(folder: Path):
    """Whoever says stop before the write means it."""
    reached, goes_on = asyncio.Event(), asyncio.Event()

    class Waiting(MemoryStore):
        async def commit(self, *entries: Entry) -> bool:
            if entries[0].kind == "changing_file":
                reached.set()
                await goes_on.wait()
            return await super().commit(*entries)

    bench = Workbench(folder, Journal(Waiting()))
    calling = asyncio.create_task(bench.call("write_file", path="notes.txt", text="new\n"))
    await reached.wait()
    bench.session.cancel(bench.approver.requests[0].call_id)
    assert (await calling).kind == "cancelled"
    goes_on.set()
    await asyncio.sleep(0)
    assert bench.read("notes.txt") == b"one\ntwo\n"


@requirement("EDIT-12")
@pytest.mark.parametrize("ends", ["raises", "says no", "is cancelled"])
async def test_a_tool_that_wrote_and_then_failed_tells_what_it_wrote(bench: Workbench, ends: str):
    """A model that hears of the failure alone takes the file for what it was."""
    written = asyncio.Event()

    async def half(editor: ScriptEditorProvider) -> dict[str, Any]:
        await editor.write_to_file("notes.txt", "new\n")
        await editor.write_to_file("made.txt", "new\n")
        written.set()
        if ends == "raises":
            raise ValueError("a bug")
        if ends == "is cancelled":
            await asyncio.Event().wait()
        return {"success": False, "message": "It did not work."}

    bench.registry.tool(half)
    calling = asyncio.create_task(bench.call("half"))
    await written.wait()
    if ends == "is cancelled":
        bench.session.cancel(bench.approver.requests[0].call_id)
    outcome = await calling
    assert not outcome.success
    assert outcome.message.endswith(
        "By then it had changed notes.txt, made.txt. That stays changed, unless a person undoes this call."
    )
    assert outcome.changed == ("notes.txt", "made.txt")
    await bench.session.undo(outcome.call_id)
    assert bench.read("notes.txt") == b"one\ntwo\n"


@requirement("EDIT-7")
async def test_a_call_is_taken_back_once(bench: Workbench):
    """The second time there may be other work in the file that looks the same."""
    outcome = await bench.done("write_file", path="notes.txt", text="new\n")
    undone = await bench.session.undo(outcome.call_id, by="Ann")
    assert undone.message == "Took back write_file: notes.txt is as it was before."
    assert (undone.tool, undone.paths) == ("write_file", ("notes.txt",))
    records = await bench.journal.store.read(subject=outcome.call_id, kind="undone")
    assert [data_of(record) for record in records] == [{"by": "Ann", "paths": ["notes.txt"]}]

    await bench.done("write_file", path="notes.txt", text="new\n")
    with pytest.raises(SessionError, match="this call was taken back already, by Ann"):
        await bench.session.undo(outcome.call_id)
    assert bench.read("notes.txt") == b"new\n"


@requirement("EDIT-7")
async def test_a_file_changed_since_is_left_alone_and_so_are_the_others(bench: Workbench):
    """Later work is never lost to an undo; undoing the later call first makes way."""
    edits = [{"action": "write_file", "path": path, "text": "new\n"} for path in ("notes.txt", "src/main.py")]
    first = await bench.done("edit_files", edits=edits)
    second = await bench.done("replace_text", path="src/main.py", old="new", new="newer")
    with pytest.raises(Conflict, match=r"changed since: src/main\.py; nothing was taken back"):
        await bench.session.undo(first.call_id)
    assert bench.read("notes.txt") == b"new\n"
    await bench.session.undo(second.call_id)
    assert set((await bench.session.undo(first.call_id)).paths) == {"notes.txt", "src/main.py"}
    assert bench.read("notes.txt") == b"one\ntwo\n"


async def test_an_undo_that_stopped_halfway_can_be_asked_for_again(bench: Workbench):
    """What is restored stays restored, and the key is taken only when all of it is."""
    edits = [{"action": "write_file", "path": path, "text": "new\n"} for path in ("notes.txt", "src/main.py")]
    outcome = await bench.done("edit_files", edits=edits)
    (bench.folder / "src/main.py").write_bytes(b"print('hello')\n")  # as an undo that was killed leaves it
    assert (await bench.session.undo(outcome.call_id)).paths == ("notes.txt",)
    assert bench.read("notes.txt") == b"one\ntwo\n"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("read_file", {"path": "notes.txt"}), ("replace_text", {"path": "notes.txt", "old": "x", "new": "y"})],
)
async def test_a_call_that_changed_nothing_has_nothing_to_take_back(bench: Workbench, tool: str, arguments):
    """Said in words, and not done in silence."""
    outcome = await bench.call(tool, **arguments)
    with pytest.raises(SessionError, match="this call changed no files"):
        await bench.session.undo(outcome.call_id)


async def test_a_rename_that_is_taken_back_is_one_file(bench: Workbench):
    """Two paths changed and one file did; "2 files are as they were before" would make somebody look for the other."""
    renamed = await bench.done("rename_file", path="notes.txt", new_path="deep/todo.txt")
    undone = await bench.session.undo(renamed.call_id)
    assert undone.message == "Took back rename_file: deep/todo.txt is called notes.txt again."
    assert set(undone.paths) == {"notes.txt", "deep/todo.txt"}
    edits = [
        {"action": "rename_file", "path": "notes.txt", "new_path": "todo.txt"},
        {"action": "write_file", "path": "src/main.py", "text": "new\n"},
    ]
    batch = await bench.done("edit_files", edits=edits)
    assert (await bench.session.undo(batch.call_id)).message.splitlines() == [
        "Took back edit_files: 2 files are as they were before.",
        "  src/main.py",
        "  notes.txt (renamed back from todo.txt)",
    ]


async def test_an_unknown_call_is_not_taken_back(bench: Workbench):
    """A typing mistake must not look like success."""
    with pytest.raises(SessionError, match="there is no such call in this journal"):
        await bench.session.undo("nope")


async def test_a_pruned_call_is_not_taken_back(bench: Workbench):
    """What was forgotten cannot be restored, and half of it must not be."""
    outcome = await bench.done("write_file", path="notes.txt", text="new\n")
    records = await bench.journal.store.read(subject=outcome.call_id, kind="changing_file")
    await bench.journal.store.forget(record.seq for record in records)
    with pytest.raises(SessionError, match="pruned from the journal"):
        await bench.session.undo(outcome.call_id)
    assert bench.read("notes.txt") == b"new\n"


async def test_a_call_is_not_taken_back_in_another_project(bench: Workbench, tmp_path: Path):
    """Its paths would mean other files there."""
    outcome = await bench.done("delete_file", path="notes.txt")
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = Session(bench.registry, editor=ProjectEditor(other), journal=bench.journal)
    with pytest.raises(SessionError, match="this session works in"):
        await elsewhere.undo(outcome.call_id)
    with pytest.raises(SessionError, match="no project here to restore files in"):
        await Session(bench.registry, journal=bench.journal).undo(outcome.call_id)
    assert list(other.iterdir()) == []


async def test_a_running_call_is_not_taken_back(bench: Workbench):
    """It would go on writing behind the undo."""
    started, ends = asyncio.Event(), asyncio.Event()

    async def slow(editor: ScriptEditorProvider) -> dict[str, Any]:
        await editor.write_to_file("notes.txt", "new\n")
        started.set()
        await ends.wait()
        return {"success": True, "message": "."}

    bench.registry.tool(slow)
    calling = asyncio.create_task(bench.call("slow"))
    await started.wait()
    (request,) = bench.approver.requests
    with pytest.raises(SessionError, match="this call is still running"):
        await bench.session.undo(request.call_id)
    ends.set()
    await calling
    await bench.session.undo(request.call_id)
    assert bench.read("notes.txt") == b"one\ntwo\n"


async def test_a_tool_that_asks_nobody_can_be_taken_back_too(folder: Path):
    """Whoever vouched for it did not vouch for every file."""

    async def stamp(editor: ScriptEditorProvider) -> str:
        await editor.write_to_file("new/stamp.txt", "x")
        return "stamped"

    registry = ToolRegistry()
    registry.tool(require_approval=False)(stamp)
    before = tree(folder)
    async with Session(registry, editor=ProjectEditor(folder)) as session:
        outcome = await session.call("stamp")
        assert outcome.changed == ("new/stamp.txt",)
        await session.undo(outcome.call_id)
    assert tree(folder) == before


async def test_a_mode_that_somebody_set_since_is_theirs(bench: Workbench):
    """Also where the call itself had left another mode than it found."""

    async def make_anew(editor: ProjectProvider) -> str:
        await editor.delete_file("notes.txt")
        await editor.write_to_file("notes.txt", "new\n")
        return "made anew"

    notes = bench.folder / "notes.txt"
    notes.chmod(0o755)
    bench.registry.tool(make_anew)
    first = await bench.done("make_anew")
    await bench.session.undo(first.call_id)
    assert notes.stat().st_mode & 0o777 == 0o755
    second = await bench.done("make_anew")
    notes.chmod(0o600)
    await bench.session.undo(second.call_id)
    assert notes.stat().st_mode & 0o777 == 0o600


class Interrupted:
    """A project and its journal as a crash in the middle of write_file left them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = WatchingStore(folder / "notes.txt", dies_at="finished")
        self.bench = Workbench(folder, Journal(self.store))

    async def crash(self) -> str:
        outcome = await self.bench.call("write_file", path="notes.txt", text="new\n")
        assert outcome.kind == "outcome_unknown"
        self.store.dies_at = ""
        (call_id,) = [life.call_id for life in await self.bench.journal.in_doubt()]
        return call_id


@requirement("EDIT-7")
@pytest.mark.parametrize("written", [True, False])
async def test_a_call_in_doubt_is_taken_back_whether_it_had_written_or_not(folder: Path, written: bool):
    """Nobody knows whether the file is the old one or the new one. The file does."""
    world = Interrupted(folder)
    call_id = await world.crash()
    assert (folder / "notes.txt").read_bytes() == b"new\n"
    if not written:
        (folder / "notes.txt").write_bytes(b"one\ntwo\n")
    session = world.bench.open()
    undone = await session.undo(call_id, by="Ann")
    assert (folder / "notes.txt").read_bytes() == b"one\ntwo\n"
    assert undone.paths == (("notes.txt",) if written else ())
    assert await session.in_doubt() == []
    life = await world.bench.journal.life(call_id)
    assert life.outcome().kind == "cancelled"
    assert "Ann took it back afterwards" in life.outcome().message
    with pytest.raises(SessionError, match="taken back already"):
        await session.undo(call_id)


async def test_a_file_made_anew_by_a_call_in_doubt_gets_its_mode_back(folder: Path):
    """What mode the new one got was never written down. Then the old one's is the best that is known."""

    async def make_anew(editor: ProjectProvider) -> str:
        await editor.delete_file("notes.txt")
        await editor.write_to_file("notes.txt", "new\n")
        return "made anew"

    (folder / "notes.txt").chmod(0o750)
    before = tree(folder)
    store = WatchingStore(folder / "src/main.py", dies_at="finished")
    bench = Workbench(folder, Journal(store))
    bench.registry.tool(make_anew)
    assert (await bench.call("make_anew")).kind == "outcome_unknown"
    store.dies_at = ""
    assert tree(folder) != before
    await bench.open().undo((await bench.journal.in_doubt())[0].call_id)
    assert tree(folder) == before


async def test_a_call_in_doubt_whose_file_somebody_changed_stays_in_doubt(folder: Path):
    """Neither the old nor the new: a person must look."""
    world = Interrupted(folder)
    call_id = await world.crash()
    (folder / "notes.txt").write_bytes(b"by a person\n")
    session = world.bench.open()
    with pytest.raises(Conflict, match=r"changed since: notes\.txt"):
        await session.undo(call_id)
    assert (folder / "notes.txt").read_bytes() == b"by a person\n"
    assert [life.call_id for life in await world.bench.journal.in_doubt()] == [call_id]


async def test_a_call_in_doubt_that_somebody_settled_first_is_taken_back_as_finished(folder: Path):
    """Done, says one person; I do not want it, says another. Both are right."""
    world = Interrupted(folder)
    call_id = await world.crash()
    session = world.bench.session
    await session.resolve(call_id, "done", by="Ann")
    assert (await session.undo(call_id, by="Bob")).paths == ("notes.txt",)
    assert (await world.bench.journal.life(call_id)).outcome().success


async def test_of_two_who_decide_about_a_call_in_doubt_only_one_is_heard(folder: Path):
    """The undo finds out when it wants to write itself down."""
    world = Interrupted(folder)
    call_id = await world.crash()
    session = world.bench.session

    def while_it_looks(where: Path | None) -> ProjectEditor:
        return Deciding(folder, session, call_id)

    with pytest.raises(SessionError, match="somebody else has just decided about this call"):
        await take_back(world.bench.journal, while_it_looks, call_id, by="Bob")


class Deciding(ProjectEditor):
    """An editor during whose restoring somebody else settles the call."""

    def __init__(self, folder: Path, session: Session, call_id: str) -> None:
        super().__init__(folder)
        self._session, self._call_id = session, call_id

    async def restore(self, change: Change) -> None:
        await super().restore(change)
        await self._session.resolve(self._call_id, "abandon", by="Ann")


class Picture(NamedTuple):
    """The project at a moment, and how many records of the call there were."""

    files: Tree
    records: int
    about_to_make: tuple[str, ...] = ()


class Witness(ChangeLog):
    """Takes a picture at every moment at which a crash would leave something else."""

    def __init__(self, folder: Path, *arguments: Any) -> None:
        super().__init__(*arguments, durable=True)
        self._where = folder
        self._records = 0
        self.pictures: list[Picture] = []

    async def will_change(self, change: Change) -> None:
        await super().will_change(change)
        self._records += 1
        self.pictures.append(Picture(tree(self._where), self._records, change.made_folders))

    def has_changed(self, change: Change) -> None:
        self.pictures.append(Picture(tree(self._where), self._records))
        super().has_changed(change)
        self._records += 1
        self.pictures.append(Picture(tree(self._where), self._records))


def put(folder: Path, picture: Tree) -> None:
    """Make a folder what the picture shows."""
    shutil.rmtree(folder)
    folder.mkdir()
    for path, entry in picture.items():
        if entry is None:
            (folder / path).mkdir()
        else:
            (folder / path).write_bytes(entry[0])
            (folder / path).chmod(entry[1])


@requirement("EDIT-7")
@tries(30)
@given(
    st.data(),
    st.dictionaries(st.sampled_from(["a.txt", "b.txt", "deep/c.txt"]), st.tuples(contents, modes), min_size=1),
    st.lists(edits, min_size=1, max_size=5),
)
async def test_a_crash_at_any_record_is_taken_back_to_the_last_byte(
    tmp_path_factory: pytest.TempPathFactory, send: Tool, data: Any, files: dict[str, tuple[bytes, int]], edits: Any
):
    """Whatever the tool does and wherever it dies: the journal and the files together know how it was before."""
    folder = tmp_path_factory.mktemp("project")
    for path, (content, mode) in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
        (folder / path).chmod(mode)
    before = tree(folder)
    editor = ProjectEditor(folder)
    journal = Journal()
    assert await journal.store.commit(journal._started("s", Call("c", "send", b"{}"), send, "person"))
    witness = Witness(folder, journal, "s", "c", editor)
    sealed = SealedEditor(editor, (), witness)
    for method, *arguments in edits:
        try:
            await getattr(sealed, method)(*arguments)
        except LastWordError:
            continue
    if not witness.pictures:
        return
    picture = data.draw(st.sampled_from(witness.pictures), "the moment of the crash")
    put(folder, picture.files)
    for made in picture.about_to_make[: data.draw(st.integers(0, 2), "folders that were made")]:
        (folder / made).mkdir()
    survived = MemoryStore()
    for record in (await journal.store.read())[: 1 + picture.records]:
        assert record.data is not None
        survived.append(Entry(record.stream, record.kind, record.subject, record.at, record.data))

    def reopen(where: Path | None) -> ProjectProvider:
        assert where is not None
        return ProjectEditor(where)

    await take_back(Journal(survived), reopen, "c", by="Ann")
    assert tree(folder) == before
