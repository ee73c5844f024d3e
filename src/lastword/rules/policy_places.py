"""The files that decide what is asked: where they lie, whose they are, and that people alone change them.

Policies are read when a program starts.

| layer | file | may |
|---|---|---|
| organisation | `/etc/lastword/policy.toml` (macOS: `/Library/Application Support/lastword/`) | allow, ask, deny |
| user | `policy.toml` in the user's data folder | allow, ask, deny |
| project | `lastword.policy.toml` in the project's folder | ask, deny |

The organisation's file, its folder and those above belong to root, and nobody else may write them, or nothing starts.
Whoever may write a folder may put another file, or a link to one, in the place of what is in it; so each folder and
each link on the way is looked at, and not only where the way ends.

People alone change the policies, `lastword.toml`, the settings from which agents start our hook, the files from which
clients start our gateway, the memory, and all of a person's data folder. A standing yes never answers for a call that
would write one of them.

A file is known by its name, in whatever folder it would be. It is also known by where it really lies: a policy may be a
link to a file of another name, and an agent that writes into a hard link writes into the policy. So the files in use
are compared by their place on the disk, which has one number however a path to it is written, also where a disk ignores
case. What is not there yet is known by the nearest folder that is, and the names on from there.

Nothing here knows a rule: a hook, which starts often, finds at once that there are none.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn

import msgspec

from lastword import config
from lastword.errors import ConfigError
from lastword.rules.paths import folded
from lastword.store import data_folder

if TYPE_CHECKING:
    from lastword.store import Store
    from lastword.tools import Trust

Layer = Literal["organisation", "user", "project"]

FILE = "policy.toml"
PROJECT_FILE = "lastword.policy.toml"
SYSTEM = Path("/Library/Application Support/lastword" if sys.platform == "darwin" else "/etc/lastword")

# Where clients read which MCP servers they start: in a project, and in the person's home or where they moved it to.
_CLIENTS = (".mcp.json", ".claude.json")

Place = tuple[int, int, str]
"""The disk, the number that a file or folder has on it, and the names on from there of what is not there yet."""

# More than anybody writes by hand. Reading TOML takes a second for every megabyte.
MAX_FILE_BYTES = 250_000
# As many as Linux follows.
MAX_LINKS = 40

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class PolicyPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files of the three layers are, whether there are any or not."""

    organisation: Path
    user: Path
    project: Path
    around: tuple[Path, ...] = ()
    """Further files of projects that hold, too: of the folders above, for whoever does not stay in one."""
    owner: int = 0
    """To whom the organisation's file has to belong: root."""

    @classmethod
    def of(cls, project: Path, environ: Mapping[str, str] | None = None) -> PolicyPlaces:
        """Where policies lie for whoever works in this folder."""
        environ = os.environ if environ is None else environ
        own = data_folder(environ)
        return cls(organisation=SYSTEM / FILE, user=own / FILE, project=project / PROJECT_FILE)

    @classmethod
    def around_folder(cls, folder: Path, others: Iterable[Path] = ()) -> PolicyPlaces:
        """Where policies lie for whoever moves about: of this folder, of all above it, and of some others.

        A project may only ask and deny. Whoever goes down into a folder of it would otherwise leave its rules behind.
        """
        found = cls.of(folder)
        here = Path(os.path.realpath(folder))
        files = dict.fromkeys(place / PROJECT_FILE for place in (here, *here.parents, *others))
        files.pop(found.project, None)
        return msgspec.structs.replace(found, around=tuple(files))

    def layers(self) -> tuple[tuple[Layer, Path], ...]:
        further: list[tuple[Layer, Path]] = [("project", path) for path in self.around]
        return ("organisation", self.organisation), ("user", self.user), ("project", self.project), *further

    @staticmethod
    def accepted() -> Trust:
        """Which files, and which tools for their rules, this person has accepted."""
        return config.trusted(os.environ)

    def are_empty(self) -> bool:
        """Whether there is no file at all. One that cannot be looked at may be there."""
        return not any(_may_be_there(path) for _, path in self.layers())


def _may_be_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def text_of(path: Path, owner: int | None) -> str | None:
    """What a policy file says, or None where there is none. `owner`: whose alone it has to be, if anybody's."""
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
        _refuse_others(path, facts, owner)
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


def _refuse_others(path: Path, opened: os.stat_result, owner: int) -> None:
    """Refuse a file that others could have written or exchanged. What was opened is known by its facts."""
    if opened.st_uid != owner or opened.st_mode & _OTHERS_WRITE:
        _refuse(path, owner)
    end = path
    for place, facts in _way(path.absolute()):
        # Root may do everything anyway, and holds the folders above.
        if facts.st_uid not in (0, owner) or (stat.S_ISDIR(facts.st_mode) and _is_open(facts)):
            _refuse(place, owner)
        end = place
    for folder in (path.parent, end.parent):
        if folder.stat().st_mode & _OTHERS_WRITE:  # Even one in which each keeps to their own files, like /tmp.
            _refuse(folder, owner)
    if not os.path.samestat(end.lstat(), opened):
        raise ConfigError("it was exchanged while it was read", place=str(path), hint="start again")


def _is_open(facts: os.stat_result) -> bool:
    """Whether others may exchange what is in a folder. In one like /tmp they may not touch what is not theirs."""
    return bool(facts.st_mode & _OTHERS_WRITE) and not facts.st_mode & stat.S_ISVTX


def _way(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every folder, every link and at last the file itself on the way that a path leads, one link after the other."""
    here, links = Path("/"), 0
    names = _reversed_names(str(path))
    while names:
        yield here, here.lstat()
        name = names.pop()
        there = here.parent if name == ".." else here / name
        facts = there.lstat()
        if not stat.S_ISLNK(facts.st_mode):
            here = there
            continue
        yield there, facts
        links += 1
        if links > MAX_LINKS:
            raise ConfigError(f"more than {MAX_LINKS} links lead to it", place=str(path), hint="remove the links")
        target = os.readlink(there)
        here = Path("/") if target.startswith("/") else here
        names += _reversed_names(target)
    yield here, here.lstat()


def _reversed_names(path: str) -> list[str]:
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def _refuse(path: Path, owner: int) -> NoReturn:
    who = "root" if owner == 0 else f"the user {owner}"
    raise ConfigError(
        f"it is not {who}'s alone, so others could have written the organisation's policy",
        place=str(path),
        hint=f"chown {who.removeprefix('the user ')} and chmod go-w, or take it away",
    )


# Where an agent was started, as it tells its hooks. It may have gone elsewhere since.
_STARTED_IN = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one agent."""

    OF: ClassVar[dict[str, AgentSettings]] = {}
    """Those of every agent that asks here, by its name."""

    folder: str
    """In a project, and in the person's home."""
    file: str
    """The person's own hooks, for all projects."""
    in_project: str
    """Their hooks for one project."""
    others: tuple[str, ...] = ()
    """Further files that bring hooks, or turn them off."""
    moved_by: str | None = None
    """The variable that names another folder than the one in the home."""

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.file, self.in_project, *self.others)))

    def of_person(self) -> str:
        """The folder of the person's own settings."""
        named = os.environ.get(self.moved_by) if self.moved_by else None
        return named or os.path.join(os.path.expanduser("~"), self.folder)

    @staticmethod
    def projects_started_in() -> list[str]:
        """The folders in which agents above this program were started, links followed."""
        named = (os.environ.get(name, "") for name in _STARTED_IN)
        return [os.path.realpath(folder) for folder in named if os.path.isabs(folder)]


AgentSettings.OF.update(
    {
        "claude": AgentSettings(
            folder=".claude", file="settings.json", in_project="settings.local.json", moved_by="CLAUDE_CONFIG_DIR"
        ),
        "codex": AgentSettings(
            folder=".codex", file="hooks.json", in_project="hooks.json", others=("config.toml",), moved_by="CODEX_HOME"
        ),
        "gemini": AgentSettings(folder=".gemini", file="settings.json", in_project="settings.json"),
    }
)
_HOOKS = {agent.folder: frozenset(agent.files) for agent in AgentSettings.OF.values()}


def _agents_settings(projects: Iterable[str]) -> Iterator[str]:
    """The settings of every agent, the person's own and in these projects, whether they are there or not."""
    for agent in AgentSettings.OF.values():
        for folder in (*(f"{project}/{agent.folder}" for project in projects), agent.of_person()):
            # Where a folder of this name is not there, no link is on the way to it, and whoever makes it gives it
            # that name.
            if not folder.endswith(f"/{agent.folder}") or os.path.lexists(folder):
                yield from (f"{folder}/{name}" for name in agent.files)


class _Wrapped(msgspec.Struct, frozen=True):
    """Of what is remembered of a client's file, where it lies."""

    file: str


def _wrapped_files() -> Iterator[str]:
    """The clients' files that were wrapped. A record that says nothing is none: only a person has changed it."""
    folder = ProtectedFile.gateways_folder()
    for record in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            yield msgspec.json.decode(record.read_bytes(), type=_Wrapped).file
        except (OSError, msgspec.DecodeError):
            continue


class ProtectedFile(msgspec.Struct, frozen=True):
    """A file that is changed by people alone."""

    path: str
    """As it was named."""
    has: str
    """What is in it, in a word."""

    @property
    def why(self) -> str:
        return f"has {self.has}, which are changed by people alone"

    @staticmethod
    def gateways_folder() -> Path:
        """Where a record lies for every file that was wrapped."""
        return data_folder() / "gateways"

    @classmethod
    def first(cls, paths: Iterable[str], folder: Path, policies: Iterable[Path], store: Store) -> ProtectedFile | None:
        """The first of these paths at which lies, or would lie, what people alone change; None when there is none.

        Relative ones are meant from the folder. The policies are those that were read, the store is the one in use.
        """
        known: dict[Place, str] | None = None
        for path in paths:
            try:
                real = os.path.realpath(folder / path)
            except ValueError:
                continue  # No file can have such a name.
            has = _by_name(path) or _by_name(real)
            if has is None:
                if known is None:
                    known = {_place(file): has for file, has in _in_use(folder, policies, store)}
                has = next((known[place] for place in _places(real) if place in known), None)
            if has is not None:
                return cls(path, has)
        return None


def _by_name(path: str) -> str | None:
    """What a file of this name has, wherever it is. A folder that is called so will do: it takes the file's place."""
    above, names = "", _names_of_files()
    for part in path.split("/"):
        name = folded(part)
        if name in names:
            return names[name]
        if name in _HOOKS.get(above, ()):
            return "hooks"
        above = name
    return None


def _names_of_files() -> dict[str, str]:
    return {PROJECT_FILE: "rules", config.FILE: "settings"} | dict.fromkeys(_CLIENTS, "servers")


def _in_use(folder: Path, policies: Iterable[Path], store: Store) -> Iterator[tuple[str, str]]:
    """The files and folders that count for whoever works in this folder, and what is in them."""
    own = (str(data_folder()), str(SYSTEM))
    yield from ((place, "rules") for place in own)
    # Where one of these is not there, its name or its folder is enough. One that is may be a link, or have other names.
    projects = _projects_of(folder)
    named = [(f"{place}/{FILE}", "rules") for place in own]
    named += [(f"{project}/{name}", has) for project in projects for name, has in _names_of_files().items()]
    homes = (str(Path.home()), AgentSettings.OF["claude"].of_person())
    named += [(f"{home}/{name}", "servers") for home in homes for name in _CLIENTS]
    yield from (one for one in named if os.path.lexists(one[0]))
    yield from ((file, "hooks") for file in _agents_settings(projects))
    yield from ((file, "servers") for file in _wrapped_files())
    yield from ((str(read), "rules") for read in policies)
    yield from ((file, "settings") for file in config.READ)
    yield from ((str(file), "records") for file in store.files)


def _projects_of(folder: Path) -> Iterable[str]:
    """The folders whose settings may count for whoever works in this one: itself, all above it, and where an agent was
    started that has gone elsewhere since."""
    real = Path(os.path.realpath(folder))
    return dict.fromkeys(
        [*(str(place).rstrip("/") for place in (real, *real.parents)), *AgentSettings.projects_started_in()]
    )


def _place(path: str) -> Place:
    """Where a file or a folder lies, links followed."""
    try:
        found = os.stat(path)
    except OSError:
        if os.path.islink(path):
            return next(_places(os.path.realpath(path)))
    else:
        return found.st_dev, found.st_ino, ""
    above, name = os.path.split(path)
    if above == path:
        return 0, 0, ""
    disk, number, names = _place(above)
    return disk, number, f"{names}/{folded(name)}" if names else folded(name)


def _places(real: str) -> Iterator[Place]:
    """Where a file lies by a path without links, and every folder it lies in, also those that are not there yet."""
    names: list[str] = []
    while True:
        try:
            found = os.stat(real)
        except OSError:
            names.append(folded(os.path.basename(real)))
        else:
            # From the innermost on: those that are not there yet, and then this one.
            for first in range(len(names)):
                yield found.st_dev, found.st_ino, "/".join(reversed(names[first:]))
            yield found.st_dev, found.st_ino, ""
            names.clear()
        if real == (real := os.path.dirname(real)):
            return
