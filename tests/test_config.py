"""Configuration: file, environment, flags; and mistakes that are named with their place."""

from pathlib import Path

import pytest

from lastword.config import PresetConfig, PresetLimits, ServerConfig, load
from lastword.errors import ConfigError
from lastword.server import ServerLimits


def written(folder: Path, text: str) -> Path:
    path = folder / "lastword.toml"
    path.write_text(text)
    return path


def test_with_nothing_configured_there_are_defaults(tmp_path):
    """A newcomer has no file and needs none. Loopback is the default address."""
    config = load(environ={}, folder=tmp_path)
    assert config.server == ServerConfig()
    assert (config.server.host, config.server.port) == ("127.0.0.1", 8811)
    assert (config.file, config.preset, config.upstream_key) == (None, {}, None)


def test_flags_win_over_the_environment_and_that_over_the_file(tmp_path):
    """In the order in which they are harder to forget."""
    written(tmp_path, '[server]\nmodel = "file"\nport = 1\nupstream = "http://file/v1"\n')
    environ = {"LASTWORD_MODEL": "environment", "LASTWORD_PORT": "2", "LASTWORD_HOSTS": "a.example, b.example"}
    config = load(tmp_path / "lastword.toml", environ=environ, flags={"model": "flag", "store": None})
    assert config.server.model == "flag"
    assert config.server.port == 2
    assert config.server.upstream == "http://file/v1"
    assert config.server.hosts == ["a.example", "b.example"]
    assert config.sources["model"] == "--model"
    assert config.sources["port"] == "LASTWORD_PORT"
    assert config.sources["upstream"].endswith("lastword.toml")
    assert "store" not in config.sources


def test_limits_and_presets_are_read(tmp_path):
    """Presets are for satellites: a name for a way to work."""
    text = """
[server.limits]
retries = 0
body_seconds = 1.5
[preset.careful]
model = "large"
persona = "careful.md"
protocol = "script"
limits.steps = 3
[preset."quick one"]
auto_approve = true
"""
    config = load(written(tmp_path, text), environ={})
    assert config.server.limits == ServerLimits(retries=0, body_seconds=1.5)
    assert config.preset == {
        "careful": PresetConfig(
            model="large", persona=tmp_path / "careful.md", protocol="script", limits=PresetLimits(steps=3)
        ),
        "quick one": PresetConfig(auto_approve=True),
    }


def test_paths_in_the_file_are_meant_from_its_folder(tmp_path, monkeypatch):
    """The file may be read from anywhere."""
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "persona.md").write_text("You are Ada.")
    (tmp_path / "there" / "key").write_text("sk-1\n")
    (tmp_path / "there" / "key").chmod(0o600)
    path = written(tmp_path / "there", '[server]\npersona = "persona.md"\nkey_file = "key"\n')
    monkeypatch.chdir(tmp_path)
    config = load(path, environ={})
    assert config.persona_text() == "You are Ada."
    assert config.upstream_key == "sk-1"
    assert load(environ={"LASTWORD_CONFIG": str(path)}).upstream_key == "sk-1"
    assert load(path, environ={"LASTWORD_UPSTREAM_KEY": "sk-2"}).upstream_key == "sk-2"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[server]\n\nupstraem = 1\n", "lastword.toml:3: unknown field server.upstraem\nhint: did you mean upstream?"),
        ('[server]\nport = "x"\n', "lastword.toml:2: server.port: expected `int`, got `str`"),
        ("[server]\nport = 70000\n", "lastword.toml:2: 70000 is not a port"),
        ("[server]\npersona = 1\n", "lastword.toml:2: server.persona: expected `str`, got `int`"),
        ("[preset.a]\npersona = 1\n", "lastword.toml:2: preset.a.persona: expected `str`, got `int`"),
        ("[mcp.a]\nurl = 'x'\nfolder = 1\n", "lastword.toml:3: mcp.a.folder: expected `str`, got `int`"),
        ("[servr]\n", "lastword.toml:1: unknown field servr\nhint: did you mean server?"),
        ("server = 3\n", "lastword.toml:1: server is not a table\nhint: write [server] on a line of its own"),
        ("#\n[server.limits]\nretires = 3\n", "toml:3: unknown field server.limits.retires\nhint: did you mean ret"),
        ("[server]\nlimits.retries = -1\n", "lastword.toml:2: retries cannot be negative"),
        ("[server.limits]\nbody_bytes = 0\n", "lastword.toml:2: body_bytes has to be more than zero"),
        ('[server.limits]\nbody_bytes = "1"\n', "lastword.toml:2: server.limits.body_bytes: expected `int`, got `str`"),
        ("[server]\nlimits = 3\n", "lastword.toml:2: server.limits: expected `object`, got `int`"),
        ('[server]\nkey = "sk-secret"\n', "lastword.toml:2: key does not belong in a file that is shared"),
        ("[preset]\ncareful = 1\n", "lastword.toml:2: preset.careful is not a table\nhint: write [preset.careful]"),
        ("[preset.a]\nautoapprove = 1\n", "toml:2: unknown field preset.a.autoapprove\nhint: did you mean auto_a"),
        ('[preset.a]\nprotocol = "xml"\n', "lastword.toml:2: preset.a.protocol: invalid enum value 'xml'"),
        ("[preset.a.limits]\nstep = 1\n", "toml:2: unknown field preset.a.limits.step\nhint: did you mean steps?"),
        ("[server]\nhosts = [1]\n", "lastword.toml:2: server.hosts[0]: expected `str`, got `int`"),
        ("[server\n", "lastword.toml:1: not TOML: expected ']'"),
        ("[server]\nport = 1\nport = 2\n", "lastword.toml:3: not TOML: cannot overwrite a value"),
        ('a = "', "lastword.toml:1: not TOML:"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file_is_named_with_its_line(tmp_path, text, words):
    """Place, fact, hint; and the secret that somebody wrote into the file is not repeated."""
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, text), environ={})
    assert words in str(caught.value)
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"LASTWORD_UPSTRAEM": "x"}, "unknown variable LASTWORD_UPSTRAEM\nhint: did you mean LASTWORD_UPSTREAM?"),
        ({"LASTWORD_PORT": "eighty"}, "LASTWORD_PORT: 'eighty' is not a port"),
        ({"LASTWORD_PORT": "70000"}, "LASTWORD_PORT: 70000 is not a port"),
        (
            {"LASTWORD_CONFIG": "/nowhere/lastword.toml"},
            "/nowhere/lastword.toml: cannot be read: No such file or directory",
        ),
        ({"LASTWORD_KEY_FILE": "/nowhere/key"}, "/nowhere/key: the key cannot be read"),
        ({"LASTWORD_UPSTREAM_KEY": "sk-\nsecret"}, "characters that no key has"),
    ],
)
def test_a_mistake_in_the_environment_is_named(tmp_path, environ, words):
    """A variable that is silently ignored costs an hour."""
    with pytest.raises(ConfigError) as caught:
        load(environ=environ, folder=tmp_path)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_variables_of_others_are_left_alone(tmp_path):
    """Our prefix is not only ours."""
    load(environ={"LASTWORD_LOG": "debug", "LASTWORD_TOKEN": "x", "LASTWORD_ZEBRA": "1", "HOME": "/"}, folder=tmp_path)


def test_a_file_that_is_no_text_or_far_too_long_is_refused(tmp_path):
    """It was named by mistake."""
    path = tmp_path / "lastword.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="is not UTF-8 at byte 0"):
        load(path, environ={})
    path.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than 1000000 bytes"):
        load(path, environ={})
    path.unlink()
    with pytest.raises(ConfigError, match="the persona cannot be read"):
        load(environ={"LASTWORD_PERSONA": str(tmp_path / "none.md")}, folder=tmp_path).persona_text()
