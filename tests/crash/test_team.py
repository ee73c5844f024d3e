"""Three satellites and three who answer on one server, with deaths in the middle: one winner each, nothing twice."""

import asyncio
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lastword
from lastword.journal import data_of
from lastword.store.postgres import PostgresStore
from postgres_server import PostgresServer
from requirements import requirement
from warm import WarmProgram

LOADED = ("lastword.session", "lastword.store.postgres")


class Member:
    """One process of team.py, and everything it said."""

    def __init__(self, *words: str) -> None:
        program = str(Path(__file__).with_name("team.py"))
        reading, writing = os.pipe()
        self._process = WarmProgram([program, *words], Path.cwd(), os.environ, loads=LOADED, printed=writing)
        os.close(writing)
        self.said: list[dict[str, Any]] = []
        self._listening = threading.Thread(target=self._listen, args=(reading,))
        self._listening.start()

    def _listen(self, reading: int) -> None:
        with os.fdopen(reading) as lines:
            for line in lines:
                if line.endswith("\n"):  # A process that is killed may leave half of one.
                    self.said.append(json.loads(line))

    def is_over(self) -> bool:
        """Whether nothing more can come from it."""
        return not self._listening.is_alive()

    def end(self) -> None:
        self._process.close()
        self._listening.join(30)


def until(condition: Callable[[], object]) -> None:
    for _ in range(30_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")


def is_done(member: Member, each: int) -> bool:
    return member.is_over() or len(member.said) == each


def team(tmp_path: Path, each: int, *, restarts: bool) -> None:
    server = PostgresServer()
    server.start()
    server.settle()
    address = server.new_store()
    members: list[Member] = []

    def join(role: str, name: str) -> Member:
        member = Member(role, address, str(tmp_path), name, str(each))
        members.append(member)
        return member

    try:
        satellites = {name: join("satellite", name) for name in ("ann", "bob", "cid")}
        answerers = [join("answerer", name) for name in ("left", "middle", "right")]
        total = 3 * each

        def answered() -> int:
            return sum(said["won"] for member in members for said in member.said if "won" in said)

        until(lambda: answered() >= total // 4)
        satellites["ann"].end()
        answerers[0].end()
        satellites["ann"] = join("satellite", "ann")
        join("answerer", "left again")
        if restarts:
            until(lambda: answered() >= total // 2)
            server.stop()
            server.start()
        for member in satellites.values():
            until(partial(is_done, member, each))
        for member in members:
            member.end()
        asyncio.run(judge(address, tmp_path, members, total))
    finally:
        for member in members:
            member.end()
        server.remove()


async def judge(address: str, folder: Path, members: list[Member], total: int) -> None:
    store = PostgresStore(address, heads=folder / "heads")
    await store.verify()
    journal = lastword.Journal(store)
    calls = [f"{name}-{number}" for name in ("ann", "bob", "cid") for number in range(total // 3)]
    paid = Counter((folder / "paid").read_text().splitlines())
    assert max(paid.values()) == 1, "paid twice"

    answers = await store.read(kind="answered")
    assert len({record.once for record in answers}) == len(answers), "a question was answered twice"
    kept = {(record.subject, data_of(record)["approver"]["name"]) for record in answers}
    said = [(one["call"], one["nonce"]) for member in members for one in member.said if one.get("won")]
    assert len(said) == len(set(said)), "two were told that they won"
    assert {call for call, _ in said} <= {call for call, _ in kept}, "somebody was told that they won, and it is lost"

    ends: Counter[str] = Counter()
    for call_id in calls:
        life = await journal.life(call_id)
        end = "in doubt" if life.in_doubt else (life.finished or {}).get("kind", "open")
        ends[end] += 1
        assert end in ("succeeded", "denied", "in doubt"), (call_id, end)
        if end == "succeeded":
            assert paid[call_id] == 1, call_id
        elif end == "denied":
            assert paid[call_id] == 0, f"{call_id} was denied and paid"
    assert ends["succeeded"] > total // 4
    for member in members:
        for one in member.said:
            if one.get("kind") in ("succeeded", "denied"):
                finished = (await journal.life(one["call"])).finished
                assert finished is not None, one
                assert finished["kind"] == one["kind"], one
    await journal.close()


@requirement("TEAM-1", "TEAM-4", "TEAM-5")
def test_thirty_cards_of_three_satellites_have_one_winner_each_and_nothing_is_paid_twice(tmp_path):
    """A satellite and one who answers are killed in the middle, and come back."""
    team(tmp_path, 10, restarts=False)


@pytest.mark.long
@requirement("TEAM-1", "TEAM-4", "TEAM-5")
def test_three_hundred_cards_have_one_winner_each_through_deaths_and_a_restart_of_the_server(tmp_path):
    """And the server is stopped hard while everybody is at it."""
    team(tmp_path, 100, restarts=True)
