"""The grammar: real GBNF, that admits only scripts that parse and name only what exists."""

from functools import cache
from random import Random

import pytest
from gbnf import GBNF, InputParseError, RuleEnd

from lastword.script import check, script_grammar
from requirements import requirement
from script.derive import Grammar
from script.hosts import SIGNATURES
from script.test_plan import EXAMPLES
from script.test_scripts import SCRIPTS
from tries import often

GRAMMAR = script_grammar(SIGNATURES)
# Enough that every tool and every new word is met; and that every rule is met in every place where it can stand.
DERIVATIONS = [700, pytest.param(3_000, marks=pytest.mark.long)]
NEW_WORDS = ("TRY", "ELSEIF", "BREAK", "STOP", "PUT(", "GET(", "SLICE(", "PARSE_JSON(")

# What no grammar can see: whether a name has a value, what kind it is, or how often a key stands in an object.
BEYOND_A_GRAMMAR = {
    "a_call_in_the_half_that_may_be_skipped_is_warned_of",
    "a_condition_that_is_no_boolean_is_found",
    "a_formula_with_an_unknown_name_is_found",
    "a_key_given_twice_is_found",
    "a_key_that_an_object_cannot_have_is_found",
    "a_let_in_a_loop_that_was_meant_to_accumulate_is_warned_of",
    "a_let_in_a_loop_whose_outer_name_is_read_afterwards_is_warned_of",
    "a_literal_of_the_wrong_type_is_pointed_at",
    "a_loop_over_an_object_is_told_to_use_keys",
    "a_member_of_a_number_is_found",
    "a_negative_index_is_found",
    "a_variable_of_the_wrong_type_is_pointed_at",
    "a_variable_set_in_one_branch_only_is_warned_of",
    "an_undefined_variable_gets_the_nearest_name",
    "division_by_a_literal_zero_is_found",
    "each_operand_of_and_is_blamed_at_its_own_operator",
    "elseif_needs_a_condition_that_is_a_boolean",
    "format_with_a_missing_key_is_found",
    "set_without_a_variable_is_an_error",
    "the_shape_of_a_try_call_is_known",
}


begun = cache(GBNF)
"""A GBNF interpreter that is not ours, before the first character of a text."""


def admits(text: str, grammar: str = GRAMMAR) -> bool:
    """Whether it takes the whole text."""
    try:
        return any(isinstance(rule, RuleEnd) for rule in begun(grammar) + text)
    except InputParseError:
        return False


@requirement("NUWA-71")
@pytest.mark.parametrize("count", DERIVATIONS)
def test_whatever_the_grammar_admits_parses_and_names_only_what_exists(count: int) -> None:
    """A model that follows the grammar cannot write a text that is no script, or call what is not there."""
    grammar = Grammar(GRAMMAR)
    tools = set()
    words = set()
    for seed in range(count):
        text = grammar.derive(Random(seed), 200)
        for finding in check(text, SIGNATURES):
            # The one thing that no such grammar can see.
            assert finding.phase == "check" or type(finding).__name__ == "DuplicateKey", f"{text}\n{finding}"
            assert type(finding).__name__ not in ("ToolNotFound", "UnknownFunction", "WrongArity"), f"{text}\n{finding}"
            if type(finding).__name__ == "ToolArgument":
                assert ", not " in finding.fact, f"{text}\n{finding}"
        tools |= {name for name in SIGNATURES if f"CALL {name}" in text}
        words |= {word for word in NEW_WORDS if word in text}
    assert tools == set(SIGNATURES)
    assert words == set(NEW_WORDS)


@requirement("NUWA-71")
def test_white_space_in_a_script_comes_to_an_end() -> None:
    """A small model that may write one more blank writes blanks until it is cut off, and no script comes of it."""
    assert Grammar(GRAMMAR).endless_blanks() == []
    for endless in ("CALL is_ready {" + " " * 200, "LET x = 1" + "\n" * 200, "//\n" * 200, "// note" + " " * 200):
        with pytest.raises(InputParseError):
            begun(GRAMMAR) + endless
    # What people write stays: a list over several lines, indented, with a blank line and notes between the statements.
    assert admits("// First.\n// Then.\nFOR x IN [\n  1,\n  2\n] DO\n\n    PRINT(x)   // Shown.\nEND\n")


@requirement("NUWA-71")
def test_derived_scripts_and_examples_are_admitted_by_an_interpreter_that_is_not_ours() -> None:
    """The grammar is what llama.cpp reads, and not only what we think it is."""
    grammar = Grammar(GRAMMAR)
    for seed in range(often(6)):
        text = grammar.derive(Random(seed), 60)
        assert admits(text), text
    for text in EXAMPLES.values():
        assert admits(text), text


@requirement("NUWA-71")
@pytest.mark.parametrize("claim", [claim for claim in SCRIPTS if "expect error" in SCRIPTS[claim]])
def test_the_mistakes_of_models_are_refused_where_a_grammar_can_see_them(claim: str) -> None:
    """What the checker would have to find later, the grammar never lets happen."""
    code = "\n".join(line.partition("   //")[0] for line in SCRIPTS[claim].splitlines() if not line.startswith("//"))
    assert admits(code.strip()) is (claim in BEYOND_A_GRAMMAR), code


def test_without_tools_no_call_is_admitted() -> None:
    """A grammar with a rule that no text can satisfy would not load."""
    grammar = script_grammar({})
    assert admits("PRINT(1)", grammar)
    assert not admits("CALL echo {}", grammar)


@pytest.mark.parametrize("name", ["LET x = THEN", "LET IF = 1", "LET true = 1", "FOR END IN [1] DO\nEND"])
def test_a_keyword_is_no_name(name: str) -> None:
    """GBNF cannot say "but not", so the rule for names spells it out; names that only begin like keywords stay."""
    assert not admits(name)
    assert admits("LET ENDING = LETTER\nLET truth = nul\nLET D = E")
