"""`@tool`: a typed function says everything that a manifest does."""

import dataclasses
import datetime
import enum
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from lastword import Session, ToolRegistry, tool
from lastword.errors import ManifestError
from lastword.testing import FixedApprover
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
