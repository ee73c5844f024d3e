"""Scripts that carry their expectation. The file's name is the claim.

    // expect error 3:6 TEXT      the checker reports an error there, whose message contains TEXT
    // expect warning 3:6 TEXT    the same for a warning
    // expect hint TEXT           the finding expected last has a hint that contains TEXT
    // expect output TEXT         the next line that the script prints
    // expect failure 3:6 CLASS   the run stops there
    // expect no call             no tool is called

The checker must find what is expected and nothing else. A script with errors does not start.
"""

import re
from pathlib import Path

import pytest

from lastword.script import Machine, PlacedError, check, parse
from script.hosts import SIGNATURES, TestHost

HERE = Path(__file__).parent
SCRIPTS = {path.stem: path.read_text() for path in sorted(HERE.rglob("*.nuwa"))}
EXPECTATION = re.compile(r"//\s*expect (error|warning|hint|output|failure|no call)[ \t]*(.*?)[ \t]*$", re.MULTILINE)


@pytest.mark.parametrize("claim", SCRIPTS)
async def test_a_script_does_what_it_says(claim: str) -> None:
    """What models get wrong is found before it costs anything; what is right runs."""
    text = SCRIPTS[claim]
    wanted = EXPECTATION.findall(text)
    assert wanted, "the script expects nothing"
    findings = check(text, SIGNATURES)
    expected: list[tuple[str, str, str]] = []
    hints: dict[str, str] = {}
    for kind, rest in wanted:
        if kind in ("error", "warning"):
            place, _, message = rest.partition(" ")
            expected.append((kind, place, message))
        elif kind == "hint":
            hints[expected[-1][1]] = rest

    found = [(finding.severity, finding.place, finding.fact) for finding in findings]
    assert [one[:2] for one in found] == [one[:2] for one in expected], findings
    for (_, place, fact), (_, _, message), finding in zip(found, expected, findings, strict=True):
        assert message in fact
        assert place is not None
        assert hints.get(place, "") in (finding.hint or "")
        assert finding.excerpt is not None

    host = TestHost()
    error: PlacedError | None = None
    if not any(finding.severity == "error" for finding in findings):
        error = (await Machine(parse(text), host).run()).error
    assert host.lines == [rest for kind, rest in wanted if kind == "output"] or not any(
        kind == "output" for kind, _ in wanted
    )
    failures = [rest.split()[:2] for kind, rest in wanted if kind == "failure"]
    assert failures == ([[error.place, type(error).__name__]] if error else [])
    if any(kind == "no call" for kind, _ in wanted):
        assert host.calls == []
