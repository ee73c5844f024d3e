"""All type checks: `python tests/check_types.py`, or only some parts: package, examples, bench, tests.

The package and the examples are strict. The benches and the tests need no annotations, and what is in them is looked at
all the same; tests/mypy.toml says how. Parts are separate runs of mypy because their modules share names: every example
is an `assistant_tool`, a bench is called like the room that it measures, and several folders have a `conftest`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
RELAXED = ["--config-file", "tests/mypy.toml"]

Check = tuple[list[str], list[str]]
"""The arguments of a run of mypy, and where its imports are found."""


def checks() -> dict[str, list[Check]]:
    """What is run for each part."""
    # A folder of tests without __init__.py is on the path by itself, as it is for pytest.
    folders = sorted({path.parent for path in ROOT.glob("tests/*/*.py") if not (path.parent / "__init__.py").exists()})
    short = [f"tests/{folder.name}" for folder in folders]
    alone = [f"tests/{folder.name}/conftest.py" for folder in folders if (folder / "conftest.py").exists()]
    left_out = [argument for path in alone for argument in ("--exclude", re.escape(path))]
    benches = [f"bench/{path.name}" for path in sorted(ROOT.glob("bench/*.py"))]
    return {
        "package": [([], ["src"])],
        "examples": [(["--explicit-package-bases", "examples"], ["src", "examples"])],
        "bench": [([*RELAXED, *benches], ["src", "bench", "tests"])],
        "tests": [
            ([*RELAXED, *left_out, "tests"], ["src", ".", "tests", *short]),
            *(([*RELAXED, path], ["src", "tests", str(Path(path).parent)]) for path in alone),
        ],
    }


def main(wanted: list[str]) -> int:
    known = checks()
    if unknown := set(wanted) - set(known):
        sys.stderr.write(f"error: no part is called {', '.join(sorted(unknown))}\nhint: {', '.join(known)}\n")
        return 2
    ended = 0
    for part in wanted or known:
        for arguments, places in known[part]:
            # A cache for each part: the same name is another module in another one.
            command = [sys.executable, "-m", "mypy", "--cache-dir", f".mypy_cache/{part}", *arguments]
            sys.stdout.write(f"types of the {part}: ")
            sys.stdout.flush()
            there = os.environ | {"MYPYPATH": os.pathsep.join(places)}
            ended |= subprocess.run(command, cwd=ROOT, env=there, check=False).returncode
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
