"""Which files make up a project, and which of them are private.

A project is everything below its folder, less what git is told to ignore. `.gitignore` files count in every folder, the
innermost first, as git reads them: the last matching pattern of the innermost file that has one decides, and nothing
below an ignored folder comes back. What lies outside the project is not read, so a user's global ignore file does not
count.

A pattern is matched against one entry of the tree at a time, never against what lies below it: whoever walks does not
enter what is ignored. (Libraries that match whole paths let `!/src/` bring back everything below `src`; git does not,
and the tests ask git.) The file comes with the project and may be hostile. Every wildcard but the last in a name is an
atomic group, so that a name is matched in a time that grows with its length and the pattern's, whatever the two are.

A private file is listed by name and can be changed with a card like any other. What is in it goes to nobody who was not
allowed to see it: it is not read, searched or linted by a tool that asks nobody. Private is what usually holds secrets
by its name, what somebody named, and what git is told to ignore: that is where people keep what must not leave their
machine. The patterns are those of a `.gitignore`, matched without regard to case: the last that fits decides, a pattern
for a folder covers everything below it, and `!` takes a name out.

What a name cannot tell is not covered: a secret in a file with an innocent name, a hard link to a private file, a copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, lru_cache
from typing import NamedTuple

from lastword.editor.project_folder import Folder, folded, join, name_problem, parts_of
from lastword.editor.provider import MAX_FILE_BYTES, MAX_LISTED_FILES, EditError, LeftOut, Listing
from lastword.editor.text import decode

IGNORED = "ignored by git"


def list_project(folder: Folder, *, limit: int = MAX_LISTED_FILES) -> Listing:
    """Walk the project once. Names that no path may hold, links and special files are not part of it."""
    folders: list[str] = []
    files: list[str] = []
    left_out: list[LeftOut] = []
    ignoring = Ignoring(folder)

    def enter(path: str) -> bool:
        if ignoring.ignores(path, is_folder=True):
            left_out.append(LeftOut(path + "/", IGNORED))
            return False
        return True

    for path, _, names, not_part in folder.walk(enter):
        if path:
            folders.append(path)
        left_out += not_part
        ignoring.look_in(path, has_file=".gitignore" in names)
        for name in names:
            file = join(path, name)
            if name_problem(name) is not None:
                continue
            if ignoring.ignores(file, is_folder=False):
                left_out.append(LeftOut(file, IGNORED))
            else:
                files.append(file)
        if len(files) + len(folders) > limit:
            return Listing(sorted(folders), sorted(files)[:limit], _by_path(left_out), cut=True)
    return Listing(sorted(folders), sorted(files), _by_path(left_out))


class Ignoring:
    """What the `.gitignore` files of a project say. Each is read once, so this is good for one piece of work."""

    def __init__(self, folder: Folder, read: Callable[[Folder, str], str] | None = None) -> None:
        self._folder = folder
        self._read = read or _text_of
        self._rules: dict[str, list[Rule]] = {}

    def look_in(self, folder: str, *, has_file: bool = True) -> None:
        """Read the file of one folder, unless it is known."""
        if folder not in self._rules:
            text = self._read(self._folder, join(folder, ".gitignore")) if has_file else ""
            self._rules[folder] = parse_rules(text)

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        """Whether the innermost file that says anything about the path says that it is ignored.

        The folders above it must have been looked in, and must not be ignored themselves.
        """
        folder = path
        while folder:
            folder = folder.rpartition("/")[0]
            if rules := self._rules.get(folder):
                decision = decide(rules, path[len(folder) + 1 :] if folder else path, is_folder=is_folder)
                if decision is not None:
                    return decision
        return False

    def covers(self, path: str) -> bool:
        """Whether a file is ignored, by itself or with a folder that it lies in."""
        parts = parts_of(path)
        for end in range(1, len(parts) + 1):
            self.look_in("/".join(parts[: end - 1]))
            if self.ignores("/".join(parts[:end]), is_folder=end < len(parts)):
                return True
        return False


def whatever_it_holds(folder: Folder, path: str) -> str:
    """The text of an ignore file, as far as it is one: for whoever would rather ignore too much than too little.

    A link is no ignore file to git either.
    """
    try:
        with folder.opened(path) as file:
            return "" if file is None else (file.read(MAX_FILE_BYTES) or b"").decode("utf-8", "replace")
    except EditError:
        return ""


def _text_of(folder: Folder, path: str) -> str:
    try:
        return decode(folder.read(path) or b"") or ""
    except EditError:
        # A link, or larger than any such file: no rules, and listing more is the safe side.
        return ""


def _by_path(left_out: list[LeftOut]) -> tuple[LeftOut, ...]:
    return tuple(sorted(left_out, key=lambda one: one.path))


PRIVATE = (
    # Settings with passwords in them.
    "*.env", ".env*", "credentials*", ".credentials*", ".secrets*", "secrets.y*ml", "secrets.json", "secrets.toml",
    "secrets.ini", "secrets.txt", "secret.y*ml", "secret.json", "secret.toml", "client_secret*", "*.tfvars",
    "*.tfstate*", "service-account*.json", "service_account*.json",
    # Keys and key stores. A name with an ending is somebody's program or page, unless the ending says otherwise.
    "id_*", "!id_*.*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx",
    "*.ppk", "*.jks", "*.keystore", "*.bks", "*.kdb", "*.kdbx", "*.keychain", "*.keychain-db", "*.keytab", "*.gpg",
    "*.pgp", "*.asc", "*.age", "*.agekey", "*.ovpn",
    # Where programs keep what they log in with.
    ".netrc", "_netrc", ".authinfo", ".pgpass", ".my.cnf", ".mylogin.cnf", ".pypirc", ".npmrc", ".htpasswd", ".boto",
    ".git-credentials", ".dockercfg", "**/.docker/config.json", ".vault-token", ".s3cfg", ".terraformrc", "kubeconfig",
    # Whole folders of it.
    ".ssh/", ".gnupg/", ".aws/", ".azure/", ".gcloud/", ".kube/", ".password-store/",
)  # fmt: skip
"""The patterns that need no configuration."""

# How many names are remembered with what the patterns say of them; those of folders come again and again.
_REMEMBERED_NAMES = 20_000


class Privacy:
    """What the patterns say of names. More patterns come after ours, and may take some of them back."""

    def __init__(self, more: Iterable[str] = ()) -> None:
        self._patterns = [*PRIVATE, *more]
        self._rules: list[tuple[str, Rule]] = []
        for pattern in self._patterns:
            rules = parse_rules(folded(pattern))
            if len(rules) != 1:
                raise EditError(
                    f"{pattern!r} is not a pattern for private files",
                    hint="write one pattern as in a .gitignore, such as *.secret or keys/",
                )
            self._rules.append((pattern, rules[0]))
        self._by_name = lru_cache(_REMEMBERED_NAMES)(self._last_by_name)

    @cached_property
    def _anchored(self) -> Sequence[tuple[int, Rule]]:
        return [(number, rule) for number, (_, rule) in enumerate(self._rules) if rule.anchored]

    def why(self, path: str) -> str | None:
        """Why a file of this name is private, in words; None when no pattern says so."""
        parts = folded(path).split("/")
        for end in range(1, len(parts) + 1):
            is_folder = end < len(parts)
            here = "/".join(parts[:end])
            last = self._by_name(parts[end - 1], is_folder)
            for number, rule in self._anchored:
                if number > last and decide([rule], here, is_folder=is_folder) is not None:
                    last = number
            if last >= 0 and self._rules[last][1].ignores:
                return f"its name fits {self._rules[last][0]}"
        return None

    def _last_by_name(self, name: str, is_folder: bool) -> int:
        """The number of the last pattern that fits a name wherever it stands; −1 when there is none."""
        for number in range(len(self._rules) - 1, -1, -1):
            rule = self._rules[number][1]
            if not rule.anchored and decide([rule], name, is_folder=is_folder) is not None:
                return number
        return -1


@cache
def by_name() -> Privacy:
    """For an editor that does not say which of its files are private. Few sessions edit files, so it is made late."""
    return Privacy()


# Far more rules than people write. Each costs a look at every entry below it.
MAX_RULES = 2_000

_ANYTHING_BELOW = "**"
_POSIX = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "a-fA-F0-9",
}


class Rule(NamedTuple):
    """One line of the file."""

    ignores: bool
    """False for a line that starts with `!`."""
    folders_only: bool
    anchored: bool
    """Whether the names start at the folder of the file; else there is one, and it may stand anywhere."""
    names: tuple[Callable[[str], object] | None, ...]
    """A test for each name of the path; None stands for any number of names."""


def parse_rules(text: str) -> list[Rule]:
    """The rules of a file, in order."""
    lines = text.removeprefix("\ufeff").split("\n")
    return [rule for line in lines if (rule := _parse(line.removesuffix("\r"))) is not None][:MAX_RULES]


def decide(rules: Sequence[Rule], path: str, *, is_folder: bool) -> bool | None:
    """Whether the last rule that matches ignores the path, relative to the file's folder; None when none matches."""
    parts = path.split("/")
    for rule in reversed(rules):
        if rule.folders_only and not is_folder:
            continue
        if rule.anchored:
            matches = _matches(rule.names, parts)
        else:
            test = rule.names[0]
            matches = test is None or bool(test(parts[-1]))
        if matches:
            return rule.ignores
    return None


def _parse(line: str) -> Rule | None:
    # Spaces at the end mean nothing, unless the last of them is quoted.
    stripped = line.rstrip(" ")
    if len(stripped) < len(line) and (len(stripped) - len(stripped.rstrip("\\"))) % 2:
        stripped += " "
    if not stripped or stripped.startswith("#"):
        return None
    ignores = not stripped.startswith("!")
    pattern = stripped if ignores else stripped[1:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    if not pattern:
        return None
    anchored = "/" in pattern
    names = [_compile(name) for name in pattern.removeprefix("/").split("/")]
    if any(name is _INVALID for name in names):
        return None
    return Rule(ignores, folders_only, anchored, tuple(names))


def _matches(names: Sequence[Callable[[str], object] | None], parts: Sequence[str]) -> bool:
    """Match tests against names. One step back to the latest `**` is enough, as with the stars of a glob."""
    at = here = 0
    retry_at = retry_here = -1
    while here < len(parts):
        test = names[at] if at < len(names) else _never
        if test is None:
            if at == len(names) - 1:
                # At the end it stands for everything below, and that is at least one name.
                return True
            retry_at, retry_here = at + 1, here
            at += 1
        elif test(parts[here]):
            at += 1
            here += 1
        elif retry_at >= 0:
            retry_here += 1
            at, here = retry_at, retry_here
        else:
            return False
    return at == len(names)


def _never(_: str) -> bool:
    return False


_INVALID = _never


def _compile(name: str) -> Callable[[str], object] | None:
    """A test for one name of a path."""
    if name == _ANYTHING_BELOW:
        return None
    if not re.search(r"[*?\[\\]", name):
        return name.__eq__
    pieces = _pieces(name)
    return _INVALID if pieces is None else re.compile(_regex(pieces), re.DOTALL).fullmatch


def _regex(runs: list[str]) -> str:
    """Runs of fixed characters with a star between each two.

    Each star but the last takes the first place where its run fits; no other place could help what follows.
    """
    first, *rest = runs
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>.*?{run})" for run in middle) + ".*" + last


def _pieces(name: str) -> list[str] | None:
    """The regular expressions between the stars of a name; None when the pattern is broken and matches nothing."""
    runs = [""]
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        if char == "*":
            if runs[-1] or len(runs) == 1:
                runs.append("")
        elif char == "?":
            runs[-1] += "."
        elif char == "[":
            found = _char_class(name, at)
            if found is None:
                return None
            expression, at = found
            runs[-1] += expression
        elif char == "\\":
            if at == len(name):
                return None
            runs[-1] += re.escape(name[at])
            at += 1
        else:
            runs[-1] += re.escape(char)
    return runs


def _char_class(name: str, at: int) -> tuple[str, int] | None:
    """The set that starts after a bracket, and where the rest begins; None when it is never closed."""
    negated = name[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while at < len(name) and (first or name[at] != "]"):
        first = False
        if posix := re.compile(r"\[:(\w+):\]").match(name, at):
            if posix[1] not in _POSIX:
                return None
            items.append(_POSIX[posix[1]])
            at = posix.end()
            continue
        low, at = _set_char(name, at)
        if name[at : at + 1] == "-" and name[at + 1 : at + 2] not in ("", "]"):
            high, at = _set_char(name, at + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            items.append(re.escape(low))
    if at >= len(name):
        return None
    inside = "".join(items)
    if not inside:
        return ("." if negated else "(?!)"), at + 1
    return f"[{'^' if negated else ''}{inside}]", at + 1


def _set_char(name: str, at: int) -> tuple[str, int]:
    if name[at] == "\\" and at + 1 < len(name):
        return name[at + 1], at + 2
    return name[at], at + 1
