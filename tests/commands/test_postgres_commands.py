"""The commands on a journal in PostgreSQL: copied there and back, shared with roles, found in the configuration."""

import asyncio
import json
from pathlib import Path

import pytest

import lastword
from lastword.cli import run
from lastword.journal import Journal
from lastword.server import Conversations
from lastword.server.conversations import Turn
from lastword.server.history import ChatMessage
from lastword.store import Entry, SqliteStore, Store, StoreAddress, copy_store
from lastword.store.chain import RULES
from lastword.store.postgres import PostgresStore
from lastword.testing import FixedApprover
from postgres_server import schema_of
from requirements import requirement


@pytest.fixture
def address(postgres):
    return postgres.new_store()


async def fill(store: Store) -> None:
    """A story with everything in it: calls, a refusal, state, content, a question that waits, something forgotten."""
    registry = lastword.ToolRegistry()
    registry.register("pay", {"description": "Pays.", "parameters": []}, lambda args, context: 1, require_approval=True)
    journal = Journal(store)
    session = lastword.Session(registry, id="s", approver=FixedApprover(), journal=journal)
    for _ in range(3):
        assert (await session.call("pay")).kind == "succeeded"
    await session.run_script("LET a = CALL pay {}\nPRINT a")
    await session.close()
    entries = [
        Entry("t", "state_set", "", 1, b'{"key":"k","value":1}'),
        Entry("t", "state_set", "", 2, b'{"key":"k","value":2}'),
        Entry("t", "state_set", "", 3, b'{"key":"l","value":3}'),
        Entry("t", "finished", "x\0é", 4, b"{}", "key\n✓", contents=(b"image", b"sound")),
        Entry("u", "asked", "y", -5, b"not json"),
        Entry("u", "finished", "z", 6, b"{}", contents=(b"image",)),
    ]
    assert await store.commit(*entries)
    last = (await store.head()).seq
    await store.forget([last - 4, last])
    assert await store.commit(Entry("t", "state_set", "", 7, b'{"key":"k","value":4}'))


async def everything(store: Store) -> dict[str, object]:
    """What every question about it gives."""
    records = list(await store.read())
    return {
        "records": records,
        "head": await store.head(),
        "standing": [list(await store.current(kind)) for kind in RULES],
        "of streams": [list(await store.current(list(RULES), stream=stream)) for stream in ("s", "t", "u")],
        "taken": [await store.taken(record.once) for record in records if record.once],
        "links": list(await store.links(range(1, 1000))),
        "last": list(await store.read(last=3)),
        "below": [list(await store.read(below=record.subject)) for record in records],
        "contents": [await store.content(name) for name in sorted(await digests(store))],
        "questions": str(await Journal(store).questions()),
    }


async def digests(store: Store) -> set[str]:
    assert isinstance(store, SqliteStore | PostgresStore)
    return {digest for _, digest in await store.holdings(range(1, 1000))}


@requirement("TEAM-6")
def test_a_journal_is_copied_to_a_server_and_back_and_tells_the_same(address, says):
    """Chain, head and every question; what was forgotten stays so, and its keys stay taken."""
    here, back = "sqlite:///here.db", "sqlite:///back.db"

    async def look(*addresses: str) -> list[dict[str, object]]:
        found = []
        for one in addresses:
            store = StoreAddress(one).open()
            found.append(await everything(store))
            await store.verify()
            await store.close()
        return found

    async def prepare() -> None:
        store = StoreAddress(here).open()
        await fill(store)
        await store.close()

    asyncio.run(prepare())
    assert "records, the same in both, each as it was written." in says(["journal", "copy", here, address]).out
    assert run(["journal", "copy", address, back]) == 0
    first, there, second = asyncio.run(look(here, address, back))
    for question in first:
        assert first[question] == there[question] == second[question], question
    assert run(["journal", "copy", here, address]) == 0, "there is nothing left to copy, and that is fine"
    assert str(first["head"]) in says(["journal", "verify", "--store", address]).out


@requirement("TEAM-6")
def test_a_copy_that_was_interrupted_goes_on(address, capsys):
    """Of a long journal the connection may break in the middle; what counts at the end is what counts in the source."""

    async def work() -> None:
        source, target = SqliteStore("here.db"), PostgresStore(address)
        await source.commit(*(Entry("s", "asked", f"call-{n}", n, b"{}") for n in range(700)))
        await copy_store(source, target)
        await source.commit(*(Entry("s", "finished", f"call-{n}", n, b"{}") for n in range(650)))
        await copy_store(source, target)
        assert [r.subject for r in await target.current("asked")] == [f"call-{n}" for n in range(650, 700)]
        assert await target.verify() == await source.head()
        await source.close()
        await target.close()

    asyncio.run(work())


@requirement("TEAM-6")
def test_a_journal_is_not_copied_over_another(address, says, capsys):
    """A wrong word must not mix two histories."""

    async def prepare() -> None:
        for where in ("sqlite:///here.db", address):
            store = StoreAddress(where).open()
            await store.commit(Entry("s", "asked", where, 1, b"{}"))
            await store.close()

    asyncio.run(prepare())
    assert run(["journal", "copy", "sqlite:///here.db", address]) == 1
    assert "there is another journal already, of 1 records" in capsys.readouterr().err
    assert "both are the same journal" in says(["journal", "copy", address, address], 2).err
    assert "gone when this command ends" in says(["journal", "copy", address, "memory:"], 2).err


@requirement("TEAM-6")
def test_a_journal_that_was_changed_is_not_copied(address, postgres, capsys):
    """A copy would make it look whole."""

    async def prepare() -> None:
        store = StoreAddress(address).open()
        await store.commit(*(Entry("s", "asked", str(n), n, b"{}") for n in range(5)))
        await store.close()

    asyncio.run(prepare())
    postgres.sql(f"UPDATE {schema_of(address)}.records SET data = 'other' WHERE seq = 3")
    assert run(["journal", "copy", address, "sqlite:///copy.db"]) == 1
    assert "record 3 (asked) was changed after it was written" in capsys.readouterr().err


@requirement("TEAM-7")
def test_a_role_is_given_what_a_program_needs(address, postgres, says, capsys):
    """One line by whoever owns the database, and the programs never need more."""
    postgres.sql("DO $$ BEGIN CREATE ROLE program LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    assert run(["journal", "grant", "program", "--store", address]) == 0
    assert capsys.readouterr().out == "program may read the journal and append to it. Nothing else.\n"
    theirs = address.replace("postgres@", "program@")
    assert run(["token", "create", "kitchen", "--store", theirs]) == 0
    assert "kitchen" in says(["token", "list", "--store", theirs]).out
    assert run(["journal", "grant", "nobody_at_all", "--store", address]) == 1
    assert "the server knows no role 'nobody_at_all'\nhint: make it: createuser NAME" in capsys.readouterr().err
    assert "only a server has roles" in says(["journal", "grant", "program", "--store", "sqlite:///here.db"], 2).err


@requirement("TEAM-7")
def test_a_conversation_that_the_servers_role_may_not_forget_is_gone_and_stops_no_server(address, postgres, capsys):
    """A client deletes one, and the role can only append. Its words go when somebody prunes who may."""
    for role, more in (("program", []), ("pruner", ["--forgetting"])):
        postgres.sql(f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        assert run(["journal", "grant", role, *more, "--store", address]) == 0
    theirs, pruners = (address.replace("postgres@", f"{role}@") for role in ("program", "pruner"))

    async def delete() -> None:
        store = StoreAddress(theirs).open()
        conversations = Conversations(store)
        await conversations.commit(
            await conversations.begin("c", "ana"), "ana", Turn([ChatMessage("user", "Hi")], {}, [])
        )
        found = await conversations.find("c")
        assert found is not None
        neighbour = asyncio.ensure_future(store.commit(Entry("s", "noted", "x", 1, b"{}")))
        await conversations.delete(found)
        assert await neighbour, "whoever shares a transaction is not harmed"
        assert await Conversations(store).find("c") is None
        await Conversations(store).finish_deletions()  # As every server does when it starts.
        await store.close()

    async def words() -> list[bytes | None]:
        store = StoreAddress(theirs).open()
        found = [record.data for record in await store.read(kind="conversation.message")]
        await store.close()
        return found

    asyncio.run(delete())
    assert asyncio.run(words()) != [None]
    assert run(["journal", "prune", "--before", "2020-01-01", "--store", pruners]) == 0
    assert asyncio.run(words()) == [None]
    assert run(["journal", "verify", "--store", theirs]) == 0


def test_every_command_finds_the_journal_that_the_configuration_names(address, says, capsys, monkeypatch):
    """A company writes it down once: whoever answers, lists and resumes looks where the servers write."""
    Path("lastword.toml").write_text(f'[server]\nstore = "{address}"\n')
    monkeypatch.setenv("LASTWORD_CONFIG", "lastword.toml")
    assert run(["call", "pay", "to=ann", "amount=5", "--tools", "mine", "--json"]) == 3, "nobody is there to ask"
    capsys.readouterr()
    assert run(["journal", "verify"]) == 0
    assert run(["doctor", "--json"]) in (0, 1)
    said = capsys.readouterr().out
    assert PostgresStore(address).address.shown in said
    assert not Path("data/lastword/lastword.db").exists()
    assert json.loads(says(["approvals", "--json"]).out) == []


def test_a_server_that_is_away_is_told_in_words_and_nothing_runs(capsys):
    """Consent that cannot be written down is none."""
    away = "postgresql://127.0.0.1:1/work"
    for command in (
        ["call", "pay", "to=ann", "amount=5", "--tools", "mine"],
        ["approvals"],
        ["journal", "verify"],
        ["runs"],
    ):
        assert run([*command, "--store", away]) != 0
        said = capsys.readouterr()
        assert "the server does not answer" in said.err, command
        assert "Traceback" not in said.err
    assert not Path("paid").exists()
