"""The power goes at any moment. `power_soak.py` does this a thousand times and more."""

import os
import random
import sys

from power import survive

from tries import often

# Enough to meet every kind of operation, in the long tests often; the rest is for the soak.
CUTS = often(24)


async def test_what_was_acknowledged_survives_a_power_cut():
    """A disk may lose, tear and reorder whatever it has not synced, and nothing else."""
    seed = int(os.environ.get("LASTWORD_SEED") or random.randrange(10**9))
    sys.stdout.write(f"seeds {seed} to {seed + CUTS - 1}; to repeat them: LASTWORD_SEED={seed}\n")
    acknowledged = 0
    for number in range(seed, seed + CUTS):
        try:
            acknowledged += await survive(number)
        except Exception as problem:
            problem.add_note(f"with seed {number}: python tests/store/power_soak.py --cuts 1 --seed {number}")
            raise
    assert acknowledged > CUTS, "the cuts came too early to prove anything"
