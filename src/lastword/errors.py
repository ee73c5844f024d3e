"""Every error lastword raises on purpose, in one tree.

    LastWordError
    ├── NotJSON               a value that JSON cannot hold, or that is too large or too deep
    ├── ManifestError         a tool's description is wrong; carries every problem at once
    ├── UnknownTool           no tool of that name
    ├── ArgumentsError        the arguments do not fit the tool; carries every problem at once
    ├── ToolLoadError         a tool's Python file could not be loaded or contradicts its manifest
    ├── ToolError             raised by a tool's author: its words go to the model as a failed call
    │   └── OutcomeUnknown    raised by a tool that cannot say whether it acted: the call is in doubt
    ├── QuestionError         a question of a running tool, or the answer to one, is not well formed
    ├── NotAllowedNow         a tool reached for an effect while it was only allowed to look
    ├── EditError             a change to a project's files was refused
    │   ├── PathRefused       the path leads, or could lead, out of the project
    │   ├── Conflict          the file changed since it was read
    │   ├── NotText           the file is binary, or not UTF-8
    │   ├── TooLarge          the file is larger than the editor takes
    │   └── PrivateFile       the file is private, and nobody was asked whether it may be looked at
    ├── StoreError            the memory could not be read or written
    │   ├── NewerStore        written by a later version of lastword
    │   ├── Overtaken         another process took over what this one was doing: it writes nothing more
    │   ├── MayNotForget      the role at the server may append, and not forget
    │   └── Tampered          the chain of events does not hold; names the first bad one
    ├── SessionError          a session or run was used in a way it cannot serve
    │   └── Detached          a question was left waiting, and nobody waits for it here any more
    ├── ConfigError           lastword.toml, the environment or a flag is wrong
    └── ScriptError           anything wrong with a NuwaScript (the classes are in script/tokens.py)

A refusal by a person, a timeout or a failing tool is an outcome and not an exception.

The shape, everywhere: place, fact, excerpt with a caret, hint.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class LastWordError(Exception):
    """The root. `str()` gives the whole text a person should read."""

    def __init__(
        self, fact: str, *, place: str | None = None, excerpt: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(fact)
        self.fact = fact
        self.place = place
        self.excerpt = excerpt
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"{self.place}: {self.fact}" if self.place else self.fact]
        if self.excerpt:
            lines.append(self.excerpt)
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class NotJSON(LastWordError):
    """A value that canonical JSON refuses."""


class Problem(LastWordError):
    """One of several things wrong with the same input; never raised alone."""


class _Several(LastWordError):
    """An error that reports everything wrong with one input in one pass."""

    def __init__(self, fact: str, problems: Iterable[Problem], *, hint: str | None = None) -> None:
        super().__init__(fact, hint=hint)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        parts = [self.fact] if self.fact else []
        parts += [str(problem) for problem in self.problems]
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class ManifestError(_Several):
    """A manifest with its problems, in the order of the file."""


class ArgumentsError(_Several):
    """Arguments that do not fit a tool, in words a model can repair from."""


class UnknownTool(LastWordError):
    """No tool of that name is registered."""


class ToolLoadError(LastWordError):
    """A tool's Python file failed to load, or registers what its manifest contradicts."""


class ToolError(LastWordError):
    """For tools to raise: the call failed, and these words are for the model and the person."""


class OutcomeUnknown(ToolError):
    """For tools to raise: it may have acted and may not have, as when a connection breaks after the request was sent.

    A call that needed a yes is then in doubt, exactly as after a crash: nothing runs it again by itself.
    """


class QuestionError(LastWordError):
    """A running tool asked with a form that cannot be shown, or was answered with something that is no answer."""


class NotAllowedNow(LastWordError):
    """A tool reached for an effect in a phase that may only look."""


class EditError(LastWordError):
    """A change to a project's files was refused; nothing was written."""

    def as_tool_error(self) -> ToolError:
        """The same as the result of a call: its words are for the model."""
        return ToolError(self.fact, place=self.place, excerpt=self.excerpt, hint=self.hint)


class PathRefused(EditError):
    """The path leads, or could lead, out of the project."""


class Conflict(EditError):
    """The file is not what it was when it was read."""


class NotText(EditError):
    """The file is binary, or not UTF-8."""


class TooLarge(EditError):
    """The file is larger than the editor takes."""


class PrivateFile(EditError):
    """The file is private, and what is in it is nobody's business before a person said so."""


class StoreError(LastWordError):
    """The memory could not be read or written."""


class NewerStore(StoreError):
    """The database was written by a later version of lastword."""


class Overtaken(StoreError):
    """This process was taken for dead, and another took over what it was doing. It writes nothing more."""


class MayNotForget(StoreError):
    """Whoever comes to the server with this role may read and append. Forgetting is another's."""


class Tampered(StoreError):
    """The chain of events does not hold."""


class SessionError(LastWordError):
    """A session or a run was used in a way it cannot serve."""


class Detached(SessionError):
    """Nobody waits for the answer here any more. The question itself goes on waiting."""


class ConfigError(LastWordError):
    """lastword.toml, the environment or a flag is wrong."""


class ScriptError(LastWordError):
    """Anything wrong with a NuwaScript."""


# Nobody meant a name longer than this, and comparing names costs the product of their lengths.
MAX_GUESSED = 200


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint with the nearest known name, or None when nothing is near."""
    known = list(known)
    if len(name) > MAX_GUESSED:
        return None
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    if not near:
        folded = {k.casefold(): k for k in known}
        near = [folded[name.casefold()]] if name.casefold() in folded else []
    return f"did you mean {near[0]}?" if near else None


def caret_excerpt(line: str, column: int, width: int = 1) -> str:
    """The source line with carets below; column is 1-based. Tabs keep their width."""
    lead = "".join("\t" if c == "\t" else " " for c in line[: column - 1])
    return f"  {line}\n  {lead}{'^' * max(1, width)}"
