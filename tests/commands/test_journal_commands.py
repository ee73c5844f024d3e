"""`lastword journal accept` and `verify --from`, and what the commands say of a journal that was damaged."""

import asyncio
import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import lastword
from commands.paying import JOURNAL, at_terminal
from lastword.cli import run
from lastword.errors import StoreError
from lastword.journal import Journal, data_of
from lastword.server import Conversations
from lastword.server.conversations import Turn
from lastword.server.history import ChatMessage
from lastword.store import Entry, SqliteStore
from lastword.testing import FixedApprover
from requirements import requirement

SCRIPT = "LET a = CALL look {}\nCALL pay {}"


def pay(call_id: str | None = None, script: str | None = None) -> str:
    """Pay something, as a program of its own would; how that ended."""

    async def live() -> str:
        registry = lastword.ToolRegistry()
        registry.register("pay", {"description": "Pays.", "parameters": []}, paid, require_approval=True)
        registry.register("look", {"description": "Looks.", "parameters": []}, lambda args, context: 1)
        journal = Journal(SqliteStore(JOURNAL))
        try:
            session = lastword.Session(registry, id="s", approver=FixedApprover(), journal=journal)
            if script is not None:
                return (await session.run_script(script, run_id="bills")).status
            return (await session.call("pay", call_id=call_id)).kind
        finally:
            await journal.close()

    return asyncio.run(live())


def paid(args: object, context: object) -> None:
    with Path("paid").open("a") as file:
        file.write("paid\n")


@pytest.fixture
def restored() -> None:
    """A journal that was restored from a copy, of before its second payment."""
    assert pay("first") == "succeeded"
    shutil.copy(JOURNAL, "copy.db")
    assert pay("second") == "succeeded"
    shutil.copy("copy.db", JOURNAL)


Say = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Run a command: its exit code, what it said and what it complained of."""

    def command(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def found_head(say: Say) -> str:
    return str(json.loads(say("journal", "accept", "--json")[1])["found"])


def is_refused() -> None:
    with pytest.raises(StoreError, match="nothing approved starts here: "):
        pay("third")
    assert Path("paid").read_text() == "paid\npaid\n"


@requirement("TEAM-10")
def test_a_restored_journal_starts_nothing_until_somebody_accepts_it(restored: None, say: Say):
    """Neither by itself nor by a script that does not say what it accepts; and then it goes on."""
    code, out, err = say("journal", "accept")
    assert (code, out) == (3, "")
    assert "at least 4 records are missing: it ends at record 5, and record 9 was seen" in err
    assert re.search(r"last seen  9:[0-9a-f]{64}\n", err)
    assert re.search(r"found      5:[0-9a-f]{64}\n", err)
    assert "missing    at least 4 records\n" in err
    assert "Approvals that were spent in what is missing may be unspent here" in err
    assert "nobody is here to read this, so nothing was done" in err
    is_refused()
    head = found_head(say)
    code, out, err = say("journal", "accept", "--head", head)
    assert (code, err) == (0, "")
    assert out == "Accepted. Approved calls start again, and the journal goes on from record 6.\n"
    assert pay("third") == "succeeded"
    assert say("journal", "accept") == (
        0,
        "There is nothing to accept: the journal holds everything that was seen of it.\n",
        "",
    )


@requirement("TEAM-10")
def test_reading_and_free_calls_go_on_in_a_journal_that_lacks_something(restored: None, say: Say):
    """What cannot do harm is not stopped, and somebody has to be able to look."""
    for words in (["runs"], ["approvals"], ["show", "first"], ["journal", "verify"], ["journal", "export"]):
        assert say(*words)[0] == 0
    assert pay(script="LET a = CALL look {}\nPRINT(a)") == "done"
    is_refused()


@requirement("TEAM-10")
@pytest.mark.parametrize("head", ["5:" + "f" * 64, "4:" + "f" * 64, "0:" + "0" * 64, "nonsense"])
def test_a_script_accepts_nothing_but_where_the_journal_ends(restored: None, say: Say, head: str):
    """Also not its beginning, which every journal has: that would accept whatever is there."""
    code, out, err = say("journal", "accept", "--head", head)
    assert (code, out) == (2, "")
    assert "--head: " in err
    is_refused()


@requirement("TEAM-10")
def test_what_was_accepted_is_written_down(restored: None, say: Say):
    """Whoever looks later finds that somebody knew, and what they knew."""
    facts = json.loads(say("journal", "accept", "--json")[1])
    assert facts["accepted"] is False
    said = json.loads(say("journal", "accept", "--json", "--head", facts["found"])[1])
    assert said == facts | {"accepted": True}

    async def look() -> None:
        store = SqliteStore(JOURNAL)
        [record] = await store.read(kind="journal.accepted")
        assert data_of(record) == {name: facts[name] for name in ("fact", "found", "seen", "missing")}
        assert record.subject == facts["found"]
        await store.verify()
        await store.close()

    asyncio.run(look())
    assert json.loads(say("journal", "accept", "--json")[1]) is None


@requirement("TEAM-10")
def test_in_a_terminal_only_the_whole_word_accepts(restored: None):
    """Enter does not, nor does a yes that was meant for something else."""
    for typed, accepted in (("yes\r", False), ("a\r", False), ("accept\r", True)):
        with at_terminal("journal", "accept") as program:
            program.until("Type accept or no, and press Enter")
            assert "was seen" in program.text
            program.press(typed)
            program.until("Accepted." if accepted else "Nothing was done.")
            assert program.finish() == (0 if accepted else 3)
        if not accepted:
            is_refused()
    assert pay("third") == "succeeded"


@requirement("TEAM-8")
def test_verify_goes_on_from_a_head_and_says_what_it_proved(say: Say):
    """Whoever verifies every day pays for a day; a head that does not fit is named with its option."""
    pay("first")
    head = say("journal", "verify")[1].partition("head ")[2].splitlines()[0]
    pay("second")
    assert say("journal", "verify", "--from", head)[1].startswith(
        "5 records after 5, each as it was written.\nhead 10:"
    )
    code, _, err = say("journal", "verify", "--from", "5:" + "f" * 64)
    assert (code, "record 5 is not the one" in err) == (1, True)
    code, _, err = say("journal", "verify", "--from", "5")
    assert (code, err.startswith("--from: '5' is not the head of a journal")) == (2, True)
    say("journal", "export", "journal.jsonl")
    code, _, err = say("journal", "verify", "--from", head, "--file", "journal.jsonl")
    assert (code, err.startswith("--from: an exported file is verified whole")) == (2, True)


# In which record something is missing, and which command stumbles over it.
DAMAGES = {
    "asked": ("nonce", "show"),
    "answered": ("approver", "show"),
    "started": ("approval", "show"),
    "finished": ("message", "show"),
    "run_started": ("name", "show"),
    "run_finished": ("status", "show"),
    "run_started of a run that goes on": ("version", "resume"),
    "started of a call in doubt": ("approval", "resolve"),
    "started of a call that is decided": ("tool", "resolve --done"),
}


@requirement("TOOL-45")
@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("rewritten", [False, True], ids=["edited", "with a chain written anew"])
def test_a_record_that_lacks_what_it_should_say_is_named(say: Say, what: str, rewritten: bool):
    """Not a KeyError and not a bug of ours: the file was changed, and this is where. Also when its chain holds."""
    kind, (key, command) = what.partition(" ")[0], DAMAGES[what]
    assert pay(script=SCRIPT) == "done"
    file = sqlite3.connect(JOURNAL)
    file.execute(
        "UPDATE records SET data = CAST(replace(data, ?, ?) AS BLOB) WHERE kind = ?", (f'"{key}"', f'"no {key}"', kind)
    )
    if command.startswith("resolve"):
        file.execute("DELETE FROM records WHERE kind IN ('finished', 'run_finished')")
    file.commit()
    file.close()
    if rewritten:
        asyncio.run(rewrite())
    verb, *options = command.split()
    code, _, err = say(verb, "bills.1" if verb == "resolve" else "bills", *options)
    assert code == 1
    assert re.match(rf"(bills\S*: )?record \d+ (\({kind}\) was changed after it was written|is missing)", err)
    assert "\nhint: " in err
    if rewritten:
        assert f"it lacks {key}" in err
        assert err.startswith("bills")
    assert Path("paid").read_text() == "paid\n"


async def rewrite() -> None:
    """Write the whole chain anew behind the damage, as somebody could who knows how."""
    old = SqliteStore(JOURNAL)
    records = await old.read()
    await old.close()
    for name in JOURNAL.parent.glob(f"{JOURNAL.name}*"):
        if name.is_file():
            name.unlink()
    new = SqliteStore(JOURNAL)
    for r in records:
        await new.commit(Entry(r.stream, r.kind, r.subject, r.at, r.data or b"", r.once))
    await new.close()


def converse(*names: str) -> None:
    """Conversations of a server on this store, two messages each."""

    async def live() -> None:
        store = SqliteStore(JOURNAL)
        try:
            conversations = Conversations(store)
            for name in names:
                said = [ChatMessage("user", f"Words of {name}"), ChatMessage("assistant", "I see.")]
                turn = Turn(said=said, settled={}, pending=[])
                await conversations.commit(await conversations.begin(name, "local"), "local", turn)
        finally:
            await store.close()

    asyncio.run(live())


@requirement("API-69")
def test_prune_ends_old_conversations_too_and_says_how_many(says):
    """What was said to a model is most of what is remembered, and pruning left all of it."""
    pay(call_id="one")
    converse("kitchen", "garden")
    assert says(["journal", "prune", "--before", "2020-01-01"]).out == "The contents of 0 records were forgotten.\n"
    said = says(["journal", "prune", "--before", "2999-01-01"]).out
    assert re.search(r"^The contents of \d+ records were forgotten\.$", said, re.MULTILINE)
    assert "2 conversations with 4 messages were deleted.\n" in said
    files = [file for file in JOURNAL.parent.iterdir() if file.is_file()]
    assert not any(b"Words of" in file.read_bytes() for file in files)
    assert run(["journal", "verify"]) == 0


@requirement("API-69")
def test_one_conversation_is_forgotten_and_the_others_stay(says, capsys: pytest.CaptureFixture[str]):
    """Somebody said something that should not be kept. That needs no server, and no day before which all goes."""
    converse("kitchen", "garden")
    assert run(["journal", "conversations"]) == 0
    assert re.fullmatch(r"(\d{4}-\d\d-\d\d \d\d:\d\d[+-]\d\d:\d\d  (kitchen|garden)\n){2}", capsys.readouterr().out)
    assert says(["journal", "forget", "kitchen"]).out == "1 conversation with 2 messages was deleted.\n"
    files = [file for file in JOURNAL.parent.iterdir() if file.is_file()]
    assert not any(b"Words of kitchen" in file.read_bytes() for file in files)
    assert run(["journal", "conversations", "--json"]) == 0
    assert [entry["id"] for entry in json.loads(capsys.readouterr().out)] == ["garden"]
    assert run(["journal", "verify"]) == 0
    capsys.readouterr()
    for name, hint in (("kitchen", "lastword journal conversations"), ("gardn", "did you mean garden?")):
        said = says(["journal", "forget", name], 2).err
        assert said.startswith(f"{name}: there is no such conversation\n")
        assert hint in said
    assert run(["journal", "forget", "garden"]) == 0
    capsys.readouterr()
    assert says(["journal", "conversations"]).out == "No conversation is kept.\n"


@requirement("API-69")
def test_a_conversation_whose_session_has_something_open_is_not_forgotten(says, capsys: pytest.CaptureFixture[str]):
    """A question waits in it. Whoever answers has to find what it was about."""
    converse("kitchen")

    async def live() -> int:
        asked = asyncio.Event()

        async def undecided(request: lastword.ApprovalRequest) -> lastword.UserAction:
            asked.set()
            await asyncio.Event().wait()
            return request.deny()

        registry = lastword.ToolRegistry()
        registry.register("pay", {"description": "Pays.", "parameters": []}, paid, require_approval=True)
        journal = Journal(SqliteStore(JOURNAL))
        session = lastword.Session(registry, id="kitchen", approver=undecided, journal=journal)
        call = asyncio.ensure_future(session.call("pay"))
        try:
            await asked.wait()
            return await asyncio.to_thread(run, ["journal", "forget", "kitchen"])
        finally:
            call.cancel()
            await asyncio.wait([call])
            await journal.close()

    assert asyncio.run(live()) == 2
    assert "something in its session is still open" in capsys.readouterr().err
    assert "kitchen" in says(["journal", "conversations"]).out
