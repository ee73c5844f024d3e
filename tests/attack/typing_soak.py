"""Two hundred streams of keys that nobody means: `python tests/attack/typing_soak.py [COUNT] [SEED]`."""

import asyncio
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from typing_streams import judge_all

if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    sys.stdout.flush()
    began = time.monotonic()
    wrong = asyncio.run(judge_all([seed + number for number in range(count)]))
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{count} streams, {len(wrong)} wrong, {time.monotonic() - began:.0f} s\n")
    sys.exit(bool(wrong))
