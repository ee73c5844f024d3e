"""Our tools for an MCP client: who answers, what a client is told meanwhile, and that nothing runs twice."""

import asyncio
import gc
import itertools
import json
import threading
from typing import Any

import mcp_types as types
import pytest
from counter import client, dialogue, meta, serving, words
from mcp import MCPError

import lastword
from lastword.consent import ALLOWED, DENIED
from lastword.journal import data_of
from lastword.mcp.client_messages import EARLIER
from mcp_neighbour import until
from requirements import requirement

ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])


def accepting(seen: list, content: dict | None = None):
    async def elicit(context, params):
        seen.append(params.message)
        return types.ElicitResult(action="accept", content={"allow": True} if content is None else content)

    return elicit


@requirement("MCP-20", "MCP-21", "MCP-24")
@ERAS
async def test_a_client_lists_and_calls_and_a_person_answers_elsewhere(tmp_path, mode):
    """The card says who asks, as it calls itself; the result has the value, the words and the id of the call."""
    async with serving(tmp_path) as counter, client(counter, mode) as desk:
        tools = {tool.name: tool for tool in (await desk.list_tools()).tools}
        assert set(tools) == {"jot", "look", "pay", "run_script", "unsaid"}
        assert tools["pay"].annotations == types.ToolAnnotations(read_only_hint=False, destructive_hint=True)
        assert words(await desk.call_tool("look", {})) == "seen"
        calling = asyncio.create_task(desk.call_tool("pay", {"amount": 7}))
        card = await counter.card()
        assert counter.paid == []
        assert card.origin == "an MCP client that calls itself “editor‹U+202E› 7”"
        counter.answer(card, ALLOWED)
        result = await calling
        assert (result.is_error, result.structured_content) == (False, {"paid": 7.0})
        assert meta(result)["lastword/call"] == card.call_id
        again = asyncio.create_task(desk.call_tool("pay", {"amount": 7}))
        second = await counter.card()
        assert second.call_id != card.call_id, "delivered, so that an equal request is a new call"
        counter.answer(second, DENIED)
        denied = await again
        assert denied.is_error
        assert meta(denied)["lastword/kind"] == "denied"
    assert counter.paid == [7.0]


@requirement("MCP-21")
@ERAS
async def test_a_client_whose_patience_ends_is_told_and_goes_on_with_the_same_call(tmp_path, mode):
    """A person needs longer than a client waits. Asking again starts nothing a second time."""
    async with serving(tmp_path, patience_seconds=0.05) as counter, client(counter, mode) as desk:
        told = await desk.call_tool("pay", {"amount": 7})
        card = await counter.card()
        assert told.is_error
        assert f"The call {card.call_id} of pay waits for a person's answer" in words(told)
        other = await desk.call_tool("pay", {"amount": 8})
        assert meta(other)["lastword/call"] != card.call_id, "other arguments are another call"
        counter.answer(card, ALLOWED)
        await until(lambda: counter.paid)
        result = await desk.call_tool("pay", {"amount": 7})
        assert (result.is_error, meta(result)["lastword/call"]) == (False, card.call_id)
        assert EARLIER in words(result)
        fresh = await desk.call_tool("pay", {"amount": 7})
        assert meta(fresh)["lastword/kind"] == "waiting"
        assert meta(fresh)["lastword/call"] != card.call_id
    assert counter.paid == [7.0]


@requirement("MCP-21")
async def test_a_client_is_told_that_a_call_runs_only_once_it_was_allowed(tmp_path):
    """Not while its card is drawn: a model would go on as if somebody had agreed."""
    begun, go_on = threading.Event(), threading.Event()
    async with serving(tmp_path, patience_seconds=0) as counter, client(counter) as desk:

        @counter.registry.tool(effect="reversible")
        def walk() -> str:
            """Walks."""
            begun.set()
            go_on.wait(60)
            return "there"

        told = await desk.call_tool("walk", {})
        assert meta(told)["lastword/kind"] == "waiting"
        assert "waits for a person's answer, and nothing has happened yet." in words(told)
        counter.answer(await counter.card(), ALLOWED)
        await until(begun.is_set)
        told = await desk.call_tool("walk", {})
        assert meta(told)["lastword/kind"] == "running"
        assert "of walk was allowed, and is running. It goes on without you." in words(told)
        go_on.set()
    async with serving(tmp_path) as counter, client(counter) as desk:
        counter.registry.tool(walk, effect="reversible")
        assert words(await desk.call_tool("walk", {})) == f"there\n{EARLIER}"


@requirement("MCP-21")
async def test_of_a_script_it_is_not_said_that_nothing_has_happened(tmp_path):
    """Some of its calls may be done when the next one is asked about."""
    text = "LET x = CALL look {}\nLET y = CALL pay { amount: 1 }"
    async with serving(tmp_path, patience_seconds=0) as counter, client(counter) as desk:
        told = await desk.call_tool("run_script", {"script": text})
        assert meta(told)["lastword/kind"] == "running"
        assert "is running. It goes on without you." in words(told)
        assert "allowed" not in words(told)
        card = await counter.card()
        told = await desk.call_tool("run_script", {"script": text})
        assert meta(told)["lastword/kind"] == "waiting"
        assert "waits for a person's answer about its next call. It goes on without you." in words(told)
        counter.answer(card, ALLOWED)
        await until(lambda: counter.paid)
    assert counter.paid == [1.0]


@requirement("MCP-21")
async def test_a_request_that_the_client_gives_up_leaves_the_call_alone(tmp_path):
    """The deadline of a client is not the person's answer."""
    async with serving(tmp_path) as counter, client(counter) as desk:
        with pytest.raises(MCPError):
            await desk.call_tool("pay", {"amount": 7}, read_timeout_seconds=0.2)
        card = await counter.card()
        counter.answer(card, ALLOWED)
        await until(lambda: counter.paid)
        result = await desk.call_tool("pay", {"amount": 7})
        assert meta(result)["lastword/call"] == card.call_id
    assert counter.paid == [7.0]


@requirement("MCP-21")
async def test_progress_keeps_a_client_patient(tmp_path, monkeypatch):
    """Whoever listens to progress knows that somebody is asked."""
    monkeypatch.setattr("lastword.mcp.client_messages.PROGRESS_SECONDS", 0.02)
    heard = []

    async def hear(progress, total, message):
        heard.append(message)

    async with serving(tmp_path) as counter, client(counter) as desk:
        calling = asyncio.create_task(desk.call_tool("pay", {"amount": 7}, progress_callback=hear))
        card = await counter.card()
        await until(lambda: heard)
        counter.answer(card, ALLOWED)
        assert not (await calling).is_error
    assert heard[0] == "Waiting for a person to answer for pay in lastword"


@requirement("MCP-9", "MCP-21")
@ERAS
@pytest.mark.parametrize("asks", [True, False])
async def test_what_a_running_tool_reports_reaches_the_client_as_progress(tmp_path, mode, asks):
    """Whoever waits for a long call hears how it goes, marked, in growing numbers; and nobody else does."""
    heard: list[tuple[float, str | None]] = []

    async def hear(progress, total, message):
        heard.append((progress, message))

    async with serving(tmp_path) as counter, client(counter, mode) as desk:

        @counter.registry.tool(require_approval=asks, effect="reversible")
        def walk(context: lastword.ToolContext) -> str:
            """Walks."""
            for step in range(3):
                context.report(f"step {step}\u202e")
            return "there"

        calling = asyncio.create_task(desk.call_tool("walk", {}, progress_callback=hear))
        if asks:
            counter.answer(await counter.card(), ALLOWED)
        assert words(await calling) == "there"
    assert [message for _, message in heard] == [f"step {step}‹U+202E›" for step in range(3)]
    assert all(one < other for (one, _), (other, _) in itertools.pairwise(heard))


@requirement("MCP-12", "MCP-20")
@ERAS
async def test_a_changed_list_is_announced(tmp_path, mode):
    """A client that offers what a server behind us has withdrawn would let its model ask for nothing."""
    told = asyncio.Event()

    async def hear(message):
        if isinstance(message, types.ToolListChangedNotification):
            told.set()

    async with serving(tmp_path) as counter, client(counter, mode, message_handler=hear) as desk:
        assert "look" in [tool.name for tool in (await desk.list_tools()).tools]
        capabilities = desk.server_capabilities
        assert capabilities is not None
        assert capabilities.tools is not None
        assert capabilities.tools.list_changed is True
        if mode == "legacy":
            counter.registry.unregister("look")
            counter.registry.unregister("jot")
            async with asyncio.timeout(60):
                await told.wait()
        else:
            async with desk.listen(tools_list_changed=True) as events, asyncio.timeout(60):
                counter.registry.unregister("look")
                await anext(aiter(events))
        assert "look" not in [tool.name for tool in (await desk.list_tools()).tools]


@requirement("MCP-21")
async def test_two_equal_requests_at_once_are_two_calls_one_after_the_other(tmp_path):
    """They share the first card; its result goes to one of them, and the other asks anew."""
    async with serving(tmp_path) as counter, client(counter) as desk:
        both = [asyncio.create_task(desk.call_tool("pay", {"amount": 7})) for _ in range(2)]
        first = await counter.card()
        counter.answer(first, ALLOWED)
        second = await counter.card(before=first.call_id)
        counter.answer(second, ALLOWED)
        results = await asyncio.gather(*both)
    assert {meta(result)["lastword/call"] for result in results} == {first.call_id, second.call_id}
    assert counter.paid == [7.0, 7.0]


@requirement("MCP-21", "MCP-23")
async def test_a_card_outlives_the_server_and_its_answer_is_found_by_the_next(tmp_path):
    """The client was restarted, and with it the server. What was asked is not asked twice."""
    async with serving(tmp_path, patience_seconds=0.05) as counter, client(counter) as desk:
        told = await desk.call_tool("pay", {"amount": 7})
    async with serving(tmp_path) as counter, client(counter, "auto") as desk:
        calling = asyncio.create_task(desk.call_tool("pay", {"amount": 7}))
        card = await counter.card()
        assert card.call_id == meta(told)["lastword/call"]
        assert card.problem is None
        counter.answer(card, ALLOWED)
        assert not (await calling).is_error
    assert counter.paid == [7.0]


@requirement("MCP-22")
@ERAS
async def test_a_dialogue_turns_the_presets_key_and_is_journaled_as_one(tmp_path, mode):
    """For a tool that permits auto-approval and can be taken back; under the client's name, and not a person's."""
    seen: list[str] = []
    async with dialogue(tmp_path, mode, accepting(seen)) as (counter, desk):
        result = await desk.call_tool("jot", {"text": "hello"})
        assert not result.is_error
        assert '"text": "hello"' in seen[0]
        life = await counter.journal.life(meta(result)["lastword/call"])
        assert life.answered["approver"]["kind"] == "client"
        assert life.started["approval"] == "auto"
        assert counter.sessions["mcp-stdio-dialogue"].preset.name == "editor‹U+202E› 7"
    assert counter.paid == [5]


@requirement("MCP-22")
@ERAS
@pytest.mark.parametrize("counts", [False, True], ids=["off by default", "switched on"])
async def test_a_dialogue_that_does_not_count_is_not_shown(tmp_path, mode, counts):
    """Off by default: a client can answer by itself, and nobody would have seen anything. And for a tool that cannot be
    taken back, or does not say: its card waits for a person, whatever the client would answer."""
    seen: list[str] = []
    calls: tuple[tuple[str, dict[str, Any]], ...] = (("pay", {"amount": 1}), ("unsaid", {"text": "x"}))
    facts = {"approve_by_client": counts, "patience_seconds": 0.05}
    async with dialogue(tmp_path, mode, accepting(seen), **facts) as (counter, desk):
        for tool, arguments in calls if counts else (*calls, ("jot", {"text": "x"})):
            assert meta(await desk.call_tool(tool, arguments))["lastword/kind"] == "waiting"
    assert (seen, counter.paid) == ([], [])


@requirement("MCP-22")
@ERAS
@pytest.mark.parametrize("content", [{"allow": False}, {}, {"allow": "true"}, {"allow": 1}])
async def test_only_a_plain_yes_of_a_dialogue_counts(tmp_path, mode, content):
    """Anything else is a no, which is remembered."""
    async with dialogue(tmp_path, mode, accepting([], content)) as (counter, desk):
        result = await desk.call_tool("jot", {"text": "hello"})
        assert meta(result)["lastword/kind"] == "denied"
        life = await counter.journal.life(meta(result)["lastword/call"])
        assert life.answered["approver"]["kind"] == "client"
    assert counter.paid == []


YES: dict[str, Any] = {"approval": types.ElicitResult(action="accept", content={"allow": True})}


@requirement("MCP-23")
async def test_a_round_survives_a_restart_and_runs_once(tmp_path):
    """Between the question and its answer the process is another one. A second time the answer runs nothing."""
    ask = accepting([])
    async with dialogue(tmp_path, "auto", ask) as (counter, desk):
        first = await desk.session.call_tool("jot", {"text": "hello"}, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)
        assert first.request_state is not None
        assert counter.paid == []
    async with dialogue(tmp_path, "auto", ask) as (counter, desk):

        async def answer(arguments, state):
            return await desk.session.call_tool(
                "jot", arguments, input_responses=YES, request_state=state, allow_input_required=True
            )

        for arguments, state in (
            ({"text": "other"}, first.request_state),
            ({"text": "hello"}, first.request_state[:-3] + "AAA"),
            ({"text": "hello"}, "made up"),
        ):
            with pytest.raises(MCPError):
                await answer(arguments, state)
        assert counter.paid == []
        done = await answer({"text": "hello"}, first.request_state)
        assert not done.is_error
        replayed = await answer({"text": "hello"}, first.request_state)
        assert replayed.meta == done.meta
        assert words(replayed) == words(done)
    assert counter.paid == [5]


NO: dict[str, Any] = {"approval": types.ElicitResult(action="decline")}


@requirement("MCP-23")
@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("answers", [(YES, NO, YES), (NO, YES, NO)])
async def test_the_first_answer_of_a_round_counts_and_the_others_are_told(tmp_path, answers, at_once):
    """A no that is followed by a yes stays a no, and nobody waits for a card that never comes."""
    async with dialogue(tmp_path, "auto", accepting([])) as (counter, desk):
        first = await desk.session.call_tool("jot", {"text": "hello"}, allow_input_required=True)
        assert isinstance(first, types.InputRequiredResult)

        def answer(said):
            return desk.session.call_tool(
                "jot",
                {"text": "hello"},
                input_responses=said,
                request_state=first.request_state,
                allow_input_required=True,
            )

        async with asyncio.timeout(60):
            told = await asyncio.gather(*map(answer, answers)) if at_once else [await answer(said) for said in answers]
    kinds = {meta(result)["lastword/kind"] for result in told}
    assert len(kinds) == 1
    if not at_once:
        assert kinds == {"succeeded" if answers[0] is YES else "denied"}
    assert counter.paid == ([5] if kinds == {"succeeded"} else [])
    if kinds == {"denied"}:
        assert words(told[0]).startswith("jot was not run: the dialogue of editor‹U+202E› 7 denied it.")


async def test_a_card_that_is_left_waiting_is_no_trouble_at_the_end(tmp_path, caplog):
    """A client keeps what its servers complain of; a traceback there would be taken for a crash."""
    async with serving(tmp_path, patience_seconds=0.05) as counter, client(counter) as desk:
        assert meta(await desk.call_tool("pay", {"amount": 7}))["lastword/kind"] == "waiting"
    gc.collect()
    await asyncio.sleep(0)
    assert "never retrieved" not in caplog.text


@requirement("MCP-25")
@ERAS
async def test_a_script_is_checked_and_each_call_of_it_asks(tmp_path, mode):
    """The client's model gets the place of its mistake; what is sensitive waits for a person, as always."""
    async with serving(tmp_path) as counter, client(counter, mode) as desk:
        wrong = await desk.call_tool("run_script", {"script": "LET x = CALL pya { amount: 1 }"})
        assert wrong.is_error
        assert "1:" in words(wrong)
        assert "pay" in words(wrong)
        text = "LET seen = CALL look {}\nCALL pay { amount: 7 }\nPRINT(seen)"
        running = asyncio.create_task(desk.call_tool("run_script", {"script": text}))
        card = await counter.card()
        assert card.origin.startswith("line 2 of a script of an MCP client")
        counter.answer(card, ALLOWED)
        done = await running
        assert not done.is_error, words(done)
        assert words(done) == "seen"
        assert (await desk.call_tool("run_script", {"text": "x"})).is_error
    assert counter.paid == [7.0]


@requirement("MCP-20")
async def test_what_is_wrong_with_a_request_is_told_and_nothing_runs(tmp_path):
    """An unknown tool, and arguments that do not fit, in the words that any model gets."""
    async with serving(tmp_path) as counter, client(counter) as desk:
        for tool, arguments, said in (("pya", {}, "did you mean pay"), ("pay", {"amount": "x"}, "must be a number")):
            told = await desk.call_tool(tool, arguments)
            assert (told.is_error, said in words(told)) == (True, True), words(told)
    assert counter.paid == []


async def test_images_reach_the_client_byte_for_byte(tmp_path):
    """Rich content goes both ways."""
    png = bytes.fromhex("89504e470d0a1a0a") + b"rest"
    async with serving(tmp_path) as counter, client(counter) as desk:
        counter.registry.register("draw", {"type": "object"}, lambda args, context: lastword.Image(png))
        result = await desk.call_tool("draw", {})
        [image] = [block for block in result.content if isinstance(block, types.ImageContent)]
        assert (image.mime_type, image.data) == ("image/png", "iVBORw0KGgpyZXN0")


@requirement("MCP-24", "MCP-31")
async def test_the_journal_names_the_client_of_every_call(tmp_path):
    """As it calls itself, beside what was done for it."""
    async with serving(tmp_path) as counter, client(counter) as desk:
        asked = asyncio.create_task(desk.call_tool("pay", {"amount": 7}))
        counter.answer(await counter.card(), ALLOWED)
        call_id = meta(await asked)["lastword/call"]
        kept = {record.kind: data_of(record) for record in await counter.journal.store.read(subject=call_id)}
        assert kept["mcp_call"] == {"tool": "pay", "client": "editor‹U+202E› 7"}
        assert "editor‹U+202E› 7" in json.dumps(kept["asked"], ensure_ascii=False)


JOTTING = """
[[rule]]
name = "this very text"
tool = "jot"
decide = "allow"
where = { text = { is = "tea" } }
tests = { match = [{ text = "tea" }], not_match = [{ text = "teas" }] }
"""


@requirement("RULE-7", "GRANT-7")
async def test_a_client_is_told_by_whose_word_nobody_was_asked_and_a_card_names_the_nearest_rule(tmp_path):
    """Beside the result, which stays the tool's own."""
    async with serving(tmp_path) as counter, client(counter) as desk:
        await desk.call_tool("look", {})
        counter.sessions["mcp-stdio"].policy = lastword.Policy.vouched(JOTTING, counter.registry)
        told = await desk.call_tool("jot", {"text": "tea"})
        assert words(told) == "jotted tea"
        assert meta(told)["lastword/not_asked"] == "the rule this very text (policy.toml:2) allows it"
        asked = asyncio.create_task(desk.call_tool("jot", {"text": "teas"}))
        card = await counter.card()
        assert card.rule_line == "Asked. Nearest rule: this very text (policy.toml:2): text “teas” is not “tea”."
        counter.answer(card, ALLOWED)
        assert "lastword/not_asked" not in meta(await asked)
