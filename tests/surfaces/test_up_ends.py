"""What a `lastword up` that ends still says to other programs."""

from typing import Any

from starlette.responses import Response

from lastword.commands.local_session import ChatOptions, Setup
from lastword.store import MemoryStore
from lastword.talk import Api, InProcessWire
from lastword.web import PageSetup
from requirements import requirement


class Disk(MemoryStore):
    """A store that notes who was there whenever a session looks after its grants."""

    def __init__(self) -> None:
        super().__init__()
        self.attended: list[bool] = []

    async def current(self, *names: Any, **which: Any) -> Any:
        self.attended.append(self.is_held("queue:0"))
        return await super().current(*names, **which)


@requirement("HOOK-3")
async def test_nobody_is_said_to_be_there_from_the_end_of_a_page_on(tmp_path, monkeypatch):
    """A session may take its time to end, and a card that came meanwhile would wait for nobody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    options = ChatOptions((), None, "earlier", True, "memory:", None, None, None)
    setup, store, app = Setup(options, is_attended=False), Disk(), Response(status_code=404)
    opened = setup.conversation(
        app, Api(InProcessWire(app)), store, "", PageSetup(), is_rehearsal=False, is_answered=True
    )
    async with opened as (session, _, _):
        assert session.journal.programs.is_attended()
        store.attended.clear()
    assert store.attended
    assert not any(store.attended)
