"""What a satellite tells the model, and how it speaks to the server."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flow.conftest import served
from lastword import Preset, Session, ToolRegistry, check
from lastword.config import PresetConfig, PresetLimits
from lastword.consent import Outcome
from lastword.editor import ProjectEditor
from lastword.errors import ConfigError
from lastword.runs import signatures
from lastword.script.builtins import BUILTINS
from lastword.script.prompt import CHARACTERS_PER_TOKEN, TOKEN_BUDGET, example_calls
from lastword.server import Tokens, build_app
from lastword.store import MemoryStore
from lastword.talk.apiclient import MAX_EVENT_BYTES, Api, ApiError, ConnectionLost, HttpWire, InProcessWire
from lastword.talk.feedback import script_result
from lastword.talk.rehearsal import Rehearsal
from lastword.talk.replies import Pieces, Reply, near_script, was_said
from lastword.talk.toolprompt import example_request, native_tools, tool_prompt
from lastword.talk.tour import Tour
from lastword.talk.turn import Bounds, ResolvedPreset, Spent
from lastword.wire import ToolRequest, parse_tool_request
from requirements import requirement

NOW = datetime(2026, 11, 17, 9, 0, tzinfo=UTC)
GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.fixture
def session() -> Session:
    registry = ToolRegistry()

    @registry.tool(require_approval=False, effect="none")
    def lookup_weather(city: str, days: int = 1) -> str:
        """Says what the weather will be like.

        city: Where.
        """
        return city

    registry.register(
        "send",
        {
            "description": "Sends money\nto somebody.",
            "parameters": [
                {"name": "to", "type": "string", "description": "Who gets it."},
                {"name": "note", "type": "any", "required": False},
            ],
        },
        lambda args, context: None,
        require_approval=True,
    )
    Tour(registry).add()
    session = Session(registry)
    session.set_state("last_city", "Lisbon", {"description": "the city that was asked for last"})
    session.set_state("checked_time", 1_700_000_000)
    return session


@requirement("API-43")
@pytest.mark.parametrize("protocol", ["json", "script", "native"])
def test_the_prompt_is_what_it_was(session: Session, protocol: Any):
    """A changed word changes how models behave: whoever changes one should see all of it."""
    expected = (GOLDEN / f"prompt_{protocol}.txt").read_text(encoding="utf-8")
    prompt = tool_prompt(session, protocol, "You are the voice of a small house.", NOW)
    if os.environ.get("LASTWORD_WRITE_GOLDEN"):
        (GOLDEN / f"prompt_{protocol}.txt").write_text(prompt, encoding="utf-8")
        expected = prompt
    assert prompt == expected
    # Prompts that differ by nothing but the weather defeat every cache.
    assert tool_prompt(session, protocol) == tool_prompt(session, protocol)


@requirement("API-60")
def test_the_instructions_show_a_request_that_the_tools_at_hand_would_take(session: Session):
    """An example with placeholders teaches a small model to send placeholders."""
    prompt = tool_prompt(session, "json", now=NOW)
    shown = [line for line in prompt.splitlines() if line.startswith("{")]
    assert len(shown) == 1
    request = parse_tool_request(shown[0])
    assert isinstance(request, ToolRequest)
    assert request.arguments
    session.registry.lookup(request.name).validate(request.arguments)


@requirement("API-60", "NUWA-86")
def test_the_instructions_for_scripts_begin_and_end_with_a_call_that_the_tools_at_hand_would_take(session: Session):
    """A small model does what it was shown last. Shown how a result is looked at, it made up results to look at."""
    prompt = tool_prompt(session, "script", now=NOW)
    shown = [line for line in prompt.splitlines() if re.match(r"CALL \w+ \{[^}]*\}$", line)]
    assert shown[0] == shown[1]
    assert len(shown) == 3, "and one of a tool that asks nobody beside one that does"
    offered = signatures(session.registry, Preset(), with_editor=False)
    assert check("\n".join(shown), session.registry) == []
    assert len({offered[line.split()[1]].needs_person for line in shown}) == 2
    assert prompt.index(shown[0]) < prompt.index("Tools:") < prompt.rindex(shown[0])
    assert all(name in prompt for name in (*BUILTINS, *offered))
    assert "they may deny, and that does not stop the script" in prompt
    assert "What no tool is for gets a reply in plain words." in prompt


@requirement("API-60")
def test_the_example_of_a_script_is_the_tool_of_which_least_is_invented():
    """As for requests: what an author named is better than what we make up, and no arguments show no form."""
    registry = ToolRegistry()

    def shown(name: str, *parameters: dict[str, Any]) -> str:
        registry.register(name, {"description": "d", "parameters": list(parameters)}, lambda args, context: None)
        return example_calls(signatures(registry, Preset()))[0][1]

    many = [{"name": f"p{number}", "type": "string"} for number in range(6)]
    assert shown("many", *many).startswith("CALL many")
    assert shown("free") == "CALL free {}"
    assert shown("named", {"name": "who", "type": "string"}) == 'CALL named { who: "who" }'
    told = {"name": "size", "type": "string", "schema": {"enum": ["small"]}}
    assert shown("told", told) == 'CALL told { size: "small" }'


@requirement("API-60")
def test_the_instructions_prefer_an_example_of_which_nothing_is_invented():
    """What an author named is better than what we make up; a tool that cannot be guessed is no example."""
    registry = ToolRegistry()
    hard = [{"name": "code", "type": "string", "schema": {"pattern": "^[A-F]{9}!$"}}]
    registry.register("hard", {"description": "d", "parameters": hard}, lambda args, context: None)
    assert example_request(registry.all(), NOW) == '{"tool_request": {"name": "hard", "arguments": {}}}'
    registry.register("free", {"description": "d", "parameters": []}, lambda args, context: None)
    assert '"free"' in example_request(registry.all(), NOW)
    named = [{"name": "who", "type": "string"}]
    registry.register("named", {"description": "d", "parameters": named}, lambda args, context: None)
    assert '"named"' in example_request(registry.all(), NOW)
    told = [{"name": "size", "type": "string", "schema": {"enum": ["small"]}}]
    registry.register("told", {"description": "d", "parameters": told}, lambda args, context: None)
    assert example_request(registry.all(), NOW) == (
        '{"tool_request": {"name": "told", "arguments": {"size": "small"}}}'
    )


@requirement("API-60")
def test_the_instructions_hold_nothing_that_small_models_repeat(session: Session):
    """Each of these was seen to come back as a reply: what a reply is not, and what a result looks like."""
    form = tool_prompt(session, "json", now=NOW).partition("Tools:")[0].lower()
    for parroted in ("no words", "markdown", "fence", "alone", "at a time", '"success"', '"message"', "value", "…"):
        assert parroted not in form, parroted


@requirement("API-60")
@pytest.mark.parametrize("protocol", ["json", "script", "native"])
def test_every_prompt_says_the_day_and_the_time_zone(session: Session, protocol: Any):
    """A model that does not know today makes up what tomorrow is, and a small one cannot count to Friday."""
    prompt = tool_prompt(session, protocol, now=NOW)
    assert "Today is Tuesday 2026-11-17 (UTC). Tomorrow is Wednesday 2026-11-18." in prompt
    assert "Friday 2026-11-20" in prompt


@requirement("API-60")
def test_enums_ranges_defaults_and_what_is_required_are_told_in_every_protocol():
    """What the tool would refuse, the model can know beforehand."""
    registry = ToolRegistry()
    registry.load("examples/home/tools/set_light")
    house = Session(registry)
    prompt = tool_prompt(house, "json", now=NOW)
    assert 'room (string, required): Which room. One of "hall", "kitchen", "living room", "bedroom".' in prompt
    assert "brightness (number, optional): In percent. 1 to 100. Without it: 100." in prompt
    properties = native_tools(house)[0]["function"]["parameters"]["properties"]
    assert properties["room"]["enum"] == ["hall", "kitchen", "living room", "bedroom"]
    assert (properties["brightness"]["minimum"], properties["brightness"]["default"]) == (1, 100)


@requirement("API-43")
async def test_the_prompt_follows_tools_and_state(session: Session, tmp_path: Path):
    """A tool that is gone is not offered; one that needs an editor is offered where there is one."""
    assert "tour_note" not in tool_prompt(session, "json")
    with_editor = Session(session.registry, editor=ProjectEditor(tmp_path))
    assert "tour_note" in tool_prompt(with_editor, "json")
    assert "tour_note" in str(native_tools(with_editor))
    assert "tour_note" not in str(native_tools(session))
    session.registry.unregister("send")
    assert "send" not in tool_prompt(session, "json")
    session.set_state("last_city", "Porto")
    assert "last_city: Porto" in tool_prompt(session, "json")


@requirement("API-43", "API-60")
@pytest.mark.parametrize(("protocol", "beyond"), [("json", 700), ("script", 0)])
def test_a_thousand_tools_stay_within_the_budget_and_say_what_is_missing(protocol: Any, beyond: int):
    """A conversation needs room. Less is said of each tool before any is left out, and what is left out is counted."""
    registry = ToolRegistry()
    for number in range(1000):
        schema = {"description": f"Does the thing {number}. " * 20, "parameters": [{"name": "x", "type": "string"}]}
        registry.register(f"tool_{number}", schema, lambda args, context: None)
        if number == 2:
            few = tool_prompt(Session(registry), protocol)
            assert "Does the thing 2." in few
    prompt = tool_prompt(Session(registry), protocol, now=NOW)
    assert len(prompt) <= TOKEN_BUDGET * CHARACTERS_PER_TOKEN + beyond
    assert "Does the thing" not in prompt
    assert "more that this text has no room for" in prompt


def test_no_tools_are_said_to_be_none():
    """A model that is not told would invent them."""
    for protocol in ("json", "script", "native"):
        assert "There are no tools." in tool_prompt(Session(ToolRegistry()), protocol)


def test_native_tools_have_the_schema_that_arguments_are_checked_with(session: Session):
    """What the model's server is told is what we will accept."""
    send = next(tool["function"] for tool in native_tools(session) if tool["function"]["name"] == "send")
    assert send["description"] == "Sends money to somebody. (a person is asked first)"
    assert send["parameters"] == {
        "type": "object",
        "properties": {"to": {"type": "string", "description": "Who gets it."}, "note": {}},
        "required": ["to"],
        "additionalProperties": False,
    }


def test_a_script_result_is_bounded():
    """A script may print a megabyte; a conversation cannot hold it."""
    outcome = Outcome(kind="succeeded", message="m" * 10_000, call_id="c", tool="t")
    text = script_result("done", ["x" * 1_000_000], "e" * 1_000_000, [outcome] * 500)
    assert len(text) < 100_000
    assert json.loads(text)["more_calls"] == 450
    assert "980000 characters left out" in text


@given(st.text(max_size=200))
@settings(deadline=None, max_examples=200)
def test_any_text_is_either_words_or_has_a_reason(text: str):
    """Total: whatever the model writes, the satellite knows what to do about it."""
    for protocol in ("json", "script", "native"):
        reason = near_script(text, protocol, asks=False)
        assert reason is None or (reason and protocol == "script")


def test_a_long_text_that_begins_like_a_fence_takes_no_time():
    """The look for a near script is linear."""
    assert near_script("```" + "\n" * 200_000 + "x", "script", asks=False) is None


def test_a_turn_is_only_ours_if_it_holds_what_we_sent():
    """Order within a role counts, the server's order between roles does not, and results go by their ids."""
    sent = [{"role": "user", "content": "hi"}, {"role": "tool_result", "id": "a", "name": "t", "content": "1"}]
    held = [
        {"role": "tool_result", "id": "a", "content": "1", "turn": 2},
        {"role": "user", "content": "hi", "turn": 2},
        {"role": "assistant", "content": "ok", "turn": 2},
    ]
    assert was_said({"turns": 2, "messages": held}, sent)
    assert not was_said({"turns": 2, "messages": [{**held[0], "id": "b"}, *held[1:]]}, sent)
    assert not was_said({"turns": 2, "messages": held[1:]}, sent)
    assert not was_said({"turns": 3, "messages": held}, sent)


def test_tokens_are_estimated_where_the_server_does_not_count():
    """The bound holds for models that do not say what they used."""
    pieces = Pieces(1, "json")
    pieces.add({"choices": [{"delta": {"content": "x" * 400}}]})
    assert pieces.whole().tokens == 101


# The wire.


@pytest.fixture
async def app() -> Any:
    return build_app(MemoryStore(), Rehearsal(), log=lambda line: None)


async def collect(api: Api, **body: Any) -> str:
    text = ""
    async for chunk in api.turn({"messages": [{"role": "user", "content": "Hello"}], **body}):
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
    return text


@requirement("API-3")
async def test_both_wires_carry_the_same(app: Any):
    """In one process or two: the boundary is the protocol."""
    async with served(app) as port:
        far = HttpWire(f"http://127.0.0.1:{port}")
        for wire in (InProcessWire(app), far):
            api = Api(wire)
            assert (await collect(api, conversation_id=f"c{id(wire)}")).startswith("Rehearsal model:")
            conversation = await api.conversation(f"c{id(wire)}")
            assert conversation is not None
            assert conversation["turns"] == 1
            assert await api.conversation("nobody") is None
            assert await api.models() == ["lastword", "rehearsal"]
            with pytest.raises(ApiError) as refused:
                await collect(api, conversation_id="not an id")
            assert refused.value.status == 400
        await far.close()


async def test_a_token_goes_with_every_request_and_the_own_process_needs_none():
    """Once there are tokens, nobody comes in over a socket without one."""
    store = MemoryStore()
    _, token = await Tokens(store).create("satellite", ["chat"])
    app = build_app(store, Rehearsal(), log=lambda line: None)
    async with served(app) as port:
        url = f"http://127.0.0.1:{port}"
        with_token, without = HttpWire(url, token), HttpWire(url)
        assert await collect(Api(with_token))
        with pytest.raises(ApiError, match="wants a token"):
            await collect(Api(without))
        assert await collect(Api(InProcessWire(app)))
        await with_token.close()
        await without.close()


async def test_nobody_at_the_address_is_a_lost_connection():
    """And says where it looked."""
    wire = HttpWire("http://127.0.0.1:9")
    with pytest.raises(ConnectionLost, match=r"127\.0\.0\.1:9"):
        await collect(Api(wire))
    await wire.close()


@pytest.mark.parametrize("url", ["", "localhost:8811", "ftp://x", "http://"])
def test_an_address_that_is_none_is_refused_at_once(url: str):
    with pytest.raises(ConfigError, match="not the address of a server"):
        HttpWire(url)


Answer = Callable[[asyncio.StreamWriter], Any]


@pytest.fixture
async def fake() -> AsyncIterator[Callable[[bytes], Any]]:
    """A server that answers every request with these bytes and hangs up."""
    servers: list[asyncio.Server] = []

    async def start(answer: bytes) -> Api:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answer)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        servers.append(server)
        return Api(HttpWire(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"))

    yield start
    for server in servers:
        server.close()


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"


BROKE = b'data: {"error": {"message": "it broke\\nhint: wait", "code": "upstream_died"}}\n\n'


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", None),
        (b"SSH-2.0-nonsense\r\n", None),
        (HEAD, None),
        (HEAD + b'data: {"choices": []}\n\n', None),
        (HEAD + b"data: nonsense\n\ndata: [DONE]\n\n", (502, "garbage", None)),
        (HEAD + BROKE, (502, "upstream_died", "wait")),  # The satellite decides by the code whether to try again.
        (b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\noops", (500, "", None)),
        (b"HTTP/1.1 302 No\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n", (302, "", None)),
        # A server that is not ours, or not itself, must not fill the memory of whoever talks to it.
        (HEAD + b"data: " + b"x" * (MAX_EVENT_BYTES + 1), (502, "too_large", None)),
    ],
    ids=range(9),
)
async def test_a_server_that_answers_badly_is_an_error_in_words(fake: Any, answer: bytes, problem: Any):
    """Never a half answer taken for a whole one, and never a traceback. Else it is a lost connection."""
    api = await fake(answer)
    with pytest.raises(ApiError if problem else ConnectionLost) as refused:
        await collect(api)
    if isinstance(found := refused.value, ApiError):
        assert (found.status, found.code, found.hint) == problem
    await api.close()


# Presets.


def test_a_preset_decides_everything_it_names(tmp_path: Path):
    """And leaves the rest as it was."""
    (tmp_path / "persona.md").write_text("You are terse.")
    presets = ResolvedPreset.all_of(
        {
            "bold": PresetConfig(
                auto_approve=True,
                protocol="native",
                model="big",
                persona=tmp_path / "persona.md",
                limits=PresetLimits(steps=3),
            )
        }
    )
    bold, default = presets["bold"], presets["default"]
    assert (bold.protocol, bold.model, bold.persona) == ("native", "big", "You are terse.")
    assert bold.bounds == Bounds(steps=3)
    assert bold.preset.auto_approve
    assert not default.preset.auto_approve
    assert (default.protocol, default.model, default.persona) == ("json", "lastword", None)


def test_a_wrong_preset_is_named_with_the_nearest():
    presets = ResolvedPreset.all_of({"careful": PresetConfig()})
    with pytest.raises(ConfigError) as refused:
        ResolvedPreset.find(presets, "carefull")
    assert refused.value.hint == "did you mean careful?"
    with pytest.raises(ConfigError, match="steps has to be more than zero"):
        ResolvedPreset.all_of({"none": PresetConfig(limits=PresetLimits(steps=0))})


@pytest.mark.parametrize(("counts", "whole"), [((10, 5), 15), ((10, None), None), ((None, 5), None), ((None,), None)])
def test_a_sum_of_tokens_is_told_only_when_every_part_was_counted(counts, whole):
    """A number of which a part is our guess would look like the bill."""
    spent = Spent(Bounds())
    for turn, count in enumerate(counts):
        spent.take(Reply(turn=turn, tokens=count or 3, counted=count))
    assert spent.ended("", None).counted == whole
