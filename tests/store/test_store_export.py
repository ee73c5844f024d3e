"""An export is proof on its own: whatever happens to the file, the first line that changed is named."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import entry

from lastword.errors import Tampered
from lastword.store.chain import GENESIS, Entry, Head, link
from lastword.store.contract import Store
from lastword.store.exports import export, read_line, verify_export, write_line
from lastword.store.memory import MemoryStore
from tries import tries


@pytest.fixture
async def lines():
    """Every kind of line: JSON, not JSON, pruned, with and without a key."""
    store = MemoryStore()
    await store.commit(
        entry(1),
        entry(2, data=b"\x00 not JSON", once="key"),
        entry(3, data=b"null"),
        entry(4, data='{"é":["✓",1.5,null]}'.encode(), stream="ä\n"),
        entry(5),
    )
    await store.forget([3, 5])
    return [line async for line in export(store)]


async def test_an_export_is_one_readable_line_a_record(store):
    """People search it with grep and programs read it line by line."""
    await store.commit(entry(1, once="key"), entry(2, data=b"null"), entry(3, data=b"\xff"))
    await store.forget([2])
    found = [line.decode() async for line in export(store)]
    assert [line.split(',"data_digest"')[0] for line in found] == [
        '{"seq":1,"at":1700000000000001,"stream":"session-1","kind":"asked","subject":"call-1","once":"key","data":{"number":1}',
        '{"seq":2,"at":1700000000000002,"stream":"session-2","kind":"answered","subject":"call-2","pruned":true',
        '{"seq":3,"at":1700000000000003,"stream":"session-0","kind":"finished","subject":"call-3","data_base64":"/w=="',
    ]
    assert [read_line(line.encode()) for line in found] == list(await store.read())


async def test_an_export_is_as_long_as_its_store(store):
    """Page by page, with nothing twice and nothing left out, and the head is the store's."""
    await store.commit(*(entry(number) for number in range(2 * Store.PAGE_RECORDS + 1)))
    exported = b"".join([line async for line in export(store)])
    head = await store.head()
    assert verify_export(io.BytesIO(exported)) == head
    assert verify_export(io.BytesIO(exported), head=head) == head
    assert verify_export(io.BytesIO(b"")) == Head(0, GENESIS)


def test_every_flipped_byte_is_found_on_its_line(lines):
    """Also one that would still be JSON, or another way to write the same record."""
    whole = b"".join(lines)
    ends = [sum(map(len, lines[: number + 1])) for number in range(len(lines))]
    for place in range(len(whole)):
        line = next(number for number, end in enumerate(ends, start=1) if place < end)
        for value in {whole[place] ^ 1, whole[place] ^ 0x20, whole[place] ^ 0x80, 0x20, 0x0A, 0x0D} - {whole[place]}:
            flipped = whole[:place] + bytes([value]) + whole[place + 1 :]
            with pytest.raises(Tampered) as caught:
                verify_export(io.BytesIO(flipped), name="copy.jsonl")
            assert caught.value.place == f"copy.jsonl:{line}", (place, value)
            assert f"record {line} " in caught.value.fact


def test_a_missing_moved_or_repeated_line_is_found(lines):
    """The numbers and the chain both say so."""
    for number in range(1, len(lines)):
        cases = {
            "missing": lines[: number - 1] + lines[number:],
            "repeated": [*lines[:number], lines[number - 1], *lines[number:]],
            "moved": [*lines[: number - 1], lines[number], lines[number - 1], *lines[number + 1 :]],
        }
        for name, changed in cases.items():
            with pytest.raises(Tampered) as caught:
                verify_export(changed)
            assert caught.value.place == f"export:{number + 1 if name == 'repeated' else number}"


def test_an_export_that_was_cut_off_is_found(lines):
    """In the middle of a line by itself, at the end of one by a head that was kept."""
    whole = b"".join(lines)
    head = verify_export(lines)
    ends = {sum(map(len, lines[:number])) for number in range(len(lines) + 1)}
    for end in range(len(whole)):
        if end in ends:
            verify_export(io.BytesIO(whole[:end]))
        with pytest.raises(Tampered, match=r"cut off|cannot be read"):
            verify_export(io.BytesIO(whole[:end]), head=head)
    with pytest.raises(Tampered, match="record 2 is not the one"):
        verify_export(lines, head=Head(2, "f" * 64))


@tries(15)
@given(
    st.builds(
        Entry,
        stream=st.text(),
        kind=st.text(),
        subject=st.text(),
        at=st.integers(-(2**63), 2**63 - 1),
        data=st.one_of(
            st.binary(), st.sampled_from([b"1", b" 1", b"1\n", b"[1,\r2]", b"NaN", b'"\\u00e9"', b"", b"[" * 5000])
        ),
        once=st.none() | st.text(),
    )
)
def test_a_line_is_its_record(said):
    """Whatever the data is, the very bytes come back."""
    record = link(GENESIS, 1, said)
    line = write_line(record)
    assert line.count(b"\n") == 1
    assert read_line(line) == record
