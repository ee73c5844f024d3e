"""Servers that mean no good, or say what they were told in secret: what of it reaches anybody, and the journal."""

import asyncio
import importlib
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

import lastword
from lastword.mcp import transports
from lastword.mcp.server_answers import MAX_QUOTED
from lastword.testing import FixedApprover
from mcp_neighbour import Neighbour, defined, opened, until
from requirements import requirement

KEY = "s3cr3t-value-of-the-shop"


def keyed(tmp_path, *tools, **env):
    """A server that was given a key."""
    shop = Neighbour(tmp_path, *tools, env={"API_KEY": "${SHOP_KEY}"} | env)
    shop.secrets.keep("SHOP_KEY", KEY)
    return shop


@requirement("MCP-1", "MCP-3")
async def test_a_secret_in_a_definition_is_neither_pinned_nor_shown_nor_journaled(tmp_path):
    """A server that puts its key into a default or a description publishes it with every card."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "default": "$KEY"}}}
    shop = keyed(tmp_path, defined("env", description="Uses $KEY.", inputSchema=schema), PLAIN_VERSION="${SHOP_KEY}")
    await shop.trust()
    pinned = shop.pins.file.read_text()
    assert "Uses ${SHOP_KEY}." in pinned
    asked = FixedApprover()
    async with shop.servers() as servers:
        journal = lastword.open_journal(f"sqlite:///{tmp_path}/memory.db")
        session = await opened(servers, asked, journal=journal)
        assert (await session.call("shop__env", {"name": "x"})).success
        shown = repr((asked.requests, session.registry.lookup("shop__env").manifest))
        await journal.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("memory.db*") if path.is_file())
    assert KEY not in pinned + shown
    assert KEY.encode() not in kept


@requirement("MCP-1")
@pytest.mark.parametrize(
    "fields", [{"name": "use_$KEY"}, {"inputSchema": {"type": "object", "properties": {"a": {"enum": ["$KEY"]}}}}]
)
async def test_a_tool_with_a_secret_where_it_cannot_be_taken_out_is_not_offered(tmp_path, fields):
    """A name and a choice go back to the server as they are."""
    shop = keyed(tmp_path, defined("env") | fields)
    await shop.trust()
    assert KEY not in shop.pins.file.read_text()
    async with shop.servers() as servers:
        assert (await opened(servers, None)).registry.all() == []


@requirement("MCP-1", "MCP-11")
async def test_a_secret_in_a_question_is_not_shown(tmp_path):
    """Cards of questions are journaled like all others."""
    shop = keyed(tmp_path, defined("ask"))
    await shop.trust()
    asked = []

    def on_question(question):
        asked.append(question)
        return lastword.Declined()

    fields = {"city": {"type": "string", "title": "for $KEY"}}
    form = {"mode": "form", "message": "$KEY?", "requestedSchema": {"type": "object", "properties": fields}}
    async with shop.session(on_question=on_question) as session:
        assert (await session.call("shop__ask", {"params": form})).success
    assert "${SHOP_KEY}?" in asked[0].message
    assert KEY not in repr(asked)


@requirement("MCP-1")
async def test_half_a_secret_is_not_left_where_words_are_cut(tmp_path):
    """What is taken out is taken out before anything is cut."""
    shop = keyed(tmp_path, defined("spill"))
    await shop.trust()
    async with shop.session() as session:
        failed = await session.call("shop__spill", {"after": MAX_QUOTED})
    assert failed.kind == "failed"
    assert KEY[:4] not in failed.message


@requirement("MCP-10")
async def test_an_error_with_the_code_of_a_broken_connection_is_a_refusal(tmp_path):
    """Servers use that code for anything. The server lives, it said no, and nobody has to settle a doubt."""
    shop = await Neighbour(tmp_path, defined("refuse")).trusted()
    async with shop.session() as session:
        for _ in range(2):
            outcome = await session.call("shop__refuse")
            assert (outcome.kind, "refuses: “not today”" in outcome.message) == ("failed", True)
    assert sum(line.startswith("started") for line in shop.heard()) == 1


@requirement("MCP-8", "MCP-10")
@pytest.mark.parametrize(("lines", "kind"), [(5_000, "succeeded"), (20_000, "outcome_unknown")])
async def test_lines_that_are_no_messages_are_passed_over_up_to_a_point(tmp_path, monkeypatch, lines, kind):
    """Some servers print what is for people. One that does nothing else is cut off."""
    monkeypatch.setattr("lastword.mcp.transports.MAX_EMPTY_LINES", 10_000)
    shop = await Neighbour(tmp_path, defined("chatter")).trusted()
    async with shop.servers() as servers:
        session = await opened(servers, FixedApprover())
        outcome = await session.call("shop__chatter", {"lines": lines})
    assert outcome.kind == kind
    assert ("lines that are no messages" in outcome.message) is (kind == "outcome_unknown")


@requirement("MCP-8")
async def test_others_have_their_turn_while_lines_are_passed_over():
    """What has come already is read without a pause; the cards of everybody else are on the same loop."""
    output = asyncio.StreamReader()
    output.feed_data(b"not a message\n" * 1_000)
    output.feed_eof()
    ended: list[str] = []
    heard, unread = anyio.create_memory_object_stream[object](0)
    unread.close()
    reading = asyncio.create_task(transports._read(cast(Any, SimpleNamespace(stdout=output)), heard, ended.append))
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    assert ended == ["it ended"]
    assert turns > 1_000 / transports.EMPTY_LINES_AT_ONCE


@requirement("MCP-12")
async def test_a_server_that_has_news_after_every_listing_is_not_asked_without_a_pause(tmp_path, monkeypatch):
    """It would keep this program busy with nothing else. The first news is looked at all the same."""
    monkeypatch.setattr(importlib.import_module("lastword.mcp.connection"), "RELIST_SECONDS", 3_600)
    shop = await Neighbour(tmp_path, defined("env"), env={"PLAIN_NEWS": "yes"}).trusted()
    async with shop.servers() as servers:
        session = await opened(servers, FixedApprover())
        assert (await session.call("shop__env")).success
        await until(lambda: shop.heard().count("listed") == 2)
        for _ in range(3):
            assert (await session.call("shop__env")).success
        assert shop.heard().count("listed") == 2
        assert servers.all[0].withheld == {}
