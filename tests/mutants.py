"""Would the tests notice? Each mutant takes one mend away, in a copy of the tree, and says whether a test fails then.

    python tests/mutants.py                 all of them; some minutes
    python tests/mutants.py fuel guard      those whose name holds one of these words
    python tests/mutants.py --list          only their names

By hand, and not a part of `./test`. The mutants are in `mutations.py`. A mutant is *killed* when a test that it names
fails, and *survived* when none does: then a test is missing. A mutant that does not fit the code any more is *stale*,
and has to be written anew. The exit code is 1 unless all were killed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from mutations import MUTANTS, Mutant

ROOT = Path(__file__).parent.parent
# What the tests read besides the code.
COPIED = ("src", "tests", "docs", "examples", "bench", "pyproject.toml", "README.md", "ARCHITECTURE.md", "CHANGELOG.md")
# A mutant that makes something wait for ever is found out, too.
PATIENCE_SECONDS = 300
# Most of a short run is loading, and these are for tests that no mutant names.
UNUSED_PLUGINS = ("langsmith_plugin", "schemathesis", "xdist")


def copy_tree(into: Path) -> Path:
    """A copy of the project, and a Python that imports it from there, also in the programs that tests start."""
    tree = into / "tree"
    tree.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
        else:
            shutil.copy(source, tree / name)
    venv.create(into / "python", with_pip=False)
    packages = sysconfig.get_path("purelib", vars={"base": str(into / "python")})
    # The paths of a .pth file are plain ones: the tree that is installed for editing is not among them.
    Path(packages, "mutants.pth").write_text(f"{tree / 'src'}\n{sysconfig.get_path('purelib')}\n")
    return tree


def test(tree: Path, mutant: Mutant) -> tuple[str, str]:
    """Whether the tests that a mutant names notice it: a word, and which test was the first to."""
    file = tree / "src" / "lastword" / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        return "stale", f"{mutant.file} has what it takes away {text.count(mutant.old)} times"
    file.write_text(text.replace(mutant.old, mutant.new))
    command = [str(tree.parent / "python" / "bin" / "python"), "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    command += [word for plugin in UNUSED_PLUGINS for word in ("-p", f"no:{plugin}")]
    try:
        done = subprocess.run(
            [*command, *mutant.tests.split()], cwd=tree, capture_output=True, text=True, timeout=PATIENCE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return "killed", "the tests never ended"
    finally:
        file.write_text(text)
    if done.returncode == 0:
        return "SURVIVED", mutant.tests
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED tests", "ERROR tests"))]
    if done.returncode != 1 or not failed:
        return "stale", (done.stdout + done.stderr)[-300:]
    return "killed", failed[0].split(" - ")[0]


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    if words == ["--list"]:
        say("\n".join(m.name for m in MUTANTS))
        return 0
    counts: dict[str, int] = {}
    with TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder))
        for mutant in chosen:
            began = time.monotonic()
            word, why = test(tree, mutant)
            counts[word] = counts.get(word, 0) + 1
            say(f"{word:9} {time.monotonic() - began:5.0f} s  {mutant.name}: {why}")
    say(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return 0 if set(counts) <= {"killed"} else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
