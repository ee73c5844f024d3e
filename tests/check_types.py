"""All type checks: `python tests/check_types.py`, or only some parts: code, bench, conftest, pyright, misuse.

The package and the examples are strict. The benches and the tests need no annotations, and what is in them is looked at
all the same; pyproject.toml says how. The package, the examples and most of the tests are one run of mypy. What shares
a name with something else is a run of its own: a bench is called like the room that it measures, and several folders
have a `conftest`. All share one cache, so that nothing is looked at twice.

The examples are looked at by pyright as well, which many editors use. tests/tools/misuse.py is the other way round:
both checkers must find an error in each of its lines that says so, and in no other.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MISUSE = "tests/tools/misuse.py"

# A folder of tests without __init__.py is on the path by itself, as it is for pytest.
FOLDERS = [
    f"tests/{folder.name}"
    for folder in sorted({path.parent for path in ROOT.glob("tests/*/*.py")})
    if not (folder / "__init__.py").exists()
]
ALONE = [f"{folder}/conftest.py" for folder in FOLDERS if (ROOT / folder / "conftest.py").exists()]

Said = tuple[int, str]
"""The exit code of a checker, and what it wrote."""


def code() -> Iterator[Said]:
    left_out = [argument for path in [*ALONE, MISUSE] for argument in ("--exclude", re.escape(path))]
    yield mypy(*left_out, "src/lastword", "examples", "tests", places=["src", ".", "tests", *FOLDERS])


def bench() -> Iterator[Said]:
    for folder, more in (("bench", ["tests"]), ("bench/compare", [])):
        files = [f"{folder}/{path.name}" for path in sorted(ROOT.glob(f"{folder}/*.py"))]
        yield mypy(*files, places=["src", folder, *more])


def conftest() -> Iterator[Said]:
    for path in ALONE:
        yield mypy(path, places=["src", "tests", os.path.dirname(path)])


def misuse() -> Iterator[Said]:
    _, said = mypy(MISUSE, places=["src"])
    found = re.findall(rf"^{re.escape(MISUSE)}:(\d+): error", said, re.MULTILINE)
    yield _as_announced("mypy", {int(line) for line in found}, said)


def pyright() -> Iterator[Said]:
    """In the mode that it has without a configuration; the interpreter's own packages are looked into."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    _, said = _run([*command, "examples", MISUSE])
    lines, wrong = set(), []
    for told in json.loads(said)["generalDiagnostics"]:
        path, line = os.path.relpath(told["file"], ROOT), 1 + told["range"]["start"]["line"] if "range" in told else 0
        if told["severity"] == "error" and path == MISUSE:
            lines.add(line)
        elif told["severity"] == "error":
            wrong.append(f"{path}:{line}: {told['message']}")
    yield (1, "\n".join(wrong)) if wrong else (0, "no errors in the examples")
    yield _as_announced("pyright", lines, said)


def _as_announced(name: str, found: set[int], said: str) -> Said:
    """Whether a checker sees what it should in the file of misuse, and nothing else."""
    lines = (ROOT / MISUSE).read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if re.search(r"# checker(, refused)?$", line)}
    told = [f"{MISUSE}:{line}: {name} sees nothing wrong here" for line in sorted(expected - found)]
    told += [f"{MISUSE}:{line}: {name} sees an error that nobody announced" for line in sorted(found - expected)]
    if not found:
        told.append(f"{name} found nothing at all:\n{said}")
    return (1, "\n".join(told)) if told else (0, f"{len(expected)} lines of misuse are errors for {name}")


PARTS = {"code": code, "bench": bench, "conftest": conftest, "misuse": misuse, "pyright": pyright}


def mypy(*arguments: str, places: list[str]) -> Said:
    """With these folders as those where imports are found."""
    return _run([sys.executable, "-m", "mypy", *arguments], MYPYPATH=os.pathsep.join(places))


def _run(command: list[str], **more: str) -> Said:
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
    if unknown := set(wanted) - set(PARTS):
        sys.stderr.write(f"error: no part is called {', '.join(sorted(unknown))}\nhint: {', '.join(PARTS)}\n")
        return 2
    parts = wanted or [*PARTS]
    # mypy's runs come one after the other, since they share a cache; pyright has none, and runs beside them.
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        running = {part: (other if part == "pyright" else one).submit(list, PARTS[part]()) for part in parts}
        ended = 0
        for part in parts:
            for exit_code, said in running[part].result():
                sys.stdout.write(f"types, {part}: {said}\n")
                sys.stdout.flush()
                ended |= exit_code
    return ended


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
