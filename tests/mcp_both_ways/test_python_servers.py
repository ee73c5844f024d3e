"""The servers that people run, in Python: time, git and SQLite. The last one speaks the older protocol alone."""

import asyncio
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from real_servers import CHECKS

from lastword import ApprovalRequest, UserAction
from lastword.call import wait_for_answer
from lastword.mcp.configured_servers import Inspection
from lastword.mcp.server_trust import launch_of
from lastword.testing import FixedApprover
from mcp_neighbour import Neighbour
from requirements import requirement

pytestmark = pytest.mark.long


def behind(folder: Path, program: str, *args: str, older: bool = False) -> Neighbour:
    """A server of theirs, named `shop`."""
    command = str(CHECKS / ("older" if older else "python") / "bin" / program)
    return Neighbour(folder, command=command, args=list(args))


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    return subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True, text=True).stdout


async def deny_or(session: Any, tool: str, arguments: dict[str, Any], answer: Any) -> Any:
    """Call a tool and answer its card, having looked at it."""
    calling = asyncio.create_task(session.call(tool, arguments, call_id=f"{tool} {sorted(arguments.items())}"))
    card = await session.card_for(f"{tool} {sorted(arguments.items())}")
    assert isinstance(card, ApprovalRequest), card
    assert "of the MCP server shop" in card.manifest.display_name
    assert card.arguments == arguments
    session.answer(card.call_id, answer(card))
    return await calling


@requirement("MCP-6", "MCP-7")
async def test_the_time_server_tells_the_time_once_somebody_allowed_it(tmp_path):
    """It says of itself that it only reads; its card asks all the same, and a no never reaches it."""
    shop = behind(tmp_path, "mcp-server-time", "--local-timezone", "Europe/Rome")
    await shop.trust()
    noon = {"source_timezone": "Europe/Rome", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    async with shop.session(wait_for_answer) as session:
        told = await deny_or(session, "shop__convert_time", noon, ApprovalRequest.allow)
        assert told.success, told.message
        assert "Asia/Tokyo" in told.message
        denied = await deny_or(session, "shop__convert_time", noon | {"time": "13:00"}, ApprovalRequest.deny)
        assert denied.kind == "denied"
        wrong = await session.call("shop__convert_time", {"time": 12})
        assert wrong.kind == "invalid_arguments"
        nowhere = await deny_or(session, "shop__get_current_time", {"timezone": "Moon/Sea"}, ApprovalRequest.allow)
        assert nowhere.kind == "failed"
        assert "the MCP server shop" in nowhere.message


@requirement("MCP-6", "MCP-8")
async def test_the_git_server_commits_what_was_allowed_as_it_was_edited(tmp_path):
    """A commit that was denied is not there; one that was edited has the person's words."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "--quiet")
    for key, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        git(repo, "config", key, value)
    (repo / "a.txt").write_text("one\n")
    git(repo, "add", "a.txt")
    shop = behind(tmp_path, "mcp-server-git", "--repository", str(repo))
    await shop.trust()
    call = {"repo_path": str(repo), "message": "Model's words"}
    edited = UserAction(True, False, arguments=call | {"message": "Ann's words"})
    approver = FixedApprover([UserAction(False, True), edited, UserAction(True, False), UserAction(True, False)])
    async with shop.session(approver) as session:
        assert (await session.call("shop__git_commit", call)).kind == "denied"
        assert git(repo, "rev-list", "--all") == ""
        done = await session.call("shop__git_commit", call)
        assert done.success, done.message
        assert git(repo, "log", "--format=%s").split("\n") == ["Ann's words", ""]
        log = await session.call("shop__git_log", {"repo_path": str(repo), "max_count": 1})
        assert "Ann's words" in log.message
        outside = await session.call("shop__git_status", {"repo_path": str(tmp_path)})
        assert outside.kind == "failed"


@requirement("MCP-3", "MCP-6", "MCP-8")
async def test_the_sqlite_server_writes_what_was_allowed_and_stays_trusted_by_its_work(tmp_path):
    """It speaks the older protocol. The database among its arguments changes with each call, and counts for nothing."""
    file = tmp_path / "orders.db"
    with sqlite3.connect(file) as base:
        base.execute("CREATE TABLE orders (name TEXT)")
    base.close()
    shop = behind(tmp_path, "mcp-server-sqlite", "--db-path", str(file), older=True)
    await shop.trust()
    insert = {"query": "INSERT INTO orders VALUES ('boat')"}
    edited = UserAction(True, False, arguments={"query": "INSERT INTO orders VALUES ('oar')"})
    approver = FixedApprover([UserAction(False, True), UserAction(True, False), edited] + [UserAction(True, False)] * 2)

    def rows() -> list[str]:
        base = sqlite3.connect(file)
        try:
            return [name for (name,) in base.execute("SELECT name FROM orders ORDER BY rowid")]
        finally:
            base.close()

    async with shop.session(approver) as session:
        assert (await session.call("shop__write_query", insert)).kind == "denied"
        assert rows() == []
        assert (await session.call("shop__write_query", insert)).success
        assert (await session.call("shop__write_query", insert)).success
        assert rows() == ["boat", "oar"]
        read = await session.call("shop__read_query", {"query": "SELECT name FROM orders"})
        assert "oar" in read.message
        wrong = await session.call("shop__read_query", {"query": "SELECT name FROM nowhere"})
        assert "no such table" in wrong.message
    seen = await Inspection.of(launch_of("shop", shop.config, shop.folder), shop.secrets)
    assert seen.same_as(shop.pins.of(shop.place, "shop"))
