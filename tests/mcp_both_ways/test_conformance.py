"""What others say of `lastword mcp serve`: the official conformance suite, and the Inspector's command line."""

import asyncio
import base64
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bearer import with_token
from real_servers import CHECKS, NODE
from served import answered, served, token

from requirements import requirement
from surfaces.screens import clean_environment, lastword_command

pytestmark = pytest.mark.long

SUITE = str(CHECKS / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js")
INSPECTOR = str(
    CHECKS / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
)
PNG = "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
WAV = "52494646240000005741564566"

# The tools that the suite calls, as it wants them: what each does.
TOOLS = {
    "test_simple_text": 'return done("This is a simple text response for testing.")',
    "test_image_content": f'return done("An image.", Image(bytes.fromhex("{PNG}")))',
    "test_audio_content": f'return done("A sound.", Audio(bytes.fromhex("{WAV}"), media_type="audio/wav"))',
    "test_embedded_resource": 'return done("A file.", File(b"%PDF-1.4 a resource", name="resource.pdf"))',
    "test_multiple_content_types": (
        f'return done("Multiple content types test:", Image(bytes.fromhex("{PNG}")), File(b"%PDF-1.4 a resource"))'
    ),
    "test_error_handling": 'raise ToolError("This tool intentionally returns an error for testing")',
    "test_tool_with_progress": (
        "[context.report(f'{n} of 100', fraction=n / 100) for n in (0, 50, 100)]; return done('Walked.')"
    ),
}
CODE = """from lastword import AssistantTool, Audio, File, Image, ToolError, ToolResult


def done(message, *content):
    return ToolResult({{"success": True, "message": message}}, list(content))


def execute(params, context):
    {body}


test_execute = AssistantTool.register_execute_tool(execute)
"""

NO_SUCH = "lastword offers tools; the server capability that this asks for is not declared"
ASKS = "a question of a tool goes to the person at lastword, and not to the client's model or dialogue"
# What fails, and why. docs/mcp.md says the same in short.
FAILS = {
    "logging-set-level": NO_SUCH,
    "completion-complete": NO_SUCH,
    "tools-call-with-logging": NO_SUCH,
    "tools-call-sampling": "lastword asks no client for its model",
    "tools-call-elicitation": ASKS,
    "elicitation-sep1034-defaults": ASKS,
    "elicitation-sep1330-enums": ASKS,
    "json-schema-2020-12": "wants a tool of that name made of a whole schema; a tool folder lists its parameters",
    "server-sse-polling": "no stream is closed in mid-call to be polled; asking for the same again resumes the call",
    "resources-list": NO_SUCH,
    "resources-read-text": NO_SUCH,
    "resources-read-binary": NO_SUCH,
    "resources-templates-read": NO_SUCH,
    "resources-subscribe": NO_SUCH,
    "resources-unsubscribe": NO_SUCH,
    "prompts-list": NO_SUCH,
    "prompts-get-simple": NO_SUCH,
    "prompts-get-with-args": NO_SUCH,
    "prompts-get-embedded-resource": NO_SUCH,
    "prompts-get-with-image": NO_SUCH,
}
PASSES = {
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, body in TOOLS.items():
        folder = tmp_path / "mine" / name
        folder.mkdir(parents=True)
        facts = {"displayName": name, "id": name, "description": f"Is called {name}.", "parameters": []}
        (folder / "assistant_tool.json").write_text(json.dumps(facts | {"requireApproval": False, "effect": "none"}))
        (folder / "assistant_tool.py").write_text(CODE.format(body=body))
    return tmp_path


@pytest.fixture
def port(home: Path) -> Iterator[int]:
    with served(home) as found:
        yield found


async def node(*words: str, home: Path) -> tuple[int, str, str]:
    """What a program for node prints, in an environment of its own."""
    env = clean_environment(home) | {"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}"}
    process = await asyncio.create_subprocess_exec(
        NODE, *words, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), 300)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, out.decode(), err.decode()


def results(folder: Path) -> dict[str, list[str]]:
    """The checks of each scenario that failed, in the suite's words."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*/checks.json")):
        scenario = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT[\d.:-]+Z", file.parent.name)
        assert scenario, file.parent.name
        checks: list[dict[str, Any]] = json.loads(file.read_text())
        found[scenario[1]] = [
            f"{check['id']}: {check.get('errorMessage')}" for check in checks if check["status"] == "FAILURE"
        ]
    return found


@requirement("MCP-26")
async def test_the_conformance_suite_finds_what_is_listed_and_nothing_else(home, port):
    """Every scenario for servers. One that fails is named above with its reason; one that no longer does is, too."""
    async with with_token(port, token(home)) as address:
        url = f"http://localhost:{address}/mcp"
        await node(SUITE, "server", "--url", url, "--suite", "all", "-o", str(home / "found"), home=home)
    found = results(home / "found")
    assert found.keys() == PASSES | FAILS.keys()
    assert {name: said for name, said in found.items() if said and name not in FAILS} == {}
    assert {name for name, said in found.items() if not said} == PASSES


PAY = {
    "displayName": "Pay",
    "id": "pay",
    "description": "Pays.",
    "parameters": [{"name": "amount", "type": "number"}],
    "effect": "irreversible",
}
PAYS = """from pathlib import Path

from lastword import AssistantTool


def execute(params, user_action):
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Then not."}
    with open(Path.home() / "paid.txt", "a") as paid:
        paid.write(f"{params['amount']:g}\\n")
    return {"success": True, "message": f"Paid {params['amount']:g}."}


test_execute = AssistantTool.register_execute_tool_with_approval(execute)
"""
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
WAYS = pytest.mark.parametrize("way", ["stdio", "http"])


class Inspector:
    """The Inspector's command line, before `lastword mcp serve` in one of its two ways."""

    def __init__(self, home: Path, way: str, era: str, request: pytest.FixtureRequest) -> None:
        self.home = home
        self._options = ["--cli", "--format", "json", "--protocol-era", era]
        if way == "http":
            port = request.getfixturevalue("port")
            self._target = [f"http://127.0.0.1:{port}/mcp"]
            self._options += ["--header", f"Authorization: Bearer {token(home)}"]
        else:
            # It gives a server a few variables only, and that one is where everything is remembered.
            self._options += ["-e", f"XDG_DATA_HOME={clean_environment(home)['XDG_DATA_HOME']}"]
            self._target = ["--", *lastword_command(), "mcp", "serve", "--tools", "mine"]

    async def ask(self, method: str, *options: str) -> Any:
        code, out, err = await node(
            INSPECTOR, *self._options, "--method", method, *options, *self._target, home=self.home
        )
        assert out, (code, err)
        said = json.loads(out)
        return said.get("result", said)


@pytest.fixture
def inspector(home: Path, request: pytest.FixtureRequest) -> Inspector:
    folder = home / "mine" / "pay"
    folder.mkdir()
    (folder / "assistant_tool.json").write_text(json.dumps(PAY))
    (folder / "assistant_tool.py").write_text(PAYS)
    facts = request.node.callspec.params
    return Inspector(home, facts["way"], facts["era"], request)


@requirement("MCP-26", "MCP-20")
@ERAS
@WAYS
async def test_the_inspector_lists_and_calls_and_a_person_answers(inspector, home, way, era):
    """Both ways in, both eras of the protocol: the list, an image byte for byte, a yes, a no, and a mistake."""
    listed = await inspector.ask("tools/list", "--strict")
    assert {tool["name"] for tool in listed["tools"]} == {*TOOLS, "pay", "run_script"}
    image = await inspector.ask("tools/call", "--tool-name", "test_image_content")
    [picture] = [block for block in image["content"] if block["type"] == "image"]
    assert (picture["mimeType"], base64.b64decode(picture["data"])) == ("image/png", bytes.fromhex(PNG))
    for how, kind in (("--allow", "succeeded"), ("--deny", "denied")):
        paying = inspector.ask("tools/call", "--tool-name", "pay", "--tool-args-json", '{"amount": 7}')
        said, _ = await asyncio.gather(paying, answered(home, how))
        assert said["_meta"]["lastword/kind"] == kind
    assert (home / "paid.txt").read_text() == "7\n"
    wrong = await inspector.ask("tools/call", "--tool-name", "pay", "--tool-args-json", '{"amount": "much"}')
    assert wrong["isError"]
    assert "must be a number" in wrong["content"][0]["text"]
    assert (home / "paid.txt").read_text() == "7\n"
