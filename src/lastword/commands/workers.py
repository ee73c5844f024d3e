"""`lastword serve --workers N`: several processes behind one port and one store.

The first process binds the port, starts the others and looks after them; it answers nobody itself. Whoever of them is
free takes the next connection. They share nothing but the store, so a turn can go on at any of them. One that dies is
replaced; one that ends with an error ends all, since the next would end so too.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType

from lastword.cli import DONE, FAILED, WRONG_USAGE, complain
from lastword.errors import ConfigError, LastWordError

# A worker that dies again and again should not keep a machine busy with starting it.
PAUSE_SECONDS = 0.5

MAX_WORKERS = 64

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Workers:
    """The processes that serve, seen from the one that started them."""

    def __init__(self, sock: socket.socket, serve: Callable[[socket.socket, int, int], int]) -> None:
        self._socket = sock
        self._serve = serve
        self._numbers: dict[int, int] = {}  # By process.
        self._is_ending = False
        # Its other end is open in this process alone: when that dies, however it does, every worker notices.
        self._lifeline, self._alive = os.pipe()

    def run(self, count: int) -> int:
        """Serve with so many until a signal, or until one ends with an error. The exit code for all."""
        before = {number: signal.signal(number, self._end) for number in SIGNALS}
        code = DONE
        try:
            for number in range(count):
                self._start(number)
            while self._numbers:
                ended, status = os.wait()
                number = self._numbers.pop(ended)
                if os.WIFSIGNALED(status) and not self._is_ending:
                    time.sleep(PAUSE_SECONDS)
                    self._start(number)
                elif not self._is_ending:
                    code = os.waitstatus_to_exitcode(status)
                    self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return code

    def _start(self, number: int) -> None:
        # A signal between the fork and what follows it would miss the new process, or run our handler in it.
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            if self._is_ending:
                return
            # Nothing has threads or a loop yet, so a copy of this process is a whole one.
            child = os.fork()
            if child:
                self._numbers[child] = number
                return
            for known in SIGNALS:
                signal.signal(known, signal.SIG_DFL)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        code = FAILED
        try:
            os.close(self._alive)
            code = self._serve(self._socket, number, self._lifeline)
        except LastWordError as problem:
            complain(str(problem))
            code = WRONG_USAGE if isinstance(problem, ConfigError) else FAILED
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _end(self, number: int = 0, frame: FrameType | None = None) -> None:
        self._is_ending = True
        for child in list(self._numbers):
            os.kill(child, signal.SIGTERM)
