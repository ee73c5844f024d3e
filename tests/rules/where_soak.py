"""Compare the compiled bounds with the naive ones on a million random calls, or as many as are wanted.

python tests/rules/where_soak.py [CALLS] [SEED]
"""

import random
import sys
import tempfile
from pathlib import Path

import naive

CALLS_OF_A_RULE = 50


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        folder = naive.folder_with_links(Path(made) / "p")
        matched = done = 0
        while done < calls:
            matched += naive.compare(chance, folder, CALLS_OF_A_RULE)
            done += CALLS_OF_A_RULE
    sys.stdout.write(f"{done:,} calls, {matched:,} of them matched: no disagreement\n")


if __name__ == "__main__":
    main()
