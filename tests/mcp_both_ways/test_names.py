"""The ids of servers' tools: no two pairs of server and tool have the same one."""

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lastword.errors import ConfigError
from lastword.mcp.server_trust import check_server_name
from lastword.tools import Manifest, tool_id
from lastword.tools.manifest import NAME
from requirements import requirement
from tries import tries

SERVERS = st.text(string.ascii_lowercase[:3] + "0-", min_size=1, max_size=5)
# Few characters, so that names nearly meet: what is turned into an underscore, and underscores.
TOOLS = st.one_of(st.text("ab_-./ а0", min_size=0, max_size=6), st.text(min_size=0, max_size=80))
PAIRS = st.tuples(SERVERS, TOOLS)


@requirement("MCP-4")
@tries()
@given(PAIRS, PAIRS)
@example(("a", "_b"), ("a-", "b"))
@example(("a", "x-y"), ("a", "x_y"))
@example(("a-b", "c"), ("ab", "c"))
@example(("a", "x" * 70), ("a", "x" * 71))
def test_two_pairs_of_server_and_tool_never_share_an_id(one, other):
    """Whoever could take the id of another tool would get the yes that was meant for that."""
    assert (tool_id(*one) == tool_id(*other)) == (one == other)


@requirement("MCP-4")
@tries()
@given(PAIRS)
def test_every_id_can_be_called_by_scripts_and_models(pair):
    """An id has the form of all our ids, whatever a server calls its tool."""
    made = tool_id(*pair)
    assert NAME.match(made)
    assert len(made) <= Manifest.MAX_ID_LENGTH


@requirement("MCP-4")
@tries()
@given(PAIRS)
def test_a_tool_cannot_be_named_so_that_its_id_is_that_of_one_with_a_digest(pair):
    """The two forms are apart: a server that computes the digest of a neighbour's tool gains nothing by it."""
    made = tool_id(*pair)
    for cut in range(1, len(made)):
        server, rest = made[:cut], made[cut:]
        for tool in (rest, rest.lstrip("_")):
            if server.isascii() and server.isalnum() and server.islower() and (server, tool) != pair:
                assert tool_id(server, tool) != made


def test_an_ordinary_name_is_kept_as_it_is():
    """Most people never see a digest."""
    assert tool_id("files", "read_text_file") == "files__read_text_file"
    assert tool_id("everything", "get-sum").startswith("everything_get_sum_")


@requirement("MCP-4")
@pytest.mark.parametrize("name", ["", "Files", "a_b", "a.b", "a/b", "ä", "x" * 33, "a b", "fileѕ"])
def test_a_server_with_another_name_is_refused(name):
    """The name stands in front of ids, on cards and in files."""
    with pytest.raises(ConfigError):
        check_server_name(name)
