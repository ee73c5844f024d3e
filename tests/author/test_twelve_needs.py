"""The twelve needs of an author, one test each, with public names only. What can go wrong with each is tried elsewhere.

The last test sees to the public names. The page is a real one, and so is the client of OpenAI; the model behind that
says what it was told to.
"""

import ast
import base64
import json
import struct
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest

import lastword
import lastword.testing
from lastword import Closed, Declined, Given, Session, ToolContext, ToolRegistry
from lastword.testing import ALLOWED, FixedAnswers, FixedApprover, Trial
from lastword.testing.scripted import ScriptedModel
from requirements import requirement
from surfaces.windows import Browserless, House


def dot() -> bytes:
    """The smallest picture: one dot, as a PNG."""
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(4))),
        (b"IEND", b""),
    ]
    chunks = (struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d)) for name, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@requirement("TOOL-61")
def test_1_a_typed_function_draws_its_own_card(effects):
    def request(to: str, amount: float) -> dict[str, Any]:
        return {
            "title": f"Pay {to}",
            "message": f"{amount:.2f} will leave.",
            "primary_button_label": "Pay",
            "preview_button": {"label": "Read it", "action": lambda: f"Dear {to}"},
        }

    @lastword.tool(request=request, effect="irreversible")
    def pay(to: str, amount: float) -> str:
        """Send money."""
        effects.append((to, amount))
        return "paid"

    with Trial(pay) as trial:
        assert trial.call("pay", {"to": "Ada", "amount": 12}).value == "paid"
        [card] = trial.cards
    assert (card.title, card.message, card.primary_button_label) == ("Pay Ada", "12.00 will leave.", "Pay")
    assert (card.preview_label, card.preview[0].proposed) == ("Read it", "Dear Ada")
    assert effects == [("Ada", 12)]


@requirement("TOOL-62")
def test_2_it_asks_only_above_a_hundred(effects):
    @lastword.tool(require_approval=lambda amount: amount > 100)
    def pay(amount: float) -> str:
        """Send money."""
        effects.append(amount)
        return "paid"

    with Trial(pay, answer=lambda card: card.deny()) as trial:
        kinds = [(trial.call("pay", {"amount": amount})) for amount in (100, 101)]
        assert [(outcome.kind, outcome.approval) for outcome in kinds] == [
            ("succeeded", "waived"),
            ("denied", "person"),
        ]
        assert [card.arguments for card in trial.cards] == [{"amount": 101}]
    assert effects == [100]


@requirement("TOOL-63")
def test_3_each_user_has_a_dependency_of_their_own(registry: ToolRegistry):
    @dataclass
    class Account:
        balance: float

    @registry.tool
    def withdraw(amount: float, context: ToolContext[Account]) -> str:
        """Take money out."""
        context.deps.balance -= amount
        return f"{context.user} has {context.deps.balance:g}"

    said = []
    for user, account in (("ada", Account(100)), ("bo", Account(5))):
        with Session(registry, approver=lambda card: card.allow(), deps=account, user=user) as session:
            said.append(session.call_sync("withdraw", {"amount": 1}).value)
    assert said == ["ada has 99", "bo has 4"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path).open()
    yield house
    house.close()


@requirement("TOOL-64", "TOOL-61")
def test_4_an_image_reaches_a_client_of_openai_and_the_page(house: House):
    """The host has its own loop with the official client: our tools go in, the picture goes on to the model."""
    picture = dot()

    @house.session.registry.tool(require_approval=False)
    def plot() -> lastword.ToolResult:
        """Draw the sales."""
        return lastword.ToolResult("Sales rose.", lastword.Image(picture, name="sales.png", alt="Sales by month"))

    wanted = {"id": "c1", "type": "function", "function": {"name": "plot", "arguments": "{}"}}
    with ScriptedModel([{"role": "assistant", "content": None, "tool_calls": [wanted]}, "It rose."]) as model:
        client: Any = openai.OpenAI(base_url=model.url, api_key="none")
        messages: list[Any] = [{"role": "user", "content": "Plot it."}]
        tools = house.session.registry.openai_tools()
        reply = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
        [asked] = reply.tool_calls
        outcome = house.call(asked.function.name, **json.loads(asked.function.arguments)).result(30)
        [kept] = outcome.content
        seen = base64.b64encode(house.do(house.session.content(outcome.call_id, kept.digest))).decode()
        messages += [reply, {"role": "tool", "tool_call_id": asked.id, "content": outcome.message}]
        shown = {"type": "image_url", "image_url": {"url": f"data:{kept.media_type};base64,{seen}"}}
        client.chat.completions.create(model="m", messages=[*messages, {"role": "user", "content": [shown]}])
        client.close()
        assert {tool["function"]["name"] for tool in model.requests[0]["tools"]} >= {"plot"}
        *_, result, image = model.requests[1]["messages"]
    assert result["content"].startswith("Sales rose.\n[image sales.png, image/png")
    assert base64.b64decode(image["content"][0]["image_url"]["url"].partition(",")[2]) == picture

    window = house.window()
    path = f"/page/content?call_id={outcome.call_id}&digest={kept.digest}"
    status, found, body = window.raw("GET", path, headers={"Cookie": window.cookie})
    assert (status, found["content-type"], body) == (200, "image/png", picture)


CITY = {"type": "object", "properties": {"city": {"type": "string", "title": "Where to?"}}, "required": ["city"]}


@requirement("TOOL-66")
def test_5_a_question_in_the_middle_is_answered_declined_closed_and_outlives_the_page(house: House):
    """Three results, and a page that is left and opened anew finds the question and answers it."""

    @lastword.tool(require_approval=False)
    async def book(context: ToolContext[None]) -> str:
        """Book a journey."""
        answer = await context.ask("There are trains to three cities.", CITY)
        return f"{type(answer).__name__} {answer.values if isinstance(answer, Given) else ''}".strip()

    for said, result in (
        ({"city": "Rome"}, "Given {'city': 'Rome'}"),
        (Declined(), "Declined"),
        (Closed(), "Closed"),
    ):
        with Trial(book, on_question=FixedAnswers(said)) as trial:
            assert trial.call("book").value == result

    house.session.registry.add(book)
    call = house.call("book")
    first = house.window()
    assert _question(first)["message"] == "There are trains to three cities."
    later = house.window()  # The first window is gone, and a new one is opened.
    item = _item(later)
    body = {"call_id": item["id"], "question": item["question"]["id"], "action": "give", "values": {"city": "Oslo"}}
    assert later.post("/page/answer_question", body)[0] == 200
    assert call.result(30).value == "Given {'city': 'Oslo'}"


def _item(window: Browserless) -> dict[str, Any]:
    """The call that asks, as the page is told of it."""
    with window.events() as next_event:
        for _ in range(100):
            asking = [item for item in window.get("/page/state")[1]["items"] if item.get("question")]
            if asking:
                return dict(asking[0])
            next_event()
    raise AssertionError("no question came")


def _question(window: Browserless) -> dict[str, Any]:
    return dict(_item(window)["question"])


@requirement("TOOL-65")
def test_6_a_tool_says_that_it_does_not_know(effects):
    @lastword.tool
    def pay(amount: float) -> str:
        """Send money."""
        effects.append(amount)
        raise lastword.OutcomeUnknown("the connection broke after the request")

    with Trial(pay) as trial:
        for _ in range(2):  # Asked for again, it is told and not repeated.
            assert trial.call("pay", {"amount": 5}, call_id="rent").kind == "outcome_unknown"
        assert trial.in_doubt() == ["rent"]
        assert trial.resolve("rent", "done").success
        assert trial.in_doubt() == []
    assert effects == [5]


@requirement("TOOL-67")
def test_7_a_second_button_acts():
    @lastword.tool(secondary_acts=True)
    def publish(text: str, user_action: lastword.UserAction) -> str:
        """Publish a text, or keep it as a draft."""
        return "published" if user_action.primary_confirmed else "kept as a draft"

    answers = [lambda card: card.allow(), lambda card: card.allow_second(), lambda card: card.deny()]
    with Trial(publish, answer=answers) as trial:
        outcomes = [trial.call("publish", {"text": "hi"}) for _ in answers]
    assert [outcome.value for outcome in outcomes[:2]] == ["published", "kept as a draft"]
    assert outcomes[2].kind == "denied"


@requirement("TOOL-61")
def test_8_a_json_schema_with_one_of_goes_in_and_comes_out_equal(registry: ToolRegistry):
    schema = {
        "type": "object",
        "properties": {"whom": {"oneOf": [{"$ref": "#/$defs/name"}, {"type": "integer", "minimum": 1}]}, "a-b": {}},
        "required": ["whom"],
        "$defs": {"name": {"type": "string", "minLength": 2}},
    }
    registry.register("greet", schema, lambda args, context: f"Hello, {args['whom']}")
    assert registry.anthropic_tools()[0]["input_schema"] == schema
    assert registry.mcp_tools()[0]["inputSchema"] == schema
    with Session(registry) as session:
        said = [session.call_sync("greet", {"whom": whom}).kind for whom in ("Ada", 3, "A", 0)]
    assert said == ["succeeded", "succeeded", "invalid_arguments", "invalid_arguments"]


@requirement("TOOL-61")
def test_9_the_form_of_openai_goes_in_and_comes_out_equal(registry: ToolRegistry):
    form = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather somewhere.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
    registry.register("get_weather", form, lambda args, context: f"sunny in {args['city']}")
    assert registry.openai_tools() == [form]
    with Session(registry) as session:
        assert session.call_sync("get_weather", {"city": "Oslo"}).value == "sunny in Oslo"


@requirement("TOOL-68")
def test_10_a_session_is_used_in_sync_code(registry: ToolRegistry):
    @registry.tool(require_approval=False)
    async def double(number: int) -> int:
        """Double it."""
        return 2 * number

    with Session(registry) as session:
        assert session.call_sync("double", {"number": 21}).value == 42
        assert session.run_script_sync("PRINT(CALL double { number: 2 })").output == ["4"]


@requirement("TOOL-68")
async def test_11_a_plain_function_approves(registry: ToolRegistry, effects):
    """In a thread, so that it may wait for a person as it likes."""

    @registry.tool
    def pay(amount: float) -> None:
        """Send money."""
        effects.append(amount)

    def approver(card: lastword.ApprovalRequest) -> lastword.UserAction:
        assert threading.current_thread() is not threading.main_thread()
        return card.allow() if card.arguments["amount"] < 10 else card.deny("too much")

    async with Session(registry, approver=approver) as session:
        kinds = [(await session.call("pay", {"amount": amount})).kind for amount in (5, 50)]
    assert (kinds, effects) == (["succeeded", "denied"], [5])


@requirement("TOOL-71")
def test_12_a_tool_that_is_replaced_while_its_card_waits_is_asked_about_again(registry: ToolRegistry):
    @lastword.tool(id="work")
    def first() -> str:
        """Work."""
        return "first"

    @lastword.tool(id="work")
    def second() -> str:
        """Work."""
        return "second"

    def answer(card: lastword.ApprovalRequest) -> lastword.UserAction:
        if card.problem is None:
            registry.replace(second)
        return card.allow()

    registry.add(first)
    approver = FixedApprover([answer, ALLOWED])
    with Session(registry, approver=approver) as session:
        assert session.call_sync("work").value == "second"
    assert [card.problem for card in approver.requests] == [None, "the tool changed while the question waited"]


def test_only_public_names_were_needed():
    """Whatever an author needs and only an inner room has is missing in the package."""
    tree = ast.parse(Path(__file__).read_text())
    used = {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lastword")
        for alias in node.names
    }
    public = {f"lastword.{name}" for name in lastword.__all__}
    public |= {f"lastword.testing.{name}" for name in lastword.testing.__all__}
    assert used - public == {"lastword.testing.scripted.ScriptedModel"}  # The model that takes the place of a real one.
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _is_ours(node.value)}
    assert reached - set(lastword.__all__) - {"testing", "__all__"} == set()


def _is_ours(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "lastword"
