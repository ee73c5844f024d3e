"""Below whom this process runs: whether some program started it in which an assistant's tools run.

An assistant that may run commands could type `lastword answer ID --allow`. So whatever is a person's to decide is
refused below a program that has loaded or run tools. Three signs are looked for: a marker in the environment, which
such a program gives to whatever it starts; the same marker in the environment with which a process above this one was
started; and a process above this one that works on the person's memory, or is an agent whose hook asks here.

That stops accidents, and commands that somebody slipped in. It does not stop a program that runs as you and wants to.
Where there is no /proc only the first sign is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from lastword.errors import LastWordError
from lastword.store import Store, data_folder, is_held, make_private

MARKER = "LASTWORD_BELOW"
# Where it is kept which processes are agents.
AGENTS = "agents"

# Nobody's shell lies deeper; a table of processes that changes under our eyes must not be walked for ever.
MAX_ANCESTORS = 200

_PROC = Path("/proc")


class NotByAPerson(LastWordError):
    """A person decides this, and a tool's process asked for it."""


def mark() -> None:
    """Let whatever this process starts from now on be known as started below it."""
    if _marked_for != os.getpid():
        _mark()


_marked_for = 0
# The process that put the marker into its environment by itself, and is not below anybody for that.
_marked_itself = 0


def _mark() -> None:
    global _marked_for, _marked_itself
    _marked_for = os.getpid()
    if MARKER not in os.environ:
        os.environ[MARKER] = str(_marked_for)
        _marked_itself = _marked_for


def is_below(store: Store | None = None, *, agents: bool = True) -> bool:
    """Whether this runs below a program in which tools run, on the person's memory or on this one; or below an agent,
    unless those do not count here."""
    if _is_marked():
        return True
    above = _above()
    if any(MARKER in each.environment for each in above):
        return True
    folders = _data_folders(above)
    if any(_is_host(each, folders) or (agents and _is_agent(each, folders)) for each in above):
        return True
    return store is not None and any(_holds(store, each.pid, each.began) for each in above)


def refuse_below(
    place: str, store: Store | None = None, *, agents: bool = True, hint: str = "type it in a terminal of your own"
) -> None:
    """Refuse what only a person may do, when this runs below a program in which tools run."""
    if is_below(store, agents=agents):
        raise NotByAPerson(
            "this is for a person to decide, and here it was started by a tool, or by something that a tool started",
            place=place,
            hint=hint,
        )


def given_above(name: str) -> str | None:
    """What a variable said when the program was started below which all of this runs; None where nobody knows."""
    outermost = _outermost()
    return None if outermost is None else outermost.environment.get(name)


def is_in_folder_above() -> bool:
    """Whether the person's data folder is the one of the program below which all of this runs. Whoever names another
    brings a memory along in which nothing is counted yet, and may have copied the rest of what is in it."""
    outermost = _outermost()
    return outermost is None or _data_folder(os.environ).resolve() == _data_folder(outermost.environment).resolve()


def _outermost() -> _Process | None:
    """The outermost program above that is known to run tools, or to be an agent: the person started it, and nothing
    that runs below it could have chosen its environment."""
    above, found, is_marked = _above(), None, _is_marked()
    folders = _data_folders(above)
    for each in above:
        if is_marked or _is_host(each, folders) or _is_agent(each, folders):
            found = each
        is_marked = MARKER in each.environment
    return found


class _Process(NamedTuple):
    """A process above this one."""

    pid: int
    began: str
    environment: dict[str, str]


def _is_marked() -> bool:
    # The number in it proves nothing: whoever knows the number of a process can write it before that becomes ours.
    return MARKER in os.environ and _marked_itself != os.getpid()


def _above() -> list[_Process]:
    return [_Process(pid, began, _environment(pid)) for pid, began in _ancestors()]


def _data_folders(above: list[_Process]) -> set[Path]:
    # Who names another home for one command does not get rid of those above it, which know the one that counts.
    return {_data_folder(environment) for environment in (os.environ, *(each.environment for each in above))}


def _is_host(process: _Process, folders: set[Path]) -> bool:
    """Whether it may run tools, on a memory where everybody's is unless they say otherwise."""
    name = _host_name(process.pid, process.began)
    return any(is_held(folder, name) for folder in folders)


def _is_agent(process: _Process, folders: set[Path]) -> bool:
    name = _agent_name(process.pid, process.began)
    return any(os.path.exists(folder / AGENTS / name) for folder in folders)


def note_agent() -> None:
    """Remember that the agent which started this hook is one: whatever runs below it is not the person.

    An agent's environment is its own, so there is no marker; a file of the person's says which process it is. Without
    /proc there is nothing to tell it by.
    """
    above = [(pid, began, _shell_words(pid)) for pid, began in _ancestors()]
    found = next(((pid, began) for pid, began, shell in above if len(shell) < 2), None)
    if found is None or any(len(shell) == 1 for pid, _, shell in above if pid == found[0]):
        return  # A person typed it at the prompt of a shell, and stays one.
    if _adopts_orphans(found[0]):
        return  # The agent is gone, and its hook was given to whom every terminal of the person is below.
    folder = _data_folder(os.environ) / AGENTS
    file = folder / _agent_name(*found)
    if file.exists():
        return
    make_private(folder)
    for old in sorted(folder.iterdir())[:MAX_ANCESTORS]:
        number = old.name.partition("-")[0]
        if number.isdigit() and old.name != _agent_name(int(number), _began(int(number))):
            with suppress(OSError):
                old.unlink()  # That process is gone, and its number may be somebody else's by now.
    file.touch(0o600)


def _shell_words(pid: int) -> list[bytes]:
    """The command line of a process that is a shell, as those between an agent and its hook are; else nothing."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return []
    return words if words[0].rpartition(b"/")[2].lstrip(b"-") in _SHELLS else []


def _adopts_orphans(pid: int) -> bool:
    """Whether a process is given whatever lost the one that had started it, as the first of a machine is, and the first
    of a person. An agent may be the first process of a container, and is known by its name then."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return True
    if pid != 1:
        return words[0].rpartition(b"/")[2] == b"systemd"
    return not any(name in word for name in AGENT_NAMES for word in words)


AGENT_NAMES = (b"claude", b"codex", b"gemini")
_SHELLS = frozenset([b"sh", b"bash", b"dash", b"zsh", b"ash", b"ksh", b"fish"])


def _data_folder(environment: Mapping[str, str]) -> Path:
    return data_folder(environment, home=Path(environment.get("HOME") or Path.home()))


def _agent_name(pid: int, began: str) -> str:
    return f"{pid}-{began}-{_boot()}"


def host_name(pid: int | None = None) -> str:
    """What a process holds in its memory for as long as it may run tools, for those below it to find."""
    number = os.getpid() if pid is None else pid
    return _host_name(number, _began(number))


def _host_name(pid: int, began: str) -> str:
    # A number alone is not enough: the first process of a container has the number of the first of its host.
    # And a memory on a server is shared by machines, of which each counts from its own start.
    return f"host:{_boot()}:{pid}:{began}"


@cache
def _boot() -> str:
    """What the system calls this run of the machine; nothing where it does not say."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _holds(store: Store, pid: int, began: str) -> bool:
    return store.is_held(_host_name(pid, began))


def _ancestors() -> Iterator[tuple[int, str]]:
    """The processes above this one, the nearest first, each with when it began."""
    pid = os.getppid()
    for _ in range(MAX_ANCESTORS):
        if pid < 1 or not (facts := _facts(pid)):
            return
        yield pid, facts[19]
        pid = int(facts[1])


def _began(pid: int) -> str:
    facts = _facts(pid)
    return facts[19] if facts else ""


def _facts(pid: int) -> list[str]:
    """What the system says of a process, from its state on: proc(5) counts the state as the third."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return []
    # The name before it may hold anything, brackets and spaces too.
    return text.rpartition(b")")[2].decode("ascii", "replace").split()


def _environment(pid: int) -> dict[str, str]:
    """What a process was started with; nothing where the system does not say."""
    try:
        written = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    entries = (os.fsdecode(entry).partition("=") for entry in written.split(b"\0"))
    return {name: value for name, equals, value in entries if equals}
