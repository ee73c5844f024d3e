"""Where the program writes what went wrong inside it. One place sets it up, for every command.

    nothing asked for     warnings and errors, on standard error
    --verbose             everything, there
    LASTWORD_LOG=LEVEL    debug, info, warning or error and what is worse, there
    LASTWORD_LOG=FILE     everything, at the end of that file

A chat owns its screen: a line in the middle of a card could be taken for a part of it. What would go to standard error
goes to a file in the data folder then; where that file cannot be written, the line is dropped. A server whose standard
error is no terminal writes one JSON object a line there, between those of its requests.

What does not live here: the line for each request (server/middleware.py), and what is remembered (journal/). Whoever
imports lastword into a program of their own sets up the logger `lastword` as they like.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from contextlib import suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path

from lastword import values
from lastword.display import visible
from lastword.errors import ConfigError, LastWordError, did_you_mean

VARIABLE = "LASTWORD_LOG"
LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

# The command line tells a person in a sentence of its own what it failed of.
COMMAND_LINE = "lastword.cli"

# A file that nobody looks at must not grow for ever. Beyond this it is put aside, and the one put aside before is gone.
MAX_FILE_BYTES = 5_000_000
# Of errors that came one from another, the last so many.
MAX_CHAIN = 10


class Log:
    """The log of one command. Nothing is set up before `open`."""

    def __init__(self) -> None:
        self.file: Path | None = None
        """Where it is, when it is not on standard error."""
        self._handler: logging.Handler | None = None
        self._level_before = logging.NOTSET

    def open(
        self, *, verbose: bool, wanted: str = "", screen_file: Path | None = None, is_server: bool = False
    ) -> None:
        """Set it up. `wanted` is what LASTWORD_LOG says; `screen_file` is for a command that owns the screen."""
        level, named = _read(wanted)
        is_asked_for = verbose or bool(wanted)
        self.file = named or screen_file
        handler: logging.Handler
        if self.file is not None:
            handler = _PrivateFile(self.file, at_once=named is not None)
            handler.setFormatter(_Words("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        else:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(_Lines() if is_server and not sys.stderr.isatty() else _Words("%(message)s"))
            if not is_asked_for:
                handler.addFilter(lambda record: record.name != COMMAND_LINE)
        own = logging.getLogger("lastword")
        self._level_before = own.level
        if verbose or named is not None:
            own.setLevel(logging.DEBUG)
        elif level is not None:
            own.setLevel(level)
        # At the root, so that no library finds itself without a handler and writes to standard error by itself.
        logging.getLogger().addHandler(handler)
        self._handler = handler

    def close(self) -> None:
        """Write nothing any more."""
        if self._handler is not None:
            logging.getLogger().removeHandler(self._handler)
            logging.getLogger("lastword").setLevel(self._level_before)
            self._handler.close()
            self._handler = None


def trouble(what: str, problem: BaseException) -> str:
    """Log a problem with its traceback; gives back what to say of it. `what` says what does not work because of it."""
    id = values.new_id(8)[8:]  # Random, and short enough to be read aloud.
    logging.getLogger("lastword").error("%s: %s", id, what, exc_info=problem)
    # The text of an error that is not ours may hold anything, and means nothing in a conversation.
    words = f": {visible(str(problem))}" if isinstance(problem, LastWordError) else "."
    return f"{what} ({id} in the log){words}".replace("\n", " ")


def traceback_of(problem: BaseException) -> str:
    """Where an error comes from, without its text, for a log that others may read.

    The text of an error that nobody foresaw may hold anything, also a key or a token. Ours are made for people.
    """
    chain = [problem]
    while len(chain) < MAX_CHAIN:
        last = chain[-1]
        before = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if before is None:
            break
        chain.append(before)
    return "\n\nThen:\n\n".join(map(_one_traceback, reversed(chain)))


def _one_traceback(problem: BaseException) -> str:
    words = str(problem) if isinstance(problem, LastWordError) else ""
    frames = "".join(traceback.format_tb(problem.__traceback__))
    return f"Traceback (most recent call last):\n{frames}{type(problem).__qualname__}{': ' if words else ''}{words}"


def _read(wanted: str) -> tuple[int | None, Path | None]:
    """The level or the file that the variable names."""
    if not wanted or wanted.lower() in LEVELS:
        return LEVELS.get(wanted.lower()), None
    if not any(mark in wanted for mark in "./~"):
        hint = did_you_mean(wanted.lower(), LEVELS) or f"the levels are {', '.join(LEVELS)}; write a file as ./{wanted}"
        raise ConfigError(f"{wanted!r} is neither a level nor a file", place=VARIABLE, hint=hint)
    return None, Path(wanted).expanduser()


class _PrivateFile(logging.FileHandler):
    """A file that only its owner can read. One that somebody named is opened at once, so that they hear of mistakes;
    the usual one is made, with its folder, when there is something to write."""

    def __init__(self, file: Path, *, at_once: bool) -> None:
        super().__init__(file, encoding="utf-8", errors="backslashreplace", delay=True)
        self._makes_folder = not at_once
        if at_once:
            try:
                self.stream = self._open()
            except OSError as problem:
                raise ConfigError(f"cannot be written: {problem.strerror}", place=f"{VARIABLE}={file}") from None

    def _open(self) -> TextIOWrapper:
        file = Path(self.baseFilename)
        for missing in reversed([folder for folder in file.parents if self._makes_folder and not folder.exists()]):
            missing.mkdir(mode=0o700, exist_ok=True)
        if file.is_file() and file.stat().st_size > MAX_FILE_BYTES:
            file.replace(f"{file}.1")
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return open(descriptor, "a", encoding=self.encoding, errors=self.errors)

    def emit(self, record: logging.LogRecord) -> None:
        # A log that cannot be written must not stop what it is the log of.
        with suppress(OSError):
            super().emit(record)

    def close(self) -> None:
        with suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:
        """The usual way is a traceback on standard error, which is the screen that this file keeps clean."""


class _Words(logging.Formatter):
    """For people. Tools and models choose some of the words, and do not get to steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


class _Lines(logging.Formatter):
    """For programs: one JSON object a line, like those of the requests."""

    def format(self, record: logging.LogRecord) -> str:
        problem = record.exc_info[1] if record.exc_info else None
        at = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
        line = {
            "event": "log",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "traceback": traceback_of(problem) if problem is not None else None,
            "at": at,
        }
        return json.dumps(line)
