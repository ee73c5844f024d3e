"""`./run` and `./test` find a Python that runs, name those that do not, and refuse what contradicts itself."""

import subprocess
import sys
from pathlib import Path

import pytest

import set_up

ROOT = Path(__file__).parent.parent
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OLD = '#!/bin/sh\ncase "$2" in *print*) echo 3.10.2;; *) exit 1;; esac\n'
SHIM = "#!/bin/sh\necho 'pyenv: command not found' >&2\nexit 127\n"


@pytest.fixture
def places(tmp_path):
    """The only folder on its PATH."""
    return tmp_path / "bin"


@pytest.fixture
def machine(tmp_path, places):
    """A machine with exactly the interpreters that a test puts there: name → script, or a link to the running one."""
    places.mkdir()
    for tool in ("bash", "sh", "basename", "dirname", "cksum", "cut", "env"):
        (places / tool).symlink_to(next(p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists()))

    def run(*command, python=None, **interpreters):
        for name, script in interpreters.items():
            place = places / name.replace("_", ".")
            if script is None:
                place.symlink_to(sys.executable)
            else:
                place.write_text(script)
                place.chmod(0o755)
        there = {"PATH": str(places), "HOME": str(tmp_path)} | ({"PYTHON": str(python)} if python else {})
        return subprocess.run(command, cwd=ROOT, env=there, capture_output=True, text=True, check=False)

    return run


def find(version=""):
    return "bash", "-c", f". ./.setup.sh; find_python {version}"


def test_a_python_of_the_wanted_version_is_found(machine, places):
    """On the PATH, by its usual name."""
    done = machine(*find(RUNNING), **{f"python{RUNNING.replace('.', '_')}": None})
    assert done.stdout == str(places / f"python{RUNNING}")
    assert done.stderr == ""


def test_a_shim_that_does_not_run_is_named(machine):
    """pyenv puts a shim on the PATH for every version it has, and refuses to run those that are not switched on."""
    done = machine(*find("3.13"), python3_13=SHIM)
    assert done.returncode == 2
    assert "python3.13 was found but does not run" in done.stderr
    assert "error: no Python 3.13 was found that runs" in done.stderr
    assert "hint: install one, or name it: PYTHON=" in done.stderr
    assert done.stdout == ""


def test_behind_a_shim_the_interpreter_itself_is_found(machine, tmp_path):
    """It lies among pyenv's versions, and the note says what happened on the way."""
    real = tmp_path / ".pyenv" / "versions" / f"{RUNNING}.9" / "bin" / "python3"
    real.parent.mkdir(parents=True)
    real.symlink_to(sys.executable)
    done = machine(*find(RUNNING), **{f"python{RUNNING.replace('.', '_')}": SHIM})
    assert done.stdout == str(real)
    assert f"python{RUNNING} was found but does not run" in done.stderr


def test_an_old_python_is_passed_over(machine, places):
    """`python3` is the oldest that a system has."""
    done = machine(*find(), python3=OLD, python3_11=None)
    assert done.stdout == str(places / "python3.11")


def test_without_any_python_there_is_nothing_to_run(machine):
    """The words say what is needed."""
    done = machine(*find(), python3=OLD)
    assert done.returncode == 2
    assert "error: no Python 3.11 or newer was found that runs" in done.stderr


def test_a_version_is_not_taken_for_a_longer_one(machine):
    """3.1 is not 3.11, although it begins like it."""
    done = machine(*find("3.1"), python3_1=None)
    assert done.returncode == 2
    assert "no Python 3.1 was found" in done.stderr


@pytest.mark.parametrize(
    ("script", "version", "words"),
    [
        (SHIM, "", "named was found but does not run"),
        (OLD, "", "is Python 3.10.2, and 3.11 or newer is needed"),
        (None, "3.99", "and --python says 3.99"),
    ],
)
def test_a_python_that_was_named_is_used_or_refused(machine, places, script, version, words):
    """Whoever names one means that one: the tests of another would prove nothing."""
    done = machine(*find(version), python=places / "named", named=script, python3=None)
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stdout == ""


def test_a_python_that_was_named_and_is_not_there_is_said(machine, places):
    """A mistyped path must not end in the tests of whatever else is there."""
    done = machine(*find(), python=places / "nothing", python3=None)
    assert done.returncode == 2
    assert "which is not there" in done.stderr


def test_an_environment_that_could_not_be_filled_is_not_taken_for_ready(machine, tmp_path):
    """Marked as ready while it is empty, it would never be looked at again."""
    empty = tmp_path / "env"
    (empty / "bin").mkdir(parents=True)
    (empty / "bin" / "python").write_text("#!/bin/sh\nexit 1\n")
    (empty / "bin" / "python").chmod(0o755)
    done = machine("bash", "-c", f"(. ./.setup.sh && make_env {empty} -e .) || exit 7")
    assert done.returncode == 7
    assert list(empty.glob("ready*")) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--quick", "--long"], "--quick and --long exclude each other"),
        (["--long", "--quick"], "--quick and --long exclude each other"),
        (["--python"], "--python needs a version"),
        (["--python", "3.99"], "no Python 3.99 was found that runs"),
        (["--quick", "--python=3.99"], "no Python 3.99 was found that runs"),
    ],
)
def test_what_contradicts_or_is_not_there_is_refused(machine, arguments, words):
    """Before anything is set up."""
    done = machine(str(ROOT / "test"), *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (ROOT / ".venv-3.99").exists()


def test_of_several_pythons_each_is_tried_and_those_that_failed_are_named(machine):
    """The first that is missing must not hide what is wrong with the second."""
    done = machine(str(ROOT / "test"), "--python", "3.98", "--python", "3.99", "tests/test_values.py")
    assert done.returncode == 1
    assert "no Python 3.98 was found" in done.stderr
    assert "no Python 3.99 was found" in done.stderr
    assert done.stderr.splitlines()[-1] == "failed with Python 3.98 3.99"


def test_what_could_not_be_set_up_is_named(monkeypatch, capsys):
    """A line for each, with the tests that are left out without it; the long ones only where they are wanted."""
    needs = [
        set_up.Need("One thing", lambda: False, "its tests"),
        set_up.Need("What is there", lambda: True, "nothing"),
        set_up.Need("Another", lambda: False, "more tests", long=True),
    ]
    monkeypatch.setattr(set_up, "NEEDS", needs)
    set_up.main([])
    assert capsys.readouterr().out == "NOT SET UP: One thing. Left out: its tests.\n"
    set_up.main(["--long"])
    assert capsys.readouterr().out.splitlines()[1] == "NOT SET UP: Another. Left out: more tests."


def test_what_the_quick_size_leaves_out_is_there():
    """A test that moved would come back into it unseen, and make it slow."""
    program = 'eval "$(sed -n "/^QUICK=(/,/^)/p" test)"; printf "%s\\n" "${QUICK[@]}"'
    done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = [line.partition("=")[2].partition("::") for line in done.stdout.splitlines()]
    assert len(paths) > 10
    assert [path for path, _, _ in paths if not list(ROOT.glob(path))] == []
    assert [test for path, _, test in paths if test and f"def {test}(" not in (ROOT / path).read_text()] == []
