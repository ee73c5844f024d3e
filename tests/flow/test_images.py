"""Images of results on their way to a model: those that take images get them, the others get words."""

import base64
import json
from typing import Any

import openai
import pytest

import lastword
from flow.conftest import MakeStage, native, request, served
from lastword.config import PresetConfig
from lastword.consent import ALLOWED
from lastword.errors import Tampered
from lastword.talk import ResolvedPreset
from lastword.talk.feedback import MAX_SENT_BYTES
from lastword.talk.rehearsal import rehearse
from lastword.testing.scripted import Fault
from lastword.wire import result_message
from requirements import requirement

PNG = b"\x89PNG\r\n\x1a\n" + bytes(60)
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
WORDS = "[image plot.png, image/png, 68 bytes, kept for the person: Sales]"


def add_tools(s: Any) -> None:
    @s.registry.tool
    def plot() -> lastword.ToolResult:
        """Draw the sales."""
        s.did.append("plot")
        return lastword.ToolResult({"sum": 7}, lastword.Image(PNG, name="plot.png", alt="Sales"))

    @s.registry.tool(require_approval=False)
    def lie() -> lastword.Image:
        """Draw nothing."""
        return lastword.Image(b"<html>", media_type="image/png", name="lie.png")

    @s.registry.tool(require_approval=False)
    def huge() -> list[lastword.Image]:
        """Draw a lot."""
        return [lastword.Image(PNG + bytes(MAX_SENT_BYTES), name="huge.png"), lastword.Image(PNG, name="small.png")]


def pictures(messages: list[dict[str, Any]]) -> list[str]:
    """The addresses of the images among these messages."""
    parts = [part for m in messages if isinstance(m["content"], list) for part in m["content"]]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@requirement("TOOL-64")
@pytest.mark.parametrize("protocol", ["json", "native", "script"])
async def test_a_model_gets_the_image_and_the_words_in_every_protocol(stage: MakeStage, protocol):
    """It sees what the person sees, in OpenAI's parts, behind a result that is words as always."""
    asked: Any = {"json": request("plot"), "native": native(("c1", "plot", "{}")), "script": "LET p = CALL plot {}"}
    s = await stage([asked[protocol], "Seven."])
    add_tools(s)
    ended = await s.satellite(ALLOWED, protocol=protocol).say("Plot it.")
    assert ended.text == "Seven."
    *_, result, shown = s.sent()
    assert "kept for the person" in result["content"]
    assert result["role"] == ("tool" if protocol == "native" else "user")
    assert shown["role"] == "user"
    assert shown["content"][0]["text"].startswith("[From the program, not from the person]")
    assert pictures([shown]) == [URL]


@requirement("TOOL-64")
async def test_a_preset_that_says_never_sends_words_alone(stage: MakeStage):
    """Some models have no eyes, and some people want no picture to leave the house."""
    s = await stage([request("plot"), "Seven."])
    add_tools(s)
    satellite = s.satellite(ALLOWED)
    satellite.use(ResolvedPreset.all_of({"blind": PresetConfig(images="never")})["blind"])
    await satellite.say("Plot it.")
    assert pictures(s.sent()) == []
    assert WORDS in json.loads(s.sent()[-1]["content"].split("\n")[2])["message"]


@requirement("TOOL-64")
@pytest.mark.parametrize(
    "refusal",
    [
        Fault("status", status=400, body=b'{"error": {"message": "this model takes text only"}}'),
        Fault("status", status=500, body=b'{"error": {"message": "image input is not supported"}}'),
    ],
)
async def test_a_model_that_takes_no_images_is_asked_again_without_and_spared_from_then_on(stage: MakeStage, refusal):
    """Nobody has to know beforehand which model takes images; the tool does not run a second time for it."""
    s = await stage([request("plot"), refusal, "Seven.", request("plot"), "Seven again."])
    add_tools(s)
    satellite = s.satellite(ALLOWED)
    assert (await satellite.say("Plot it.")).text == "Seven."
    assert pictures(s.sent(1)) == [URL]
    assert pictures(s.sent(2)) == []
    assert (await satellite.say("Again.")).text == "Seven again."
    assert pictures(s.sent(4)) == []
    assert s.did == ["plot", "plot"]


@requirement("TOOL-64")
async def test_what_is_no_image_is_never_sent_as_one(stage: MakeStage):
    """A page that calls itself a picture is a file, for a model as for a person."""
    s = await stage([request("lie"), "Hm."])
    add_tools(s)
    await s.satellite().say("Plot it.")
    assert pictures(s.sent()) == []
    assert "[file lie.png, application/octet-stream" in s.sent()[-1]["content"]


@requirement("TOOL-64")
async def test_an_image_that_does_not_fit_is_named_and_the_others_are_sent(stage: MakeStage):
    """A request has a size, and a model that is not told would speak of a picture that it never saw."""
    s = await stage([request("huge"), "I see one."])
    add_tools(s)
    await s.satellite().say("Plot it.")
    shown = s.sent()[-1]
    assert pictures([shown]) == [URL]
    assert "Too large to be given to you: huge.png of huge." in shown["content"][0]["text"]


@requirement("TOOL-64")
async def test_an_image_goes_to_the_model_after_a_restart_too(stage: MakeStage):
    """What was done and not delivered is told by the journal, with what it holds."""
    s = await stage([request("plot"), Fault("status", status=401), "Seven."])
    add_tools(s)
    with pytest.raises(lastword.LastWordError):
        await s.satellite(ALLOWED, id="s").say("Plot it.")
    ended = await s.satellite(id="s").resume()
    assert ended is not None
    assert ended.text == "Seven."
    assert pictures(s.sent()) == [URL]
    assert s.did == ["plot"]


@requirement("TOOL-64")
async def test_bytes_that_were_changed_in_the_journal_do_not_reach_the_model(stage: MakeStage):
    """Whoever can write the file could otherwise show a model anything, in a tool's name."""
    s = await stage([request("plot"), Fault("status", status=401), "Seven."])
    add_tools(s)
    with pytest.raises(lastword.LastWordError):
        await s.satellite(ALLOWED, id="s").say("Plot it.")
    contents = s.journal.store._contents
    for digest in contents:
        contents[digest] = PNG + b"forged"
    with pytest.raises(Tampered):
        await s.satellite(id="s").resume()
    assert len(s.model.requests) == 2


@requirement("TOOL-64")
async def test_the_rehearsal_model_answers_a_result_that_has_images(stage: MakeStage):
    """It has no eyes, and the message with the images must not hide the result from it."""
    result = {"role": "user", "content": result_message("plot", '{"success":true,"message":"x"}')}
    said = [{"role": "user", "content": "hi"}, result]
    shown = {"role": "user", "content": [{"type": "text", "text": "[From the program, not from the person] See:"}]}
    assert "plot" in str(rehearse(said)["content"])
    assert rehearse([*said, shown]) == rehearse(said)


@requirement("TOOL-64", "API-1")
async def test_images_of_an_openai_client_reach_the_model_as_they_were_sent(stage: MakeStage):
    """The server passes parts through; in a conversation it remembers them, and an image does not fill the window."""
    big = f"data:image/png;base64,{base64.b64encode(PNG + bytes(900_000)).decode()}"
    part = {"type": "image_url", "image_url": {"url": big, "detail": "low"}}
    s = await stage(["A bar.", "Yes.", "Still a bar."])
    async with served(s.app) as port:
        client: Any = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
        for parts in ([{"type": "text", "text": "?"}, part], *[[{"type": "text", "text": "Sure?"}]] * 2):
            answer = await client.chat.completions.create(
                model="lastword",
                messages=[{"role": "user", "content": parts}],
                extra_body={"conversation_id": "c"},
            )
        await client.close()
    assert answer.choices[0].message.content == "Still a bar."
    assert s.sent(0)[-1]["content"][1] == part
    assert pictures(s.sent(2)) == [big]
