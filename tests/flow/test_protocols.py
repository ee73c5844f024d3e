"""Nothing depends on which model: scripts, native calls and JSON requests do the same and leave the same behind."""

import json

import pytest

from flow.conftest import MakeStage, native, request
from lastword import UserAction
from lastword.consent import ALLOWED
from lastword.talk.turn import Bounds, Repairing
from requirements import requirement

DENIED = UserAction(False, True, "not Ben")

THREE = """\
LET w = CALL lookup_weather { city: "Lisbon" }
PRINT(w)
CALL send { to: "Ann", amount: 2 }
CALL send { to: "Ben", amount: 3 }
"""


def by_name(card):
    return card.deny("not Ben") if card.arguments["to"] == "Ben" else card.allow()


@requirement("API-40")
async def test_a_script_with_three_calls_of_which_one_is_denied(stage: MakeStage):
    """The model hears how far it came: what was printed, what ran, and why it stopped."""
    s = await stage([THREE, "Ann has it, Ben does not."])
    ended = await s.satellite(by_name, protocol="script").say("Pay them.")
    assert ended.text == "Ann has it, Ben does not."
    assert s.text == "Ann has it, Ben does not."
    assert s.did == [("lookup_weather", "Lisbon"), ("send", "Ann", 2)]
    result = json.loads(s.sent()[-1]["content"].split("\n")[2])
    assert result["output"] == "Lisbon is 18°C and clear."
    assert [(call["tool"], call["success"]) for call in result["calls"]] == [
        ("lookup_weather", True),
        ("send", True),
        ("send", False),
    ]
    assert "not Ben" in result["error"]
    assert "4:6" in result["error"]
    assert not any(isinstance(heard, Repairing) for heard in s.heard)


@requirement("API-41")
async def test_a_script_that_cannot_run_goes_back_with_its_errors(stage: MakeStage):
    """Nothing ran, every error has its line, and the repaired script does."""
    s = await stage(["CALL lookup_wether { city: 3 }", 'CALL lookup_weather { city: "Lisbon" }', "Clear."])
    await s.satellite(protocol="script").say("Weather?")
    assert s.did == [("lookup_weather", "Lisbon")]
    told = json.loads(s.sent(1)[-1]["content"].split("\n")[2])
    assert told["status"] == "failed"
    assert told["calls"] == []
    assert "did you mean lookup_weather?" in told["error"]


@requirement("API-41")
@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ('LET w = CALL lookup_weather { city: "Lisbon" \nPRINT(w)', "2:1"),
        ('```\nCALL lookup_weather { city: "Lisbon" }\n```', "inside a markdown fence"),
    ],
)
async def test_a_script_that_does_not_parse_goes_back_too(stage: MakeStage, reply: str, words: str):
    """To the server it is text. The model meant a script, and would wait for its result for ever."""
    s = await stage([reply, "Never mind."])
    ended = await s.satellite(protocol="script").say("Weather?")
    assert ended.text == "Never mind."
    assert words in s.sent(1)[-1]["content"]
    assert any(isinstance(heard, Repairing) for heard in s.heard)


@requirement("API-41", "API-40")
async def test_a_model_that_only_writes_broken_scripts_is_stopped(stage: MakeStage):
    """At most a named number of times."""
    s = await stage(lambda body: "CALL no_such_tool {}")
    ended = await s.satellite(protocol="script", bounds=Bounds(repairs=2)).say("Go.")
    assert ended.bound == "repairs"
    assert len(s.model.requests) == 3


async def test_ordinary_words_that_resemble_a_script_are_words(stage: MakeStage):
    """ "SET your alarm" is advice."""
    s = await stage(["SET your alarm, and CALL your mother."])
    ended = await s.satellite(protocol="script").say("What now?")
    assert ended.text == "SET your alarm, and CALL your mother."
    assert len(s.model.requests) == 1


IN_EACH = {
    "json": [
        request("lookup_weather", city="Lisbon"),
        request("send", to="Ann", amount=2),
        request("send", to="Ben", amount=3),
        "Done.",
    ],
    "native": [
        native(
            ("call_1", "lookup_weather", '{"city": "Lisbon"}'),
            ("call_2", "send", '{"to": "Ann", "amount": 2}'),
            ("call_3", "send", '{"to": "Ben", "amount": 3}'),
        ),
        "Done.",
    ],
    "script": [THREE, "Done."],
}


@requirement("API-40")
async def test_every_protocol_leaves_the_same_calls_and_outcomes_in_the_journal(stage: MakeStage):
    """A preset may change the protocol. It must not change what happens, nor what is remembered of it."""
    left = {}
    for protocol, replies in IN_EACH.items():
        s = await stage(replies)
        satellite = s.satellite([ALLOWED, DENIED], protocol=protocol)
        assert (await satellite.say("Pay them.")).text == "Done."
        assert s.did == [("lookup_weather", "Lisbon"), ("send", "Ann", 2)]
        started = await s.records(satellite, "started")
        finished = await s.records(satellite, "finished")
        answered = await s.records(satellite, "answered")
        left[protocol] = (
            [(d["tool"], d["arguments"], d["approval"]) for d in started],
            [(d["tool"], d["kind"], d["message"], d["approval"]) for d in finished],
            [(d["primary_confirmed"], d["reason"]) for d in answered],
        )
    assert left["json"] == left["native"] == left["script"]
    assert [kind for _, kind, _, _ in left["json"][1]] == ["succeeded", "succeeded", "denied"]
