"""Pays, once. What cannot be taken back takes two acts on every surface, and the card says what will be left.

The bank here is a file. Like real ones it takes a key with each payment and makes one payment a key, whatever happens
on the way; the key is the call's id, which is the same when a call is taken up again after a crash. `BANK=silent` lets
it break off after it paid, to see what becomes of a call of which nobody knows.
"""

import json
import os
from pathlib import Path
from typing import Any

from lastword import AssistantTool, Given, OutcomeUnknown, ToolContext, ToolError, UserAction

LEDGER = Path("ledger.json")
OPENING_BALANCE = 2500.0
CODE_ABOVE = 1000
CODE = {
    "type": "object",
    "properties": {"code": {"type": "string", "title": "One-time code", "secret": True, "minLength": 4}},
    "required": ["code"],
}


def request(params: dict[str, Any], context: ToolContext[None]) -> dict[str, Any]:
    """May look and must not touch. What it looks at is part of the question, which is put again if that changes."""
    if not context.get_state_value("signed_in"):
        raise ToolError("nobody is signed in at the bank", hint="sign_in comes first")
    left = balance() - params["amount"]
    if left < 0:
        raise ToolError(f"{params['amount']:.2f} is more than the {balance():.2f} that is there")
    return {
        "title": f"Pay {params['payee']}",
        "message": f"{params['amount']:.2f} goes to {params['payee']} for “{params['reference']}”. {left:.2f} is left.",
        "primary_button_label": "Pay",
        "secondary_button_label": "Keep the money",
    }


def execute(params: dict[str, Any], user_action: UserAction, context: ToolContext[None]) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Nothing was paid."}
    if params["amount"] > CODE_ABOVE:
        context.report("waiting for the one-time code")
        answer = context.ask_sync("The bank sent you a code for this payment.", CODE)
        if not isinstance(answer, Given):
            return {"success": False, "message": "No code was given, so nothing was paid."}
    pay(context.call_id, params)
    return {"success": True, "message": f"Paid {params['amount']:.2f} to {params['payee']}."}


def pay(key: str, payment: dict[str, Any]) -> None:
    """What the bank does: a key that it knows is told as paid, and not paid again."""
    ledger = payments()
    is_new = key not in ledger
    if is_new:
        ledger[key] = payment
        LEDGER.with_suffix(".new").write_text(json.dumps(ledger, indent=2), encoding="utf-8")
        LEDGER.with_suffix(".new").replace(LEDGER)
    if is_new and os.environ.get("BANK") == "silent":
        raise OutcomeUnknown("the bank did not answer after it got the payment")


def payments() -> dict[str, Any]:
    return dict(json.loads(LEDGER.read_text(encoding="utf-8"))) if LEDGER.exists() else {}


def balance() -> float:
    return OPENING_BALANCE - float(sum(entry["amount"] for entry in payments().values()))


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
