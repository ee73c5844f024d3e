"""The ways to a server: a process that we start, with a message in each line of its pipes; or HTTP, within limits.

The SDK has a transport over pipes. This one is ours for three things: what is longer than a message may be is not read
into memory, what the server complains of is kept apart from the person's screen, and no process is left behind,
whatever becomes of ours (watchdog.py).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastword.lazily import brought_by

if TYPE_CHECKING:
    from lastword.mcp.secrets import UsedSecrets
    from lastword.mcp.server_trust import Launch

with brought_by("mcp", "mcp", "mcp_types", "anyio", "httpx2"):
    import anyio
    import httpx2
    import mcp_types as types
    from mcp.shared.message import SessionMessage

log = logging.getLogger("lastword.mcp")

CONNECT_SECONDS = 30.0
# Of a whole answer over HTTP, before anything of it is parsed.
MAX_ANSWER_BYTES = 40 * 2**20

# The largest result that may be kept, as base64 and with room around it.
MAX_LINE_BYTES = 40 * 2**20
# Some servers print what was meant for people. One that only does so is not a server.
MAX_EMPTY_LINES = 100_000
EMPTY_LINES_AT_ONCE = 100
# Of what a server complains of, the end is kept.
MAX_COMPLAINT = 4_000
# A server whose input is closed ends by itself; one that does not is made to.
END_SECONDS = 2.0
KILL_SECONDS = 5.0
_WATCHDOG = Path(__file__).with_name("watchdog.py")


class Complaints:
    """The last that a server wrote on its standard error, without the secrets that it was given."""

    def __init__(self, used: UsedSecrets) -> None:
        self._used = used
        self._kept = b""

    def add(self, data: bytes) -> None:
        self._kept = (self._kept + data)[-MAX_COMPLAINT:]

    @property
    def text(self) -> str:
        return self._used.hide(self._kept.decode("utf-8", "replace")).strip()


@asynccontextmanager
async def pipes(
    launch: Launch, env: dict[str, str], complaints: Complaints, on_end: Callable[[str], None]
) -> AsyncIterator[Any]:
    """Start a server and give the two streams that the SDK's client takes. `on_end` hears why nothing more comes."""
    assert launch.program is not None
    lifeline, ours = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            "-S",
            str(_WATCHDOG),
            str(lifeline),
            launch.program,
            *launch.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            cwd=launch.folder,
            start_new_session=True,
            pass_fds=[lifeline],
            limit=MAX_LINE_BYTES,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(lifeline)
    heard, to_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_client, said = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read(process, heard, on_end)),
        asyncio.create_task(_write(process, said)),
        asyncio.create_task(_listen(process, complaints)),
    ]
    try:
        yield to_client, from_client
    finally:
        await _quietly(_end(process, ours, tasks))
        for stream in (heard, to_client, from_client, said):
            stream.close()


async def _read(process: asyncio.subprocess.Process, heard: Any, on_end: Callable[[str], None]) -> None:
    assert process.stdout is not None
    why, empty = "it ended", 0
    async with heard:
        while True:
            try:
                line = await process.stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                break
            except (asyncio.LimitOverrunError, ValueError):
                why = f"it sent a message of more than {MAX_LINE_BYTES // 2**20} MB"
                break
            except OSError as problem:
                why = f"its output broke off ({problem.strerror})"
                break
            message: SessionMessage | Exception
            try:
                message = SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValueError:
                log.debug("a line that is no message")
                empty += 1
                if empty > MAX_EMPTY_LINES:
                    why = f"it sent {MAX_EMPTY_LINES:,} lines that are no messages, and nothing between them"
                    break
                if empty % EMPTY_LINES_AT_ONCE == 0:
                    await asyncio.sleep(0)  # Lines that are there already are read without a pause for anybody else.
                continue
            empty = 0
            try:
                await heard.send(message)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                return
        on_end(why)  # Before its end is heard by those who wait for answers: it tells them why.


async def _write(process: asyncio.subprocess.Process, said: Any) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # Whoever reads from it sees that the server is gone.
        async with said:
            async for message in said:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()


async def _listen(process: asyncio.subprocess.Process, complaints: Complaints) -> None:
    assert process.stderr is not None
    while data := await process.stderr.read(65_536):
        complaints.add(data)


async def _end(process: asyncio.subprocess.Process, lifeline: int, tasks: list[asyncio.Task[None]]) -> None:
    """Close its input, give it a moment, and have the watchdog end whatever is left of it."""
    assert process.stdin is not None
    for task in tasks[:2]:
        task.cancel()
    process.stdin.close()
    ending = asyncio.create_task(process.wait())
    drained = [asyncio.create_task(_drain(process))]
    await asyncio.wait({ending}, timeout=END_SECONDS)
    os.close(lifeline)
    if not ending.done():
        await asyncio.wait({ending}, timeout=KILL_SECONDS)
    if not ending.done():
        with suppress(ProcessLookupError):
            process.kill()
        await asyncio.wait({ending}, timeout=KILL_SECONDS)
    left: list[asyncio.Task[Any]] = [*tasks, *drained, ending]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _drain(process: asyncio.subprocess.Process) -> None:
    """A server that is stuck writing could not see that its input was closed."""
    assert process.stdout is not None
    with suppress(Exception):
        while await process.stdout.read(65_536):
            pass


async def _quietly(work: Any) -> None:
    """See something through although whoever waits for it is told to stop: a process must not be left behind."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as told:
            cancelled = told
        except Exception:
            log.exception("a server could not be ended as it should")
    if cancelled is not None:
        raise cancelled


@asynccontextmanager
async def http_client(headers: dict[str, str]) -> AsyncIterator[httpx2.AsyncClient]:
    """A client that gives up on an answer that is larger than any may be, before it is parsed."""
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    hooks = {"response": [_bounded]}
    async with httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks, trust_env=False) as client:
        yield client


async def _bounded(response: httpx2.Response) -> None:
    stated = response.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > MAX_ANSWER_BYTES:
        raise httpx2.DecodingError(f"an answer of {int(stated):,} bytes", request=response.request)
    if not response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        response.stream = _Bounded(response.stream)  # A stream lasts for as long as we do; the SDK bounds its events.


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, as long as there are not too many."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        seen = 0
        async for chunk in self._inner:
            seen += len(chunk)
            if seen > MAX_ANSWER_BYTES:
                raise httpx2.DecodingError(f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
