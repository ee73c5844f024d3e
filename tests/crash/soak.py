"""Ten thousand kills, or as many as you say: `python tests/crash/soak.py [KILLS] [SEED]`."""

import random
import sys
import tempfile
from pathlib import Path

from harness import main

if __name__ == "__main__":
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(main(kills, seed, Path(folder)))
