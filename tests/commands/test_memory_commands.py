"""What is remembered, on the command line: each command's words and exit code, as a transcript in golden/memory."""

import asyncio
import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

import lastword
from commands.paying import JOURNAL, MANIFEST, Transcript, at_terminal, killed, with_digest
from lastword.cli import run
from lastword.errors import ArgumentsError
from lastword.server import Conversations
from lastword.server.conversations import Turn
from lastword.server.history import ChatMessage
from lastword.store import SqliteStore
from requirements import requirement
from warm import run_python

GOLDEN = Path(__file__).parent.parent / "golden" / "memory"
CALL_LOADS = ("lastword.session", "lastword.commands.call_and_run")


@requirement("NUWA-62")
def test_a_run_killed_while_its_tool_ran_is_in_doubt_until_a_person_decides(transcript: Transcript, golden):
    """Found in the list, looked at, refused to go on, decided once, gone on with."""
    killed("bills", while_it_runs=True)
    golden(
        GOLDEN / "in-doubt.txt",
        transcript(
            "runs",
            "show bills",
            "show bills.0",
            "resume bills --tools mine",
            "resolve bills.0",
            "resolve bills.0 --done",
            "resolve bills.0 --again --tools mine",
            "resume bills --tools mine",
            "runs",
        ),
    )
    assert Path("paid").read_text() == "Ann\n"


def test_calls_and_sessions_are_listed_with_how_they_ended(transcript: Transcript, golden):
    """What an agent did is looked up without a browser: newest first, with what was asked for and what became of it."""
    killed("bills", while_it_runs=True)
    golden(
        GOLDEN / "calls.txt",
        transcript("calls", "resolve bills.0 --done", "calls --last 1", "calls --session nobody", "sessions"),
    )


async def every_end() -> None:
    """A memory with a call for most of the ways in which one ends, each with its kind for its id."""
    registry = lastword.ToolRegistry()

    @registry.tool(require_approval=False)
    def look(how: str) -> dict[str, object]:
        """Ends as it is told."""
        if how == "raised":
            raise ZeroDivisionError
        if how == "invalid_arguments":
            raise ArgumentsError("there is no such day", [])
        return {"success": how == "succeeded", "message": how}

    @registry.tool(require_approval=False, timeout_seconds=0.01)
    async def wait() -> None:
        """Waits for what never comes."""
        await asyncio.Event().wait()

    @registry.tool
    def pay() -> None:
        """Needs a person."""

    @registry.tool
    async def ask() -> None:
        """Says that it does not know."""
        raise lastword.OutcomeUnknown("the line broke")

    async def answer(request: lastword.ApprovalRequest) -> lastword.UserAction:
        return request.allow() if request.tool == "ask" else request.deny()

    JOURNAL.parent.mkdir(parents=True)
    journal = lastword.Journal(SqliteStore(JOURNAL))
    session = lastword.Session(registry, id="ends", approver=answer, journal=journal)
    for tool, kind in [
        ("look", "failed"), ("look", "raised"), ("wait", "timed_out"), ("look", "succeeded"),
        ("look", "invalid_arguments"), ("pay", "denied"), ("ask", "outcome_unknown"),
    ]:  # fmt: skip
        outcome = await session.call(tool, {"how": kind} if tool == "look" else {}, call_id=kind)
        assert outcome.kind == kind
    await session.close()
    await journal.close()


def test_failed_calls_are_listed_without_the_rest(transcript: Transcript, golden):
    """Whoever looks for what went wrong is shown no refusal and no doubt. `--last` counts what is listed."""
    asyncio.run(every_end())
    golden(
        GOLDEN / "failed-calls.txt",
        transcript("calls", "calls --failed", "calls --failed --last 1", "calls --failed --session nobody"),
    )


def test_what_comes_next_names_the_store_that_was_named(transcript: Transcript):
    """Copied as it stands, the command finds the run."""
    killed("bills", while_it_runs=False)
    played = transcript(f"answer bills.0 --allow --digest DIGEST --store sqlite:///{JOURNAL}")
    assert f"lastword resume bills --store sqlite:///{JOURNAL}\n" in played


@requirement("NUWA-62", "TOOL-45")
def test_a_run_killed_while_its_card_waited_is_answered_and_goes_on(transcript: Transcript, golden):
    """The question is in the list, is answered once, and the run takes the answer."""
    killed("bills", while_it_runs=False)
    golden(
        GOLDEN / "waiting.txt",
        transcript(
            "runs",
            "approvals",
            "resume bills --tools mine",
            "answer bills.0",
            "answer bills.0 --allow --reason x",
            "answer nothing --allow",
            "answer bills.0 --allow",
            f"answer bills.0 --allow --digest {'0' * 64}",
            "answer bills.0 --allow --digest DIGEST",
            "answer bills.0 --deny",
            "resume bills --tools mine",
            "answer bills.1 --deny --reason too_much",
            "resume bills --tools mine",
            "approvals",
            "show bills",
        ),
    )
    assert Path("paid").read_text() == "Ann\n"


@pytest.mark.parametrize("decision", ["again", "abandon"])
def test_a_call_in_doubt_is_run_again_or_given_up(transcript: Transcript, golden, decision: str):
    """Once more under the same id, or never; the run hears of it either way. Once more takes two acts."""
    killed("bills", while_it_runs=True)
    seen = " --digest DIGEST" if decision == "again" else ""
    golden(
        GOLDEN / f"resolve-{decision}.txt",
        transcript(
            *(["resolve bills.0 --again --tools mine", f"resolve bills.0 --again --digest {'0' * 64}"] if seen else []),
            f"resolve bills.0 --{decision}{seen} --tools mine",
            f"resolve bills.0 --{decision}{seen} --tools mine",
            "show bills.0",
        ),
    )
    assert Path("paid").read_text() == "Ann\n" * (2 if decision == "again" else 1)


def test_runs_names_every_call_in_doubt_once(transcript: Transcript):
    """Whoever sits at no terminal got no notice. A call alone is named by itself, one of a script by its script."""
    killed("by-itself", while_it_runs=True, alone=True)
    shown = transcript("runs")
    assert "by-itself  in doubt: a call of pay, and nobody knows how it ended" in shown
    assert "lastword resolve ID decides about it" in shown
    transcript("resolve by-itself --done")
    assert "by-itself" not in transcript("runs")
    Path("paid").unlink()
    killed("bills", while_it_runs=True)
    shown = transcript("runs")
    assert "in doubt     bills.nuwa" in shown
    assert "bills.0" not in shown


def test_a_memory_in_which_nothing_is_says_so(transcript: Transcript, golden):
    """A newcomer looks around first."""
    golden(
        GOLDEN / "empty.txt",
        transcript(
            "runs",
            "approvals",
            "show it",
            "resume it",
            "resolve it",
            "resolve it --done",
            "answer it --allow",
            "journal verify",
            "journal verify --file nowhere",
            "journal verify --head 3:abc",
            "journal export nowhere/at/all",
            "journal prune --before yesterday",
            "journal prune --before 2020-01-01",
        ),
    )


def change(sql: str) -> None:
    """Change the file as any program of the same user can."""
    file = sqlite3.connect(JOURNAL)
    file.executescript(sql)
    file.close()


TAMPERING = {
    "changed": "UPDATE records SET data = CAST(replace(data, 'Ann', 'Eve') AS BLOB) WHERE seq = 2",
    "deleted": "DELETE FROM records WHERE seq = 3",
    "reordered": "UPDATE records SET seq = 99 WHERE seq = 3; UPDATE records SET seq = 3 WHERE seq = 4;"
    " UPDATE records SET seq = 4 WHERE seq = 99",
    "inserted": "INSERT INTO records SELECT 6, stream, kind, subject, at, data, NULL, data_digest, digest FROM records"
    " WHERE seq = 5",
    "renamed": "UPDATE records SET subject = 'bills.7' WHERE seq = 4",
    "redated": "UPDATE records SET at = at + 1 WHERE seq = 5",
    "unburned": "UPDATE records SET once = NULL WHERE kind = 'burned'",
}


@pytest.mark.parametrize("how", TAMPERING)
def test_verify_names_the_first_record_that_was_changed(transcript: Transcript, golden, how: str):
    """Whatever was done to the file, and although the commands that only list still work."""
    killed("bills", while_it_runs=True)
    transcript("resolve bills.0 --done")
    change(TAMPERING[how] if how != "inserted" else TAMPERING[how].replace("SELECT 6", "SELECT 8"))
    golden(GOLDEN / f"verify-{how}.txt", transcript("journal verify"))


def test_a_head_that_was_kept_finds_a_tail_that_was_cut_off(transcript: Transcript, golden, capsys):
    """A chain alone cannot see its own end."""
    killed("bills", while_it_runs=True)
    run(["journal", "verify"])
    proved = re.search("head (.*)", capsys.readouterr().out)
    assert proved is not None
    head = proved[1]
    first = transcript(f"journal verify --head {head}")
    change("DELETE FROM records WHERE seq = 5")
    golden(GOLDEN / "verify-cut.txt", first + "\n" + transcript("journal verify", f"journal verify --head {head}"))


def test_an_export_is_proven_without_its_journal(transcript: Transcript, golden):
    """And any byte of it that was changed is named by its line."""
    killed("bills", while_it_runs=True)
    played = transcript("journal export out.jsonl", "journal verify --file out.jsonl")
    text = Path("out.jsonl").read_text()
    Path("out.jsonl").write_text(text.replace('"Ann"', '"Eve"', 1))
    golden(GOLDEN / "export.txt", played + "\n" + transcript("journal verify --file out.jsonl"))


@requirement("TOOL-45")
def test_pruning_keeps_what_is_open_what_is_proven_and_what_was_spent(transcript: Transcript, golden, capsys):
    """The finished session loses its words. The chain, the head and the keys stay, and the other session everything."""
    killed("old", while_it_runs=True)
    run(["resolve", "old.0", "--abandon"])
    run(["resume", "old", "--tools", "mine"])
    Path("paid").unlink()
    killed("open", while_it_runs=False)
    run(["journal", "verify"])
    proved = re.search("head (.*)", capsys.readouterr().out)
    assert proved is not None
    head = proved[1]
    golden(
        GOLDEN / "prune.txt",
        transcript(
            "journal prune --before 2020-01-01",
            "journal prune --before 2099-01-01",
            f"journal verify --head {head}",
            "runs",
            "show old",
            "show open",
            "resume old --tools mine",
            "resolve old.0 --again --tools mine",
        ),
    )
    spent = asyncio.run(_keys())
    assert {key.partition(":")[0] for key in spent} >= {"answer", "burn", "start"}
    assert not Path("paid").exists()


async def test_pruning_forgets_files_and_state_and_the_session_opens_without_them():
    """What a call wrote over is the most private thing in a journal. A session that was forgotten begins anew."""
    journal = lastword.Journal(SqliteStore(JOURNAL))
    async with lastword.Session(lastword.ToolRegistry(), id="s", journal=journal, state={"k": 1}) as session:
        session.set_state("k", 2, {"description": "a number"})
    await journal.changing_file("s", "c", {"project": None, "change": {"path": "diary.txt"}})
    assert (await journal.prune(journal.clock() + 1)).records == 4
    assert [record.data for record in await journal.store.read()] == [None] * 4
    assert (await journal.prune(journal.clock() + 1)).records == 0
    async with lastword.Session(lastword.ToolRegistry(), id="s", journal=journal, state={"k": 1}) as session:
        assert session.get_all_state() == {}
    await journal.close()


@pytest.mark.parametrize("what", ["a run that has not ended", "a call that has not ended"])
async def test_pruning_keeps_a_session_with(what: str):
    """Whoever comes back for it must find it whole."""
    journal = lastword.Journal(SqliteStore(JOURNAL))
    journal.note("s", "state_set", "", {"key": "k", "value": 1})
    if what.startswith("a run"):
        journal.note("s", "run_started", "r", {"text": "PRINT(1)"})
    else:
        await journal.claim("s", "burned", "c", {"seal": "", "nonce": "n"}, once="burn:n")
    assert (await journal.prune(journal.clock() + 1)).records == 0
    journal.note("s", "run_finished", "r", {"status": "done"})
    journal.note("s", "finished", "c", {"kind": "succeeded"})
    assert (await journal.prune(journal.clock() + 1)).records == 4
    await journal.close()


async def _keys() -> list[str]:
    journal = lastword.Journal(SqliteStore(JOURNAL))
    found = [record.once for record in await journal.store.read(stream="of-old") if record.once]
    for key in found:
        assert await journal.store.taken(key)
        assert not await journal.claim("of-old", "burned", "old.0", {}, once=key)
    await journal.close()
    return found


@requirement("TOOL-45", "TOOL-49")
def test_a_waiting_card_is_drawn_and_answered_in_another_terminal(home: Path):
    """The very card, with the keys of every card."""
    killed("bills", while_it_runs=False)
    with at_terminal("answer", "bills.0") as program:
        program.until("Pay Ann")
        program.until("Send 5 to Ann?")
        program.until("╰▸")
        program.press("a")
        program.type_by_hand("allow", "Type allow and press Enter to go on: ")
        program.until("Allowed.")
        program.until("lastword resume bills")
        assert program.finish() == 0


@requirement("TOOL-55")
@pytest.mark.parametrize(
    ("words", "plain"), [("--allow", False), ("--edit amount=5", False), ("--allow --plain", True)]
)
def test_a_yes_typed_as_a_command_is_not_the_word_that_an_irreversible_call_takes(home: Path, words: str, plain: bool):
    """One act for everything would make the command the weakest surface. The card is shown, and asks for more."""
    killed("bills", while_it_runs=False)
    asked = "Type the name of the tool, pay, and press Enter" if plain else "Type allow and press Enter to go on: "
    for typed in ("yes", "pay" if plain else "allow"):
        with at_terminal("answer", "bills.0", *words.split()) as program:
            program.until("Send 5 to Ann?")
            if plain:
                program.until(asked)
                program.press(f"{typed}\r")
            else:
                program.type_by_hand(typed, asked)
            program.until("Nothing was done." if typed == "yes" else "Allowed.")
            assert program.finish() == (3 if typed == "yes" else 0)


@requirement("TOOL-55")
@pytest.mark.parametrize("words", ["--allow", "--second", "--edit amount=6"])
def test_without_a_terminal_a_yes_to_an_irreversible_call_names_the_card_that_was_read(
    transcript: Transcript, words: str
):
    """Whoever can only type `--allow` has not shown that they know what is asked, nor that it is still the same."""
    manifest = MANIFEST | {"effect": "irreversible", "secondaryActs": True}
    Path("mine/pay/assistant_tool.json").write_text(json.dumps(manifest))
    killed("bills", while_it_runs=False)
    said = transcript(f"answer bills.0 {words}", f"answer bills.0 {words} --digest {'0' * 64}", "approvals")
    assert "this cannot be undone, and one act does not allow it" in said
    assert "that is not the digest of this card" in said
    assert "bills.0  Pay Ann" in said
    assert "Allowed." not in said
    assert "Allowed.\n" in transcript(f"answer bills.0 {words} --digest DIGEST")


def test_one_act_is_enough_for_what_can_be_undone(transcript: Transcript):
    """And a digest that is given counts all the same: the answer is for that card and for no other."""
    Path("mine/pay/assistant_tool.json").write_text(json.dumps(MANIFEST | {"effect": "reversible"}))
    killed("bills", while_it_runs=False)
    for word in ("--allow", "--deny"):
        assert "that is not the digest of this card" in transcript(f"answer bills.0 {word} --digest {'0' * 64}")
    assert "Allowed.\n" in transcript("answer bills.0 --allow")


@requirement("TOOL-55")
@pytest.mark.parametrize("command", ["resume", "resolve"])
def test_a_call_in_doubt_runs_again_only_by_two_acts(home: Path, command: str):
    """Nobody knows whether it is the second payment."""
    killed("bills", while_it_runs=True)
    words = ["resume", "bills"] if command == "resume" else ["resolve", "bills.0", "--again"]
    for typed in ("no", "pay"):
        with at_terminal(*words, "--tools", "mine") as program:
            if command == "resume":
                program.until("What shall become of it?")
                program.press("again\r")
            program.until("Type the name of the tool, pay, to run it once more, or no, and press Enter:")
            program.press(f"{typed}\r")
            program.until("Nothing was done." if typed == "no" else "Paid 5 to Ann.")
            if typed == "pay":
                assert Path("paid").read_text() == "Ann\nAnn\n"
        if typed == "no":
            assert Path("paid").read_text() == "Ann\n"


def test_a_call_in_doubt_is_asked_about_when_its_run_is_resumed(home: Path):
    """In the terminal, with whole words; Enter decides nothing."""
    killed("bills", while_it_runs=True)
    with at_terminal("resume", "bills", "--tools", "mine") as program:
        program.until("What shall become of it?")
        program.press("yes\r")
        program.until("Please type again, done, abandon or later.")
        program.press("done\r")
        program.until("looked afterwards")
        program.until("Pay Ben")
        program.until("╰▸")
        program.press("d")
        program.until("denied it")
        assert program.finish() == 0
    assert Path("paid").read_text() == "Ann\n"


def test_whoever_starts_something_is_reminded_of_a_call_in_doubt(home: Path):
    """A short notice that names the command; the work goes on."""
    killed("bills", while_it_runs=True)
    Path("empty.nuwa").write_text("PRINT(1)\n")
    with at_terminal("run", "empty.nuwa") as program:
        program.until("1 call is in doubt: bills.0 (pay).")
        program.until("lastword resolve bills.0")
        assert program.finish() == 0


PAGE = (Path(__file__).parent.parent.parent / "docs" / "journal.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(.*?)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [body for fence, body in fenced if fence == language]


def test_the_commands_of_the_page_do_what_it_says(capsys):
    """In the order of the page; a comment says where the exit code is not 0."""
    waiting, doubtful, proving, lacking = blocks("sh")
    killed("fa24c2fd58edbc1a22", while_it_runs=False)
    play(waiting)
    Path("paid").unlink()
    killed("fa24c2fd58edbc1a33", while_it_runs=True)
    play(doubtful)
    play(proving)
    play(lacking)
    assert "ReplayDivergence" not in capsys.readouterr().err
    assert Path("paid").read_text() == "Ann\n"


def play(block: str) -> None:
    for line in block.splitlines():
        command = ["lastword", *with_digest(shlex.split(line, comments=True)[1:])]
        assert line.startswith("lastword ")
        expected = re.search(r"# exit (\d)", line)
        assert run(command[1:]) == (int(expected[1]) if expected else 0), line


def test_the_examples_of_the_page_print_what_they_say(home: Path):
    """The same id brings the state back, and an image is kept by its digest."""
    for example, printed in zip(blocks("python"), blocks(""), strict=True):
        done = run_python("-c", example, cwd=home)
        assert (done.stderr, done.stdout) == ("", printed)


BROKEN_DISK = """
import sys
import apsw
from store.disk import failing_disk
from lastword.cli import run
from lastword.store.sqlite import SqliteStore

kind, problem = sys.argv[1], getattr(apsw, sys.argv[2])

def fault(operation, name):
    if operation == "write":
        raise problem("as the test asked for")

class Breaking(SqliteStore):
    async def commit(self, *entries):
        if any(entry.kind == kind for entry in entries):
            disk.fault = fault
        return await commit(self, *entries)

with failing_disk() as disk:
    commit, SqliteStore.commit = SqliteStore.commit, Breaking.commit
    if kind == "everything":
        disk.fault = fault
    code = run(sys.argv[3:])
    sys.stdout.flush()
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("kind", "problem", "code"),
    [
        ("everything", "FullError", 1),
        ("asked", "FullError", 1),
        ("burned", "IOError", 1),
        ("burned", "ReadOnlyError", 1),
        ("finished", "FullError", 4),
        ("finished", "IOError", 4),
    ],
)
def test_trouble_with_the_disk_reaches_the_command_in_words(home: Path, golden, kind: str, problem: str, code: int):
    """No traceback; nothing ran, or what ran is called unknown."""
    manifest = MANIFEST | {"autoApprove": True}
    Path("mine/pay/assistant_tool.json").write_text(json.dumps(manifest))
    env = {"PATH": "/usr/bin:/bin", "HOME": str(home), "XDG_DATA_HOME": "data"}
    call = ("call", "pay", "to=Ann", "amount=5", "--tools", "mine", "--auto-approve")
    done = run_python("-c", BROKEN_DISK, kind, problem, *call, cwd=home, env=env, loads=CALL_LOADS)
    said = re.sub(r"\b[0-9a-f]{18}\b", "CALL_ID", done.stdout + done.stderr).replace(str(home), "HOME")
    assert "Traceback" not in said
    assert (done.returncode, Path("paid").exists()) == (code, kind == "finished"), said
    golden(GOLDEN / f"disk-{kind}-{problem}.txt", said)


@pytest.mark.parametrize(
    "words", ["answer it --allow --deny", "resolve it --done --abandon", "resolve it --again --done"]
)
def test_two_answers_in_one_line_are_refused(words: str, capsys: pytest.CaptureFixture[str]):
    """Which of the two would count must not be a matter of their order."""
    assert run([*words.split(), "--store", "memory:"]) == 2
    *_, first, second = words.split()
    assert f"{first} and {second} contradict each other" in capsys.readouterr().err


@requirement("API-69")
def test_prune_keeps_the_conversation_of_a_waiting_card_also_after_it_was_begun_anew(transcript: Transcript):
    """Its id is then the session's with an ending. Whoever answers the card would find that nobody knows of it."""
    killed("bills", while_it_runs=False)

    async def converse() -> None:
        store = SqliteStore(JOURNAL)
        conversations = Conversations(store)
        for name in ("of-bills.0a1b2c3d", "of-bills-too.0a1b2c3d"):
            turn = Turn(said=[ChatMessage("user", "Hi"), ChatMessage("assistant", "Hello.")], settled={}, pending=[])
            await conversations.commit(await conversations.begin(name, "local"), "local", turn)
        await store.close()

    asyncio.run(converse())
    shown = transcript("journal prune --before 2999-01-01", "journal conversations")
    assert "1 conversation with 2 messages was deleted." in shown
    assert "of-bills.0a1b2c3d" in shown
