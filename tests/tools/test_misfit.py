"""What does not fit a schema: which field, and what was expected there, however the schema says it."""

from typing import Annotated, Any, Literal

import jsonschema_rs
import msgspec
import pytest

from lastword.editor import EDITOR_TOOLS
from lastword.errors import ArgumentsError, ManifestError
from lastword.tools import Tool
from lastword.tools.json_schema import MAX_NAMED, misfits
from requirements import requirement

EDITORS = {tool.name: tool for tool in EDITOR_TOOLS}


class Circle(msgspec.Struct, tag="circle", forbid_unknown_fields=True):
    radius: float


class Box(msgspec.Struct, tag="box", forbid_unknown_fields=True):
    width: Annotated[int, msgspec.Meta(ge=1)]
    height: int


class Note(msgspec.Struct):
    text: str
    shapes: list[Circle | Box] = []


def draw(
    shape: Circle | Box | None = None,
    size: int | str | None = None,
    note: Note | None = None,
    colour: Literal["red", "green", "blue"] = "red",
) -> None:
    """Draws."""


DRAW = Tool.from_function(draw)


def said(tool: Any, arguments: dict[str, Any]) -> list[str]:
    """What is told, without the first and the last line."""
    with pytest.raises(ArgumentsError) as caught:
        tool.validate(arguments)
    return [problem.fact for problem in caught.value.problems]


@requirement("TOOL-31")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"size": 1.5}, ["size does not fit: expected integer or string or null, found 1.5"]),
        ({"shape": "round"}, ['shape does not fit: expected object, found "round"']),
        ({"shape": {"type": "circle", "radius": "2"}}, ['shape.radius does not fit: expected number, found "2"']),
        ({"shape": {"type": "circle"}}, ["shape does not fit: the field radius is missing"]),
        (
            {"shape": {"type": "box", "width": 0, "heigth": 1}},
            [
                "shape does not fit: the field height is missing",
                "shape.width does not fit: 0 is less than the minimum of 1",
                "shape does not fit: unknown field heigth (did you mean height?); the fields are type, width, height",
            ],
        ),
        (
            {"note": {"text": "x", "shapes": [{"type": "box", "width": 1, "height": 1}, {"type": "circle"}]}},
            ["note.shapes[1] does not fit: the field radius is missing"],
        ),
        ({"colour": "gren"}, ['colour does not fit: "gren" is not one of blue, green, red (did you mean green?)']),
    ],
)
def test_the_shape_that_was_meant_is_the_one_that_is_talked_about(arguments: dict[str, Any], expected: list[str]):
    """ "Not valid under any of the schemas" says nothing that a model could mend."""
    assert sorted(said(DRAW, arguments)) == sorted(f"the argument {line}" for line in expected)


@requirement("TOOL-31")
def test_a_value_that_could_mean_several_shapes_is_told_of_each():
    """Which was meant cannot be known; what each of them lacks can."""
    (words,) = said(DRAW, {"shape": {}})
    assert "fits none of these: " in words
    assert "the field radius is missing" in words
    assert "; or " in words
    assert "the field height is missing" in words


@requirement("TOOL-31")
@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("read_file", {"path": "a", "last_line": "x"}, ['last_line does not fit: expected integer or null, found "x"']),
        ("read_file", {"path": "a", "last_line": 0}, ["last_line does not fit: 0 is less than the minimum of 1"]),
        (
            "insert_lines",
            {"path": "a", "operations": [{"line": 1, "content": "x"}]},
            [
                "operations[0] does not fit: the field start_line is missing",
                "operations[0] does not fit: unknown field line; the fields are start_line, content",
            ],
        ),
        (
            "edit_files",
            {"edits": [{"action": "write_file", "path": "a", "text": "x"}, {"action": "wirte_file", "path": "a"}]},
            [
                'edits[1].action does not fit: "wirte_file" is not one of replace_text, insert_lines, replace_lines, '
                "write_file, rename_file, delete_file (did you mean write_file?)"
            ],
        ),
        ("edit_files", {"edits": [{"path": "a"}]}, ["edits[0] does not fit: the field action is missing"]),
    ],
)
def test_the_editors_own_tools_are_repairable(tool: str, arguments: dict[str, Any], expected: list[str]):
    """They are called most, with the most nested arguments."""
    assert said(EDITORS[tool], arguments) == [f"the argument {line}" for line in expected]


def test_a_flood_of_unknown_fields_is_not_guessed_at_one_by_one():
    """Each guess at what was meant costs something, and nobody reads a thousand of them."""
    schema = {"properties": {"radius": {}}, "additionalProperties": False}
    (problem,) = jsonschema_rs.validator_for(schema).iter_errors({f"radios{n}": 1 for n in range(1_000)})
    ((path, words),) = misfits(problem, schema)
    assert path == []
    assert words.count("did you mean radius?") == MAX_NAMED


EXPRESSION = {
    "type": "object",
    "properties": {"where": {"$ref": "#/$defs/term"}},
    "required": ["where"],
    "$defs": {
        "term": {
            "anyOf": [
                *(
                    {"type": "object", "properties": {"arg": {"$ref": "#/$defs/term"}, "op": {"const": op}}}
                    for op in ("and", "or", "not")
                ),
                {"type": "string"},
            ]
        }
    },
}
UNFOLDING = {
    "type": "object",
    "properties": {"where": {"$ref": "#/$defs/d0"}},
    "$defs": {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)} | {"d40": {"type": "string"}},
}


def _term(levels: int, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {"op": "not", "arg": leaf}
    return leaf


@requirement("TOOL-61")
def test_no_arguments_hold_everybody_up_while_it_is_found_out_what_is_wrong(registry):
    """A model decides how deep its arguments are. Each level multiplied the work, and the whole program stood still."""
    tool = registry.register("find", EXPRESSION, lambda params, context: "found")
    with pytest.raises(ArgumentsError) as caught:
        tool.validate({"where": _term(60, 1)})
    assert "nested too deeply to say where" in str(caught.value)


@requirement("TOOL-61")
def test_a_schema_that_unfolds_without_end_is_refused_when_it_is_given(registry):
    """A few lines from a foreign server, and the first call would stand still for years."""
    with pytest.raises(ManifestError, match="unfold to more shapes than can be tried"):
        registry.register("find", UNFOLDING, lambda params, context: "found")


@requirement("TOOL-61")
def test_what_is_nested_a_little_is_still_told_in_detail(registry):
    """The bound is for what nobody would wait for."""
    tool = registry.register("find", EXPRESSION, lambda params, context: "found")
    assert tool.validate({"where": _term(60, "a leaf")})
    with pytest.raises(ArgumentsError) as caught:
        tool.validate({"where": _term(2, 1)})
    assert "where" in str(caught.value)
    assert "too deeply" not in str(caught.value)
