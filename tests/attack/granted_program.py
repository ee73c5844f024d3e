"""One of several programs that use the same grant at the same moment: `granted_program.py STORE COUNT AMOUNT`.

Whoever is asked says no. It prints how many payments nobody was asked about.
"""

import asyncio
import sys

import lastword
from lastword.consent import ApprovalRequest, UserAction

PROGRAM = "granted_program"


def registry_with_pay(paid: list[float]) -> lastword.ToolRegistry:
    """The same tool in every program: one digest."""
    registry = lastword.ToolRegistry()

    def execute(arguments: dict[str, float], context: object) -> str:
        paid.append(arguments["amount"])
        return "paid"

    schema = {
        "description": "Pays.",
        "parameters": [{"name": "amount", "type": "number", "description": "How much."}],
        "returns": "string",
        "autoApprove": True,
        "effect": "irreversible",
    }
    registry.register("pay", schema, execute, require_approval=True, inline=True)
    return registry


async def no(request: ApprovalRequest) -> UserAction:
    return request.deny()


async def use(store: str, count: int, amount: float, *, at_once: bool = False) -> list[float]:
    """Pay so often, and say what was paid."""
    paid: list[float] = []
    journal = lastword.open_journal(store)
    async with lastword.Session(registry_with_pay(paid), approver=no, journal=journal) as session:
        calls = [session.call("pay", {"amount": amount}) for _ in range(count)]
        if at_once:
            await asyncio.gather(*calls)
        else:
            for call in calls:
                await call
    await journal.close()
    return paid


if __name__ == "__main__":
    found = asyncio.run(use(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
    sys.stdout.write(f"{len(found)}\n")
