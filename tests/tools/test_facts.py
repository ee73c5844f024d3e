"""What an author states of a tool is checked when it is stated, whichever way it is written."""

import math
from typing import Any

import pytest

from lastword import ToolRegistry, tool
from lastword.errors import ManifestError
from lastword.tools.manifest import Manifest
from lastword.tools.tool import Tool
from requirements import requirement


def pay(to: str, api_key: str = "") -> str:
    """Pay somebody."""
    return to


WRONG: list[tuple[dict[str, Any], str, str | None]] = [
    ({"requires_approval": True}, "unknown fact requires_approval", "did you mean require_approval?"),
    ({"zzz": 1}, "unknown fact zzz", "what can be said is display_name, icon, color, require_approval"),
    ({"effect": "irreversibel"}, "effect is 'irreversibel', expected one of", "did you mean irreversible?"),
    ({"effect": True}, "effect is True, expected one of", None),
    ({"secret": ("apikey",)}, "secret names apikey, which is not a parameter", "did you mean api_key?"),
    ({"secret": ("password",)}, "secret names password, which is not a parameter", "the parameters are to, api_key"),
    ({"secret": "api_key"}, "secret is 'api_key', expected the names of parameters", None),
    ({"secret": (1,)}, "secret is (1,), expected the names of parameters", None),
    ({"content_parameter": "too"}, "content_parameter names too, which is not a parameter", "did you mean to?"),
    ({"timeout_seconds": "5"}, "timeout_seconds is '5', expected a number of seconds above 0", None),
    ({"timeout_seconds": 0}, "timeout_seconds is 0, expected a number of seconds above 0", None),
    ({"timeout_seconds": -1}, "timeout_seconds is -1, expected a number of seconds above 0", None),
    ({"timeout_seconds": math.nan}, "timeout_seconds is nan, expected a number of seconds above 0", None),
    ({"timeout_seconds": math.inf}, "timeout_seconds is inf, expected a number of seconds above 0", None),
    ({"timeout_seconds": True}, "timeout_seconds is True, expected a number of seconds above 0", None),
    ({"require_approval": None}, "require_approval is None, expected True or False", None),
    ({"idempotent": "no"}, "idempotent is 'no', expected True or False", None),
    ({"inline": 1}, "inline is 1, expected True or False", None),
    ({"id": "pay-somebody"}, "id is 'pay-somebody', expected letters, digits and underscores", None),
    ({"id": 5}, "id is 5, expected letters, digits and underscores", None),
    ({"description": ""}, "description is '', expected what the tool does", None),
]


@requirement("TOOL-60")
@pytest.mark.parametrize(("facts", "fact", "hint"), WRONG, ids=[str(facts) for facts, _, _ in WRONG])
@pytest.mark.parametrize("way", ["registry", "decorator"])
def test_a_wrong_fact_is_refused_when_it_is_stated(way: str, facts: dict[str, Any], fact: str, hint: str | None):
    """A misspelt secret would stand on the card, and a time limit that is text would fail after the yes."""
    with pytest.raises(ManifestError) as refusal:
        (ToolRegistry().tool if way == "registry" else tool)(**facts)(pay)
    [problem] = refusal.value.problems
    assert problem.fact.startswith(fact)
    assert problem.place is not None
    assert hint is None or (problem.hint or "").startswith(hint)


@requirement("TOOL-60")
def test_every_wrong_fact_is_told_at_once():
    """As with the file of a folder tool."""
    with pytest.raises(ManifestError) as refusal:
        ToolRegistry().tool(effect="none!", secret=("x",), timeout_seconds=-1)(pay)  # type: ignore[call-overload]
    assert len(refusal.value.problems) == 3


@requirement("TOOL-60")
@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"requires_approval": True}, "did you mean require_approval?"),
        ({"require_approval": "yes"}, "require_approval is 'yes', expected True or False"),
        ({"inline": None}, "inline is None, expected True or False"),
    ],
)
def test_a_wrong_fact_beside_a_schema_is_refused(facts: dict[str, Any], told: str):
    """`register` has its own few."""
    with pytest.raises(ManifestError) as refusal:
        ToolRegistry().register("pay", {"description": "Pays.", "parameters": []}, pay, **facts)
    assert told in str(refusal.value)


@requirement("TOOL-60")
@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_seconds": "5"},
        {"timeout_seconds": 0},
        {"effect": "irreversibel"},
        {"content_parameter": "text"},
        {"require_approval": None},
    ],
)
def test_a_manifest_made_by_hand_is_checked_too(wrong: dict[str, Any]):
    """Whoever builds a tool from its parts passes the same gate, before anything is asked."""
    manifest = Manifest(id="pay", display_name="Pay", description="Pays.", **wrong)
    with pytest.raises(ManifestError, match=next(iter(wrong))):
        Tool(manifest, "registry", pay)


@requirement("TOOL-60")
def test_what_was_left_out_is_no_fact():
    """`None` for what has no value has always meant that."""
    registry = ToolRegistry()
    registry.tool(effect=None, timeout_seconds=None, icon=None)(pay)  # type: ignore[call-overload]
    assert registry.lookup("pay").manifest.effect is None
