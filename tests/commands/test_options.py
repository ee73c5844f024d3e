"""What commands share: what cannot be kept is told beside what went wrong, and hides nothing."""

import logging

import pytest

from lastword.commands import invocation
from lastword.errors import StoreError
from lastword.journal import Journal
from lastword.store import MemoryStore


class CannotClose(MemoryStore):
    """A store whose disk fails at the very end."""

    async def close(self) -> None:
        raise StoreError("the disk is full")


async def test_a_journal_that_cannot_be_closed_after_a_failure_leaves_a_line(monkeypatch, caplog):
    """The person hears of the first failure. The second is often why, and whoever looks for it looks in the log."""
    monkeypatch.setattr(invocation, "open_default_journal", lambda store: Journal(CannotClose()))
    caplog.set_level(logging.INFO, "lastword")
    with pytest.raises(ZeroDivisionError):
        async with invocation.remembering(None):
            raise ZeroDivisionError
    assert [line.getMessage() for line in caplog.records] == ["the journal could not be closed: the disk is full"]
