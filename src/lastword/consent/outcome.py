"""What happened to a call, the words for it, and what it gave beside its value.

Kinds are distinct on purpose: a model that was denied must not retry, one that sent bad arguments should, and nobody
may mistake a timeout for a refusal.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from lastword import values
from lastword.tools import content

if TYPE_CHECKING:
    from lastword.consent.call import Call

Kind = Literal[
    "succeeded",
    "failed",
    "raised",
    "invalid_arguments",
    "unknown_tool",
    "denied",
    "no_approver",
    "expired",
    "stale",
    "refused",
    "cancelled",
    "timed_out",
    "outcome_unknown",
    "handed_over",
]
Approval = Literal["not_needed", "person", "auto", "waived", "rule", "grant", "none"]

# A name is a part of a line, and of a path. Most file systems take 255 bytes, and a character has up to four.
MAX_NAME = 60
# A sentence or two. What needs more is a text.
MAX_ALT = 300
# Larger results drown the conversation; the tool should write a file and name it.
MAX_MESSAGE = 100_000
# The files that are named where a sentence is about all of them.
MAX_NAMED = 20


class Kept(msgspec.Struct, frozen=True):
    """One block of a result."""

    kind: content.BlockKind
    """What it is by its bytes, whatever its tool called it."""
    digest: str
    """SHA-256 of the bytes, in hexadecimal."""
    media_type: str
    size: int
    name: str
    """Safe as the name of a file, and as a part of a line."""
    alt: str = ""

    def __str__(self) -> str:
        """For people and models that get no more than words."""
        about = f": {self.alt}" if self.alt else ""
        return (
            f"[{self.kind} {self.name}, {self.media_type}, {self.size_in_words(self.size)}, kept for the person{about}]"
        )

    @staticmethod
    def in_words(kept: Iterable[Kept]) -> str:
        """All that was kept but the texts, which are read where they stand, a line each."""
        return "\n".join(str(block) for block in kept if block.kind != "text")

    @staticmethod
    def clean_name(name: str | None, kind: content.BlockKind, media_type: str) -> str:
        """A name without a path, what cannot be seen, and what a shell or a disk takes for something else.

        It may come from a model by way of a tool: `../../.bashrc`, or a line break and a sentence in our voice.
        """
        last = re.split(r"[/\\]", name or "")[-1]
        seen = "".join(char for char in last if unicodedata.category(char)[0] not in "CZ" or char == " ")
        plain = re.sub(r'[<>:"|?*\[\]\x00-\x1f]', "_", " ".join(seen.split())).strip(". -~")
        if not plain:
            return kind + content.extension_of(media_type)
        if len(plain) <= MAX_NAME:
            return plain
        stem, dot, ending = plain.rpartition(".")
        return f"{stem[: MAX_NAME - 11]}.{ending[:10]}" if dot and stem else plain[:MAX_NAME]

    @staticmethod
    def clean_alt(text: str) -> str:
        """One line of what can be seen. It stands between brackets of ours, and cannot close them."""
        seen = "".join(char if unicodedata.category(char)[0] != "C" else " " for char in text[: 2 * MAX_ALT])
        line = " ".join(seen.split()).replace("[", "(").replace("]", ")")
        return line if len(line) <= MAX_ALT else f"{line[: MAX_ALT - 1]}…"

    @staticmethod
    def size_in_words(size: int) -> str:
        """So many bytes, short."""
        if size < 1000:
            return f"{size} {'byte' if size == 1 else 'bytes'}"
        number, unit = (size / 1e3, "KB") if size < 999_500 else (size / 1e6, "MB")
        return f"{number:.1f} {unit}" if number < 10 and unit == "MB" else f"{number:.0f} {unit}"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The end of one call."""

    STOPPED: ClassVar = "everything was stopped"
    """Why what waited was denied, when somebody stopped everything."""
    IN_A_WORD: ClassVar[dict[Kind, str]] = {
        "succeeded": "done",
        "failed": "failed",
        "raised": "failed",
        "invalid_arguments": "wrong arguments",
        "unknown_tool": "no such tool",
        "denied": "not allowed",
        "no_approver": "nobody to ask",
        "expired": "nobody answered",
        "stale": "out of date",
        "refused": "no card",
        "cancelled": "cancelled",
        "timed_out": "took too long",
        "outcome_unknown": "outcome unknown",
        "handed_over": "handed over",
    }
    """For people who look at a list of calls."""
    kind: Kind
    message: str
    call_id: str
    tool: str
    value: Any = None
    gave_value: bool = False
    """Whether the tool returned a value of its own, rather than `{success, message}`."""
    content: tuple[Kept, ...] = ()
    """Images, audio, files and texts that the tool returned beside its value. `Session.content` has their bytes."""
    approval: Approval = "none"
    arguments: Any = None
    """What really ran, when a person changed it."""
    changed: tuple[str, ...] = ()
    """The files it changed, which an undo of the call restores."""
    still_acts: bool = False
    """Whether its code goes on although the call is over."""
    overstepped: str | None = None
    """What its code tried to do although the answer was no. It was stopped."""
    after_no: dict[str, Any] | None = None
    """What the tool itself returned when it heard the no: `{success, message}`. For its author's tests."""

    @property
    def success(self) -> bool:
        return self.kind == "succeeded"

    def result(self) -> dict[str, Any]:
        """What the model is given: `{success, message}`."""
        return {"success": self.success, "message": self.message}

    @classmethod
    def handed_over(cls, call: Call, to: str, approval: Any, not_asked: str = "") -> Outcome:
        """The end of a call that another program carries out: its value is the arguments that were agreed to."""
        words, agreed = handed_over(call.tool, to, not_asked), values.decode(call.arguments)
        kept: dict[str, Any] = {"value": agreed, "gave_value": True, "approval": approval}
        return cls(kind="handed_over", message=words, call_id=call.id, tool=call.tool, **kept)


def cut(message: str) -> str:
    """A result of bearable length, which says what was cut."""
    if len(message) <= MAX_MESSAGE:
        return message
    return (
        f"{message[:MAX_MESSAGE]}\n[cut here: {MAX_MESSAGE} of {len(message)} characters. "
        "Ask for less, or for a part at a time.]"
    )


# A fact and no command: a small model tells the person what it has read last, and "do not ask again" is not for them.
_SETTLED = "That settles it, unless they ask for it again."


def denied(tool: str, reason: str | None, own_words: str | None, *, closed: bool, by: str = "the person") -> str:
    """A person said no, or closed the question. The tool may have words of its own for it."""
    first = f"{tool} was not run: {by} {'closed the question without answering' if closed else 'denied it'}."
    parts = [first]
    if reason:
        parts.append(f"Their reason: {reason}")
    if own_words:
        parts.append(own_words)
    parts.append(_SETTLED)
    return "\n".join(parts)


def denied_with_the_rest(tool: str) -> str:
    """A person said no to whatever else the script would ask for."""
    return f"{tool} was not run: the person denied the rest of this script. {_SETTLED}"


def denied_by_rule(tool: str, rule: str) -> str:
    """A policy file says no."""
    return f"{tool} was not run: the rule {rule} denies it. Asking again changes nothing while that rule stands."


def denied_before(tool: str) -> str:
    """A person said no to the very same call a moment ago."""
    return f"{tool} was not run: the person has just denied exactly this. {_SETTLED}"


def overstepped(tool: str, what: str) -> str:
    """In the place of a tool's own words, when it tried to act all the same."""
    return f"(A bug in {tool}: it tried to {what} although it was denied. It was stopped.)"


def no_approver(tool: str, why: str) -> str:
    return f"{tool} was not run: it needs a person's approval, and {why}. Nothing was done. This is not a refusal."


def expired(tool: str, seconds: float) -> str:
    return f"{tool} was not run: nobody answered within {seconds:g} seconds. Nothing was done. This is not a refusal."


def stale(tool: str, why: str, times: int) -> str:
    return (
        f"{tool} was not run: the approval no longer fitted what would have happened ({why}), {times} times in a row. "
        "Nothing was done. Look at the current state, then ask again."
    )


def refused(tool: str, why: str) -> str:
    return (
        f"{tool} was not run: its request for approval could not be shown ({why}). Nobody was asked and nothing was "
        "done. This is a fault of the tool; its author must mend it."
    )


def cancelled(tool: str, partial: str | None, by: str) -> str:
    if partial:
        return f"{tool} was cancelled by {by} while it ran. What it had by then:\n{partial}"
    return f"{tool} was cancelled by {by} while it ran. What it had done by then stays done."


def called_off(tool: str, by: str) -> str:
    """Cancelled after the yes, and before the tool's code began."""
    return f"{tool} was cancelled by {by} before it ran. Nothing was done."


def abandoned(tool: str) -> str:
    return f"{tool} was cancelled: the program that asked for it stopped waiting. What it had done by then stays done."


def still_acts(tool: str, partial: str | None, seconds: float | None, by: str) -> str:
    """It was told to stop, and does not."""
    why = f"was cancelled by {by}" if seconds is None else f"did not finish within {seconds:g} seconds"
    words = (
        f"{tool} {why}, but its code still runs and may still act: how it will end is not known. "
        "Do not repeat it; a person has to look."
    )
    return f"{words} What it had by then:\n{partial}" if partial else words


def left_behind(tool: str) -> str:
    """The same, when the program that asked stopped waiting."""
    return (
        f"The program that asked for {tool} stopped waiting, but its code still runs and may still act: how it will "
        "end is not known. Do not repeat it; a person has to look."
    )


def timed_out(tool: str, seconds: float) -> str:
    return f"{tool} did not finish within {seconds:g} seconds and was stopped. It may have done part of it."


def handed_over(tool: str, to: str, not_asked: str = "") -> str:
    """A person allowed what another program carries out, or what stands for them did, and then it says so. What becomes
    of it there, that program alone knows."""
    words = f"{tool} was allowed and handed over to {to}, which carries it out itself. lastword did not run it."
    return f"{words} Not asked: {not_asked}." if not_asked else words


def raised(tool: str, problem: BaseException, call_id: str) -> str:
    advice = ""
    if isinstance(problem, FileNotFoundError):
        advice = " Something it needed was not found: check names and paths."
    elif isinstance(problem, PermissionError):
        advice = " It lacks a permission: ask the person to grant it."
    elif isinstance(problem, (ConnectionError, TimeoutError)):
        advice = " What it talks to did not answer: try again later."
    return (
        f"{tool} stopped with an error ({type(problem).__name__}).{advice} The details are in the log, call {call_id}."
    )


def edited(tool: str, arguments: str) -> str:
    """Put before the result when a person changed the arguments."""
    return f"The person changed the arguments of {tool} before approving. What ran: {arguments}"


def edited_in_private(tool: str, path: str) -> str:
    """The same, when what the person wrote is what a private file now holds."""
    return f"The person changed the arguments of {tool} before approving. What ran is not told: {path} is private."


def changed_before(paths: Sequence[str]) -> str:
    """Put after the words for a call that did not succeed, and had changed files by then."""
    named = ", ".join(paths[:MAX_NAMED]) + (f" and {len(paths) - MAX_NAMED} more" if len(paths) > MAX_NAMED else "")
    return f"By then it had changed {named}. That stays changed, unless a person undoes this call."


def unknown(tool: str) -> str:
    return (
        f"It is not known whether {tool} was carried out: the program stopped while it ran. "
        "Do not repeat it; a person has to look."
    )


def still_running(tool: str) -> str:
    return f"{tool} is still being carried out by another program. Do not repeat it; wait for that program."


def unwritten(tool: str, why: str, call_id: str) -> str:
    """It ran, and the journal does not know how it ended."""
    return (
        f"{tool} ran, but how it ended could not be written down ({why}), so it counts as not known. "
        f"Do not repeat it; a person has to look: lastword resolve {call_id}"
    )


def said_unknown(tool: str, why: str, call_id: str) -> str:
    """The tool itself says that it does not know."""
    return (
        f"It is not known whether {tool} was carried out: {why.rstrip('.')}. "
        f"Do not repeat it; a person has to look: lastword resolve {call_id}"
    )


def taken_as_done(tool: str, by: str) -> str:
    return (
        f"The program stopped while {tool} ran. {_at_the_start(by)} looked afterwards and says that it was carried out."
    )


def _at_the_start(by: str) -> str:
    """A name as a sentence begins with it."""
    return by[:1].upper() + by[1:]


def given_up(tool: str, by: str) -> str:
    return f"The program stopped while {tool} ran. Whether it was carried out is not known, and {by} gave it up."


def taken_back(tool: str, paths: Sequence[str], renames: Mapping[str, str]) -> str:
    """What an undo did, for whoever asked for it. `renames` has the old name for each new one: two paths, one file."""
    if not paths:
        return f"{tool} had changed nothing yet, so there was nothing to restore."
    back = {renames[path]: path for path in paths if renames.get(path) in paths}
    files = [path for path in paths if path not in back.values()]
    if len(files) == 1:
        only = files[0]
        if only in back:
            return f"Took back {tool}: {back[only]} is called {only} again."
        return f"Took back {tool}: {only} is as it was before."
    lines = [f"  {path} (renamed back from {back[path]})" if path in back else f"  {path}" for path in files]
    return "\n".join([f"Took back {tool}: {len(files)} files are as they were before.", *lines])


def taken_back_in_doubt(tool: str, by: str, paths: Sequence[str]) -> str:
    """The same for whoever asked for the call, and never heard how it ended."""
    found = f"restored {', '.join(paths)}" if paths else "found that no file had been changed"
    return f"The program stopped while {tool} ran. {_at_the_start(by)} took it back afterwards and {found}."
