"""Kills a program that pays, over and over, and looks afterwards at what it left behind.

    python tests/crash/harness.py KILLS SEED FOLDER

One life: a child process goes on with the run that the last one left, or starts a new one, with a journal and
a tool whose effect is a line in a file outside the journal. It is killed with its whole process group, by SIGKILL, at
a boundary of the journal, in the middle of the tool, or at a random instant. In some lives nobody sits at the program:
its cards wait, and another process answers them, which is killed as well. Then another process looks:

* no line of a tool that is not idempotent is there twice;
* what was told to the caller is in the journal, with the same end;
* a line without an end in the journal is a call in doubt, and the other way round;
* the session's state is what the finished calls made of it, and what was set before a call is there if the call is;
* a question that waited through a death is the same question afterwards, and is asked and answered once;
* the chain holds.

This process never opens the database itself, so nothing of it crosses a fork.
"""

import asyncio
import gc
import json
import os
import random
import signal
import sys
import time
import traceback
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import cast

from worlds import store_in, wait_until_alone

import lastword
from lastword.call.events import Finished
from lastword.journal import data_of
from lastword.store import Store

SCRIPT = """
LET total = 0
FOR i IN [1, 2, 3, 4] DO
  LET seen = CALL look { n: i }
  LET paid = CALL pay { amount: seen }
  CALL note { text: FORMAT("paid {n}", {n: paid.count}) }
  SET total = total + NOW() * 0 + paid.count
END
PRINT(total)
"""
# Longer than any life that is not killed by its own hand; a life that is still there then is stuck.
LIFE_SECONDS = 120.0
LIVES_OF_A_WORLD = 15


class Mortal:
    """A store at whose n-th boundary the process dies: before what was asked is done, or just after."""

    def __init__(self, store: Store, boundary: int | None, after: bool) -> None:
        self._store = store
        self._left = boundary
        self._after = after

    def __getattr__(self, name: str):
        return getattr(self._store, name)

    def _step(self) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                die()

    def append(self, entry):
        if not self._after:
            self._step()
        self._store.append(entry)
        if self._after:
            self._step()

    async def commit(self, *entries):
        if not self._after:
            self._step()
        done = await self._store.commit(*entries)
        if self._after:
            self._step()
        return done


def die() -> None:
    os.killpg(0, signal.SIGKILL)


def write_line(file: Path, text: str) -> None:
    """One line, all of it or none: what a payment is to a bank."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (text + "\n").encode())
    os.fsync(descriptor)
    os.close(descriptor)


def tools(folder: Path, in_tool: int | None) -> lastword.ToolRegistry:
    registry = lastword.ToolRegistry()
    left = [in_tool]

    def fate() -> None:
        if left[0] is not None:
            left[0] -= 1
            if left[0] < 0:
                die()

    @registry.tool(require_approval=False)
    async def look(n: int) -> int:
        """Looks, and changes nothing."""
        return n

    @registry.tool
    def pay(amount: float, context=None) -> dict:
        """Pays: a line outside the journal."""
        fate()
        write_line(folder / "paid", context.call_id)
        count = (context.get_state_value("count") or 0) + 1
        context.set_state("count", count)
        context.set_state(f"paid {context.call_id}", amount)
        fate()
        return {"count": count}

    @registry.tool(idempotent=True)
    async def note(text: str, context=None) -> str:
        """Notes, as often as it likes, under the id of its call."""
        write_line(folder / "noted", context.call_id)
        fate()
        return text

    return registry


async def allow(request):
    return request.allow()


def mortal(folder: Path, fate: dict) -> Store:
    """The store of this life. What `Mortal` does not do itself it leaves to a real one, which no type can say."""
    return cast(Store, Mortal(store_in(folder), fate.get("boundary"), fate.get("after", False)))


async def live(folder: Path, fate: dict, acknowledged: int) -> None:
    """One life of the program."""
    journal = lastword.Journal(mortal(folder, fate))
    approver = lastword.wait_for_answer if "answers" in fate else allow
    registry, limits = tools(folder, fate.get("in_tool")), lastword.Limits(watch_after_seconds=0)
    async with lastword.Session(registry, id="s", approver=approver, journal=journal, limits=limits) as session:
        session.listen(lambda event: _acknowledge(event, acknowledged))
        os.write(acknowledged, b'["ready"]\n')
        paid = set(_lines(folder / "paid"))
        for life in await session.in_doubt():
            # The person looks at the bank, and says what they see.
            await session.resolve(life.call_id, "done" if life.call_id in paid else "again", by="a person")
        begun = [record.subject for record in await journal.store.read(kind="run_started")]
        ended = {record.subject for record in await journal.store.read(kind="run_finished")}
        for run_id in begun:
            if run_id not in ended:
                await session.resume(run_id)
        number = len(begun)
        while True:
            session.set_state(f"before run-{number}", number)
            await session.run_script(SCRIPT, run_id=f"run-{number}")
            number += 1


async def answer_all(folder: Path, fate: dict) -> None:
    """Another process, at which somebody says yes to whatever waits."""
    journal = lastword.Journal(mortal(folder, fate))
    while True:
        head = await journal.store.head()
        for facts in await journal.waiting():
            await journal.answer(facts, lastword.UserAction(True, False), "elsewhere")
        await journal.store.changed(head.seq)


def _acknowledge(event, descriptor: int) -> None:
    if isinstance(event, Finished):
        line = json.dumps(["told", event.outcome.call_id, event.outcome.kind, event.outcome.approval])
        os.write(descriptor, line.encode() + b"\n")


async def look_back(folder: Path, told: list) -> dict:
    """What the last life left, and everything that is wrong with it."""
    wrong: list[str] = []
    journal = lastword.Journal(store_in(folder))
    head = await journal.store.verify()
    paid, noted = _lines(folder / "paid"), _lines(folder / "noted")
    wrong += [f"paid twice: {call_id}" for call_id, times in Counter(paid).items() if times > 1]

    lives: dict[str, list[str]] = {}
    for record in await journal.store.read(stream="s"):
        if record.kind in ("asked", "answered", "started", "finished", "restarted", "settled"):
            lives.setdefault(record.subject, []).append(record.kind)
    for _, call_id, kind, approval in told:
        finished = (await journal.life(call_id)).finished
        if approval != "not_needed" and (finished is None or finished["kind"] != kind):
            wrong.append(f"told {kind} of {call_id}, but the journal says {finished}")
    doubtful = {life.call_id for life in await journal.in_doubt()}
    for call_id in paid:
        if "finished" not in lives.get(call_id, ()) and call_id not in doubtful:
            wrong.append(f"paid without a trace: {call_id}")
    for call_id, kinds in lives.items():
        if "finished" not in kinds or "started" not in kinds:
            continue
        started = (await journal.life(call_id)).started
        if started is not None and started["tool"] == "pay":
            settled_as_done = "settled" in kinds
            if call_id not in paid and not settled_as_done:
                wrong.append(f"finished without an effect: {call_id}")
    async with lastword.Session(lastword.ToolRegistry(), id="s", journal=journal) as session:
        state = session.get_all_state()
    asked = Counter(record.subject for record in await journal.store.read(kind="asked"))
    wrong += [f"asked {times} times: {call_id}" for call_id, times in asked.items() if times > 1]
    answered = Counter(record.subject for record in await journal.store.read(kind="answered"))
    wrong += [f"answered {times} times: {call_id}" for call_id, times in answered.items() if times > 1]
    for call_id, kinds in lives.items():
        if "started" in kinds and f"before {call_id.partition('.')[0]}" not in state:
            wrong.append(f"what was set before {call_id} is lost")
    kept = {key.split(" ")[1] for key in state if key.startswith("paid ")}
    for call_id in paid:
        settled = "settled" in lives.get(call_id, ())
        if "finished" in lives.get(call_id, ()) and not settled and call_id not in kept:
            wrong.append(f"the state of {call_id} is lost")
    for record in await journal.store.read(kind="finished"):
        if data_of(record)["kind"] not in ("succeeded",):
            wrong.append(f"{record.subject} ended as {data_of(record)['kind']}: {data_of(record)['message']}")
    elsewhere = sum(data_of(r)["approver"]["name"] == "elsewhere" for r in await journal.store.read(kind="answered"))
    await journal.close()
    return {
        "wrong": wrong,
        "paid": len(paid),
        "noted": len(noted),
        "doubt": len(doubtful),
        "records": head.seq,
        "elsewhere": elsewhere,
    }


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def in_child(work) -> tuple[int, int]:
    """Fork, in a process group of its own; gives the child's id and the end of a pipe it writes to."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with suppress(ProcessLookupError):
            os.setpgid(child, child)  # Here too: whoever kills the group must find one, however early.
        return child, reading
    code = 1
    try:
        os.setpgid(0, 0)
        os.close(reading)
        work(writing)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def choose(chance: random.Random) -> dict:
    """How this life ends."""
    kind = chance.choice(["boundary", "boundary", "in_tool", "instant", "answered elsewhere"])
    if kind == "boundary":
        return {"boundary": chance.randrange(60), "after": chance.random() < 0.5}
    if kind == "in_tool":
        return {"in_tool": chance.randrange(12)}
    if kind == "answered elsewhere":
        # Some of those who answer live as long as the program does.
        answers = {"boundary": chance.randrange(8), "after": chance.random() < 0.5} if chance.random() < 0.6 else {}
        return {"instant": chance.random() * 0.2, "answers": answers}
    return {"instant": chance.random() * 0.08}


def one_life(folder: Path, chance: random.Random) -> list:
    """Let a child live and die; gives what it was told to have told."""
    fate = choose(chance)
    if "answers" in fate:
        # It makes the file if there is none yet, so it is there before anything waits.
        answerer, silence = in_child(lambda writing: asyncio.run(answer_all(folder, fate["answers"])))
    child, reading = in_child(lambda writing: asyncio.run(live(folder, fate, writing)))
    told: list = []
    rest = b""
    deadline = time.monotonic() + LIFE_SECONDS
    while piece := os.read(reading, 65536):
        *lines, rest = (rest + piece).split(b"\n")
        told += [json.loads(line) for line in lines]
        if "instant" in fate and told and told[0] == ["ready"]:
            time.sleep(fate.pop("instant"))
            os.killpg(child, signal.SIGKILL)
        assert time.monotonic() < deadline, "a life that does not end"
    os.close(reading)
    if "answers" in fate:
        with suppress(ProcessLookupError):
            os.killpg(answerer, signal.SIGKILL)
        os.close(silence)
        _, status = os.waitpid(answerer, 0)
        assert os.WIFSIGNALED(status), f"who answered ended by itself, with status {status}"
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the child ended by itself, with status {status}"
    assert os.WTERMSIG(status) == signal.SIGKILL, f"the child died of signal {os.WTERMSIG(status)}"
    wait_until_alone()
    return [line for line in told if line[0] == "told"]


def afterwards(folder: Path, told: list) -> dict:
    child, reading = in_child(
        lambda writing: os.write(writing, json.dumps(asyncio.run(look_back(folder, told))).encode())
    )
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    wait_until_alone()
    assert text, "looking back failed"
    return json.loads(text)


async def rehearse() -> None:
    """Load what a life needs, once: each of them is a fork of this process."""
    async with lastword.Session(lastword.ToolRegistry()) as session:
        await session.run_script("PRINT(1)")


def main(kills: int, seed: int, folder: Path) -> int:
    asyncio.run(rehearse())
    gc.freeze()
    chance = random.Random(seed)
    totals: Counter = Counter()
    for number in range(kills):
        # A new world now and then: what is tested is dying, not growing old.
        world = folder / str(number // LIVES_OF_A_WORLD)
        world.mkdir(parents=True, exist_ok=True)
        found = afterwards(world, one_life(world, chance))
        if found["wrong"]:
            print(f"seed {seed}, after kill {number + 1}: {found['wrong']}")
            return 1
        totals["doubt"] += found["doubt"]
        if number % LIVES_OF_A_WORLD == LIVES_OF_A_WORLD - 1 or number == kills - 1:
            totals += Counter({name: found[name] for name in ("paid", "records", "elsewhere")})
    print(
        f"seed {seed}: {kills} kills, {totals['paid']} payments, none twice, none lost; "
        f"{totals['elsewhere']} answered elsewhere, {totals['doubt']} stopped in doubt; {totals['records']} records"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
