"""A session's tools as a toolset of Pydantic AI.

    agent = Agent(model, toolsets=[SessionToolset(session)])

A denial comes back in the framework's own form, `outcome='denied'`; what failed as `outcome='failed'`. Both are results
that the model reads, and neither ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lastword.adapters import carry, facts, manifests, pictures
from lastword.lazily import brought_by

if TYPE_CHECKING:
    from lastword.call.events import Reported
    from lastword.consent import Kind
    from lastword.session import Session

with brought_by("pydantic-ai", "pydantic_ai"):
    from pydantic_ai import BinaryContent, CustomEvent, RunContext, ToolDefinition, ToolDenied, ToolFailed, ToolReturn
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
    from pydantic_core import SchemaValidator, core_schema

ORIGIN = "Pydantic AI"

# The door checks arguments itself, and tells the model every problem at once. A second checker could only disagree.
_ANYTHING = SchemaValidator(core_schema.any_schema())
_NOT_ALLOWED: tuple[Kind, ...] = ("denied", "no_approver", "expired", "stale", "refused")


@dataclass(kw_only=True)
class ToolProgress(CustomEvent, name="lastword_progress"):
    """A running tool said how it goes: in the run's event stream."""

    message: str
    id: str | None = None
    fraction: float | None = None


class SessionToolset(AbstractToolset[Any]):
    """The tools of a session, as they are at each step of a run: one that is added or replaced meanwhile counts."""

    def __init__(self, session: Session, *, id: str | None = None, images: bool = True) -> None:
        """`images=False` is for models that cannot look at any: they read the words alone."""
        self._session = session
        self._id = id
        self._images = images

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {
            manifest.id: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=manifest.id,
                    description=manifest.description,
                    parameters_json_schema=manifest.arguments_schema(),
                ),
                max_retries=ctx.max_retries,
                args_validator=_ANYTHING,
            )
            for manifest in manifests(self._session)
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> ToolReturn[Any] | ToolDenied:
        async def tell(report: Reported) -> None:
            await ctx.emit(ToolProgress(message=report.message, id=report.id, fraction=report.fraction))

        outcome = await carry(self._session, name, tool_args, given_id=ctx.tool_call_id, origin=ORIGIN, hearer=tell)
        if outcome.kind in _NOT_ALLOWED:
            return ToolDenied(outcome.message)
        if not outcome.success:
            raise ToolFailed(outcome.message)
        shown = await pictures(self._session, outcome) if self._images else []
        seen: list[str | BinaryContent] = [f"What {name} returned:"]
        seen += [BinaryContent(image.data, media_type=image.media_type) for image in shown]
        return ToolReturn(outcome.message, content=seen if shown else None, metadata=facts(outcome))
