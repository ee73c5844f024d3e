"""A typed function says everything that a manifest does, and what is stated beside it is checked."""

import dataclasses
import datetime
import enum
import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from lastword import Session, ToolRegistry, tool
from lastword.errors import ManifestError
from lastword.testing import FixedApprover
from lastword.tools.manifest import Manifest
from lastword.tools.tool import Tool
from requirements import requirement


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Movie(TypedDict):
    title: str
    year: int


class Person(pydantic.BaseModel):
    name: str
    age: Annotated[int, pydantic.Field(ge=0)] = 0


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


class Card(msgspec.Struct):
    number: str


@requirement("TOOL-12")
def test_signature_hints_and_docstring_become_the_manifest(registry: ToolRegistry):
    """Names, types, defaults, descriptions, what it returns; approval unless told otherwise."""

    @registry.tool
    def move_file(
        source: Annotated[str, "Where it is"],
        target: str,
        mode: Literal["copy", "move"] = "copy",
        retries: int = 3,
        dry: bool = False,
    ) -> str:
        """Move a file
        to another place.

        It keeps the mode.

        Args:
            target: Where it goes
            retries (int): How often
        """
        return "done"

    manifest = registry.get_schema("move_file")
    assert manifest.id == "move_file"
    assert manifest.display_name == "Move file"
    assert manifest.description == "Move a file to another place."
    assert manifest.returns == "string"
    assert manifest.require_approval
    assert not manifest.auto_approve
    assert [(p.name, p.type, p.required, p.description) for p in manifest.parameters] == [
        ("source", "string", True, "Where it is"),
        ("target", "string", True, "Where it goes"),
        ("mode", "string", False, ""),
        ("retries", "number", False, "How often"),
        ("dry", "boolean", False, ""),
    ]
    schemas = {p.name: p.schema for p in manifest.parameters}
    assert schemas["mode"] == {"enum": ["copy", "move"], "default": "copy"}
    assert schemas["retries"] == {"type": "integer", "default": 3}


@requirement("TOOL-12")
def test_what_the_decorator_says_wins(registry: ToolRegistry):
    """And approval is dropped only by saying so."""

    @registry.tool(
        require_approval=False,
        id="other",
        display_name="Other",
        description="Other words.",
        effect="none",
        idempotent=True,
        timeout_seconds=5,
        secret=("pin",),
        icon="lock",
    )
    def named(pin: str) -> None:
        """Not these words."""

    manifest = registry.get_schema("other")
    assert (manifest.display_name, manifest.description, manifest.effect) == ("Other", "Other words.", "none")
    assert (manifest.idempotent, manifest.timeout_seconds, manifest.icon) == (True, 5, "lock")
    assert manifest.secrets == {"pin"}
    assert not manifest.require_approval
    assert named("x") is None


VALUES = [
    (int, 5, 5),
    (str, "a", "a"),
    (float, 1.5, 1.5),
    (bool, True, True),
    (list[int], [1, 2], [1, 2]),
    (dict[str, float], {"a": 1.5}, {"a": 1.5}),
    (int | None, None, None),
    (Point, {"x": 1}, Point(1, 0)),
    (list[Point], [{"x": 1, "y": 2}], [Point(1, 2)]),
    (Movie, {"title": "A", "year": 1999}, {"title": "A", "year": 1999}),
    (Person, {"name": "Ann", "age": 5}, Person(name="Ann", age=5)),
    (Card, {"number": "1"}, Card("1")),
    (Size, "small", Size.SMALL),
    (datetime.date, "2024-02-29", datetime.date(2024, 2, 29)),
    (tuple[int, str], [1, "a"], (1, "a")),
    (Any, {"a": [None]}, {"a": [None]}),
    (Annotated[int, msgspec.Meta(ge=0, le=9)], 9, 9),
]


@requirement("TOOL-12")
@pytest.mark.parametrize(("hint", "sent", "got"), VALUES, ids=lambda value: getattr(value, "__name__", None))
async def test_arguments_arrive_in_the_types_that_the_function_asks_for(registry: ToolRegistry, hint, sent, got):
    """JSON goes in; dataclasses, models and enums come out."""
    seen = []

    def take(value):
        seen.append(value)

    take.__annotations__ = {"value": hint}
    registry.tool(take)
    outcome = await Session(registry, approver=FixedApprover()).call("take", {"value": sent})
    assert outcome.kind == "succeeded", outcome.message
    assert seen == [got]
    assert type(seen[0]) is type(got)


@requirement("TOOL-12", "TOOL-31")
@pytest.mark.parametrize(
    ("hint", "sent"),
    [
        (int, "5"),
        (int, True),
        (int, 1.5),
        (list[int], [1, "a"]),
        (Literal["a", "b"], "c"),
        (Point, {"y": 1}),
        (Movie, {"title": "A"}),
        (Person, {"name": "Ann", "age": -1}),
        (Size, "huge"),
        (Annotated[int, msgspec.Meta(ge=0, le=9)], 10),
    ],
)
async def test_arguments_of_another_type_are_refused_before_anybody_is_asked(registry: ToolRegistry, hint, sent):
    """The schema says it, so the door can."""
    seen = []

    def take(value):
        seen.append(value)

    take.__annotations__ = {"value": hint}
    registry.tool(take)
    approver = FixedApprover()
    outcome = await Session(registry, approver=approver).call("take", {"value": sent})
    assert outcome.kind == "invalid_arguments"
    assert approver.requests == []
    assert seen == []


class Weekday(pydantic.BaseModel):
    day: str

    @pydantic.field_validator("day")
    @classmethod
    def known(cls, day: str) -> str:
        if day == "boom":
            raise RuntimeError("not even a ValueError")
        if day != "monday":
            raise ValueError("only mondays")
        return day


@pytest.mark.parametrize(
    ("day", "kind"), [("monday", "succeeded"), ("friday", "invalid_arguments"), ("boom", "raised")]
)
async def test_a_models_own_validation_is_heard_and_never_escapes(registry: ToolRegistry, caplog, day, kind):
    """It is the tool's code: what it refuses is refused, what it raises is an outcome."""
    seen = []

    @registry.tool
    def take(when: Weekday) -> None:
        seen.append(when)

    outcome = await Session(registry, approver=FixedApprover()).call("take", {"when": {"day": day}})
    assert outcome.kind == kind
    assert len(seen) == (kind == "succeeded")


@requirement("TOOL-12", "TOOL-32")
@pytest.mark.parametrize(
    ("returned", "value"),
    [
        (Point(1, 2), {"x": 1, "y": 2}),
        (Person(name="Ann"), {"name": "Ann", "age": 0}),
        ([Person(name="Ann")], [{"name": "Ann", "age": 0}]),
        ((1, "a"), [1, "a"]),
        ({"a": {1}}, {"a": [1]}),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        (Size.LARGE, "large"),
        (5.0, 5),
    ],
)
async def test_what_a_function_returns_becomes_json(registry: ToolRegistry, returned, value):
    """The value travels to scripts, its text to the model."""
    registry.tool(require_approval=False, id="give")(lambda: returned)
    outcome = await Session(registry).call("give")
    assert (outcome.kind, outcome.value) == ("succeeded", value)


@requirement("TOOL-12")
def test_a_function_that_cannot_be_described_is_refused(registry: ToolRegistry):
    """Every problem at once, with the file."""

    def wild(*args: int, **more: int) -> None: ...

    def unknown(path: Path, thing: "NoSuchType") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ManifestError) as refusal:
        registry.tool(wild)
    assert len(refusal.value.problems) == 2
    assert "give every argument a name and a type" in str(refusal.value)
    assert Path(__file__).name in str(refusal.value)
    with pytest.raises(ManifestError, match="a type hint cannot be resolved"):
        registry.tool(unknown)


@requirement("TOOL-12")
def test_the_bare_decorator_marks_a_function_that_stays_one(registry: ToolRegistry):
    """A module of tools needs no registry to import."""

    @tool(require_approval=False)
    def double(n: int) -> int:
        return 2 * n

    assert double(2) == 4
    assert registry.add(double).name == "double"
    assert not registry.get_schema("double").require_approval


@requirement("TOOL-15")
async def test_a_function_may_ask_for_more_than_its_arguments(registry: ToolRegistry):
    """Reserved names are not arguments of the tool."""
    seen = []

    @registry.tool
    def take(n: int, params, user_action, context, editor):
        seen.append((n, params, user_action.primary_confirmed, context.session_id, editor))

    assert [p.name for p in registry.get_schema("take").parameters] == ["n"]
    session = Session(registry, approver=FixedApprover())
    await session.call("take", {"n": 1})
    assert seen == [(1, {"n": 1}, True, session.id, None)]


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
