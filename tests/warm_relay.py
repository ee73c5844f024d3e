"""How a program that starts warm (warm.py) is asked for; as a program, one that is it for whoever started this one.

`warm_relay.py ADDRESS WORDS`: what has been started hands its own descriptors on, and ends as the other one does. With
`--loads=MODULES` first it is `python WORDS`.
"""

import json
import os
import signal
import socket
import sys


def ask(address, asked, fds):
    """The line to a fork that becomes what was asked for, with these descriptors. It ends with this line."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(address)
    data = json.dumps(asked).encode()
    whole = len(data).to_bytes(8, "big") + data
    line.sendall(whole[socket.send_fds(line, [whole], fds) :])
    return line


def told(line):
    """First the number of the process, then how it ended: its exit code, or below zero the signal."""
    number = line.recv(8, socket.MSG_WAITALL)
    assert len(number) == 8, "the program that all others are forks of is gone"
    return int.from_bytes(number, "big", signed=True)


def main():
    asked = {"words": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ)}
    if sys.argv[2].startswith("--loads="):
        asked |= {"words": sys.argv[3:], "loads": sys.argv[2].removeprefix("--loads=").split(",")}
    line = ask(sys.argv[1], asked, [0, 1, 2])
    pid = told(line)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH):
        signal.signal(number, lambda number, frame: os.kill(pid, number))
    code = told(line)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
