"""`lastword token` and `lastword doctor`, as a person at a terminal uses them."""

import json
from pathlib import Path

import pytest

from lastword.cli import run
from lastword.commands.invocation import data_file
from lastword.server import HttpUpstream
from lastword.talk import KeptModel
from lastword.testing.scripted import Fault, Pause, ScriptedModel
from requirements import requirement


@pytest.fixture(autouse=True)
def somewhere_else(tmp_path, monkeypatch):
    """An empty folder, and no local models but those of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(HttpUpstream, "USUAL", {})


@pytest.fixture
def store(tmp_path):
    return f"sqlite:///{tmp_path}/a.db"


@requirement("API-51")
def test_a_token_is_created_listed_and_revoked(store, capsys):
    """It is printed once, alone on standard output, so that it can be piped; the list never shows it."""
    assert run(["token", "list", "--store", store]) == 0
    assert "No tokens" in capsys.readouterr().out
    assert run(["token", "create", "kitchen", "--scope", "chat", "--scope", "read", "--store", store]) == 0
    made = capsys.readouterr()
    text = made.out.strip()
    assert text.startswith("lastword_")
    assert text not in made.err
    id = text.split("_")[1]
    assert run(["token", "list", "--store", store]) == 0
    listed = capsys.readouterr().out
    assert listed == f"{id}  kitchen  chat, read\n"
    assert run(["token", "revoke", id, "--store", store]) == 0
    assert "It was the last" in capsys.readouterr().out
    assert run(["token", "list", "--json", "--store", store]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["id"], entry["revoked"], entry["scopes"]) == (id, True, ["chat", "read"])
    assert run(["token", "revoke", id, "--store", store]) == 2
    assert f"there is no token {id}" in capsys.readouterr().err


@requirement("API-51")
def test_the_default_scope_is_the_smallest_useful_one(store, capsys):
    """Whoever says nothing gets a token that can chat, and nothing else."""
    assert run(["token", "create", "kitchen", "--json", "--store", store]) == 0
    assert json.loads(capsys.readouterr().out)["scopes"] == ["chat"]
    assert run(["token", "create", "kitchen", "--scope", "chta", "--store", store]) == 2
    assert "did you mean chat?" in capsys.readouterr().err


def asks(body):
    """A model that asks for the tool of a trial in every protocol."""
    if body.get("tools"):
        call = {"name": "get_time", "arguments": '{"city": "Lisbon"}'}
        return {"tool_calls": [{"id": "1", "type": "function", "function": call}]}
    if "gets a script" in str(body["messages"]):
        return 'CALL get_time { city: "Lisbon" }'
    return '{"tool_request": {"name": "get_time", "arguments": {"city": "Lisbon"}}}'


@requirement("API-30")
@pytest.mark.parametrize(
    ("replies", "words"),
    [
        (lambda body: "It is noon.", "asked for the tool in no protocol, so tools will not work with it"),
        (lambda body: Fault("status", status=400, body=b"no"), "could not be tried: the model's server refused"),
        (
            lambda body: asks(body) if "gets a script" in str(body["messages"]) else "It is noon.",
            'asked for a tool in: script; protocol = "script" in a preset suits it',
        ),
    ],
)
def test_doctor_says_of_a_model_what_it_does_with_a_tool(tmp_path, capsys, replies, words):
    """Before somebody relies on it. A model that says it looked, and did not ask, is found out here."""
    with ScriptedModel(replies, models=["small"]) as model:
        (tmp_path / "lastword.toml").write_text(f'[server]\nupstream = "{model.url}"\n')
        assert run(["doctor", "--store", "memory:", "--config", "lastword.toml"]) == ("script" not in words)
    assert words in capsys.readouterr().out


@requirement("API-30")
def test_doctor_says_what_is_configured_and_answering(store, capsys, tmp_path):
    """Exit code 0 when all is well."""
    (tmp_path / "persona.md").write_text("You are Ada.")
    with ScriptedModel(asks, models=["small", "large"], key="sk-doctor", context=4096) as model:
        (tmp_path / "lastword.toml").write_text(
            f'[server]\nupstream = "{model.url}"\nmodel = "large"\npersona = "persona.md"\nstore = "{store}"\n'
            'key_file = "key"\n'
        )
        (tmp_path / "key").write_text("sk-doctor")
        (tmp_path / "key").chmod(0o600)
        assert run(["doctor", "--config", "lastword.toml"]) == 0
        out = capsys.readouterr().out
        assert f"{model.url} (lastword.toml), with a key: answers, 2 models" in out
        assert "large (lastword.toml)" in out
        assert (
            "sees 4096 tokens; cannot be held to a grammar; asked for a tool in: json, script, native; "
            'protocol = "native" in a preset suits it'
        ) in out
        assert {sent["model"] for sent in model.requests} == {"large"}
        assert "persona.md, 12 characters" in out
        assert "0 records" in out
        assert "none: `lastword serve` is open to this machine only" in out
        assert "127.0.0.1:8811, this machine only" in out
        assert "sk-doctor" not in out
        assert run(["doctor", "--json", "--config", "lastword.toml"]) == 0
        assert all(finding["well"] for finding in json.loads(capsys.readouterr().out))


@requirement("API-30")
def test_doctor_does_not_listen_to_a_story_to_its_end(capsys, tmp_path):
    """A small model goes on until its context is full. That takes minutes, and then it was called unreachable."""
    never = Pause()
    with ScriptedModel(lambda body: [*["Once upon a time, "] * 100, never, "the end."], models=["small"]) as model:
        assert run(["doctor", "--store", "memory:", "--config", str(configured(tmp_path, model.url))]) == 1
        assert model.cancelled.wait(60), "it need not tell the rest"
    out = capsys.readouterr().out
    assert "asked for the tool in no protocol, so tools will not work with it" in out
    assert len(model.requests) == 3


def configured(folder: Path, url: str) -> Path:
    file = folder / "lastword.toml"
    file.write_text(f'[server]\nupstream = "{url}"\n')
    return file


@requirement("API-30", "API-50")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "none is configured, and none answers at the usual local ports"),
        ('upstream = "http://127.0.0.1:9/v1"', "the model's server cannot be reached"),
        ('upstream = "nonsense"', "is not the address of a model's server"),
        (
            'upstream = "{url}"\nmodel = "huge"',
            "(lastword.toml): the model's server does not list huge; it lists small",
        ),
        ('upstream = "{url}"\nmodel = "smal"', "the model's server does not list smal; did you mean small?"),
        ('upstream = "{url}"\npersona = "none.md"', "the persona cannot be read"),
        ('upstream = "{url}"\nhost = "0.0.0.0"', "0.0.0.0:8811, other machines too, and there is no token"),
        ('upstream = "{url}"\nstore = "sqlite:///"', "names no file"),
        ('upstream = "{url}"\nstore = "sqlite:///lastword.toml"', "BAD  store"),
        ("upstraem = 1", "unknown field server.upstraem; hint: did you mean upstream?"),
    ],
)
def test_doctor_names_what_is_not_well(tmp_path, capsys, text, words):
    """Exit code 1, and the line that says why."""
    with ScriptedModel(lambda _: Fault("status"), models=["small"]) as model:
        (tmp_path / "lastword.toml").write_text("[server]\n" + text.replace("{url}", model.url) + "\n")
        store = [] if "store" in text else ["--store", "memory:"]
        assert run(["doctor", "--config", "lastword.toml", *store]) == 1
    assert words in capsys.readouterr().out


@requirement("API-30")
@pytest.mark.parametrize(
    ("name", "models", "words"),
    [
        (
            "smal",
            ["small"],
            "(lastword.toml) answers, but the model's server does not list smal; did you mean small?",
        ),
        ("llama3.2", ["llama3.2:latest"], "llama3.2 (lastword.toml)\n"),
        ("any", [], "any (lastword.toml)\n"),
    ],
    ids=["answers to any name", "lists it with a tag", "lists nothing"],
)
def test_doctor_tries_a_model_that_its_server_does_not_list(tmp_path, capsys, name, models, words):
    """llama.cpp answers to every name, Ollama leaves out a tag, some list nothing: none of that is broken."""
    with ScriptedModel(asks, models=models) as model:
        (tmp_path / "lastword.toml").write_text(f'[server]\nupstream = "{model.url}"\nmodel = "{name}"\n')
        assert run(["doctor", "--store", "memory:", "--config", "lastword.toml"]) == 0
        assert {sent["model"] for sent in model.requests} == {name}
    assert words in capsys.readouterr().out


@requirement("API-30")
def test_doctor_shows_what_a_server_says_of_itself_and_obeys_none_of_it(tmp_path, capsys):
    """Whoever listens at a usual port of this machine chooses the names, and a terminal obeys what it prints."""
    with ScriptedModel(asks, models=["nice\x1b]0;owned\x07\x1b[2Jname\nok   all is well"]) as model:
        run(["doctor", "--store", "memory:", "--config", str(configured(tmp_path, model.url))])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\nok   all is well" not in out


@requirement("API-30", "API-65")
def test_a_model_that_sees_too_little_for_one_protocol_is_tried_in_the_others(tmp_path, capsys):
    """The instructions for scripts are the longest. A model that is good for requests was called broken for them."""

    def reply(body):
        if "CALL get_time" in str(body["messages"][0]):
            return Fault("status", status=400, body=b"exceeds the available context size (512 tokens)")
        return asks(body)

    with ScriptedModel(reply, models=["tiny"], context=512) as model:
        assert run(["doctor", "--store", "memory:", "--config", str(configured(tmp_path, model.url))]) == 0
    assert (
        "sees 512 tokens; cannot be held to a grammar; sees too little for the instructions of: script; "
        "asked for a tool in: json, native"
    ) in capsys.readouterr().out


@pytest.fixture
def model_file(tmp_path, monkeypatch):
    """Where the page keeps the model that a person chose there."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return data_file("model.json")


@requirement("API-30")
def test_doctor_looks_at_the_model_that_was_chosen_on_the_page(model_file, capsys):
    """It is the one that answers at the next start, and its key is shown to nobody."""
    with ScriptedModel(asks, models=["small", "large"], key="sk-kept") as model:
        KeptModel(upstream=model.url, model="large", key="sk-kept").write(model_file)
        assert run(["doctor", "--store", "memory:"]) == 0
        out = capsys.readouterr().out
        assert f"{model.url} (chosen on the page), with a key: answers, 2 models" in out
        assert "large (chosen on the page)" in out
        assert "asked for a tool in: json, script, native" in out
        assert {sent["model"] for sent in model.requests} == {"large"}
        assert "sk-kept" not in out


@requirement("API-30")
def test_what_is_configured_goes_before_the_model_that_was_chosen_on_the_page(model_file, tmp_path, capsys):
    """A key that was made for one server is never sent to another."""
    with ScriptedModel(asks, models=["small"]) as model:
        KeptModel(upstream="http://127.0.0.1:9/v1", model="large", key="sk-kept").write(model_file)
        (tmp_path / "lastword.toml").write_text(f'[server]\nupstream = "{model.url}"\n')
        assert run(["doctor", "--store", "memory:", "--config", "lastword.toml"]) == 0
        out = capsys.readouterr().out
        assert f"{model.url} (lastword.toml): answers, 1 model" in out
        assert "large" not in out
        assert "chosen on the page" not in out


@requirement("API-30")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.chmod(0o644), "others can read or write the file with the chosen model and its key"),
        (lambda file: file.write_text("{"), "the file with the chosen model is damaged"),
    ],
)
def test_doctor_says_what_is_wrong_with_the_kept_model_and_examines_the_rest(model_file, capsys, spoil, words):
    """Whoever is told of the first thing that is wrong, and of nothing else, has to come back for each."""
    KeptModel(upstream="http://127.0.0.1:9/v1", key="sk-kept").write(model_file)
    spoil(model_file)
    assert run(["doctor", "--store", "memory:"]) == 1
    out = capsys.readouterr().out
    assert f"BAD  model's server  {model_file}: {words}; hint: " in out
    assert "ok   store" in out
    assert "sk-kept" not in out


@requirement("API-30")
def test_a_local_model_is_found_at_its_usual_port(monkeypatch, capsys):
    """With nothing configured, what already runs on this machine is used."""
    with ScriptedModel(asks, models=["small"]) as model:
        places = {"Nobody": "http://127.0.0.1:9/v1", "Ollama": model.url}
        monkeypatch.setattr(HttpUpstream, "USUAL", places)
        assert run(["doctor", "--store", "memory:"]) == 0
        out = capsys.readouterr().out
        assert "Ollama, found at its usual port" in out
        assert "`lastword` means its first: small" in out


@requirement("API-30")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--upstream", "nonsense"], "write it like http://127.0.0.1:11434/v1"),
        (["--upstream", "http://127.0.0.1:9/v1", "--host", "203.0.113.7"], "there is no token"),
        (["--upstream", "http://127.0.0.1:9/v1", "--host", "no such host"], "there is no token"),
        (["--upstream", "http://127.0.0.1:9/v1", "--persona", "none.md"], "the persona cannot be read"),
        (["--upstream", "http://127.0.0.1:9/v1", "--port", "70000"], "70000 is not in the range"),
    ],
)
def test_serve_says_what_is_wrong_before_it_listens(arguments, words, capsys):
    """Exit code 2 is wrong usage."""
    assert run(["serve", "--store", "memory:", *arguments]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("words", ["create satellite", "list", "revoke 1"])
def test_tokens_in_memory_are_refused(words, capsys):
    """A secret that opens nothing would be printed, and the command that keeps no token would say that it did."""
    assert run(["token", *words.split(), "--store", "memory:"]) == 2
    captured = capsys.readouterr()
    assert "tokens in memory are gone when this command ends" in captured.err
    assert captured.out == ""
