"""What a model can be held to: a text or one valid request, and nothing between the two."""

import functools
import json
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from gbnf import GBNF, InputParseError, RuleEnd

from lastword import Session, ToolRegistry, tool_request_grammar, tool_request_schema
from lastword.errors import ArgumentsError
from lastword.server import is_script
from lastword.talk.constraint import constraint, plain_pattern
from lastword.talk.replies import near_script
from lastword.wire import ToolRequest, parse_tool_request
from requirements import requirement
from script.derive import Grammar


@pytest.fixture(scope="module")
def registry() -> ToolRegistry:
    """Tools with everything that an argument can be."""
    registry = ToolRegistry()
    registry.load("examples/home/tools")
    registry.load("examples/format_json")
    registry.register(
        "book",
        {
            "description": "Books seats.",
            "parameters": [
                {"name": "note", "type": "string", "required": False},
                {"name": "seats", "type": "array", "schema": {"items": {"type": "integer"}, "minItems": 1}},
                {"name": "who", "type": "object", "schema": {"properties": {"name": {"type": "string"}}}},
                {"name": "price", "type": "number", "required": False, "schema": {"minimum": 0, "maximum": 9}},
                {"name": "anything", "type": "any", "required": False},
            ],
        },
        lambda args, context: None,
    )
    return registry


@pytest.fixture(scope="module")
def grammar(registry: ToolRegistry) -> str:
    return tool_request_grammar(registry)


@functools.cache
def interpreter(grammar: str) -> Any:
    """What a GBNF interpreter that is not ours makes of a grammar: far slower to make than to ask."""
    return GBNF(grammar).__graph__


def admits(grammar: str, text: str) -> bool:
    """Whether it takes the whole text."""
    try:
        return any(isinstance(pointer.rule, RuleEnd) for pointer in interpreter(grammar).add(text))
    except InputParseError:
        return False
    finally:
        interpreter(grammar).previous_code_points.clear()


def held(registry: ToolRegistry, protocol: Any) -> str:
    """The grammar for a session with these tools."""
    form = constraint(Session(registry), protocol)
    assert form is not None
    return str(form["grammar"])


def asking(name: str, **arguments: Any) -> str:
    return json.dumps({"tool_request": {"name": name, "arguments": arguments}})


VALID = [
    asking("set_light", room="living room", on=True),
    asking("set_light", room="hall", on=False, brightness=100),
    asking("set_light", room="hall", on=False, brightness=12.5),
    asking("unlock_door"),
    asking("add_event", day="2026-11-17", hour=23, title="Zahnarzt, früh"),
    asking("format_json", text='{"a": "\\n"}', sort_keys=True),
    asking("book", seats=[1, 2], who={"name": "Ana"}),
    asking("book", note="n", seats=[1], who={"name": "Ana"}, price=9, anything=[None, {"x": 1}]),
]
INVALID = [
    asking("set_lamp", room="hall", on=True),
    asking("set_light", room="cellar", on=True),
    asking("set_light", room="hall"),
    asking("set_light", room="hall", on="yes"),
    asking("set_light", room="hall", on=True, brightness=0),
    asking("set_light", room="hall", on=True, brightness=101),
    asking("set_light", room="hall", on=True, colour="red"),
    asking("add_event", day="tomorrow", hour=9, title="x"),
    asking("add_event", day="2026-11-17", hour=24, title="x"),
    asking("add_event", day="2026-11-17", hour=9.5, title="x"),
    asking("add_event", day="2026-11-17", hour=9, title=""),
    asking("book", seats=[], who={}),
    asking("book", seats=["1"], who={}),
]
NEARLY = [
    f"Sure! {VALID[0]}",
    f"{VALID[0]} Done.",
    f"```json\n{VALID[0]}\n```",
    VALID[0].replace('"', "'"),
    VALID[0][:-1],
    '{"tool_request": "set_light"}',
    '{"name": "set_light"}',
    '```json\n{"set_light": {}}\n```',
]
TEXTS = [
    "The kitchen light is on.",
    "t",
    "too",
    'He said "tool" and then {"a": 1}: a JSON object.',
    "Use `{}` in Python.\n```python\nx = {}\n```",
    "tool_reques is not the word; ttool_ is neither.",
    "Größe: 5 µm ✓",
]


@requirement("API-61")
@pytest.mark.parametrize(
    ("texts", "is_admitted"), [(VALID + TEXTS, True), (INVALID + NEARLY, False)], ids=["right", "wrong"]
)
def test_the_grammar_admits_what_is_right_and_refuses_what_would_be_refused_later(
    grammar: str, texts: list[str], is_admitted: bool
) -> None:
    """A model that is held to it can still say everything that is right, and never writes a request that cannot be
    carried out, or a text that is nearly one."""
    assert [text for text in texts if admits(grammar, text) is not is_admitted] == []


@requirement("API-61")
def test_whatever_the_grammar_admits_is_a_valid_request_or_plain_text(registry: ToolRegistry, grammar: str) -> None:
    """Derived at random, since nobody thinks of everything: no near miss, no unknown tool, no wrong argument."""
    rules = Grammar(grammar)
    called = set()
    for seed in range(3_000):
        text = rules.derive(Random(seed), 120)
        found = parse_tool_request(text)
        if not isinstance(found, ToolRequest):
            # The one thing that no such grammar can see: the same key twice in a free object.
            assert not found.near or "appears twice" in found.reason, text
            continue
        called.add(found.name)
        try:
            registry.lookup(found.name).validate(found.arguments)
        except ArgumentsError as problem:
            pytest.fail(f"{text}\n{problem}")
    assert called == {tool.name for tool in registry.all()}


@requirement("API-61")
@pytest.mark.parametrize("protocol", ["json", "script"])
def test_a_model_that_is_held_to_a_form_cannot_write_white_space_for_ever(registry: ToolRegistry, protocol) -> None:
    """A small model that may write one more blank writes blanks until it is cut off, before, inside and after."""
    grammar = held(registry, protocol)
    assert Grammar(grammar).endless_blanks() == []
    for endless in (" " * 200, "\n" * 200, "Sure." + " \n" * 200, "too" + " " * 200):
        with pytest.raises(InputParseError):
            interpreter(grammar).add(endless)
    for text in ("Two columns:          here\n\n\n    and here.\n", "tool \ttool", "\n\nYes."):
        assert admits(grammar, text), text


@requirement("API-61")
def test_the_schema_says_the_same_of_requests_and_leaves_texts_to_strings(registry: ToolRegistry) -> None:
    """Two forms of one promise: a server that knows schemas accepts exactly what one that knows grammars does."""
    validator = jsonschema_rs.validator_for(tool_request_schema(registry))
    for text in VALID:
        assert validator.is_valid(json.loads(text)), text
    for text in [*INVALID, '{"tool_request": "set_light"}', '{"name": "set_light"}', "[]", "{}"]:
        assert not validator.is_valid(json.loads(text)), text
    assert validator.is_valid("The kitchen light is on.")


@requirement("API-61")
def test_shapes_of_two_tools_with_the_same_name_stay_apart() -> None:
    """In one schema for all tools, the definitions of one must not become those of another."""
    registry = ToolRegistry()
    for name, kind in (("one", "integer"), ("two", "boolean")):
        schema = {"$ref": "#/$defs/Size", "$defs": {"Size": {"type": kind}}}
        parameters = [{"name": "size", "type": "any", "schema": schema}]
        registry.register(name, {"description": name, "parameters": parameters}, lambda args, context: None)
    validator = jsonschema_rs.validator_for(tool_request_schema(registry))
    grammar = tool_request_grammar(registry)
    for text, fits in (
        (asking("one", size=1), True),
        (asking("two", size=True), True),
        (asking("one", size=True), False),
        (asking("two", size=1), False),
    ):
        assert validator.is_valid(json.loads(text)) is fits
        assert admits(grammar, text) is fits


@requirement("API-61")
def test_in_scripts_a_text_stays_a_text_and_a_script_a_script(registry: ToolRegistry) -> None:
    """Held to scripts alone, a model could not greet; held to anything, it could write half a script."""
    scripts = held(registry, "script")
    for text in (*TEXTS, 'CALL set_light { room: "hall", on: true }', "LET x = 1\nPRINT(x)"):
        assert admits(scripts, text), text
    for text in ("CALL set_lamp {}", "CALL set_light", "LET x =", "```\nPRINT(1)\n```", VALID[0], f"Sure! {VALID[0]}"):
        assert not admits(scripts, text), text
    rules = Grammar(scripts)
    kinds = set()
    for seed in range(300):
        text = rules.derive(Random(seed), 60)
        is_one = is_script(text)
        assert is_one or near_script(text, "script", asks=False) is None or "twice" in text, text
        kinds.add(is_one)
    assert kinds == {True, False}


@requirement("API-61")
def test_a_script_begins_with_what_can_lead_to_a_call_and_a_text_with_no_let(registry: ToolRegistry) -> None:
    """A small model took SET for a switch and GET for a question, and wrote "Let" for LET; none did anything."""
    scripts = held(registry, "script")
    light = 'CALL set_light { room: "hall", on: true }'
    begins = (light, f"TRY {light}", f"LET done = {light}", f"// Light.\n{light}", f"{light}\n{light}\nPRINT(1)")
    words = ("Lemons are yellow.", "Le Havre", "L", "Lights are on.", "lots of them", "leave it", "l'été", "Ltd.", "lt")
    for text in (*begins, f"IF true THEN\n{light}\nEND", f"FOR x IN [1] DO\n{light}\nEND", *words):
        assert admits(scripts, text), text
    for text in (
        'SET light = "on"',
        'GET(light, "hall", false)',
        "PRINT(1)",
        "STOP 1",
        f"Let done = {light}",
        "let x = 1",
    ):
        assert not admits(scripts, text), text


@requirement("API-61")
def test_without_tools_and_in_native_calling_there_is_nothing_to_be_held_to(registry: ToolRegistry) -> None:
    """A form for its own sake only makes a model worse."""
    assert constraint(Session(ToolRegistry()), "json") is None
    assert constraint(Session(registry), "native") is None
    assert admits(tool_request_grammar(ToolRegistry()), "Hello.")
    assert not admits(tool_request_grammar(ToolRegistry()), VALID[0])
    assert tool_request_schema(ToolRegistry())["type"] == "string"


@requirement("API-61")
@pytest.mark.parametrize(
    ("pattern", "plain"),
    [
        (r"^\d{4}-\d{2}$", '[0-9]{4,4} "-" [0-9]{2,2}'),
        (r"^[a-z0-9][a-z0-9-]*\.md$", '[a-z0-9] [a-z0-9-]* "." "m" "d"'),
        (r"\d+", None),
        (r"^(a|b)$", None),
        (r"^[^/]+$", None),
        (r"^.*$", None),
    ],
)
def test_only_plain_patterns_become_rules(pattern: str, plain: str | None) -> None:
    """A pattern that is misread would forbid what the tool takes. One that is not plain is left to the check."""
    assert plain_pattern(pattern) == plain
