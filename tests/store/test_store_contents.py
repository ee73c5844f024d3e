"""What records hold beside their data: once, by digest, with the record, and gone with the last that holds it."""

import asyncio
from hashlib import sha256

import apsw
import pytest
from other_process import other_process
from samples import entry, make_old

from lastword.errors import StoreError, Tampered
from lastword.store import group_commit
from lastword.store.chain import Pruned
from lastword.store.contract import MAX_CONTENT_BYTES
from requirements import requirement

IMAGE, SOUND = b"an image" * 100, b"a sound" * 100


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


@requirement("TOOL-64")
async def test_what_a_record_holds_is_there_when_the_record_is(store):
    """A journal that names an image which is not there would lie."""
    assert await store.commit(entry(1, contents=(IMAGE, SOUND)))
    store.append(entry(2, contents=(b"",)))
    assert await store.content(digest(IMAGE)) == IMAGE
    assert await store.content(digest(SOUND)) == SOUND
    assert await store.content(digest(b"")) == b""
    assert await store.content(digest(b"another")) is None
    assert await store.content("../../etc/passwd") is None
    await store.verify()


@requirement("TOOL-64")
async def test_a_group_that_is_not_written_leaves_no_contents_behind(store):
    """Bytes without a record that names them could never be pruned."""
    assert await store.commit(entry(1, once="key"))
    assert not await store.commit(entry(2, contents=(IMAGE,)), entry(3, once="key"))
    assert await store.content(digest(IMAGE)) is None


@requirement("TOOL-64")
async def test_the_same_bytes_are_kept_once_and_go_with_the_last_record_that_holds_them(store):
    """Content is shared; forgetting one holder must neither take it from the others nor leave it behind for ever."""
    await store.commit(entry(1, contents=(IMAGE, IMAGE)), entry(2, contents=(IMAGE, SOUND)))
    store.append(entry(3, contents=(IMAGE,)))
    assert await store.forget([1]) == Pruned(1)
    assert await store.forget([1, 2]) == Pruned(1, 1, len(SOUND))
    assert await store.content(digest(SOUND)) is None
    assert await store.content(digest(IMAGE)) == IMAGE
    assert await store.forget([3]) == Pruned(1, 1, len(IMAGE))
    assert await store.content(digest(IMAGE)) is None
    assert await store.commit(entry(4, contents=(IMAGE,)))
    assert await store.content(digest(IMAGE)) == IMAGE
    await store.verify()


@requirement("TOOL-64")
async def test_a_content_beyond_the_limit_is_refused_before_anything_is_written(store):
    """A limit that is found out half-way leaves half of a record."""
    large = entry(1, contents=(bytes(MAX_CONTENT_BYTES + 1),))
    with pytest.raises(StoreError, match=f"{MAX_CONTENT_BYTES} is the most"):
        store.append(large)
    with pytest.raises(StoreError, match=f"{MAX_CONTENT_BYTES} is the most"):
        await store.commit(entry(2), large)
    assert not await store.read()


@requirement("TOOL-64")
async def test_the_chain_is_the_same_with_and_without_contents(path, opened):
    """Old readers, exports and kept heads go on to prove what they proved."""
    with_contents, without = opened(path), opened(path.with_name("other.db"))
    await with_contents.commit(entry(1, contents=(IMAGE,)), entry(2))
    await without.commit(entry(1), entry(2))
    assert await with_contents.head() == await without.head()


@requirement("TOOL-64")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE contents SET data = CAST('other bytes' AS BLOB)",
        "UPDATE contents SET digest = '0' || substr(digest, 2)",
        "DELETE FROM contents",
        "DELETE FROM holds",
        "UPDATE holds SET seq = 2",
        "INSERT INTO contents VALUES ('stray', x'00')",
    ],
)
async def test_contents_that_were_changed_behind_our_back_are_found(path, change, opened):
    """Whoever edits the file could let a record show another image than was made."""
    store = opened(path)
    await store.commit(entry(1, contents=(IMAGE,)), entry(2))
    await store.forget([2])
    await store.close()
    raw = apsw.Connection(str(path))
    raw.execute(change)
    raw.close()
    with pytest.raises(Tampered):
        await store.verify()
    if "other bytes" in change:
        with pytest.raises(Tampered, match="was changed after it was written"):
            await store.content(digest(IMAGE))


@requirement("TOOL-64")
async def test_a_forgotten_content_is_in_no_file_any_more(path, opened):
    """Who prunes a photograph expects that it cannot be found with a hex editor."""
    store = opened(path)
    secret = b"a face that nobody should see any more" * 50
    await store.commit(entry(1, contents=(secret * 20,)))
    await store.commit(entry(2))
    assert any(secret in found.read_bytes() for found in path.parent.iterdir())
    await store.forget([1])
    assert not any(secret in found.read_bytes() for found in path.parent.iterdir())


@requirement("TOOL-64", "TEAM-8")
async def test_a_file_without_contents_is_brought_up_to_date_and_holds_them_then(path, opened):
    """Nobody should have to begin a new journal for it."""
    make_old(path, entry(1), entry(2))
    store = opened(path)
    assert await store.content(digest(IMAGE)) is None
    assert await store.commit(entry(3, contents=(IMAGE,)))
    assert await store.content(digest(IMAGE)) == IMAGE
    assert (await store.verify()).seq == 3


@requirement("TOOL-64")
async def test_another_process_reads_and_forgets_the_same_contents(path, opened):
    """The page and a prune from another terminal share one file."""
    first, second = opened(path), opened(path)
    await first.commit(entry(1, contents=(IMAGE,)))
    with other_process(path) as other:
        assert other.ask("content", digest=digest(IMAGE)) == len(IMAGE)
    assert await second.content(digest(IMAGE)) == IMAGE
    assert await second.forget([1]) == Pruned(1, 1, len(IMAGE))
    assert await first.content(digest(IMAGE)) is None


@requirement("TOOL-64")
async def test_contents_that_wait_for_the_disk_count_against_the_backlog(path, monkeypatch, opened):
    """Entries without a waiter are held in memory: a row of images must not be, without end."""
    monkeypatch.setattr(group_commit, "MAX_BACKLOG_BYTES", 10_000)
    store = opened(path)
    await store.commit()
    with other_process(path) as other:
        other.ask("lock")
        store.append(entry(1, contents=(bytes(20_000),)))
        waiting = asyncio.ensure_future(asyncio.to_thread(store.append, entry(2)))
        done, _ = await asyncio.wait({waiting}, timeout=0.2)
        assert not done
        other.ask("unlock")
        await waiting
