"""What somebody who writes tools may get wrong. Nothing here may pass unnoticed until a tool is called.

A line that ends with `checker` is an error for mypy and for pyright, and `python tests/check_types.py misuse` sees to
it; no other line is one. A line that ends with `refused` raises when its function runs: test_misuse.py sees to that.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lastword import (
    ApprovalRequest,
    Image,
    Outcome,
    Preset,
    Session,
    Text,
    ToolContext,
    ToolRegistry,
    ToolResult,
    UserAction,
    tool,
)

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"amount": {"type": "number"}}}


@dataclass
class Bank:
    balance: float


class Handle:
    def __init__(self, anything: Any) -> None: ...


def pay(api_key: str, amount: float) -> str:
    """Send money."""
    return f"{amount} {len(api_key)}"


def paying(args: dict[str, Any], context: ToolContext[Any]) -> str:
    return "paid"


def a_fact_that_is_misspelled(registry: ToolRegistry) -> None:
    registry.tool(requires_approval=True)(pay)  # checker, refused


def an_effect_that_is_misspelled(registry: ToolRegistry) -> None:
    registry.tool(effect="irreversibel")(pay)  # checker, refused


def a_time_limit_that_is_a_text(registry: ToolRegistry) -> None:
    registry.tool(timeout_seconds="5")(pay)  # checker, refused


def a_time_limit_of_nothing(registry: ToolRegistry) -> None:
    registry.tool(timeout_seconds=0)(pay)  # refused


def an_approval_that_was_never_set(registry: ToolRegistry) -> None:
    registry.tool(require_approval=None)(pay)  # checker, refused


def a_secret_that_is_no_parameter(registry: ToolRegistry) -> None:
    registry.tool(secret=("apikey",))(pay)  # refused


def a_secret_that_is_a_row_of_letters(registry: ToolRegistry) -> None:
    registry.tool(secret="api_key")(pay)  # refused


def a_content_parameter_that_is_no_parameter(registry: ToolRegistry) -> None:
    registry.tool(content_parameter="text")(pay)  # refused


def a_request_that_is_no_function(registry: ToolRegistry) -> None:
    registry.tool(request="Pay?")(pay)  # checker, refused


def a_request_for_what_nobody_is_asked_about(registry: ToolRegistry) -> None:
    registry.tool(require_approval=False, request=lambda amount: {})(pay)  # refused


def a_request_with_an_argument_that_is_not_there(registry: ToolRegistry) -> None:
    registry.tool(request=lambda sum: {})(pay)  # refused


def a_rule_with_an_argument_that_is_not_there(registry: ToolRegistry) -> None:
    registry.tool(require_approval=lambda sum: sum > 100)(pay)  # refused


def a_fact_beside_a_schema_that_is_misspelled(registry: ToolRegistry) -> None:
    registry.register("pay", SCHEMA, paying, idempotnet=True)  # checker, refused


def an_implementation_that_is_none(registry: ToolRegistry) -> None:
    registry.register("pay", SCHEMA, "paying")  # checker, refused


def a_schema_that_is_none(registry: ToolRegistry) -> None:
    registry.register("pay", {"type": "objct"}, paying)  # refused


def a_generator(registry: ToolRegistry) -> None:
    def pieces() -> Iterator[int]:
        yield 1

    registry.add(pieces)  # refused


def a_function_without_a_name(registry: ToolRegistry) -> None:
    registry.add(functools.partial(pay, "key"))  # refused


def a_type_without_a_schema(registry: ToolRegistry) -> None:
    def use(handle: Handle) -> None: ...

    registry.add(use)  # refused


def an_argument_without_a_name(registry: ToolRegistry) -> None:
    def use(*amounts: float) -> None: ...

    registry.add(use)  # refused


def two_tools_of_one_name(registry: ToolRegistry) -> None:
    registry.register("pay", SCHEMA, paying)
    registry.add(pay)  # refused


def a_tool_that_is_called_like_a_keyword(registry: ToolRegistry) -> None:
    registry.register("CALL", SCHEMA, paying)  # refused


def an_approver_that_nods(registry: ToolRegistry) -> None:
    Session(registry, approver=lambda card: True)  # checker


def an_approver_that_takes_nothing(registry: ToolRegistry) -> None:
    Session(registry, approver=lambda: UserAction(True, False))  # checker


def a_word_that_no_session_knows(registry: ToolRegistry) -> None:
    Session(registry, aprover=None)  # checker, refused


def an_answer_in_words(card: ApprovalRequest) -> None:
    UserAction("yes", False)  # checker, refused


def an_answer_that_is_both() -> None:
    UserAction(True, True)  # refused


def a_key_that_is_a_text() -> None:
    Preset(auto_approve="false")  # checker, refused


def an_image_of_a_number() -> None:
    Image(3)  # checker, refused


def a_text_of_bytes() -> None:
    Text(b"words")  # checker, refused


def a_decision_that_is_misspelled(session: Session) -> None:
    session.resolve("one", "agian")  # checker


def arguments_without_names(session: Session) -> None:
    session.call_sync("pay", [5])  # checker


def an_outcome_that_is_misspelled(outcome: Outcome) -> None:
    print(outcome.succes)  # checker


@tool
def what_the_host_did_not_give(context: ToolContext[Bank]) -> float:
    """Look."""
    return context.deps.balanse  # checker


async def a_question_without_a_form(context: ToolContext[Bank]) -> None:
    await context.ask("Where to?")  # checker


def a_result_with_a_stranger_in_it() -> ToolResult:
    return ToolResult(1, [3])  # checker
