"""Whoever has the key of the model's server spends its owner's money and reads along. Nobody else may come by it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import openai
import pytest

from lastword.config import load
from lastword.errors import ConfigError
from lastword.talk import KeptModel
from lastword.testing.scripted import Fault, ScriptedModel
from surfaces.screens import piped

KEY = "sk-nobody-sees-this"
SOMEBODY = 12345
"""Another account. Only root can give a file away."""


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    file.chmod(0o600)
    return file


def key_of(file: Path) -> str | None:
    return load(environ={"LASTWORD_KEY_FILE": str(file)}, folder=file.parent).upstream_key


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o660, 0o777])
def test_a_key_that_others_can_read_or_write_is_refused_with_what_to_type(key_file, mode):
    """A key that everybody on the machine can read is everybody's; one that they can write is theirs."""
    assert key_of(key_file) == KEY
    key_file.chmod(mode)
    with pytest.raises(ConfigError, match="others can read or write") as refused:
        key_of(key_file)
    assert refused.value.hint is not None
    assert f"chmod 600 {key_file}" in refused.value.hint
    assert KEY not in str(refused.value)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_a_key_and_a_chosen_model_that_are_somebody_elses_are_refused(key_file, tmp_path):
    """Their owner may change them at any time: the key, and with the model who hears every conversation."""
    os.chown(key_file, SOMEBODY, -1)
    with pytest.raises(ConfigError, match="somebody else's"):
        key_of(key_file)
    chosen = tmp_path / "kept" / "model.json"
    KeptModel(upstream="http://127.0.0.1:9/v1", key=KEY).write(chosen)
    os.chown(chosen, SOMEBODY, -1)
    with pytest.raises(ConfigError, match="others can read or write"):
        KeptModel.read(chosen)


def test_what_root_put_there_may_be_read_by_others_and_written_by_nobody(key_file, monkeypatch):
    """Containers are given their keys like this, and root could read them anyway."""
    if key_file.stat().st_uid != 0:
        pytest.skip("only root can make a file of root's")
    monkeypatch.setattr(os, "getuid", lambda: SOMEBODY)
    key_file.chmod(0o444)
    assert key_of(key_file) == KEY
    key_file.chmod(0o464)
    with pytest.raises(ConfigError, match="others can read or write"):
        key_of(key_file)


def test_a_key_may_come_out_of_a_pipe(tmp_path):
    """`LASTWORD_KEY_FILE=<(pass show model)` is a key that was never in a file."""
    command = f"LASTWORD_KEY_FILE=<(echo {KEY}) exec {sys.executable} -c '{_READ}'"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.stdout.strip() == KEY, done.stderr


_READ = "import os; from lastword.config import load; print(load(environ=os.environ).upstream_key)"


def test_a_pipe_in_the_place_of_the_chosen_model_is_refused_and_nobody_waits(tmp_path):
    """Opening it would wait for ever: a way to keep somebody from ever starting lastword again."""
    folder = tmp_path / "data" / "lastword"
    folder.mkdir(parents=True, mode=0o700)
    os.mkfifo(folder / "model.json", 0o600)
    data = {"XDG_DATA_HOME": str(tmp_path / "data"), "HOME": str(tmp_path)}
    done = piped("doctor", "--json", "--store", "memory:", cwd=tmp_path, **data)
    found = next(line for line in json.loads(done.stdout) if line["what"] == "model's server")
    assert (found["well"], "it is not a plain file" in found["found"]) == (False, True)
    told = piped("chat", "--store", "memory:", cwd=tmp_path, **data)
    assert (told.returncode, "the chosen model cannot be read: it is not a plain file" in told.stderr) == (2, True)


def test_a_pipe_that_calls_itself_a_configuration_is_refused_and_nobody_waits(tmp_path):
    """A cloned folder cannot hold one, but an unpacked archive can. A pipe that a person names is theirs."""
    os.mkfifo(tmp_path / "lastword.toml")
    with pytest.raises(ConfigError, match="not a plain file"):
        load(environ={}, folder=tmp_path)


def test_a_chosen_model_that_is_far_too_long_is_damaged(tmp_path):
    """Nobody reads all of it to find that out."""
    file = tmp_path / "model.json"
    KeptModel(upstream="http://127.0.0.1:9/v1").write(file)
    with file.open("ab") as opened:
        opened.write(b" " * 2**20)
    with pytest.raises(ConfigError, match="damaged"):
        KeptModel.read(file)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the list of processes is read from /proc")
@pytest.mark.parametrize("given", ["in a file", "in the environment"])
def test_the_key_is_in_no_list_of_processes_and_in_no_log(tmp_path, key_file, given):
    """Every account of the machine may read command lines, and logs go to places that nobody remembers."""
    keys = {"LASTWORD_KEY_FILE": str(key_file)} if given == "in a file" else {"LASTWORD_UPSTREAM_KEY": KEY}
    echo = Fault("status", status=400, body=f"what a key: {KEY}, Bearer {KEY}".encode())
    with ScriptedModel(lambda body: echo, key=KEY) as model:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LASTWORD_")}
        environment |= {**keys, "LASTWORD_LOG": "debug", "XDG_DATA_HOME": str(tmp_path / "data")}
        serve = [str(Path(sys.executable).parent / "lastword"), "serve", "--port", "0", "--upstream", model.url]
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(
                [*serve, "--workers", "2", "--store", f"sqlite:///{tmp_path}/s.db"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                cwd=tmp_path,
            )
        assert process.stdout is not None
        try:
            address = process.stdout.readline().decode().removeprefix("Listening on ").strip()
            client = openai.OpenAI(base_url=address, api_key="none", max_retries=0, timeout=60)
            with client, pytest.raises(openai.BadRequestError, match="what a key") as refused:
                client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
            lines = [line for pid in _family(process.pid) for line in _seen_by_all(pid)]
        finally:
            process.terminate()
            rest = process.communicate(timeout=60)[0]
    assert len(lines) >= 4, "the one that was started, and a worker"
    log_text = (tmp_path / "log").read_text()
    assert '"status":400' in log_text
    for text in (*lines, log_text, rest.decode(), str(refused.value)):
        assert KEY not in text


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in _family(int(child)))]


def _seen_by_all(pid: int) -> list[str]:
    return [Path(f"/proc/{pid}/{name}").read_text() for name in ("cmdline", "comm")]
