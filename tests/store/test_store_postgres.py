"""What only the driver for PostgreSQL promises: many processes, a server that goes away, and commits of unknown end."""

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from other_process import other_process
from samples import FORM, entry, held, through, until

from cutting import cutting_proxy
from lastword.errors import NewerStore, Overtaken, StoreError
from lastword.store import postgres_connection, postgres_ledger
from lastword.store.chain import Head
from lastword.store.head_file import HeadFile
from lastword.store.postgres import MIGRATIONS, PostgresStore
from postgres_server import PostgresServer, schema_of
from requirements import requirement


@pytest.fixture
async def store(address, opened):
    return opened(address)


@pytest.fixture(scope="module")
def mortal_server():
    """A server that a test may stop, and has to start again."""
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def elsewhere(tmp_path):
    """The environment of another process, whose heads are its own."""
    return {"XDG_DATA_HOME": str(tmp_path)}


def cut(server: PostgresServer, address: str) -> None:
    """End every session of a store's processes, as a network would that goes away for a moment."""
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'lastword %'")


async def subjects(store: PostgresStore) -> list[str]:
    return [record.subject for record in await store.read()]


@requirement("TEAM-1")
async def test_a_waiter_hears_what_was_written_while_its_session_was_cut(
    address, postgres, proxy, distant, monkeypatch, opened
):
    """A hint is lost with the session that would have brought it; the row is the truth, and is looked at again."""
    monkeypatch.setattr(postgres_ledger.PostgresLedger, "poll_seconds", 3600.0)
    other = opened(address)
    await other.commit(entry(1))
    listening = f'LISTEN "lastword_{schema_of(address)}"'
    for number in range(1, 4):
        waiting = asyncio.ensure_future(distant.changed(number))
        await until(lambda: distant._writer is not None and distant._writer.ledger.leases._connection is not None)
        proxy.refuses = True
        proxy.cut_all()
        await until(lambda: not postgres.sql("SELECT 1 FROM pg_stat_activity WHERE query = $1", listening))
        assert await other.commit(entry(number))
        assert not waiting.done()
        proxy.refuses = False
        await asyncio.wait_for(waiting, 30)


async def commit_whatever_comes(store: PostgresStore, number: int) -> None:
    """A session that was cut is noticed by the next who uses it, who then hears that nothing was written."""
    for _ in range(10):
        try:
            assert await store.commit(entry(number))
            return
        except StoreError as problem:
            if "does not answer" not in str(problem):
                raise
    raise AssertionError("it never came back")


# Who owns what.


async def taken_soon(store: PostgresStore, name: str):
    """The server notices within moments that a connection is gone."""
    return await until(lambda: store.hold(name))


def pause_and_take_over(server: PostgresServer, address: str, taker: PostgresStore, owner, number: int) -> None:
    """Stop a process that owns a run, cut it off, and let another have the run. Then wake it."""
    os.kill(owner.pid, signal.SIGSTOP)
    try:
        # Only the sessions of that process: what it waits with, reads with and writes with.
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'lastword %' AND client_port = ANY ($1)",
            ports_of(owner.pid),
        )
        asyncio.run(_take(taker, f"run:{number}", number))
    finally:
        os.kill(owner.pid, signal.SIGCONT)


def ports_of(pid: int) -> list[int]:
    """The ports from which a process has reached out, as the system lists them."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link)):
            inodes.add(found[1])
    ports = []
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[9] in inodes:
            ports.append(int(fields[1].partition(":")[2], 16))
    return ports


async def _take(store: PostgresStore, name: str, number: int) -> None:
    release = await taken_soon(store, name)
    assert await store.commit(entry(number, kind="taken over", once=f"goes on {number}"))
    release()


@requirement("TEAM-4")
@pytest.mark.parametrize("times", [2, pytest.param(200, marks=pytest.mark.long)])
def test_a_process_that_was_paused_and_overtaken_writes_nothing(postgres, address, elsewhere, heads, times):
    """It wakes with a tool's result in its hands, and somebody else has gone on from where it was."""
    taker = PostgresStore(address, heads=heads)
    postgres.settle()
    for number in range(times):
        with other_process(address, elsewhere) as owner:
            assert owner.ask("hold", name=f"run:{number}") is True
            assert owner.ask("try", number=number, once=f"before {number}") is True
            pause_and_take_over(postgres, address, taker, owner, number)
            for attempt in range(3):
                said = owner.ask("try", number=number, once=f"after {number} {attempt}")
                assert said is not True
                assert said.startswith("Overtaken: ") or "the server does not answer" in said, said
            assert owner.ask("try", number=number, once="last").startswith("Overtaken: this program was cut off")
            owner.ask("append", number=number)

    async def look() -> None:
        found = [record.once for record in await taker.read() if record.once]
        assert found == [once for number in range(times) for once in (f"before {number}", f"goes on {number}")]
        assert (await taker.verify()).seq == 2 * times, "and nothing was appended"
        await taker.close()

    asyncio.run(look())


@requirement("TEAM-4")
async def test_a_process_that_is_cut_off_and_missed_by_nobody_goes_on(store, address, postgres, opened):
    """A network that blinks must cost nobody their work: what it holds is still its own."""
    release = held(store, "run:1")
    other = opened(address)
    for number in range(5):
        cut(postgres, address)
        await commit_whatever_comes(store, number)
    await until(lambda: other.is_held("run:1"))
    assert other.hold("run:1") is None
    release()
    taken = await taken_soon(other, "run:1")
    taken()


@requirement("TEAM-4")
async def test_what_is_let_go_of_while_the_server_is_away_can_be_taken_again(address, proxy, distant, opened):
    """A call that failed because the server was away is asked for once more: it must not be held by nobody for ever."""
    other = opened(address)
    releases = {name: await come_back(lambda name=name: distant.hold(name)) for name in ("call:1", "call:2", "call:3")}
    proxy.refuses = True
    proxy.cut_all()
    releases["call:1"]()
    releases["call:2"]()
    proxy.refuses = False
    again = await come_back(lambda: distant.hold("call:1"))
    assert again is not None
    await until(lambda: not other.is_held("call:2"))
    assert other.is_held("call:1")
    assert other.is_held("call:3")
    for release in (again, releases["call:3"]):
        release()
    assert not other.is_held("call:1")


@requirement("TEAM-4")
async def test_looking_whether_somebody_lives_takes_nothing_from_them(store, address, postgres, opened):
    """A page that shows who waits asks for every card; only whoever goes on in another's place ends that one."""
    postgres.settle()
    other = opened(address)
    release = held(store, "process:1")
    for number in range(10):
        cut(postgres, address)
        other.is_held("process:1")
        await commit_whatever_comes(store, number)
    release()


@requirement("TEAM-4")
async def test_right_after_a_restart_nobody_is_taken_for_dead(mortal_server, opened):
    """Every lock is free then, and every process comes back: who is first must not take from the rest."""
    server, address = mortal_server, mortal_server.new_store()
    with cutting_proxy(server.port) as proxy:
        # The first is slower to come back than the second is to look.
        first, second = opened(through(address, server.port, proxy.port)), opened(address)
        release = held(first, "run:1")
        await second.commit(entry(1))
        proxy.refuses = True
        server.stop()
        server.start()
        assert await come_back(lambda: second.is_held("run:1"))
        assert await come_back(lambda: second.hold("run:1")) is None
        proxy.refuses = False
        await commit_whatever_comes(first, 2)
        release()
        await first.close()


async def come_back(work):
    """Do something as soon as the server answers again."""
    async with asyncio.timeout(30):
        while True:
            try:
                return work()
            except StoreError:
                await asyncio.sleep(0.01)


# A server that goes away.


@requirement("TEAM-5")
@pytest.mark.parametrize("times", [3, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("arrives", [True, False])
@pytest.mark.parametrize("guesses", [postgres_ledger.GUESSES, 0])
async def test_a_commit_whose_answer_is_lost_is_looked_up_and_not_repeated(
    proxy, distant, monkeypatch, arrives, guesses, times
):
    """The connection ends between COMMIT and its answer. Whether it happened is the server's to say."""
    monkeypatch.setattr(postgres_ledger, "GUESSES", guesses)
    await distant.commit(entry(0))
    proxy.passes_on = arrives
    acknowledged, refused, appended = [], [], []
    for number in range(1, times + 1):
        seen = 0

        def first_commit(is_commit: bool) -> bool:
            nonlocal seen
            seen += is_commit
            return is_commit and seen == 1

        proxy.cut = first_commit
        distant.append(entry(number, subject=f"appended-{number}"))
        appended.append(f"appended-{number}")
        try:
            assert await distant.commit(entry(number, subject=f"committed-{number}", once=f"key-{number}"))
            acknowledged.append(f"committed-{number}")
        except StoreError as problem:
            if "not known" in str(problem):
                raise
            refused.append(f"committed-{number}")
    proxy.cut = None
    found = (await subjects(distant))[1:]
    assert proxy.cuts == times
    assert (len(acknowledged), len(refused)) == ((times, 0) if arrives else (0, times))
    assert [one for one in found if one.startswith("committed")] == acknowledged
    assert [one for one in found if one.startswith("appended")] == appended, "each once, and in order"
    await distant.verify()


@requirement("TEAM-5")
@pytest.mark.parametrize("arrives", [True, False])
async def test_an_unknown_end_is_called_unknown_and_nothing_is_written_twice(proxy, distant, arrives):
    """The connection ends in COMMIT, and the server cannot be asked. Later it can, and what waits is not repeated."""
    await distant.commit(entry(1))
    proxy.passes_on = arrives

    def cut_and_refuse(is_commit: bool) -> bool:
        proxy.refuses |= is_commit
        return proxy.refuses

    proxy.cut = cut_and_refuse
    distant.append(entry(2))
    with pytest.raises(StoreError, match="it is not known whether it was; 1 entry accepted before"):
        await distant.commit(entry(3, irrevocable=True, once="spent"))
    with pytest.raises(StoreError):
        await distant.commit(entry(4))
    proxy.cut, proxy.refuses = None, False
    assert await distant.commit(entry(5))
    assert await subjects(distant) == ["call-1", "call-2", *(["call-3"] if arrives else []), "call-5"]
    await distant.verify()


@requirement("TEAM-5")
async def test_a_commit_that_is_still_at_work_is_waited_for_before_it_is_judged(postgres, address, monkeypatch, opened):
    """The answer was lost, and the commit goes on behind it, as where a replica is slow. It is not "did not happen"."""
    schema = schema_of(address)
    store = opened(address)
    await store.commit(entry(1))
    # A trigger that runs within COMMIT and takes as long as the test wants: the server's work, as with a slow replica.
    postgres.sql(
        f"CREATE FUNCTION {schema}.slow() RETURNS trigger LANGUAGE plpgsql "
        "AS 'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN new; END'"
    )
    postgres.sql(
        f"CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON {schema}.records DEFERRABLE INITIALLY DEFERRED "
        f"FOR EACH ROW EXECUTE FUNCTION {schema}.slow()"
    )
    monkeypatch.setattr(postgres_ledger, "COMMIT_SECONDS", 0.2)
    holder = await asyncpg.connect(postgres.address)
    await holder.execute("SELECT pg_advisory_lock(4711)")
    committing = asyncio.ensure_future(store.commit(entry(2, once="key")))
    looking = "SELECT 1 FROM pg_stat_activity WHERE query LIKE '%has_happened%' AND wait_event_type = 'Lock'"
    await until(lambda: committing.done() or postgres.sql(looking))
    assert not committing.done(), "it was judged while it was at work"
    await holder.close()
    assert await committing
    monkeypatch.undo()
    assert not await store.commit(entry(3, once="key"))
    assert await subjects(store) == ["call-1", "call-2"]


@requirement("TEAM-1", "TEAM-5")
@pytest.mark.parametrize("times", [1, pytest.param(12, marks=pytest.mark.long)])
async def test_a_server_that_is_stopped_hard_and_started_has_everything_it_acknowledged(mortal_server, opened, times):
    """Two stores write while it is killed. What they were told of is there, once, in one chain."""
    address = mortal_server.new_store()
    stores = [opened(address) for _ in range(2)]
    acknowledged: set[str] = set()
    unknown: set[str] = set()
    stopping = False

    async def write(store: PostgresStore, name: str) -> None:
        number = 0
        while not stopping:
            number += 1
            subject = f"{name}-{number}"
            try:
                assert await store.commit(entry(number, subject=subject, once=subject))
                acknowledged.add(subject)
            except StoreError as problem:
                if "not known" in str(problem):
                    unknown.add(subject)
                await asyncio.sleep(0.01)

    async def more_acknowledged(count: int) -> None:
        before = len(acknowledged)
        await until(lambda: len(acknowledged) >= before + count)

    try:
        writing = [asyncio.ensure_future(write(store, name)) for store, name in zip(stores, "ab", strict=True)]
        for _ in range(times):
            await more_acknowledged(20)
            await asyncio.to_thread(mortal_server.stop)
            await asyncio.to_thread(mortal_server.start)
        await more_acknowledged(20)
        stopping = True
        await asyncio.gather(*writing)
        found = await subjects(stores[0])
        assert acknowledged <= set(found) <= acknowledged | unknown
        assert len(found) == len(set(found))
        await stores[0].verify()
    finally:
        stopping = True


async def test_while_the_server_is_away_nothing_is_said_to_have_happened(mortal_server, tmp_path):
    """A yes that cannot be written down starts nothing, and whoever asks is told in words."""
    server = mortal_server
    store = PostgresStore(server.new_store(), heads=tmp_path)
    try:
        await store.commit(entry(1))
        server.stop()
        for attempt in (
            lambda: store.commit(entry(2, irrevocable=True, once="spent")),
            lambda: store.read(),
            lambda: store.head(),
            lambda: store.taken("spent"),
            lambda: store.current("asked"),
        ):
            with pytest.raises(StoreError, match="the server does not answer") as caught:
                await attempt()
            assert caught.value.place == store.address.shown
        with pytest.raises(StoreError):
            store.hold("run:1")
        waiting = asyncio.ensure_future(store.changed(1))
        store.append(entry(3))
        with pytest.raises(StoreError):
            await store.close()
        server.start()
        assert await store.taken("spent") is None
        await asyncio.wait_for(waiting, 30)
        assert await subjects(store) == ["call-1", "call-3"]
    finally:
        await store.close()


async def test_a_process_that_stops_in_the_middle_of_a_commit_does_not_stop_the_others(store, address, monkeypatch):
    """It holds the end of the chain. The server ends its session, and with it whatever it had begun."""
    monkeypatch.setattr(postgres_connection, "IDLE_SECONDS", 0.3)
    stuck = PostgresStore(address)
    await store.commit(entry(1))
    await stuck.head()

    stopped: list[asyncio.Event] = []

    async def never(*given: Any) -> None:
        given[-1].close()
        stopped.append(asyncio.Event())
        await stopped[0].wait()

    monkeypatch.setattr(postgres_ledger, "GUESSES", 0)
    monkeypatch.setattr(postgres_ledger.PostgresLedger, "_patiently", never)
    waiting = asyncio.ensure_future(stuck.commit(entry(2)))
    # All is written but COMMIT. Looking at the server would not do: it is idle between any two steps.
    await until(lambda: stopped)
    monkeypatch.undo()
    assert await store.commit(entry(3))
    assert await subjects(store) == ["call-1", "call-3"]
    waiting.cancel()
    del stuck


@pytest.mark.parametrize("guesses", [postgres_ledger.GUESSES, 0])
async def test_a_store_that_stays_locked_is_reported_as_that_and_nothing_is_lost(
    postgres, address, monkeypatch, guesses, opened
):
    """Somebody holds the end of the chain by hand. That is not the same as having taken over."""
    monkeypatch.setattr(postgres_connection, "BUSY_SECONDS", 0.2)
    monkeypatch.setattr(postgres_ledger, "GUESSES", guesses)
    store = opened(address)
    release = held(store, "run:1")
    await store.commit(entry(1))
    holder = await asyncpg.connect(postgres.address)
    await holder.execute("BEGIN")
    await holder.execute(f"SELECT * FROM {schema_of(address)}.head FOR UPDATE")
    store.append(entry(2))
    with pytest.raises(StoreError, match=r"another process has been writing to it for more than 0\.2 seconds"):
        await store.commit(entry(3))
    await holder.close()
    assert await store.commit(entry(4))
    assert await subjects(store) == ["call-1", "call-2", "call-4"]
    release()


# The form, and whose schema it is.


async def test_a_newer_store_is_refused_in_words_and_left_alone(store, address, postgres, opened):
    """Two servers, one upgraded: the old one must notice before it writes in the old form, also while it runs."""
    await store.commit(entry(1))
    postgres.sql(f"UPDATE {schema_of(address)}.head SET form = 999")
    with pytest.raises(NewerStore):
        await store.commit(entry(2))
    fresh = opened(address)
    for attempt in (fresh.commit(entry(2)), fresh.read(), fresh.head(), fresh.taken("k"), fresh.changed(0)):
        with pytest.raises(NewerStore) as caught:
            await attempt
    assert str(caught.value) == (
        f"{store.address.shown}: written by a later version of lastword "
        f"(its form is 999, this version knows {len(MIGRATIONS)})\nhint: upgrade lastword, or name another store"
    )
    with pytest.raises(StoreError):
        fresh.hold("run:1")
    postgres.sql(f"UPDATE {schema_of(address)}.head SET form = $1", len(MIGRATIONS))
    assert await subjects(store) == ["call-1"]


@requirement("TEAM-7")
@pytest.mark.parametrize("form", range(1, len(MIGRATIONS)))
async def test_a_store_of_an_earlier_version_is_brought_up_to_date_beside_it(store, address, elsewhere, postgres, form):
    """An upgrade one machine at a time: nothing that was written is lost, and the old version writes nothing more."""
    with other_process(address, {**elsewhere, FORM: str(form)}) as old:
        for number in range(20):
            assert old.ask("try", number=number, once=f"old {number}") is True
        assert old.ask("hold", name="run:1") is True
        written = old.ask("head")
        assert postgres.sql(f"SELECT form FROM {schema_of(address)}.head") == [(form,)]
        # The new version comes, and finds everything.
        assert str(await store.head()) == written
        assert [record.once for record in await store.read()] == [f"old {number}" for number in range(20)]
        assert postgres.sql(f"SELECT form FROM {schema_of(address)}.head") == [(len(MIGRATIONS),)]
        assert store.hold("run:1") is None, "what it holds stays its own while it lives"
        assert await store.commit(entry(20, once="new"))
        assert not await store.commit(entry(21, once="old 3")), "a key that was taken before stays taken"
        for number in range(3):
            said = old.ask("try", number=number, once=f"late {number}")
            assert "written by a later version of lastword" in said
        with other_process(address, {**elsewhere, FORM: str(form)}) as another:
            assert "written by a later version of lastword" in another.ask("try", number=1, once="late")
    assert (await store.verify()).seq == 21


async def test_somebody_elses_schema_is_refused_and_left_alone(store, address, postgres):
    """A wrong word in an address must not put tables between somebody's own."""
    postgres.sql(f"CREATE SCHEMA {schema_of(address)}")
    postgres.sql(f"CREATE TABLE {schema_of(address)}.records (mine integer)")
    with pytest.raises(StoreError, match="is not a store of lastword"):
        await store.commit(entry(1))
    tables = postgres.sql("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema_of(address))
    assert tables == [("records",)]


async def test_stores_of_one_database_know_nothing_of_each_other(postgres, heads):
    """A schema belongs to one team: neither records nor keys nor names are shared, nor heard."""
    first, second = (PostgresStore(postgres.new_store(), heads=heads) for _ in range(2))
    assert await first.commit(entry(1, once="key"))
    assert await second.commit(entry(2, once="key"))
    held = first.hold("run:1")
    also = second.hold("run:1")
    assert held is not None
    assert also is not None
    assert await subjects(second) == ["call-2"]
    held()
    also()
    await first.close()
    await second.close()


# What was seen of it.


@requirement("TEAM-10")
async def test_a_server_that_lacks_what_was_seen_of_it_starts_nothing_approved(store, address, postgres, heads, opened):
    """A replica that lagged was made the primary: approvals that were spent are unspent there."""
    await store.commit(entry(1), entry(2, once="spent", irrevocable=True))
    digest = (await store.head()).digest
    await store.commit(entry(3, once="spent later", irrevocable=True))
    file = heads / f"{store.address.digest}-head"
    assert HeadFile(file).read() == await store.head()
    assert (file.stat().st_mode & 0o777, heads.stat().st_mode & 0o777) == (0o600, 0o700)
    schema = schema_of(address)
    postgres.sql(f"DELETE FROM {schema}.records WHERE seq = 3")
    postgres.sql(f"UPDATE {schema}.head SET seq = 2, digest = $1", digest)
    with pytest.raises(StoreError, match="nothing approved starts here: at least 1 record is missing"):
        await store.commit(entry(4, once="spent later", irrevocable=True))
    behind = await store.behind()
    assert behind is not None
    assert (behind.found.seq, behind.seen.seq) == (2, 3)
    assert await store.commit(entry(5)), "what can be taken back goes on"
    another = opened(address, heads=heads.with_name("another machine"))
    assert await another.behind() is None, "a machine that saw nothing misses nothing"
    await store.accept(await store.head())
    assert await store.behind() is None
    assert await store.commit(entry(6, irrevocable=True))
    assert HeadFile(file).read() == await store.head()


@requirement("TEAM-10")
async def test_a_head_that_cannot_be_kept_keeps_what_is_approved_from_starting(store, heads):
    """The record is there, and whoever would have acted upon it hears that they must not."""
    await store.commit(entry(1, irrevocable=True))
    file = heads / f"{store.address.digest}-head"
    file.write_bytes(b"nonsense")
    with pytest.raises(StoreError, match="nothing approved starts here: the head that was last seen"):
        await store.commit(entry(2, irrevocable=True))
    await store.accept(Head(1, (await store.read())[0].digest))
    assert await store.commit(entry(3, irrevocable=True))


async def test_an_overtaken_process_can_be_closed_and_used_anew(store, address, postgres):
    """Closing ends what it was; what is opened afterwards is another, and owns nothing of before."""
    postgres.settle()
    release = held(store, "run:1")
    await store.commit(entry(1))
    postgres.sql(f"UPDATE {schema_of(address)}.owners SET lost = true")
    store.append(entry(2))
    with pytest.raises(Overtaken):
        await store.commit(entry(3))
    with pytest.raises(Overtaken):
        store.hold("run:2")
    assert await subjects(store) == ["call-1"]
    await store.close()
    release()
    assert await store.commit(entry(4))
    assert await subjects(store) == ["call-1", "call-4"]
