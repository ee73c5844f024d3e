"""A call that does what several others do: what rules say of those holds for it."""

from pathlib import Path
from typing import Any

import pytest

from lastword import Policy, Session, ToolRegistry
from lastword.editor import ProjectEditor, editor_tools
from lastword.testing import FixedApprover
from requirements import requirement

WRITE: dict[str, Any] = {"action": "write_file", "path": "new.md", "text": "new\n"}
DELETE: dict[str, Any] = {"action": "delete_file", "path": "notes.md"}


def rule(decide: str, tool: str, where: str = "", name: str = "") -> str:
    return f'[[rule]]\nname = "{name or tool} {decide}"\ntool = "{tool}"\ndecide = "{decide}"\n[rule.where]\n{where}\n'


class Batches:
    """A project with one file, rules, and somebody who says yes to every card."""

    def __init__(self, folder: Path, *rules: str) -> None:
        self.folder = folder
        (folder / "notes.md").write_text("mine\n")
        self.registry = ToolRegistry()
        editor_tools(self.registry)
        self.policy = Policy.vouched("".join(rules), self.registry)
        self.cards = FixedApprover(lambda request: request.allow())

    def session(self) -> Session:
        return Session(self.registry, approver=self.cards, editor=ProjectEditor(self.folder), policy=self.policy)

    async def edit(self, *edits: dict[str, Any]) -> str:
        async with self.session() as session:
            return (await session.call("edit_files", {"edits": list(edits)})).kind

    @property
    def lines(self) -> list[str]:
        """What each card said of why it was asked."""
        return [str(request.rule_line) for request in self.cards.requests]


@requirement("RULE-2")
async def test_what_a_rule_denies_is_denied_as_one_of_several_edits_too(tmp_path: Path):
    """Whoever wrote "no deletions here" means the file, and not the name of one of the tools that delete it."""
    batches = Batches(tmp_path, rule("deny", "delete_file"))
    assert await batches.edit(WRITE, DELETE) == "denied"
    assert (tmp_path / "notes.md").exists()
    assert not (tmp_path / "new.md").exists(), "all of a batch, or nothing"
    assert batches.cards.requests == []
    async with batches.session() as session:
        said = await session.explain("edit_files", {"edits": [DELETE]})
    assert str(said) == "deny. delete_file deny (policy.toml:1)"
    assert await batches.edit(WRITE) == "succeeded"


@requirement("RULE-2")
async def test_what_a_rule_wants_asked_is_asked_for_a_batch_that_holds_it(tmp_path: Path):
    """The card names the rule, and no grant may stand for it."""
    batches = Batches(tmp_path, rule("ask", "delete_file"))
    assert await batches.edit(WRITE, DELETE) == "succeeded"
    assert batches.lines == ["Asked because the rule delete_file ask (policy.toml:1) says so."]


@requirement("RULE-2")
@pytest.mark.parametrize("order", [1, -1])
async def test_the_strictest_word_about_any_edit_wins_whatever_their_order(tmp_path: Path, order: int):
    """An ask that was found first must not hide a deny."""
    batches = Batches(tmp_path, rule("ask", "write_file"), rule("deny", "delete_file"), rule("ask", "edit_files"))
    assert await batches.edit(*[WRITE, DELETE][::order]) == "denied"
    assert batches.cards.requests == []


@requirement("RULE-2")
@pytest.mark.parametrize(
    ("where", "edit", "kind"),
    [
        ('path = { is = "notes.md" }', DELETE, "denied"),
        ('path = { is = "notes.md" }', WRITE, "succeeded"),
        ('path = { under = "FOLDER/docs" }', DELETE | {"path": "docs/a.md"}, "denied"),
        ('path = { under = "FOLDER/docs" }', DELETE, "succeeded"),
    ],
)
async def test_each_edit_is_judged_by_its_own_arguments(tmp_path: Path, where: str, edit: dict[str, Any], kind: str):
    """A rule about one file says nothing of another that happens to be in the same batch."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("kept\n")
    batches = Batches(tmp_path, rule("deny", "delete_file", where.replace("FOLDER", str(tmp_path))))
    assert await batches.edit(edit) == kind


@requirement("RULE-2")
async def test_an_edit_is_judged_with_the_defaults_of_its_tool(tmp_path: Path):
    """Left out or written out, it is the same edit."""
    batches = Batches(tmp_path, rule("deny", "replace_text", "all = { is = false }"))
    edit = {"action": "replace_text", "path": "notes.md", "old": "mine", "new": "yours"}
    assert await batches.edit(edit) == "denied"
    assert await batches.edit(edit | {"all": True}) == "succeeded"


@requirement("RULE-5")
async def test_an_allow_of_the_tool_of_an_edit_loosens_no_batch(tmp_path: Path):
    """A yes to one file at a time is no yes to a hundred at once."""
    tests = '[rule.tests]\nmatch = [{ path = "notes.md" }]\nnot_match = [{ path = "b.md" }]\n'
    batches = Batches(tmp_path, rule("allow", "delete_file", 'path = { is = "notes.md" }') + tests)
    assert await batches.edit(DELETE) == "succeeded"
    assert len(batches.cards.requests) == 1
    assert "allows" not in batches.lines[0]


@requirement("RULE-2")
@pytest.mark.parametrize("path", ["./notes.md", ".//notes.md", "notes.md/", "./././notes.md/."])
async def test_another_spelling_of_a_path_is_the_same_file_to_a_rule(tmp_path: Path, path: str):
    """To the tool they are one file. What is denied under one name must not pass under another."""
    batches = Batches(tmp_path, rule("deny", "delete_file", 'path = { in = ["b.md", "notes.md"] }'))
    async with batches.session() as session:
        assert (await session.call("delete_file", {"path": path})).kind == "denied"
        assert (await session.explain("delete_file", {"path": path})).saying == "deny"
    assert await batches.edit(WRITE, DELETE | {"path": path}) == "denied"
    assert (tmp_path / "notes.md").exists()
    assert batches.cards.requests == []


@requirement("RULE-2")
async def test_the_new_name_of_a_file_has_one_spelling_to_a_rule_too(tmp_path: Path):
    """Whoever keeps a name free means the name."""
    batches = Batches(tmp_path, rule("deny", "rename_file", 'new_path = { is = "docs/b.md" }'))
    move = {"action": "rename_file", "path": "notes.md", "new_path": "./docs//b.md"}
    assert await batches.edit(move) == "denied"
    assert (tmp_path / "notes.md").exists()


@requirement("RULE-2")
async def test_a_card_and_the_journal_say_a_path_in_its_one_spelling(tmp_path: Path):
    """What a person reads is what rules saw and what runs."""
    batches = Batches(tmp_path)
    async with batches.session() as session:
        await session.call("delete_file", {"path": ".//notes.md"}, call_id="c")
        life = await session.journal.life("c")
    assert batches.cards.requests[0].arguments == {"path": "notes.md"}
    assert life.started is not None
    assert life.started["arguments"] == {"path": "notes.md"}


@requirement("RULE-2")
async def test_what_must_not_be_read_is_not_read_by_another_spelling(tmp_path: Path):
    """Reading asks nobody, so a rule is all that keeps a file from being read."""
    batches = Batches(tmp_path, rule("deny", "read_file", 'path = { is = "notes.md" }'))
    async with batches.session() as session:
        assert (await session.call("read_file", {"path": "./notes.md"})).kind == "denied"
