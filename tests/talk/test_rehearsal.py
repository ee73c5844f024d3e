"""The rehearsal model: everything can be tried without a model, through the same doors as with one."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastword import Session, ToolRegistry
from lastword.call import last_changed
from lastword.config import Config, ServerConfig, load
from lastword.consent import ALLOWED, DENIED
from lastword.editor import ProjectEditor
from lastword.server import HttpUpstream, Refusal, build_app
from lastword.store import MemoryStore
from lastword.talk.apiclient import Api, InProcessWire
from lastword.talk.model_choice import KeptModel, ModelChoice
from lastword.talk.rehearsal import NOTE, POSTCARD, Rehearsal, rehearse
from lastword.talk.satellite import Satellite
from lastword.talk.toolprompt import native_tools, tool_prompt
from lastword.talk.tour import Tour
from lastword.testing import FixedApprover
from lastword.testing.scripted import ScriptedModel
from lastword.wire import ToolRequest, parse_tool_request
from requirements import requirement


@pytest.fixture
def session() -> Session:
    registry = ToolRegistry()

    @registry.tool(require_approval=False)
    def mix(name: str, count: int = 1, tags: list[str] | None = None, sure: bool = False) -> str:
        """Takes one of everything."""
        return json.dumps([name, count, tags, sure])

    return Session(registry)


def asked(said: str, prompt: str = "", tools: Any = None) -> dict[str, Any]:
    return rehearse([{"role": "system", "content": prompt}, {"role": "user", "content": said}], tools)


@requirement("API-31")
def test_it_says_what_it_is_and_what_can_be_tried(session: Session):
    """Nobody should take it for a model, or wonder what to type."""
    text = asked("What is the weather?", tool_prompt(session, "script"))["content"]
    assert text.startswith("Rehearsal model: I am not a language model")
    assert "/mix name=… count=number tags=any sure=boolean" in text
    assert "no tools" in asked("Hello")["content"]


@requirement("API-31")
@pytest.mark.parametrize("protocol", ["json", "script"])
def test_a_typed_call_becomes_a_request_with_the_types_the_tool_wants(session: Session, protocol: Any):
    """A text stays a text, also when it looks like a number; the rest is JSON."""
    said = "/mix name=42 count=3 tags='[\"a b\"]' sure=true"
    reply = asked(said, tool_prompt(session, protocol))["content"]
    assert parse_tool_request(reply) == ToolRequest("mix", {"name": "42", "count": 3, "tags": ["a b"], "sure": True})


@requirement("API-31")
def test_where_tools_travel_natively_the_request_does_too(session: Session):
    """The same code path as with a model that calls natively."""
    reply = asked("/mix name=42 count=3", tool_prompt(session, "native"), native_tools(session))
    function = reply["tool_calls"][0]["function"]
    assert function["name"] == "mix"
    assert json.loads(function["arguments"]) == {"name": "42", "count": 3}


def test_a_tool_that_does_not_exist_is_asked_for_too():
    """The answer to a wrong name is one of the things to try."""
    assert parse_tool_request(asked("/nonsense a=1")["content"]) == ToolRequest("nonsense", {"a": 1})


@pytest.mark.parametrize("said", ["/mix name='open", "/mix name", "/mix =", "/", "/ mix", "/9"])
def test_what_cannot_be_read_is_told_or_greeted_and_never_guessed(session: Session, said: str):
    """A call with other arguments than were typed would be worse than none."""
    reply = asked(said, tool_prompt(session, "script"))
    if said == "/mix =":
        assert parse_tool_request(reply["content"]) == ToolRequest("mix", {"": ""})
    else:
        assert reply["content"].startswith("Rehearsal model:")


NAMES = st.from_regex(r"[a-z]{1,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(st.dictionaries(NAMES, TEXTS, max_size=4))
@settings(deadline=None, max_examples=60)
def test_any_text_survives_being_typed(arguments: dict[str, str]):
    """Quoted as a shell would quote it, and back."""
    registry = ToolRegistry()
    parameters = [{"name": name, "type": "string"} for name in arguments]
    registry.register("any_tool", {"description": "Takes texts.", "parameters": parameters}, lambda args, context: None)
    said = "/any_tool " + " ".join(f"{name}={shlex.quote(text)}" for name, text in arguments.items())
    reply = asked(said, tool_prompt(Session(registry), "json"))["content"]
    assert parse_tool_request(reply) == ToolRequest("any_tool", arguments)


@requirement("API-31")
def test_a_pasted_script_is_a_script_where_scripts_are_taken(session: Session):
    """It goes back as it was pasted; where the protocol has none, the person is told."""
    text = 'LET r = CALL mix { name: "x" }\nPRINT(r)'
    assert asked(text, tool_prompt(session, "script"))["content"] == text
    assert "does not take scripts" in asked(text, tool_prompt(session, "json"))["content"]


class Seat:
    """A satellite in front of the rehearsal model, and what its person answers."""

    def __init__(self, folder: Path, answers: list[Any], protocol: Any) -> None:
        self.registry = ToolRegistry()
        Tour(self.registry).add()
        self.folder = folder
        self.approver = FixedApprover(answers)
        self.session = Session(self.registry, approver=self.approver, editor=ProjectEditor(folder))
        self.app = build_app(MemoryStore(), Rehearsal(), log=lambda line: None)
        self.satellite = Satellite(self.session, Api(InProcessWire(self.app)), protocol=protocol)

    async def say(self, text: str) -> str:
        return (await self.satellite.say(text)).text


@requirement("API-31")
@pytest.mark.parametrize("protocol", ["json", "script", "native"])
async def test_the_tour_ends_with_something_allowed_denied_and_undone(tmp_path: Path, protocol: Any):
    """In any protocol, through the real server, the real door and the real editor."""
    seat = Seat(tmp_path, [ALLOWED, DENIED], protocol)
    async with InProcessWire.alive(seat.app), seat.session:
        assert "1 of 3" in await seat.say("tour")
        assert "2 of 3" in await seat.say("next")
        assert (tmp_path / "note.md").read_text() == "Somebody read this before it was written.\n"
        assert "3 of 3" in await seat.say("next")
        assert "Type /undo first" in await seat.say("next")
        call_id = await last_changed(seat.session.journal, seat.session.id)
        assert call_id is not None
        undone = await seat.session.undo(call_id)
        assert (undone.tool, undone.paths) == (NOTE, ("note.md",))
        seat.satellite.tell(undone.message)
        assert not (tmp_path / "note.md").exists()
        assert "That was the tour" in await seat.say("next")
    assert [card.tool for card in seat.approver.requests] == [NOTE, POSTCARD]


async def test_the_tour_waits_for_each_of_its_steps(tmp_path: Path):
    """Denying what should be allowed, or allowing what should be denied, does not end it."""
    seat = Seat(tmp_path, [DENIED, ALLOWED, ALLOWED, DENIED], "script")
    async with InProcessWire.alive(seat.app), seat.session:
        assert "Type `tour`" in await seat.say("next")
        await seat.say("tour")
        assert "you did not allow it" in await seat.say("next")
        assert "2 of 3" in await seat.say("next")
        assert "deny it this time" in await seat.say("next")
        assert "3 of 3" in await seat.say("next")


async def test_undo_without_a_name_takes_back_one_call_after_the_other(tmp_path: Path):
    """The last first, each once, until nothing is left."""
    seat = Seat(tmp_path, [ALLOWED, ALLOWED], "script")
    async with InProcessWire.alive(seat.app), seat.session:
        await seat.say("/tour_note path=a.md text=one")
        await seat.say("/tour_note path=a.md text=two")
        assert (tmp_path / "a.md").read_text() == "one\ntwo\n"
        for left in ("one\n", None):
            call_id = await last_changed(seat.session.journal, seat.session.id)
            assert call_id is not None
            await seat.session.undo(call_id)
            assert (tmp_path / "a.md").exists() == (left is not None)
            assert left is None or (tmp_path / "a.md").read_text() == left
        assert await last_changed(seat.session.journal, seat.session.id) is None


def configured(**server: Any) -> Config:
    return Config(server=ServerConfig(**server), sources=dict.fromkeys(server, "lastword.toml"))


@requirement("API-31")
async def test_a_local_model_is_found_and_said():
    """With nothing configured, what answers at a usual port is used, and the person is told where it is."""
    with ScriptedModel(["Hello."]) as model:
        choice = await ModelChoice.of(configured(), {"Nobody": "http://127.0.0.1:9/v1", "Ollama": model.url})
        assert isinstance(choice.upstream, HttpUpstream)
        assert choice.upstream.url == model.url
        assert choice.words == f"Model: Ollama, found at {model.url}."
        assert not choice.is_rehearsal


@requirement("API-31")
async def test_without_any_model_the_rehearsal_model_answers_and_says_so():
    """The last resort is never silent. Who sees it first does not know that there is another, or where it is named."""
    choice = await ModelChoice.of(configured(), {"Nobody": "http://127.0.0.1:9/v1"})
    assert choice.is_rehearsal
    for said in ("The rehearsal model answers", "To choose another: --upstream URL", "on the page of `lastword up`"):
        assert said in choice.words


async def test_what_is_configured_is_used_and_nothing_is_looked_for():
    """A configured model that is down is an error later, and not a reason to talk to another one."""
    with ScriptedModel(["Hello."]) as model:
        choice = await ModelChoice.of(configured(upstream="http://127.0.0.1:9/v1", model="big"), {"Ollama": model.url})
        assert choice.fact == "Model: big at http://127.0.0.1:9/v1 (lastword.toml)."
        assert choice.words == f"{choice.fact} It does not answer now: the model's server cannot be reached."


async def test_a_key_is_not_sent_to_a_model_that_was_merely_found(tmp_path: Path):
    """It was made for another server."""
    with ScriptedModel(["Hello."], key="sk-mine") as model:
        config = load(environ={"LASTWORD_UPSTREAM_KEY": "sk-mine"}, folder=tmp_path)
        choice = await ModelChoice.of(config, {"Ollama": model.url})
        with pytest.raises(Refusal, match="refused our key"):
            await choice.upstream.complete({"messages": [{"role": "user", "content": "Hi."}]})
        await choice.upstream.close()


async def test_a_model_that_was_chosen_is_asked_before_one_that_is_found_and_after_one_that_is_configured():
    """The nearer word counts: what was typed or written for this start, then what was chosen once, then a guess."""
    with ScriptedModel(lambda body: "Hello.", models=("large",), key="sk-mine") as model:
        kept = KeptModel(upstream=model.url, model="large", key="sk-mine")
        choice = await ModelChoice.of(configured(), {"Ollama": "http://127.0.0.1:9/v1"}, kept=kept)
        assert (choice.words, choice.model) == (f"Model: large at {model.url} (chosen on the page).", "large")
        await choice.upstream.complete({"messages": [{"role": "user", "content": "Hi."}]})  # Its key opens.
        await choice.upstream.close()
        choice = await ModelChoice.of(configured(upstream="http://127.0.0.1:9/v1"), {}, kept=kept)
        assert choice.fact == "Model: http://127.0.0.1:9/v1 (lastword.toml)."
        assert choice.model is None


@requirement("API-30")
@pytest.mark.parametrize(
    ("name", "models", "remark"),
    [
        ("lage", ("small", "large"), "The model's server does not list lage; did you mean large?"),
        ("x", tuple("abcdefgh"), "The model's server does not list x; it lists a, b, c, d, e, f and 2 more."),
        ("large", ("large:latest",), ""),
        ("any", (), ""),
        (None, ("small", "large"), ""),
    ],
)
async def test_a_name_that_the_server_does_not_list_is_said_at_the_start(name, models, remark):
    """In the first lines, and not by the refusal of the first message; where nothing is listed, nothing is known."""
    with ScriptedModel(["Hello."], models=models) as model:
        choice = await ModelChoice.of(configured(upstream=model.url, model=name))
    assert choice.remark == remark
    assert choice.words == f"{choice.fact} {remark}".rstrip()


@requirement("API-30")
async def test_an_address_without_its_end_is_said_at_the_start():
    """Most people know a server by its port."""
    with ScriptedModel(["Hello."]) as model:
        choice = await ModelChoice.of(configured(upstream=model.url.removesuffix("/v1")))
    assert choice.remark == f"No model's server answers there; is it {model.url}?"


@requirement("API-30")
async def test_a_name_without_a_server_is_not_passed_over_in_silence():
    """Who types --model and talks to the rehearsal model would look for the mistake in the name."""
    choice = await ModelChoice.of(configured(model="large"), {})
    assert choice.is_rehearsal
    assert "There is no server that could be asked for large." in choice.words
