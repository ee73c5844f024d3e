"""The command line: every wrong use gets its place, its fact and the next step. The words are in golden/commands/."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from lastword.cli import COMMANDS, DONE, FAILED, INTERRUPTED, NOT_ALLOWED, UNKNOWN, WRONG_USAGE, run
from requirements import requirement

GOLDEN = Path(__file__).parent / "golden" / "commands"
GREET = """
from lastword import AssistantTool
def execute(params):
    return {"success": True, "message": f"Hello, {params['name']}!"}
AssistantTool.register_execute_tool(execute)
"""
PARAMETERS = [
    {"name": "name", "type": "string", "description": "Whom to greet."},
    {"name": "times", "type": "number", "required": False},
    {"name": "tags", "type": "array", "required": False},
]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with a memory of its own. Relative paths keep machine names out of golden files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LASTWORD_LOG", raising=False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    return tmp_path


def write_tool(name: str = "greet", code: str = GREET, text: str | None = None, **manifest: object) -> Path:
    folder = Path("mine") / name
    folder.mkdir(parents=True)
    facts: dict[str, object] = {
        "displayName": "Greet",
        "id": name,
        "description": "Greets somebody.",
        "parameters": PARAMETERS,
    }
    facts |= {"requireApproval": False} | manifest
    (folder / "assistant_tool.json").write_text(text or json.dumps(facts, indent=2))
    (folder / "assistant_tool.py").write_text(code)
    return folder


def found_tool() -> None:
    write_tool()
    Path("mine").rename("tools")


def changed_tool() -> None:
    run(["new", "tool", "hello", "--yes"])
    Path("tools/hello/assistant_tool.py").write_text("# other code")


def two_of_one_name() -> None:
    write_tool()
    (Path("mine") / "greet").rename(Path("mine") / "other")
    write_tool()


BROKEN = '{\n  "displayName": "Greet",\n  "id": "2greet",\n  "descripton": "Greets.",\n  "parameters": {}\n}\n'
TOOLS = ("--tools", "mine")

# name of the golden file → the command line, and what is there before
CASES: dict[str, tuple[tuple[str, ...], Callable[[], object] | None]] = {
    "unknown-command": (("clal", "greet"), None),
    "unknown-command-without-a-guess": (("xyzzy",), None),
    "group-alone": (("new",), None),
    "unknown-option": (("call", "greet", "--jsno"), None),
    "missing-tool-name": (("call",), None),
    "missing-subcommand-argument": (("new", "tool"), None),
    "unknown-subcommand": (("new", "tol", "x"), None),
    "wrong-choice": (("new", "tool", "x", "--effect", "forever"), None),
    "no-tools-folder": (("tools",), None),
    "tools-folder-does-not-exist": (("tools", "--tools", "nowhere"), None),
    "folder-without-tools": (("tools", "--tools", "."), None),
    "unknown-tool": (("call", "gret", *TOOLS), write_tool),
    "unknown-tool-without-a-guess": (("call", "publish", *TOOLS), write_tool),
    "two-tools-of-one-name": (("call", "greet", *TOOLS), two_of_one_name),
    "unknown-argument": (("call", "greet", "nmae=Ada", *TOOLS), write_tool),
    "missing-argument": (("call", "greet", *TOOLS), write_tool),
    "argument-without-a-value": (("call", "greet", "name", *TOOLS), write_tool),
    "arguments-of-the-wrong-type": (("call", "greet", "name=Ada", "times=often", "tags=a,b", *TOOLS), write_tool),
    "json-arguments-of-the-wrong-type": (("call", "greet", "--json-args", '{"name": 3}', *TOOLS), write_tool),
    "json-arguments-that-are-not-json": (("call", "greet", "--json-args", "{name: 3}", *TOOLS), write_tool),
    "json-arguments-that-are-no-object": (("call", "greet", "--json-args", "[1]", *TOOLS), write_tool),
    "broken-manifest": (("call", "greet", *TOOLS), lambda: write_tool(text=BROKEN)),
    "broken-manifest-in-a-list": (("tools", *TOOLS), lambda: write_tool(text=BROKEN)),
    "manifest-that-is-not-json": (("tools", *TOOLS), lambda: write_tool(text='{\n  "id": greet\n}')),
    "code-that-does-not-load": (("call", "greet", "name=Ada", *TOOLS), lambda: write_tool(code="import nothing_here")),
    "code-with-a-syntax-error": (("call", "greet", "name=Ada", *TOOLS), lambda: write_tool(code="def execute(:\n")),
    "code-that-registers-nothing": (("call", "greet", "name=Ada", *TOOLS), lambda: write_tool(code="")),
    "code-that-contradicts-its-manifest": (
        ("call", "greet", "name=Ada", *TOOLS), lambda: write_tool(requireApproval=True),
    ),
    "nobody-to-ask": (
        ("call", "greet", "name=Ada", *TOOLS),
        lambda: write_tool(code=GREET.replace("execute_tool", "execute_tool_with_approval"), requireApproval=True),
    ),
    "tool-that-fails": (
        ("call", "greet", "name=Ada", *TOOLS), lambda: write_tool(code=GREET.replace("True", "False")),
    ),
    "editor-tool-without-a-project": (
        ("call", "greet", "name=Ada", *TOOLS), lambda: write_tool(scriptEditorOnly=True),
    ),
    "found-code-and-nobody-to-ask": (("call", "greet", "name=Ada"), found_tool),
    "found-code-tested-and-nobody-to-ask": (("test",), found_tool),
    "changed-code-and-nobody-to-ask": (("call", "hello"), changed_tool),
    "tool-name-with-a-dash": (("new", "tool", "tidy-notes"), None),
    "tool-name-that-exists": (("new", "tool", "hello"), changed_tool),
    "editor-tool-without-approval": (("new", "tool", "x", "--editor", "--no-approval"), None),
    "test-of-a-broken-tool": (("test", "mine"), lambda: write_tool(text=BROKEN)),
    "test-of-a-tool-that-ignores-a-denial": (
        ("test", "mine"),
        lambda: write_tool(
            code=GREET.replace("execute_tool", "execute_tool_with_approval")
            .replace("execute(params)", "execute(params, user_action)")
            .replace("    return", "    open('x', 'w')\n    return"),
            requireApproval=True,
        ),
    ),
    "test-that-fails": (
        ("test", "mine"),
        lambda: write_tool(code=GREET + "\ndef test_sums():\n    total = 1 + 1\n    assert total == 3\n"),
    ),
    "list-of-tools": (("tools", *TOOLS), lambda: write_tool(icon="star", effect="irreversible", requireApproval=True)),
    "test-of-a-good-tool": (("test", "mine"), write_tool),
}  # fmt: skip


@requirement("TOOL-4", "TOOL-31")
@pytest.mark.parametrize("name", CASES)
def test_the_words_are_as_agreed(
    name: str, capsys: pytest.CaptureFixture[str], golden: Callable[[Path, str], None]
) -> None:
    """Errors are interface."""
    arguments, prepare = CASES[name]
    if prepare is not None:
        prepare()
    capsys.readouterr()
    code = run(arguments)
    said = capsys.readouterr()
    errors = f"--- stderr\n{said.err}" if said.err else ""
    # Every call has an id of its own, which the log names.
    told = re.sub(
        r"\bcall [0-9a-f]{18}\b", "call ID", f"$ lastword {' '.join(arguments)}\n{said.out}{errors}exit {code}\n"
    )
    golden(GOLDEN / f"{name}.txt", told)
    assert "Traceback" not in told
    assert str(Path.cwd()) not in told


def test_every_golden_file_has_its_case() -> None:
    """A file nobody compares with is a promise nobody keeps."""
    assert {file.stem for file in GOLDEN.glob("*.txt")} == set(CASES)


def test_every_command_is_there_and_helps(says) -> None:
    """The table of commands must not name what does not exist."""
    listed = says(["--help"]).out
    for name in COMMANDS:
        assert f"  {name} " in listed
    assert "..." not in listed.partition("Commands:")[2], "a summary is cut off"
    for name in COMMANDS:
        assert "Usage: lastword" in says([name, "--help"]).out


def test_the_list_of_commands_loads_none_of_them() -> None:
    """It is what a person sees first, and should not keep them waiting."""
    look = "import sys\nfrom lastword.cli import run\nrun(['--help'])\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert {name for name in loaded if name.startswith("lastword.commands")} == set()


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("calls", {"aiohttp", "prompt_toolkit", "starlette", "uvicorn", "lastword.session", "lastword.script.checker"}),
        ("hook", {"aiohttp", "prompt_toolkit", "starlette", "uvicorn", "lastword.session"}),
        ("token", {"aiohttp", "prompt_toolkit", "uvicorn", "lastword.session", "lastword.script.checker"}),
        ("approvals", {"aiohttp", "prompt_toolkit", "starlette", "uvicorn"}),
        ("tools", {"aiohttp", "prompt_toolkit", "starlette", "uvicorn", "lastword.author.tool_tests"}),
    ],
)
def test_a_command_loads_only_what_it_needs(command: str, unneeded: set[str]) -> None:
    """Each is started for one answer. What draws cards, serves or talks with servers is for those that do."""
    look = f"import sys\nfrom lastword.cli import run\nrun(['{command}', '--help'])\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=60)
    assert set(done.stdout.splitlines()[-1].split()) & unneeded == set()


def test_the_version_is_the_package_version(says) -> None:
    """So that a report of a fault can name it."""
    import lastword

    assert says(["--version"]).out == f"lastword {lastword.__version__}\n"


@pytest.mark.parametrize("is_asking", [False, True])
def test_ctrl_c_outside_of_a_call_is_130(is_asking: bool, says, monkeypatch: pytest.MonkeyPatch) -> None:
    """The convention of every shell; and the word stands on a line of its own, also after a question."""

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def ask(*_: object) -> None:
        click.confirm("Is it so")

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupt)
    monkeypatch.setattr("lastword.commands.workbench.Toolbox.find", ask if is_asking else interrupt)
    assert says(["tools"], 130).err == "\nInterrupted.\n"


@requirement("TOOL-16")
def test_listing_runs_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    """Who looks at a stranger's tools has not agreed to run them."""
    write_tool(code="open('ran', 'w')")
    assert run(["tools", "--tools", "mine"]) == 0
    assert run(["tools", "--tools", "mine", "--json"]) == 0
    assert not Path("ran").exists()


@requirement("TOOL-16")
def test_wrong_arguments_are_told_before_any_code_runs() -> None:
    """The manifest is enough to know that a call cannot work."""
    write_tool(code="open('ran', 'w')")
    assert run(["call", "greet", "nmae=Ada", "--tools", "mine"]) == 2
    assert not Path("ran").exists()


@requirement("TOOL-16")
def test_only_the_called_tool_is_imported(says) -> None:
    """A call of one tool must not run the code of its neighbours."""
    write_tool()
    write_tool("other", code="open('ran', 'w')")
    assert says(["call", "greet", "name=Ada", "--tools", "mine"]).out == "Hello, Ada!\n"
    assert not Path("ran").exists()


@requirement("TOOL-16")
def test_several_folders_can_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    """--tools may be repeated."""
    first, second = write_tool(), write_tool("other")
    assert run(["tools", "--json", "--tools", str(first), "--tools", str(second)]) == 0
    assert [tool["id"] for tool in json.loads(capsys.readouterr().out)] == ["greet", "other"]


@pytest.mark.parametrize(
    ("pair", "value"),
    [("text=3", "3"), ("text=a=b", "a=b"), ("text=", ""), ("count=3", 3), ("count=2.50", 2.5), ("flag=true", True),
     ("nothing=null", None), ('tags=["a"]', ["a"]), ('shape={"a": 1}', {"a": 1}), ("any=3", 3), ("any=x", "x")],
)  # fmt: skip
def test_values_are_read_in_the_type_of_the_manifest(pair: str, value: object, says) -> None:
    """A string is taken as it stands; everything else is JSON."""
    kinds = {
        "text": "string", "count": "number", "flag": "boolean", "nothing": "null", "tags": "array", "shape": "object",
        "any": "any",
    }  # fmt: skip
    parameters = [{"name": name, "type": kind, "required": False} for name, kind in kinds.items()]
    code = GREET.replace("f\"Hello, {params['name']}!\"", "__import__('json').dumps(params)")
    write_tool(code=code, parameters=parameters)
    assert json.loads(says(["call", "greet", pair, "--tools", "mine"]).out) == {pair.partition("=")[0]: value}


@pytest.mark.parametrize(
    ("typed", "completed"),
    [(["lastword", "doc"], ["doctor"]), (["lastword", "up", "--op"], ["--open"]), (["lastword", "rm"], [])],
)
def test_a_shell_completes_commands_and_options(typed: list[str], completed: list[str]) -> None:
    """The line that the guide says is put into a real shell, which asks the installed command."""
    guide = (Path(__file__).parent.parent / "docs" / "faq.md").read_text()
    line = re.search(r'^eval "\$\(_LASTWORD_COMPLETE=bash_source lastword\)".*$', guide, re.MULTILINE)
    assert line is not None
    asks = f"{line[0]}\nCOMP_WORDS=({' '.join(typed)}); COMP_CWORD={len(typed) - 1}\n"
    told = subprocess.run(
        ["bash", "--norc", "-c", f'{asks}_lastword_completion lastword; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout.split() == completed


def test_the_exit_codes_are_said_and_those_of_doctor_too() -> None:
    """A script goes by them; what is promised is what the command returns."""
    guide = (Path(__file__).parent.parent / "docs" / "faq.md").read_text()
    said = {int(code) for code in re.findall(r"^\| (\d+) \|", guide, re.MULTILINE)}
    assert said == {DONE, FAILED, WRONG_USAGE, NOT_ALLOWED, UNKNOWN, INTERRUPTED}
    assert "`lastword doctor` ends with 0 when everything is `ok`, and with 1 when anything is `BAD`" in guide
    assert run(["doctor", "--store", "memory:", "--config", "none.toml"]) == FAILED
