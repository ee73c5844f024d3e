"""`lastword mcp serve` as clients start it: over stdio and HTTP, killed between rounds, with tokens and Host checks."""

import asyncio
import json
import os
from collections.abc import Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from counter import meta, words
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from served import answered, served, token

from lastword.tools.guard import MARKER
from lastword.tools.guard.ancestry import _agent_name, _began
from mcp_neighbour import MONEY, Neighbour, defined
from requirements import requirement
from surfaces.screens import clean_environment, piped
from warm import WarmDialogue, warm_command

CODE = '''"""Leaves a trace for every time that it ran."""

from pathlib import Path
from typing import Any

from lastword import AssistantTool


def execute(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Then not."}
    with open(Path.home() / "paid.txt", "a") as paid:
        paid.write(f"{params['amount']:g}\\n")
    return {"success": True, "message": f"Paid {params['amount']:g}."}


test_execute = AssistantTool.register_execute_tool_with_approval(execute)
'''
MANIFEST = {
    "displayName": "Pay",
    "id": "pay",
    "description": "Pays.",
    "parameters": [{"name": "amount", "type": "number"}],
    "requireApproval": True,
    "autoApprove": True,
    "effect": "reversible",
}
YES: dict[str, Any] = {"approval": types.ElicitResult(action="accept", content={"allow": True})}


def with_tool(folder: Path) -> Path:
    """A folder with a tool that can be taken back, and permits auto-approval."""
    place = folder / "mine" / "pay"
    place.mkdir(parents=True)
    (place / "assistant_tool.json").write_text(json.dumps(MANIFEST))
    (place / "assistant_tool.py").write_text(CODE)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return with_tool(tmp_path)


def paid(home: Path) -> list[str]:
    file = home / "paid.txt"
    return file.read_text().splitlines() if file.exists() else []


def over_stdio(home: Path, *options: str, **facts) -> Client:
    """A client that starts us, as every client does."""
    command = warm_command("mcp", "serve", "--tools", "mine", *options)
    env = clean_environment(home)
    where = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=home)
    return Client(where, cache=None, client_info=types.Implementation(name="editor", version="7"), **facts)


def about(**capabilities: Any) -> dict[str, Any]:
    """What a client of the newer protocol says with each request."""
    return {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "7"},
    }


async def never(context, params):
    raise AssertionError("nobody was to be asked")


@requirement("MCP-20", "MCP-21")
async def test_a_client_starts_us_and_a_person_answers_in_another_terminal(home):
    """The whole way, over stdio, with two programs and one memory."""
    async with over_stdio(home, elicitation_callback=never) as desk:
        assert [tool.name for tool in (await desk.list_tools()).tools] == ["pay", "run_script"]
        calling = asyncio.create_task(desk.call_tool("pay", {"amount": 7}))
        call_id = await answered(home)
        result = await calling
        assert (result.is_error, words(result), meta(result)["lastword/call"]) == (False, "Paid 7.", call_id)
    assert paid(home) == ["7"]


@requirement("CONF-2")
def test_a_client_below_a_tool_does_not_answer_itself(home):
    """A script that an assistant runs speaks the protocol, too, and would accept its own dialogue."""
    # Before anything is looked for, or loaded.
    done = piped("mcp", "serve", "--tools", "nowhere", "--approve", "client", cwd=home, **{MARKER: "1"})
    assert done.returncode == 2
    assert "--approve client: this is for a person to decide" in done.stderr
    assert "hint: leave it out; a person answers on the page of lastword up" in done.stderr
    assert piped("mcp", "serve", "--tools", "mine", cwd=home, **{MARKER: "1"}).returncode == 0


async def yes(context, params):
    return types.ElicitResult(action="accept", content={"allow": True})


@requirement("CONF-2", "MCP-22")
async def test_a_client_whose_hook_asks_here_answers_by_its_own_dialogue(home):
    """Claude Code has our hook and starts our server as its child: its person sees the dialogue there."""
    agents = home / ".data" / "lastword" / "agents"
    agents.mkdir(parents=True)
    (agents / _agent_name(os.getpid(), _began(os.getpid()))).touch()
    assert "for a person to decide" in piped("token", "create", "mine", cwd=home).stderr
    async with over_stdio(home, "--approve", "client", elicitation_callback=yes) as desk:
        assert words(await desk.call_tool("pay", {"amount": 7})) == "Paid 7."
    assert paid(home) == ["7"]


@requirement("MCP-23")
async def test_killed_between_rounds_it_runs_once(home):
    """kill -9 after the question. Another process opens the sealed round, pays once, and never again."""
    command = ["mcp", "serve", "--tools", "mine", "--approve", "client"]
    first_process = WarmDialogue(command, home, clean_environment(home))
    call = {"name": "pay", "arguments": {"amount": 5}, "_meta": about(elicitation={"form": {}})}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    first_process.say(json.dumps(request))
    told = json.loads(first_process.hear())["result"]
    assert told["resultType"] == "input_required", told
    first_process.close()
    async with over_stdio(home, "--approve", "client", elicitation_callback=never) as desk:

        async def again(arguments):
            return await desk.session.call_tool(
                "pay", arguments, input_responses=YES, request_state=told["requestState"], allow_input_required=True
            )

        with pytest.raises(MCPError):
            await again({"amount": 5000})
        assert words(await again({"amount": 5})) == "Paid 5."
        assert words(await again({"amount": 5})) == "Paid 5."
    assert paid(home) == ["5"]
    assert (home / ".data" / "lastword" / "mcp_key").stat().st_mode & 0o777 == 0o600


class Served:
    """A server for all tests here: a port, a home and its tokens."""

    def __init__(self, home: Path, port: int) -> None:
        self.home, self.port = home, port
        self.tokens = {scope: token(home, scope) for scope in ("tools", "admin", "chat")}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = with_tool(tmp_path_factory.mktemp("served"))
    with served(home, "--approve", "client") as port:
        yield Served(home, port)


@pytest.fixture
def http(running: Served) -> Served:
    """The same, where nothing was paid yet."""
    (running.home / "paid.txt").unlink(missing_ok=True)
    return running


@asynccontextmanager
async def over_http(http: Served, scope: str, **facts):
    """A client with the token of this scope."""
    address = f"http://127.0.0.1:{http.port}/mcp"
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {http.tokens[scope]}"}, timeout=60) as inner,
        Client(streamable_http_client(address, http_client=inner), cache=None, **facts) as desk,
    ):
        yield desk


@requirement("MCP-20")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_over_http_a_token_for_tools_is_needed_and_enough(http, mode):
    """Each token is a principal of its own: nobody goes on with somebody else's call."""
    async with over_http(http, "tools", mode=mode) as desk, over_http(http, "admin", mode=mode) as neighbour:
        calling = asyncio.create_task(desk.call_tool("pay", {"amount": 7}))
        await answered(http.home)
        first = await calling
        assert words(first) == "Paid 7."
        theirs = asyncio.create_task(neighbour.call_tool("pay", {"amount": 7}))
        await answered(http.home, "--deny")
        second = await theirs
        assert meta(second)["lastword/kind"] == "denied"
        assert meta(second)["lastword/call"] != meta(first)["lastword/call"]
    assert paid(http.home) == ["7"]


@requirement("MCP-20")
async def test_over_http_everybody_else_is_turned_away(http):
    """No token, a wrong one, one for something else; a page of the web, and a name that points here."""
    good = {"Authorization": f"Bearer {http.tokens['tools']}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    address = f"http://127.0.0.1:{http.port}/mcp"
    async with httpx2.AsyncClient(timeout=60) as desk:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer lastword_00000000_" + "x" * 43}, 401),
            ({"Authorization": f"Bearer {http.tokens['chat']}"}, 403),
            (good | {"Origin": "http://attacker.example"}, 403),
            (good | {"Origin": "null"}, 403),
            (good | {"Host": "attacker.example"}, 421),
            (good | {"Host": f"attacker.example:{http.port}"}, 421),
        ):
            answer = await desk.post(address, json=body, headers={"Accept": "application/json"} | headers)
            assert answer.status_code == status, (headers, answer.text)


@requirement("MCP-20")
async def test_white_space_around_the_value_of_a_header_is_no_part_of_it(http):
    """The parser that we serve with leaves it there. Clients of either era may send it, with every header there is."""
    key = http.tokens["tools"]
    call = {"name": "run_script", "arguments": {"script": "PRINT(7)"}, "_meta": about()}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
    said = {
        "Host": f"127.0.0.1:{http.port}",
        "Origin": f"http://127.0.0.1:{http.port}",
        "Authorization": f"Bearer {key}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "run_script",
    }
    for blank in ("", "  ", "\t", " \t "):
        lines = [f"{name}:{blank}{value}{blank}" for name, value in said.items()]
        head = ["POST /mcp HTTP/1.1", "Connection: close", f"Content-Length: {len(body)}", *lines]
        reader, writer = await asyncio.open_connection("127.0.0.1", http.port)
        writer.write("\r\n".join([*head, "", ""]).encode() + body)
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200"), (blank, answer)
        assert b'"text":"7"' in answer


@requirement("MCP-23")
async def test_a_round_of_one_token_is_nobody_elses(http):
    """What was sealed for one principal opens for no other, and still opens for the first."""
    async with (
        over_http(http, "tools", elicitation_callback=never) as desk,
        over_http(http, "admin", elicitation_callback=never) as neighbour,
    ):
        asked = await desk.session.call_tool("pay", {"amount": 5}, allow_input_required=True)
        assert isinstance(asked, types.InputRequiredResult)

        async def answer(client: Client):
            return await client.session.call_tool(
                "pay", {"amount": 5}, input_responses=YES, request_state=asked.request_state, allow_input_required=True
            )

        with pytest.raises(MCPError):
            await answer(neighbour)
        assert paid(http.home) == []
        assert words(await answer(desk)) == "Paid 5."
    assert paid(http.home) == ["5"]


@requirement("MCP-20")
async def test_a_session_of_one_token_is_closed_to_another(http):
    """The older protocol names sessions; whoever learns such a name has not learnt the token."""
    initialize = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize}
    address = f"http://127.0.0.1:{http.port}/mcp"
    accept = {"Accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(timeout=60) as desk:
        mine = {"Authorization": f"Bearer {http.tokens['tools']}"} | accept
        begun = await desk.post(address, json=body, headers=mine)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        other = {"Authorization": f"Bearer {http.tokens['admin']}"} | accept
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await desk.post(address, json=listing, headers=other | session)).status_code == 404
        assert (await desk.post(address, json=listing, headers=mine | session)).status_code == 200


@requirement("MCP-31", "MCP-32")
async def test_a_server_behind_us_is_reached_by_a_client_before_us(home):
    """The gateway: its tools are listed, its calls ask, the journal names both, and the client's token stays here."""
    shop = Neighbour(home, defined("pay", inputSchema=MONEY))
    shop.place.write_text(f'[mcp.shop]\ncommand = "{shop.config.command}"\nargs = {json.dumps(shop.config.args)}\n')
    start = piped("mcp", "trust", "shop", cwd=home).stderr.split("--start ")[1].split()[0]
    tools = piped("mcp", "trust", "shop", "--start", start, cwd=home).stderr.split("--tools ")[1].split()[0]
    assert piped("mcp", "trust", "shop", "--start", start, "--tools", tools, cwd=home).returncode == 0
    async with over_stdio(home) as desk:
        assert "shop__pay" in [tool.name for tool in (await desk.list_tools()).tools]
        calling = asyncio.create_task(desk.call_tool("shop__pay", {"amount": 7}))
        call_id = await answered(home)
        assert words(await calling) == "paid 7"
    told = piped("show", call_id, cwd=home).stdout
    assert "shop__pay" in told
    assert "editor 7" in told
    assert shop.calls() == ['called pay {"amount": 7}']
