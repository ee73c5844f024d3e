"""A card is drawn from files and from state. If one of them changes while it waits, the answer was to another card."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastword import ApprovalRequest, Preset, Session, ToolRegistry, UserAction
from lastword.consent import DENIED
from lastword.editor import ProjectEditor
from lastword.journal import data_of
from lastword.testing import FixedApprover, memory_journal
from lastword.tools.guard import Observation, observations
from lastword.values import canonical, digest
from requirements import requirement
from sending import CALL, until


def then(change: Callable[[], Any]) -> Callable[[ApprovalRequest], UserAction]:
    """Say yes, but not before something happened."""

    def answer(request: ApprovalRequest) -> UserAction:
        change()
        return request.allow()

    return answer


def reading(path: Path, how: str = "open", kind: str = "sync") -> Any:
    """A request function that reads a file, in one of the ways in which people do, if it is there."""

    def text() -> str:
        try:
            if how == "os.open":
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    return os.read(descriptor, 1000).decode()
                finally:
                    os.close(descriptor)
            if how == "relative":
                return Path(os.path.relpath(path)).read_text()
            return path.read_text()
        except FileNotFoundError:
            return "nothing"

    def request(params):
        return {"message": f"It says {text()}."}

    async def request_async(params):
        await asyncio.sleep(0)
        return {"message": f"It says {text()}."}

    def request_preview(params):
        return {"message": "?", "preview_button": {"label": "Show", "action": text}}

    return {"sync": request, "async": request_async, "preview": request_preview}[kind]


CHANGES: dict[str, tuple[str | None, Callable[[Path], Any]]] = {
    "other content": ("old", lambda path: path.write_text("new")),
    "other content of the same length and time": ("old", lambda path: _disguised(path, "new")),
    "gone": ("old", lambda path: path.unlink()),
    "come into being": (None, lambda path: path.write_text("new")),
    "a folder in its place": ("old", lambda path: (path.unlink(), path.mkdir())),
    "a pipe in its place": ("old", lambda path: (path.unlink(), os.mkfifo(path))),
    "a link to another": ("old", lambda path: (path.rename(path.with_name("b")), path.symlink_to("/etc/hostname"))),
}


def _disguised(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@requirement("TOOL-54", "TOOL-45")
@pytest.mark.parametrize("change", CHANGES)
async def test_a_file_that_was_opened_and_changed_makes_the_answer_void(
    registry: ToolRegistry, assistant, effects, tmp_path: Path, change: str
):
    """No editor is involved: the tool used plain `open`. The second card says which file it was."""
    path = tmp_path / "prices.txt"
    content, act = CHANGES[change]
    if content is not None:
        path.write_text(content)
    asked: list[ApprovalRequest] = []

    async def approver(request: ApprovalRequest) -> UserAction:
        asked.append(request)
        if len(asked) > 1:
            return request.deny()
        act(path)
        return request.allow()

    # A pipe would make the second drawing wait for a writer; whether it is opened at all is not the question here.
    assistant(reading(path) if "pipe" not in change else lambda params: {"message": _text_of_regular(path)})
    outcome = await Session(registry, approver=approver).call("send", CALL)
    if "folder" in change:
        assert outcome.kind == "refused"  # It cannot be drawn any more.
    else:
        assert outcome.kind == "denied"
        assert asked[1].problem == f"{path} changed while the question waited"
    assert len(asked) == (1 if "folder" in change else 2)
    assert effects == []


def _text_of_regular(path: Path) -> str:
    return path.read_text() if path.is_file() else "a pipe"


@requirement("TOOL-54")
@pytest.mark.parametrize("how", ["open", "os.open", "relative"])
@pytest.mark.parametrize("kind", ["sync", "async", "preview"])
async def test_it_does_not_matter_how_the_file_was_opened_or_where(
    registry: ToolRegistry, assistant, effects, tmp_path: Path, how: str, kind: str
):
    """In the request function or in its preview."""
    path = tmp_path / "prices.txt"
    path.write_text("old")
    assistant(reading(path, how, kind))
    approver = FixedApprover([then(lambda: path.write_text("new")), ApprovalRequest.allow])
    outcome = await Session(registry, approver=approver).call("send", CALL)
    assert outcome.kind == "succeeded"
    assert [request.problem for request in approver.requests] == [None, f"{path} changed while the question waited"]
    assert len(effects) == 1


@requirement("TOOL-54")
@pytest.mark.parametrize("auto", [False, True], ids=["person", "both keys"])
async def test_a_file_changed_after_it_was_read_and_before_the_card_is_there_is_found(
    registry: ToolRegistry, assistant, effects, tmp_path: Path, auto: bool
):
    """The digest is of what the tool saw, and not of what was there when it had finished. With both keys nobody sees
    the card, and what the tool is about to do was worked out from it all the same."""
    path = tmp_path / "prices.txt"
    path.write_text("old")
    read, changed = threading.Event(), threading.Event()

    def request(params):
        message = path.read_text()
        read.set()
        assert changed.wait(30)
        return {"message": message}

    assistant(request, autoApprove=auto)
    session = Session(registry, approver=None if auto else FixedApprover(), preset=Preset(auto_approve=auto))
    call = asyncio.create_task(session.call("send", CALL))
    await until(read.is_set)
    path.write_text("new")
    changed.set()
    assert (await call).kind == "succeeded"
    messages = [data_of(record)["message"] for record in await session.journal.history(session.id, kind="asked")]
    assert messages == ["old", "new"]
    assert len(effects) == 1


@requirement("TOOL-54")
async def test_what_stays_as_it_was_is_asked_about_once(registry: ToolRegistry, assistant, effects, tmp_path: Path):
    """Also when it was touched, or written again with the same content."""
    path, missing = tmp_path / "prices.txt", tmp_path / "missing.txt"
    path.write_text("old")

    def request(params, context):
        return {"message": f"{path.read_text()} {missing.exists()} {context.get_state_value('a')}"}

    def touch() -> None:
        path.write_text("old")
        os.utime(path, (1, 1))
        session.set_state("a", 1)
        session.set_state("b", 2)
        (tmp_path / "other.txt").write_text("new")

    assistant(request)
    approver = FixedApprover(then(touch))
    session = Session(registry, approver=approver, state={"a": 1})
    assert (await session.call("send", CALL)).kind == "succeeded"
    assert len(approver.requests) == len(effects) == 1


STATE: dict[str, tuple[Callable[[Any], Any], Callable[[Session], Any], list[str]]] = {
    "a value": (lambda c: c.get_state_value("a"), lambda s: s.set_state("a", 2), ["a"]),
    "that there is one": (lambda c: c.has_state("a"), lambda s: s.set_state("a", 2), ["a"]),
    "that there is none": (lambda c: c.has_state("new"), lambda s: s.set_state("new", 2), ["new"]),
    "a value that is forgotten": (lambda c: c.get_state_value("a"), lambda s: s.clear_state(), ["a"]),
    "a description": (
        lambda c: c.get_state_metadata("a"),
        lambda s: s.register_state_metadata("a", {"description": "prices"}),
        ["a"],
    ),
    "all values": (lambda c: c.get_all_state(), lambda s: s.set_state("b", 3), ["b"]),
    "all values, of which there is one more": (lambda c: c.get_all_state(), lambda s: s.set_state("new", 3), ["new"]),
    "all values, which are forgotten": (lambda c: c.get_all_state(), lambda s: s.clear_state(), ["a", "b"]),
    "all descriptions": (
        lambda c: c.get_all_state_metadata(),
        lambda s: s.register_state_metadata("new", {"description": "prices"}),
        ["new"],
    ),
    "the text for a prompt": (lambda c: c.format_state_for_prompt(), lambda s: s.set_state("b", 3), ["b"]),
}


@requirement("TOOL-54", "TOOL-45")
@pytest.mark.parametrize("owner", ["context", "session", "a thread of the tool's"])
@pytest.mark.parametrize("what", STATE)
async def test_a_key_of_the_state_that_was_read_and_changed_makes_the_answer_void(
    registry: ToolRegistry, assistant, effects, what: str, owner: str
):
    """Through whichever object it was read; and the second card says which key it was."""
    look, change, keys = STATE[what]
    jobs: list[Callable[[], Any]] = []
    go, gone = threading.Event(), threading.Event()

    def work() -> None:
        assert go.wait(30)
        jobs[0]()
        gone.set()

    def request(params, context):
        if owner == "a thread of the tool's":
            jobs.append(lambda: look(context))
            go.set()
            assert gone.wait(30)
        else:
            look(context if owner == "context" else session)
        return {"message": "?"}

    assistant(request)
    approver = FixedApprover([then(lambda: change(session)), DENIED])
    session = Session(registry, approver=approver, state={"a": 1, "b": 2})
    worker = threading.Thread(target=work)
    if owner == "a thread of the tool's":
        worker.start()
    outcome = await session.call("send", CALL)
    if owner == "a thread of the tool's":
        worker.join()
    assert outcome.kind == "denied"
    named = ", ".join(f"the state '{key}'" for key in keys)
    assert approver.requests[1].problem == f"{named} changed while the question waited"
    assert effects == []


@requirement("TOOL-54")
async def test_what_python_reads_for_itself_is_not_part_of_the_question(
    registry: ToolRegistry, assistant, tmp_path: Path, monkeypatch
):
    """Modules, their byte code, the library, installed packages, and what is no file on any disk."""
    (tmp_path / "freshly_read_module.py").write_text("ANSWER = 42")
    monkeypatch.syspath_prepend(str(tmp_path))
    os.mkfifo(tmp_path / "pipe")

    def request(params):
        import freshly_read_module

        installed = Path(pytest.__file__).read_text()
        library = Path(os.__file__).read_text()
        process = Path("/proc/self/stat").read_text() if sys.platform == "linux" else ""
        descriptor = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
        os.close(descriptor)
        folder = os.open(tmp_path, os.O_RDONLY)
        os.close(folder)
        with Path(os.devnull).open() as nothing:
            nothing.read()
        return {"message": f"{freshly_read_module.ANSWER} {len(installed + library + process)}"}

    assistant(request)
    approver = FixedApprover()
    assert (await Session(registry, approver=approver).call("send", CALL)).kind == "succeeded"
    assert approver.requests[0].looked_at == ()


@requirement("TOOL-54", "TOOL-46")
async def test_what_is_read_through_the_editor_is_accounted_for_there(
    registry: ToolRegistry, assistant, tmp_path: Path
):
    """Once, under the name that it has in the project."""
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "a.txt").write_text("old")

    async def request(params, editor):
        assert editor.get_all_files()
        editor.get_lint_errors()
        editor.open_diff_editor("a.txt", "new")
        return {"message": await editor.get_file_content("a.txt")}

    assistant(request)
    approver = FixedApprover(DENIED)
    await Session(registry, approver=approver, editor=ProjectEditor(tmp_path)).call("send", CALL)
    assert approver.requests[0].reads == (("a.txt", digest(b"old")),)
    assert approver.requests[0].looked_at == ()


@requirement("TOOL-54")
async def test_the_journal_keeps_digests_and_nothing_of_what_was_read(
    registry: ToolRegistry, assistant, tmp_path: Path, history
):
    """A request function may read a password file. What it says on the card is its own affair."""
    path = tmp_path / "secret.txt"
    path.write_text("hunter2")

    def request(params, context):
        path.read_text()
        context.get_state_value("token")
        return {"message": "?"}

    assistant(request)
    journal = memory_journal()
    session = Session(registry, approver=FixedApprover(), journal=journal, state={"token": "hunter3"})
    assert (await session.call("send", CALL)).kind == "succeeded"
    [asked] = [data for kind, data in await history(journal, session.id) if kind == "asked"]
    state_mark = digest(canonical("hunter3") + b"\0")
    assert asked["looked_at"] == [["file", str(path), digest(b"hunter2")], ["state", "token", state_mark]]
    assert "hunter" not in str(asked)


@requirement("TOOL-54")
async def test_a_request_with_looks_is_the_same_request_in_another_process(registry: ToolRegistry, assistant):
    """And what was looked at is sealed with it."""

    def request(params, context):
        return {"message": f"{context.get_state_value('a')}"}

    assistant(request)
    approver = FixedApprover(DENIED)
    await Session(registry, approver=approver, state={"a": 1}).call("send", CALL)
    [asked] = approver.requests
    again = ApprovalRequest.from_facts(asked.facts(), asked.manifest)
    assert (again.looked_at, again.digest) == (asked.looked_at, asked.digest)
    assert again.looked_at[0].name == "a"
    facts = {name: getattr(asked, name) for name in asked.__struct_fields__ if name != "looked_at"}
    assert ApprovalRequest(**facts, looked_at=(Observation("state", "a", "forged"),)).digest != asked.digest


@requirement("TOOL-54")
@pytest.mark.parametrize("change", [True, False], ids=["appended", "left alone"])
async def test_a_large_file_is_known_by_size_time_and_inode(
    registry: ToolRegistry, assistant, tmp_path: Path, monkeypatch, change: bool
):
    """Reading gigabytes twice more would cost more than it is worth."""
    monkeypatch.setattr(observations, "MAX_DIGESTED_BYTES", 10)
    path = tmp_path / "large.txt"
    path.write_text("x" * 11)
    found = path.stat()

    def meanwhile() -> None:
        if change:
            with path.open("a") as file:
                file.write("y")

    assistant(reading(path))
    approver = FixedApprover([then(meanwhile), DENIED])
    await Session(registry, approver=approver).call("send", CALL)
    mark = f"11 bytes, changed at {found.st_mtime_ns}, inode {found.st_ino}"
    assert approver.requests[0].looked_at == (Observation("file", str(path), mark),)
    assert len(approver.requests) == (2 if change else 1)


@requirement("TOOL-54")
async def test_a_file_whose_name_is_no_text_is_looked_at_again_all_the_same(
    registry: ToolRegistry, assistant, tmp_path: Path
):
    """A journal holds text, and a file system does not care."""
    path = tmp_path / "a\udcff.txt"
    path.write_text("old")
    assistant(reading(path))
    approver = FixedApprover([then(lambda: path.write_text("new")), DENIED])
    outcome = await Session(registry, approver=approver).call("send", CALL)
    assert outcome.kind == "denied"
    assert approver.requests[1].problem == f"{tmp_path}/a%FF.txt changed while the question waited"


@requirement("TOOL-54")
@pytest.mark.parametrize("key", ["\udcff", 5])
async def test_a_key_that_no_state_can_have_is_no_part_of_the_question(registry: ToolRegistry, assistant, key):
    """It is not there today, and will not be there tomorrow; and no journal could hold it."""
    assistant(lambda params, context: {"message": f"{context.get_state_value(key)}"})
    approver = FixedApprover()
    assert (await Session(registry, approver=approver).call("send", CALL)).kind == "succeeded"
    assert approver.requests[0].looked_at == ()


@requirement("TOOL-54")
async def test_the_state_of_somebody_else_is_not_the_questions(registry: ToolRegistry, assistant):
    """The registry has one of its own, for those who use it without a session."""
    assistant(lambda params: {"message": f"{registry.get_state_value('a')}"})
    approver = FixedApprover(then(lambda: registry.set_state("a", 2)))
    assert (await Session(registry, approver=approver).call("send", CALL)).kind == "succeeded"
    assert len(approver.requests) == 1


@requirement("TOOL-54")
@pytest.mark.parametrize("what", ["files", "state"])
async def test_who_looks_at_too_much_gets_no_card(
    registry: ToolRegistry, assistant, tmp_path: Path, monkeypatch, what: str
):
    """A question that could not be checked again is not asked."""
    monkeypatch.setattr(observations, "MAX_OBSERVATIONS", 3)
    for number in range(4):
        (tmp_path / str(number)).write_text("x")

    def request(params, context):
        if what == "files":
            return {"message": "".join(path.read_text() for path in tmp_path.iterdir())}
        return {"message": str(context.get_all_state())}

    assistant(request)
    approver = FixedApprover()
    outcome = await Session(registry, approver=approver, state=dict.fromkeys("abcd", 1)).call("send", CALL)
    assert outcome.kind == "refused"
    assert "it looked at more than" in outcome.message
    assert approver.requests == []


@requirement("TOOL-54")
async def test_of_many_things_that_changed_a_few_are_named(registry: ToolRegistry, assistant):
    """The reason stands on a card, and a card is read."""
    assistant(lambda params, context: {"message": str(context.get_all_state())})
    approver = FixedApprover([then(lambda: session.clear_state()), DENIED])
    session = Session(registry, approver=approver, state=dict.fromkeys("abcdefg", 1))
    await session.call("send", CALL)
    problem = approver.requests[1].problem
    assert problem == "the state 'a', the state 'b', the state 'c', the state 'd', the state 'e' and 2 more " + (
        "changed while the question waited"
    )


@requirement("TOOL-54")
async def test_files_are_read_again_beside_the_event_loop(registry: ToolRegistry, assistant, tmp_path: Path):
    """Many or large ones would hold up everybody else's calls."""
    (tmp_path / "a.txt").write_text("old")
    readers: list[int] = []

    class Observed(ProjectEditor):
        def read_bytes(self, path: str) -> bytes | None:
            readers.append(threading.get_ident())
            return super().read_bytes(path)

    async def request(params, editor):
        return {"message": await editor.get_file_content("a.txt")}

    assistant(request)
    outcome = await Session(registry, approver=FixedApprover(), editor=Observed(tmp_path)).call("send", CALL)
    assert outcome.kind == "succeeded"
    assert len(readers) > 2
    assert threading.get_ident() not in readers
