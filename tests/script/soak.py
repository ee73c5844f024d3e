"""The long versions of two tests, by hand: the machine against its twin, and hostile texts.

    python tests/script/soak.py [--twin 20000] [--mutated 100000] [--escapes 10000] [--seed N]

The seed is printed; the same seed makes the same programs. Ends with 1 at the first disagreement or foreign exception.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from random import Random
from time import perf_counter

sys.path.insert(0, str(Path(__file__).parent.parent))

from lastword.script import machine, nodes, runtime, steps
from script.hostile import escape, judge, mutate
from script.programs import Writer
from script.test_twin import compare_with_twin


def pause_after(fuel: int) -> None:
    """Each of the three has the number as its own."""
    for module in (runtime, steps, machine):
        vars(module)["SLICE"] = fuel


async def twins(count: int, random: Random) -> str:
    ended = 0
    closures, fuel = nodes.MAX_CLOSURE_DEPTH, runtime.SLICE
    for number in range(count):
        # One in three runs step by step, as the deepest scripts do, and one pauses wherever it can.
        nodes.MAX_CLOSURE_DEPTH = 0 if number % 3 == 1 else closures
        pause_after(1 if number % 3 == 2 else fuel)
        ended += await compare_with_twin(Writer(random, random.randint(3, 25)).program())
    pause_after(fuel)
    return f"{count} programs agree with the naive evaluator, {ended} of them ended without an error"


async def hostile(count: int, random: Random, kind: str) -> str:
    ends: dict[str, int] = {}
    slowest = 0.0
    for _ in range(count):
        text = mutate(random) if kind == "mutated" else escape(random)
        start = perf_counter()
        end = await judge(text)
        slowest = max(slowest, perf_counter() - start)
        ends[end] = ends.get(end, 0) + 1
    table = ", ".join(f"{end} {number}" for end, number in sorted(ends.items(), key=lambda one: -one[1]))
    return f"{count} {kind} texts; slowest {slowest:.2f} s; {table}"


async def main() -> None:
    options = argparse.ArgumentParser()
    for name, count in (("twin", 20_000), ("mutated", 100_000), ("escapes", 10_000), ("seed", 0)):
        options.add_argument(f"--{name}", type=int, default=count)
    chosen = options.parse_args()
    seed = chosen.seed or Random().randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    start = perf_counter()

    def report(line: str) -> None:
        sys.stdout.write(f"{line} (after {perf_counter() - start:.0f} s)\n")
        sys.stdout.flush()

    report(await twins(chosen.twin, Random(seed)))
    report(await hostile(chosen.mutated, Random(seed + 1), "mutated"))
    report(await hostile(chosen.escapes, Random(seed + 2), "escape"))


if __name__ == "__main__":
    asyncio.run(main())
