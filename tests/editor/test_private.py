"""Private files: what is in them goes to a model when a person said so, and in no other way."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from foreign import ForeignEditor
from workbench import Workbench

from lastword import Preset, Session, ToolRegistry
from lastword.cli import DONE, FAILED, WRONG_USAGE, run
from lastword.config import load
from lastword.consent import ApprovalRequest, UserAction
from lastword.editor import ProjectEditor, ProjectProvider, ScriptEditorProvider, SealedEditor
from lastword.editor.project_files import PRIVATE, Privacy
from lastword.editor.project_folder import folded
from lastword.errors import EditError
from lastword.journal import Journal
from lastword.store import Entry, MemoryStore
from lastword.testing import FixedApprover
from requirements import requirement

SECRET = "hunter2"
ENV = f"USER=ann\nPASSWORD={SECRET}\n"

ARE_PRIVATE = (
    ".env", ".env.local", ".ENV", ".envrc", "deploy/prod.env", "id_rsa", "keys/id_ed25519.pub", "ID_RSA.bak",
    "id_deploy", "server.pem", "TLS.KEY", "credentials", "credentials.json", "Credentials.csv", ".netrc", ".pgpass",
    ".npmrc", "home/.aws/config", ".ssh/known_hosts", "release.keystore", "vault.kdbx", "secrets.yaml",
    "terraform.tfstate.backup", ".docker/config.json", "home/.docker/config.json", "main.tfvars",
)  # fmt: skip
ARE_NOT = (
    "environment.yml", "src/env.py", "id_card.html", "id_generator.py", "pem.py", "keys.py", "credential.py",
    "notes.txt", "src/credentialing/a.py", "envelope/a.txt", "secrets.py", "netrc.md", "aws/config", "Dockerfile",
    "config.json",
)  # fmt: skip


@pytest.fixture
def bench(bench: Workbench) -> Workbench:
    (bench.folder / ".env").write_text(ENV)
    return bench


@requirement("EDIT-11")
@pytest.mark.parametrize("path", ARE_PRIVATE)
def test_names_that_usually_hold_secrets_are_private(path: str):
    """Whatever their case, and wherever they stand."""
    assert Privacy().why(path) is not None


@pytest.mark.parametrize("path", ARE_NOT)
def test_names_that_merely_look_like_it_are_not(path: str):
    """A card for a file that nobody minds teaches people to say yes."""
    assert Privacy().why(path) is None


def test_the_patterns_mean_what_git_would_make_of_them(tmp_path: Path):
    """They are written as in a .gitignore, so git is the judge; but for the case, which it minds."""
    (tmp_path / ".gitignore").write_text("\n".join(map(folded, PRIVATE)))
    paths = sorted({folded(path) for path in (*ARE_PRIVATE, *ARE_NOT)})
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    asked = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin"],
        cwd=tmp_path, input="\n".join(paths), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sorted(path for path in paths if Privacy().why(path)) == asked.stdout.splitlines()


def test_more_patterns_may_be_given_and_ours_taken_back():
    """The last that fits decides; what it is is part of the words."""
    privacy = Privacy(["*.secret", "/docs/plan.md", "vault/", "!.env.example"])
    assert privacy.why("a/b.SECRET") == "its name fits *.secret"
    assert privacy.why("docs/plan.md") == "its name fits /docs/plan.md"
    assert privacy.why("old/docs/plan.md") is None
    assert privacy.why("old/vault/deep/a.txt") == "its name fits vault/"
    assert privacy.why(".env.example") is None
    assert privacy.why(".env") == "its name fits .env*"
    assert Privacy(["!.ssh/", "!/keys/*.pem"]).why(".ssh/known_hosts") is None
    assert Privacy(["!/keys/*.pem"]).why("keys/public.pem") is None
    assert Privacy(["!/keys/*.pem"]).why("public.pem") == "its name fits *.pem"
    assert Privacy(["!/keys/*.pem", "*.pem"]).why("keys/public.pem") == "its name fits *.pem"


@pytest.mark.parametrize("pattern", ["", "# a remark", "a\nb", "[", "!"])
def test_what_is_no_pattern_is_refused(tmp_path: Path, pattern: str):
    """One that fits nothing would leave open what somebody wanted closed."""
    with pytest.raises(EditError, match="is not a pattern for private files"):
        ProjectEditor(tmp_path, private=[pattern])


@requirement("EDIT-11")
def test_what_git_ignores_is_private(folder: Path):
    """That is where people keep what must not leave their machine. The innermost file decides, as everywhere."""
    (folder / ".gitignore").write_text("*.log\n/local/\n")
    (folder / "src" / ".gitignore").write_text("!keep.log\nscratch.py\n")
    why = ProjectEditor(folder).privacy()
    private = ["a.log", "src/a.log", "local/deep/a.txt", "src/scratch.py"]
    assert [why(path) for path in private] == ["git is told to ignore it"] * 4
    assert [why(path) for path in ("src/keep.log", "src/local/a.txt", "scratch.py", ".gitignore")] == [None] * 4


@pytest.mark.parametrize("text", [b"# caf\xe9\n*.log\n", b"*.log\n\0"], ids=["latin-1", "binary"])
def test_an_ignore_file_that_is_not_quite_text_still_hides_what_it_names(folder: Path, text: bytes):
    """To take it for empty would open everything that it closes."""
    (folder / ".gitignore").write_bytes(text)
    assert ProjectEditor(folder).privacy()("a.log") == "git is told to ignore it"


# Every way in which a tool that asks nobody could come by what is in the file.
LOOKS: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": ".env"}),
    ("read_file", {"path": "./.env"}),
    ("read_file", {"path": ".//.env", "first_line": 2, "last_line": 2}),
    ("read_file", {"path": ".env", "first_line": 2, "first_character": 1}),
    ("search_files", {"query": "PASSWORD"}),
    ("search_files", {"query": ".", "regex": True, "pattern": ".env"}),
    ("lint_files", {}),
    ("lint_files", {"path": ".env"}),
    ("list_files", {}),
]


@requirement("EDIT-11")
@pytest.mark.parametrize(("tool", "arguments"), LOOKS)
async def test_what_asks_nobody_does_not_see_what_is_in_a_private_file(bench: Workbench, tool: str, arguments):
    """Refused in words, or left out and said so; nobody was asked either."""
    outcome = await bench.call(tool, **arguments)
    assert SECRET not in outcome.message
    assert "ann" not in outcome.message
    assert ".env" in outcome.message
    assert bench.approver.requests == []


@requirement("EDIT-11")
async def test_a_refusal_says_why_and_names_the_way(bench: Workbench):
    """A model that is only told no tries the next spelling."""
    assert await bench.refused("read_file", path="./.env") == (
        ".env: this file is private (its name fits .env*), "
        "so what is in it is not looked at before a person was asked\n"
        "hint: read_private_file asks them"
    )
    found = (await bench.done("search_files", query="PASSWORD")).value
    assert {"why": "private", "count": 1, "paths": [".env"]} in found["left_out"]
    assert found["note"] == "Left out: .env (private)."


@pytest.mark.parametrize("path", ["src/../.env", "link", "sub/.env"])
async def test_no_detour_leads_to_a_private_file(bench: Workbench, path: str):
    """Paths that lead upwards and links are refused as such."""
    (bench.folder / "link").symlink_to(".env")
    (bench.folder / "sub").symlink_to(".")
    assert SECRET not in await bench.refused("read_file", path=path)


async def test_another_case_of_the_name_is_as_private(bench: Workbench):
    """On a system that ignores case it is the same file."""
    (bench.folder / ".ENV.Local").write_text(ENV)
    assert "its name fits .env*" in await bench.refused("read_file", path=".ENV.Local")


async def test_linters_do_not_quote_a_private_file(bench: Workbench):
    """A finding repeats names and values; those of a private file are not looked for."""
    (bench.folder / ".gitignore").write_text("local.py\n")
    (bench.folder / "local.py").write_text(f"import os\nx = {SECRET}\n")
    (bench.folder / "credentials.json").write_text(f'{{"{SECRET}": }}')
    (bench.folder / "credentials.py").write_text(f"import os\nx = {SECRET}\n")
    outcome = await bench.done("lint_files")
    assert SECRET not in outcome.message
    private = next(group for group in outcome.value["left_out"] if group["why"] == "private")
    assert private["paths"] == [".env", "credentials.json", "credentials.py"]
    assert "credentials.py" not in str(outcome.value["findings"])
    words = await bench.refused("fix_lint")
    assert "nothing that can be fixed by itself" in words


@requirement("EDIT-11")
async def test_a_person_is_asked_before_a_private_file_is_read(bench: Workbench):
    """The card names the file and the reason, and never what is in it: somebody may look over a shoulder."""
    outcome = await bench.done("read_private_file", path="./.env")
    assert (outcome.value, outcome.approval) == (ENV, "person")
    (request,) = bench.approver.requests
    assert request.title == "Read .env"
    assert request.message == (
        ".env is private: its name fits .env*. Its whole text would be given to the assistant, and with it to whoever "
        "runs its model. That cannot be taken back."
    )
    assert request.preview == ()
    assert SECRET not in str(request)
    part = await bench.done("read_private_file", path=".env", first_line=1, last_line=1)
    assert part.value == "USER=ann\n"
    assert "Line 1 would be given to the assistant" in bench.approver.requests[-1].message


@requirement("EDIT-11")
async def test_a_private_file_is_not_read_when_the_answer_is_no(bench: Workbench):
    """Nor when there is nobody to ask."""
    bench.answers(lambda request: request.deny("mine"))
    outcome = await bench.call("read_private_file", path=".env")
    assert (outcome.kind, SECRET in outcome.message) == ("denied", False)
    async with Session(bench.registry, editor=ProjectEditor(bench.folder)) as session:
        outcome = await session.call("read_private_file", {"path": ".env"})
    assert (outcome.kind, SECRET in outcome.message) == ("no_approver", False)


async def test_nobody_is_asked_about_a_file_that_is_not_private_or_not_there(bench: Workbench):
    """A card that need not be teaches people to say yes."""
    assert "read_file reads it without asking" in await bench.refused("read_private_file", path="notes.txt")
    assert "there is no such file" in await bench.refused("read_private_file", path=".env.prod")


async def test_what_a_private_file_holds_is_not_told_by_how_a_read_fails(bench: Workbench):
    """How many lines it has is a fact about it, and told after the card."""
    bench.answers(lambda request: request.deny(), ApprovalRequest.allow)
    denied = await bench.call("read_private_file", path=".env", last_line=50)
    assert "2" not in denied.message
    allowed = await bench.call("read_private_file", path=".env", last_line=50)
    assert "there are no lines 1 to 50; the file has 2" in allowed.message


async def test_a_private_file_that_changes_while_the_card_waits_is_asked_about_again(bench: Workbench):
    """Yes to what it was is no yes to what it is."""

    def somebody_writes(request: ApprovalRequest) -> UserAction:
        (bench.folder / ".env").write_text("TOKEN=other\n")
        return request.allow()

    bench.answers(somebody_writes, lambda request: request.deny())
    assert (await bench.call("read_private_file", path=".env")).kind == "denied"
    assert bench.approver.requests[1].problem == ".env changed while the question waited"


EDITS: list[tuple[str, dict[str, Any]]] = [
    ("replace_text", {"old": "USER=ann", "new": "USER=bob"}),
    ("insert_lines", {"operations": [{"start_line": 1, "content": "A=1"}]}),
    ("replace_lines", {"operations": [{"start_line": 1, "content": "USER=bob"}]}),
    ("write_file", {"text": "USER=bob\n"}),
    ("rename_file", {"new_path": "plain.txt"}),
    ("delete_file", {}),
]


@requirement("EDIT-11")
@pytest.mark.parametrize(("tool", "arguments"), EDITS)
async def test_a_private_file_is_changed_without_being_told(bench: Workbench, tool: str, arguments):
    """The person sees the change; the model learns that it happened. It need not read a file to change a line of it."""
    outcome = await bench.done(tool, path="./.env", **arguments)
    (request,) = bench.approver.requests
    assert [preview.path for preview in request.preview] == [".env"]
    assert ".env is private: its name fits .env*." in request.message
    assert SECRET not in outcome.message
    undone = await bench.session.undo(outcome.call_id)
    assert SECRET not in undone.message
    assert bench.read(".env") == ENV.encode()


# Edits that do not fit: each would tell something of what is in the file.
MISFITS: list[tuple[str, dict[str, Any], str]] = [
    ("replace_text", {"old": "PASSWORD=guess", "new": "x"}, "the text to replace does not occur in the file"),
    ("replace_text", {"old": "=", "new": ":", "count": 9}, "the text to replace occurs 2 times, not 9 times"),
    ("replace_text", {"old": SECRET, "new": SECRET}, "nothing would change: the file is like that already"),
    ("insert_lines", {"operations": [{"start_line": 9, "content": "x"}]}, "the file has 2 lines"),
    ("replace_lines", {"operations": [{"start_line": 9, "content": "x"}]}, "the file has 2"),
    ("write_file", {"text": ENV}, "nothing would change: the file is like that already"),
    ("fix_lint", {}, "there is nothing that can be fixed by itself"),
]


@requirement("EDIT-11")
@pytest.mark.parametrize(("tool", "arguments", "fact"), MISFITS)
async def test_whether_an_edit_fits_a_private_file_is_told_by_the_person(bench: Workbench, tool, arguments, fact: str):
    """A model that may try texts until one fits has read the file. Each try costs a card, which says what is told."""
    bench.answers(lambda request: request.deny(), ApprovalRequest.allow)
    denied = await bench.call(tool, path=".env", **arguments)
    assert denied.kind == "denied"
    assert fact not in denied.message
    (request,) = bench.approver.requests
    assert request.title == "Tell the assistant about .env"
    assert fact in request.message
    assert request.preview == ()
    told = await bench.call(tool, path=".env", **arguments)
    assert told.kind == "failed"
    assert fact in told.message
    assert (SECRET in told.message, SECRET in request.message) == (False, False)
    assert bench.read(".env") == ENV.encode()


@requirement("EDIT-11")
@pytest.mark.parametrize("guess", [SECRET, "wrong"])
async def test_a_batch_does_not_tell_whether_a_guess_fits(bench: Workbench, guess: str):
    """Everything else is judged first, so that what fails says nothing about the private file."""
    private = {"action": "replace_text", "path": ".env", "old": guess, "new": "x"}
    impossible = {"action": "replace_text", "path": "notes.txt", "old": "three", "new": "3"}
    words = await bench.refused("edit_files", edits=[private, impossible])
    assert words.startswith("notes.txt: the text to replace does not occur in the file (edit 2 of 2;")


async def test_a_batch_does_not_drop_an_edit_of_a_private_file_in_silence(bench: Workbench):
    """Left out because it changes nothing, it would tell that the guess was right, behind a card about another file."""
    edits = [
        {"action": "replace_text", "path": ".env", "old": SECRET, "new": SECRET},
        {"action": "write_file", "path": "notes.txt", "text": "x\n"},
    ]
    bench.answers(lambda request: request.deny())
    assert (await bench.call("edit_files", edits=edits)).kind == "denied"
    assert bench.approver.requests[0].title == "Tell the assistant about .env"


async def test_a_yes_to_being_told_is_no_yes_to_a_change(folder: Path):
    """The file becomes one that the edit fits, at the last moment: the card showed no change, so none is made."""

    class Interfering(MemoryStore):
        async def commit(self, *entries: Entry) -> bool:
            if "burned" in [entry.kind for entry in entries]:
                (folder / ".env").write_text("PASSWORD=guess\n")
            return await super().commit(*entries)

    (folder / ".env").write_text(ENV)
    bench = Workbench(folder, Journal(Interfering()))
    outcome = await bench.call("replace_text", path=".env", old="PASSWORD=guess", new="x")
    assert outcome.kind == "failed"
    assert "the change was not shown, so nothing was changed" in outcome.message
    assert bench.read(".env") == b"PASSWORD=guess\n"


async def test_a_card_says_what_would_not_be_private_any_more(bench: Workbench):
    """A rename, or another .gitignore, opens a file without touching what is in it."""
    bench.answers(*[lambda request: request.deny()] * 3)
    await bench.call("rename_file", path=".env", new_path="plain.txt")
    await bench.call("rename_file", path=".env", new_path=".env.old")
    await bench.call("write_file", path="src/.gitignore", text="*.log\n")
    opened, kept, ignoring = (request.message for request in bench.approver.requests)
    assert "As plain.txt it would not be, and the assistant could read it without asking." in opened
    assert "would not be" not in kept
    assert "this also decides which files the assistant reads without asking" in ignoring


@requirement("EDIT-11")
async def test_what_a_person_writes_into_a_private_file_is_not_told(bench: Workbench):
    """They put in the real key where the model had a placeholder. Otherwise the model is told what really ran."""
    bench.answers(lambda request: request.edit(text="TOKEN=typed-by-hand\n"))
    outcome = await bench.done("write_file", path=".env", text="TOKEN=placeholder\n")
    assert bench.read(".env") == b"TOKEN=typed-by-hand\n"
    assert "The person changed the arguments of write_file" in outcome.message
    assert "What ran is not told: .env is private." in outcome.message
    assert "typed-by-hand" not in outcome.message


async def test_fixing_a_private_file_does_not_repeat_what_is_in_it(bench: Workbench):
    """The fix is on the card; what the linter finds afterwards would quote the file."""
    (bench.folder / "credentials.py").write_text(f"import os\nx = {SECRET}\n")
    outcome = await bench.done("fix_lint", path="credentials.py")
    assert bench.read("credentials.py") == f"x = {SECRET}\n".encode()
    assert SECRET not in outcome.message
    assert "credentials.py was not checked again: private." in outcome.message


def registered(function: Callable[..., Any], **facts: Any) -> ToolRegistry:
    registry = ToolRegistry()
    registry.tool(**facts)(function)
    return registry


async def peek(path: str, editor: SealedEditor) -> str:
    """Reads in every way there is."""
    said = []
    ways = (editor.get_file_content, editor.read_bytes, editor.get_fixed_content, editor.reader())
    for look in (*ways, lambda path: editor.read_part(path, 1, None, 100)):
        try:
            result: Any = look(path)
            said.append(str(await result if hasattr(result, "__await__") else result))
        except EditError as problem:
            said.append(problem.fact)
    return "\n".join([*said, str(editor.get_lint_errors())])


@requirement("EDIT-11")
@pytest.mark.parametrize(
    ("facts", "approver", "sees"),
    [
        ({"require_approval": False}, None, False),
        ({"auto_approve": True}, None, False),
        ({}, FixedApprover(), True),
    ],
    ids=["free", "auto-approved", "asked"],
)
async def test_any_tool_sees_private_files_only_after_a_card(folder: Path, facts, approver, sees: bool):
    """Ours and everybody else's: the editor that a call gets knows whether a person was asked about it."""
    (folder / "credentials.py").write_text(f"import os\nx = {SECRET}\n")
    registry = registered(peek, **facts)
    preset = Preset(auto_approve=True)
    async with Session(registry, editor=ProjectEditor(folder), approver=approver, preset=preset) as session:
        outcome = await session.call("peek", {"path": "credentials.py"})
    assert outcome.success, outcome.message
    assert outcome.message.count("this file is private") == (0 if sees else 5)
    assert (SECRET in outcome.message) == sees


async def test_a_tool_that_asks_nobody_cannot_rename_a_private_file_into_the_open(folder: Path):
    """It could read it under the new name."""

    async def expose(editor: ProjectProvider) -> str:
        await editor.rename_file(".env", "plain.txt")
        return str(await editor.get_file_content("plain.txt"))

    (folder / ".env").write_text(ENV)
    async with Session(registered(expose, require_approval=False), editor=ProjectEditor(folder)) as session:
        outcome = await session.call("expose")
    assert not outcome.success
    assert (folder / ".env").read_text() == ENV


async def test_a_tool_that_was_denied_does_not_see_private_files(folder: Path):
    """It may word its own answer, and the answer was no."""

    async def insist(editor: ScriptEditorProvider, user_action: UserAction) -> dict[str, Any]:
        """Reads whatever was answered."""
        return {"success": False, "message": str(await editor.get_file_content(".env"))}

    (folder / ".env").write_text(ENV)
    approver = FixedApprover(lambda request: request.deny())
    async with Session(registered(insist), editor=ProjectEditor(folder), approver=approver) as session:
        outcome = await session.call("insist")
    assert (outcome.kind, SECRET in outcome.message) == ("denied", False)


async def test_the_files_of_a_foreign_editor_are_private_by_their_names():
    """It has no say in it, so the usual names hold."""
    registry = Workbench.tools()
    editor = ForeignEditor({".env": ENV, "a.txt": "one\n"})
    async with Session(registry, editor=editor, approver=FixedApprover()) as session:
        assert "this file is private" in (await session.call("read_file", {"path": ".env"})).message
        found = (await session.call("search_files", {"query": "PASSWORD"})).value
        assert (found["matches"], found["note"]) == ([], "Left out: .env (private).")
        assert (await session.call("read_private_file", {"path": ".env"})).value == ENV
        editor.get_lint_errors = lambda: {".env": [{"line": 2, "message": SECRET}]}  # type: ignore[method-assign]
        linted = await session.call("lint_files")
        assert (SECRET in linted.message, linted.value["note"]) == (False, "Left out: .env (private).")


async def test_a_large_private_file_is_read_by_lines_after_a_card(bench: Workbench):
    """Its digest is not taken, since that would mean to read all of it; everything else is the same."""
    (bench.folder / "huge.pem").write_text("a line of a key\n" * 300_000)
    assert "this file is private" in await bench.refused("read_file", path="huge.pem", first_line=299_999)
    outcome = await bench.done("read_private_file", path="huge.pem", first_line=299_999)
    assert outcome.value == "a line of a key\n" * 2


@requirement("EDIT-11")
def test_a_configuration_makes_more_files_private(folder: Path, tmp_path: Path, monkeypatch, capsys):
    """Wherever the editor's tools are used, also for a single call."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lastword.toml").write_text('[editor]\nprivate = ["notes.*"]\n')
    call = ["call", "read_file", "path=notes.txt", "--project", str(folder), "--store", "memory:"]
    assert run(call) == FAILED
    assert "this file is private (its name fits notes.*)" in capsys.readouterr().err
    (tmp_path / "lastword.toml").unlink()
    assert run(call) == DONE


def test_a_configuration_that_was_found_makes_no_file_less_private(folder: Path, tmp_path: Path, monkeypatch, capsys):
    """It may have come with the project. One that the person names is theirs."""
    monkeypatch.chdir(tmp_path)
    (folder / ".env.example").write_text("TOKEN=…\n")
    (tmp_path / "lastword.toml").write_text('[editor]\nprivate = [\n  "!.env.example",\n]\n')
    call = ["call", "read_file", "path=.env.example", "--project", str(folder), "--store", "memory:"]
    assert run(call) == WRONG_USAGE
    said = capsys.readouterr().err
    assert "lastword.toml:2: !.env.example would take a file out of those that are private" in said
    assert "hint: if it is your own, name it: --config FILE, or LASTWORD_CONFIG" in said
    monkeypatch.setenv("LASTWORD_CONFIG", str(tmp_path / "lastword.toml"))
    assert run(call) == DONE
    assert load(tmp_path / "lastword.toml", environ={}).editor.private == ["!.env.example"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[editor]\nprivat = ["x"]\n', "unknown field editor.privat"),
        ("[editor]\nprivate = [1]\n", "editor.private"),
        ('[editor]\nprivate = ["[", "x"]\n', "lastword.toml: editor.private: '[' is not a pattern for private files"),
        ("editor = 1\n", "editor is not a table"),
    ],
)
def test_a_wrong_configuration_opens_nothing(folder: Path, tmp_path: Path, monkeypatch, capsys, text: str, words: str):
    """What was meant to be private stays closed until the mistake is mended."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lastword.toml").write_text(text)
    assert run(["call", "read_file", "path=notes.txt", "--project", str(folder), "--store", "memory:"]) == WRONG_USAGE
    assert words in capsys.readouterr().err


def test_hard_links_and_copies_are_not_covered(folder: Path):
    """Said here and in the docs: a name is all there is to go by."""
    (folder / ".env").write_text(ENV)
    os.link(folder / ".env", folder / "plain.txt")
    assert ProjectEditor(folder).privacy()("plain.txt") is None
