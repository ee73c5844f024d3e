"""What a bench found: printed as it comes, and kept as JSON where that is wanted, for the page that report.py makes.

    python bench/dispatch.py --json bench/results/dispatch.json

A result says what was measured where: a figure without its machine, its Python and its peers is hearsay.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

NAME_WIDTH = 44
FIGURE_WIDTH = 21

Cell = float | str | None


class Result:
    """The tables and notes of one run."""

    def __init__(self, doc: str | None, *, peers: tuple[str, ...] = ()) -> None:
        """`doc` is the docstring of the bench, whose first paragraph says what it measures; `peers` are packages."""
        self.says = " ".join((doc or "").partition("\n\n")[0].split())
        self.parts: list[dict[str, Any]] = []
        self.peers = {peer: found for peer in peers if (found := _version(peer)) is not None}
        self.missing = [peer for peer in peers if peer not in self.peers]
        self.load_before = os.getloadavg()[0]
        print(f"{where()}\n")

    def table(self, *columns: str) -> None:
        """Begin a table. The first column is for names."""
        self.parts.append({"columns": list(columns), "rows": []})
        print("\n" + "".join([f"{columns[0]:{NAME_WIDTH}}", *(f"{head:>{FIGURE_WIDTH}}" for head in columns[1:])]))

    def row(self, name: str, *cells: Cell) -> None:
        """Add a line to the table that was begun last."""
        self.parts[-1]["rows"].append([name, *cells])
        print("".join([f"{name:{NAME_WIDTH}}", *(f"{shown(cell):>{FIGURE_WIDTH}}" for cell in cells)]), flush=True)

    def note(self, sentence: str) -> None:
        """Say something that belongs to no table."""
        self.parts.append({"note": sentence})
        print(f"\n{sentence}", flush=True)

    def keep(self, path: Path | None) -> None:
        """Write the result where it was wanted, and nowhere otherwise."""
        for peer in self.missing:
            print(f"not installed, so not measured: {peer}")
        if path is None:
            return
        kept = {
            "says": self.says,
            "where": where(),
            "load": [round(self.load_before, 1), round(os.getloadavg()[0], 1)],
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "peers": self.peers,
            "missing": self.missing,
            "parts": self.parts,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")


def arguments(doc: str | None) -> argparse.ArgumentParser:
    """A parser with the option that every bench has."""
    parser = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the result in this file")
    return parser


def where() -> str:
    """The Python and the machine, without a name that would tell whose it is."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores ({_processor()})"


def shown(cell: Cell) -> str:
    """Three digits that mean something; a word as it is."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell
    size = abs(cell)
    return (
        f"{cell:,.0f}"
        if size >= 100
        else f"{cell:.1f}"
        if size >= 10
        else f"{cell:.2f}"
        if size >= 0.1
        else f"{cell:.3f}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
