"""Who may do what with a journal in PostgreSQL, and who hears of a password: least rights, TLS, and silence."""

import asyncio
import logging
import os
import ssl
import subprocess
import sys
import traceback
from pathlib import Path

import asyncpg
import pytest
from samples import entry, held

from lastword.cli import run
from lastword.errors import StoreError, Tampered
from lastword.store.chain import Pruned
from lastword.store.postgres import PostgresStore
from postgres_server import PASSWORD, PostgresServer, schema_of
from requirements import requirement


@pytest.fixture
async def owner(address, opened):
    """The owner of a journal, in which there is something."""
    store = opened(address)
    await store.commit(entry(1, data=b'{"secret":1}', contents=(b"image",)), entry(2, once="key"))
    return store


@pytest.fixture
async def kept(owner, address, postgres):
    """That journal, and two roles: one for programs, one that may forget."""
    for role in ("program", "pruner", "stranger"):
        postgres.sql(f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    await owner.grant("program", forgetting=False)
    await owner.grant("pruner", forgetting=True)
    return address


def for_role(address: str, role: str) -> str:
    return address.replace("postgres@", f"{role}@")


@requirement("TEAM-7")
async def test_the_role_of_a_program_can_do_everything_that_a_program_does(kept, opened):
    """Least rights are of no use if somebody has to widen them on the first day."""
    store = opened(for_role(kept, "program"))
    assert await store.commit(entry(3, once="mine", irrevocable=True, contents=(b"sound",)))
    assert not await store.commit(entry(4, once="key"))
    store.append(entry(5))
    release = held(store, "run:1")
    assert store.is_held("run:1")
    assert [record.seq for record in await store.read()] == [1, 2, 3, 4]
    assert await store.current("asked")
    await store.verify()
    release()


ATTACKS = [
    "UPDATE {schema}.records SET data = '{{}}'",
    "UPDATE {schema}.records SET data = NULL",
    "UPDATE {schema}.records SET once = NULL",
    "UPDATE {schema}.records SET digest = repeat('f', 64)",
    "DELETE FROM {schema}.records",
    "DELETE FROM {schema}.records WHERE seq = 2",
    "TRUNCATE {schema}.records",
    "INSERT INTO {schema}.records VALUES (3, '', '', '', 0, '', NULL, '', '', NULL)",
    "UPDATE {schema}.head SET seq = 0",
    "DELETE FROM {schema}.head",
    "SELECT * FROM {schema}.head FOR UPDATE",
    "DELETE FROM {schema}.standing",
    "UPDATE {schema}.contents SET data = 'other'",
    "DELETE FROM {schema}.contents",
    "DELETE FROM {schema}.holds",
    "UPDATE {schema}.owners SET lost = false",
    "DELETE FROM {schema}.names",
    "DROP TABLE {schema}.records",
    "ALTER TABLE {schema}.records DISABLE TRIGGER ALL",
    "CREATE TRIGGER quiet BEFORE INSERT ON {schema}.records FOR EACH ROW "
    "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE TABLE {schema}.beside (x integer)",
    "CREATE OR REPLACE FUNCTION {schema}.held(of_names bytea[]) RETURNS SETOF bytea LANGUAGE sql AS 'SELECT NULL'",
    "DROP SCHEMA {schema} CASCADE",
    "SELECT {schema}.forget('{{1}}', '{{}}')",
    "SET ROLE postgres",
]


@requirement("TEAM-7")
async def test_the_role_of_a_program_can_neither_change_nor_delete(kept, owner):
    """Whoever takes over a program, or finds its password, can say new things and unsay nothing."""
    raw = await asyncpg.connect(for_role(kept.partition("?")[0], "program"))
    await raw.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA {schema_of(kept)} TO program")  # Told of, and done by nobody.
    for attack in ATTACKS:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await raw.execute(attack.format(schema=schema_of(kept)))
    await raw.close()
    assert (await owner.verify()).seq == 2


@requirement("TEAM-7")
async def test_only_a_role_of_its_own_can_forget(kept, opened):
    """Pruning is an act of its own: a program that is taken over cannot make the journal forget."""
    store = PostgresStore(for_role(kept, "program"))
    with pytest.raises(StoreError, match="this role may not do that") as caught:
        await store.forget([1])
    assert "lastword journal grant" in str(caught.value)
    assert await store.content((await store.holdings(range(1, 2)))[0][1]) == b"image"
    await store.close()
    pruner = opened(for_role(kept, "pruner"))
    assert await pruner.forget([1]) == Pruned(1, 1, 5)
    await pruner.verify()
    raw = await asyncpg.connect(for_role(kept.partition("?")[0], "pruner"))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await raw.execute(f"DELETE FROM {schema_of(kept)}.records")
    await raw.close()


async def test_a_role_without_rights_reads_nothing_and_is_told_who_gives_them(kept, opened):
    """A database is shared by many; a journal is not."""
    store = opened(for_role(kept, "stranger"))
    for attempt in (store.read, store.head, lambda: store.commit(entry(1))):
        with pytest.raises(StoreError, match="lastword journal grant"):
            await attempt()
    new = opened(for_role(kept, "stranger").replace("store=", "store=new_"))
    with pytest.raises(StoreError, match="the store is not there yet, and this role may not change that"):
        await new.read()


@requirement("TEAM-7")
async def test_a_forged_append_is_refused_or_found(kept, owner):
    """A program's role may call the function that appends. What does not follow is refused, or breaks the chain."""
    schema = schema_of(kept)
    raw = await asyncpg.connect(for_role(kept.partition("?")[0], "program"))
    form = await raw.fetchval(f"SELECT form FROM {schema}.head")
    arguments = "$1::bytea[], $1, $1, '{5}'::bigint[], $1, '{NULL}'::bytea[], '{ff}'::text[], '{ee}'::text[]"
    rest = "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}'"
    for last in ("0, repeat('0', 64)", "2, repeat('f', 64)", "1, repeat('0', 64)"):
        sql = f"SELECT {schema}.append({form}, NULL, {last}, gen_random_uuid(), {arguments}, {rest})"
        with pytest.raises(asyncpg.SerializationError):
            await raw.execute(sql, [b"x"])
    head = await raw.fetchval(f"SELECT digest FROM {schema}.head")
    sql = f"SELECT {schema}.append({form}, NULL, 2, '{head}', gen_random_uuid(), {arguments}, {rest})"
    await raw.execute(sql, [b"x"])
    await raw.close()
    with pytest.raises(Tampered, match="record 3"):
        await owner.verify()


@requirement("TEAM-7")
@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE {schema}.records SET data = 'other' WHERE seq = 1",
        "DELETE FROM {schema}.records WHERE seq = 1",
        "DELETE FROM {schema}.records WHERE seq = 2",
        "UPDATE {schema}.records SET once = NULL",
        "UPDATE {schema}.head SET seq = 1",
        "DELETE FROM {schema}.standing",
        "UPDATE {schema}.contents SET data = 'other'",
        "DELETE FROM {schema}.contents",
        "DELETE FROM {schema}.holds",
        "DROP INDEX {schema}.records_by_once",
        "CREATE RULE quiet AS ON INSERT TO {schema}.records DO INSTEAD NOTHING",
        "ALTER FUNCTION {schema}.append SECURITY INVOKER",
        "CREATE OR REPLACE FUNCTION {schema}.has_happened(key uuid) RETURNS boolean LANGUAGE sql SECURITY DEFINER "
        "AS 'SELECT true'",
        "CREATE TRIGGER quiet BEFORE UPDATE ON {schema}.records FOR EACH ROW "
        "EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    ],
)
async def test_what_the_owner_of_the_database_changes_is_found(owner, address, postgres, tampering):
    """Somebody always can. Then verifying says so."""
    postgres.sql(tampering.format(schema=schema_of(address)))
    with pytest.raises(Tampered):
        await owner.verify()


# The way to the server.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that wants TLS and a password, and who vouches for it."""
    folder = tmp_path_factory.mktemp("certificates")
    _certificates(folder)
    server = PostgresServer("ssl = on\npassword_encryption = 'scram-sha-256'\nlog_statement = 'all'\n")
    for name in ("server.crt", "server.key"):
        (server.data / name).write_bytes((folder / name).read_bytes())
        (server.data / name).chmod(0o600)
        if server.owner is not None:
            os.chown(server.data / name, *server.owner)
    server.start()
    server.sql(f"CREATE ROLE ann LOGIN PASSWORD '{PASSWORD}' CREATEROLE")
    server.sql("GRANT CREATE ON DATABASE postgres TO ann")
    (server.data / "pg_hba.conf").write_text(
        "hostssl all ann 127.0.0.1/32 scram-sha-256\nhost all postgres 127.0.0.1/32 trust\n"
    )
    server.sql("SELECT pg_reload_conf()")
    os.truncate(server.folder / "log", 0)  # The password stood in what made the role.
    yield server, folder / "ca.crt"
    server.remove()


def _certificates(folder: Path) -> None:
    """An authority of the test's own, and a server of which it says that it is localhost."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca")
    openssl("req", *curve, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost")
    openssl(
        *("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial"),
        *("-out", "server.crt", "-days", "2", "-extfile", "names"),
    )


def guarded_address(server: PostgresServer, host: str = "localhost", **options: str) -> str:
    extra = "".join(f"&{name}={value}" for name, value in options.items())
    return f"postgresql://ann:{PASSWORD}@{host}:{server.port}/postgres?store=guarded{extra}"


@requirement("TEAM-7")
async def test_a_server_that_proves_itself_is_spoken_to_in_private(guarded, tmp_path, opened):
    """The whole way: an authority, a name, a password, and a connection that the server itself calls encrypted."""
    server, authority = guarded
    address = guarded_address(server, sslmode="verify-full", sslrootcert=str(authority))
    store = opened(address, heads=tmp_path)
    assert await store.commit(entry(1))
    rows = server.sql(
        "SELECT DISTINCT s.ssl FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid) WHERE a.usename = 'ann'"
    )
    assert rows == [(True,)]


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("127.0.0.1", {"sslmode": "verify-full", "sslrootcert": "AUTHORITY"}),
        ("localhost", {"sslmode": "verify-full", "sslrootcert": "ANOTHER"}),
        ("localhost", {"sslmode": "verify-full", "sslrootcert": "/nowhere"}),
        ("localhost", {"sslmode": "disable"}),
    ],
)
async def test_a_server_that_does_not_prove_itself_is_told_nothing(guarded, tmp_path, host, options, opened):
    """Another name, another authority, none at all, or no encryption: no password is sent, and nothing is written."""
    server, authority = guarded
    other = tmp_path / "other"
    other.mkdir()
    _certificates(other)
    named = {"AUTHORITY": str(authority), "ANOTHER": str(other / "ca.crt")}
    given = {name: named.get(value, value) for name, value in options.items()}
    store = opened(guarded_address(server, host, **given), heads=tmp_path)
    with pytest.raises(StoreError) as caught:
        await store.commit(entry(1))
    assert caught.value.hint
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(StoreError):
        store.hold("run:1")


def words_of(problem: BaseException) -> str:
    """Everything that a log with a traceback would say of it."""
    return "".join(traceback.format_exception(problem))


@requirement("TEAM-7")
async def test_a_password_is_in_no_error_and_no_log(guarded, tmp_path, caplog):
    """Errors are copied into reports, and logs are kept by others."""
    server, authority = guarded
    caplog.set_level(logging.DEBUG)
    right = guarded_address(server, sslmode="verify-full", sslrootcert=str(authority))
    said = []
    for address in (
        right.replace(PASSWORD, f"{PASSWORD}-wrong"),
        right.replace(f":{server.port}", ":1"),
        right.replace("/postgres?", "/nowhere?"),
        right.replace("localhost", "no-such-host.invalid"),
        right.replace("store=guarded", "store=guarded&sslcert=/nowhere"),
        right + "&no_such_setting=1",
    ):
        store = PostgresStore(address, heads=tmp_path)
        for attempt in (store.commit(entry(1)), store.read(), store.head()):
            with pytest.raises(StoreError) as caught:
                await attempt
            said.append(words_of(caught.value) + repr(caught.value.__dict__))
        with pytest.raises(StoreError) as caught:
            store.hold("run:1")
        said.append(words_of(caught.value))
        await store.close()
    store = PostgresStore(right, heads=tmp_path)
    await store.commit(entry(2))
    said.append(repr(store) + repr(vars(store)) + repr(store.address))
    await store.close()
    for text in (*said, caplog.text, server.log()):
        assert PASSWORD not in text


@requirement("TEAM-7")
@pytest.mark.parametrize(
    "words",
    [
        ["journal", "verify", "--store", "{}"],
        ["serve", "--store", "{}"],
        ["token", "list", "--store", "{}"],
        ["approvals", "--store", "{}"],
        ["journal", "copy", "{}", "sqlite:///copy.db"],
        ["journal", "copy", "sqlite:///copy.db", "{}"],
        ["doctor", "--store", "{}"],
    ],
)
def test_a_password_on_the_command_line_is_refused_in_words(words, capsys, tmp_path, monkeypatch):
    """Everybody on a machine can list its processes, with every word they were started with."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    address = f"postgresql://ann:{PASSWORD}@127.0.0.1:1/work"
    assert run([word.format(address) for word in words]) == 2
    said = capsys.readouterr()
    assert "a password on the command line can be read by everybody on this machine" in said.err
    assert "~/.pgpass" in said.err
    assert PASSWORD not in said.out + said.err


@requirement("TEAM-7")
def test_a_password_has_no_place_in_the_configuration(tmp_path, capsys, monkeypatch):
    """The file is shared and copied, like those with keys."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    file = tmp_path / "lastword.toml"
    file.write_text(f'[server]\nstore = "postgresql://ann:{PASSWORD}@127.0.0.1:1/work"\n')
    assert run(["serve", "--config", str(file)]) == 2
    said = capsys.readouterr()
    assert f"{file}:2" in said.err
    assert "a password has no place in this file" in said.err
    assert PASSWORD not in said.out + said.err


@requirement("TEAM-7")
def test_a_password_from_the_environment_shows_in_no_process_list_and_no_report(guarded, tmp_path):
    """`lastword doctor` says where the store is; and what the server lists of its sessions names no password either."""
    server, authority = guarded
    address = guarded_address(server, sslmode="verify-full", sslrootcert=str(authority))
    environment = {"PATH": "/usr/bin:/bin", "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "lastword", "doctor"]
    process = subprocess.Popen(
        command, env=environment | {"LASTWORD_STORE": address}, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    listed = Path(f"/proc/{process.pid}/cmdline").read_text()
    said, _ = process.communicate(timeout=60)
    assert f"postgresql://localhost:{server.port}/postgres?store=guarded" in said
    sessions = server.sql("SELECT application_name, query FROM pg_stat_activity")
    assert PASSWORD not in said + listed + repr(sessions) + server.log()


def test_the_driver_is_given_a_context_that_checks(monkeypatch):
    """Beyond this machine the default is a server that an authority of the system vouches for, by its name."""
    given = {}

    async def connect(address, **options):
        given.update(options)
        raise OSError("not reached")

    monkeypatch.setattr("lastword.store.postgres_connection.connect", connect)

    async def reach() -> None:
        store = PostgresStore("postgresql://db.example/work")
        with pytest.raises(StoreError):
            await store.read()
        await store.close()

    asyncio.run(reach())
    assert given["ssl"].verify_mode is ssl.CERT_REQUIRED
    assert given["ssl"].check_hostname
