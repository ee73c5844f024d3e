"""Started in front of every MCP server: ends it, and whatever it started, when lastword is gone.

`python -I -S watchdog.py FD PROGRAM ARG…`. FD is the end of a pipe whose other end lastword alone holds; when lastword
dies, however that happens, the system closes it. The server gets our standard input and output as they are. Of the
standard library alone, and run as a file, because every server waits for it.
"""

import os
import signal
import subprocess
import sys
import threading
import time

# How long the server may take to end by itself once it was told to.
GRACE_SECONDS = 2.0


def main() -> None:
    """Start the server, and wait until it ends or nobody is left who would talk to it."""
    lifeline, command = int(sys.argv[1]), sys.argv[2:]
    os.set_inheritable(lifeline, False)
    try:
        server = subprocess.Popen(command, executable=command[0])
    except OSError as problem:
        sys.stderr.write(f"{command[0]}: {problem.strerror}\n")
        os._exit(127)
    # What is sent to the whole group is for the server and its children; this one stays to see them gone.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(0)
    os.close(1)  # Whoever reads learns that the server is gone, and not that its watchdog is.

    def outlive() -> None:
        code = server.wait()
        _end_group()
        os._exit(code if code >= 0 else 128 - code)

    threading.Thread(target=outlive, daemon=True).start()
    while True:
        try:
            if not os.read(lifeline, 1):
                break
        except OSError:
            break
    _end_group()
    end = time.monotonic() + GRACE_SECONDS
    while server.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    os.killpg(0, signal.SIGKILL)


def _end_group() -> None:
    """Ask everything that the server started to end. Lastword made this group, so nobody else is in it."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGTERM)


if __name__ == "__main__":
    main()
