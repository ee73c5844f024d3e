"""Approvals in a page of your own: FastAPI, three small files, and nothing of lastword's own page.

    pip install fastapi uvicorn
    uvicorn app:app --port 8000        # then open http://127.0.0.1:8000

What is asked for waits until somebody answers it on the page. The answer names the digest of the card that was shown,
so nobody agrees to what they have not seen; what cannot be undone also takes a typed word, and the server insists on
it. A question outlives the program: kill it, start it again, and the card is still there.

The page is for one person on one machine, and answers to this machine alone. What others can reach needs a login and
TLS besides. In the place of a model there are buttons that ask for something.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, Response
from pydantic import BaseModel
from starlette.middleware.trustedhost import TrustedHostMiddleware

import lastword

HERE = Path(__file__).parent
SESSION = "own-page"
MAX_SHOWN = 20


@dataclass
class Shop:
    """What the tools work on. A host gives its session whatever it has: a client, a pool of connections."""

    stock: dict[str, int] = field(default_factory=lambda: {"lamp": 12, "chair": 4})
    sent: list[str] = field(default_factory=list)


registry = lastword.ToolRegistry()


def about_refund(customer: str, amount: float) -> dict[str, Any]:
    return {
        "title": f"Refund {customer}",
        "message": f"{amount:.2f} goes back to {customer}'s card, today.",
        "primary_button_label": "Refund",
    }


@registry.tool(request=about_refund, effect="irreversible")
async def refund(customer: str, amount: float, context: lastword.ToolContext[Shop]) -> str:
    """Give a customer their money back."""
    context.deps.sent.append(f"{amount:.2f} to {customer}")
    return f"Refunded {amount:.2f} to {customer}."


def letter(to: str, news: str) -> str:
    return f"Dear {to},\n\n{news}\n\nYours sincerely,\nthe shop"


def about_letter(to: str, news: str) -> dict[str, Any]:
    return {
        "title": f"Write to {to}",
        "message": "The letter goes out with today's post.",
        "primary_button_label": "Send",
        "preview_button": {"label": "Read it", "action": lambda: letter(to, news)},
    }


@registry.tool(request=about_letter, effect="irreversible")
async def send_letter(to: str, news: str, context: lastword.ToolContext[Shop]) -> str:
    """Send a letter to a customer."""
    context.deps.sent.append(letter(to, news))
    return f"Sent a letter to {to}."


@registry.tool(effect="reversible")
async def set_stock(item: str, count: int, context: lastword.ToolContext[Shop]) -> str:
    """Correct how many there are of something."""
    before = context.deps.stock.get(item, 0)
    context.deps.stock[item] = count
    return f"{item}: {before} → {count}."


class Desk:
    """The calls that are under way, and the last ones that ended."""

    def __init__(self, session: lastword.Session) -> None:
        self.session = session
        self.ended: list[lastword.Outcome] = []
        self._going: set[asyncio.Task[None]] = set()

    def ask_for(self, tool: str, arguments: dict[str, Any], call_id: str | None = None) -> None:
        going = asyncio.create_task(self._call(tool, arguments, call_id))
        self._going.add(going)
        going.add_done_callback(self._going.discard)

    async def _call(self, tool: str, arguments: dict[str, Any], call_id: str | None) -> None:
        try:
            outcome = await self.session.call(tool, arguments, origin="the page", call_id=call_id)
        except lastword.Detached:
            return  # The program ends, and the question goes on waiting.
        self.ended = [outcome, *self.ended][:MAX_SHOWN]

    async def take_up(self) -> None:
        """Go on with the questions that an earlier start of this program left."""
        for facts in await self.session.journal.waiting():
            if facts["session_id"] == SESSION:
                self.ask_for(facts["tool"], facts["arguments"], facts["call_id"])

    async def leave(self) -> None:
        for card in self.session.pending():
            self.session.detach(card.call_id)
        if self._going:
            await asyncio.wait(self._going, timeout=5)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    journal = lastword.open_journal(os.environ.get("OWN_PAGE_STORE", "sqlite:///own_page.db"))
    session = lastword.Session(
        registry, id=SESSION, approver=lastword.wait_for_answer, journal=journal, deps=Shop(), user="the shop"
    )
    async with session:
        app.state.desk = desk = Desk(session)
        await desk.take_up()
        yield
        await desk.leave()
    await journal.close()


app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
# A page elsewhere could let its own name lead to this machine; only names of this machine are answered.
app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])


@app.middleware("http")
async def same_origin(request: Request, go_on: Any) -> Response:
    """Nobody else's page may press our buttons, and nobody's script runs on ours."""
    if request.method != "GET" and request.headers.get("origin") != f"http://{request.headers.get('host')}":
        return Response("this came from another page", status_code=403)
    response: Response = await go_on(request)
    response.headers["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


class Wanted(BaseModel):
    tool: str
    arguments: dict[str, Any]


class Answer(BaseModel):
    digest: str
    """Of the card that was on the screen."""
    allow: bool
    reason: str | None = None
    word: str = ""
    """Typed by hand for what cannot be undone."""


@app.get("/")
async def page() -> FileResponse:
    return FileResponse(HERE / "page.html")


@app.get("/page.{kind}")
async def asset(kind: str) -> FileResponse:
    if kind not in ("js", "css"):
        raise HTTPException(404)
    return FileResponse(HERE / f"page.{kind}")


@app.post("/calls", status_code=202)
async def ask_for(wanted: Wanted) -> dict[str, Any]:
    app.state.desk.ask_for(wanted.tool, wanted.arguments)
    return {}


@app.get("/desk")
async def desk() -> dict[str, Any]:
    """Everything that the page shows."""
    desk: Desk = app.state.desk
    return {
        "cards": [shown(card) for card in desk.session.pending()],
        "ended": [
            {
                "id": ended.call_id,
                "tool": ended.tool,
                "kind": ended.kind,
                "success": ended.success,
                "message": ended.message,
            }
            for ended in desk.ended
        ],
    }


def shown(card: lastword.ApprovalRequest) -> dict[str, Any]:
    """A card as plain data. Arguments that are secret are masked in `shown_arguments`."""
    return {
        "id": card.call_id,
        "digest": card.digest,
        "tool": card.tool,
        "description": card.manifest.description,
        "title": card.title,
        "message": card.message,
        "arguments": card.shown_arguments,
        "preview_label": card.preview_label,
        "preview": [preview.proposed for preview in card.preview],
        "allow": card.primary_button_label,
        "takes_word": takes_word(card),
        "problem": card.problem,
    }


def takes_word(card: lastword.ApprovalRequest) -> bool:
    # A tool that does not say what it does to the world is taken for one that cannot be undone.
    return card.manifest.effect not in ("none", "reversible")


@app.post("/calls/{call_id}/answer")
async def answer(call_id: str, given: Answer) -> dict[str, Any]:
    desk: Desk = app.state.desk
    card = next((card for card in desk.session.pending() if card.call_id == call_id), None)
    if card is None or card.digest != given.digest:
        raise HTTPException(409, "this card does not wait any more")
    if given.allow and takes_word(card) and given.word != "allow":
        raise HTTPException(422, "what cannot be undone takes the typed word allow")
    action = card.allow() if given.allow else card.deny(given.reason)
    if not desk.session.answer(call_id, action, by="the page"):
        raise HTTPException(409, "somebody else answered it")
    return {}
