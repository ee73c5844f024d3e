"""A session's tools as tools of LangChain, for `create_agent`, `ToolNode` and whatever else takes a `BaseTool`.

    agent = create_agent(model, tools=session_tools(session), checkpointer=checkpointer)

The result is a `ToolMessage` with the outcome's words; its `status` is `"error"` for whatever did not succeed, and its
`artifact` says which kind of end it was. Images that a tool returned are blocks behind the words. Reports of a running
tool go to `stream_mode="custom"`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lastword.adapters import ShownImage, carry, facts, manifests, pictures
from lastword.lazily import brought_by

if TYPE_CHECKING:
    from lastword.call.events import Reported
    from lastword.consent import Outcome
    from lastword.session import Session

with brought_by("langchain", "langchain_core", "langgraph"):
    from langchain_core.messages import ToolMessage
    from langchain_core.messages.content import create_image_block, create_text_block
    from langchain_core.tools import BaseTool
    from langgraph.config import get_stream_writer
    from pydantic import PrivateAttr

ORIGIN = "LangChain"


def session_tools(session: Session, *, images: bool = True) -> list[BaseTool]:
    """The session's tools. `images=False` is for models that cannot look at any: they read the words alone."""
    return [
        SessionTool(
            session, images, name=manifest.id, description=manifest.description, args_schema=manifest.arguments_schema()
        )
        for manifest in manifests(session)
    ]


class SessionTool(BaseTool):
    """One tool of a session. `invoke` is for a session used with `with`, `ainvoke` for one used with `async with`."""

    _session: Session = PrivateAttr()
    _images: bool = PrivateAttr()

    def __init__(self, session: Session, images: bool = True, **fields: Any) -> None:
        super().__init__(**fields)
        self._session = session
        self._images = images

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # By position: an argument of the tool may be called `config` or `run_manager`, which LangChain fills in itself.
        return (tool_input, tool_call_id), {}

    async def _arun(self, arguments: Any, given_id: str | None) -> ToolMessage | str:
        write = _writer()

        async def tell(report: Reported) -> None:
            write({"tool": self.name, "tool_call_id": given_id, "message": report.message, "fraction": report.fraction})

        outcome = await carry(self._session, self.name, arguments, given_id=given_id, origin=ORIGIN, hearer=tell)
        return self._told(outcome, given_id, await self._seen(outcome))

    def _run(self, arguments: Any, given_id: str | None) -> ToolMessage | str:
        called = carry(self._session, self.name, arguments, given_id=given_id, origin=ORIGIN)
        outcome = self._session.run_sync(called)
        return self._told(outcome, given_id, self._session.run_sync(self._seen(outcome)))

    async def _seen(self, outcome: Outcome) -> list[ShownImage]:
        return await pictures(self._session, outcome) if self._images else []

    def _told(self, outcome: Outcome, given_id: str | None, shown: list[ShownImage]) -> ToolMessage | str:
        if given_id is None:  # Called by hand, and not by a model: there is no message to answer.
            return outcome.message
        images = [create_image_block(base64=image.base64, mime_type=image.media_type) for image in shown]
        content = [dict(block) for block in (create_text_block(outcome.message), *images)]
        return ToolMessage(
            [*content] if images else outcome.message,
            tool_call_id=given_id,
            name=self.name,
            status="success" if outcome.success else "error",
            artifact=facts(outcome),
        )


def _writer() -> Callable[[Any], None]:
    """Where a graph wants to hear of progress; a deaf one where the tool runs outside of any graph."""
    try:
        return get_stream_writer()
    except (RuntimeError, KeyError):
        return lambda report: None
