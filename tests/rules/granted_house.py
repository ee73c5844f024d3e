"""A session with cards that a person answers, one payment after the other, and grants that come with an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from lastword import Journal, Session, ToolError, ToolRegistry, wait_for_answer
from lastword.consent import ApprovalRequest, GrantTerms, Outcome
from lastword.rules import GrantOffer
from lastword.rules.grant_step import terms_with
from sending import until


class Payer:
    """One program: a tool that pays, and a person at its cards."""

    def __init__(
        self, journal: Journal | None = None, *, key: Any = True, effect: Any = "reversible", **facts: Any
    ) -> None:
        self.registry = ToolRegistry()
        self.paid: list[tuple[str, float]] = []
        self.is_failing = False
        self.register()
        self.session = Session(self.registry, approver=wait_for_answer, journal=journal or Journal(), **facts)

    def register(self, key: Any = True, effect: Any = "reversible", **facts: Any) -> None:
        if self.registry.is_registered("pay"):
            self.registry.unregister("pay")

        @self.registry.tool(auto_approve=key, effect=effect, **facts)
        def pay(to: str, amount: float, note: str = "") -> str:
            """Pay somebody."""
            if self.is_failing:
                raise ToolError("the bank is closed")
            self.paid.append((to, amount))
            return "paid"

    def ask(
        self, amount: float = 5, to: str = "Ada", note: str = "", call_id: str | None = None
    ) -> asyncio.Task[Outcome]:
        """Ask for a payment, and let it wait if somebody has to be asked."""
        return asyncio.create_task(self.session.call("pay", {"to": to, "amount": amount, "note": note}))

    async def card(self, task: asyncio.Task[Outcome]) -> ApprovalRequest:
        """The card of a call that somebody is asked about."""
        await until(lambda: task.done() or self.session.pending())
        assert not task.done(), task.result()
        return self.session.pending()[-1]

    @asynccontextmanager
    async def shown(self, *payment: Any, **facts: Any) -> AsyncIterator[ApprovalRequest]:
        """The card of a payment, which is denied in the end."""
        task = self.ask(*payment, **facts)
        card = await self.card(task)
        yield card
        self.session.answer(card.call_id, card.deny())
        await task

    async def pay(self, amount: float = 5, to: str = "Ada", note: str = "") -> str:
        """`ran` without a question, or the line of the card, which is then denied."""
        task = self.ask(amount, to, note)
        await until(lambda: task.done() or self.session.pending())
        if task.done():
            return "ran" if task.result().success else task.result().kind
        card = self.session.pending()[-1]
        self.session.answer(card.call_id, card.deny())
        assert (await task).kind == "denied"
        return card.rule_line or "asked"

    def offer(self, card: ApprovalRequest) -> GrantOffer:
        offer = self.session.grant_offer(card.call_id)
        assert isinstance(offer, GrantOffer), offer
        return offer

    async def grant(
        self, bounds: dict[str, Any] | None = None, scope: Any = "session", amount: float = 5, **terms: Any
    ) -> GrantTerms:
        """Allow one payment, and others like it."""
        task = self.ask(amount)
        card = await self.card(task)
        given = self.offer(card).terms(bounds, scope, **terms)
        self.session.answer(card.call_id, card.allow_with(given))
        assert (await task).success
        return given

    def settling(self, card: ApprovalRequest, terms: GrantTerms) -> GrantTerms:
        return terms_with(terms, self.session.would_settle(card.call_id, terms))


@asynccontextmanager
async def paying(journal: Journal | None = None, **facts: Any) -> AsyncIterator[Payer]:
    payer = Payer(journal, **facts)
    async with payer.session:
        yield payer
