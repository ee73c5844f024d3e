"""Our tools for MCP clients, in this process: a registry, a memory, the sessions that the server opened."""

from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client

import lastword
from lastword import ApprovalRequest, Preset, Session, ToolRegistry
from lastword.call import wait_for_answer
from lastword.mcp.tool_server import ToolServer
from mcp_neighbour import until

KEY = b"k" * 32


class Counter:
    """A server with a few tools, and whoever answers its cards."""

    def __init__(self, folder: Path, **facts: Any) -> None:
        self.paid: list[float] = []
        self.journal = lastword.open_journal(f"sqlite:///{folder}/memory.db")
        self.sessions: dict[str, Session] = {}
        self.registry = ToolRegistry()
        self._facts = facts

        @self.registry.tool(effect="irreversible")
        def pay(amount: float) -> dict[str, float]:
            """Pays."""
            self.paid.append(amount)
            return {"paid": amount}

        @self.registry.tool(require_approval=False, effect="none")
        def look() -> str:
            """Looks."""
            return "seen"

        @self.registry.tool(auto_approve=True, effect="reversible")
        def jot(text: str) -> str:
            """Jots something down, which can be taken back."""
            self.paid.append(len(text))
            return f"jotted {text}"

        @self.registry.tool(auto_approve=True)
        def unsaid(text: str) -> str:
            """Does not say what it does."""
            self.paid.append(0)
            return text

        self.server = ToolServer(self._open, KEY, **facts)

    async def _open(self, id: str, preset: Preset | None) -> Session:
        session = Session(self.registry, id=id, approver=wait_for_answer, journal=self.journal, preset=preset)
        self.sessions[id] = session
        return await session.open()

    async def card(self, id: str = "mcp-stdio", before: str = "") -> ApprovalRequest:
        """The card that waits in a session, as soon as it is another one than before."""
        found: list[ApprovalRequest] = []

        def look() -> bool:
            session = self.sessions.get(id)
            found[:] = [] if session is None else [card for card in session.pending() if card.call_id != before]
            return bool(found)

        await until(look)
        return found[0]

    def answer(self, request: ApprovalRequest, action: Any, by: str = "page") -> None:
        self.sessions[request.session_id].answer(request.call_id, action, by)

    async def close(self) -> None:
        await self.server.close()
        await self.journal.close()


@asynccontextmanager
async def serving(folder: Path, **facts: Any):
    counter = Counter(folder, **facts)
    try:
        yield counter
    finally:
        await counter.close()


def client(counter: Counter, mode: str = "legacy", **facts: Any) -> Client:
    """A client of either era."""
    info = types.Implementation(name="editor\u202e", version="7")
    return Client(counter.server.protocol, mode=mode, client_info=info, cache=None, **facts)


@asynccontextmanager
async def dialogue(folder: Path, mode: str, ask: Any, **facts: Any):
    """A server, and a client of this era that can show a dialogue, which counts unless it is said otherwise."""
    async with (
        serving(folder, **{"approve_by_client": True} | facts) as counter,
        client(counter, mode, elicitation_callback=ask) as desk,
    ):
        yield counter, desk


def words(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def meta(result: types.CallToolResult) -> dict[str, Any]:
    """What lastword says of a result beside its words: the kind of its end, and the id of its call."""
    assert result.meta is not None
    return dict(result.meta)
