"""What a path or a command line reaches, for whoever bounds it.

Programs do not agree on where a path leads. Some follow links as they come, and others take `..` away first, as Node
does; some trim white space, some take `~` for a home and `$NAME` for a variable; and below /proc/self every process
finds places of its own. So an allow counts a path only where all of them end up inside the folder, and an ask or a deny
also where one may.

A bound over a command line has to know what would run: one simple command, a program and its arguments, as a shell
would split it. So this reads only what has one meaning in every shell: words, single quotes, and double quotes without
anything in them that a shell would expand. Whatever else there is (operators, redirections, expansions, assignments,
comments, escapes, a second line) is no simple command, and matches nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from lastword.rules.value import MAX_AGREED, fits, quoted, shown, whole_pattern

# No path that anybody means has a second line.
_UNPRINTED = re.compile(r"[\x00-\x1f\x7f]")
# White space that JavaScript trims and Python does not.
_BYTE_ORDER_MARK = "\ufeff"
# What is more than a path for some who are given one: an option, an address or a place on another machine, what a shell
# expands, another way to write a slash or a dot.
_MORE = re.compile(r"-|[^/]*:|.*[\\`{]|.*%2[ef]", re.IGNORECASE)
# As many as Linux follows before it gives up.
MAX_LINKS = 40

# Longer than anybody types, and short enough to look at for every rule.
MAX_COMMAND = 4_000

# What stands for itself outside of quotes, everywhere in a word. No `~`, which is a home; no `=` in the first word.
_BARE = r"[A-Za-z0-9_@%+=:,./-]"
# At the beginning of a word zsh takes `=ls` for the place of that program, and fish `%self` for a number.
_FIRST = r"(?![=%])"
# In double quotes a shell still sees $ ` \ and, in some, !. In single quotes it sees nothing.
_WORD = re.compile(rf"{_FIRST}(?:{_BARE}|'[^'\x00-\x1f\x7f]*'|\"[^\"$`\\!\x00-\x1f\x7f]*\")+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PARTS = re.compile(r"'([^']*)'|\"([^\"]*)\"|([^'\"]+)")


# Programs that run another one, which stands among their arguments. Without the number of a version.
_RUNNERS = frozenset(
    [
        "at", "awk", "bash", "batch", "builtin", "bun", "bunx", "busybox", "bwrap", "caffeinate", "choom", "chroot",
        "chrt", "command", "conda", "coproc", "dash", "dbus-launch", "dbus-run-session", "deno", "direnv", "doas",
        "docker", "entr", "env", "eval", "exec", "expect", "fakeroot", "find", "firejail", "fish", "flock", "gawk",
        "hatch", "ionice", "ksh", "kubectl", "ld-linux-x86-64.so", "ld.so", "linux32", "linux64", "lua", "mamba",
        "mawk", "micromamba", "nawk", "nice", "nix", "nix-shell", "nocorrect", "node", "noglob", "nohup", "npm",
        "npx", "nsenter", "numactl", "osascript", "parallel", "pdm", "perl", "php", "pipx", "pkexec", "pnpm",
        "podman", "poetry", "prlimit", "python", "ruby", "runuser", "rye", "screen", "script", "setarch", "setpriv",
        "setsid", "sg", "sh", "ssh", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tclsh", "time",
        "timeout", "tmux", "toybox", "trap", "unshare", "uv", "uvx", "valgrind", "watch", "xargs", "xvfb-run", "yarn",
        "zsh",
    ]
)  # fmt: skip
# What a shell takes away before it looks for the program: r\m, r''m and r$@m are all of them rm.
_UNQUOTED = re.compile(r"['\"\\]|\$[@*]")
_VERSION = re.compile(r"[-.]?[0-9][0-9.]*$")


def is_inside(path: str, folder: str, base: Path, *, is_fixed: bool = False) -> bool:
    """Whether a path surely leads to this folder or into it. A fixed folder is not followed: nothing lies in a link."""
    if not path or is_unclear(path, base) or _MORE.match(path):
        return False
    try:
        real = folder if is_fixed else os.path.realpath(folder)
        return all(_is_within(there, real, str) for there in _ends(path, base))
    except (OSError, ValueError):
        return False


def may_be_inside(path: str, folder: str, base: Path) -> bool:
    """Whether a path may lead to this folder or into it, whoever reads it and however the disk spells names."""
    if is_unclear(path, base):
        return True
    try:
        return any(_is_within(there, os.path.realpath(folder), folded) for there in _ends(path, base))
    except (OSError, ValueError):
        return False  # It leads nowhere.


def is_at(here: Path, folder: str, *, is_fixed: bool = False) -> bool:
    """Whether something that runs here runs in this folder, or in one below it. A fixed one is not followed."""
    if not here.is_absolute():
        return False
    try:
        return _is_within(os.path.realpath(here), folder if is_fixed else os.path.realpath(folder), str)
    except (OSError, ValueError):
        return False


def leads_elsewhere(folder: str) -> bool:
    """Whether a folder is not where its path says: it is a link, or behind one."""
    try:
        return os.path.realpath(folder) != (folder.rstrip("/") or "/")
    except (OSError, ValueError):
        return True


def is_unclear(path: str, base: Path) -> bool:
    """Whether nobody here can tell where a path leads: to a home or a variable, on from nowhere certain, to another
    place in every process, or to wherever its white space is taken for a part of it."""
    if not (base.is_absolute() or path.startswith("/")) or path.startswith("~") or "$" in path:
        return True
    if path[:5].lower() == "file:":
        return True
    if path != path.strip().strip(_BYTE_ORDER_MARK) or _UNPRINTED.search(path):
        return True
    whole = os.path.join(base, path)
    return any(_is_of_process(way) for way in {whole, os.path.normpath(whole)})


def reads_two_ways(path: str, base: Path) -> bool:
    """Whether a path leads one program here and another there. Of a program whose ways with `~` and `$` are known."""
    if path != path.strip().strip(_BYTE_ORDER_MARK) or _UNPRINTED.search(path):
        return True
    try:
        return len(_ends(path, base)) > 1 or _is_of_process(os.path.join(base, path))
    except (OSError, ValueError):
        return True


def folded(path: str) -> str:
    """A path as a disk takes it that knows neither case nor the ways to write one letter."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _ends(path: str, base: Path) -> set[str]:
    """Where it leads: with links followed as they come, and with `..` taken away first."""
    whole = os.path.join(base, path)
    return {os.path.realpath(whole), os.path.realpath(os.path.normpath(whole))}


def _is_within(there: str, folder: str, spelled: Callable[[str], str]) -> bool:
    there, folder = spelled(there), spelled(folder)
    return there == folder or there.startswith(folder.rstrip("/") + "/")


def _is_of_process(path: str) -> bool:
    """Whether the way there goes through /proc, also by a link: /proc/self is another place in another program."""
    at, ahead, links = "/", path.split("/")[::-1], 0
    while ahead:
        name = ahead.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        at = os.path.join(at, name)
        if at == "/proc":
            return True
        if os.path.islink(at):
            links += 1
            if links > MAX_LINKS:
                return True
            target = os.readlink(at)
            ahead += target.split("/")[::-1]
            at = "/" if target.startswith("/") else os.path.dirname(at)
    return False


def literal_pattern(word: str) -> str:
    """A pattern for one argument that only this very word fits."""
    return re.escape(word).replace("\\ ", " ")


def words_of_patterns(patterns: Sequence[str]) -> list[str] | None:
    """The words that patterns stand for where each is one that only a single word fits; None where one is not."""
    words = [_ESCAPED.sub(r"\1", pattern) for pattern in patterns]
    return words if [literal_pattern(word) for word in words] == [*patterns] else None


def simple_words(line: str) -> tuple[str, ...] | None:
    """The words of one simple command; None when it is anything else."""
    if len(line) > MAX_COMMAND:
        return None
    words: list[str] = []
    place, end = 0, len(line)
    while place < end:
        if line[place] == " ":
            place += 1
            continue
        found = _WORD.match(line, place)
        if found is None or (found.end() < end and line[found.end()] != " "):
            return None
        if not words and "=" in found.group():
            return None  # It sets a variable for the program, which may change what it does.
        words.append("".join(a or b or c for a, b, c in _PARTS.findall(found.group())))
        place = found.end()
    return tuple(words) if words and words[0] else None


class CommandBound(msgspec.Struct, frozen=True):
    """One simple command, and where it runs."""

    program: str
    args: tuple[str, ...]
    """A pattern for each argument, as it was written."""
    cwd: str
    is_fixed: bool = False
    """Whether that folder is the very one that was named, and not where a link in its place leads."""

    @property
    def words(self) -> str:
        known = words_of_patterns(self.args)
        line = " ".join((self.program, *self.args)) if known is None else shlex.join((self.program, *known))
        like = "a simple command like" if known is None else "the one simple command"
        return f"{like} {shown(line, MAX_AGREED)}, run in {quoted(self.cwd)} or below it"

    def runs(self, line: Any, folder: Path) -> bool:
        """Whether this line is that one command, to be run inside of its folder."""
        words = simple_words(line) if isinstance(line, str) else None
        return (
            words is not None
            and len(words) - 1 == len(self.args)
            and self._names(words)
            and is_at(folder, self.cwd, is_fixed=self.is_fixed)
        )

    def may_run(self, line: str, folder: Path) -> bool:
        """Whether a line may do what is asked about or denied, as far as it can be told: by another name of the
        program, by one that runs others, as one of several commands, or from a folder that nobody knows."""
        words, name = simple_words(line), os.path.basename(self.program)
        if words is None:
            return name in _UNQUOTED.sub("", line)
        first = os.path.basename(words[0])
        # An exclamation mark is how git, editors and others are told to run something.
        if _VERSION.sub("", first) in _RUNNERS or any("!" in word for word in words[1:]):
            return any(name in _UNQUOTED.sub("", word) for word in words[1:])
        if folded(first) != folded(name) or not may_be_inside(str(folder), self.cwd, folder):
            return False
        return self._names((self.program, *words[1:]))  # Whatever follows: one word more is no way around it.

    def _names(self, words: tuple[str, ...]) -> bool:
        """Whether these are its program and, at their beginning, its arguments."""
        if words[0] != self.program or len(words) - 1 < len(self.args):
            return False
        return all(fits(whole_pattern(pattern), word) for pattern, word in zip(self.args, words[1:], strict=False))
