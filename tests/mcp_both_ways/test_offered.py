"""The tools of an MCP server behind our cards: what is offered, what is withheld, and what reaches the server."""

import asyncio
import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lastword
from lastword import ToolRegistry, UserAction
from lastword.call import Limits, wait_for_answer
from lastword.call.events import Event, Reported
from lastword.config import McpConfig
from lastword.errors import ConfigError
from lastword.mcp.configured_servers import CHANGED, GONE
from lastword.mcp.server_trust import definition_of, difference, launch_of
from lastword.testing import FixedApprover
from mcp_neighbour import MONEY, Neighbour, defined, opened, until
from requirements import requirement

PAY = defined("pay", description="Pays.", inputSchema=MONEY)


@requirement("MCP-2", "MCP-13")
async def test_a_server_that_a_project_names_is_not_started_before_it_was_trusted(tmp_path):
    """The file came with the project. A command in it is somebody else's wish."""
    shop = Neighbour(tmp_path, PAY)
    registry = ToolRegistry()
    async with shop.servers() as servers:
        told = servers.offer(registry)
    assert registry.all() == []
    assert "lastword mcp trust shop" in told[0]
    assert shop.heard() == []


@requirement("MCP-5", "MCP-6", "MCP-13")
async def test_a_trusted_tool_asks_with_the_servers_name_and_words_and_then_runs(tmp_path):
    """Its words are quoted as its words, and its server is started by the first yes, not before."""
    shop = await Neighbour(tmp_path, PAY).trusted()
    seen = []

    async def look(request):
        seen.append((request, shop.heard()))
        return request.allow()

    async with shop.session(look) as session:
        outcome = await session.call("shop__pay", {"amount": 7})
    assert outcome.kind == "succeeded", outcome
    request, heard_before = seen[0]
    assert heard_before == []
    assert request.title == "pay of the MCP server shop"
    assert request.message == "The MCP server shop says of it: “Pays.”"
    assert (outcome.kind, outcome.value) == ("succeeded", "paid 7")
    assert shop.calls() == ['called pay {"amount": 7.0}'] or shop.calls() == ['called pay {"amount": 7}']
    assert shop.heard()[-1] == "ended"


@requirement("MCP-6")
async def test_a_denied_call_never_reaches_the_server(tmp_path):
    """And the server is not even started for it."""
    shop = await Neighbour(tmp_path, PAY).trusted()
    async with shop.session(FixedApprover([UserAction(False, True)])) as session:
        assert (await session.call("shop__pay", {"amount": 7})).kind == "denied"
    assert shop.heard() == []


QUIET = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


@requirement("MCP-6")
@pytest.mark.parametrize(
    ("hints", "effect"),
    [({"readOnlyHint": True}, None), (QUIET, None), ({"destructiveHint": True}, "irreversible")],
)
async def test_hints_make_no_card_quieter_and_may_make_it_louder(tmp_path, hints, effect):
    """A server vouches for nobody: also with a preset that approves everything it may, somebody is asked. A warning
    costs it nothing to give, and may be true."""
    shop = await Neighbour(tmp_path, PAY | {"annotations": hints}).trusted()
    async with shop.session(None, preset=lastword.Preset(auto_approve=True)) as session:
        [tool] = session.registry.all()
        assert (tool.manifest.effect, tool.manifest.idempotent, tool.manifest.auto_approve) == (effect, False, False)
        assert (await session.call("shop__pay", {"amount": 7})).kind == "no_approver"
    assert shop.heard() == []


@requirement("MCP-5", "MCP-7")
async def test_hidden_characters_are_marked_and_the_schema_is_kept(tmp_path):
    """Tag characters, a reversed line and an escape sequence speak to the model, and nobody would see them."""
    hidden = "Adds.\u202eevil \U000e0049\U000e0067 \x1b[2J"
    schema = {
        "type": "object",
        "properties": {"a-b": {"type": "string", "description": hidden}, "x": {"$ref": "#/$defs/Y"}},
        "$defs": {"Y": {"type": "integer", "minimum": 3}},
        "oneOf": [{"required": ["a-b"]}, {"required": ["x"]}],
    }
    shop = await Neighbour(tmp_path, defined("pay", description=hidden, inputSchema=schema)).trusted()
    async with shop.session(None) as session:
        manifest = session.registry.lookup("shop__pay").manifest
        forms = json.dumps([*session.registry.openai_tools(), *session.registry.mcp_tools()], ensure_ascii=False)
        both = await session.call("shop__pay", {"a-b": "x", "x": 3})
    for char in "\u202e\U000e0049\x1b":
        assert char not in manifest.description + manifest.display_name + forms
    assert "⟨U+202E⟩" in manifest.description
    expected = json.loads(json.dumps(schema))
    expected["properties"]["a-b"]["description"] = manifest.parameters[0].description
    assert manifest.arguments_schema() == expected
    assert both.kind == "invalid_arguments"


@requirement("MCP-3")
@pytest.mark.parametrize(
    "change",
    [
        {"description": "Pays!"},
        {"title": "Pay"},
        {"annotations": {"readOnlyHint": True}},
        {"outputSchema": {"type": "object"}},
        {"inputSchema": MONEY | {"additionalProperties": True}},
        {"_meta": {"x": 1}},
    ],
)
async def test_one_changed_byte_withholds_the_tool(tmp_path, change):
    """A server that was trusted yesterday may say something else today. What it says now was seen by nobody."""
    shop = await Neighbour(tmp_path, PAY, defined("other")).trusted()
    shop.define(PAY | change, defined("other"))
    async with shop.servers() as servers:
        session = await opened(servers, FixedApprover())
        outcome = await session.call("shop__pay", {"amount": 7})
        assert outcome.kind == "failed"
        assert CHANGED in outcome.message
        assert servers.all[0].withheld == {"pay": CHANGED}
        assert [tool.name for tool in session.registry.all()] == ["shop__other"]
    assert shop.calls() == []


@requirement("MCP-3")
async def test_a_renamed_tool_is_a_new_one_and_a_new_one_is_not_offered(tmp_path):
    """A name never seen is nobody's old acquaintance."""
    shop = await Neighbour(tmp_path, PAY).trusted()
    shop.define(PAY | {"name": "pay_out"})
    async with shop.servers() as servers:
        session = await opened(servers, FixedApprover())
        assert GONE in (await session.call("shop__pay", {"amount": 7})).message
        assert servers.all[0].new == ["pay_out"]
        assert session.registry.all() == []
    assert shop.calls() == []


async def from_a_script(folder: Path) -> tuple[Neighbour, Path]:
    """A trusted server that is a script of its folder, and the script."""
    script = folder / "server.py"
    script.write_text(Path(__file__).with_name("plain_server.py").read_text())
    shop = Neighbour(folder, PAY)
    shop.config = msgspec.structs.replace(shop.config, args=["server.py", str(shop.data)])
    return await shop.trusted(), script


@requirement("MCP-3")
@pytest.mark.parametrize("change", ["args", "env", "file", "command"])
async def test_another_way_to_the_server_is_withheld_before_it_is_started(tmp_path, change):
    """Command, arguments, variables, folder, program and the files among the arguments were trusted together."""
    shop, script = await from_a_script(tmp_path)
    own = tmp_path / "python3"
    own.symlink_to("/bin/sh")
    if change == "file":
        script.write_text(script.read_text() + "\n# changed by a pull\n")
    changed: dict[str, Any] = {
        "args": {"args": [*shop.config.args, "--loud"]},
        "env": {"env": {"PYTHONSTARTUP": "x"}},
        "command": {"command": str(own)},
    }
    shop.config = msgspec.structs.replace(shop.config, **changed.get(change, {}))
    async with shop.servers() as servers:
        registry = ToolRegistry()
        [told] = servers.offer(registry)
        assert registry.all() == []
        assert "→" in told
    assert shop.heard() == []


@requirement("MCP-3")
async def test_a_file_that_changes_while_we_run_keeps_the_server_from_starting(tmp_path):
    """Between the offer and the first call there may be hours, and a pull."""
    shop, script = await from_a_script(tmp_path)
    async with shop.session() as session:
        script.write_text(script.read_text() + "\n# changed by a pull\n")
        outcome = await session.call("shop__pay", {"amount": 7})
    assert outcome.kind == "failed"
    assert "not what you trusted" in outcome.message
    assert shop.heard() == []


@requirement("MCP-3")
@pytest.mark.parametrize(
    ("program", "args", "counts"),
    [
        ("work-on", ["--db-path", "orders.db"], False),
        ("work-on", ["--db-path=orders.db"], False),
        ("work-on", ["orders.db"], True),
        ("work-on", ["-f", "orders.db"], True),
        ("sh", ["--posix", "orders.db"], True),
        ("sh", ["orders.db"], True),
        ("dash", ["-u", "orders.db"], True),
        ("python3.13", ["--check-hash-based-pycs", "orders.db"], True),
        ("python3.13", ["server.py", "--db-path", "orders.db"], False),
    ],
)
def test_a_database_counts_unless_it_is_what_a_server_works_on(tmp_path, program, args, counts):
    """It changes with each call of such a server. A shell runs the lines of one, so there it is the program."""
    for name, data in (("orders.db", b"SQLite format 3\0\necho evil\n"), ("server.py", b"pass")):
        (tmp_path / name).write_bytes(data)
    file = tmp_path / "bin" / program
    file.parent.mkdir()
    file.write_text("#!/bin/true\n")
    file.chmod(0o755)
    launch = launch_of("shop", McpConfig(command=str(file), args=args), tmp_path)
    assert ("orders.db" in launch.files) == counts


@requirement("MCP-3")
async def test_a_new_version_alone_is_no_reason_to_withhold(tmp_path, monkeypatch):
    """It is shown. Servers call themselves something new with every release."""
    shop = Neighbour(tmp_path, PAY, env={"PLAIN_VERSION": "${VERSION}"})
    shop.secrets.keep("VERSION", "1.0")
    await shop.trust()
    shop.secrets.keep("VERSION", "2.0")
    async with shop.session() as session:
        assert (await session.call("shop__pay", {"amount": 7})).success


@requirement("MCP-3")
def test_a_change_is_shown_as_a_diff():
    """What a person trusts again is what changed, marked like everything else."""
    before, after = definition_of(PAY), definition_of(PAY | {"description": "Pays.\u200b"})
    assert '+ "description": "Pays.⟨U+200B⟩",' in difference(before, after)


def _other_stands(registry: ToolRegistry, wanted: bool) -> bool:
    return registry.is_registered("shop__other") == wanted


def with_a_pay_of_ours(paid: list[float]) -> ToolRegistry:
    """A registry in which the name is taken."""
    registry = ToolRegistry()

    @registry.tool(id="shop__pay", require_approval=False)
    def pay(amount: float) -> str:
        """Ours."""
        paid.append(amount)
        return "ours"

    return registry


@requirement("MCP-4", "MCP-12")
async def test_a_servers_tool_cannot_take_the_place_of_one_of_ours(tmp_path):
    """Ours was there first, whatever its name is. Nor when the server changes and changes back: the name was refused to
    it once, and withdrawing what was never offered would have freed the name for it."""
    shop = await Neighbour(tmp_path, PAY, defined("other"), defined("relist")).trusted()
    ours: list[float] = []
    registry = with_a_pay_of_ours(ours)
    async with shop.servers() as servers:
        [told] = servers.offer(registry)
        assert "another tool called shop__pay" in told
        session = await lastword.Session(registry, approver=FixedApprover()).open()
        for said, is_offered in (("Does more.", False), ("Does other.", True)):
            pays = PAY if is_offered else PAY | {"description": "Pays me."}
            shop.define(pays, defined("other", description=said), defined("relist"))
            assert (await session.call("shop__relist")).success
            await until(partial(_other_stands, registry, is_offered))
            assert (await session.call("shop__pay", {"amount": 7})).value == "ours"
    assert ours == [7.0, 7.0]
    assert not any("called pay" in line for line in shop.calls())


@requirement("MCP-1", "MCP-8")
async def test_secrets_reach_the_server_and_nobody_else(tmp_path, caplog):
    """A server that tells its environment tells ours without the secret: in the value, the text and an error."""
    shop = Neighbour(tmp_path, defined("env"), defined("fail"), env={"API_KEY": "${SHOP_KEY}"})
    shop.secrets.keep("SHOP_KEY", "s3cr3t-value")
    assert shop.secrets.file.stat().st_mode & 0o777 == 0o600
    await shop.trust()
    os.environ["NOT_FOR_SERVERS"] = "private"
    caplog.set_level("DEBUG")
    try:
        async with shop.servers() as servers:
            journal = lastword.open_journal(f"sqlite:///{tmp_path}/memory.db")
            session = await opened(servers, FixedApprover(), journal=journal)
            told = await session.call("shop__env")
            failed = await session.call("shop__fail")
            await journal.close()
    finally:
        del os.environ["NOT_FOR_SERVERS"]
    assert told.value["API_KEY"] == "${SHOP_KEY}"
    assert "NOT_FOR_SERVERS" not in told.value
    assert "LASTWORD_BELOW" in told.value
    assert failed.kind == "failed"
    assert "the MCP server shop says that it failed: “no: ⟨U+001B⟩[2J" in failed.message, "its words, and not ours"
    assert "s3cr3t-value" not in failed.message + told.message + caplog.text + shop.pins.file.read_text()
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("memory.db*") if path.is_file())
    assert b"s3cr3t-value" not in kept


@requirement("MCP-1")
async def test_a_missing_secret_is_named_and_nothing_is_started(tmp_path):
    """It says what to type."""
    shop = Neighbour(tmp_path, PAY, env={"API_KEY": "${SHOP_KEY}"})
    with pytest.raises(ConfigError, match="there is no secret SHOP_KEY") as found:
        await shop.trust()
    assert "lastword mcp secret SHOP_KEY" in str(found.value)
    assert shop.heard() == []


@requirement("MCP-8")
async def test_every_kind_of_content_arrives_and_no_link_is_followed(tmp_path):
    """An image byte for byte, sound, text, a link as words, an embedded file; what is not known is named."""
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    content = [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        {"type": "image", "data": png, "mimeType": "image/png"},
        {"type": "resource_link", "uri": "http://127.0.0.1:1/x", "name": "x"},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAEC", "mimeType": "application/x-a"}},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "words"}},
    ]
    shop = await Neighbour(tmp_path, defined("blocks")).trusted()
    async with shop.session() as session:
        outcome = await session.call("shop__blocks", {"content": content})
        picture = next(kept for kept in outcome.content if kept.kind == "image")
        data = await session.content(outcome.call_id, picture.digest)
    assert outcome.kind == "succeeded"
    assert [kept.kind for kept in outcome.content] == ["text", "image", "text", "file", "text"]
    assert data.hex()[:16] == "89504e470d0a1a0a"
    assert "which was not followed" in outcome.message
    assert "one\ntwo" in outcome.message


@requirement("MCP-9")
async def test_progress_becomes_reports(tmp_path):
    """The person sees how it goes, as with any tool."""
    shop = await Neighbour(tmp_path, defined("progress")).trusted()
    heard: list[Event] = []
    async with shop.session() as session:
        session.listen(heard.append)
        assert (await session.call("shop__progress")).success
    reports = [event for event in heard if isinstance(event, Reported)]
    assert [(report.message, report.fraction) for report in reports][-1] == ("step 2", 1.0)


@requirement("MCP-9")
async def test_cancelling_is_heard_by_the_server_at_once(tmp_path):
    """Whoever cancels means the work, and not only the waiting: also when a tool may take its time to stop."""
    shop = await Neighbour(tmp_path, defined("hang")).trusted()
    async with shop.session(limits=Limits(cancel_grace_seconds=600)) as session:
        call = asyncio.create_task(session.call("shop__hang", call_id="long"))
        await until(shop.calls)
        session.cancel("long")
        assert (await call).kind == "cancelled"
        await until(lambda: "cancelled" in shop.heard())


@requirement("MCP-9", "MCP-10")
async def test_a_server_that_hangs_leaves_the_call_in_doubt_when_its_time_is_up(tmp_path):
    """It may have done it, and may do it yet."""
    shop = await Neighbour(tmp_path, defined("hang"), timeout_seconds=0.2).trusted()
    async with shop.session() as session:
        outcome = await session.call("shop__hang")
        assert outcome.kind == "outcome_unknown"
        assert [life.call_id for life in await session.in_doubt()] == [outcome.call_id]


@requirement("MCP-10")
async def test_a_server_that_dies_in_mid_call_leaves_it_in_doubt_and_is_started_again_for_the_next(tmp_path):
    """The call is never sent again by itself; another call gets a new server."""
    shop = await Neighbour(tmp_path, defined("die"), PAY).trusted()
    async with shop.session() as session:
        outcome = await session.call("shop__die", call_id="deadly")
        assert outcome.kind == "outcome_unknown"
        assert (await session.call("shop__die", call_id="deadly")).kind == "outcome_unknown"
        assert (await session.call("shop__pay", {"amount": 1})).success
    assert [line for line in shop.heard() if "die" in line] == ["called die {}"]
    assert sum(line.startswith("started") for line in shop.heard()) == 2


@requirement("MCP-8", "MCP-10")
async def test_a_server_that_floods_is_cut_off_before_memory_is_full(tmp_path, monkeypatch):
    """A message without an end is not read to the end."""
    monkeypatch.setattr("lastword.mcp.transports.MAX_LINE_BYTES", 2**20)
    shop = await Neighbour(tmp_path, defined("flood")).trusted()
    async with shop.session() as session:
        outcome = await session.call("shop__flood")
    assert outcome.kind == "outcome_unknown"
    assert "more than 1 MB" in outcome.message


@requirement("MCP-8")
@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ("endless", "more than 50 pages"),
        ([defined(f"t{number}") for number in range(501)], "more than 500 tools"),
    ],
)
async def test_a_list_without_an_end_is_no_list(tmp_path, tools, words):
    """Lists and their pages have caps."""
    shop = Neighbour(tmp_path)
    (shop.data / "tools.json").write_text(json.dumps(tools))
    with pytest.raises(lastword.LastWordError, match=words):
        await shop.trust()


FORM = {
    "mode": "form",
    "message": "Where to?\u202e",
    "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@requirement("MCP-11")
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lastword.Given({"city": "Rome"}), {"action": "accept", "content": {"city": "Rome"}}),
        (lastword.Declined(), {"action": "decline"}),
        (lastword.Closed(), {"action": "cancel"}),
    ],
)
async def test_elicitation_is_a_question_that_says_where_the_answer_goes(tmp_path, answer, told):
    """Given, declined and closed are three things. The time it takes is nobody's timeout."""
    shop = await Neighbour(tmp_path, defined("ask"), timeout_seconds=0.2).trusted()
    asked = []

    async def on_question(question):
        asked.append(question)
        await asyncio.sleep(0.3)  # longer than the server's call may take
        return answer

    async with shop.session(on_question=on_question) as session:
        outcome = await session.call("shop__ask", {"params": FORM})
    assert json.loads(outcome.value) == told
    assert asked[0].message.startswith("The MCP server shop asks: “Where to?⟨U+202E⟩”")
    assert "Your answer goes to the MCP server shop." in asked[0].message


@requirement("MCP-11")
async def test_an_address_is_shown_whole_and_a_form_that_cannot_be_is_refused(tmp_path):
    """The person opens the address, or does not. Nothing is answered with something that nobody saw."""
    shop = await Neighbour(tmp_path, defined("ask")).trusted()
    asked = []

    def on_question(question):
        asked.append(question.message)
        return lastword.Given({"opened": len(asked) > 1})

    url = {"mode": "url", "message": "Log in", "url": "https://example.com/a?b=c", "elicitationId": "1"}
    nested = FORM | {"requestedSchema": {"type": "object", "properties": {"a": {"type": "object"}}}}
    async with shop.session(on_question=on_question) as session:
        first = await session.call("shop__ask", {"params": url})
        second = await session.call("shop__ask", {"params": url})
        form = await session.call("shop__ask", {"params": nested})
    assert "https://example.com/a?b=c" in asked[0]
    told = [json.loads(outcome.value)["action"] for outcome in (first, second, form)]
    assert told == ["decline", "accept", "cancel"]
    assert len(asked) == 2


@requirement("MCP-11")
async def test_a_question_outside_of_a_call_is_closed_unseen(tmp_path):
    """A server that was only listed has nothing to ask."""
    shop = await Neighbour(tmp_path, PAY, env={"PLAIN_ASKS_EARLY": "yes"}).trusted()
    asked: list[object] = []
    async with shop.session(on_question=asked.append) as session:
        assert (await session.call("shop__pay", {"amount": 1})).success
        await until(lambda: any(line.startswith("heard") for line in shop.heard()))
    assert 'heard {"action": "cancel"}' in shop.heard()
    assert asked == []


@requirement("MCP-12")
async def test_a_changed_list_voids_the_waiting_card_and_leaves_the_running_call_alone(tmp_path):
    """The card showed what the tool was. The call that runs was agreed to as it was."""
    shop = await Neighbour(tmp_path, PAY, defined("hang"), defined("relist")).trusted()
    async with shop.session(wait_for_answer) as session:

        async def allow(call_id: str) -> None:
            request = await session.card_for(call_id)
            assert isinstance(request, lastword.ApprovalRequest)
            session.answer(call_id, request.allow())

        hanging = asyncio.create_task(session.call("shop__hang", call_id="running"))
        await allow("running")
        await until(shop.calls)
        paying = asyncio.create_task(session.call("shop__pay", {"amount": 7}, call_id="waiting"))
        await session.card_for("waiting")
        shop.define(PAY | {"description": "Pays me."}, defined("hang"), defined("relist"))
        relisting = asyncio.create_task(session.call("shop__relist", call_id="relist"))
        await allow("relist")
        assert (await relisting).success
        await until(lambda: not session.registry.is_registered("shop__pay"))
        await allow("waiting")
        outcome = await paying
        assert not outcome.success
        assert "pay" in outcome.message
        assert not hanging.done()
        session.cancel("running")
        assert (await hanging).kind == "cancelled"
    assert not any("called pay" in line for line in shop.calls())


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@requirement("MCP-13")
async def test_no_process_is_left_behind_when_we_end(tmp_path):
    """Neither the server nor what it started, although that child has its output closed and sleeps."""
    shop = await Neighbour(tmp_path, defined("spawn")).trusted()
    async with shop.session() as session:
        pids = [int(pid) for pid in (await session.call("shop__spawn")).value.split()]
        assert all(map(_is_alive, pids))
    await until(lambda: not any(map(_is_alive, pids)))
