"""All type checks: `python tests/check_types.py`, or only some parts: package, examples, bench, tests, misuse.

The package and the examples are strict. The benches and the tests need no annotations, and what is in them is looked at
all the same; tests/mypy.toml says how. Parts are separate runs of mypy because their modules share names: every example
is an `assistant_tool`, a bench is called like the room that it measures, and several folders have a `conftest`. Those
that are as strict as each other share a cache, so that the package is looked at twice and not five times.

The examples are looked at by pyright as well, which many editors use. `misuse` is the other way round: both checkers
must find an error in each line of tests/tools/misuse.py that says so, and in no other.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parent.parent
RELAXED = ["--config-file", "tests/mypy.toml"]
MISUSE = "tests/tools/misuse.py"

Check = tuple[list[str], list[str]]
"""The arguments of a run of mypy, and where its imports are found."""


def checks() -> dict[str, list[Check]]:
    """What is run for each part."""
    # A folder of tests without __init__.py is on the path by itself, as it is for pytest.
    folders = sorted({path.parent for path in ROOT.glob("tests/*/*.py") if not (path.parent / "__init__.py").exists()})
    short = [f"tests/{folder.name}" for folder in folders]
    alone = [f"tests/{folder.name}/conftest.py" for folder in folders if (folder / "conftest.py").exists()]
    left_out = [argument for path in [*alone, MISUSE] for argument in ("--exclude", re.escape(path))]
    benches = [f"bench/{path.name}" for path in sorted(ROOT.glob("bench/*.py"))]
    compared = [f"bench/compare/{path.name}" for path in sorted(ROOT.glob("bench/compare/*.py"))]
    return {
        "package": [([], ["src"])],
        "examples": [(["--explicit-package-bases", "examples"], ["src", "examples"])],
        "bench": [([*RELAXED, *benches], ["src", "bench", "tests"]), ([*RELAXED, *compared], ["src", "bench/compare"])],
        "tests": [
            ([*RELAXED, *left_out, "tests"], ["src", ".", "tests", *short]),
            *(([*RELAXED, path], ["src", "tests", str(Path(path).parent)]) for path in alone),
        ],
    }


def mypy(arguments: list[str], places: list[str]) -> tuple[int, str]:
    cache = "relaxed" if arguments[: len(RELAXED)] == RELAXED else "strict"
    command = [sys.executable, "-m", "mypy", "--cache-dir", f".mypy_cache/{cache}", *arguments]
    return _run(command, MYPYPATH=os.pathsep.join(places))


def pyright(*paths: str) -> tuple[int, str]:
    """Beside mypy, in the mode that it has without a configuration; the interpreter's own packages are looked into."""
    return _run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *paths])


def misuse() -> tuple[int, str]:
    """Whether both checkers see what they should in the file of misuse, and nothing else."""
    lines = (ROOT / MISUSE).read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if re.search(r"# checker(, refused)?$", line)}
    told = []
    for name, (_, said) in {"mypy": mypy(["--strict", MISUSE], ["src"]), "pyright": pyright(MISUSE)}.items():
        found = {int(line) for line in re.findall(rf"{re.escape(MISUSE)}:(\d+)(?::\d+)?(?: -|:) error", said)}
        told += [f"{MISUSE}:{line}: {name} sees nothing wrong here" for line in sorted(expected - found)]
        told += [f"{MISUSE}:{line}: {name} sees an error that nobody announced" for line in sorted(found - expected)]
        if not found:
            told.append(f"{name} found nothing at all:\n{said}")
    return (1, "\n".join(told)) if told else (0, f"{len(expected)} lines are errors for both checkers")


def _run(command: list[str], **more: str) -> tuple[int, str]:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | more,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.strip()


def main(wanted: list[str]) -> int:
    known = checks()
    names = [*known, "misuse"]
    if unknown := set(wanted) - set(names):
        sys.stderr.write(f"error: no part is called {', '.join(sorted(unknown))}\nhint: {', '.join(names)}\n")
        return 2
    parts = wanted or names
    # Two at a time, one for each cache; what each says is told together, in the order in which it was asked for.
    with ThreadPoolExecutor(1) as strict, ThreadPoolExecutor(1) as relaxed:
        hands = {"bench": relaxed, "tests": relaxed}
        running = {part: hands.get(part, strict).submit(look_at, part, known.get(part, [])) for part in parts}
        ended = 0
        for part in parts:
            for code, said in running[part].result():
                sys.stdout.write(f"types of the {part}: {said}\n")
                sys.stdout.flush()
                ended |= code
    return ended


def look_at(part: str, runs: list[Check]) -> list[tuple[int, str]]:
    """Carry out the checks of one part, one after the other: they share a cache."""
    told = [mypy(*run) for run in runs]
    if part == "examples":
        told.append(pyright("examples"))
    if part == "misuse":
        told.append(misuse())
    return told


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
