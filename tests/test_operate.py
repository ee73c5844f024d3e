"""The examples of docs/operate.md, checked as far as that goes without the machine they are meant for."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from lastword.commands.invocation import people_of
from lastword.commands.journal import grant
from lastword.commands.serve import serve, token
from lastword.config import Config, load
from lastword.server import ServerLimits
from lastword.server.http_server import TOLD_SECONDS
from lastword.store import StoreAddress, group_commit, postgres_connection, postgres_ledger
from lastword.store.address import PostgresAddress
from requirements import requirement

PAGE = (Path(__file__).parent.parent / "docs" / "operate.md").read_text()
LASTWORD = Path(sys.executable).parent / "lastword"


# Looked up in systemd.unit, systemd.service and systemd.exec.
SETTINGS = {
    "Description", "Wants", "After", "Type", "ExecStart", "LoadCredential", "Environment", "DynamicUser",
    "StateDirectory", "StateDirectoryMode", "UMask", "TimeoutStopSec", "Restart", "LimitNOFILE", "NoNewPrivileges",
    "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictAddressFamilies", "WantedBy",
}  # fmt: skip


def block(kind: str, place: int = 0, *, of: int = 1) -> str:
    """An example of the page, by its language; how many of that there are is said, so that none is overlooked."""
    found = re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert len(found) == of, kind
    return str(found[place])


def options(command: click.Command, arguments: list[str]) -> dict[str, object]:
    """What a command line means; fails as the command itself would."""
    return command.make_context("lastword", list(arguments), resilient_parsing=False).params


def parsed(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


@pytest.fixture
def configured(tmp_path):
    """Reads a configuration that a page shows."""

    def read(text: str) -> Config:
        (tmp_path / "lastword.toml").write_text(text)
        return load(tmp_path / "lastword.toml", environ={}, flags={})

    return read


@pytest.fixture
def unit() -> configparser.ConfigParser:
    return parsed(block("ini"))


@requirement("API-71")
def test_the_unit_starts_a_server_with_options_that_exist(unit, tmp_path):
    """A unit that fails on its first line is found out on somebody's server."""
    program, command, *arguments = shlex.split(unit["Service"]["ExecStart"].replace("%S", str(tmp_path)))
    assert (Path(program).name, command) == ("lastword", "serve")
    given = options(serve, arguments)
    assert given["config"] == Path("/etc/lastword/lastword.toml")
    (tmp_path / "lastword").mkdir()
    StoreAddress(str(given["store"])).open()
    assert unit["Service"]["Environment"].startswith("LASTWORD_KEY_FILE=%d/")
    key = tmp_path / "key"
    key.write_text("sk-test\n")
    key.chmod(0o400)
    assert load(None, environ={"LASTWORD_KEY_FILE": str(key)}, flags={}).upstream_key == "sk-test"


@requirement("API-71")
def test_the_unit_leaves_running_turns_their_time_and_others_out(unit):
    """Killed too early, turns are lost; readable by others, conversations are theirs."""
    limits = ServerLimits()
    assert float(unit["Service"]["TimeoutStopSec"]) > limits.stop_seconds + TOLD_SECONDS + 3
    assert (unit["Service"]["StateDirectoryMode"], unit["Service"]["UMask"]) == ("0700", "0077")
    assert int(unit["Service"]["LimitNOFILE"]) > limits.connections


@requirement("API-71")
def test_the_unit_has_no_setting_that_systemd_does_not_know(unit, tmp_path):
    """It ignores those with a line in a log. Where systemd is at hand it is asked itself."""
    assert {name for section in unit.sections() for name in unit[section]} == SETTINGS
    if shutil.which("systemd-analyze") is None:
        return
    for name, text in (("lastword.service", block("ini")), ("lastword@8811.service", block("systemd"))):
        file = tmp_path / name
        file.write_text(text.replace("/opt/lastword/bin/lastword", str(LASTWORD)))
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", str(file)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert [line for line in (done.stdout + done.stderr).splitlines() if "lastword" in line] == []


@requirement("API-71")
def test_the_container_starts_a_server_and_keeps_nothing_but_its_volume():
    """As somebody who is not root, with the store in the volume, and a stop that is heard."""
    lines = [line.split(" ", 1) for line in block("dockerfile").splitlines()]
    said = {name: rest for name, rest in lines if name != "RUN"}
    assert set(said) <= {"FROM", "USER", "WORKDIR", "VOLUME", "ENV", "EXPOSE", "STOPSIGNAL", "ENTRYPOINT", "CMD"}
    assert Path(json.loads(said["ENTRYPOINT"])[0]).name == "lastword"
    command, *arguments = json.loads(said["CMD"])
    assert (command, options(serve, arguments)["host"]) == ("serve", "0.0.0.0")
    assert said["USER"] == "lastword"
    assert said["ENV"] == f"LASTWORD_STORE=sqlite:///{said['VOLUME']}/lastword.db"
    assert load(None, environ=dict([said["ENV"].split("=", 1)]), flags={}).server.store == said["ENV"].split("=", 1)[1]
    assert int(said["EXPOSE"]) == load(None, environ={}, flags={}).server.port
    # An entry point in JSON is the process itself: a shell in between would not pass the signal on.
    assert said["STOPSIGNAL"] == "SIGTERM"


@requirement("API-71")
def test_the_commands_that_make_tokens_are_commands():
    """Without a token neither example starts, so the line that makes one has to work."""
    made = re.findall(r"lastword token (create kitchen.*)$", PAGE, re.MULTILINE)
    assert len(made) == 2
    for line in made:
        name, *arguments = shlex.split(line)
        found = options(token.commands[name], arguments)
        assert (found["name"], found["scopes"]) == ("kitchen", ("chat",))


@requirement("API-71")
def test_the_proxy_passes_streams_on_and_the_server_knows_its_name(configured):
    """A proxy that gathers shows an answer at its end; one that keeps its own Host gets 421."""
    said = dict(re.findall(r"^\s+(\w+) +(.*);$", block("nginx"), re.MULTILINE))
    limits = ServerLimits()
    assert said["proxy_buffering"] == "off"
    assert said["proxy_http_version"] == "1.1"
    assert int(said["proxy_read_timeout"].rstrip("s")) > limits.first_byte_seconds
    assert int(said["client_max_body_size"].rstrip("m")) * 1024 * 1024 == limits.body_bytes
    assert "proxy_set_header Host $host;" in block("nginx")
    server = configured(block("toml", of=3)).server
    assert said["server_name"] in server.hosts
    assert said["proxy_pass"] == f"http://127.0.0.1:{server.port}"
    assert server.limits.connections_per_address == server.limits.connections
    assert (server.retention_days, server.origins) == (90, ["https://desk.example"])


@requirement("API-71")
def test_the_host_that_the_guide_of_the_page_names_is_one_that_the_server_knows(configured):
    """Whoever copies it reaches the page by that name, and is not told of a setting that there is not."""
    page = (Path(__file__).parent.parent / "docs" / "page.md").read_text()
    [written] = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert "desk.example" in configured(written).server.hosts


@requirement("TEAM-7")
def test_the_address_of_the_page_names_a_server_and_a_store(configured):
    """It is copied as it stands, with other names in it; and beyond this machine the server has to prove itself."""
    address = configured(block("toml", 1, of=3)).server.store
    assert address is not None
    found = PostgresAddress(address, {})
    assert (found.schema, found.must_be_proven, found.has_password) == ("kitchen", True, False)


@requirement("TEAM-3")
def test_the_people_of_the_page_have_the_rights_that_it_says(configured):
    """A table of rights that means something else than the page says would be worse than none."""
    people = people_of(configured(block("toml", 2, of=3)))
    assert [people.may_answer(who, "ann") for who in ("ann", "bob", "deputy", "lead", "")] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert [people.may_answer(who, "cid") for who in ("ann", "deputy", "lead")] == [False, False, True]


@requirement("TEAM-7")
def test_the_commands_that_give_rights_are_commands():
    """Whoever follows the page has a role that can append and nothing else."""
    made = re.findall(r"^lastword journal grant (.*)$", PAGE, re.MULTILINE)
    given = [options(grant, shlex.split(line)) for line in made]
    assert [(one["role"], one["forgetting"]) for one in given] == [("lastword", False), ("lastword_prune", True)]
    assert {PostgresAddress(str(one["store"]), {}).shown for one in given} == {
        "postgresql:///run/postgresql/work?store=kitchen"
    }


@requirement("TEAM-7", "TEAM-11")
def test_the_template_starts_workers_that_share_a_server():
    """The port is the template's; the password of the server is a credential, and what was seen of it is kept."""
    text = block("systemd")
    service = parsed(text)["Service"]
    _, command, *arguments = shlex.split(service["ExecStart"].replace("%i", "8811"))
    given = options(serve, arguments)
    assert (command, given["port"], given["workers"]) == ("serve", 8811, 2)
    known = {line.partition("=")[0] for line in text.splitlines() if "=" in line}
    assert known == SETTINGS
    assert "PGPASSFILE=%d/pgpass" in text
    assert "LoadCredential=pgpass:" in text
    assert "XDG_DATA_HOME=%S/lastword" in text
    limits = ServerLimits()
    assert float(service["TimeoutStopSec"]) > limits.stop_seconds + TOLD_SECONDS + 3


@requirement("TEAM-7", "TEAM-11")
def test_the_compose_file_starts_a_database_and_servers_that_use_it():
    """Every volume and secret that is used is declared, no password stands in it, and what was seen is on a volume."""
    made = yaml.safe_load(block("yaml"))
    assert set(made) == {"services", "volumes", "secrets"}
    used = {name for service in made["services"].values() for name in service.get("secrets", ())}
    assert used == set(made["secrets"])
    mounted = {one.partition(":")[0] for service in made["services"].values() for one in service["volumes"]}
    assert mounted == set(made["volumes"])
    api = made["services"]["api"]
    command, *arguments = api["command"]
    given = options(serve, arguments)
    assert (command, given["host"], given["workers"]) == ("serve", "0.0.0.0", 2)
    config = load(None, environ={k: v for k, v in api["environment"].items() if k.startswith("LASTWORD_")}, flags={})
    assert config.server.store is not None
    address = PostgresAddress(config.server.store, {})
    assert (address.schema, address.has_password) == ("kitchen", False)
    database = made["services"]["database"]["environment"]
    assert f"//{database['POSTGRES_USER']}@database/{database['POSTGRES_DB']}?" in config.server.store
    assert "POSTGRES_PASSWORD" not in database
    assert any(volume.endswith(f":{api['environment']['XDG_DATA_HOME']}") for volume in api["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in api["ports"])


@requirement("TEAM-7")
def test_the_page_says_what_the_code_does():
    """Seconds and sizes that are promised in words."""
    assert "after five seconds" in PAGE
    assert postgres_connection.IDLE_SECONDS == 5
    assert "after half a minute" in PAGE
    assert postgres_ledger.COMMIT_SECONDS == 30
    assert f"up to {group_commit.MAX_BACKLOG_BYTES // 2**20} MB" in PAGE
    assert "up to six sessions" in PAGE
    assert postgres_connection.MAX_READERS + len(("writing", "waiting")) == 6
