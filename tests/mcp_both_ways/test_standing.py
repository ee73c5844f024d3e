"""Rules and the tools of MCP servers: the person holds both keys, and each is turned by itself."""

import pytest

from lastword import Policy, Preset, ToolRegistry
from lastword.errors import ConfigError
from lastword.testing import FixedApprover
from mcp_neighbour import MONEY, Neighbour, defined, opened
from requirements import requirement

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
@pytest.mark.parametrize("standing", [False, "exact", True])
async def test_a_rule_answers_for_a_server_only_where_the_person_said_so_when_they_trusted_it(tmp_path, tool, standing):
    """By its address, all of the server's tools, or its id. A preset's key alone is never enough."""
    shop = Neighbour(tmp_path, PAY)
    await shop.trust(standing)
    asked = FixedApprover(lambda request: request.deny())
    async with shop.servers() as servers:
        session = await opened(servers, asked, preset=Preset())
        session.policy = Policy.vouched(RULE.replace("TOOL", tool), session.registry)
        outcome = await session.call("shop__pay", {"amount": 7})
        assert (outcome.kind, outcome.approval) == (("succeeded", "rule") if standing is True else ("denied", "person"))
        assert (await session.call("shop__pay", {"amount": 11})).kind == "denied"
    assert len(shop.calls()) == (1 if standing is True else 0)


@requirement("RULE-5")
@pytest.mark.parametrize("tool", ["mcp:sho/*", "mcp:other/*", "mcp:shop/pay2", "shop:pay", "shop:*"])
async def test_a_rule_of_another_name_says_nothing_of_a_server(tmp_path, tool):
    """A name that only begins alike is another name."""
    shop = Neighbour(tmp_path, PAY)
    await shop.trust(True)
    asked = FixedApprover(lambda request: request.deny())
    async with shop.servers() as servers:
        session = await opened(servers, asked)
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
    shop = Neighbour(tmp_path, READ)
    await shop.trust(True)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    asked = FixedApprover(lambda request: request.deny())
    async with shop.servers() as servers:
        session = await opened(servers, asked)
        session.policy = Policy.vouched(UNDER.replace("FOLDER", str(here)).replace("DECIDE", decide), session.registry)
        for path in ("a", "./a", "../here/a"):
            outcome = await session.call("shop__read", {"path": path})
            assert (outcome.kind, outcome.approval) == ("denied", "person" if decide == "allow" else "rule")
        whole = await session.call("shop__read", {"path": f"{here}/a"})
        assert whole.approval == "rule"
        assert (whole.kind == "denied") == (decide == "deny")
    assert len(asked.requests) == (3 if decide == "allow" else 0)
