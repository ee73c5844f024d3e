"""Conversations in JSON requests."""

import json

from assent import UserAction
from flow.conftest import MakeStage, request
from requirements import requirement


@requirement("API-2", "API-25", "API-40")
async def test_a_result_goes_back_until_the_model_answers_in_words(stage: MakeStage):
    """Seed 004's flow, from the person's question to the answer, over a bounded number of asks."""
    s = await stage([request("lookup_weather", city="Lisbon"), "It is 18 degrees in Lisbon."])
    satellite = s.satellite()
    ended = await satellite.say("What is the weather in Lisbon?")
    assert (ended.text, ended.bound, ended.steps) == ("It is 18 degrees in Lisbon.", None, 2)
    assert s.did == [("lookup_weather", "Lisbon")]
    assert s.text == "It is 18 degrees in Lisbon."
    assert len(s.model.requests) == 2
    result = s.sent()[-1]
    assert result["role"] == "user"
    assert json.dumps("Lisbon is 18°C and clear.", ensure_ascii=False) in result["content"]


@requirement("API-2")
async def test_a_denial_reaches_the_model_with_its_reason(stage: MakeStage):
    """The model reacts to the reason, and nothing was sent."""
    s = await stage([request("send", to="Ann"), "Then I will not."])
    satellite = s.satellite(UserAction(False, True, "wrong person"))
    ended = await satellite.say("Send Ann something.")
    assert ended.text == "Then I will not."
    assert s.did == []
    assert "Their reason: wrong person" in s.sent()[-1]["content"]
