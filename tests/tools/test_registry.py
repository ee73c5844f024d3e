"""Name → tool: registering, looking up, forgetting."""

import pytest

from lastword import Session, ToolRegistry
from lastword.consent import DENIED
from lastword.errors import ToolLoadError, UnknownTool
from lastword.script.tokens import KEYWORDS
from lastword.testing import FixedApprover
from lastword.tools.manifest import RESERVED
from requirements import requirement

SCHEMA = {"description": "Gives a price.", "parameters": [{"name": "token", "type": "string"}], "returns": "number"}


@requirement("TOOL-20")
def test_a_registry_registers_looks_up_and_forgets(registry: ToolRegistry):
    """The six methods of the seeds."""
    tool = registry.register("get_price", SCHEMA, lambda args, context: 1)
    assert registry.lookup("get_price") is tool
    assert registry.is_registered("get_price")
    assert registry.get_schema("get_price").description == "Gives a price."
    assert [schema.id for schema in registry.get_all_schemas()] == ["get_price"]
    registry.unregister("get_price")
    assert not registry.is_registered("get_price")
    assert registry.get_all_schemas() == []


@requirement("TOOL-20")
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("get_prize", "did you mean get_price?"),
        ("Get_Price", "did you mean get_price?"),
        ("GET_PRICE", "did you mean get_price?"),
        ("xyz", "the tools are: get_price"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(registry: ToolRegistry, name, hint):
    """Lookup is case-sensitive, and says so by naming the right one."""
    registry.register("get_price", SCHEMA, lambda args, context: 1)
    for method in (registry.lookup, registry.get_schema, registry.unregister):
        with pytest.raises(UnknownTool) as refusal:
            method(name)
        assert str(refusal.value) == f"unknown tool {name}\nhint: {hint}"
    assert not registry.is_registered(name)


@requirement("TOOL-20", "TOOL-48")
async def test_a_call_of_an_unknown_tool_is_an_outcome(registry: ToolRegistry):
    """The model reads it and repairs the name."""
    outcome = await Session(registry).call("nothing")
    assert outcome.kind == "unknown_tool"
    assert outcome.message == "unknown tool nothing\nhint: no tools are registered"


@requirement("TOOL-3", "TOOL-5")
def test_one_name_is_one_tool(registry: ToolRegistry):
    """A second registration is an error unless it is the very same tool."""

    def execute(args, context):
        return 1

    first = registry.register("get_price", SCHEMA, execute)
    assert registry.register("get_price", SCHEMA, execute) is first
    with pytest.raises(ToolLoadError, match="there is another tool called get_price"):
        registry.register("get_price", {**SCHEMA, "description": "Something else."}, execute)
    with pytest.raises(ToolLoadError, match="there is another tool called get_price"):
        registry.register("get_price", SCHEMA, lambda args, context: 2)
    assert registry.lookup("get_price") is first


@requirement("TOOL-13")
@pytest.mark.parametrize("how", ["sync", "async", "inline"])
async def test_a_registry_style_tool_is_called_with_arguments_and_context(registry: ToolRegistry, how):
    """Positionally, and returns any JSON value; the host vouches for it."""

    def price(args, context):
        context.set_state("last", args["token"])
        return 42.5

    async def price_async(args, context):
        return price(args, context)

    registry.register("get_price", SCHEMA, price_async if how == "async" else price, inline=how == "inline")
    session = Session(registry)
    outcome = await session.call("get_price", {"token": "BTC"})
    assert (outcome.kind, outcome.value, outcome.message, outcome.approval) == (
        "succeeded",
        42.5,
        "42.5",
        "not_needed",
    )
    assert session.get_state_value("last") == "BTC"


@requirement("TOOL-13")
@pytest.mark.parametrize("by", ["argument", "schema"])
async def test_a_registry_style_tool_is_asked_about_when_it_says_so(registry: ToolRegistry, effects, by):
    """By the argument of register, or by the schema's own word, which must not be lost."""
    schema = SCHEMA | ({"requireApproval": True} if by == "schema" else {})
    asks = by == "argument"
    registry.register("get_price", schema, lambda args, context: effects.append(1), require_approval=asks)
    approver = FixedApprover(DENIED)
    assert (await Session(registry, approver=approver).call("get_price", {"token": "x"})).kind == "denied"
    assert len(approver.requests) == 1
    assert effects == []


@requirement("TOOL-13")
def test_a_registration_that_makes_no_sense_is_refused(registry: ToolRegistry):
    """Another name in the schema, or nothing to call."""
    with pytest.raises(ToolLoadError, match="registered as price, but its schema says get_price"):
        registry.register("price", {**SCHEMA, "name": "get_price"}, lambda args, context: 1)
    with pytest.raises(ToolLoadError, match="not callable"):
        registry.register("get_price", SCHEMA, "price")  # type: ignore[arg-type]


@requirement("NUWA-85")
@pytest.mark.parametrize("name", sorted(KEYWORDS))
def test_a_tool_that_no_script_could_call_is_refused(registry: ToolRegistry, name: str):
    """`CALL END {}` does not parse. The list of such names here is the language's own."""
    assert name in RESERVED
    with pytest.raises(ToolLoadError, match=f"{name} is a keyword of scripts"):
        registry.register(name, SCHEMA, lambda args, context: 1)
    assert registry.all() == []


@requirement("NUWA-85")
def test_nothing_but_the_keywords_is_reserved(registry: ToolRegistry):
    """A function that is called like one is refused too; in lower case it is a name like any other."""
    assert RESERVED == KEYWORDS

    def END() -> int:
        """Ends."""
        return 1

    with pytest.raises(ToolLoadError, match="END is a keyword"):
        registry.tool(END)
    registry.register("end", SCHEMA, lambda args, context: 1)


@requirement("TOOL-34")
def test_editor_tools_are_not_offered_without_an_editor(registry: ToolRegistry, assistant):
    """And are, with one."""
    assistant(scriptEditorOnly=True)
    assert registry.all(with_editor=False) == []
    assert [tool.name for tool in registry.all()] == ["send"]


@requirement("TOOL-21")
def test_a_registry_has_state_of_its_own_for_who_uses_no_session(registry: ToolRegistry):
    """The seed's methods, on the registry and on the context it creates."""
    context = registry.create_tool_context()
    context.set_state("a", [1], {"description": "a list"})
    assert registry.get_state_value("a") == [1]
    assert registry.get_all_state() == {"a": [1]}
    assert registry.has_state("a")
    assert registry.get_state_metadata("a").description == "a list"  # type: ignore[union-attr]
    registry.register_state_metadata("b", {"description": "later"})
    assert set(registry.get_all_state_metadata()) == {"a", "b"}
    assert registry.format_state_for_prompt() == "a: [1] (a list)"
    registry.clear_state()
    assert not context.has_state("a")
