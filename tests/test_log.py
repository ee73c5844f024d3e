"""The log: where it goes, who has to ask for it, and what never gets into it."""

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from lastword import log as log_module
from lastword.cli import run
from lastword.errors import ConfigError, Tampered
from lastword.log import LEVELS, Log, traceback_of
from requirements import requirement

logger = logging.getLogger("lastword.somewhere")

SECRET = "swordfish"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, and nothing asked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LASTWORD_LOG", raising=False)
    return tmp_path


@pytest.fixture
def opened() -> Iterator[Log]:
    """A log that is closed after the test."""
    written = Log()
    yield written
    written.close()


@pytest.fixture
def broken_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command with a fault of our own in it."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("lastword.tools.Toolbox.find", fail)


SENTENCE = "lastword itself failed: ZeroDivisionError: oh\n"


@pytest.mark.usefixtures("broken_tools")
def test_a_fault_of_our_own_has_no_traceback_unless_asked_for(says) -> None:
    """A user cannot do anything with our stack; a developer can ask for it."""
    assert says(["tools"], 1).err == f"{SENTENCE}hint: this is a bug; --verbose shows where\n"


@pytest.mark.usefixtures("broken_tools")
@pytest.mark.parametrize("line", [["--verbose", "tools"], ["tools", "--verbose"], ["tools", "--verbose", "--json"]])
def test_verbose_shows_where_it_failed(line: list[str], says) -> None:
    """Who saw a command fail calls it again and adds the word wherever they are on the line."""
    told = says(line, 1).err
    assert "Traceback (most recent call last):" in told
    assert "in fail\n" in told
    assert told.endswith(f"ZeroDivisionError: oh\n{SENTENCE}hint: this is a bug; --verbose shows where\n")


def test_verbose_behind_two_dashes_is_an_argument(says) -> None:
    """What stands there is for the command, whatever it looks like."""
    told = says(["check", "--", "--verbose"], 2).err
    assert "--verbose" in told
    assert "Traceback" not in told


def test_a_refused_command_says_where_when_asked(says) -> None:
    """A mistake of the person is told in words. Whoever doubts the words can see which line said them."""
    assert "Traceback" not in says(["tools", "--tools", "nowhere"], 2).err
    assert "in find\n" in says(["tools", "--tools", "nowhere", "--verbose"], 2).err


@pytest.mark.usefixtures("broken_tools")
def test_a_named_file_gets_everything_and_the_terminal_only_the_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was there before; and nobody else can read it."""
    monkeypatch.setenv("LASTWORD_LOG", "./what.log")
    for _ in range(2):
        assert run(["tools"]) == 1
    assert capsys.readouterr().err == f"{SENTENCE}hint: this is a bug; what.log shows where\n" * 2
    text = Path("what.log").read_text()
    assert text.count("ERROR lastword.cli: the command failed\nTraceback") == 2
    assert stat.S_IMODE(Path("what.log").stat().st_mode) == 0o600


@pytest.mark.usefixtures("broken_tools")
@pytest.mark.parametrize("level", [*LEVELS, "DEBUG"])
def test_a_level_is_asking_too(level: str, says, monkeypatch: pytest.MonkeyPatch) -> None:
    """In either case of letters, as people write levels; and a failure is above every one of them."""
    monkeypatch.setenv("LASTWORD_LOG", level)
    assert "in fail\n" in says(["tools"], 1).err


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_leaves_out_what_is_below_it(level: str, opened: Log, capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise there would be one level."""
    opened.open(verbose=False, wanted=level)
    for name, number in LEVELS.items():
        logger.log(number, name)
    assert capsys.readouterr().err.split() == list(LEVELS)[list(LEVELS).index(level) :]


@pytest.mark.parametrize(
    ("wanted", "place", "hint"),
    [
        ("debgu", "LASTWORD_LOG", "did you mean debug?"),
        ("loud", "LASTWORD_LOG", "the levels are debug, info, warning, error; write a file as ./loud"),
        ("./none/such.log", "LASTWORD_LOG=none/such.log", None),
    ],
)
def test_what_is_neither_a_level_nor_a_file_is_refused(
    wanted: str, place: str, hint: str | None, opened: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that is not written is noticed when it is needed, and then it is too late."""
    with pytest.raises(ConfigError) as refused:
        opened.open(verbose=False, wanted=wanted)
    assert (refused.value.place, refused.value.hint) == (place, hint)
    monkeypatch.setenv("LASTWORD_LOG", wanted)
    assert run(["tools"]) == 2
    assert not list(Path().iterdir())


def test_a_command_leaves_the_logging_of_its_program_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls the command from a program of theirs has a log already."""
    root, own = logging.getLogger(), logging.getLogger("lastword")
    before = (root.handlers[:], root.level, own.handlers[:], own.level)
    monkeypatch.setenv("LASTWORD_LOG", "./what.log")
    run(["tools", "--verbose"])
    assert (root.handlers, root.level, own.handlers, own.level) == before


def test_the_log_of_a_chat_is_made_when_there_is_something_in_it(
    home: Path, opened: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a folder and a file that are nobody else's, with warnings of libraries too; and nothing on the screen."""
    file = home / "data" / "lastword" / "lastword.log"
    opened.open(verbose=False, screen_file=file)
    logger.info("not asked for")
    assert not file.parent.parent.exists()
    logger.error("ours")
    logging.getLogger("asyncio").warning("theirs")
    assert [line.split(": ")[1] for line in file.read_text().splitlines()] == ["ours", "theirs"]
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent, file.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    assert capsys.readouterr().err == ""


def test_the_log_of_a_chat_is_in_the_file_that_was_named(home: Path, opened: Log) -> None:
    """Whoever names a file looks there."""
    opened.open(verbose=False, wanted="./mine.log", screen_file=home / "usual.log")
    logger.debug("everything")
    assert Path("mine.log").read_text().endswith("DEBUG lastword.somewhere: everything\n")
    assert not (home / "usual.log").exists()


@pytest.mark.parametrize("place", ["data/lastword.log", "/dev/full"])
def test_the_log_of_a_chat_that_cannot_be_written_is_dropped(
    place: str, home: Path, opened: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor one on a full disk: Python would complain of it on the screen that the file is there to keep clean."""
    if place == "/dev/full" and not Path(place).exists():
        pytest.skip("only Linux has a disk that is always full")
    (home / "data").write_text("a file in the way")
    opened.open(verbose=True, screen_file=home / place)
    logger.error("lost")
    assert capsys.readouterr().err == ""


def test_a_long_log_is_put_aside(home: Path, opened: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody cleans up a file that they have never heard of."""
    monkeypatch.setattr(log_module, "MAX_FILE_BYTES", 10)
    file = home / "lastword.log"
    for words in ("first, and long", "second, and long", "third"):
        opened.open(verbose=False, screen_file=file)
        logger.error(words)
        opened.close()
    assert "third" in file.read_text()
    assert "second" in Path(f"{file}.1").read_text()
    assert sorted(path.name for path in home.iterdir()) == ["lastword.log", "lastword.log.1"]


def test_nobody_steers_a_terminal_through_the_log(opened: Log, capsys: pytest.CaptureFixture[str]) -> None:
    """The name of a tool is a model's word, and the text of an error is a tool's."""
    opened.open(verbose=False)
    logger.error("call %s failed", "\x1b[2J", exc_info=ValueError("\x1b]0;title\x07"))
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert "\x07" not in told
    assert "call ‹U+001B›[2J failed\n" in told


@requirement("API-54")
def test_a_server_writes_a_json_object_a_line_without_the_text_of_foreign_errors(
    opened: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    """They stand between the lines of the requests, for whoever collects them. An error may quote a key."""
    opened.open(verbose=True, is_server=True)
    try:
        raise RuntimeError(SECRET)
    except RuntimeError as problem:
        logger.error("it broke\nin two lines", exc_info=problem)
    logger.info("all is well")
    broke, well = map(json.loads, capsys.readouterr().err.splitlines())
    assert (broke["event"], broke["level"], broke["message"]) == ("log", "error", "it broke\nin two lines")
    assert "in test_a_server_writes" in broke["traceback"]
    assert broke["traceback"].endswith("\nRuntimeError")
    assert SECRET not in broke["traceback"]
    assert (well["level"], well["message"], well["traceback"]) == ("info", "all is well", None)
    assert well["at"].endswith("Z")


def test_a_traceback_names_every_error_on_the_way_and_quotes_only_ours() -> None:
    """Ours are made for people, and say which record it is; in others there may be anything."""

    def deepest() -> None:
        raise KeyError(SECRET)

    def wrapped() -> None:
        try:
            deepest()
        except KeyError as problem:
            raise Tampered("record 7 was changed", hint="restore from a copy") from problem

    with pytest.raises(Tampered) as caught:
        wrapped()
    first, then = traceback_of(caught.value).split("\n\nThen:\n\n")
    assert "in deepest\n" in first
    assert first.endswith("\nKeyError")
    assert SECRET not in first
    assert "in wrapped\n" in then
    assert then.endswith("Tampered: record 7 was changed\nhint: restore from a copy")


def test_a_traceback_says_of_a_hidden_cause_only_that_it_was_hidden_on_purpose() -> None:
    """`from None` is how a sentence is made of an error that says nothing to anybody; and a chain has an end."""
    problem = ValueError()
    problem.__context__ = KeyError()
    problem.__suppress_context__ = True
    assert "KeyError" not in traceback_of(problem)
    last = problem
    for _ in range(50):
        last.__cause__ = ValueError()
        last = last.__cause__
    assert traceback_of(problem).count("Traceback") == log_module.MAX_CHAIN
