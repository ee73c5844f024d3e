"""A million inputs for the tool request parser: `python tests/wire/protocol_soak.py [COUNT] [SEED]`.

Beside the tests and not among them, for its length. The inputs and what is checked of each are those of the tests.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from protocol_cases import texts
from test_protocol import check_total


def main(count: int, seed: int) -> None:
    start = time.monotonic()
    requests = sum(check_total(text) for text in texts(seed, count))
    took = time.monotonic() - start
    sys.stdout.write(f"{count} inputs, {requests} of them requests, no exception, {took:.0f} s, seed {seed}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
