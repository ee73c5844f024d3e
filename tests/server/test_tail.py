"""What other processes write is seen with the next request, and looking for it costs one question."""

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword.errors import StoreError
from lastword.server.auth import Tokens
from lastword.server.conversations import Conversation, Conversations, Turn
from lastword.server.history import ChatMessage
from lastword.server.store_follower import MAX_BEHIND_RECORDS, PAGE_RECORDS, StoreFollower
from lastword.store import Entry, MemoryStore, Record
from lastword.testing.scripted import Pause
from requirements import requirement
from tries import tries


class Counting(MemoryStore):
    """Counts the questions."""

    def __init__(self):
        super().__init__()
        self.reads = 0

    async def read(self, **what):
        self.reads += 1
        return await super().read(**what)


class Slow(MemoryStore):
    """Answers late: the answer is as old as its journey, as from a database on another machine."""

    def __init__(self, delays):
        super().__init__()
        self._delays = iter(delays)

    async def read(self, **what):
        found = await super().read(**what)
        for _ in range(next(self._delays, 0)):
            await asyncio.sleep(0)
        return found


def noise(count):
    """What sessions write into the same store."""
    return [Entry("session/s", "call.started", "x", 1, b"{}") for _ in range(count)]


def turn(words, after):
    return Turn([ChatMessage("user", words)], {}, [], after)


def test_a_turn_asks_the_store_once_for_news(house):
    """Tokens and conversations follow the same list, and the same look serves both."""
    store = Counting()
    server = house.server(house.model(["One.", "Two.", "Three."]), store=store)
    server.chat("1", conversation_id="c")
    server.chat("2", conversation_id="c")
    before = store.reads
    assert server.chat("3", conversation_id="c").status == 200
    assert store.reads == before + 1


@requirement("API-21")
@pytest.mark.parametrize("between", [0, PAGE_RECORDS, MAX_BEHIND_RECORDS + PAGE_RECORDS])
def test_turns_and_revocations_of_another_process_are_seen(house, between):
    """However much else was written meanwhile, also when it is too much to read."""
    store = MemoryStore()
    tokens = Tokens(store)
    token, text = asyncio.run(tokens.create("ana", ["chat"]))
    other, _ = asyncio.run(tokens.create("ben", ["chat"]))
    model = house.model(lambda body: f"I know of {len(body['messages'])}.")
    first, second = house.server(model, store=store), house.server(model, store=store)
    assert first.chat("1", conversation_id="c", token=text).status == 200
    asyncio.run(asyncio.wait_for(store.commit(*noise(between)), 30))
    assert second.chat("2", conversation_id="c", token=text).status == 200
    said = first.chat("3", conversation_id="c", token=text).json["choices"][0]["message"]["content"]
    assert said == "I know of 5."
    asyncio.run(asyncio.wait_for(store.commit(*noise(between)), 30))
    asyncio.run(tokens.revoke(token.id))
    assert first.chat("4", conversation_id="c", token=text).code == "invalid_token"
    assert not other.revoked


@requirement("API-21")
def test_a_turn_that_the_model_did_not_see_keeps_its_place(house):
    """Another process commits a turn while ours waits for the model, and somebody here looks at it. Ours is late."""
    store = MemoryStore()
    gate = Pause()
    model = house.model(lambda body: ["Slow.", gate] if body["messages"][-1]["content"] == "slow" else "Fast.")
    first, second = house.server(model, store=store), house.server(model, store=store)
    assert first.chat("fast", conversation_id="c").status == 200
    answers = []
    thread = threading.Thread(target=lambda: answers.append(first.chat("slow", conversation_id="c")))
    thread.start()
    assert gate.reached.wait(30)
    assert second.chat("fast", conversation_id="c").status == 200
    assert first.send("GET", "/v1/conversations/c").json["turns"] == 2
    gate.open()
    thread.join()
    assert answers[0].code == "turn_running"
    assert first.send("GET", "/v1/conversations/c").json["turns"] == 2


async def test_what_this_process_wrote_is_seen_at_once():
    """A look is good for one iteration of the event loop, unless somebody has written in it."""
    store = MemoryStore()
    conversations = Conversations(store)
    assert await conversations.find("c") is None
    await conversations.commit(Conversation("c"), "ana", turn("Hi", 0))
    found = await conversations.find("c")
    assert found is not None
    assert found.turns == 1


async def test_a_look_is_good_for_one_iteration_of_the_loop():
    """Whoever waits in the same iteration was there before the look; whoever comes later needs another one."""
    store = Counting()
    tail = StoreFollower(store)
    seen = []
    tail.follow(lambda record: seen.append(record.seq), lambda: None)
    await asyncio.gather(tail.look(), tail.look(), tail.look())
    before = store.reads
    await store.commit(*noise(1))
    await asyncio.gather(tail.look(), tail.look(), tail.look())
    assert (store.reads - before, seen) == (1, [1])
    await store.commit(*noise(1))
    await asyncio.sleep(0)
    await tail.look()
    assert seen == [1, 2]


@tries(40)
@given(delays=st.lists(st.integers(0, 9), max_size=80), gaps=st.lists(st.integers(0, 4), min_size=6, max_size=6))
def test_folds_over_a_slow_store_are_those_of_a_fresh_reader(delays, gaps):
    """Questions overtake each other when the store makes them wait. Nothing may be lost, doubled or out of order."""

    async def scenario():
        store = Slow(delays)
        tail = StoreFollower(store)
        tokens, conversations = Tokens(store, tail), Conversations(store, tail)
        elsewhere, elsewhere_said = Tokens(store), Conversations(store)

        async def others():
            made: list[Any] = []
            for number, gap in enumerate(gaps):
                for _ in range(gap):
                    await asyncio.sleep(0)
                if number % 3 == 2:
                    await elsewhere.revoke(made.pop().id)
                else:
                    made.append((await elsewhere.create(f"t{number}", ["chat"]))[0])
                conversation = await elsewhere_said.begin("c", "ana")
                await elsewhere_said.commit(conversation, "ana", turn(f"{number}", conversation.turns))
                await store.commit(*noise(PAGE_RECORDS // 2))

        async def asking(*questions):
            for question in questions * 8:
                await question()
                await asyncio.sleep(0)

        def find():
            return conversations.find("c")

        await asyncio.gather(others(), asking(tokens.all), asking(find), asking(find, tokens.all))
        found, fresh = await conversations.find("c"), await Conversations(store).find("c")
        assert found is not None
        assert fresh is not None
        assert (found.turns, found.lines, found.seqs) == (fresh.turns, fresh.lines, fresh.seqs)
        assert await tokens.all() == await Tokens(store).all()

    asyncio.run(scenario())


@requirement("API-51")
async def test_a_token_that_comes_while_the_list_of_tokens_is_on_its_way_counts():
    """Without tokens the server is open to its machine. The first one must not slip past the answer to "which are
    there?"."""
    held, answered = asyncio.Event(), asyncio.Event()

    class Held(MemoryStore):
        async def read(self, **what):
            found = await super().read(**what)
            if what.get("stream") == "tokens" and not held.is_set():
                answered.set()
                await held.wait()
            return found

    store = Held()
    tail = StoreFollower(store)
    tokens, conversations = Tokens(store, tail), Conversations(store, tail)
    first = asyncio.create_task(tokens.all())
    await answered.wait()
    made, _ = await Tokens(store).create("ana", ["chat"])
    await asyncio.sleep(0)
    await conversations.find("c")
    held.set()
    assert await first == [made]


def test_a_record_that_cannot_be_read_harms_its_own_conversation_alone(house):
    """One that was changed by hand, say. Whoever comes for something else is served, and no revocation is missed."""
    store = MemoryStore()
    _, ana = asyncio.run(Tokens(store).create("ana", ["chat"]))
    gone, ben = asyncio.run(Tokens(store).create("ben", ["chat"]))
    server = house.server(lambda _: "Hello.", store=store)
    for id in ("broken", "sound"):
        assert server.chat("Hi", conversation_id=id, token=ana).status == 200
    damage = Entry("conversation/broken", "conversation.message", "broken", 1, b'{"said":')
    asyncio.run(asyncio.wait_for(store.commit(damage, Entry("tokens", "token.revoked", gone.id, 1, b'{"at":1}')), 30))
    assert server.chat("Hi", conversation_id="sound", token=ana).status == 200
    assert server.chat("Hi", token=ben).code == "invalid_token"
    assert server.chat("Hi", conversation_id="broken", token=ana).code == "internal_error"
    assert server.chat("Hi", conversation_id="sound", token=ana).status == 200


async def test_what_would_take_long_to_read_is_left_out():
    """A server that nobody asked anything for a week must not read that week before its next answer."""
    store = MemoryStore()
    tail = StoreFollower(store)
    taken, lost = [], []
    tail.follow(lambda record: taken.append(record.seq), lambda: lost.append(tail.seq))
    await tail.look()
    await store.commit(*noise(MAX_BEHIND_RECORDS + 10 * PAGE_RECORDS))
    await asyncio.sleep(0)
    await tail.look()
    assert len(taken) < MAX_BEHIND_RECORDS + PAGE_RECORDS
    assert lost == [0, MAX_BEHIND_RECORDS + 10 * PAGE_RECORDS]


async def test_ids_that_are_only_asked_for_push_nothing_out():
    """A caller who guesses ids must not make the server read its conversations again and again."""
    store = Counting()
    conversations = Conversations(store)
    await conversations.commit(Conversation("c"), "ana", turn("Hi", 0))
    await conversations.find("c")
    for number in range(2000):
        await conversations.find(f"guess-{number}")
    before = store.reads
    await asyncio.sleep(0)
    await conversations.find("c")
    assert store.reads == before + 1, "one look, and no reading of the conversation"


class OnTheWay(Counting):
    """Answers when it is let, as a server does that is far away."""

    def __init__(self):
        super().__init__()
        self.arrives = asyncio.Event()
        self.is_lost = False

    async def read(self, **what):
        if self.is_lost:
            raise StoreError("the server does not answer")
        found = await super().read(**what)
        await self.arrives.wait()
        return found


@requirement("TEAM-11")
async def test_requests_that_come_while_a_look_is_under_way_share_the_next_one():
    """Each read what was new for itself, and so all of it sixty times over: the more came, the longer each took."""
    store = OnTheWay()
    store.arrives.set()
    tail = StoreFollower(store)
    taken: list[Record] = []
    tail.follow(taken.append, lambda: None)
    await tail.look()
    store.arrives.clear()
    store.reads = 0
    first = asyncio.ensure_future(tail.look())
    await asyncio.sleep(0)
    assert store.reads == 1
    await store.commit(*noise(3))
    later = [asyncio.ensure_future(tail.look()) for _ in range(60)]
    await asyncio.sleep(0)
    store.arrives.set()
    await asyncio.gather(first, *later)
    assert len(taken) == 3, "whoever came after the commit has seen it, and it was handed out once"
    assert store.reads == 2


@requirement("TEAM-11")
async def test_a_look_that_fails_or_is_left_holds_nobody_up():
    """The one who looks for all may be gone in the next moment, and the store too."""
    store = OnTheWay()
    tail = StoreFollower(store)
    first = asyncio.ensure_future(tail.look())
    await asyncio.sleep(0)
    second = asyncio.ensure_future(tail.look())
    await asyncio.sleep(0)
    first.cancel()
    store.arrives.set()
    await asyncio.wait_for(second, 60)
    store.arrives.clear()
    failing = asyncio.ensure_future(tail.look())
    await asyncio.sleep(0)
    waiting = [asyncio.ensure_future(tail.look()) for _ in range(3)]
    await asyncio.sleep(0)
    store.is_lost = True
    store.arrives.set()
    await failing
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(one) for one in told] == [StoreError] * 3
    store.is_lost = False
    await asyncio.wait_for(tail.look(), 60)
