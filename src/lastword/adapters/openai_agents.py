"""A session's tools as function tools of the OpenAI Agents SDK.

    agent = Agent(name="clerk", tools=function_tools(session))

The SDK has no mark for a result that is a denial: it is text, in the outcome's words, and the run goes on. Images that
a tool returned follow the words. There is no place for the progress of a function tool; `session.events()` has it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from lastword.adapters import arguments_in, carry, manifests, pictures
from lastword.lazily import brought_by

if TYPE_CHECKING:
    from lastword.session import Session

with brought_by("openai-agents", "agents"):
    from agents import FunctionTool, Tool, ToolOutputImage, ToolOutputText
    from agents.tool_context import ToolContext

ORIGIN = "OpenAI Agents"
Result = str | list[ToolOutputText | ToolOutputImage]


def function_tools(session: Session, *, pausing: bool = False, images: bool = True) -> list[Tool]:
    """The session's tools. With `pausing`, a run stops before each tool that may ask a person.

    Such a run can be kept as text (`result.to_state()`) and gone on with later, by this process or another, after
    `state.approve(…)`. That lets the call come to the door, and is no consent: the card asks for that.

    `images=False` is for models that cannot look at any: they read the words alone.
    """
    return [
        FunctionTool(
            name=manifest.id,
            description=manifest.description,
            params_json_schema=manifest.arguments_schema(),
            on_invoke_tool=_through(session, manifest.id, images),
            # The strict form would change the schema, and refuse those that it cannot say.
            strict_json_schema=False,
            needs_approval=pausing and manifest.require_approval,
        )
        for manifest in manifests(session)
    ]


def _through(session: Session, tool: str, images: bool) -> Callable[[ToolContext[Any], str], Awaitable[Result]]:
    async def invoke(context: ToolContext[Any], written: str) -> Result:
        outcome = await carry(session, tool, arguments_in(written), given_id=context.tool_call_id, origin=ORIGIN)
        shown = await pictures(session, outcome) if images else []
        if not shown:
            return outcome.message
        return [ToolOutputText(text=outcome.message), *(ToolOutputImage(image_url=picture.url) for picture in shown)]

    return invoke
