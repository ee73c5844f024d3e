"""What comes late, is lost on its way or passes somebody in between, on the way to PostgreSQL."""

import asyncio
import os
import signal

import asyncpg
import pytest
from samples import entry, held, through, until
from test_store_postgres import come_back, commit_whatever_comes, subjects

from cutting import cutting_proxy
from lastword.errors import StoreError
from lastword.store import postgres_leases, postgres_ledger
from lastword.store.chain import Entry
from lastword.store.postgres import PostgresStore
from pooling import pooler
from postgres_server import schema_of
from requirements import requirement


@pytest.fixture
async def store(address, opened):
    return opened(address)


def lifeline(postgres, address: str) -> int | None:
    """The session at the server through which a store's process is known to live."""
    name = f"lastword owner % {schema_of(address)}"
    found = postgres.sql("SELECT pid FROM pg_stat_activity WHERE application_name LIKE $1", name)
    return found[0][0] if found else None


@requirement("TEAM-5")
async def test_a_commit_that_arrives_after_it_was_said_not_to_have_happened_is_refused(
    store, address, postgres, monkeypatch
):
    """It was stuck on its way. Whoever sent it was told that it did not happen, and others wrote it again."""
    assert await store.commit(entry(1, irrevocable=True))
    assert await store.commit(entry(2))
    written = f'%"{schema_of(address)}".try_append%'
    [(session,)] = postgres.sql("SELECT pid FROM pg_stat_activity WHERE query LIKE $1 AND state = 'idle'", written)
    monkeypatch.setattr(postgres_ledger, "COMMIT_SECONDS", 0.2)
    os.kill(session, signal.SIGSTOP)
    try:
        store.append(entry(3))
        with pytest.raises(StoreError, match="the server does not answer"):
            await store.commit(entry(4, once="spent", irrevocable=True))
    finally:
        os.kill(session, signal.SIGCONT)
    monkeypatch.undo()
    await until(lambda: not postgres.sql("SELECT 1 FROM pg_stat_activity WHERE pid = $1", session))
    assert await store.commit(entry(5))
    assert await subjects(store) == ["call-1", "call-2", "call-3", "call-5"]


@requirement("TEAM-4")
async def test_a_name_whose_answer_is_lost_is_held_and_can_be_let_go_of(address, proxy, distant, opened):
    """It is asked for again, and the server says that it is ours. It would be held by nobody for ever."""
    other = opened(address)
    proxy.watches = b".take("
    proxy.cut = lambda is_taking: is_taking and not proxy.cuts
    release = distant.hold("run:1")
    assert proxy.cuts == 1
    assert release is not None
    assert distant.hold("run:1") is None, "once is once, also here"
    assert other.hold("run:1") is None
    release()
    taken = held(other, "run:1")
    assert distant.hold("run:1") is None
    taken()
    again = held(distant, "run:1")
    again()


@requirement("TEAM-4")
async def test_a_process_of_many_days_is_not_given_up_when_its_session_blinks(postgres, address, proxy, distant):
    """Whoever comes sweeps out what the dead left behind. One that is cut off for a moment is not dead."""
    postgres.settle()
    schema = schema_of(address)
    release = held(distant, "run:1")
    postgres.sql(f"UPDATE {schema}.owners SET began = now() - interval '9 days'")
    proxy.refuses = True
    proxy.cut_all()
    await until(lambda: lifeline(postgres, address) is None)
    for _ in range(2):
        postgres.sql(f"SELECT {schema}.new_owner()")
    proxy.refuses = False
    await commit_whatever_comes(distant, 1)
    await until(lambda: distant.is_held("run:1"))
    release()
    await distant.close()
    # What nobody came back to is swept out a day later.
    postgres.sql(f"UPDATE {schema}.owners SET missed = now() - interval '2 days'")
    left = postgres.sql(f"SELECT {schema}.new_owner()")
    assert postgres.sql(f"SELECT id FROM {schema}.owners") == left


@requirement("TEAM-1", "TEAM-4")
async def test_a_lifeline_that_the_network_forgot_is_made_anew(postgres, proxy, monkeypatch, opened):
    """Nothing tells either side. The server still believes in the old session, which is ended: ours, and no other's."""
    monkeypatch.setattr(postgres_ledger.PostgresLedger, "poll_seconds", 3600.0)
    monkeypatch.setattr(postgres_leases, "BEAT_SECONDS", 0.2)
    address, namesake = (f"{postgres.new_database()}?store=kitchen" for _ in range(2))
    other, neighbour = opened(address), opened(namesake)
    await other.commit(entry(1))
    store = opened(through(address, postgres.port, proxy.port))
    ours, its = store.hold("run:1"), neighbour.hold("run:1")
    assert ours is not None
    assert its is not None
    before = sessions(postgres)
    waiting = asyncio.ensure_future(store.changed(1))
    proxy.fall_silent()
    await until(lambda: (now := sessions(postgres)) != before and len(now) == 2)
    [kept] = before & sessions(postgres)
    assert kept[1] == namesake.rpartition("/")[2].partition("?")[0]
    assert await other.commit(entry(2))
    await asyncio.wait_for(waiting, 30)
    assert other.hold("run:1") is None
    its()
    proxy.cut_all()
    await come_back(lambda: ours() or True)


def sessions(postgres) -> set[tuple[int, str]]:
    return set(postgres.sql("SELECT pid, datname FROM pg_stat_activity WHERE application_name LIKE 'lastword owner %'"))


async def test_a_lifeline_that_cannot_be_had_leaves_no_sessions_behind(postgres, address, monkeypatch, opened):
    """It is tried again and again. A server has room for a hundred."""
    monkeypatch.setattr(postgres_leases, "RETURN_SECONDS", 0.05)
    store = opened(address)
    release = held(store, "run:1")
    seen: set[int] = set()

    def tried() -> list[int]:
        found = postgres.sql("SELECT pid FROM pg_stat_activity WHERE application_name = 'lastword waiting'")
        seen.update(pid for (pid,) in found)
        return [pid for (pid,) in found]

    # Somebody else has its lock, as its own last session would, and cannot be ended.
    lock = (
        f"SELECT pg_terminate_backend(pid), pg_advisory_lock('{schema_of(address)}.owners'::regclass::oid::int4, 1), "
    )
    holding = asyncio.ensure_future(
        asyncio.to_thread(
            postgres.sql,
            f"{lock} pg_sleep(600) FROM pg_stat_activity WHERE application_name = $1",
            f"lastword owner 1 {schema_of(address)}",
        )
    )
    try:
        await until(lambda: tried() is not None and len(seen) >= 4)
        assert len(tried()) <= 1
    finally:
        sleeping = "query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
        postgres.sql(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE {sleeping}")
        with pytest.raises(asyncpg.QueryCanceledError):
            await holding
    release()


async def test_a_hint_that_is_no_number_of_ours_is_passed_over(store, address, postgres, caplog, opened):
    """Anybody at the database can give one."""
    other = opened(address)
    await other.commit(entry(1))
    waiting = asyncio.ensure_future(store.changed(1))
    await until(lambda: store._writer is not None and store._writer.ledger.leases._connection is not None)
    for said in ("9" * 5000, "", "x", "-1", "1"):
        postgres.sql(f"SELECT pg_notify('lastword_{schema_of(address)}', $1)", said)
    await other.commit(entry(2))
    await asyncio.wait_for(waiting, 30)
    assert not [line for line in caplog.records if line.name == "asyncio"]


# Somebody in between, and settings of others.


@requirement("TEAM-7")
async def test_a_pooler_that_shares_sessions_is_refused_in_words(postgres, address, heads):
    """A name is held by a session: shared with others, it would be held by everybody and nobody."""
    async with pooler(postgres.port) as port:
        store = PostgresStore(through(address, postgres.port, port), heads=heads)
        assert await store.commit(entry(1))
        with pytest.raises(StoreError, match="a pooler in between gives one session") as caught:
            await asyncio.to_thread(store.hold, "run:1")
        assert "pool_mode = session" in str(caught.value)
        await store.close()


@requirement("TEAM-7")
async def test_a_session_begins_with_nothing_that_a_pooler_does_not_know(proxy, distant):
    """PgBouncer turns away whoever comes with another word than these."""
    assert await distant.commit(entry(1))
    known = {b"user", b"database", b"client_encoding", b"application_name"}
    for opening in proxy.openings:
        assert set(opening[4:].split(b"\0")[:-2:2]) <= known


async def test_what_an_administrator_sets_for_everybody_does_not_end_our_sessions(postgres, address, opened):
    """One that says nothing for a while is how others know that we live."""
    if not postgres.sql("SELECT 1 FROM pg_settings WHERE name = 'idle_session_timeout'"):
        pytest.skip("this server is too old to end what is idle")
    postgres.sql("DO $$ BEGIN CREATE ROLE hurried LOGIN SUPERUSER; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    postgres.sql("ALTER ROLE hurried SET idle_session_timeout = '50ms'")
    postgres.sql("ALTER ROLE hurried SET statement_timeout = '5s'")
    store = opened(address.replace("postgres@", "hurried@"))
    release = held(store, "run:1")
    before = lifeline(postgres, address)
    postgres.sql("SELECT pg_sleep(0.5)")
    assert lifeline(postgres, address) == before
    release()


# What was seen, and what counts.


@requirement("TEAM-10")
async def test_a_copy_at_another_address_is_known_for_the_same_journal(postgres, store, address, heads):
    """A replica that lagged is promoted, and everybody is told its name: what was spent is unspent there."""
    await store.commit(entry(1), entry(2, once="spent", irrevocable=True))
    digest = (await store.head()).digest
    await store.commit(entry(3, once="spent later", irrevocable=True))
    schema = schema_of(address)
    postgres.sql(f"DELETE FROM {schema}.records WHERE seq = 3")
    postgres.sql(f"UPDATE {schema}.head SET seq = 2, digest = $1", digest)
    with cutting_proxy(postgres.port) as proxy:
        promoted = PostgresStore(through(address, postgres.port, proxy.port), heads=heads)
        behind = await promoted.behind()
        assert behind is not None
        assert (behind.found.seq, behind.seen and behind.seen.seq) == (2, 3)
        with pytest.raises(StoreError, match="nothing approved starts here: at least 1 record is missing"):
            await promoted.commit(entry(4, once="spent later", irrevocable=True))
        await promoted.accept(await promoted.head())
        assert await promoted.commit(entry(5, irrevocable=True))
        await promoted.close()
    with cutting_proxy(postgres.port) as proxy:
        third = PostgresStore(through(address, postgres.port, proxy.port), heads=heads)
        assert await third.commit(entry(6, irrevocable=True)), "what was accepted counts for every address"
        await third.close()


@requirement("TEAM-10")
async def test_another_journal_is_not_taken_for_one_that_was_seen(postgres, store, opened):
    """Two teams have a journal each, and neither lacks anything."""
    await store.commit(entry(1, irrevocable=True))
    other = opened(postgres.new_store())
    await other.commit(entry(2, irrevocable=True))
    await other.commit(entry(3, irrevocable=True))
    assert await store.commit(entry(4, irrevocable=True))
    assert await other.behind() is None


@requirement("TEAM-8")
async def test_what_ended_leaves_nothing_to_step_over_before_anybody_has_cleared_away(store, address, postgres):
    """A hundred thousand cards were answered, nobody has looked, and the server has not cleared away yet."""
    schema = schema_of(address)
    await store.commit(*(Entry("s", "asked", f"waits-{number}", 1, b"{}") for number in range(3)))
    postgres.sql(f"ALTER TABLE {schema}.standing SET (autovacuum_enabled = off)")
    for round_ in range(24):
        for kind in ("asked", "finished"):
            await store.commit(*(Entry("s", kind, f"{round_:03}-{number}", 1, b"{}") for number in range(500)))
    assert [record.subject for record in await store.current("asked")] == ["waits-0", "waits-1", "waits-2"]
    [(pages,)] = postgres.sql(f"SELECT pg_relation_size('{schema}.standing_by_kind') / 8192")
    assert pages <= 5
