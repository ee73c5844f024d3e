"""The instructions for models: the same every time, complete, and short."""

from lastword.script import Signature, SignatureParameter, script_prompt
from lastword.script.builtins import BUILTINS
from lastword.script.prompt import CHARACTERS_PER_TOKEN, MAX_STATE, TOKEN_BUDGET
from requirements import requirement
from script.hosts import SIGNATURES
from script.snapshots import matches_snapshot


def many(count: int, description: str = "Does one of many things, described at some length.") -> dict[str, Signature]:
    parameters = tuple(
        SignatureParameter(f"argument_{n}", "string", "What this argument is good for.") for n in range(4)
    )
    return {f"tool_{n}": Signature(f"tool_{n}", description, parameters) for n in range(count)}


@requirement("NUWA-70")
def test_the_prompt_reads_as_it_did() -> None:
    """Models are sensitive to every word; a change should be seen by somebody."""
    assert matches_snapshot("prompt.txt", script_prompt(SIGNATURES, "cart: 3 items", "Prefer few calls."))


@requirement("NUWA-70")
def test_the_prompt_names_every_function_and_tool_and_is_the_same_every_time() -> None:
    """What is not in the prompt will not be used; what changes between calls defeats caches."""
    text = script_prompt(SIGNATURES)
    assert all(name in text for name in (*BUILTINS, *SIGNATURES))
    assert text == script_prompt(dict(SIGNATURES))
    assert "State" not in text


@requirement("NUWA-70")
def test_the_prompt_keeps_to_its_budget_and_says_what_it_left_out() -> None:
    """A hundred tools must leave room for a conversation. Detail goes first, tools last."""
    budget = TOKEN_BUDGET * CHARACTERS_PER_TOKEN
    few, more, crowd = (script_prompt(many(count), "x" * 9_000, "y" * 9_000) for count in (2, 25, 2_000))
    assert "  argument_1: What this" in few
    assert "argument_1: What this" not in more
    assert "tool_24" in more
    assert "more that this text has no room for" in crowd
    for text in (few, more, crowd):
        assert len(text) <= budget + 100
        assert f"{9_000 - MAX_STATE} characters left out" in text


def test_without_tools_the_prompt_says_so() -> None:
    """A model that is told of CALL and of no tool invents one."""
    assert "There are no tools." in script_prompt({})
