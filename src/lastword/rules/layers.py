"""Where policies lie: the organisation's, the user's, the project's. They are read when a program starts.

| layer | file | may |
|---|---|---|
| organisation | `/etc/lastword/policy.toml` (macOS: `/Library/Application Support/lastword/`) | allow, ask, deny |
| user | `policy.toml` in the user's data folder | allow, ask, deny |
| project | `lastword.policy.toml` in the project's folder | ask, deny |

The organisation's file and its folder belong to root, and nobody else may write them, or nothing starts. What a file
allows counts once a person has accepted it as it is (`lastword policy accept`), for the tools that they saw then.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lastword.config import trusted
from lastword.errors import ConfigError
from lastword.rules.places import PolicyPlaces
from lastword.rules.policy import CHANGED_TOOL, Policy, PolicyFile
from lastword.rules.reading import read_rules
from lastword.rules.rule import PolicyRule
from lastword.tools.tool import Tool
from lastword.tools.trust import Trust, digest_of_text, rule_name

# More than anybody writes by hand, less than a file that was named by mistake.
MAX_FILE_BYTES = 1_000_000

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
        files.append(PolicyFile(path, layer, digest_of_text(text), trust.covers_file(path, text), text))
    if not files:
        return None
    accepted = {file.path for file in files if file.is_accepted}
    known = trust.rules()

    def unaccepted(rule: PolicyRule, tool: Tool) -> str | None:
        if rule.file not in accepted:
            return NEW_FILE
        return None if known.get(rule_name(rule.key, tool.name)) == tool.digest else CHANGED_TOOL

    return Policy(rules, unaccepted, files)


def _read(path: Path, owner: int | None) -> str | None:
    try:
        facts = path.stat()
        if owner is not None:
            _refuse_others(path, facts, owner)
            _refuse_others(path.parent, path.parent.stat(), owner)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_FILE_BYTES:
            raise ConfigError(f"no file, or larger than {MAX_FILE_BYTES:,} bytes", place=str(path))
        return path.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        # A file that is there and that nobody could look into may deny something.
        raise ConfigError(f"the policy cannot be read: {problem.strerror}", place=str(path)) from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"the policy is not UTF-8 at byte {problem.start}", place=str(path)) from None


def _refuse_others(path: Path, facts: os.stat_result, owner: int) -> None:
    if facts.st_uid != owner or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        who = "root" if owner == 0 else f"the user {owner}"
        raise ConfigError(
            f"it is not {who}'s alone, so others could have written the organisation's policy",
            place=str(path),
            hint=f"chown {who.removeprefix('the user ')} and chmod go-w, or take it away",
        )
