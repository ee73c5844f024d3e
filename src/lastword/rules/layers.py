"""Where policies lie: the organisation's, the user's, the project's. They are read when a program starts.

| layer | file | may |
|---|---|---|
| organisation | `/etc/lastword/policy.toml` (macOS: `/Library/Application Support/lastword/`) | allow, ask, deny |
| user | `policy.toml` in the user's data folder | allow, ask, deny |
| project | `lastword.policy.toml` in the project's folder | ask, deny |

The organisation's file, its folder and those above belong to root, and nobody else may write them, or nothing starts.
The same goes for every link that leads to it. What a file
allows counts once a person has accepted it as it is (`lastword policy accept`), for the tools that they saw then.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lastword.config import trusted
from lastword.errors import ConfigError
from lastword.rules.ownership import refuse_others
from lastword.rules.places import PolicyPlaces
from lastword.rules.policy import CHANGED_TOOL, Policy, PolicyFile
from lastword.rules.reading import read_rules
from lastword.rules.rule import PolicyRule
from lastword.tools import Tool, Trust

# More than anybody writes by hand. Reading TOML takes a second for every megabyte.
MAX_FILE_BYTES = 250_000

NEW_FILE = "its file is not accepted as it is; lastword policy accept"


def load_policy(places: PolicyPlaces, trust: Trust | None = None) -> Policy | None:
    """All rules that hold; None when there is no file. A ConfigError says what is wrong: then nothing starts."""
    trust = trusted(os.environ) if trust is None else trust
    files: list[PolicyFile] = []
    rules: list[PolicyRule] = []
    for layer, path in places.layers():
        text = _read(path, places.owner if layer == "organisation" else None)
        if text is None:
            continue
        rules += read_rules(text, path, layer)
        files.append(PolicyFile(path, layer, Trust.digest_of(text), trust.covers_file(path, text), text))
    if not files:
        return None
    accepted = {file.path for file in files if file.is_accepted}
    known = trust.rules()

    def unaccepted(rule: PolicyRule, tool: Tool) -> str | None:
        if rule.file not in accepted:
            return NEW_FILE
        return None if known.get(Trust.rule_name(rule.key, tool.name)) == tool.digest else CHANGED_TOOL

    return Policy(rules, unaccepted, files)


def _read(path: Path, owner: int | None) -> str | None:
    try:
        # Opened once: what is looked at is what is read. Without waiting for whoever would write into a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        if path.is_symlink():  # Somebody has rules, and they are elsewhere: on a disk that is not there, say.
            raise ConfigError(
                "the policy cannot be read: it is a link to a file that is not there",
                place=str(path),
                hint="bring the file back, or remove the link",
            ) from None
        return None
    except OSError as problem:
        raise _unreadable(path, problem) from None
    try:
        return _text(path, descriptor, owner)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    finally:
        os.close(descriptor)


def _text(path: Path, descriptor: int, owner: int | None) -> str:
    facts, written = os.fstat(descriptor), None
    if owner is not None:
        refuse_others(path, facts, owner)
    if stat.S_ISREG(facts.st_mode):
        with open(descriptor, "rb", closefd=False) as file:
            written = file.read(MAX_FILE_BYTES + 1)
    if written is None or len(written) > MAX_FILE_BYTES:
        raise ConfigError(
            f"no file, or larger than {MAX_FILE_BYTES:,} bytes",
            place=str(path),
            hint="several values of one argument stand in a list, with in; or take it away",
        )
    try:
        return written.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = written.count(b"\n", 0, problem.start) + 1
        raise ConfigError(
            "the policy is not UTF-8",
            place=f"{path}:{line}",
            hint="save it as UTF-8, or write that letter in another way",
        ) from None


def _unreadable(path: Path, problem: OSError) -> ConfigError:
    """A file that is there and that nobody could look into may deny something."""
    fact = f"the policy cannot be read: {problem.strerror}"
    return ConfigError(fact, place=str(path), hint="let whoever starts this read it, or take it away")
