"""Signs in at the bank. The token is a secret: no card shows it, and no journal keeps more than its digest."""

from typing import Any

from lastword import AssistantTool, ToolContext, UserAction

BANK = "the example bank"


def request() -> dict[str, Any]:
    return {"message": f"Sign in at {BANK} with the token that was given?", "primary_button_label": "Sign in"}


def execute(params: dict[str, Any], user_action: UserAction, context: ToolContext[None]) -> dict[str, Any]:
    if not user_action.primary_confirmed:
        return {"success": False, "message": "Nobody was signed in."}
    if not params["token"].startswith("desk-"):
        # The words go to the model and into the journal, so they do not repeat the token.
        return {"success": False, "message": "The bank does not know this token."}
    # What is remembered is that somebody is signed in. The state is journaled, and is no place for the token itself.
    context.set_state("signed_in", True, {"description": "whether the bank knows us"})
    return {"success": True, "message": f"Signed in at {BANK}."}


test_approval = AssistantTool.register_approval_request(request)
test_execute = AssistantTool.register_execute_tool_with_approval(execute)
