"""Values on a card as a person reads them: no two of them may read the same."""

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lastword import ApprovalRequest, Session, ToolRegistry
from lastword.card import Face, one_line
from lastword.card.text import MAX_LAID_OUT, in_one_line, literal, readable
from lastword.consent import Secrets
from lastword.testing import FixedApprover

ODD = (
    *("Ann", "two words", "a: b", "to:", "• x", "(nothing)", "(empty)", "x\n• b", "a: 1\n  b: 2", "", " x", "true"),
    *("12", "null", "[1]", '"q"', "it's", "'q'", "x\n", "\ny", "a,b", "a: 1\n• b", 'k: "x', "\\n", "x\\n\n  y"),
    *("\ufdd0", "x:y", "┊ x", "x\n\n y", " \n", "x\n┊"),
)
WORDS = st.sampled_from(ODD) | st.text(max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
VALUES = st.recursive(LEAVES, lambda v: st.lists(v, max_size=4) | st.dictionaries(WORDS, v, max_size=4), max_leaves=12)


class Reader:
    """Reads a value back from what a person would see of it."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")

    def value(self, is_whole=True):
        first = self.lines[0]
        if first.startswith("• "):
            return self._items()
        if self._is_named(first) and (not is_whole or all(self._is_named(x) or x[:2] == "  " for x in self.lines)):
            return self._names()
        return self._text(is_whole)

    @staticmethod
    def _is_named(line: str) -> bool:
        return re.match(r'([A-Za-z_][\w.-]{0,59}|"(\\.|[^"\\])*"):( |\Z)', line, re.ASCII) is not None

    def _items(self):
        found = []
        while self.lines:
            head, self.lines = self.lines[0], self.lines[1:]
            assert head.startswith("• "), head
            found.append(Reader("\n".join([head[2:], *self._deeper()])).value(False))
        return found

    def _names(self):
        found = {}
        while self.lines:
            head, self.lines = self.lines[0], self.lines[1:]
            end = json.JSONDecoder().raw_decode(head)[1] if head[0] == '"' else head.index(":")
            name = json.loads(head[:end]) if head[0] == '"' else head[:end]
            rest = head[end + 1 :]
            inner = self._deeper()
            found[name] = Reader("\n".join([rest[1:], *inner] if rest else inner)).value(bool(rest))
        return found

    def _deeper(self):
        found = []
        while self.lines and self.lines[0].startswith("  "):
            found.append(self.lines.pop(0)[2:])
        return found

    def _text(self, is_whole):
        if self.lines[0].startswith("┊"):
            assert all(line == "┊" or line.startswith("┊ ") for line in self.lines)
            return "\n".join(line[2:] for line in self.lines)
        text = "\n".join(self.lines)
        ours: dict[str, object] = {"(nothing)": None, "(an empty list)": [], "(empty)": {}}
        if text in ours:
            return ours[text]
        if text[:1] == '"':
            return json.loads(text.replace("\\n\n", "\\n"))
        try:
            return json.loads(text)
        except ValueError:
            assert is_whole or "\n" not in text
            return text


@given(VALUES)
@example({"a": {"b": [{"c": {"d": {"e": [1, "x\ny"]}}}]}})
@example([["x", ["y"]], {"a": "x\n• b"}])
@example("a: 1\n  b: 2")
@example({"a": ["b: c", {"b": "c"}]})
def test_every_value_can_be_told_from_every_other_by_what_is_read(value):
    """Whoever agrees to what they read agrees to this value alone: what is read leads back to it, and to no other."""
    back = Reader(readable(value)).value()
    assert json.dumps(back) == json.dumps(value)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (["Ann", "Bob"], "• Ann\n• Bob"),
        ({"to": "Ann", "copies": 2}, "to: Ann\ncopies: 2"),
        ([{"name": "Ann", "tags": ["a", "b"]}, {"name": "Bob", "tags": []}],
         "• name: Ann\n  tags:\n    • a\n    • b\n• name: Bob\n  tags: (an empty list)"),
        (None, "(nothing)"),
        ([], "(an empty list)"),
        ({"letter": "Dear Ann,\n\nyours"}, "letter:\n  ┊ Dear Ann,\n  ┊\n  ┊ yours"),
        ("Dear Ann,\nsee you: soon", "Dear Ann,\nsee you: soon"),
        (["two\nlines", "to: Bob"], '• ┊ two\n  ┊ lines\n• "to: Bob"'),
        (["a"] * MAX_LAID_OUT, literal(["a"] * MAX_LAID_OUT)),
    ],
)  # fmt: skip
def test_a_list_has_a_line_for_each_item_and_an_object_one_for_each_name(value, read):
    """Brackets, commas and quotes are a programmer's way of reading."""
    assert readable(value) == read


def test_a_row_has_the_items_with_commas_between_them():
    """There is one line for it, and the card has the rest."""
    assert one_line(in_one_line(["Ann", "Bob, too", {"a": [1, None]}])) == 'Ann, "Bob, too", (a (1, (nothing)))'


async def test_dots_without_quotes_are_a_secret_and_nothing_else():
    """A text of dots must not pass for a secret that a person is not shown."""
    registry = ToolRegistry()

    @registry.tool(secret=("pin",))
    def open_door(pin: str, note: str) -> str:
        return ""

    approver = FixedApprover(ApprovalRequest.deny)
    await Session(registry, approver=approver).call("open_door", {"pin": "1234", "note": Secrets.MASK})
    shown = {name: value.text for name, value in Face.of(approver.requests[0]).arguments}
    assert shown == {"pin": Secrets.MASK, "note": f'"{Secrets.MASK}"'}
