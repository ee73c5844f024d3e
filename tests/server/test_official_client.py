"""The official Python client, unchanged: words, streams, tools, several at once, and its own classes of errors."""

import asyncio
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import FunctionToolParam

from lastword.testing.scripted import Fault, Pause
from requirements import requirement

HI: list[ChatCompletionMessageParam] = [{"role": "user", "content": "Hi"}]
TOOLS: list[ChatCompletionToolParam] = [
    {"type": "function", "function": {"name": "t", "parameters": {"type": "object", "properties": {}}}}
]
CALL = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": '{"city": "Lisbon"}'}}


def client_of(server: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=20)


@requirement("API-20", "API-67")
@pytest.mark.parametrize("form", ["chat", "responses"])
async def test_two_requests_at_once_get_each_their_own_answer(house, form):
    """The second is answered while the first still waits: neither queues behind the other, nor gets its words."""
    gate = Pause()
    said = {"slow": ["One", gate, " two"], "fast": "Three."}
    server = house.server(lambda body: said[body["messages"][-1]["content"]])
    async with client_of(server) as client:

        async def ask(words: str) -> str | None:
            if form == "chat":
                answer = await client.chat.completions.create(
                    model="lastword", messages=[{"role": "user", "content": words}]
                )
                return answer.choices[0].message.content
            stream = await client.responses.create(model="lastword", input=words, stream=True)
            return "".join([event.delta async for event in stream if event.type == "response.output_text.delta"])

        slow = asyncio.ensure_future(ask("slow"))
        assert await asyncio.to_thread(gate.reached.wait, 20)
        assert await ask("fast") == "Three."
        assert not slow.done()
        gate.open()
        assert await slow == "One two"


@requirement("API-14")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_round_with_a_tool_by_the_official_client(house, stream):
    """Call, result and answer in the client's own types, with the history that it sends itself."""
    server = house.server([{"tool_calls": [CALL]}, "It is clear."])
    async with client_of(server) as client:
        message: Any
        if stream:
            async with client.chat.completions.stream(model="lastword", messages=HI, tools=TOOLS) as events:
                message = (await events.get_final_completion()).choices[0].message
        else:
            message = (
                (await client.chat.completions.create(model="lastword", messages=HI, tools=TOOLS)).choices[0].message
            )
        assert message.tool_calls is not None
        (call,) = message.tool_calls
        assert call.type == "function"
        assert (call.id, call.function.name, call.function.arguments) == ("c1", "t", '{"city": "Lisbon"}')
        history: list[Any] = [
            *HI,
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "18°C"},
        ]
        answer = await client.chat.completions.create(model="lastword", messages=history, tools=TOOLS)
        assert answer.choices[0].message.content == "It is clear."


@requirement("API-30")
@pytest.mark.parametrize(
    ("fault", "kind", "code"),
    [
        (
            Fault("status", status=400, code="context_length_exceeded"),
            openai.BadRequestError,
            "context_length_exceeded",
        ),
        (Fault("status", status=404, code="model_not_found"), openai.NotFoundError, "model_not_found"),
        (Fault("status", status=429), openai.RateLimitError, "upstream_busy"),
        (Fault("status", status=500), openai.InternalServerError, "upstream_failed"),
    ],
)
async def test_failures_are_the_clients_own_classes_with_the_code_of_the_models_server(house, fault, kind, code):
    """A program that handles OpenAI's errors handles ours."""
    server = house.server(lambda _: fault)
    async with client_of(server) as client:
        with pytest.raises(kind) as raised:
            await client.chat.completions.create(model="lastword", messages=HI)
    assert raised.value.code == code


RESPONSES_TOOLS: list[FunctionToolParam] = [
    {"type": "function", "name": "t", "parameters": {"type": "object", "properties": {}}, "strict": False}
]


@requirement("API-67")
async def test_the_official_client_goes_on_from_a_response(house):
    """Words, what they cost, the next turn by the id of the last, and the same response read again."""
    model = house.model(["It is 18 degrees.", "Yes."])
    async with client_of(house.server(model)) as client:
        first = await client.responses.create(model="lastword", input="Weather?", instructions="Be brief.")
        assert first.output_text == "It is 18 degrees."
        assert first.status == "completed"
        assert first.usage is not None
        assert first.usage.total_tokens == 10
        second = await client.responses.create(model="lastword", input="Sure?", previous_response_id=first.id)
        assert second.output_text == "Yes."
        assert [message["content"] for message in model.requests[1]["messages"]] == [
            "Weather?",
            "It is 18 degrees.",
            "Sure?",
        ]
        assert (await client.responses.retrieve(first.id)).output == first.output


@requirement("API-67")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("by_id", [False, True])
async def test_a_round_with_a_tool_in_the_newer_form(house, stream, by_id):
    """As its documentation has it: with the id of the response, or with every item sent back."""
    server = house.server([{"content": "Looking.", "tool_calls": [CALL]}, "It is clear."])
    async with client_of(server) as client:
        history: list[Any] = [{"role": "user", "content": "Weather?"}]
        asked: Any = {"model": "lastword", "input": history, "tools": RESPONSES_TOOLS}
        response: Any
        if stream:
            async with client.responses.stream(**asked) as events:
                texts = [event.delta async for event in events if event.type == "response.output_text.delta"]
                response = await events.get_final_response()
            assert texts == ["Looking."]
        else:
            response = await client.responses.create(**asked)
        assert response.output_text == "Looking."
        (call,) = [item for item in response.output if item.type == "function_call"]
        assert (call.call_id, call.name, call.arguments) == ("c1", "t", '{"city": "Lisbon"}')
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "18°C"}
        if by_id:
            asked |= {"input": [result], "previous_response_id": response.id}
        else:
            asked |= {"input": [*history, *(item.model_dump(exclude_none=True) for item in response.output), result]}
        answer = await client.responses.create(**asked)
        assert answer.output_text == "It is clear."
        assert answer.model_extra is not None
        assert answer.model_extra["ignored_tool_results"] == []


@requirement("API-67")
async def test_failures_of_the_newer_form_are_the_clients_own_classes(house):
    """Before the first event with a status, in the middle of a stream as the error that the client raises there."""
    faults = [
        Fault("status", status=400, code="context_length_exceeded"),
        Fault("die", after=["One ", "two"]),
    ]
    async with client_of(house.server(faults)) as client:
        with pytest.raises(openai.BadRequestError) as refused:
            await client.responses.create(model="lastword", input="Hi")
        assert refused.value.code == "context_length_exceeded"
        with pytest.raises(openai.APIError) as broken:
            async for _ in await client.responses.create(model="lastword", input="Hi", stream=True):
                pass
        assert broken.value.code == "upstream_died"
        with pytest.raises(openai.NotFoundError) as unknown:
            await client.responses.create(model="lastword", input="Hi", previous_response_id="resp_1_nowhere")
        assert unknown.value.code == "previous_response_not_found"
        with pytest.raises(openai.BadRequestError) as unsupported:
            await client.responses.create(model="lastword", input="Hi", background=True)
        assert (unsupported.value.code, unsupported.value.param) == ("unknown_parameter", "background")
