"""The attacks again, on what a dead process left in its file: each has its own end, and nothing runs.

How a process dies here is told in left_behind.py. The attacker can write the file; what they cannot be kept from is in
docs/journal.md.
"""

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from left_behind import left_behind

from lastword import Limits, Policy, Preset, Session, ToolRegistry, UserAction, open_journal, wait_for_answer
from lastword.consent import ALLOWED, DENIED, Answerer, Call, LiveCall, Seal
from lastword.editor import ProjectEditor
from lastword.errors import SessionError, Tampered
from lastword.journal import Journal, data_of
from lastword.store import Entry, SqliteStore
from lastword.store.chain import link
from lastword.testing import FixedApprover
from lastword.tools import Tool
from requirements import requirement
from sending import CALL, asked, ended, until

HEARING = Limits(watch_after_seconds=0, times_asked=1)


class Left:
    """A file that a process left behind, what an attacker does to it, and the process that comes next."""

    def __init__(self, path: Path, registry: ToolRegistry) -> None:
        self.path, self.registry = path, registry
        self.journal = Journal(SqliteStore(path))

    def change(self, sql: str, *values: int | float | str | bytes | None) -> None:
        """Write into the file as any program of the same user can."""
        file = apsw.Connection(str(self.path))
        file.execute(sql, values)
        assert file.changes() == 1
        file.close()

    def insert(self, kind: str, data: bytes, once: str | None = None, *, chained: bool = False) -> None:
        """Put a record of call `c` at the end: with a digest out of thin air, or linked as the store would."""
        file = apsw.Connection(str(self.path))
        seq, digest = file.execute("SELECT seq, digest FROM records ORDER BY seq DESC LIMIT 1").get
        record = link(digest if chained else "0" * 64, seq + 1, Entry("s", kind, "c", 1, data, once))
        values = (record.seq, "s", kind, "c", 1, data, once, record.data_digest, record.digest)
        file.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
        file.close()

    def session(self, approver: Any = None, **facts: Any) -> Session:
        return Session(self.registry, id="s", approver=approver, journal=self.journal, **facts)

    async def facts(self) -> dict[str, Any]:
        [facts] = await self.journal.waiting()
        return facts


Leave = Callable[..., Any]


@pytest.fixture
async def leave(registry: ToolRegistry, tmp_path: Path):
    """Let a process call `send` under the id `c`, and die while the card waits or while the tool runs."""
    made: list[Left] = []

    async def die(approver: Any = wait_for_answer, until_there: Callable[[Journal], Any] | None = None, **facts: Any):
        living = Journal(SqliteStore(tmp_path / "living.db"))
        session = Session(registry, id="s", approver=approver, journal=living, **facts)
        call = asyncio.create_task(session.call("send", CALL, call_id="c"))
        if until_there is None:
            await until(session.pending)
        else:
            await until_there(living)
        left = Left(await left_behind(living, tmp_path / "living.db", f"left-{len(made)}"), registry)
        made.append(left)
        await ended(call)
        await session.close()
        await living.close()
        return left

    yield die
    for left in made:
        await left.journal.close()


@pytest.fixture
def stuck(registry: ToolRegistry, effects: list[Any], assistant: Callable[..., Tool]) -> asyncio.Event:
    """A tool that hangs the first time it runs, after its effect; set once it does."""
    running = asyncio.Event()

    async def send(params: dict[str, Any], user_action: UserAction) -> dict[str, Any]:
        effects.append(params)
        if not running.is_set():
            running.set()
            await asyncio.Event().wait()
        return {"success": True, "message": "Sent."}

    assistant(execute=send)
    return running


END = b'{"tool":"send","kind":"succeeded","message":"Sent.","value":null,"gave_value":false,"approval":"person"}'


@requirement("TOOL-45")
@pytest.mark.parametrize("kind", ["answered", "finished"])
@pytest.mark.parametrize("waiting", [True, False], ids=["while the card waits", "before the restart"])
async def test_an_answer_or_an_end_put_into_the_file_is_not_believed(leave: Leave, send, effects, waiting, kind: str):
    """It has the right nonce and the right digest; it does not follow from the record before it. A forged end would be
    told as the truth."""
    left = await leave()
    facts = await left.facts()
    forged = (
        b'{"primary_confirmed":true,"secondary_confirmed":false,"reason":null,"arguments":null,"request":"%s",'
        b'"approver":"Ann","answered_at":%f}' % (facts["digest"].encode(), left.journal.clock())
    )
    session = left.session(wait_for_answer, limits=HEARING)
    if waiting := waiting and kind == "answered":
        call, _ = await asked(session, CALL, call_id="c")
    left.insert(*(("answered", forged, f"answer:{facts['nonce']}") if kind == "answered" else ("finished", END)))
    with pytest.raises(Tampered, match=rf"\({kind}\) was changed"):
        await (call if waiting else session.call("send", CALL, call_id="c"))
    assert effects == []


@requirement("TOOL-45")
@pytest.mark.parametrize("how", ["wrong digest", "another call's digest"])
async def test_an_answer_to_another_request_starts_nothing_after_a_restart(leave: Leave, send, effects, how: str):
    """Given through the front door, by a program that was shown something else."""
    left = await leave()
    facts = await left.facts()
    other = await left.session(FixedApprover(DENIED)).call("send", {"to": "Bob"}, call_id="other")
    digest = data_of((await left.journal.store.read(subject="other", kind="asked"))[0])["digest"]
    assert other.kind == "denied"
    action = UserAction(True, False, answers="0" * 64 if how == "wrong digest" else digest)
    assert await left.journal.answer(facts, action, "phone")
    outcome = await left.session(FixedApprover(), limits=HEARING).call("send", CALL, call_id="c")
    assert outcome.kind == "stale"
    assert "given to another request" in outcome.message
    assert effects == []


@requirement("TOOL-45")
async def test_the_answer_to_another_card_does_not_answer_this_one(leave: Leave, send, effects):
    """Its key is the other card's nonce, so this card goes on waiting."""
    left = await leave()
    session = left.session(wait_for_answer, limits=HEARING)
    other = asyncio.create_task(session.call("send", {"to": "Bob"}, call_id="other"))
    mine = asyncio.create_task(session.call("send", CALL, call_id="c"))
    await until(lambda: len(session.pending()) == 2)
    waiting = {facts["call_id"]: facts for facts in await left.journal.waiting()}
    assert await left.journal.answer(waiting["other"] | {"call_id": "c"}, ALLOWED, "phone")
    assert await left.journal.answer(waiting["c"], DENIED, "phone")
    assert (await mine).kind == "denied"
    await ended(other)
    assert effects == []


@requirement("TOOL-45")
@pytest.mark.parametrize("pruned", [False, True])
async def test_a_spent_approval_stays_spent_after_a_restart(leave: Leave, send, effects, pruned: bool):
    """Also when what the records said was forgotten: the keys are kept."""

    async def ended(journal: Journal) -> None:
        seen = 0
        while not await journal.store.read(kind="finished"):
            await journal.store.changed(seen)
            seen = (await journal.store.head()).seq

    left = await leave(FixedApprover(), ended)
    [asked] = await left.journal.store.read(kind="asked")
    facts = data_of(asked)
    if pruned:
        assert (await left.journal.prune(left.journal.clock() + 1)).records == 5
        await left.journal.store.verify()
    sealed = Seal(facts["digest"], facts["nonce"], Answerer.person("a thief"), left.journal.clock())
    assert not await left.journal.burn_and_start("s", Call("c", "send", b"{}"), send, sealed, "person", LiveCall())
    assert not await left.journal.answer(facts, ALLOWED, "a thief")
    if pruned:
        with pytest.raises(SessionError, match="pruned from the journal; it is not run again"):
            await left.session(FixedApprover()).call("send", CALL, call_id="c")
    else:
        assert (await left.session(FixedApprover()).call("send", CALL, call_id="c")).kind == "succeeded"
    assert effects == [CALL]


@requirement("TOOL-45")
async def test_an_answer_to_a_question_that_was_pruned_starts_nothing(leave: Leave, send, effects):
    """The question came to its end, its words were forgotten, and somebody kept a copy of the card."""
    left = await leave()
    facts = await left.facts()
    assert (await left.journal.prune(left.journal.clock() + 1)).records == 0, "a question that waits is kept"
    assert (await left.session().call("send", CALL, call_id="c")).kind == "no_approver"
    assert (await left.journal.prune(left.journal.clock() + 1)).records == 2
    assert await left.journal.waiting() == []
    assert not await left.journal.answer(facts, ALLOWED, "phone")
    with pytest.raises(SessionError, match="pruned"):
        await left.session(FixedApprover()).call("send", CALL, call_id="c")
    assert effects == []


@requirement("TOOL-45")
async def test_a_copy_of_the_file_is_another_memory(leave: Leave, send, effects, tmp_path: Path):
    """An answer reaches the file it is given to. Who has two files has two questions, and must be asked twice."""
    left = await leave()
    facts = await left.facts()
    shutil.copy(left.path, tmp_path / "copy.db")
    shutil.copy(f"{left.path}-wal", tmp_path / "copy.db-wal")
    copy = Left(tmp_path / "copy.db", left.registry)
    assert await left.journal.answer(facts, ALLOWED, "phone")
    assert (await left.session(FixedApprover(DENIED)).call("send", CALL, call_id="c")).kind == "succeeded"
    asked = FixedApprover(DENIED)
    assert (await copy.session(asked).call("send", CALL, call_id="c")).kind == "denied"
    assert [request.nonce for request in asked.requests] == [facts["nonce"]]
    # And a head that was kept of the one is not one of the other.
    head = await left.journal.store.verify()
    with pytest.raises(Tampered, match="given head"):
        await copy.journal.store.verify(head=head)
    await copy.journal.close()
    assert effects == [CALL]


@requirement("TOOL-45", "TOOL-5")
async def test_a_tool_that_changed_between_the_processes_is_asked_for_anew(leave: Leave, send, effects):
    """Yes was said to the old code. The new code has a question of its own, and the old answer does not fit it."""
    left = await leave()
    old = await left.facts()
    assert await left.journal.answer(old, ALLOWED, "phone")
    left.registry.unregister("send")
    left.registry.add(replace(send, code=b"other"))
    approver = FixedApprover(DENIED)
    assert (await left.session(approver).call("send", CALL, call_id="c")).kind == "denied"
    assert [request.nonce == old["nonce"] for request in approver.requests] == [False]
    assert effects == []


@requirement("TOOL-45", "TOOL-5")
async def test_a_tool_that_changed_while_its_call_was_in_doubt_is_not_run_again(
    leave: Leave, stuck: asyncio.Event, effects
):
    """Neither by a person's word, nor because the new code calls itself idempotent."""
    left = await leave(FixedApprover(), lambda journal: stuck.wait())
    tool = left.registry.lookup("send")
    left.registry.unregister("send")
    left.registry.add(replace(tool, code=b"other"))
    with pytest.raises(SessionError, match="not the one that was agreed to"):
        await left.session().resolve("c", "again")
    assert (await left.session().call("send", CALL, call_id="c")).kind == "outcome_unknown"
    assert effects == [CALL]


DENY = '[[rule]]\nname = "no more"\ntool = "send"\ndecide = "deny"\n'


@requirement("RULE-2", "RULE-6")
async def test_a_call_in_doubt_that_a_rule_denies_by_now_is_not_run_again(
    leave: Leave, registry: ToolRegistry, stuck: asyncio.Event, effects
):
    """Neither by itself, since the tool calls itself idempotent, nor by a person's word: any deny wins."""
    tool = registry.lookup("send")
    registry.unregister("send")
    registry.add(replace(tool, manifest=msgspec.structs.replace(tool.manifest, idempotent=True)))
    left = await leave(FixedApprover(), lambda journal: stuck.wait())
    policy = Policy.vouched(DENY, left.registry)
    assert (await left.session(policy=policy).call("send", CALL, call_id="c")).kind == "outcome_unknown"
    with pytest.raises(SessionError, match="a rule denies it by now"):
        await left.session(policy=policy).resolve("c", "again")
    assert effects == [CALL]


@requirement("TOOL-45", "TOOL-46")
async def test_a_file_that_changed_between_the_processes_makes_a_new_question(
    leave: Leave, assistant: Callable[..., Tool], effects, tmp_path: Path
):
    """The yes was given to a difference from a text that is not there any more."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "a.txt").write_text("old\n")

    async def request(params, editor):
        return {
            "message": "Change it?",
            "preview_button": {"label": "Diff", "action": lambda: editor.open_diff_editor("a.txt", "new\n")},
        }

    async def execute(params, user_action, editor):
        if not user_action.primary_confirmed:
            return {"success": False, "message": "Then not."}
        effects.append(params)
        return {"success": True, "message": "Changed."}

    assistant(request, execute)
    left = await leave(editor=ProjectEditor(project))
    old = await left.facts()
    assert await left.journal.answer(old, ALLOWED, "phone")
    (project / "a.txt").write_text("somebody worked on it\n")
    approver = FixedApprover(DENIED)
    outcome = await left.session(approver, editor=ProjectEditor(project)).call("send", CALL, call_id="c")
    assert outcome.kind == "denied"
    assert [r.preview[0].base for r in approver.requests] == ["somebody worked on it\n"]
    assert effects == []


@requirement("TOOL-54", "TOOL-45")
@pytest.mark.parametrize("change", ["the file", "the state", "nothing"])
async def test_what_a_card_was_drawn_from_and_changed_between_the_processes_makes_a_new_question(
    leave: Leave, assistant, effects, tmp_path: Path, change: str
):
    """Plain files and state are as much part of the question as what is read through the editor."""
    prices = tmp_path / "prices.txt"
    prices.write_text("5")

    def request(context):
        prices.read_text()
        return {"message": f"{context.has_state('a')}?"}

    assistant(request)
    left = await leave(state={"a": 1})
    assert await left.journal.answer(await left.facts(), ALLOWED, "phone")
    approver = FixedApprover(DENIED)
    async with left.session(approver) as session:
        if change == "the file":
            prices.write_text("500")
        elif change == "the state":
            session.set_state("a", 2)
        outcome = await session.call("send", CALL, call_id="c")
    assert outcome.kind == ("succeeded" if change == "nothing" else "denied")
    assert len(approver.requests) == (0 if change == "nothing" else 1)
    assert len(effects) == (1 if change == "nothing" else 0)


@requirement("TOOL-45")
async def test_a_question_that_was_put_anew_is_the_only_one_that_waits(leave: Leave, send, effects):
    """An answer to the old one would be heard by nobody."""
    left = await leave()
    old = await left.facts()
    left.registry.unregister("send")
    left.registry.add(replace(send, code=b"other"))
    session = left.session(wait_for_answer, limits=HEARING)
    call, _ = await asked(session, CALL, call_id="c")
    new = await left.facts()
    assert new["nonce"] != old["nonce"]
    assert await left.journal.answer(new, DENIED, "phone")
    assert (await call).kind == "denied"
    assert effects == []


@requirement("TOOL-41", "TOOL-45")
async def test_auto_approval_turned_off_between_the_processes_is_off(leave: Leave, assistant, effects):
    """The card waited for a person before. Whether a preset says yes is a matter of today."""
    assistant(autoApprove=True)
    left = await leave()
    asked = FixedApprover(DENIED)
    assert (await left.session(asked, preset=Preset(False)).call("send", CALL, call_id="c")).kind == "denied"
    assert len(asked.requests) == 1
    assert effects == []


@requirement("TOOL-45")
async def test_a_call_of_another_session_is_not_told_recovered_or_resolved(leave: Leave, stuck: asyncio.Event, effects):
    """A session that was copied under another id has no claim on the calls of the first."""
    left = await leave(FixedApprover(), lambda journal: stuck.wait())
    other = Session(left.registry, id="copied", approver=FixedApprover(), journal=left.journal)
    with pytest.raises(SessionError, match="another session, s"):
        await other.call("send", CALL, call_id="c")
    with pytest.raises(SessionError, match="another session, s"):
        await other.resolve("c", "again")
    assert effects == [CALL]


async def test_a_call_that_still_runs_is_not_in_doubt(registry: ToolRegistry, stuck, effects, shared_address: str):
    """Another process sees it started and not ended. It must not offer to run it again while the first one does."""
    living, looking = (open_journal(shared_address) for _ in range(2))
    session = Session(registry, id="s", approver=FixedApprover(), journal=living)
    call = asyncio.create_task(session.call("send", CALL, call_id="c"))
    await stuck.wait()
    other = Session(registry, id="s", approver=FixedApprover(), journal=looking)
    assert await other.in_doubt() == []
    with pytest.raises(SessionError, match="still running"):
        await other.resolve("c", "again")
    with pytest.raises(SessionError, match="carried out by another program"):
        await other.call("send", CALL, call_id="c")
    session.cancel("c")
    assert (await call).kind == "cancelled"
    assert effects == [CALL]
    await living.close()
    await looking.close()
