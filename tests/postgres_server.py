"""A PostgreSQL server of the tests' own: in a temporary folder, on a free port of this machine, ended with them."""

import asyncio
import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import asyncpg
import pytest

# Debian keeps the programs of the server out of the way.
FOLDERS = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
PASSWORD = "correct-horse-battery-staple"

CONFIGURATION = """
listen_addresses = '127.0.0.1'
port = {port}
unix_socket_directories = '{folder}'
max_connections = 200
shared_buffers = 32MB
log_min_messages = warning
logging_collector = off
# Killing a server loses nothing that it handed to the system; only the power going does.
fsync = off
"""


@cache
def program(name: str) -> str | None:
    """Where a program of PostgreSQL is; None when it is not installed."""
    found = shutil.which(name, path=os.pathsep.join(map(str, FOLDERS)) + os.pathsep + os.environ.get("PATH", ""))
    return found if found is None else str(found)


class PostgresServer:
    """One server, which may be stopped in every way and started again."""

    def __init__(self, configuration: str = "") -> None:
        if program("initdb") is None:
            pytest.skip("PostgreSQL is not installed")  # ./test names it in its last lines.
        self.folder = Path(tempfile.mkdtemp(prefix="lastword-postgres-"))
        self.data = self.folder / "data"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._stores = 0
        self._user: dict[str, Any] = {}
        self.owner: tuple[int, int] | None = None
        if os.getuid() == 0:  # The server refuses root.
            entry = pwd.getpwnam("postgres")
            self.owner = (entry.pw_uid, entry.pw_gid)
            self._user = {"user": entry.pw_uid, "group": entry.pw_gid}
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self.run(
            "initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"
        )
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(CONFIGURATION.format(port=self.port, folder=self.folder) + configuration)
        atexit.register(self.remove)

    def run(self, name: str, *arguments: str) -> str:
        """Run a program of PostgreSQL, as the user that owns the server."""
        found = program(name)
        assert found is not None, name
        done = subprocess.run(
            [found, *arguments], capture_output=True, text=True, cwd=self.folder, check=False, **self._user
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        found = program("postgres")
        assert found is not None
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [found, "-D", str(self.data)],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._user,
            )
        in_thread(self._wait())

    async def _wait(self) -> None:
        async with asyncio.timeout(60):
            while True:
                assert self._process is not None
                assert self._process.poll() is None, self.log()
                try:
                    await (await asyncpg.connect(self.address)).close()
                    return
                except (OSError, asyncpg.CannotConnectNowError):
                    await asyncio.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Stop it. SIGQUIT is the hard way: nothing is finished, and the next start recovers from the log."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def new_store(self) -> str:
        """The address of a store that nobody has used."""
        self._stores += 1
        return f"{self.address}?store=team_{self._stores}"

    def new_database(self) -> str:
        """The address of a database where nobody else has a session."""
        self._stores += 1
        self.sql(f"CREATE DATABASE apart_{self._stores}")
        return f"{self.address.rpartition('/')[0]}/apart_{self._stores}"

    def sql(self, statement: str, *values: object) -> list[Any]:
        """Do something behind everybody's back, as the server's administrator."""

        async def work() -> list[Any]:
            connection = await asyncpg.connect(self.address)
            try:
                return [tuple(row) for row in await connection.fetch(statement, *values)]
            finally:
                await connection.close()

        return in_thread(work())

    def settle(self) -> None:
        """Wait until it is up for so long that a free lock means a dead owner."""
        self.sql(
            "SELECT pg_sleep(greatest(0, 5.1 - extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())))"
        )


def in_thread(work: Coroutine[Any, Any, Any]) -> Any:
    """Carry something out, also where a loop is running."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def schema_of(address: str) -> str:
    return address.partition("?store=")[2].partition("&")[0]


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@cache
def shared_server() -> PostgresServer:
    """The one that most tests share: a store each, and nobody stops it."""
    server = PostgresServer()
    server.start()
    return server
