"""Canonical JSON: one value, one string of bytes; and everything that is refused."""

import json
import math
import sys
import threading
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lastword import values
from lastword.errors import NotJSON
from requirements import requirement

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**60, max_value=2**200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
)
json_values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=5)
    ),
    max_leaves=12,
)
SETTINGS = settings(deadline=None, max_examples=100)


def shuffled(value, random):
    """The same value with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = list(value)
        random.shuffle(keys)
        return {key: shuffled(value[key], random) for key in keys}
    return [shuffled(item, random) for item in value] if isinstance(value, list) else value


@requirement("VAL-1")
@SETTINGS
@given(json_values)
def test_the_bytes_decode_to_an_equal_value_and_encode_to_the_same_bytes(value):
    """Otherwise a digest over them would not say what was seen and what will run."""
    data = values.canonical(value)
    again = values.decode(data)
    assert values.equal(again, value)
    assert values.canonical(again) == data


hardly_json = scalars | st.floats() | st.text(max_size=3) | st.binary(max_size=2) | st.tuples(st.integers())


def found(reduce, value):
    """A plain value and its bytes, to the type of every number; or why there are none."""
    try:
        return repr(reduce(value))
    except NotJSON as problem:
        return str(problem)


def the_long_way(value):
    plain = values.plain(value)
    return plain, values.encode(plain)


@requirement("VAL-1")
@SETTINGS
@given(json_values | st.dictionaries(st.text(max_size=3) | st.integers() | st.none(), hardly_json, max_size=4))
@example({"whole": 2.0, "broken": 2.5})
@example({"none": math.nan})
def test_one_look_at_a_simple_record_gives_what_the_walk_does(value):
    """The same copy, the same bytes, and the same words where it is no JSON."""
    assert found(values.reduce, value) == found(the_long_way, value)


def test_a_reduced_record_is_a_copy():
    """Whoever keeps the original and changes it later changes nothing that was sealed."""
    given = {"a": 1}
    plain, _ = values.reduce(given)
    given["a"] = 2
    assert plain == {"a": 1}


def test_one_string_many_times_over_is_refused_before_it_is_written_out():
    """A thousand fields may share one text; their bytes together would not fit the memory."""
    text = "x" * (values.MAX_SIZE // 100)
    with pytest.raises(NotJSON, match="larger than"):
        values.reduce(dict.fromkeys(map(str, range(1000)), text))


@requirement("VAL-1")
@SETTINGS
@given(json_values, st.randoms(use_true_random=False))
def test_the_order_of_keys_makes_no_difference(value, random):
    """Two equal values have the same bytes."""
    assert values.canonical(shuffled(value, random)) == values.canonical(value)


@requirement("VAL-1")
@SETTINGS
@given(json_values)
def test_the_bytes_are_json_that_others_read_too(value):
    """Another implementation of JSON reads the same value, with integers exact."""
    assert values.equal(json.loads(values.canonical(value)), values.plain(value))


@requirement("VAL-1")
@SETTINGS
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.none()))
def test_keys_are_sorted_by_code_point(value):
    """Not by UTF-16, which sorts an emoji before the last letters of the basic plane."""
    assert list(values.decode(values.canonical(value))) == sorted(value)
    assert values.canonical({"\U0001f600": 1, "\uffff": 2}).startswith(b'{"\xef\xbf\xbf"')


@requirement("VAL-1")
@SETTINGS
@given(st.integers(min_value=-(2**53), max_value=2**53))
def test_whole_floats_are_integers_up_to_2_53(number):
    """5.0 and 5 are the same argument."""
    assert values.canonical(float(number)) == values.canonical(number) == str(number).encode()


@requirement("VAL-1")
@pytest.mark.parametrize(
    ("value", "data"),
    [
        (-0.0, b"0"),
        ([-0.0, 0], b"[0,0]"),
        (2.0**53, b"9007199254740992"),
        (2.0**53 * 2, b"1.8014398509481984e16"),
        (2**53 * 2, b"18014398509481984"),
        (2**70, b"1180591620717411303424"),
        (-(2**63) - 1, b"-9223372036854775809"),
        (1e300, b"1e300"),
        (0.1, b"0.1"),
        (True, b"true"),
        (None, b"null"),
        ("é\n\u2028", '"é\\n\u2028"'.encode()),
        ({"b": [1, {"d": 2, "c": 3}], "a": None}, b'{"a":null,"b":[1,{"c":3,"d":2}]}'),
    ],
)
def test_the_bytes_of_some_values(value, data):
    """Written down, so that a change of encoder that changes them is seen: old seals would not hold any more."""
    assert values.canonical(value) == data


class Text(str):
    pass


class Number(int):
    pass


class Object(dict):
    pass


@requirement("VAL-1")
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside"])
@pytest.mark.parametrize(
    "value",
    [
        math.nan, math.inf, -math.inf, (1,), {1}, frozenset(), b"x", bytearray(), 1j, object(), len, Text("a"),
        Number(1), Object(), {1: 2}, {None: 1}, {True: 1}, {Text("a"): 1}, {"a": {2: 1}}, range(3), "\ud800",
        "a\udfffb", {"\ud800": 1},
    ],
)  # fmt: skip
def test_what_json_cannot_hold_is_refused(value, inside):
    """In words, also deep inside; never by a guess at what was meant."""
    with pytest.raises(NotJSON) as refusal:
        values.canonical({"a": [value]} if inside else value)
    assert refusal.value.fact


@requirement("VAL-1")
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside"])
def test_an_integer_too_long_to_write_is_refused(inside):
    """Python itself refuses to write more than 4300 digits; that must not escape as another error."""
    with pytest.raises(NotJSON, match="digits"):
        values.canonical([10**5000] if inside else -(10**5000))
    assert values.canonical(10**4000) == b"1" + b"0" * 4000


@requirement("VAL-1")
def test_a_value_that_contains_itself_meets_the_limit_of_depth():
    """It has no end, and the visitor has no stack to exhaust."""
    endless: list = []
    endless.append(endless)
    with pytest.raises(NotJSON, match=f"nested deeper than {values.MAX_DEPTH} levels"):
        values.canonical(endless)
    ring: dict = {}
    ring["a"] = {"b": ring}
    with pytest.raises(NotJSON, match="nested deeper"):
        values.canonical(ring)


@requirement("VAL-1")
def test_a_value_that_doubles_at_every_level_meets_the_limit_of_size():
    """Small in memory, astronomically large when written down."""
    bomb: list = ["x" * 1000]
    for _ in range(60):
        bomb = [bomb, bomb]
    with pytest.raises(NotJSON, match="larger than"):
        values.canonical(bomb)


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels - 1):
        value = [value]
    return value


@requirement("VAL-1")
def test_the_limits_are_where_they_say():
    """At the limit it passes, one beyond it does not; whatever the interpreter's own limit of recursion."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(150)
    try:
        assert values.canonical(nested(100))
    finally:
        sys.setrecursionlimit(limit)
    assert values.canonical(nested(values.MAX_DEPTH))
    with pytest.raises(NotJSON, match="nested deeper"):
        values.canonical(nested(values.MAX_DEPTH + 1))
    with pytest.raises(NotJSON, match="nested deeper"):
        values.plain(nested(4), max_depth=3)
    assert values.plain(["abc"], max_size=5) == ["abc"]
    with pytest.raises(NotJSON, match="larger than 4"):
        values.plain(["abc"], max_size=4)
    with pytest.raises(NotJSON, match="larger than"):
        values.canonical("x" * (values.MAX_SIZE + 1))


@requirement("VAL-1", "TOOL-31")
def test_a_plain_copy_shares_nothing_that_can_change():
    """Whoever keeps the original cannot reach the copy."""
    inner = {"b": [1]}
    original = {"a": inner, "again": inner}
    copy = values.plain(original)
    inner["b"].append(2)
    assert copy == {"a": {"b": [1]}, "again": {"b": [1]}}
    assert copy["a"] is not copy["again"]


@requirement("VAL-1")
@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ('{"a": 1, "a": 2}', 'the key "a" appears twice in one object'),
        ('[{"a": {"b": 1, "b": 1}}]', 'the key "b" appears twice'),
        ("NaN", "NaN is not a JSON number"),
        ("[Infinity]", "Infinity is not a JSON number"),
        ("1e999", "is not a JSON number"),
        ('"\\ud800"', "lone surrogate U+D800"),
        (b"\xff", "not UTF-8 at byte 0"),
        ("", "not JSON"),
        ("[1,]", "not JSON"),
        ("{'a': 1}", "not JSON"),
        ("[" * 100_000, "nested deeper than"),
        ("1" * 5000, "not JSON"),
        ("\ufeff{}", "not JSON"),
    ],
)
def test_json_from_outside_is_read_strictly(text, fact):
    """What two readers could understand differently is refused by this one."""
    with pytest.raises(NotJSON) as refusal:
        values.parse(text)
    assert fact in refusal.value.fact


@requirement("VAL-1")
@SETTINGS
@given(json_values)
def test_json_from_outside_is_read_as_it_was_written(value):
    """parse is the inverse of canonical."""
    assert values.equal(values.parse(values.canonical(value)), value)


@requirement("VAL-1")
@SETTINGS
@given(json_values, json_values)
def test_equal_values_and_only_they_have_equal_bytes(left, right):
    """Within the range in which a float is an exact integer; beyond it an integer keeps every digit."""
    if values.canonical(left) == values.canonical(right):
        assert values.equal(left, right)
    assert values.equal(left, values.plain(left))
    assert not values.equal(True, 1)
    assert not values.equal([0], [False])
    assert values.equal({"a": 1, "b": 2.0}, {"b": 2, "a": 1})


def test_a_digest_is_of_the_bytes():
    """SHA-256, in hexadecimal."""
    assert values.digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@requirement("VAL-1")
def test_a_value_that_changes_while_it_is_read_is_read_or_refused():
    """A caller's other thread works on what it passed. Either the value is one that was, or the error says so."""
    value: dict[str, Any] = {"a": 1, "inner": {"b": 2}}
    ended = threading.Event()
    refused: set[str] = set()

    def change():
        number = 0
        while not ended.is_set():
            number += 1
            for place in (value, value["inner"]):
                place[f"k{number % 50}"] = number
                place.pop(f"k{(number + 25) % 50}", None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    changing = threading.Thread(target=change, daemon=True)
    changing.start()
    try:
        for _ in range(3000):
            try:
                found, data = values.reduce(value)
            except NotJSON as problem:
                refused.add(problem.fact)
            else:
                assert values.decode(data) == found
    finally:
        ended.set()
        changing.join()
        sys.setswitchinterval(interval)
    assert refused <= {"the value was changed while it was read"}
