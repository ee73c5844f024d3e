"""Real lint: ruff for Python, our checker for NuwaScript, the parsers of JSON and TOML, and what else is configured.

A linter is a function from sources to findings, and a table says which file endings it is for. A project's own commands
are entries of that table like the others. A linter that is missing, fails or takes too long is a finding, and a file
that none looked at is named with the reason: never a silence.

Linters only look. Ruff is told so in every way it can be configured otherwise: the project's settings choose the rules,
but may neither fix files nor leave a cache behind.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from ruff import find_ruff_bin

from lastword.editor.provider import NOT_TEXT, EditError, Findings, LeftOut, LintError, LintReport, why_unread
from lastword.editor.text import decode
from lastword.lazily import load_later

if TYPE_CHECKING:
    from lastword import script
    from lastword.script import Signature
else:
    script = load_later("lastword.script")

OUR_KEYS = ("LASTWORD_UPSTREAM_KEY", "LASTWORD_TOKEN")
# A linter that needs longer is stuck, and somebody is waiting for the card.
LINT_TIMEOUT_SECONDS = 30

# The endings that ruff is for.
PYTHON = (".py", ".pyi")


# Why a file was not looked at.
NO_LINTER = "no linter for it"
EXCLUDED = "excluded by the settings of ruff"


class Sources(NamedTuple):
    """What a linter is given to look at."""

    root: Path
    files: list[str]
    read: Callable[[str], bytes | None]
    left_out: list[LeftOut]
    """Where a linter says which of the files it did not look at."""
    fixable: list[str]
    """And in which of them something can be fixed without a thought."""


Linter = Callable[[Sources], Findings]


def default_linters() -> dict[str, Linter]:
    """The table of file endings that need no configuration."""
    return {
        **dict.fromkeys(PYTHON, lint_python),
        ".json": lint_json,
        ".toml": lint_toml,
        ".nuwa": script_linter(),
    }


def lint(
    root: Path, files: Sequence[str], read: Callable[[str], bytes | None], linters: Mapping[str, Linter]
) -> LintReport:
    """Every finding by path, sorted by line; files without any are left out of them."""
    by_linter: dict[Linter, list[str]] = {}
    left_out: list[LeftOut] = []
    fixable: list[str] = []
    for file in files:
        if linter := linters.get(Path(file).suffix):
            by_linter.setdefault(linter, []).append(file)
        else:
            left_out.append(LeftOut(file, NO_LINTER))
    findings: Findings = {}
    for linter, mine in by_linter.items():
        for path, found in linter(Sources(root, mine, read, left_out, fixable)).items():
            findings.setdefault(path, []).extend(found)
    ordered = {path: sorted(findings[path], key=itemgetter("line", "message")) for path in sorted(findings)}
    unseen = {one.path for one in left_out}
    checked = tuple(file for file in files if file not in unseen)
    return LintReport(ordered, checked, tuple(sorted(set(fixable))), tuple(left_out))


def text_linter(check: Callable[[str], Iterable[LintError]]) -> Linter:
    """A linter that looks at one text at a time."""

    def linter(sources: Sources) -> Findings:
        findings: Findings = {}
        for path in sources.files:
            try:
                text = decode(sources.read(path) or b"")
            except EditError as refusal:
                sources.left_out.append(LeftOut(path, why_unread(refusal)))
                continue
            if text is None:
                sources.left_out.append(LeftOut(path, NOT_TEXT))
            elif found := list(check(text)):
                findings[path] = found
        return findings

    return linter


def script_linter(signatures: Mapping[str, Signature] | None = None) -> Linter:
    """A linter for NuwaScript. Without signatures it says nothing about tools."""

    def check_script(text: str) -> Iterable[LintError]:
        for finding in script.check(text, signatures):
            hint = f" ({finding.hint})" if finding.hint else ""
            yield LintError(line=finding.line, message=f"{type(finding).__name__} {finding.fact}{hint}")

    return text_linter(check_script)


def command_linter(command: str) -> Linter:
    """A linter that runs a command for each file, with `{path}` in its place, and reads `path:line[:column]: message`.

    No shell is involved: the command is split as a shell would, and the path is one argument whatever it holds.
    """
    words = shlex.split(command)
    if not any("{path}" in word for word in words):
        raise EditError(
            f"the lint command {command!r} does not say where the path goes", hint="write {path} in its place"
        )

    def linter(sources: Sources) -> Findings:
        findings: Findings = {}
        for path in sources.files:
            # A path that starts with a dash would be read as an option.
            arguments = [word.replace("{path}", f"./{path}") for word in words]
            done = _run(arguments, cwd=sources.root)
            if isinstance(done, str):
                findings[path] = [LintError(line=1, message=done)]
            elif found := _GCC_LINE.findall(_words(done.stdout) + _words(done.stderr)):
                findings[path] = [LintError(line=int(line), message=message.strip()) for line, message in found]
            elif done.returncode:
                said = _words(done.stderr or done.stdout).strip().split("\n")[0]
                findings[path] = [LintError(line=1, message=f"{words[0]} failed: {said or done.returncode}")]
        return findings

    return linter


class _Place(msgspec.Struct):
    row: int


class _Fix(msgspec.Struct):
    applicability: str = ""


class _Diagnostic(msgspec.Struct):
    filename: str
    message: str
    location: _Place | None = None
    code: str | None = None
    fix: _Fix | None = None


_diagnostic = msgspec.json.Decoder(_Diagnostic)
# What ruff calls a file that it could not read. It is asked for whatever the project's settings say.
_UNREADABLE = "E902"
_LOOK_ONLY = ["--no-fix", "--no-unsafe-fixes", "--no-cache", "--quiet"]


def lint_python(sources: Sources) -> Findings:
    """What ruff finds when it is run in the project, with the rules and the exceptions that its own settings choose.

    Ruff looks for the files itself. Given their names it would skip those below a folder called `build` or `venv`, even
    if that folder is where the whole project stands; and it would be silent about it.
    What it says about anything else than the project's own files, such as what a link leads to, is dropped.
    """
    options = [*_LOOK_ONLY, "--exit-zero", "--output-format=json-lines", f"--extend-select={_UNREADABLE}"]
    done = _run([find_ruff_bin(), "check", *options, "."], cwd=sources.root)
    seen = _run([find_ruff_bin(), "check", "--no-cache", "--quiet", "--show-files", "."], cwd=sources.root)
    if isinstance(done, str) or done.returncode:
        reason = done if isinstance(done, str) else _words(done.stderr).strip().replace("\n", "; ")
        said = f"ruff could not check the {len(sources.files)} Python files of the project: {reason}"
        return {sources.files[0]: [LintError(line=1, message=said)]}
    findings: Findings = {path: [] for path in sources.files}
    above = os.path.join(sources.root, "")
    # One line at a time: ruff has no end of words for a project that it never saw before.
    for line in io.BytesIO(done.stdout):
        one = _diagnostic.decode(line)
        path = one.filename.removeprefix(above)
        if path not in findings:
            continue
        if one.code == _UNREADABLE:
            sources.left_out.append(LeftOut(path, NOT_TEXT if "UTF-8" in one.message else one.message))
            continue
        if one.fix is not None and one.fix.applicability == "safe":
            sources.fixable.append(path)
        message = f"{one.code} {one.message}" if one.code else one.message
        findings[path].append(LintError(line=one.location.row if one.location else 1, message=message))
    if not isinstance(seen, str) and not seen.returncode:
        looked_at = {os.fsdecode(path).removesuffix("\n").removeprefix(above) for path in io.BytesIO(seen.stdout)}
        sources.left_out.extend(LeftOut(path, EXCLUDED) for path in sources.files if path not in looked_at)
    return {path: found for path, found in findings.items() if found}


def fixed_python(root: Path, path: str, text: str) -> str:
    """The text as ruff's safe fixes would leave it. Writes nothing: ruff reads and answers through pipes."""
    options = ["--fix-only", "--no-unsafe-fixes", "--no-cache", "--quiet", f"--stdin-filename={path}"]
    done = _run([find_ruff_bin(), "check", *options, "-"], cwd=root, given=text.encode("utf-8"))
    if isinstance(done, str):
        raise EditError(done, place=path)
    if done.returncode:
        raise EditError(f"ruff could not fix the file: {_words(done.stderr).strip()}", place=path)
    return done.stdout.decode("utf-8")


def _check_json(text: str) -> Iterable[LintError]:
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        yield LintError(line=problem.lineno, message=problem.msg)
    except RecursionError:
        yield LintError(line=1, message="nested too deeply to be read")
    except ValueError as problem:
        yield LintError(line=1, message=str(problem))


_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def _check_toml(text: str) -> Iterable[LintError]:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        said = str(problem)
        place = _TOML_PLACE.search(said)
        last = text.count("\n") + (not text.endswith("\n"))
        line = int(place[1]) if place and place[1] else last
        yield LintError(line=line, message=_TOML_PLACE.sub("", said))
    except RecursionError:
        yield LintError(line=1, message="nested too deeply to be read")


lint_json = text_linter(_check_json)
lint_toml = text_linter(_check_toml)


def _run(arguments: list[str], *, cwd: Path, given: bytes | None = None) -> subprocess.CompletedProcess[bytes] | str:
    """What the process said, or in words why it said nothing.

    As bytes: line endings are the file's own business, and one look at forty megabytes of text holds up everybody.
    """
    # Ruff's own variables could send its output elsewhere or turn fixing on. And no linter needs our keys.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("RUFF_") and name not in OUR_KEYS
    }
    try:
        return subprocess.run(
            arguments,
            cwd=cwd,
            env=environment,
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            timeout=LINT_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        return f"{arguments[0]} is not installed"
    except subprocess.TimeoutExpired:
        return f"{arguments[0]} took longer than {LINT_TIMEOUT_SECONDS} seconds and was stopped"
    except OSError as problem:
        return f"{arguments[0]} could not be started: {problem.strerror}"


def _words(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\r\n", "\n")


_GCC_LINE = re.compile(r"^[^\n:]+:(\d+):(?:\d+:)?[ \t]*(.+)$", re.MULTILINE)
