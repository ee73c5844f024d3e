"""A server made with the SDK: both eras of the protocol, over stdio and over HTTP."""

import importlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import lastword
from mcp_neighbour import Neighbour, until
from requirements import requirement
from warm import WarmProgram, warm_command

SERVER = str(Path(__file__).with_name("sdk_server.py"))
LOADS = ("uvicorn", "mcp.server.lowlevel", "mcp.server.stdio", "mcp.server.streamable_http_manager")


@pytest.fixture
def address() -> Iterator[str]:
    """A server that runs elsewhere."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = WarmProgram([SERVER, str(port)], Path("/"), os.environ, loads=LOADS)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                os.kill(server.pid, 0)  # It lives.
                time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.close()


@requirement("MCP-7", "MCP-8", "MCP-11")
async def test_a_server_of_the_newer_protocol_is_called_and_asks(tmp_path):
    """Its questions come as results that need input, and are the same cards. A structured value stays one."""
    command, *args = warm_command(f"--loads={','.join(LOADS)}", SERVER)
    shop = await Neighbour(tmp_path, command=command, args=args).trusted()
    asked = []

    def on_question(question):
        asked.append(question.message)
        return lastword.Given({"city": "Rome"})

    async with shop.session(on_question=on_question) as session:
        who = await session.call("shop__who")
        paid = await session.call("shop__pay", {"amount": 7})
        went = await session.call("shop__travel")
    assert who.value.startswith("2026-07-28")
    assert paid.value == {"amount": 7}
    assert went.value == "accept {'city': 'Rome'}"
    assert asked == ["The MCP server shop asks: “Where to?”\nYour answer goes to the MCP server shop."]


@requirement("MCP-1", "MCP-8", "MCP-10")
async def test_a_server_at_an_address_gets_its_own_secret_and_leaves_doubt_when_it_dies(tmp_path, address):
    """The header is expanded when it is contacted, and taken out of what comes back."""
    headers = {"Authorization": "Bearer ${SHOP_KEY}"}
    shop = Neighbour(tmp_path, command=None, args=[], url=address, headers=headers)
    shop.secrets.keep("SHOP_KEY", "hush-hush")
    await shop.trust()
    async with shop.session() as session:
        who = await session.call("shop__who")
        assert who.value.endswith("Bearer ${SHOP_KEY}")
        assert (await session.call("shop__pay", {"amount": 7})).value == {"amount": 7}
        assert (await session.call("shop__die")).kind == "outcome_unknown"
        assert (await session.call("shop__pay", {"amount": 7})).kind == "failed"


@requirement("MCP-8")
async def test_an_answer_over_http_that_is_too_large_is_not_read(tmp_path, address, monkeypatch):
    """Its size is bounded before anything of it is parsed."""
    shop = await Neighbour(tmp_path, command=None, args=[], url=address).trusted()
    monkeypatch.setattr(importlib.import_module("lastword.mcp.transports"), "MAX_ANSWER_BYTES", 300)
    with pytest.raises(lastword.LastWordError, match="cannot be reached"):
        await shop.trust()


@requirement("MCP-13")
async def test_no_server_outlives_us_when_we_are_killed(tmp_path):
    """Nobody can clean up after kill -9 but the system, and the keeper that it tells."""
    program = """
import asyncio, sys
from pathlib import Path
from mcp_neighbour import Neighbour, defined, opened
from lastword import UserAction
from lastword.testing import FixedApprover
async def main():
    shop = await Neighbour(Path(sys.argv[1]), defined("spawn")).trusted()
    session = await opened(shop.servers(), FixedApprover([UserAction(True, False)]))
    print((await session.call("shop__spawn")).value, flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    ours = WarmProgram(["-c", program, str(tmp_path)], tmp_path, os.environ, loads=["mcp_neighbour"])
    try:
        await until(ours.printed)
        pids = [int(pid) for pid in ours.printed().split()]
        assert len(pids) == 2
    finally:
        ours.close()
    await until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
