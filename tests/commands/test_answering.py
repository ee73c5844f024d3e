"""Answering from another terminal: who waits, whether they live, and what comes of the answer. And stopping everything.

Programs are real here: what one of them says of another must be true.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

import apsw
import pytest

import lastword
from commands.paying import BILLS, JOURNAL, MANIFEST, Transcript, allow, killed
from lastword.cli import run
from lastword.journal import data_of
from lastword.store import SqliteStore
from requirements import requirement
from sending import until
from surfaces.screens import lastword_command

PATIENCE_SECONDS = 60


class Started:
    """A command that runs beside the test."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said = ""

    def until(self, words: str) -> str:
        """Read what it says until it says this; the line that has it."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said += line
            if words in line:
                return line
        raise AssertionError(f"it never said {words!r}, but: {self.said}")

    def ended(self) -> tuple[int, str]:
        """Its exit code, and the rest of what it said."""
        out, err = self._process.communicate(timeout=PATIENCE_SECONDS)
        return self._process.returncode, self.said + err + out

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(PATIENCE_SECONDS)


@contextmanager
def started(*arguments: str) -> Iterator[Started]:
    process = subprocess.Popen(
        [*lastword_command(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )
    overdue = Timer(PATIENCE_SECONDS, process.kill)
    overdue.start()
    try:
        yield Started(process)
    finally:
        overdue.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


PAY_ANN = ("call", "pay", "to=Ann", "amount=5", "--tools", "mine", "--wait")


def waiting_call(program: Started) -> str:
    return program.until("Waiting for an answer").split()[-1]


def questions(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert run(["approvals", "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


@requirement("TOOL-49")
def test_wait_says_what_it_waits_for_and_how_to_answer(transcript: Transcript):
    """A command that only stands there looks broken. What it says can be typed as it stands."""
    with started(*PAY_ANN) as program:
        line = program.until("Waiting for an answer")
        command = line.partition("From any terminal: lastword ")[2].strip()
        assert line.startswith("Waiting for an answer: Pay Ann (pay). From any terminal: lastword answer ")
        said = transcript(f"{command} --allow --digest DIGEST")
        assert "Allowed.\nThe program that asked hears it, and goes on by itself.\n[exit 0]" in said
        assert program.ended() == (0, f"{line}Paid 5 to Ann.\n")
    assert Path("paid").read_text() == "Ann\n"


def test_wait_names_the_store_that_was_named():
    """Copied as it stands, the command finds the question."""
    with started(*PAY_ANN, "--store", "sqlite:///here.db") as program:
        assert program.until("Waiting").endswith(" --store sqlite:///here.db\n")


def test_resume_with_wait_says_it_too():
    """It is the same question, put by another program."""
    killed("bills", while_it_runs=False)
    with started("resume", "bills", "--tools", "mine", "--wait") as program:
        assert "Waiting for an answer: Pay Ann (pay)." in program.until("Waiting")


@requirement("TOOL-49")
def test_an_answer_to_a_program_that_was_killed_is_not_said_to_be_heard(transcript: Transcript, capsys):
    """`goes on by itself` was said of the dead."""
    with started(*PAY_ANN) as program:
        call_id = waiting_call(program)
        assert [facts["asker"] for facts in questions(capsys)] == ["waits"]
        assert "  waiting  " in transcript("calls")
        program.kill()
    assert [facts["asker"] for facts in questions(capsys)] == ["ended"]
    assert "  left waiting  " in transcript("calls")
    said = transcript("approvals", f"answer {call_id} --allow --digest DIGEST")
    assert "Of these the program that asked has ended, and an answer starts nothing by itself:\n" in said
    assert "Allowed.\nThe program that asked has ended, so nothing comes of it.\n[exit 0]" in said
    assert not Path("paid").exists()


def test_cards_of_the_living_and_of_the_dead_are_listed_apart(transcript: Transcript):
    """First those that somebody waits for."""
    killed("bills", while_it_runs=False)
    with started(*PAY_ANN) as program:
        call_id = waiting_call(program)
        lines = transcript("approvals").splitlines()
    heads = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert heads == ["$", call_id, "Of", "bills.0", "lastword", "[exit"]


def test_a_run_that_its_program_left_has_nobody_who_hears(transcript: Transcript):
    """The program may live on, as a chat does that stopped a script. The run is over there all the same."""

    async def leave() -> None:
        registry = lastword.ToolRegistry()
        registry.load("mine")
        journal = lastword.Journal(SqliteStore(JOURNAL))
        session = lastword.Session(registry, approver=lastword.wait_for_answer, journal=journal)
        run = asyncio.create_task(session.run_script(BILLS, run_id="bills"))
        await until(session.pending)
        assert [facts["asker"] for facts in await journal.waiting()] == ["waits"]
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert [facts["asker"] for facts in await journal.waiting()] == ["ended"]
        await journal.close()

    asyncio.run(leave())


def test_of_a_question_of_an_earlier_version_nothing_is_claimed(transcript: Transcript, capsys):
    """Its record does not say which program asked."""

    async def without_process() -> None:
        registry = lastword.ToolRegistry()
        registry.load("mine")
        living = lastword.Journal()
        session = lastword.Session(registry, approver=lastword.wait_for_answer, journal=living)
        call = asyncio.create_task(session.call("pay", {"to": "Ann", "amount": 5}, call_id="old"))
        await until(session.pending)
        [record] = await living.store.read(kind="asked")
        facts = data_of(record)
        del facts["process"]
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        journal = lastword.Journal(SqliteStore(JOURNAL))
        journal.note("s", "asked", "old", facts)
        await journal.close()

    asyncio.run(without_process())
    assert [facts["asker"] for facts in questions(capsys)] == ["unknown"]
    said = transcript("approvals", "answer old --allow --digest DIGEST")
    assert "Nobody knows whether the program that asked lives." in said
    assert "If the program that asked still lives it goes on by itself; of that nothing is known." in said


def test_a_card_of_a_chat_that_ended_says_how_to_come_back(transcript: Transcript):
    """A conversation goes on with its session, and finds the answer."""

    async def leave() -> None:
        registry = lastword.ToolRegistry()
        registry.load("mine")
        journal = lastword.Journal(SqliteStore(Path("living.db")))
        session = lastword.Session(registry, id="talk", approver=lastword.wait_for_answer, journal=journal)
        journal.note("talk", "conversation", "talk", {"id": "talk"})
        call = asyncio.create_task(session.call("pay", {"to": "Ann", "amount": 5}, call_id="c"))
        await until(session.pending)
        copied = lastword.Journal(SqliteStore(JOURNAL))
        for record in await journal.store.read():
            copied.note(record.stream, record.kind, record.subject, data_of(record))
        await copied.close()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await journal.close()

    asyncio.run(leave())
    said = transcript("answer c --deny")
    assert "Denied.\nThe program that asked has ended. To go on without it: lastword chat --session talk\n" in said


@requirement("TOOL-58")
def test_stop_denies_and_cancels_in_other_programs(transcript: Transcript, says, capsys):
    """One waits, one runs, and a third is dead. Each is told as what it is, and nothing is paid that was not."""
    killed("bills", while_it_runs=True)
    Path("paid").unlink()
    Path("mine/pay/assistant_tool.json").write_text(json.dumps(MANIFEST | {"autoApprove": True}))
    Path("hang").touch()
    running = ("call", "pay", "to=Ben", "amount=7", "--tools", "mine", "--auto-approve")
    with started(*PAY_ANN) as one, started(*running) as two:
        call_id = waiting_call(one)
        asyncio.run(until(Path("paid").exists))
        capsys.readouterr()
        stopped = json.loads(says(["stop", "--json"]).out)
        assert [call["call_id"] for call in stopped["denied"]] == [call_id]
        assert [call["tool"] for call in stopped["cancelled"]] == ["pay"]
        assert [call["call_id"] for call in stopped["in_doubt"]] == ["bills.0"]
        assert stopped["complete"] is True
        code, said = one.ended()
        assert (code, "Their reason: everything was stopped" in said) == (3, True)
        assert two.ended()[0] == 130
    assert Path("paid").read_text() == "Ben\n"
    again = transcript("stop", f"answer {call_id} --allow --digest DIGEST", f"show {call_id}")
    assert "is in doubt, its program is dead: lastword resolve bills.0\n[exit 0]" in again
    assert "no such question waits" in again
    assert "denied by a person at the command line: everything was stopped" in again


@requirement("TOOL-58")
def test_a_stop_where_nothing_is_says_so(transcript: Transcript):
    """A person presses it to be sure."""
    assert transcript("stop") == "$ lastword stop\nNothing waited, and nothing ran.\n[exit 0]\n"


@requirement("TOOL-58")
def test_stop_names_a_program_that_does_not_answer(transcript: Transcript):
    """It was put to sleep, and runs on when it wakes. That must not pass for stopped."""
    Path("mine/pay/assistant_tool.json").write_text(json.dumps(MANIFEST | {"autoApprove": True}))
    Path("hang").touch()
    with started("call", "pay", "to=Ben", "amount=7", "--tools", "mine", "--auto-approve") as asleep:
        asyncio.run(until(Path("paid").exists))
        asleep._process.send_signal(signal.SIGSTOP)
        said = transcript("stop")
        assert said.startswith("$ lastword stop\nNot everything could be stopped.\nWhat is left:\n")
        assert "\n  Pay somebody (to: Ben, amount: 7), asked for by lastword call, process " in said
        assert said.endswith(", runs in a program that does not answer: end the program\n[exit 1]\n")
        asleep._process.send_signal(signal.SIGCONT)
        assert asleep.ended()[0] == 130


NUMBERS = "LET a = CALL count {}\nPRINT(a)\nPRINT(1)\n"


def killed_while_counting() -> lastword.ToolRegistry:
    """Leave a run whose registered tool was running when its program died."""
    registry = lastword.ToolRegistry()

    async def count(arguments, context):
        Path("counting").touch()
        await asyncio.Event().wait()

    registry.register("count", {"description": "Counts.", "parameters": []}, count, require_approval=True)

    async def die() -> None:
        living = lastword.Journal()
        session = lastword.Session(registry, id="s", approver=allow, journal=living)
        run = asyncio.create_task(session.run_script(NUMBERS, run_id="r"))
        await until(Path("counting").exists)
        journal = lastword.Journal(SqliteStore(JOURNAL))
        for record in await living.store.read():
            if record.once:
                await journal.claim(record.stream, record.kind, record.subject, data_of(record), record.once)
            else:
                journal.note(record.stream, record.kind, record.subject, data_of(record))
        await journal.close()
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)

    asyncio.run(die())
    return registry


@requirement("NUWA-62")
@pytest.mark.parametrize(
    ("words", "printed"),
    [("", "null"), ("--value 42", "42"), ('--value {"n":[1]}', "{n: [1]}"), ("--value null", "null")],
)
def test_a_run_goes_on_with_the_value_that_a_person_says_the_call_gave(transcript: Transcript, words, printed):
    """A registered tool gives a value. Without one its run failed for good, although somebody knew how it ended."""
    registry = killed_while_counting()
    assert "[exit 0]" in transcript(f"resolve r.0 --done {words}")

    async def go_on() -> lastword.Run:
        journal = lastword.Journal(SqliteStore(JOURNAL))
        try:
            async with lastword.Session(registry, id="s", journal=journal) as session:
                return await session.resume("r")
        finally:
            await journal.close()

    ended = asyncio.run(go_on())
    assert (ended.status, ended.output) == ("done", [printed, "1"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--done --value {", "--value"),
        ("--again --value 1", "only a call that was done gave a value"),
        ("--abandon --value 1", "only a call that was done gave a value"),
        ("--value 1", "hint: say --done as well"),
    ],
)
def test_a_value_that_is_none_or_is_not_meant_decides_nothing(transcript: Transcript, words: str, said: str):
    """A decision counts once, so a mistake in it must not be taken for one."""
    killed_while_counting()
    told = transcript(f"resolve r.0 {words}")
    assert said in told
    assert "[exit 2]" in told
    assert "[exit 0]" in transcript("resolve r.0 --abandon")


@requirement("TOOL-45", "TOOL-49")
def test_a_damaged_question_is_named_and_hides_no_other(transcript: Transcript):
    """It cannot be answered, and whoever lists what waits learns of it, by a code as well."""
    killed("bills", while_it_runs=False)
    transcript("runs")  # Whoever closes the file takes over what the killed process left beside it.
    killed("more", while_it_runs=False)
    transcript("runs")
    file = apsw.Connection(str(JOURNAL))
    file.execute("UPDATE records SET data = x'7b7d' WHERE kind = 'asked' AND subject = 'bills.0'")
    assert file.changes() == 1
    file.close()
    said = transcript("approvals", "answer bills.0 --allow", "answer more.0 --deny")
    listed, allowed, denied = said.split("$ lastword ")[1:]
    assert "more.0  Pay Ann\n" in listed
    assert "bills.0 cannot be shown: bills.0: record " in listed
    assert listed.rstrip().endswith("[exit 1]")
    assert "(asked) was changed after it was written" in allowed
    assert allowed.rstrip().endswith("[exit 1]")
    assert "Denied.\n" in denied
    said = transcript("approvals")
    assert "Nothing waits" not in said
