"""A journal that an earlier version wrote opens, holds, and goes on."""

import gzip
import hashlib
from pathlib import Path

from lastword.consent import ApprovalRequest
from lastword.journal import open_journal, timeline

# One call was approved, one needed no approval and gave a picture, one was denied, and one was left waiting. The commit
# 91fb2d6 wrote it, in the same form of the file as today's.
WRITTEN = Path(__file__).with_name("written_before.db.gz")


async def test_a_journal_written_before_is_whole_and_what_waits_in_it_can_be_answered(tmp_path):
    """Whoever upgrades finds everything that was agreed to as it was, down to the last digest."""
    (tmp_path / "journal.db").write_bytes(gzip.decompress(WRITTEN.read_bytes()))
    journal = open_journal(f"sqlite:///{tmp_path}/journal.db")
    assert str(await journal.store.verify()) == "12:9b6601e5a879e5075811161a74fae04d97b050a291535f87c80848702806abfb"
    await journal.prove_contents()
    lives = [await journal.life(call) for call in ("sent", "seen", "denied")]
    assert [life.outcome().kind for life in lives] == ["succeeded", "succeeded", "denied"]
    assert lives[0].outcome().message == "sent to Ada"
    (picture,) = lives[1].content
    assert hashlib.sha256((await journal.content("seen", picture.digest))[1]).hexdigest() == picture.digest
    assert [line.rpartition("] ")[2] for line in timeline(await journal.store.read(subject="sent"))] == [
        'asked for send {"to":"Ada"}',
        "allowed by fixed approver",
        "the approval was spent",
        'started send {"to":"Ada"} (approved by a person)',
        "send succeeded: sent to Ada",
    ]
    (waiting,) = await journal.waiting()
    request = ApprovalRequest.from_facts(waiting)
    assert (request.call_id, request.arguments, waiting["asker"]) == ("waits", {"to": "Bob"}, "ended")
    assert await journal.answer(waiting, request.allow(), "Ann")
    assert await journal.waiting() == []
    assert (await journal.store.verify()).seq == 13
    await journal.close()
