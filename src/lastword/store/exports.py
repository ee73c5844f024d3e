"""A whole store elsewhere: exported as text, or copied into another store. Both are proven.

An export has one JSON object a line, which holds a whole record: to be kept, searched and proven elsewhere. Nothing is
imported from it. `data` is embedded as it is, so a reader sees JSON and a verifier sees the very bytes. Data that is
not JSON is in `data_base64`, and of pruned data only `"pruned":true` is left. There is exactly one way to write a
record, so a verifier writes each line again and compares: no byte can change unseen.

A copy takes the records from a file to a server, or back, as they are: the chain ends in the same digest, and a head
that somebody kept of the one is a head of the other. What was forgotten stays forgotten.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from lastword.store.chain import GENESIS, Head, Record, StoreError, Tampered, verify
from lastword.store.group_commit import DurableStore
from lastword.store.ledger import Adopted

if TYPE_CHECKING:
    from lastword.store.contract import Store

_INVESTIGATE = "compare it with the journal, or with another copy of the export"


class Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The wire form of a record, in the order in which a person wants to read it."""

    seq: int
    at: int
    stream: str
    kind: str
    subject: str
    once: str | None = None
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data_base64: str | None = None
    pruned: bool = False
    data_digest: str = ""
    digest: str = ""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Line)
_any = msgspec.json.Decoder()


async def export(store: Store) -> AsyncIterator[bytes]:
    """Every record as a line, oldest first, including what is written while this runs."""
    after = 0
    while page := await store.read(after=after, limit=store.PAGE_RECORDS):
        for record in page:
            yield write_line(record)
        after = page[-1].seq


def verify_export(lines: Iterable[bytes], *, name: str = "export", head: Head | None = None) -> Head:
    """Prove an export, for example an open binary file, line by line; raise Tampered at the first that does not fit."""
    last = Head(0, GENESIS)
    number = 0
    for number, line in enumerate(lines, start=1):
        place = f"{name}:{number}"
        try:
            record = read_line(line)
            last = verify((record,), start=last, head=head if head is not None and head.seq == record.seq else None)
        except Tampered as problem:
            raise Tampered(problem.fact, place=place, hint=problem.hint or _INVESTIGATE) from None
        except (ValueError, RecursionError) as problem:
            raise Tampered(f"record {last.seq + 1} cannot be read: {problem}", place=place, hint=_INVESTIGATE) from None
    try:
        return verify((), start=last, head=head)
    except Tampered as problem:
        raise Tampered(problem.fact, place=f"{name}:{number}", hint=problem.hint) from None


def write_line(record: Record) -> bytes:
    """The one line that stands for this record."""
    said = msgspec.structs.asdict(record)
    data = said.pop("data")
    if data is None:
        said["pruned"] = True
    elif _is_one_line_of_json(data):
        said["data"] = msgspec.Raw(data)
    else:
        said["data_base64"] = b64encode(data).decode()
    return _encoder.encode(Line(**said)) + b"\n"


def read_line(line: bytes) -> Record:
    """The record on a line; ValueError when it is not exactly what `write_line` writes."""
    found = _decoder.decode(line)
    data: bytes | None = None
    if isinstance(found.data, msgspec.Raw):
        data = bytes(found.data)
    elif found.data_base64 is not None:
        data = b64decode(found.data_base64, validate=True)
    copied = {field: getattr(found, field) for field in Record.__struct_fields__ if field != "data"}
    record = Record(**copied, data=data)
    if write_line(record) != line:
        raise ValueError("it is not written as an export writes it")
    return record


def _is_one_line_of_json(data: bytes) -> bool:
    # Space around the value would be lost when the line is read, and a line break would end the line.
    if data != data.strip() or b"\n" in data or b"\r" in data:
        return False
    try:
        _any.decode(data)
    except (ValueError, RecursionError):
        return False
    return True


# Records that hold contents may be large: a page of them is cut into groups of about this size.
GROUP_BYTES = 16 * 2**20


async def copy_store(source: Store, target: Store, told: Callable[[int], None] | None = None) -> Head:
    """Copy all of a store into an empty one, or go on where a copy was interrupted. Where both then end.

    Raises Tampered when the source does not hold, or the copy is not the same; StoreError when the target is another
    store, or somebody writes into either of them meanwhile.
    """
    assert isinstance(source, DurableStore), "what is in memory stays there"
    assert isinstance(target, DurableStore), "what is in memory goes with it"
    await source.verify()
    last = await target.head()
    if not await source.contains(last):
        raise StoreError(
            f"there is another journal already, of {last.seq} records", hint="copy into a store that is empty"
        )
    while page := await source.read(after=last.seq, limit=source.PAGE_RECORDS):
        verify(page, start=last)
        held: dict[int, list[tuple[str, bytes, int]]] = {}
        for seq, digest in await source.holdings(range(page[0].seq, page[-1].seq + 1)):
            data = await source.content(digest)
            assert data is not None, "the store was verified"
            held.setdefault(seq, []).append((digest, data, seq))
        while page:
            count, size = 0, 0
            while count < len(page) and (not count or size < GROUP_BYTES):
                size += len(page[count].data or b"") + sum(len(data) for _, data, _ in held.get(page[count].seq, ()))
                count += 1
            group, page = page[:count], page[count:]
            contents = tuple(one for record in group for one in held.get(record.seq, ()))
            await target.adopt(Adopted(tuple(group), contents))
            last = Head(group[-1].seq, group[-1].digest)
        if told is not None:
            told(last.seq)
    counts, counted = set(await source.current_rows()), set(await target.current_rows())
    await target.adopt(Adopted(current=tuple(counts - counted), ended=tuple(counted - counts)))
    await target.verify(head=last)
    for store in (source, target):
        if await store.head() != last:
            raise StoreError(
                "somebody wrote into it while it was copied", hint="stop whatever uses it, and copy again: it goes on"
            )
    return last
