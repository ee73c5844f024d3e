"""Cut the power many times: `python tests/store/power_soak.py --cuts 1000 --seed 1`.

Prints the seed of the first life after which something acknowledged was missing, and how it was missing.
"""

import argparse
import asyncio
import random
import sys
from time import monotonic

from power import survive


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cuts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**9))
    wanted = parser.parse_args()
    say = sys.stdout.write
    say(f"{wanted.cuts} cuts from seed {wanted.seed}\n")
    started = monotonic()
    acknowledged = 0
    for seed in range(wanted.seed, wanted.seed + wanted.cuts):
        try:
            acknowledged += asyncio.run(survive(seed))
        except Exception:
            say(f"failed with --cuts 1 --seed {seed}\n")
            raise
    say(f"{acknowledged} acknowledged records, none lost, in {monotonic() - started:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
