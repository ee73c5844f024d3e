"""Rules and the tools of MCP servers: the person holds both keys, and each is turned by itself."""

from pathlib import Path
from typing import Any

import pytest

from lastword import Journal, Policy, Preset, ToolRegistry
from lastword.card import Draft
from lastword.consent import ApprovalRequest, UserAction
from lastword.errors import ConfigError
from lastword.mcp.configured_servers import Inspection
from lastword.mcp.server_trust import launch_of
from lastword.rules import GrantOffer
from lastword.testing import FixedApprover
from mcp_neighbour import MONEY, Neighbour, defined
from requirements import requirement
from tries import mostly_long

PAY = defined("pay", description="Pays.", inputSchema=MONEY)
RULE = """
[[rule]]
name = "small"
tool = "TOOL"
decide = "allow"
where = { amount = { min = 0, max = 10 } }
tests = { match = [{ amount = 7 }], not_match = [{ amount = 11 }] }
"""


@requirement("RULE-5")
@pytest.mark.parametrize("tool", ["mcp:shop/*", "mcp:shop/pay", "shop__pay"])
@pytest.mark.parametrize("standing", [False, "exact", "bounds"])
async def test_a_rule_answers_for_a_server_only_where_the_person_said_so_when_they_trusted_it(tmp_path, tool, standing):
    """By its address, all of the server's tools, or its id. A preset's key alone is never enough."""
    shop = await Neighbour(tmp_path, PAY).trusted(standing)
    asked = FixedApprover(lambda request: request.deny())
    async with shop.session(asked, preset=Preset()) as session:
        session.policy = Policy.vouched(RULE.replace("TOOL", tool), session.registry)
        outcome = await session.call("shop__pay", {"amount": 7})
        assert (outcome.kind, outcome.approval) == (
            ("succeeded", "rule") if standing == "bounds" else ("denied", "person")
        )
        assert (await session.call("shop__pay", {"amount": 11})).kind == "denied"
    assert len(shop.calls()) == (1 if standing == "bounds" else 0)


@requirement("RULE-5", "MCP-6")
@pytest.mark.parametrize("standing", [False, "exact", "bounds", True])
async def test_a_preset_that_auto_approves_never_answers_for_a_server(tmp_path, standing):
    """The person was told of rules and grants when they turned the key. `true` is how it was kept once."""
    shop = await Neighbour(tmp_path, PAY).trusted(standing)
    asked = FixedApprover(lambda request: request.deny())
    async with shop.session(asked, preset=Preset(True)) as session:
        assert (await session.call("shop__pay", {"amount": 7})).kind == "denied"
    assert (len(asked.requests), len(shop.calls())) == (1, 0)


@requirement("RULE-5", "TOOL-55")
@pytest.mark.parametrize("standing", [False, "exact", "bounds"])
async def test_the_card_of_a_server_is_drawn_and_changed_whatever_its_key_is(tmp_path, standing):
    """In its own program and elsewhere, as the terminal and the page do it."""
    shop = await Neighbour(tmp_path, PAY).trusted(standing)

    def change(request: ApprovalRequest) -> UserAction:
        for shown in (request, ApprovalRequest.from_facts(request.facts())):
            draft = Draft(shown)
            draft.change("amount", "3")
        return draft.allow()

    async with shop.session(FixedApprover(change), preset=Preset(True)) as session:
        assert (await session.call("shop__pay", {"amount": 7})).success
    [called] = shop.calls()
    assert ("3" in called, "7" in called) == (True, False)


@requirement("RULE-5")
@pytest.mark.parametrize("tool", ["mcp:sho/*", "mcp:other/*", "mcp:shop/pay2", "shop:pay", "shop:*"])
async def test_a_rule_of_another_name_says_nothing_of_a_server(tmp_path, tool):
    """A name that only begins alike is another name."""
    shop = await Neighbour(tmp_path, PAY).trusted("bounds")
    asked = FixedApprover(lambda request: request.deny())
    async with shop.session(asked) as session:
        session.policy = Policy.vouched(RULE.replace("TOOL", tool), session.registry)
        assert (await session.call("shop__pay", {"amount": 7})).kind == "denied"
    assert len(asked.requests) == 1


@requirement("RULE-4")
@pytest.mark.parametrize("tool", ["mcp:shop/p*", "mcp:shop", "mcp:*", "mcp:*/pay", "claude:B*", "claude:"])
def test_a_name_that_could_never_be_a_tools_is_refused(tool: str):
    """A deny that speaks of nothing would look like one that holds."""
    with pytest.raises(ConfigError, match="is no tool"):
        Policy.vouched(RULE.replace("TOOL", tool), ToolRegistry())


READ = defined("read", description="Reads.", inputSchema={"type": "object", "properties": {"path": {"type": "string"}}})
UNDER = """
[[rule]]
name = "of this folder"
tool = "mcp:shop/read"
decide = "DECIDE"
where = { path = { under = "FOLDER" } }
tests = { match = [{ path = "FOLDER/a" }], not_match = [{ path = "/etc/passwd" }] }
"""


@requirement("RULE-3", "MCP-6")
@pytest.mark.parametrize("decide", ["allow", "deny"])
async def test_a_path_from_a_folder_of_the_server_lies_inside_of_none(tmp_path, monkeypatch, decide):
    """It has a folder of its own, which is not ours: no yes covers such a path, and no is passed by with one."""
    shop = await Neighbour(tmp_path, READ).trusted("bounds")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    asked = FixedApprover(lambda request: request.deny())
    async with shop.session(asked) as session:
        session.policy = Policy.vouched(UNDER.replace("FOLDER", str(here)).replace("DECIDE", decide), session.registry)
        for path in ("a", "./a", "../here/a"):
            outcome = await session.call("shop__read", {"path": path})
            assert (outcome.kind, outcome.approval) == ("denied", "person" if decide == "allow" else "rule")
        whole = await session.call("shop__read", {"path": f"{here}/a"})
        assert whole.approval == "rule"
        assert (whole.kind == "denied") == (decide == "deny")
    assert len(asked.requests) == (3 if decide == "allow" else 0)


async def _granted(shop: Neighbour, journal: Journal) -> None:
    """A person allows one payment, and ten like it until tonight."""

    async def grant(request: ApprovalRequest) -> UserAction:
        offer = GrantOffer.of(request, Path())
        assert isinstance(offer, GrantOffer)
        return request.allow_with(offer.terms(None, "until", calls=10))

    assert await _paid(shop, journal, grant) == ("succeeded", "person")
    assert await _paid(shop, journal) == ("succeeded", "grant")


async def _paid(shop: Neighbour, journal: Journal, approver: Any = None) -> tuple[str, str]:
    async with shop.session(approver or FixedApprover(lambda request: request.deny()), journal=journal) as session:
        outcome = await session.call("shop__pay", {"amount": 7})
        await session.close()
        return outcome.kind, outcome.approval


CHANGED: dict[str, dict[str, Any]] = {
    "its words": {"description": "Pays!"},
    "a hint": {"annotations": {"readOnlyHint": True}},
    "its result": {"outputSchema": {"type": "object", "properties": {"paid": {"type": "number"}}}},
    "what it takes": {"inputSchema": MONEY | {"properties": MONEY["properties"] | {"to": {"type": "string"}}}},
    "what nobody shows": {"_meta": {"x": 1}},
}


@requirement("MCP-3", "MCP-6", "GRANT-2")
@pytest.mark.parametrize("change", mostly_long(CHANGED, "its words", "what nobody shows"))
async def test_a_tool_that_its_server_defines_anew_has_lost_its_grant(tmp_path: Path, change: str):
    """Withheld until it is trusted again, and then it is another tool: also when it looks the same to a person."""
    shop, journal = Neighbour(tmp_path, PAY), Journal()
    await shop.trust("bounds")
    await _granted(shop, journal)
    shop.define(PAY | CHANGED[change])
    assert (await _paid(shop, journal))[0] != "succeeded"
    await shop.trust("bounds")
    assert await _paid(shop, journal) == ("denied", "person")
    shop.define(PAY)
    await shop.trust("exact")
    assert await _paid(shop, journal) == ("denied", "person"), "the key is another one than it was granted with"
    other = await Neighbour(tmp_path, PAY, env={"OTHER": "1"}).trusted("bounds")
    assert await _paid(other, journal) == ("denied", "person"), "what is started under the same name is another server"
    assert shop.calls() == other.calls() == []


@requirement("MCP-4", "MCP-6")
async def test_a_name_that_is_listed_twice_by_now_starts_nothing(tmp_path: Path):
    """Which of the two a call would reach is the server's secret."""
    shop, journal = Neighbour(tmp_path, PAY), Journal()
    await shop.trust("bounds")
    await _granted(shop, journal)
    shop.diary.unlink()
    shop.define(PAY, PAY | {"description": "Pays more."})
    assert (await _paid(shop, journal))[0] == "failed"
    shop.define(PAY, PAY)
    assert (await _paid(shop, journal))[0] == "failed"
    await shop.trust("bounds")
    assert (await _paid(shop, journal))[0] == "unknown_tool", "trusted with both, neither is offered"
    assert shop.calls() == []


@requirement("RULE-5", "MCP-3")
async def test_whoever_looks_at_a_server_on_the_page_leaves_its_key_as_it_is_and_a_change_turns_it_back(tmp_path: Path):
    """What was looked at and is the same is pinned again, with what it calls itself by now."""
    shop = await Neighbour(tmp_path, PAY).trusted("bounds")
    launch = launch_of("shop", shop.config, shop.folder)
    async with shop.servers() as servers:
        await servers.trust(await Inspection.of(launch, shop.secrets))
        assert [pinned.standing for pinned in shop.pins._read().values()] == ["bounds"]
        shop.define(PAY | {"description": "Pays more."})
        await servers.trust(await Inspection.of(launch, shop.secrets))
        assert [pinned.standing for pinned in shop.pins._read().values()] == [False]
