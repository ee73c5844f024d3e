"""Which files are private: their names usually hold secrets, or somebody said so.

A private file is listed by name and can be changed with a card like any other. What is in it goes to nobody who was not
allowed to see it: it is not read, searched or linted by a tool that asks nobody.

The patterns are those of a `.gitignore`, matched without regard to case: the last that fits decides, a pattern for a
folder covers everything below it, and `!` takes a name out. Besides the patterns, what git is told to ignore is
private: that is where people keep what must not leave their machine.

What a name cannot tell is not covered: a secret in a file with an innocent name, a hard link to a private file, a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache

from lastword.editor.gitignore import Rule, decide, parse_rules
from lastword.editor.paths import folded
from lastword.errors import EditError

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
