"""A session with the editor's tools on a project, and somebody who answers its cards."""

from pathlib import Path
from typing import Any

from lastword import Outcome, Session, ToolRegistry
from lastword.call import Limits
from lastword.editor import ProjectEditor, editor_tools
from lastword.journal import Journal
from lastword.testing import FixedApprover
from lastword.testing.trial import Answer


class Workbench:
    """Whatever is asked for is carried out on `folder`; the answers may be changed between two calls."""

    def __init__(self, folder: Path, journal: Journal | None = None, limits: Limits | None = None) -> None:
        self.folder = folder
        self.limits = limits
        self.registry = self.tools()
        self.journal = journal or Journal()
        self.approver = FixedApprover()
        self.session = self.open()

    @staticmethod
    def tools() -> ToolRegistry:
        """The editor's own, and no others."""
        registry = ToolRegistry()
        editor_tools(registry)
        return registry

    def open(self) -> Session:
        """A session as another process would open it."""
        return Session(
            self.registry,
            approver=self._answer,
            editor=ProjectEditor(self.folder),
            journal=self.journal,
            limits=self.limits,
        )

    async def _answer(self, request: Any) -> Any:
        return await self.approver(request)

    def answers(self, *answers: Answer) -> None:
        self.approver = FixedApprover(list(answers))

    async def call(self, tool: str, **arguments: Any) -> Outcome:
        return await self.session.call(tool, arguments)

    async def done(self, tool: str, **arguments: Any) -> Outcome:
        """A call that must succeed."""
        outcome = await self.call(tool, **arguments)
        assert outcome.success, outcome.message
        return outcome

    async def refused(self, tool: str, **arguments: Any) -> str:
        """A call that must fail in words, without a card; the words."""
        asked = len(self.approver.requests)
        outcome = await self.call(tool, **arguments)
        assert outcome.kind == "failed", f"{outcome.kind}: {outcome.message}"
        assert len(self.approver.requests) == asked
        return outcome.message

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()
