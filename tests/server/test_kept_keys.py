"""What providers need back is kept: keys we do not know, thoughts, signatures; and content in parts is read."""

import json

import pytest

from lastword.server.api_types import Refusal
from lastword.server.completion import Completion, check_chunk, read_content
from requirements import requirement

SIGNED = {
    "id": "c1",
    "type": "function",
    "function": {"name": "t", "arguments": '{"pin": "hunter2"}'},
    "extra_content": {"google": {"thought_signature": "c2lnbmVk"}},
}
THOUGHTS = {"reasoning_content": "I should call t with hunter2.", "thought_signature": "bWluZQ=="}
TOOLS = [{"type": "function", "function": {"name": "t"}}]
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "got it"}


@requirement("API-66")
@pytest.mark.parametrize("stream", [False, True])
def test_what_a_provider_signed_goes_back_to_it_with_the_result(house, stream):
    """Without the signature of its own call it refuses the result, and the turn is lost."""
    model = house.model([{"tool_calls": [SIGNED], **THOUGHTS}, "Done.", "Yes."])
    server = house.server(model)
    assert server.chat("go", conversation_id="c", tools=TOOLS, stream=stream).status == 200
    assert server.chat(RESULT, conversation_id="c", tools=TOOLS).status == 200
    sent = model.requests[1]["messages"][1]
    assert sent["tool_calls"] == [SIGNED]
    assert {key: sent[key] for key in THOUGHTS} == THOUGHTS
    stored = server.send("GET", "/v1/conversations/c").json["messages"][1]
    assert stored["tool_calls"][0]["id"] == "c1"


@requirement("API-66")
def test_the_client_sees_them_too(house):
    """What is passed on whole is passed on whole: nothing of the provider's answer is ours to drop."""
    server = house.server([{"tool_calls": [SIGNED], **THOUGHTS}])
    message = server.chat("go", tools=TOOLS).json["choices"][0]["message"]
    assert message["tool_calls"] == [SIGNED]
    assert message["reasoning_content"] == THOUGHTS["reasoning_content"]


@requirement("API-66")
def test_thoughts_of_an_answer_in_words_are_kept_and_not_shown_to_the_model_again(house):
    """They are over. Some providers refuse to be shown them, and all charge for it."""
    model = house.model([{"content": "Hello.", **THOUGHTS}, "Yes."])
    server = house.server(model)
    server.chat("Hi", conversation_id="c")
    server.chat("Sure?", conversation_id="c")
    assert model.requests[1]["messages"][1] == {"role": "assistant", "content": "Hello."}


@requirement("API-54")
@pytest.mark.parametrize("stream", [False, True])
def test_a_secret_does_not_stay_in_what_the_model_thought_about_it(house, stream):
    """Thoughts quote the arguments that follow. A signature is no quotation, and stays."""
    model = house.model([{"tool_calls": [SIGNED], **THOUGHTS}, "Done."])
    server = house.server(model)
    server.chat("go", conversation_id="c", tools=TOOLS, stream=stream, secret_arguments={"t": ["pin"]})
    server.chat(RESULT, conversation_id="c", tools=TOOLS)
    sent = model.requests[1]["messages"][1]
    assert "hunter2" not in json.dumps(sent)
    assert sent["thought_signature"] == THOUGHTS["thought_signature"]
    assert sent["tool_calls"][0]["extra_content"] == SIGNED["extra_content"]


@requirement("API-66")
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello.", "Hello."),
        (None, None),
        ([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo."}], "Hello."),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Hi"}], "Hi"),
        ([{"type": "output_text", "text": "Hi"}], "Hi"),
        ([], ""),
    ],
)
def test_content_in_parts_is_read_as_its_text(content, text):
    """Some servers answer in parts, and were refused as garbage."""
    assert read_content(content) == text
    body = {"choices": [{"message": {"content": content}}]}
    assert Completion.checked(body).message["content"] == text
    chunk = {"choices": [{"delta": {"content": content}}]}
    assert check_chunk(chunk, str)["choices"][0]["delta"]["content"] == text


@requirement("API-66")
@pytest.mark.parametrize("content", [7, {"text": "x"}, ["x"], [{"type": "text", "text": 7}]])
def test_content_in_no_form_is_refused(content):
    """Nothing is guessed into text."""
    with pytest.raises(Refusal, match="a form we do not know"):
        Completion.checked({"choices": [{"message": {"content": content}}]})
