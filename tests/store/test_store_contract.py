"""What every driver must do, whatever it writes to."""

import asyncio
import inspect
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import entry, held

from lastword.errors import NotAllowedNow, StoreError, Tampered
from lastword.store.chain import GENESIS, RULES, Entry, Head, Pruned, link
from lastword.store.contract import MAX_DATA_BYTES, Store
from lastword.store.memory import MemoryStore
from lastword.store.postgres import PostgresStore
from lastword.store.sqlite import SqliteStore
from lastword.tools import State
from lastword.tools.guard import Guard
from lastword.web import PageRecord
from requirements import requirement
from tries import tries


async def test_a_record_is_its_entry_in_its_place(store):
    """Nothing may be lost or added between what was said and what is remembered."""
    said = Entry("séance", "asked", "call\0ä", -5, b'{"a":"\xc3\xa9"}', "key\n✓")
    await store.commit(said)
    (record,) = await store.read()
    assert record == link(GENESIS, 1, said)


async def test_records_stand_in_the_order_of_acceptance(store):
    """A durable record implies all before it, so what nobody waited for may not be overtaken by what somebody did."""
    for number in range(1, 40):
        if number % 4:
            store.append(entry(number))
        else:
            assert await store.commit(entry(number), entry(number + 1000))
    found = [record.subject for record in await store.read()]
    expected = [f"call-{n}" for number in range(1, 40) for n in ([number] if number % 4 else [number, number + 1000])]
    assert found == expected
    assert [record.seq for record in await store.read()] == list(range(1, len(expected) + 1))


async def test_what_was_accepted_is_seen_at_once(store):
    """A session reads back what its own calls did, also when nobody waited for the disk."""
    store.append(entry(1))
    assert [record.subject for record in await store.read()] == ["call-1"]
    store.append(entry(2))
    assert (await store.head()).seq == 2


async def test_reading_filters_and_pages(store):
    """Every condition alone and together, and pages that neither repeat nor skip."""
    await store.commit(*(entry(number) for number in range(1, 31)))
    assert [r.seq for r in await store.read(stream="session-1")] == list(range(1, 31, 3))
    assert [r.seq for r in await store.read(kind="answered")] == list(range(2, 31, 3))
    assert [r.seq for r in await store.read(subject="call-7")] == [7]
    assert [r.seq for r in await store.read(subject="call-7", stream="session-2")] == []
    assert [r.seq for r in await store.read(stream="session-1", kind="asked", after=10, limit=2)] == [13, 16]
    assert [r.seq for r in await store.read(stream="session-1", kind="answered")] == []
    assert [r.seq for r in await store.read(after=28)] == [29, 30]
    assert [r.seq for r in await store.read(after=30)] == []
    assert [r.seq for r in await store.read(limit=0)] == []
    assert [r.seq for r in await store.read(stream="nobody")] == []


async def test_a_key_is_given_once(store):
    """An answer, the burning of a seal and the claim on a run must each have one winner."""
    assert await store.commit(entry(1, once="answer:1"))
    assert not await store.commit(entry(2, once="answer:1"))
    assert [record.seq for record in await store.read()] == [1]
    holder = await store.taken("answer:1")
    assert holder is not None
    assert holder.subject == "call-1"
    assert await store.taken("answer:2") is None


async def test_a_group_is_written_whole_or_not_at_all(store):
    """Burned without started, or the other way round, would be a call nobody can judge."""
    await store.commit(entry(1, once="taken"))
    assert not await store.commit(entry(2), entry(3, once="free"), entry(4, once="taken"))
    assert (await store.head()).seq == 1
    assert await store.taken("free") is None
    assert await store.commit(entry(2), entry(3, once="free"))


async def test_of_many_who_want_a_key_at_once_one_gets_it(store):
    """Two clicks in one process are as bad as two in two."""
    won = await asyncio.gather(*(store.commit(entry(n, once=f"key-{n % 10}")) for n in range(200)))
    assert sum(won) == 10
    assert (await store.head()).seq == 10


async def test_a_key_is_only_claimed_by_somebody_who_waits_for_the_answer(store):
    """Who appends never hears whether the key was free, so the mistake must not pass unnoticed."""
    with pytest.raises(AssertionError):
        store.append(entry(1, once="key"))
    with pytest.raises(AssertionError):
        await store.commit(entry(1, once="key"), entry(2, once="key"))
    assert (await store.head()).seq == 0


async def test_what_cannot_be_held_is_refused_before_it_is_accepted(store):
    """One bad entry must not spoil the transaction that others share, nor be retried for ever."""
    for bad in (entry(stream="\ud800"), entry(data=bytes(MAX_DATA_BYTES + 1)), entry(at=2**63)):
        with pytest.raises(StoreError):
            store.append(bad)
        with pytest.raises(StoreError):
            await store.commit(entry(1), bad)
    assert await store.commit(entry(2))
    assert [record.subject for record in await store.read()] == ["call-2"]


async def test_a_clock_that_runs_backwards_changes_no_order(store):
    """Times are for people. Order is the store's."""
    for number in range(5):
        await store.commit(entry(number, at=1000 - number))
    assert [record.at for record in await store.read()] == [1000, 999, 998, 997, 996]
    await store.verify()


async def test_a_store_verifies_page_by_page_up_to_a_head(store):
    """The head may lie in any page; a store that is longer than one page is never held whole."""
    count = 2 * Store.PAGE_RECORDS + 7
    await store.commit(*(entry(number) for number in range(1, count + 1)))
    head = await store.head()
    assert head.seq == count
    assert await store.verify() == head
    records = await store.read()
    for seq in (0, 1, Store.PAGE_RECORDS, Store.PAGE_RECORDS + 1, count):
        assert await store.verify(head=Head(seq, records[seq - 1].digest if seq else GENESIS)) == head
        with pytest.raises(Tampered, match=f"record {seq} is not the one"):
            await store.verify(head=Head(seq, "f" * 64))
    with pytest.raises(Tampered, match=f"ends at record {count}, but the given head is record {count + 1}"):
        await store.verify(head=Head(count + 1, "f" * 64))


def test_a_head_is_written_down_and_read_back():
    """A person keeps it on paper or in another system, as one word."""
    head = Head(12, "ab" * 32)
    assert Head.parse(f" {head}\n") == head
    for bad in ("", "12", "12:", f"-1:{'a' * 64}", f"1:{'A' * 64}", f"1:{'a' * 63}", f"١:{'a' * 64}", f"01:{'a' * 64}"):
        with pytest.raises(StoreError, match="not the head of a journal"):
            Head.parse(bad)


async def test_forgotten_data_leaves_chain_and_key_behind(store):
    """What was pruned cannot be read, but it can neither be denied nor done again."""
    await store.commit(*(entry(number, once=f"key-{number}") for number in range(1, 6)))
    head = await store.head()
    assert await store.forget([2, 4, 4, 99, 0, -1]) == Pruned(2)
    assert await store.forget([2]) == Pruned(0)
    assert [record.data is None for record in await store.read()] == [False, True, False, True, False]
    assert await store.verify(head=head) == head
    assert not await store.commit(entry(9, once="key-2"))


async def test_a_waiter_hears_of_the_first_record_beyond_its_own(store):
    """Pages, other sessions and resumed runs wait here instead of asking again and again."""
    await store.commit(entry(1))
    await asyncio.wait_for(store.changed(0), 30)
    waiting = [asyncio.ensure_future(store.changed(after)) for after in (1, 1, 2)]
    store.append(entry(2))
    await asyncio.wait_for(asyncio.gather(*waiting[:2]), 30)
    assert not waiting[2].done()
    await store.commit(entry(3))
    await asyncio.wait_for(waiting[2], 30)


async def test_a_waiter_that_gives_up_disturbs_nobody(store):
    """A page that is closed cancels its wait."""
    patient = asyncio.ensure_future(store.changed(0))
    hasty = asyncio.ensure_future(store.changed(0))
    await asyncio.sleep(0)
    hasty.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hasty
    await store.commit(entry(1))
    await asyncio.wait_for(patient, 30)


async def test_a_commit_that_is_cancelled_leaves_the_store_usable(store):
    """A client may hang up at any moment. Its entry may be there or not, but whole, and the next one is written."""
    task = asyncio.ensure_future(store.commit(entry(1), entry(2)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await store.commit(entry(3))
    assert [record.subject for record in await store.read()] in (["call-3"], ["call-1", "call-2", "call-3"])


async def test_a_closed_store_opens_again(store):
    """A closed session may still be looked at, and the same id reopens it."""
    await store.commit(entry(1))
    store.append(entry(2))
    await store.close()
    await store.close()
    assert [record.subject for record in await store.read()] == ["call-1", "call-2"]
    await store.commit(entry(3))
    await store.verify(head=await store.head())


def test_threads_with_loops_of_their_own_share_a_store(store):
    """Sync code runs a session on a background loop, beside whatever else the process does."""
    threads, each = 6, 40
    won: list[int] = []

    def live(number: int) -> None:
        async def work() -> None:
            waiting = asyncio.ensure_future(store.changed(threads * each * 2))
            for n in range(each):
                store.append(entry(n, stream=f"thread-{number}", subject=f"{n}-appended"))
                claim = entry(n, stream=f"thread-{number}", subject=f"{n}-claimed", once=f"only-{n}")
                if await store.commit(claim):
                    won.append(n)
                else:
                    assert await store.commit(entry(n, stream=f"thread-{number}", subject=f"{n}-lost"))
            waiting.cancel()

        asyncio.run(work())

    running = [Thread(target=live, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()

    async def look() -> None:
        assert Counter(won) == Counter(range(each))
        for number in range(threads):
            found = [int(r.subject.split("-")[0]) for r in await store.read(stream=f"thread-{number}")]
            assert found == [n for n in range(each) for _ in range(2)]
        assert (await store.verify()).seq == threads * each * 2
        await store.close()

    asyncio.run(look())


# Kinds that replace and end each other, and a few that do not.
KINDS = st.sampled_from([*RULES, "finished", "run_finished", State.CLEARED, PageRecord.CLOSED, "", "other"])
NAMES = st.one_of(KINDS, st.text(max_size=4))
KEYS = st.sampled_from([b'{"key":"k","value":1}', b'{"key":"l"}', b'{"key":5}', b"{", b""])
ENTRIES = st.builds(
    Entry,
    stream=st.sampled_from("ab"),
    kind=NAMES,
    subject=st.sampled_from("xyz"),
    at=st.integers(-(2**63), 2**63 - 1),
    data=st.one_of(KEYS, st.binary(max_size=20)),
    once=st.none(),
    irrevocable=st.just(False),
    contents=st.lists(st.sampled_from([b"", b"one", b"two"]), max_size=2).map(tuple),
)
KEYED = st.lists(st.tuples(ENTRIES, st.sampled_from([None, None, "k", "l", "m"])), max_size=3)
STEPS = st.one_of(
    st.tuples(st.just("append"), ENTRIES),
    st.tuples(st.just("commit"), KEYED),
    st.tuples(st.just("forget"), st.lists(st.integers(-1, 20), max_size=3)),
    st.tuples(
        st.just("read"),
        st.fixed_dictionaries(
            {},
            optional={
                "stream": st.sampled_from("ab"),
                "kind": NAMES,
                "subject": st.sampled_from("xyz"),
                "after": st.integers(0, 12),
                "limit": st.integers(0, 5),
            },
        ),
    ),
    st.tuples(
        st.just("read"),
        st.fixed_dictionaries({"last": st.integers(0, 5)}, optional={"stream": st.sampled_from("ab"), "kind": NAMES}),
    ),
    st.tuples(
        st.just("standing"), st.tuples(st.lists(st.sampled_from([*RULES]), max_size=3), st.sampled_from([None, "a"]))
    ),
    st.tuples(st.just("links"), st.lists(st.integers(-1, 20), max_size=12)),
    st.tuples(st.just("links"), st.builds(range, st.integers(-1, 20), st.integers(-1, 20))),
    st.tuples(st.just("taken"), st.sampled_from("klm")),
    st.tuples(st.just("content"), st.sampled_from([b"", b"one", b"two"])),
    st.tuples(st.just("head"), st.none()),
    st.tuples(st.just("close"), st.none()),
)


async def _do(store: Store, step: tuple[str, object]) -> object:
    match step:
        case ("append", Entry() as said):
            return store.append(said)
        case ("commit", list() as pairs):
            group, keys = [], set()
            for said, key in pairs:
                group.append(msgspec.structs.replace(said, once=None if key in keys else key))
                keys.add(key)
            return await store.commit(*group)
        case ("forget", list() as seqs):
            return await store.forget(seqs)
        case ("read", dict() as conditions):
            return list(await store.read(**conditions))
        case ("standing", (kinds, stream)):
            return list(await store.current(kinds, stream=stream))  # type: ignore[arg-type]
        case ("links", seqs):
            return list(await store.links(seqs))  # type: ignore[arg-type]
        case ("taken", str() as key):
            return await store.taken(key)
        case ("content", bytes() as data):
            return await store.content(sha256(data).hexdigest())
        case ("head", _):
            return await store.head()
        case ("verify", _):
            return await store.verify()
        case ("close", _):
            return await store.close()
    raise AssertionError(step)


@requirement("TEAM-1")
@tries(10)
@given(steps=st.lists(STEPS, max_size=20))
def test_the_drivers_are_twins(postgres, steps):
    """Whatever is done to all of them, all say the same, down to the last digest: whoever moves a journal to a server
    finds the same there."""

    async def compare() -> None:
        with TemporaryDirectory() as folder:
            sqlite = SqliteStore(f"{folder}/journal.db")
            stores = [MemoryStore(), sqlite, PostgresStore(postgres.new_store(), heads=Path(folder))]
            try:
                for step in [*steps, ("read", {}), ("verify", None)]:
                    memory, *others = [await _do(store, step) for store in stores]
                    assert others == [memory, memory]
            finally:
                for store in stores:
                    await store.close()

    asyncio.run(compare())


async def test_several_kinds_are_read_in_the_order_of_the_store(store):
    """A session's state is three kinds of records, whose order is their meaning."""
    for number, kind in enumerate(["set", "other", "cleared", "set"], start=1):
        assert await store.commit(entry(number, kind=kind))
    assert [r.seq for r in await store.read(kind=["set", "cleared"])] == [1, 3, 4]
    assert [r.seq for r in await store.read(stream="session-1", kind=("cleared", "set"), after=1)] == [4]
    assert await store.read(kind=[]) == []


@pytest.mark.parametrize("name", ["run", "run.1", "rün.\U0001f600", "run_%"])
async def test_a_run_is_read_with_its_calls_and_without_its_neighbours(store, name):
    """Names that begin alike, sort beside each other or look like patterns are other runs."""
    inside = [name, f"{name}.0", f"{name}.0.1", f"{name}.", f"{name}.\U0010ffff"]
    outside = [f"{name}0", f"{name}-1", f"{name}/1", f"x{name}", name[:-1], name.upper(), f"{name}\x00.1", "runx1.0"]
    for subject in [s for pair in zip(inside, outside, strict=False) for s in pair] + outside[len(inside) :]:
        assert await store.commit(entry(1, subject=subject))
    found = await store.read(below=name)
    assert [record.subject for record in found] == inside
    assert [r.subject for r in await store.read(below=name, after=found[1].seq)] == inside[2:]
    assert [r.subject for r in await store.read(below=name, limit=2)] == inside[:2]
    assert await store.read(below=name, stream="another") == []


@requirement("TEAM-8")
async def test_of_a_history_the_last_records_are_read_in_order(store):
    """A page shows the end of a long story, and must not read its beginning for that."""
    await store.commit(*(entry(number) for number in range(1, 31)))
    assert [r.seq for r in await store.read(last=3)] == [28, 29, 30]
    assert [r.seq for r in await store.read(stream="session-1", last=2)] == [25, 28]
    assert [r.seq for r in await store.read(kind="answered", after=26, last=5)] == [29]
    assert [r.seq for r in await store.read(kind=["asked", "answered"], last=3)] == [26, 28, 29]
    assert [r.seq for r in await store.read(last=0)] == []
    assert [r.seq for r in await store.read(stream="nobody", last=3)] == []
    with pytest.raises(AssertionError):
        await store.read(limit=1, last=1)


@requirement("TEAM-8")
async def test_what_was_begun_and_not_ended_still_counts(store):
    """By a later record of the same stream and subject; an earlier one ends nothing."""
    for number, (kind, subject) in enumerate(
        [
            ("finished", "a"),
            ("asked", "a"),
            ("asked", "b"),
            ("finished", "b"),
            ("asked", "b"),
            ("asked", "c"),
            ("asked", "a"),
            ("finished", "c"),
            ("burned", "a"),
        ],
        1,
    ):
        assert await store.commit(entry(number, kind=kind, subject=subject, stream=f"of-{subject}"))
    assert [(r.seq, r.subject) for r in await store.current("asked")] == [(7, "a"), (5, "b")], "by their first question"
    assert [r.seq for r in await store.current("asked", stream="of-b")] == [5]
    assert [r.seq for r in await store.current(("asked", "burned"), stream="of-a")] == [7, 9]
    assert await store.current("asked", stream="of-c") == []
    assert await store.current("run_started") == []
    await store.commit(entry(10, kind="finished", subject="a", stream="somebody else"))
    assert [r.seq for r in await store.current("burned")] == [9], "another session ends nothing here"
    await store.commit(entry(11, kind="finished", subject="a", stream="of-a"))
    assert [r.seq for r in await store.current(("asked", "burned"))] == [5]


@requirement("TEAM-8")
async def test_of_a_state_the_last_value_of_each_key_counts_until_all_is_cleared(store):
    """In the order in which the keys first came: a value that is set again keeps its line in the prompt."""

    async def put(kind: str, data: bytes, stream: str = "s") -> None:
        assert await store.commit(entry(1, kind=kind, subject="", stream=stream, data=data))

    for data in (b'{"key":"k","value":1}', b'{"key":"l","value":2}', b'{"key":"k","value":3}'):
        await put(State.SET, data)
    await put(State.DESCRIBED, b'{"key":"k","description":"a number"}')
    await put(State.SET, b'{"key":"k","value":9}', stream="t")
    assert [r.seq for r in await store.current((State.SET, State.DESCRIBED), stream="s")] == [3, 2, 4]
    assert await store.forget([2]) == Pruned(1)
    assert [r.seq for r in await store.current(State.SET, stream="s")] == [3], "what was forgotten has no name any more"
    await store.verify()
    await put(State.CLEARED, b"{}")
    assert await store.current((State.SET, State.DESCRIBED), stream="s") == []
    assert [r.seq for r in await store.current(State.SET)] == [5]
    await put(State.SET, b'{"key":"l","value":4}')
    assert [r.seq for r in await store.current(State.SET, stream="s")] == [7]
    await store.verify()


def test_the_rules_speak_of_kinds_that_exist():
    """They are the store's, and the words are others': a kind that is renamed there must be renamed here."""
    assert {State.SET, State.DESCRIBED, PageRecord.WINDOW, PageRecord.SESSION} <= set(RULES)
    assert RULES[State.SET].all_ended_by == State.CLEARED
    assert RULES[PageRecord.WINDOW].all_ended_by == PageRecord.CLOSED


async def test_the_links_of_the_chain_come_without_what_they_say(store):
    """A chain is proven over a thousand records whose contents nobody needs."""
    await store.commit(*(entry(number, once=f"key-{number}") for number in range(1, 21)))
    records = await store.read()
    bare = [msgspec.structs.replace(record, data=None) for record in records]
    assert list(await store.links(range(6))) == bare[:5]
    assert list(await store.links([7, 3, 3, 99, 0, -1, 20])) == [bare[2], bare[6], bare[19]]
    assert list(await store.links(range(1, 100))) == bare
    assert list(await store.links(list(range(20, 0, -1)))) == bare
    assert list(await store.links([])) == []


@requirement("TEAM-8")
async def test_verifying_goes_on_from_a_head_that_was_verified_before(store):
    """Whoever verifies every day pays for a day."""
    await store.commit(*(entry(number) for number in range(1, 21)))
    records = await store.read()
    start, head = Head(8, records[7].digest), await store.head()
    assert await store.verify(start=start) == head
    assert await store.verify(start=start, head=Head(5, records[4].digest)) == head
    assert await store.verify(start=head) == head
    for pins in (
        {"start": Head(8, "f" * 64)},
        {"start": start, "head": Head(5, "f" * 64)},
        {"start": start, "head": Head(12, "f" * 64)},
    ):
        with pytest.raises(Tampered, match="is not the one that the given head names"):
            await store.verify(**pins)
    with pytest.raises(Tampered, match="ends at record 20, but the given head is record 21"):
        await store.verify(start=Head(21, "f" * 64))


async def test_a_store_is_behind_nothing_and_accepts_only_what_it_holds(store):
    """Nobody may be talked into accepting a head that is not there."""
    assert await store.behind() is None
    await store.commit(entry(1), entry(2))
    head = await store.head()
    assert await store.behind() is None
    await store.accept(head)
    await store.accept(Head(0, GENESIS))
    for other in (Head(2, "f" * 64), Head(3, head.digest), Head(0, "f" * 64)):
        with pytest.raises(StoreError, match="does not hold the head"):
            await store.accept(other)
    assert await store.behind() is None


async def test_what_cannot_be_taken_back_is_only_written_by_somebody_who_waits(store):
    """Who appends does not hear whether it was refused."""
    with pytest.raises(AssertionError):
        store.append(entry(1, irrevocable=True))
    assert await store.commit(entry(1, irrevocable=True))
    assert (await store.read())[0] == link(GENESIS, 1, entry(1)), "and it is a record like any other"


async def test_a_name_has_one_holder_until_it_is_let_go(store):
    """A run is carried out by one process, and looking whether it is takes it from nobody."""
    assert not store.is_held("run:1")
    release = held(store, "run:1")
    assert store.is_held("run:1")
    assert store.hold("run:1") is None
    assert not store.is_held("run:2")
    other = held(store, "run:2")
    await store.commit(entry(1))
    release()
    assert not store.is_held("run:1")
    assert store.is_held("run:2")
    again = held(store, "run:1")
    again()
    other()


async def test_a_name_is_held_on_when_the_store_is_closed(store):
    """A process lets go when it is done or dies, and not because somebody closed a file."""
    release = held(store, "process:1")
    await store.commit(entry(1))
    await store.close()
    assert store.hold("process:1") is None
    release()
    assert not store.is_held("process:1")


WRITING: dict[str, Callable[[Store], Any]] = {
    "append": lambda store: store.append(entry(2)),
    "commit": lambda store: store.commit(entry(2), entry(3)),
    "forget": lambda store: store.forget([1]),
    "accept": lambda store: store.accept(Head(0, GENESIS)),
    "hold": lambda store: store.hold("mine"),
    "grant": lambda store: store.grant("somebody", forgetting=True),
    "close": lambda store: store.close(),
}


@requirement("TOOL-56")
@pytest.mark.parametrize("act", WRITING)
async def test_nothing_is_written_while_a_guard_watches(store: Store, act: str):
    """A request function that holds the store, by whichever way, must not answer its own card with it."""
    await store.commit(entry(1))
    guard = Guard("the request function of send")

    async def write() -> None:
        done = WRITING[act](store)
        if inspect.isawaitable(done):
            await done

    with guard.watching(), pytest.raises(NotAllowedNow, match="tried to write into the journal"):
        await write()
    assert not store.is_held("mine")
    assert guard.violations == ["write into the journal"]
    assert [record.data for record in await store.read()] == [entry(1).data]
