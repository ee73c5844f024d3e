"""Models as they are: they think aloud, repeat themselves, forget quotes, and see only so much."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from flow.conftest import MakeStage, native, request
from lastword.consent import ApprovalRequest, UserAction
from lastword.server.history import LEAST_TOKENS, Context
from lastword.server.model_server import TEMPERATURE, ContextExceeded, exceeded
from lastword.talk import ApiError, Thought
from lastword.talk.feedback import JUST_DONE
from lastword.talk.replies import Protocol
from lastword.talk.turn import NO_WORD, Outgrown, Repairing
from lastword.testing.scripted import Fault
from requirements import requirement

YES = UserAction(primary_confirmed=True, secondary_confirmed=False)
NO = UserAction(primary_confirmed=False, secondary_confirmed=True)


class Cards:
    """A person who answers every card in the same way, and remembers what was on it."""

    def __init__(self, answer: UserAction) -> None:
        self.answer = answer
        self.seen: list[ApprovalRequest] = []

    async def __call__(self, card: ApprovalRequest) -> UserAction:
        self.seen.append(card)
        return self.answer


# Held to a form.


@requirement("API-61")
@pytest.mark.parametrize(
    ("owner", "options", "field"),
    [
        ("vllm", {}, "structured_outputs"),
        ("llamacpp", {}, "grammar"),
        ("somebody", {}, None),
        ("llamacpp", {"constrain": "never"}, None),  # Some models are worse when held; the person has the last word.
    ],
)
async def test_a_model_is_held_to_a_form_in_its_servers_own_words_or_not_at_all(
    stage: MakeStage, owner: str, options: dict[str, Any], field: str | None
):
    """The satellite has the tools, the server knows the model: together they can keep it from mistakes. A field that a
    server does not know makes it refuse the whole question."""
    house = await stage(["Hello."], owned_by=owner)
    await house.satellite(**options).say("hi")
    sent = house.model.requests[0]
    assert {"grammar", "structured_outputs"} & set(sent) == ({field} if field else set())
    assert sent.get("temperature") == (TEMPERATURE if field else None)
    assert "constrain" not in sent
    if field == "grammar":
        assert "root ::=" in sent["grammar"]
        assert '\\"lookup_weather\\"' in sent["grammar"]


@requirement("API-61")
async def test_a_server_that_refuses_the_grammar_is_asked_again_without_it_and_never_with_it(stage: MakeStage):
    """An old server must not make the assistant useless; and a question is not asked twice for ever."""
    refused = Fault("status", status=400, body=b"failed to parse grammar")
    house = await stage([refused, "Hello.", "Hello again."], owned_by="llamacpp")
    satellite = house.satellite()
    assert (await satellite.say("hi")).text == "Hello."
    await satellite.say("hi")
    assert ["grammar" in sent for sent in house.model.requests] == [True, False, False]


# Thinking aloud.


@requirement("API-62")
@pytest.mark.parametrize("pieces", [1, 3, 7, 1000])
async def test_thoughts_are_set_aside_and_the_request_after_them_is_carried_out(stage: MakeStage, pieces: int):
    """However the marks are cut by the stream. A thought about sending is not a request to send."""
    thought = f"I could {request('send', to='Eve')} but no"
    said = f"<think>{thought}</think>\n\n" + request("lookup_weather", city="Porto")
    reply = [said[at : at + pieces] for at in range(0, len(said), pieces)]
    house = await stage([reply, "Clear."], is_reasoning=True)
    assert (await house.satellite().say("weather?")).text == "Clear."
    assert house.did == [("lookup_weather", "Porto")]
    assert [heard.text for heard in house.heard if isinstance(heard, Thought)] == [thought]
    assert house.text == "Clear."


@requirement("API-62")
async def test_a_model_known_to_reason_needs_no_word_from_the_operator(stage: MakeStage):
    """Most people do not know that their model thinks."""
    house = await stage(["<think>Hm.</think>Hello."], models=["deepseek-r1:8b"], owned_by="llamacpp")
    assert (await house.satellite().say("hi")).text == "Hello."
    # Its thoughts would not fit into a grammar.
    assert "grammar" not in house.model.requests[0]


@requirement("API-62")
@pytest.mark.parametrize(
    ("text", "is_reasoning"),
    [
        *[(text, True) for text in ("I <think>so</think>.", "<thinking>", "<thi")],
        *[
            (text, False)
            for text in ("<think>Hm.</think>Hello.", "I <think>so</think>.", "<thinking>", "<thi", "<think> never ends")
        ],
    ],
)
async def test_only_a_leading_block_of_a_model_that_reasons_is_a_thought(
    stage: MakeStage, text: str, is_reasoning: bool
):
    """Somebody may talk about such marks. Nothing of what a model says may vanish by mistake."""
    house = await stage([text], is_reasoning=is_reasoning)
    assert (await house.satellite().say("hi")).text == text
    assert not [heard for heard in house.heard if isinstance(heard, Thought)]


@requirement("API-62")
async def test_quotes_from_habit_are_told_to_the_model_and_nothing_is_guessed(stage: MakeStage):
    """The repair is the model's: a request that somebody guessed is a request that nobody made."""
    house = await stage([request("send", to="Bob").replace('"', "'"), request("send", to="Bob"), "Done."])
    cards = Cards(YES)
    await house.satellite(cards).say("send")
    assert [heard.reason for heard in house.heard if isinstance(heard, Repairing)] == [
        'it is written with single quotes; JSON has straight double ones, like "tool_request"'
    ]
    assert len(cards.seen) == 1


@requirement("API-63")
async def test_a_script_with_let_in_small_letters_is_told_to_the_model(stage: MakeStage):
    """Seen of a small model: `Let done = CALL …` was shown to the person as an answer, and nothing had happened."""
    house = await stage(['Let w = CALL lookup_weather { city: "Porto" }', "LET w = 1", "Clear."])
    await house.satellite(protocol="script").say("weather?")
    reasons = [heard.reason for heard in house.heard if isinstance(heard, Repairing)]
    assert "keywords are upper case" in reasons[0]


# Repairs and repetitions.


@requirement("API-63")
async def test_a_repaired_mistake_leaves_what_the_model_is_shown_and_stays_in_the_conversation(stage: MakeStage):
    """A model repeats what it has seen, its own mistakes first. What was said is history all the same."""
    wrong = "Sure! " + request("lookup_weather", city="Porto")
    house = await stage([wrong, wrong, request("lookup_weather", city="Porto"), "Clear."])
    satellite = house.satellite()
    await satellite.say("weather?")
    shown = [[m["content"] for m in house.sent(turn)] for turn in range(4)]
    # Each mistake and its correction are shown once, in the very next question.
    assert [len(messages) for messages in shown] == [1, 3, 3, 3]
    assert shown[1][1] == wrong
    assert "could not be taken as one" in shown[1][2]
    assert shown[3][0] == "weather?"
    assert wrong not in shown[3]
    conversation = await satellite._api.conversation(satellite.conversation_id)
    assert conversation is not None
    kept = [message["content"] for message in conversation["messages"]]
    assert kept.count(wrong) == 2


BOB, ANN = request("send", to="Bob"), request("send", to="Ann")
PORTO = request("lookup_weather", city="Porto")
SCRIPT = 'CALL send { to: "Bob" }'
SETTLED, JUST_DENIED = "That settles it", "has just denied exactly this"


@requirement("API-63")
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ([BOB, BOB], SETTLED),
        ([BOB, PORTO, BOB], SETTLED),  # Another request in between does not make the same question new.
        ([BOB, request("send", amount=1, to="Bob")], SETTLED),  # A default that is written out shows the same card.
        ([request("send", to="Bob", amount=2), request("send", amount=2, to="Bob")], SETTLED),
        ([SCRIPT, f"{SCRIPT}\n"], SETTLED),
        # A script can be written in a thousand ways, and the person would be asked the same thing each time.
        ([SCRIPT, f"// please\n{SCRIPT}"], JUST_DENIED),
        ([SCRIPT, 'CALL send { to: "Bob", amount: 1 }'], JUST_DENIED),
        ([SCRIPT, f"LET r = TRY {SCRIPT}\nPRINT(r.message)"], JUST_DENIED),
        ([SCRIPT, 'LET who = "Bob"\nCALL send { to: who }'], JUST_DENIED),
    ],
)
async def test_what_a_person_denied_is_not_put_to_them_again_in_the_same_turn(
    stage: MakeStage, asked: list[str], told: str
):
    """A model that asks until it gets a yes would wear the person out. Their no is the outcome, again."""
    house = await stage([*asked, "I did not send it."])
    cards = Cards(NO)
    ended = await house.satellite(cards, protocol="script" if asked[0] == SCRIPT else "json").say("send")
    assert ended.text == "I did not send it."
    assert len(cards.seen) == 1
    assert ("send", "Bob", 1) not in house.did
    first, last = house.sent(1)[-1]["content"], house.sent()[-1]["content"]
    assert told in last
    assert told == JUST_DENIED or first == last, "the same result once more"


@pytest.mark.parametrize(("reply", "words"), [("", NO_WORD), (["\n", " "], NO_WORD), ("Done.", "")])
async def test_an_answer_without_a_word_is_said_to_be_one(stage: MakeStage, reply: Any, words: str):
    """A prompt that comes back with nothing above it looks like a message that was lost."""
    house = await stage([reply])
    ended = await house.satellite().say("hi")
    assert (ended.bound, ended.words) == (None, words)


@requirement("API-63")
@pytest.mark.parametrize("first", ["json", "script"])
async def test_what_was_denied_stays_denied_when_the_process_dies_in_the_same_turn(stage: MakeStage, first: Protocol):
    """The no was written down. Whoever starts the program again is not asked it a second time for the same message."""
    ask, other, script = request("send", to="Bob"), request("send", to="Ann"), 'CALL send { to: "Bob" }'
    house = await stage([ask if first == "json" else script, other, ask, "I did not send it."])
    asked = asyncio.Event()

    async def no_and_then_nothing(card: ApprovalRequest) -> UserAction:
        if card.arguments["to"] == "Bob":
            return NO
        asked.set()
        await asyncio.Event().wait()  # the process "dies" here
        raise AssertionError

    turn = asyncio.ensure_future(house.satellite(no_and_then_nothing, id="s", protocol=first).say("send"))
    await asked.wait()
    turn.cancel()
    await asyncio.wait({turn})
    cards = Cards(NO)
    ended = await house.satellite(cards, id="s", protocol=first).resume()
    assert ended is not None
    assert ended.text == "I did not send it."
    assert "Bob" not in [card.arguments["to"] for card in cards.seen]
    assert house.did == []


@requirement("API-63")
@pytest.mark.parametrize(
    ("answer", "turns"),
    [
        (NO, [[SCRIPT, 'CALL send { to: "Ann" }', "Neither."]]),  # The no was to one call.
        (YES, [[SCRIPT, SCRIPT, "Sent twice."]]),  # Only a no is final.
        (NO, [[BOB, "Not sent."], [BOB, "Not sent."]]),  # They have said something since; they may want it now.
    ],
)
async def test_whatever_is_not_what_was_just_denied_is_asked(
    stage: MakeStage, answer: UserAction, turns: list[list[str]]
):
    """Whatever differs from a no is a question of its own, and the person decides."""
    house = await stage([reply for turn in turns for reply in turn])
    cards = Cards(answer)
    satellite = house.satellite(cards, protocol="script")
    for _ in turns:
        await satellite.say("send")
    assert len(cards.seen) == 2


@requirement("API-63")
async def test_a_model_that_never_stops_asking_is_stopped_with_words_for_the_person(stage: MakeStage):
    """Three times it hears the no again; then the person is told, and decides."""
    house = await stage(lambda body: request("send", to="Bob"))
    cards = Cards(NO)
    ended = await house.satellite(cards).say("send")
    assert ended.bound == "repairs"
    assert "Say something to go on" in ended.words
    assert len(cards.seen) == 1
    assert len(house.model.requests) == 5


@requirement("API-63")
async def test_the_same_once_more_is_asked_with_the_words_that_it_was_just_done(stage: MakeStage):
    """Twenty coffees may be meant. The card says that this would be the second."""
    ask = request("send", to="Bob")
    house = await stage([ask, ask, request("send", to="Eve"), "Done."])
    cards = Cards(YES)
    await house.satellite(cards).say("send twice")
    assert [card.problem for card in cards.seen] == [None, JUST_DONE, None]
    assert house.did == [("send", "Bob", 1), ("send", "Bob", 1), ("send", "Eve", 1)]


# What was used.


@requirement("API-64")
@pytest.mark.parametrize(
    ("replies", "answer", "used"),
    [
        (["The kitchen light is now on."], YES, "No tool was used for this answer"),
        ([request("lookup_weather", city="Porto"), "Clear."], YES, "Used: lookup_weather"),
        ([request("send", to="Bob"), "Done."], NO, "No tool was used for this answer"),
        ([request("nothing"), "Done."], YES, "No tool was used for this answer"),
        (
            [request("send", to="Bob"), request("lookup_weather", city="Porto"), request("send", to="Eve"), "Done."],
            YES,
            "Used: send, lookup_weather",
        ),
    ],
)
async def test_every_answer_says_which_tools_were_used_for_it(
    stage: MakeStage, replies: list[Any], answer: UserAction, used: str
):
    """A model that says "done" and has done nothing must be found out at a glance."""
    house = await stage(replies)
    assert (await house.satellite(Cards(answer)).say("go")).used == used


@requirement("API-64")
async def test_a_script_says_so_too_and_without_tools_there_is_nothing_to_say(stage: MakeStage):
    """In every protocol; and a chat without tools is not bothered with it."""
    house = await stage(['CALL lookup_weather { city: "Porto" }', "Clear.", native(("1", "send", "{")), "No.", "Hi."])
    assert (await house.satellite(protocol="script").say("go")).used == "Used: lookup_weather"
    assert (await house.satellite(protocol="native").say("go")).used == "No tool was used for this answer"
    for name in ("lookup_weather", "send", "search"):
        house.registry.unregister(name)
    assert (await house.satellite().say("hi")).used == ""


# What fits.


def small(room: int) -> Any:
    """A model that refuses whatever is longer than so many characters, as llama.cpp does."""

    def reply(body: dict[str, Any]) -> Any:
        size = sum(len(str(message["content"])) for message in body["messages"])
        if size > room:
            said = f"request ({size} tokens) exceeds the available context size ({room} tokens)"
            return Fault("status", status=400, body=said.encode())
        return f"Answer {sum(m['role'] == 'user' for m in body['messages'])}."

    return reply


@requirement("API-65")
async def test_a_conversation_that_outgrows_the_model_goes_on_and_the_person_is_told_once(stage: MakeStage):
    """It answered 400 for ever after. Now the oldest turns go, and no turn of the person is lost."""
    house = await stage(small(4_000))
    satellite = house.satellite()
    for turn in range(30):
        assert (await satellite.say(f"turn {turn}: " + "word " * 60)).text.startswith("Answer ")
    assert len([heard for heard in house.heard if isinstance(heard, Outgrown)]) == 1
    # After the first refusal the size is known: at most one further question was refused.
    assert len(house.model.requests) <= 32
    last = house.sent()
    assert last[0]["role"] == "user"
    assert last[-1]["content"].startswith("turn 29")
    conversation = await satellite._api.conversation(satellite.conversation_id)
    assert conversation is not None
    assert conversation["turns"] == 30


@requirement("API-65")
async def test_a_server_that_says_how_much_it_sees_never_has_to_refuse(stage: MakeStage):
    """Asked beforehand, nothing is sent in vain."""
    house = await stage(small(4_000), owned_by="llamacpp", context=1_000)
    satellite = house.satellite()
    for turn in range(20):
        await satellite.say(f"turn {turn}: " + "word " * 40)
    assert len(house.model.requests) == 20
    assert len([heard for heard in house.heard if isinstance(heard, Outgrown)]) == 1


def forgetful(refuses: Callable[[int, int], bool]) -> Any:
    """A model's server that refuses for length without a number: by which question it is, and how long."""
    asked = 0

    def reply(body: dict[str, Any]) -> Any:
        nonlocal asked
        asked += 1
        size = sum(len(str(message["content"])) for message in body["messages"])
        if refuses(asked, size):
            return Fault("status", status=400, body=b"the context window is too small for this")
        return f"Answer {asked}."

    return reply


@requirement("API-65")
async def test_one_refusal_without_a_number_does_not_make_a_model_forgetful_for_good(stage: MakeStage):
    """A server that stumbled over its first question can see the whole conversation an hour later."""
    house = await stage(forgetful(lambda asked, size: asked == 1))
    satellite = house.satellite()
    with pytest.raises(ApiError, match="longer than the model can see"):
        await satellite.say("hi")
    for turn in range(6):
        await satellite.say(f"turn {turn}: " + "word " * 60)
    assert [m["content"][:6] for m in house.sent() if m["role"] == "user"] == [f"turn {turn}" for turn in range(6)]
    assert not [heard for heard in house.heard if isinstance(heard, Outgrown)]


@requirement("API-65")
async def test_a_guessed_size_grows_with_every_answer_until_it_is_right(stage: MakeStage):
    """The server had little room for an hour, and has plenty now: what the model is shown grows again by itself."""
    house = await stage(forgetful(lambda asked, size: asked <= 40 and size > 5_000))
    satellite = house.satellite()
    for turn in range(80):
        await satellite.say(f"turn {turn}: " + "word " * 30)
    seen = [len(house.sent(turn)) for turn in range(len(house.model.requests))]
    assert max(seen[60:]) > 1.5 * max(seen[20:40])
    assert len(house.model.requests) <= 80 + 8  # and growing costs few refusals


def test_a_guess_never_falls_below_what_every_model_sees():
    """Three words that were refused say nothing of three hundred."""
    context = Context()
    context.refused([{"role": "user", "content": "hi"}], ContextExceeded("code", "fact", None, None))
    assert context.tokens == LEAST_TOKENS


@requirement("API-65")
async def test_what_was_asked_for_and_its_result_stay_together_when_history_goes(stage: MakeStage):
    """A result without its request is a riddle for the model, and an error for its server."""
    long = "word " * 120
    house = await stage(
        ["Hi.", "Hi.", request("lookup_weather", city="Porto"), "Clear."], owned_by="llamacpp", context=700
    )
    satellite = house.satellite()
    await satellite.say(long)
    await satellite.say(long)
    await satellite.say("weather?")
    roles = [message["role"] for message in house.sent()]
    assert roles[-3:] == ["user", "assistant", "user"]
    assert house.sent()[-3]["content"] == "weather?"
    assert "18°C" in house.sent()[-1]["content"]


@requirement("API-65")
async def test_a_message_that_is_too_long_by_itself_is_refused_by_its_own_code(stage: MakeStage):
    """There is nothing to leave out. Whoever sent it has to know, by the code that every client knows."""
    house = await stage(small(3_000))
    satellite = house.satellite()
    with pytest.raises(Exception, match="longer than the model can see") as refused:
        await satellite.say("word " * 1_000)
    assert getattr(refused.value, "code", None) == "context_length_exceeded"
    assert (await satellite.say("hi")).text == "Answer 1."


@requirement("API-65")
@pytest.mark.parametrize("size", [-1, 0, 1, True, 10.5, "512"])
def test_a_size_that_no_model_has_is_not_believed(size: Any):
    """Taken at its word, the model would never be shown a turn of any conversation again."""
    refused = exceeded({"code": "context_length_exceeded", "n_ctx": size}, "")
    assert refused is not None
    assert refused.size is None
    context = Context()
    context.refused([{"role": "user", "content": "x" * 10_000}], refused)
    assert context.tokens is not None
    assert context.tokens >= LEAST_TOKENS
