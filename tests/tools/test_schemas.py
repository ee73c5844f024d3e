"""The forms in which people have tools: all of them go in, and what went in as a schema comes out equal."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword import Session, ToolRegistry
from lastword.errors import ManifestError, ToolLoadError
from lastword.testing import FixedApprover
from requirements import requirement

ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
    "properties": {
        "unit-of": {"type": "string", "enum": ["C", "F"], "description": "the unit"},
        "where": {"$ref": "#/$defs/Place"},
        "when": {"oneOf": [{"type": "string"}, {"type": "number"}]},
        "n": {"type": "integer", "default": 3},
    },
    "required": ["where"],
    "oneOf": [{"required": ["when"]}, {"required": ["unit-of"]}],
    "additionalProperties": False,
}
FORMS: dict[str, Any] = {
    "JSON Schema": ARGUMENTS,
    "OpenAI": {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": ARGUMENTS}},
    "OpenAI, flat": {"type": "function", "name": "look", "description": "Looks.", "parameters": ARGUMENTS},
    "Anthropic": {"name": "look", "description": "Looks.", "input_schema": ARGUMENTS},
    "MCP": {"name": "look", "title": "Look", "description": "Looks.", "inputSchema": ARGUMENTS},
}


@requirement("TOOL-61")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
async def test_what_went_in_as_a_schema_comes_out_equal(registry: ToolRegistry, form: Any):
    """In every form, and whatever a reader does to the copy it got."""
    given = copy.deepcopy(form)
    registry.register("look", given, lambda args, context: args)
    given.clear()
    for _ in range(2):
        [openai], [anthropic], [mcp] = registry.openai_tools(), registry.anthropic_tools(), registry.mcp_tools()
        assert openai["function"]["parameters"] == anthropic["input_schema"] == mcp["inputSchema"] == ARGUMENTS
        openai["function"]["parameters"]["properties"].clear()
    outcome = await Session(registry).call("look", {"where": {"city": "Rome"}, "unit-of": "C"})
    assert outcome.value == {"where": {"city": "Rome"}, "unit-of": "C", "n": 3}


@requirement("TOOL-61")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"where": {"city": "Rome"}}, "oneOf"),
        ({"where": {"city": "Rome"}, "when": 1, "unit-of": "C"}, "oneOf"),
        ({"where": {}, "when": 1}, "where"),
        ({"when": 1}, "the argument where"),
        ({"where": {"city": "Rome"}, "when": 1, "wen": 2}, "unknown argument wen"),
        ({"where": {"city": "Rome"}, "unit-of": "K"}, "unit-of"),
    ],
)
async def test_arguments_that_break_the_schema_are_told_in_words(registry: ToolRegistry, arguments: Any, words: str):
    """A model repairs from what it reads; what holds for all arguments together is told too."""
    registry.register("look", ARGUMENTS, lambda args, context: args)
    outcome = await Session(registry).call("look", arguments)
    assert outcome.kind == "invalid_arguments"
    assert words in outcome.message


@requirement("TOOL-61")
@given(st.sampled_from(["none", "reversible", "irreversible", None]), st.booleans())
def test_our_own_tools_go_through_every_form_and_back(effect: Any, idempotent: bool):
    """A typed function's schema, given to another registry in any form, validates the same and comes out the same."""
    first, second = ToolRegistry(), ToolRegistry()

    @first.tool(effect=effect, idempotent=idempotent)
    def pay(amount: float, to: str = "Ada") -> str:
        """Pay somebody."""
        return to

    for form in (*first.openai_tools(), *first.anthropic_tools(), *first.mcp_tools()):
        second = ToolRegistry()
        second.register("pay", form, lambda args, context: args)
        assert second.openai_tools() == first.openai_tools()


@requirement("TOOL-61")
def test_a_server_cannot_make_its_own_tool_harmless(registry: ToolRegistry):
    """Annotations are whatever a server says. They can make a card more careful, and never less."""
    hints = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
    made = registry.register("look", {**FORMS["MCP"], "annotations": hints}, lambda args, context: 1)
    assert (made.manifest.effect, made.manifest.idempotent) == (None, False)
    registry.unregister("look")
    made = registry.register("look", {**FORMS["MCP"], "annotations": {"destructiveHint": True}}, lambda a, c: 1)
    assert made.manifest.effect == "irreversible"


@requirement("TOOL-61")
@pytest.mark.parametrize(
    ("name", "schema", "words"),
    [
        ("look", {"name": "other", "input_schema": ARGUMENTS}, "registered as look, but its schema says other"),
        ("look", {"name": "look", "input_schema": {"type": "array"}}, "described as array"),
        ("look", {"name": "look", "input_schema": []}, "is a list, expected an object"),
        ("look", {"type": "object", "properties": {"a": {"type": "strin"}}}, "not a JSON Schema"),
        ("look", {"type": "object", "properties": {"a": {"$ref": "https://a.example/b"}}}, "outside"),
        ("no-id", ARGUMENTS, "is no id of a tool"),
        ("look", 3, "found a int"),
        ("look", {"type": "object", "x": {1, 2}}, "set"),
    ],
)
def test_a_form_that_cannot_work_is_refused(registry: ToolRegistry, name: str, schema: Any, words: str):
    with pytest.raises((ManifestError, ToolLoadError), match=words):
        registry.register(name, schema, lambda args, context: 1)
    assert registry.all() == []


@requirement("TOOL-61")
async def test_every_way_can_draw_its_own_card(registry: ToolRegistry, effects):
    """Title, message, labels and a preview, from a function that names the arguments it is about."""

    def request(amount: float, to: str) -> dict[str, Any]:
        preview = {"label": "Show", "action": lambda: f"{to} gets {amount}"}
        return {
            "title": f"Pay {to}",
            "message": f"{amount} to {to}",
            "primary_button_label": "Pay",
            "secondary_button_label": "Keep it",
            "preview_button": preview,
        }

    @registry.tool(request=request)
    def pay(amount: float, to: str) -> str:
        """Pay somebody."""
        effects.append(amount)
        return "paid"

    facts = {"type": "object", "properties": {"amount": {"type": "number"}, "to": {"type": "string"}}}
    registry.register("send", facts, lambda args, context: effects.append(args), request=request, require_approval=True)
    approver = FixedApprover()
    session = Session(registry, approver=approver)
    for name in ("pay", "send"):
        assert (await session.call(name, {"amount": 1.5, "to": "Bo"})).success
    one, other = approver.requests
    for card in (one, other):
        assert (card.title, card.message, card.primary_button_label) == ("Pay Bo", "1.5 to Bo", "Pay")
        assert (card.preview_label, card.preview[0].proposed) == ("Show", "Bo gets 1.5")


@requirement("TOOL-61")
def test_a_request_function_that_nobody_could_call_is_refused(registry: ToolRegistry):
    """Its arguments are the tool's, and what a request may look at."""
    schema = {"type": "object", "properties": {"amount": {"type": "number"}}}
    with pytest.raises(ToolLoadError, match="its request function declares amonut") as refusal:
        registry.register("a", schema, lambda a, c: 1, require_approval=True, request=lambda amonut: {})
    assert refusal.value.hint == "did you mean amount?"
    with pytest.raises(ToolLoadError, match="nobody is ever asked"):
        registry.register("a", schema, lambda a, c: 1, request=lambda amount: {})
    with pytest.raises(ManifestError, match="request is 3"):
        registry.register("a", schema, lambda a, c: 1, require_approval=True, request=3)  # type: ignore[arg-type]


@requirement("TOOL-60", "TOOL-61")
async def test_a_registered_tool_takes_the_same_facts(registry: ToolRegistry):
    """Secrets, effects, limits: beside a schema that knows nothing of them."""
    schema = {"type": "object", "properties": {"api_key": {"type": "string"}, "text": {"type": "string"}}}
    made = registry.register(
        "send",
        schema,
        lambda args, context: 1,
        require_approval=True,
        secret=("api_key",),
        effect="irreversible",
        timeout_seconds=5,
        content_parameter="text",
        display_name="Send it",
    )
    assert made.secrets == {"api_key"}
    assert (made.manifest.effect, made.manifest.timeout_seconds) == ("irreversible", 5)
    approver = FixedApprover()
    await Session(registry, approver=approver).call("send", {"api_key": "hunter2", "text": "hi"})
    assert "hunter2" not in str(approver.requests[0].facts())
    with pytest.raises(ManifestError, match="secret names apikey") as refusal:
        registry.register("other", schema, lambda args, context: 1, secret=("apikey",))
    assert refusal.value.problems[0].hint == "did you mean api_key?"
