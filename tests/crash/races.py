"""Processes that race for one answer, one run, one call in doubt: there is one winner each time.

    python tests/crash/races.py [ROUNDS] [SEED]

Three processes live for the whole time, share one journal, and are let loose on the same thing at the same
instant, with a seeded head start of less than two milliseconds for some. A payment is a line in a file outside.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

# Long enough for every process to have read its command before the moment comes.
NOTICE_SECONDS = 0.004
# The head start that a process may get. A commit takes about as long, so any order of any two steps can happen.
JITTER_SECONDS = 0.002


class Child:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        command = [sys.executable, str(Path(__file__).with_name("racer.py")), str(folder), name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._words, self._answers = self._process.stdin, self._process.stdout

    def tell(self, **command: object) -> None:
        self._words.write(json.dumps(command) + "\n")
        self._words.flush()

    def hear(self) -> Any:
        line = self._answers.readline()
        assert line, f"{self.name} ended with {self._process.wait()}"
        return json.loads(line)

    def ask(self, **command: object) -> Any:
        self.tell(**command)
        return self.hear()

    def end(self) -> None:
        self._words.close()
        self._process.wait(10)
        self._answers.close()


class Races:
    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.here, self.first, self.second = self.all = [Child(folder, name) for name in ("here", "first", "second")]

    def together(self, *commands: tuple[Child, dict]) -> list[object]:
        """Let each do its thing at the same instant, and hear them all."""
        moment = time.monotonic() + NOTICE_SECONDS
        for child, command in commands:
            child.tell(**command, at=moment + self.chance.choice([0, self.chance.random() * JITTER_SECONDS]))
        return [child.hear() for child, _ in commands]

    def paid(self, call_id: str) -> int:
        file = self.folder / "paid"
        return file.read_text().splitlines().count(call_id) if file.exists() else 0

    def for_an_answer(self, number: int) -> str:
        """A window of the program that asked, and two other processes, answer the same card."""
        call_id = f"card-{number}"
        facts = self.here.ask(do="ask", call=call_id)
        said = {child.name: self.chance.random() < 0.5 for child in self.all}
        kind, *won = self.together(
            (self.here, {"do": "press", "call": call_id, "yes": said["here"]}),
            (self.first, {"do": "answer", "facts": facts, "yes": said["first"]}),
            (self.second, {"do": "answer", "facts": facts, "yes": said["second"]}),
        )
        answered = self.first.ask(do="answered", nonce=facts["nonce"])
        assert len(answered) == 1, f"{call_id} was answered by {answered}"
        winner = answered[0]
        assert won == [winner == "first", winner == "second"], f"{call_id}: {winner} won, they were told {won}"
        assert kind == ("succeeded" if said[winner] else "denied"), f"{call_id}: {winner} said {said}, it was {kind}"
        assert self.paid(call_id) == said[winner], f"{call_id} was paid {self.paid(call_id)} times"
        return f"answered by {winner}"

    def for_a_run(self, number: int) -> str:
        """Two processes go on with the run that a third one left."""
        run = f"run-{number}"
        self.here.ask(do="interrupted run", run=run)
        told = self.together((self.first, {"do": "resume", "run": run}), (self.second, {"do": "resume", "run": run}))
        return self._one_paid(f"{run}.0", told, "done")

    def for_a_call_in_doubt(self, number: int) -> str:
        """Two people say at the same time that a call in doubt shall be run again."""
        call_id = f"doubt-{number}"
        self.here.ask(do="call in doubt", call=call_id)
        told = self.together(
            (self.first, {"do": "resolve", "call": call_id}), (self.second, {"do": "resolve", "call": call_id})
        )
        return self._one_paid(call_id, told, "succeeded")

    def _one_paid(self, call_id: str, told: list, end: str) -> str:
        assert sorted(times for times, _ in told) == [0, 1], f"{call_id}: {told}"
        assert self.paid(call_id) == 1, f"{call_id} was paid {self.paid(call_id)} times: {told}"
        winner = [times for times, _ in told].index(1)
        assert told[winner][1] == end, f"{call_id}: {told}"
        return f"the other heard: {told[1 - winner][1]}"

    def end(self) -> None:
        for child in self.all:
            child.end()


def main(rounds: int, seed: int, folder: Path) -> None:
    races = Races(folder, random.Random(seed))
    try:
        for what in (races.for_an_answer, races.for_a_run, races.for_a_call_in_doubt):
            seen: Counter[str] = Counter()
            for number in range(rounds):
                seen[what(number)] += 1
            print(f"seed {seed}: {rounds} races {what.__name__.replace('_', ' ')}, one winner each; {dict(seen)}")
    finally:
        races.end()


if __name__ == "__main__":
    chosen = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    with tempfile.TemporaryDirectory() as made:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, chosen, Path(made))
