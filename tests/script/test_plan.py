"""The plan: what a script may do, in words."""

from pathlib import Path

import pytest

from lastword.script import Signature, SignatureParameter, check, format_script, plan, plan_text
from requirements import requirement
from script.hosts import SIGNATURES, TestHost, run
from script.snapshots import matches_snapshot

EXAMPLES = {path.stem: path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").glob("*.nuwa"))}


@requirement("NUWA-51")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_plan_of_an_example_reads_as_it_did(name: str) -> None:
    """A person who cannot program decides by this text."""
    assert matches_snapshot(f"plan_{name}.txt", plan_text(plan(EXAMPLES[name], SIGNATURES)))


@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_is_well_laid_out_and_runs(name: str) -> None:
    """Examples are copied; they should be right and look right."""
    assert check(EXAMPLES[name], SIGNATURES) == []
    assert format_script(EXAMPLES[name]) == EXAMPLES[name]
    host = TestHost()
    assert (await run(EXAMPLES[name], host)).error is None
    planned = [step.tool for step in plan(EXAMPLES[name], SIGNATURES)]
    assert {tool for tool, _ in host.calls} <= set(planned)


@requirement("NUWA-51")
def test_a_step_says_how_often_with_what_and_who_is_asked() -> None:
    """The facts behind the words, for programs."""
    text = """
LET path = "a.md"
FOR n IN RANGE(3) DO
  IF n > 0 THEN CALL write_file { path: path, text: STRING(n) } ELSE CALL read_file { path: path } END
END
FOR line IN CALL list_lines {} DO CALL send_message { channel: "c", text: line } END
"""
    writing, reading, listing, sending = plan(text, SIGNATURES)
    assert (writing.tool, writing.least, writing.most, writing.needs_person) == ("write_file", 0, 3, True)
    assert writing.when == ("for each n in RANGE(3)", "only if n is more than 0")
    assert [(argument.name, argument.constant, argument.value) for argument in writing.arguments] == [
        ("path", True, "a.md"),
        ("text", False, None),
    ]
    assert (writing.line, writing.column) == (4, 22)
    assert (reading.least, reading.most, reading.when[-1]) == (0, 3, "unless n is more than 0")
    assert (listing.known, listing.least, listing.most) == (False, 1, 1)
    assert (sending.most, sending.how_often) == (None, "any number of times")
    assert sending.as_dict()["how_often"] == "any number of times"


def test_calls_inside_arguments_come_before_the_call_they_feed() -> None:
    """The order of the plan is the order of the effects."""
    text = 'CALL write_file { path: CALL read_file { path: CALL echo {} }, text: CALL get_price { token: "x" } }'
    assert [step.tool for step in plan(text)] == ["echo", "read_file", "get_price", "write_file"]


def test_a_call_behind_and_may_not_happen() -> None:
    """Short circuits skip calls, and the plan must not promise them."""
    first, second = plan("LET x = CALL is_ready {} AND CALL is_ready {}", SIGNATURES)
    assert (first.least, second.least, second.most) == (1, 0, 1)


def test_a_variable_that_changes_is_not_shown_as_a_constant() -> None:
    """What was shown must be what runs: only what can never change is shown as a value."""
    for text in (
        'LET p = "a" SET p = "b" CALL read_file { path: p }',
        'LET p = "a" FOR p IN ["x"] DO CALL read_file { path: p } END',
        'IF true THEN LET p = "a" END CALL read_file { path: p }',
    ):
        (step,) = plan(text, SIGNATURES)
        assert not step.arguments[0].constant, text


def test_a_secret_argument_is_not_shown() -> None:
    """Plans are shown on screens and kept in logs."""
    signatures = {"log_in": Signature("log_in", "", (SignatureParameter("password", "string", secret=True),))}
    steps = plan('CALL log_in { password: "hunter2" }', signatures)
    assert "hunter2" not in plan_text(steps) + str(steps[0].as_dict())


def test_a_script_without_calls_says_so() -> None:
    """Nothing to decide is worth a sentence too."""
    assert plan_text(plan("PRINT(1)")) == "This script calls no tools. It only computes and prints.\n"
