"""Chat completions through the official client: plain, streaming, tools, errors."""

import openai
import pytest
from requirements import requirement

from assent.scripted import Fault, Gate


@requirement("API-20")
def test_the_official_client_gets_an_answer(house):
    """The promise is OpenAI's own client, unchanged."""
    model = house.model(["It is 18 degrees."])
    client = house.server(model, model="scripted").client()
    answer = client.chat.completions.create(
        model="assent", messages=[{"role": "user", "content": "Weather?"}], temperature=0.5
    )
    assert answer.choices[0].message.content == "It is 18 degrees."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == 10
    assert answer.tool_request is None
    assert answer.tool_requests == []
    assert answer.conversation_id is None
    assert model.requests == [
        {"model": "scripted", "messages": [{"role": "user", "content": "Weather?"}], "temperature": 0.5}
    ]


@requirement("API-20")
def test_the_official_client_gets_a_stream(house):
    """Pieces as they come, then the reason it ended, then what it cost."""
    client = house.server(["one two three"]).client()
    stream = client.chat.completions.create(
        model="assent",
        messages=[{"role": "user", "content": "Count"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert [piece for piece in text if piece] == ["one ", "two ", "three"]
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage.total_tokens == 10
    assert chunks[-1].choices == []
    assert chunks[-1].tool_requests == []
    assert len({chunk.id for chunk in chunks}) == 1
