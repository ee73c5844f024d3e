"""What a person reads before they grant something, against what is written down then: no two grants read alike."""

from decimal import Decimal
from pathlib import Path
from typing import Any

from granted_house import paying
from hypothesis import assume, given
from hypothesis import strategies as st

from lastword import values
from lastword.consent import Answerer, GrantTerms
from lastword.rules import GrantChoice, Grants, SeenStep
from lastword.rules.grant_step import summary
from lastword.rules.terms import bounds_of
from lastword.rules.value import amount_words
from requirements import requirement

# Texts that look like others, like our own words, or like the marks of what cannot be seen.
PIECES = (
    "", "a", "e\u0301", "\u00e9", "1", "1.0", "true", "null", "[]", '["a"]', "empty", "left out", "”", "“", "‹U+201D›",
    "⏎", "\n", ", amount at most 5", "; in this session", " ", "\u00a0", "\u200b", "\u202e", "\t", "\\n", "\x00",
    "\ue000", "…", "\u0430",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES), max_size=3).map("".join) | st.text(max_size=10)
numbers = (
    st.integers(0, 2**53)
    | st.floats(0, 1e300, allow_nan=False)
    | st.sampled_from([0, 0.1, 1, 1.0, 1e16, 10**16, 5e-324, 1e300, -0.0])
)
plain = texts | numbers | st.booleans() | st.none()
leaves = plain | st.lists(plain, max_size=2) | st.dictionaries(texts, plain, max_size=2)
bounds = leaves.map(lambda value: {"is": value}) | numbers.map(lambda most: {"min": 0, "max": most})
sums = st.decimals(0, 10**12, places=3) | st.decimals(0, 1, places=25) | st.sampled_from(["1e3", "1000", "1_000", "１"])


@st.composite
def terms(draw: st.DrawFn) -> GrantTerms:
    where: dict[str, Any] = {name: draw(bounds) for name in ("to", "amount")} | {
        "note": draw(bounds | st.just({"absent": True}))
    }
    return GrantTerms(
        where=where,
        scope=draw(st.sampled_from(["run", "session"])),
        calls=draw(st.none() | st.integers(1, 20)),
        sums={name: str(draw(sums)) for name in draw(st.sets(st.sampled_from(["amount", "to"]), max_size=2))},
        id="",
    )


class _Card:
    tool = "pay"


def meaning(given: GrantTerms) -> Any:
    """What a grant comes to, whatever way it is written."""
    where = {name: _told_apart(bound) for name, bound in given.where.items()}
    return where, given.scope, given.calls, {name: Decimal(most) for name, most in given.sums.items()}


def _told_apart(value: Any) -> Any:
    """A value as JSON tells it from others: 1.0 is 1, and true is neither."""
    if isinstance(value, dict):
        return {name: _told_apart(each) for name, each in value.items()}
    return [_told_apart(each) for each in value] if isinstance(value, list) else (isinstance(value, bool), value)


def is_short(given: GrantTerms) -> bool:
    """Whether every value is said whole. Of a longer one the sentence has the beginning, and the card has all of it."""
    return all(len(values.encode(values.plain(bound))) < 60 for bound in given.where.values())


@requirement("GRANT-1")
@given(one=terms(), other=terms())
def test_no_two_grants_read_alike(one: GrantTerms, other: GrantTerms):
    """Another value, another bound, another limit: whoever reads the sentence can tell."""
    assume(is_short(one) and is_short(other))
    said = [summary(_Card(), each) for each in (one, other)]  # type: ignore[arg-type]
    assert said[0] != said[1] or meaning(one) == meaning(other), said[0]


@requirement("GRANT-1")
def test_no_two_values_read_alike():
    """Each piece beside each other one, alone, in a list, as two elements and as a name with a value."""
    pairs = [(one, other) for one in PIECES for other in PIECES]
    made = [each for one, other in pairs for each in ([one + other], [one, other], {one: other})]
    plain: list[Any] = [
        *{one + other for one, other in pairs},
        True,
        False,
        None,
        0,
        1,
        1.5,
        [],
        {},
        [0],
        [True],
        [None],
    ]
    read: dict[str, Any] = {}
    for value in [*plain, *made]:
        words = bounds_of({"to": {"is": value}}).words()
        assert len(words) > 60 or read.setdefault(words, value) == value, words


@requirement("GRANT-4")
@given(st.decimals(0, allow_nan=False, allow_infinity=False).filter(lambda d: abs(d.adjusted()) < 300))
def test_a_sum_is_said_to_its_last_digit(amount: Decimal):
    """A total of many small amounts has more digits than a pocket calculator."""
    assert Decimal(amount_words(amount)) == amount


@requirement("GRANT-1", "GRANT-3")
async def test_the_record_of_a_grant_says_what_its_step_said():
    """The terms that the sentence was made of are those that stand in the journal."""
    choices = [
        GrantChoice(),
        GrantChoice(loosened={"amount": 1}, calls=None, sums={"amount": " 7.50 "}),
        GrantChoice(loosened={"amount": 0}, calls=1, sums={"amount": "１e2"}),
    ]
    async with paying() as payer:
        for choice in choices:
            task = payer.ask(12.5, note="tea")
            card = await payer.card(task)
            seen = await SeenStep.of(card, choice, Path("/"), [card], payer.session.journal)
            assert seen.terms is not None
            payer.session.answer(card.call_id, card.allow_with(seen.terms))
            assert (await task).success
            [grant] = await Grants(payer.session.journal).standing()
            written = GrantTerms(where=grant.where, scope=grant.scope, calls=grant.calls, sums=grant.sums)
            assert summary(card, written) == seen.step.sentence
            assert meaning(written) == meaning(seen.terms)
            assert await Grants(payer.session.journal).revoke(grant.id, Answerer.person("me"))
