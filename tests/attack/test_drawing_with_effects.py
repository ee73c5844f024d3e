"""Drawing a card may look and must not touch: editors, kept objects, and cards that cannot be drawn.

The routes to an effect are tried one by one in test_guard_routes.py, the time limits in test_slow_cards.py.
"""

import asyncio
import contextlib
import logging
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from lastword import Session, ToolRegistry
from lastword.consent import ALLOWED, DENIED
from lastword.editor import ProjectEditor
from lastword.errors import NotAllowedNow
from lastword.testing import FixedApprover
from requirements import requirement
from sending import CALL, until


@pytest.fixture
def draw(registry: ToolRegistry, assistant):
    """Makes `send` of a request function, calls it, and gives its outcome with the cards that were put to somebody."""

    async def call(request, execute=None, action=ALLOWED, **session):
        assistant(request, execute)
        approver = FixedApprover(action)
        return await Session(registry, approver=approver, **session).call("send", CALL), approver.requests

    return call


@requirement("TOOL-42")
@pytest.mark.parametrize(
    "method",
    [
        ("write_to_file", ("a.txt", "new")),
        ("update_file_content", ("a.txt", "new")),
        ("insert_content", ("a.txt", [{"start_line": 1, "content": "new"}])),
        ("replace_in_file", ("a.txt", [{"start_line": 1, "content": "new"}])),
        ("delete_file", ("a.txt",)),
        ("rename_file", ("a.txt", "b.txt")),
    ],
    ids=lambda method: method[0],
)
async def test_an_edit_while_the_card_is_drawn_is_refused(draw, tmp_path: Path, method):
    """The editor of the request phase records, and the record is looked at although the tool swallowed the error."""
    (tmp_path / "a.txt").write_text("old")
    name, arguments = method

    async def request(params, editor):
        with contextlib.suppress(Exception):
            await getattr(editor, name)(*arguments)
        return {"message": "Nothing happened."}

    outcome, cards = await draw(request, editor=ProjectEditor(tmp_path))
    assert outcome.kind == "refused"
    assert f"it tried to {name} a.txt" in outcome.message
    assert cards == []
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a.txt", "old")]


@requirement("TOOL-42")
async def test_an_editor_kept_from_an_earlier_call_writes_nothing_while_a_card_is_drawn(
    registry: ToolRegistry, assistant, tmp_path: Path
):
    """The call it was for is over, and this phase may not write at all."""
    kept: list[Any] = []

    async def request(params, editor):
        for old in kept:
            await old.write_to_file("stolen.txt", "x")
        return {"message": "?"}

    def execute(params, editor, user_action):
        kept.append(editor)
        return {"success": True, "message": "kept"}

    assistant(request, execute)
    session = Session(registry, approver=FixedApprover(), editor=ProjectEditor(tmp_path))
    assert (await session.call("send", CALL)).kind == "succeeded"
    assert (await session.call("send", CALL)).kind == "refused"
    assert list(tmp_path.iterdir()) == []


class Shelf:
    """Somebody else's editor, over a dict: no audit event announces what it writes."""

    script_name = "shelf"

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def exists(self, path: str) -> bool:
        return path in self.files

    async def get_file_content(self, path: str) -> str | None:
        return self.files.get(path)

    async def write_to_file(self, path: str, content: str) -> bool:
        self.files[path] = content
        return True


@requirement("TOOL-42")
async def test_the_editor_of_a_running_call_writes_nothing_while_another_card_is_drawn(
    registry: ToolRegistry, assistant
):
    """One call acts with consent; the other, whose card is drawn, must not act with the first one's hands."""
    running, drawn = asyncio.Event(), asyncio.Event()
    kept: list[Any] = []

    async def execute(params, editor, user_action):
        kept.append(editor)
        running.set()
        await drawn.wait()
        await editor.write_to_file("mine.txt", "x")
        return {"success": True, "message": ""}

    async def request(params):
        await kept[0].write_to_file("stolen.txt", "x")
        return {"message": "?"}

    assistant(None, execute)
    assistant(request, id="thief")
    shelf = Shelf()
    session = Session(registry, approver=FixedApprover(), editor=shelf)  # type: ignore[arg-type]
    first = asyncio.create_task(session.call("send", CALL))
    await running.wait()
    assert (await session.call("thief", CALL)).kind == "refused"
    drawn.set()
    assert (await first).kind == "succeeded"
    assert shelf.files == {"mine.txt": "x"}


@requirement("TOOL-56", "TOOL-51")
async def test_the_context_of_a_running_call_reports_nothing_while_another_card_is_drawn(
    registry: ToolRegistry, assistant
):
    """A line of progress is what a person reads of another call. Its own context says nothing yet, and may be asked."""
    running, drawn = asyncio.Event(), asyncio.Event()
    kept: list[Any] = []

    async def execute(context, user_action):
        context.report("begun")
        kept.append(context)
        running.set()
        await drawn.wait()
        return {"success": True, "message": ""}

    def request(context):
        context.report("drawing")
        kept[0].report("forged")
        return {"message": "?"}

    assistant(None, execute)
    assistant(request, id="thief")
    session = Session(registry, approver=FixedApprover())
    first = asyncio.create_task(session.call("send", CALL))
    await running.wait()
    outcome = await session.call("thief", CALL)
    drawn.set()
    assert (await first).kind == "succeeded"
    assert outcome.kind == "refused"
    assert "it tried to report the progress of another call" in outcome.message


@requirement("TOOL-42", "TOOL-22")
@pytest.mark.parametrize("owner", ["session", "registry", "a kept context"])
async def test_state_is_read_only_while_a_card_is_drawn_through_any_owner(registry: ToolRegistry, assistant, owner):
    """A tool may hold the session, the registry, or the context of an earlier call."""
    kept: dict[str, Any] = {"registry": registry}

    def request(params):
        if owner in kept:
            kept[owner].set_state("a", 1)
        return {"message": "?"}

    def execute(params, user_action, context):
        kept["a kept context"] = context
        return {"success": True, "message": ""}

    assistant(request, execute)
    session = Session(registry, approver=FixedApprover())
    if owner == "session":
        kept["session"] = session
    elif owner == "a kept context":
        await session.call("send", CALL)
    outcome = await session.call("send", CALL)
    assert outcome.kind == "refused"
    assert "it tried to set the state 'a'" in outcome.message
    assert session.get_all_state() == registry.get_all_state() == {}


@requirement("TOOL-30", "TOOL-42")
async def test_a_request_function_cannot_call_a_tool(registry: ToolRegistry, assistant, effects):
    """A tool that needs no approval would act before anybody agreed to anything."""
    registry.register(
        "free", {"description": "d", "parameters": [], "returns": "any"}, lambda a, c: effects.append("free")
    )

    async def request(params):
        with contextlib.suppress(Exception):
            await session.call("free")
        return {"message": "?"}

    assistant(request)
    session = Session(registry, approver=FixedApprover())
    outcome = await session.call("send", CALL)
    assert outcome.kind == "refused"
    assert "it tried to call free" in outcome.message
    assert effects == []


@requirement("TOOL-42", "TOOL-56")
async def test_a_task_left_behind_by_a_request_function_ends_with_its_phase(draw, effect_file):
    """It had a loop of its own, so there is none on which the rest could happen after the card was answered."""
    left: list[asyncio.Task[None]] = []

    async def later() -> None:
        await asyncio.sleep(0.01)
        effect_file.write_text("forged")

    async def request(params):
        left.append(asyncio.create_task(later()))
        asyncio.get_running_loop().call_later(0.01, effect_file.write_text, "forged")
        await asyncio.sleep(0)
        return {"message": "?"}

    outcome, _ = await draw(request)
    assert outcome.kind == "succeeded"
    assert left[0].cancelled()
    assert left[0].get_loop().is_closed()
    assert not effect_file.exists()


@requirement("TOOL-42", "TOOL-56")
@pytest.mark.parametrize("how", ["a task", "a callback"])
async def test_what_a_request_function_leaves_on_the_sessions_loop_stays_watched(draw, effect_file, how: str):
    """The guard goes with the context, so waiting until the card is answered does not help."""
    loop, answered = asyncio.get_running_loop(), asyncio.Event()
    problems: list[BaseException] = []

    def act() -> None:
        try:
            effect_file.write_text("forged")
        except NotAllowedNow as problem:
            problems.append(problem)

    async def later() -> None:
        await answered.wait()
        act()

    def request(params):
        if how == "a task":
            asyncio.run_coroutine_threadsafe(later(), loop)
        else:
            loop.call_soon_threadsafe(loop.call_later, 0.05, act)
        return {"message": "?"}

    outcome, _ = await draw(request)
    assert outcome.kind == "succeeded"
    answered.set()
    await until(lambda: problems)
    assert "tried to write" in str(problems[0])
    assert not effect_file.exists()


def _raises(params: Any) -> Any:
    raise ValueError("the password is hunter2")


async def _raises_async(params: Any) -> Any:
    raise ValueError("the password is hunter2")


async def _cancels_itself(params: Any) -> Any:
    raise asyncio.CancelledError


def _exits(params: Any) -> Any:
    sys.exit(1)


async def _exits_async(params: Any) -> Any:
    sys.exit(1)


def _goes_past(params: Any) -> Any:
    raise GeneratorExit


async def _goes_past_async(params: Any) -> Any:
    raise BaseExceptionGroup("both", [GeneratorExit(), ValueError("the password is hunter2")])


class Changeable(dict):
    """Shows a message to whoever checks and none to whoever draws."""

    def get(self, key: Any, default: Any = None) -> Any:
        return object()


NONSENSE: dict[str, tuple[Any, str]] = {
    "raises": (_raises, "it raised ValueError"),
    "raises on the loop": (_raises_async, "it raised ValueError"),
    "cancels itself": (_cancels_itself, "it was cancelled from within"),
    "exits": (_exits, "it tried to end the program"),
    "exits on the loop": (_exits_async, "it tried to end the program"),
    "goes past what catches exceptions": (_goes_past, "it raised GeneratorExit"),
    "goes past it on the loop": (_goes_past_async, "it raised BaseExceptionGroup"),
    "nothing": (lambda params: None, "it returned a NoneType"),
    "text": (lambda params: "Send it?", "it returned a str"),
    "no message": (lambda params: {}, "it returned no message"),
    "an empty message": (lambda params: {"message": ""}, "it returned no message"),
    "a number for a message": (lambda params: {"message": 5}, "its message is a int, not a string"),
    "an unknown field": (
        lambda params: {"message": "?", "primaryButtonLabel": "Yes"},
        "unknown field primaryButtonLabel (did you mean primary_button_label?)",
    ),
    "a preview that cannot be called": (
        lambda params: {"message": "?", "preview_button": {"label": "Show", "action": "now"}},
        "its preview_button is not {label, action}",
    ),
    "a preview with an unknown field": (
        lambda params: {"message": "?", "preview_button": {"label": "Show", "action": str, "lable": "x"}},
        "its preview_button has the unknown field lable (did you mean label?)",
    ),
    "an empty preview button": (lambda params: {"message": "?", "preview_button": {}}, "is not {label, action}"),
    "a preview that returns data": (
        lambda params: {"message": "?", "preview_button": {"label": "Show", "action": lambda: {"path": "a.txt"}}},
        "its preview returned a dict, which cannot be shown",
    ),
    "a preview that raises": (
        lambda params: {"message": "?", "preview_button": {"label": "Show", "action": lambda: 1 / 0}},
        "it raised ZeroDivisionError",
    ),
    "a label of a page": (lambda params: {"message": "?", "primary_button_label": "x" * 61}, "not one line of at most"),
    "a label of two lines": (lambda params: {"message": "?", "secondary_button_label": "a\nb"}, "not one line of"),
}


@requirement("TOOL-42", "TOOL-33")
@pytest.mark.parametrize("what", NONSENSE)
async def test_a_card_that_cannot_be_drawn_is_put_before_nobody(draw, effects, caplog, what: str):
    """Refused, with the reason for the tool's author, and none of its internals for the model."""
    caplog.set_level(logging.CRITICAL, "lastword")
    request, reason = NONSENSE[what]
    outcome, cards = await draw(request)
    assert (outcome.kind, outcome.approval) == ("refused", "none")
    assert reason in outcome.message
    assert "hunter2" not in outcome.message
    assert cards == []
    assert effects == []


@requirement("TOOL-46")
@pytest.mark.parametrize("action", [lambda: None, lambda: ""], ids=["nothing", "an empty text"])
async def test_a_preview_that_shows_nothing_says_so(draw, action):
    """The tool promised a preview. A button that silently is not there would look like a card without one."""
    _, cards = await draw(lambda params: {"message": "?", "preview_button": {"label": "Show", "action": action}})
    [request] = cards
    assert request.preview_label == "Show"
    assert [preview.proposed for preview in request.preview] == ["The preview of this tool shows nothing."]


@requirement("TOOL-46")
@pytest.mark.parametrize("button", [{}, {"preview_button": None}, {"preview_button": {"label": "", "action": str}}])
async def test_what_was_shown_through_the_editor_is_on_the_card_with_or_without_a_button(draw, tmp_path: Path, button):
    """It seals what may be written, so it must be seen, whatever the tool calls it."""
    (tmp_path / "a.txt").write_text("old")

    def request(params, editor):
        editor.open_diff_editor("a.txt", "new")
        return {"message": "?"} | button

    _, cards = await draw(request, action=DENIED, editor=ProjectEditor(tmp_path))
    [request_shown] = cards
    assert request_shown.preview_label == "Preview"
    assert [preview.path for preview in request_shown.preview] == ["a.txt"]


class Lying(str):
    """Passes for one line of text, and is not."""

    def isprintable(self) -> bool:
        return True

    def __len__(self) -> int:
        return 1


@requirement("TOOL-42", "TOOL-44")
async def test_a_text_of_the_tools_own_class_is_checked_as_the_text_it_is(draw):
    """What is checked is what is shown."""
    outcome, _ = await draw(lambda params: {"message": "?", "primary_button_label": Lying("a\nb")})
    assert "its primary_button_label is not one line of at most" in outcome.message


@requirement("TOOL-42")
async def test_a_lying_mapping_is_read_once(draw):
    """What was checked is what is drawn."""
    _, cards = await draw(lambda params: Changeable(message="Send it?"))
    assert cards[0].message == "Send it?"


class Distant(Shelf):
    """An editor that lives on the session's loop: whoever reads waits for something that only this loop brings."""

    def __init__(self) -> None:
        super().__init__()
        self.home = asyncio.get_running_loop()
        self.sockets = socket.socketpair()

    async def get_file_content(self, path: str) -> str | None:
        assert asyncio.get_running_loop() is self.home
        # Asking over a connection is its own affair, and no effect of the tool's.
        await self.home.sock_sendall(self.sockets[0], b"?")
        await asyncio.sleep(0)
        return self.files.get(path)


@requirement("TOOL-56", "EDIT-1")
async def test_an_editor_on_the_sessions_loop_is_read_there(registry: ToolRegistry, assistant):
    """The request function has a loop of its own, of which an editor of the host's knows nothing."""

    async def request(params, editor):
        return {"message": f"{await editor.get_file_content('a.txt')}"}

    assistant(request)
    editor = Distant()
    with editor.sockets[0], editor.sockets[1]:
        editor.sockets[0].setblocking(False)
        editor.files["a.txt"] = "old"
        approver = FixedApprover()
        session = Session(registry, approver=approver, editor=editor)  # type: ignore[arg-type]
        outcome = await session.call("send", CALL)
    assert outcome.kind == "succeeded", outcome.message
    assert approver.requests[0].message == "old"


@requirement("TOOL-42")
async def test_looking_is_allowed(draw, tmp_path: Path, monkeypatch):
    """Reading files, importing a module and keeping its byte code, reading state, printing: none of it is an effect."""
    (tmp_path / "freshly_written_module.py").write_text("ANSWER = 42")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)

    def request(params, context):
        import freshly_written_module

        seen = [p.name for p in tmp_path.iterdir()]
        words = (tmp_path / "freshly_written_module.py").read_text()
        return {"message": f"{freshly_written_module.ANSWER} {words} {context.get_state_value('a')} {len(seen)}"}

    outcome, cards = await draw(request, state={"a": 7})
    assert outcome.kind == "succeeded", outcome.message
    assert cards[0].message.startswith("42 ANSWER = 42 7 ")
    assert (tmp_path / "__pycache__").is_dir()


async def test_an_async_function_behind_a_lambda_is_awaited_under_the_guard(draw, effects, effect_file: Path):
    """It looks sync, and what it returns would do the work."""

    async def act(params):
        effect_file.write_text("forged")
        return {"message": "?"}

    outcome, _ = await draw(lambda params: act(params))
    assert outcome.kind == "refused"
    assert not effect_file.exists()
    assert effects == []
