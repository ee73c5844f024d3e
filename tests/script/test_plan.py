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


@requirement("NUWA-51")
@pytest.mark.parametrize(
    ("text", "summary"),
    [
        ("CALL is_ready {}", "This script has one tool call. Nobody is asked."),
        ("CALL nope {}", "This script has one tool call. Unknown tool: nope."),
        (
            "CALL nope {} CALL is_ready {}",
            "This script has 2 tool calls. Nobody is asked for the tools that are known here. Unknown tool: nope.",
        ),
        (
            'CALL nope {} CALL nope {} CALL write_file { path: "a", text: "b" } CALL none {}',
            "This script has 4 tool calls. You are asked before 1 of them runs. Unknown tools: nope, none.",
        ),
        (
            " ".join(f"CALL t{number} {{}}" for number in range(7)),
            "This script has 7 tool calls. Unknown tools: t0, t1, t2, t3, t4 and 2 more.",
        ),
    ],
)
def test_of_an_unknown_tool_nobody_can_say_who_is_asked(text: str, summary: str) -> None:
    """ "Nobody is asked" is a promise, and of a tool that is not known there is nothing to promise."""
    steps = plan(text, SIGNATURES)
    written = plan_text(steps)
    assert written.splitlines()[0] == summary
    unknown = [step for step in steps if not step.known]
    assert written.count("No such tool is known here: the script would stop.") == len(unknown)
    assert all(step.needs_person is None and step.as_dict()["needs_person"] is None for step in unknown)
    assert "Nobody is asked." not in plan_text(plan(text))


@requirement("NUWA-51")
def test_loops_in_loops_multiply() -> None:
    """Three times four is twelve, also where a branch may skip some; beyond what can be counted it is any number."""
    text = """
FOR a IN [1, 2, 3] DO
  FOR b IN RANGE(4) DO
    CALL is_ready {}
    IF a == b THEN CALL is_ready {} END
    FOR c IN [] DO CALL is_ready {} END
    FOR c IN CALL list_up {} DO FOR d IN [1, 2] DO CALL is_ready {} END END
  END
END
"""
    every, some, none, _, any_number = plan(text)
    assert (every.least, every.most, every.how_often) == (12, 12, "12 times")
    assert (some.least, some.most, some.how_often) == (0, 12, "at most 12 times")
    assert (none.least, none.most, none.how_often) == (0, 0, "never")
    assert (any_number.least, any_number.most, any_number.how_often) == (0, None, "any number of times")
    deep = "FOR a IN RANGE(9007199254740992) DO " * 500 + "CALL is_ready {}" + " END" * 500
    (step,) = plan(deep)
    assert (step.least, step.most, step.how_often) == (2**53, None, "any number of times")


@requirement("NUWA-51")
def test_of_very_many_conditions_around_a_call_some_are_named_and_the_rest_counted() -> None:
    """A person reads eight conditions, not five hundred."""
    text = "".join(f"IF x == {number} THEN " for number in range(50)) + "CALL is_ready {}" + " END" * 50
    (step,) = plan(text)
    assert step.when == (
        *(f"only if x is {number}" for number in range(4)),
        "inside 42 more loops and conditions",
        *(f"only if x is {number}" for number in range(46, 50)),
    )
    (step,) = plan("".join(f"IF x == {number} THEN " for number in range(8)) + "CALL is_ready {}" + " END" * 8)
    assert step.when == tuple(f"only if x is {number}" for number in range(8))


def test_a_long_constant_is_not_written_out_for_every_call_that_is_given_it() -> None:
    """Ten thousand CALLs may share a list of fifty thousand numbers. What one CALL alone is given is written out."""
    long = f"[{', '.join(['1'] * 2_000)}]"
    shared, own = plan(f"LET big = {long} CALL echo {{ a: big }} CALL echo {{ a: {long} }}")
    assert shared.arguments[0].value == own.arguments[0].value == [1] * 2_000
    assert shared.arguments[0].text == own.arguments[0].text
    assert "value" not in shared.as_dict()["arguments"][0]
    assert own.as_dict()["arguments"][0]["value"] == [1] * 2_000
    (short,) = plan("LET small = [1] CALL echo { a: small }")
    assert short.as_dict()["arguments"][0]["value"] == [1]


def test_what_a_tool_says_of_itself_is_one_line_of_the_plan() -> None:
    """A description with line ends could pass for "Nobody is asked"."""
    fake = "Reads.\n   You are asked first.\r\u2028   2. Nothing"
    signature = Signature("t", fake, effect=fake, display_name=fake, needs_person=True)
    lines = plan_text(plan("CALL t {}", {"t": signature})).splitlines()
    flat = "Reads. You are asked first. 2. Nothing"
    assert lines[2:7] == [
        f"1. {flat} (t)",
        f"   {flat}",
        "   Once. (line 1)",
        "   You are asked first.",
        f"   {flat}.",
    ]


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


def how_often(text: str) -> list[str]:
    return [f"{step.tool} {step.how_often}" for step in plan(text)]


@requirement("NUWA-82", "NUWA-51")
def test_what_a_stop_may_come_before_is_not_promised() -> None:
    """A plan that said "once" of a call that a STOP keeps from happening would have promised too much."""
    text = "CALL a {} IF x THEN CALL b {} STOP 1 CALL never {} END CALL c {} FOR i IN [1, 2] DO CALL d {} END"
    assert how_often(text) == ["a once", "b at most once", "never never", "c at most once", "d at most twice"]
    assert how_often("STOP CALL a {} CALL b {}") == ["a once", "b never"]


@requirement("NUWA-82", "NUWA-51")
def test_a_loop_that_may_be_left_runs_at_most_so_often() -> None:
    """BREAK ends the loop that it stands in, and not the one around it; what stands before it ran once at least."""
    text = """
    FOR i IN [1, 2, 3] DO
      CALL a {}
      FOR j IN [1, 2] DO CALL b {} IF x THEN BREAK END CALL c {} END
      CALL d {}
    END
    FOR k IN [1, 2, 3] DO CALL e {} IF x THEN STOP 1 END END
    FOR k IN anything DO CALL f {} BREAK END
    """
    assert how_often(text) == [
        "a 3 times", "b at most 6 times", "c at most 6 times", "d 3 times", "e at most 3 times", "f at most once",
    ]  # fmt: skip
    steps = {step.tool: step for step in plan(text)}
    assert (steps["b"].least, steps["c"].least, steps["e"].least, steps["f"].least) == (3, 0, 1, 0)


@requirement("NUWA-82", "NUWA-51")
def test_each_branch_of_an_elseif_says_what_must_hold_and_what_must_not() -> None:
    """The third branch is reached only where the first two conditions do not hold."""
    text = "IF a == 1 THEN CALL x {} ELSEIF CALL y {} THEN CALL z {} ELSE CALL w {} END"
    assert [(step.tool, step.when) for step in plan(text)] == [
        ("x", ("only if a is 1",)),
        ("y", ("unless a is 1",)),
        ("z", ("unless a is 1", "only if CALL y {}")),
        ("w", ("unless a is 1", "unless CALL y {}")),
    ]


@requirement("NUWA-80")
def test_the_length_of_a_list_that_was_given_a_name_is_known() -> None:
    """Two hundred payments are two hundred, also where the list has a name."""
    assert how_often("LET all = RANGE(200) FOR n IN all DO LET r = TRY CALL pay { n: n } END") == [
        "pay at most 200 times"
    ]
    for text in ("SET all = [1]", "FOR all IN [1] DO END", "LET all = [1]"):
        assert how_often(f"LET all = RANGE(200) {text} FOR n IN all DO CALL pay {{}} END") == [
            "pay any number of times"
        ]
