"""Who answered, as a value: how it is named, written down and read back."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastword import Answerer, ApprovalRequest, LastWordError, UserAction
from lastword.display import displayable
from lastword.terminal.approver import TerminalApprover
from lastword.testing import FixedApprover
from requirements import requirement
from tries import tries

# Without halves of characters, which no journal can hold: they are replaced when an answerer is made.
names = st.text(max_size=50).map(displayable)
people = st.builds(Answerer.person, names, st.sampled_from(["terminal", "page", "command", "program"]))
others = st.builds(Answerer, st.sampled_from(["preset", "waiver", "line", "rule", "grant", "client"]), names)


@requirement("TOOL-59")
@tries()
@given(people | others)
def test_whoever_answered_is_read_back_as_they_were_written(answerer: Answerer):
    """The record is data. No name can turn one kind into another."""
    assert Answerer.read(msgspec.json.decode(msgspec.json.encode(answerer))) == answerer


@requirement("TOOL-59")
@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("preset careful", Answerer("preset", "careful")),
        ("preset ", Answerer("preset", "")),
        ("ada", Answerer.person("ada")),
        ("Preset careful", Answerer.person("Preset careful")),
        ("the page", Answerer.person("the page")),
        ("", Answerer.person("")),
    ],
)
def test_a_record_of_an_earlier_version_is_read_on_the_safe_side(written: str, read: Answerer):
    """It told a preset by the beginning of a name. Whoever began so was taken for one, and is."""
    assert Answerer.read(written) == read


@requirement("TOOL-59")
@pytest.mark.parametrize(
    "written",
    [None, 3, [], {}, {"name": "ada"}, {"kind": "oracle", "name": "ada"}, {"kind": "person", "where": "moon"}],
)
def test_an_answerer_that_is_not_understood_is_nobody(written: Any):
    """A later version may know more kinds. This one goes by none of them."""
    assert Answerer.read(written).kind == "unknown"


@requirement("TOOL-59")
@pytest.mark.parametrize(
    ("answerer", "words"),
    [
        (Answerer.person(where="page"), "the page"),
        (Answerer.person("ada", "page"), "ada on the page"),
        (Answerer.person(where="terminal"), "the terminal"),
        (Answerer.person("ada", "terminal"), "ada at the terminal"),
        (Answerer.person(where="command"), "a person at the command line"),
        (Answerer.person("ada", "command"), "ada at the command line"),
        (Answerer.person("careful"), "careful"),
        (Answerer.person(), "a program"),
        (Answerer("person"), "a person"),
        (Answerer("preset", "default"), "the preset default"),
        (Answerer("waiver"), "the tool's own rule"),
        (Answerer("line", "3"), "a line of the plan 3"),
        (Answerer("rule", "no-money"), "the rule no-money"),
        (Answerer("grant", "g1"), "the grant g1"),
        (Answerer("client", "an editor"), "the dialogue of an editor"),
        (Answerer("unknown"), "something that this version does not know"),
    ],
)
def test_whoever_answered_has_words(answerer: Answerer, words: str):
    """`Allowed by` goes before them, in the timeline, on the page and in the terminal."""
    assert str(answerer) == words


@requirement("TOOL-59")
def test_an_approver_is_a_person_with_a_name_and_a_place():
    """A name they chose, their function's, or their type's; in a terminal it is the place that counts."""

    async def ann(request: ApprovalRequest) -> UserAction:
        return request.allow()

    class Window:
        where = "the moon"

        async def __call__(self, request: ApprovalRequest) -> UserAction:
            return request.allow()

    assert [Answerer.of(who) for who in (ann, Window(), FixedApprover(), TerminalApprover())] == [
        Answerer.person("ann"),
        Answerer.person("Window"),
        Answerer.person("fixed approver"),
        Answerer.person(where="terminal"),
    ]


@requirement("TOOL-59")
def test_a_text_is_a_name_and_a_value_is_kept():
    """Programs may go on saying who answered in words. What the words are decides nothing."""
    assert Answerer.named("preset bold") == Answerer.person("preset bold")
    assert Answerer.named(Answerer("rule", "r")) == Answerer("rule", "r")
    assert len(Answerer.named("x" * 1000).name) == 200
    with pytest.raises(LastWordError, match="a name is text, not a int"):
        Answerer.named(3)  # type: ignore[arg-type]
