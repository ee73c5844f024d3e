"""What tests of hooks need: events as agents were seen to send them, the program that answers, and a person's queue."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from lastword.consent import Answerer, ApprovalRequest, UserAction
from lastword.journal import Journal, open_journal
from surfaces.screens import clean_environment
from warm import WarmProgram

PATIENCE_SECONDS = 120.0

# As Claude Code 2.1.326, Codex 0.169.0 and Gemini CLI 0.61.0 sent them, but for the folders.
CLAUDE_BEFORE: dict[str, Any] = {
    "session_id": "2e985a56-6825-41f6-a978-7dce14f1c254",
    "transcript_path": "/home/you/.claude/projects/-home-you-proj/2e985a56-6825-41f6-a978-7dce14f1c254.jsonl",
    "cwd": "/home/you/proj",
    "prompt_id": "1858f4dd-e0b4-4716-84a0-6e5fe5fe49d6",
    "permission_mode": "default",
    "effort": {"level": "medium"},
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "echo hi"},
    "tool_use_id": "toolu_01",
}
CLAUDE_AFTER: dict[str, Any] = CLAUDE_BEFORE | {
    "hook_event_name": "PostToolUse",
    "tool_response": {"stdout": "hi", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False},
    "duration_ms": 52,
}
CODEX_BEFORE: dict[str, Any] = {
    "session_id": "01a1ea87-2676-7a92-9e7c-34a3869e340a",
    "turn_id": "01a1ea87-2712-7ab3-9926-d75665511120",
    "transcript_path": "/home/you/.codex/sessions/2026/11/17/rollout-01a1ea87.jsonl",
    "cwd": "/home/you/proj",
    "hook_event_name": "PreToolUse",
    "model": "fake",
    "permission_mode": "bypassPermissions",
    "tool_name": "Bash",
    "tool_input": {"command": "echo hi"},
    "tool_use_id": "call_1",
}
CODEX_AFTER: dict[str, Any] = CODEX_BEFORE | {"hook_event_name": "PostToolUse", "tool_response": "hi\n"}
GEMINI_BEFORE: dict[str, Any] = {
    "session_id": "88284ad0-75ce-4ab8-bb0d-07d0cf9b99e1",
    "transcript_path": "/home/you/.gemini/tmp/proj/chats/session-2026-11-17T17-21-88284ad0.jsonl",
    "cwd": "/home/you/proj",
    "hook_event_name": "BeforeTool",
    "timestamp": "2026-11-17T17:21:34.322Z",
    "tool_name": "run_shell_command",
    "tool_input": {"command": "echo hi"},
}
GEMINI_AFTER: dict[str, Any] = GEMINI_BEFORE | {
    "hook_event_name": "AfterTool",
    "timestamp": "2026-11-17T17:21:34.462Z",
    "tool_response": {"llmContent": "Output: hi", "returnDisplay": "hi"},
}


class Answer:
    """What an agent hears."""

    def __init__(self, code: int, printed: bytes, complaint: bytes) -> None:
        self.code = code
        self.printed = printed.decode()
        self.complaint = complaint.decode()

    @property
    def said(self) -> dict[str, Any]:
        """The answer in the agent's form; it comes with 0."""
        assert self.code == 0, self.complaint
        said: dict[str, Any] = json.loads(self.printed)
        return said

    @property
    def decided(self) -> dict[str, Any]:
        """Of Claude Code and Codex: what is said of the call."""
        found: dict[str, Any] = self.said["hookSpecificOutput"]
        return found


class Gate:
    """Starts hooks, as an agent does."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = clean_environment(home)
        self._started: list[WarmProgram] = []

    def start(self, said: dict[str, Any] | bytes, agent: str = "claude", *options: str) -> WarmProgram:
        """A hook that has got its event."""
        given = said if isinstance(said, bytes) else json.dumps(said).encode()
        self._started.append(WarmProgram(["hook", agent, *options], self.home, self.environment, given))
        return self._started[-1]

    async def ask(self, said: dict[str, Any] | bytes, agent: str = "claude", *options: str) -> Answer:
        """What a hook says to an event."""
        return await heard(self.start(said, agent, *options))

    async def ask_cold(self, said: dict[str, Any]) -> Answer:
        """The same of Claude Code's, from the start of the interpreter on."""
        command = [sys.executable, "-P", "-m", "lastword", "hook", "claude"]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=self.home, env=self.environment
        )
        async with asyncio.timeout(PATIENCE_SECONDS):
            printed, complaint = await process.communicate(json.dumps(said).encode())
        assert process.returncode is not None
        return Answer(process.returncode, printed, complaint)

    def close(self) -> None:
        for program in self._started:
            program.close()


async def heard(hook: WarmProgram) -> Answer:
    """What a hook says in the end."""
    printed, complaint = await hook.heard()
    return Answer(hook.wait(), printed, complaint)


class Queue:
    """The person, with all questions before them."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    async def card(self, but: str = "") -> ApprovalRequest:
        """The first card that waits, as soon as one does; another than the one with this digest."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                head = await self.journal.store.head()
                for facts in await self.journal.waiting():
                    if facts["digest"] != but:
                        return ApprovalRequest.from_facts(facts)
                await self.journal.store.changed(head.seq)

    async def answer(self, request: ApprovalRequest, action: UserAction) -> None:
        assert await self.journal.answer(request.facts(), action, Answerer.person(where="page"))

    async def decide(
        self, hook: WarmProgram, choose: Callable[[ApprovalRequest], UserAction] = ApprovalRequest.allow, but: str = ""
    ) -> tuple[ApprovalRequest, Answer]:
        """The card of a hook, which is answered so, and what the agent hears then."""
        card = await self.card(but)
        await self.answer(card, choose(card))
        return card, await heard(hook)

    async def kinds(self, call_id: str) -> list[str]:
        """What is written down of a call."""
        return [record.kind for record in await self.journal.store.read(subject=call_id)]

    async def until(self, call_id: str, kind: str) -> None:
        """Until such a record is there."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while kind not in await self.kinds(call_id):
                head = await self.journal.store.head()
                if kind not in await self.kinds(call_id):
                    await self.journal.store.changed(head.seq)


@asynccontextmanager
async def opened(home: Path, *, attended: bool = True) -> AsyncIterator[Queue]:
    """The memory that the hooks of this home ask in, with somebody who watches it."""
    journal = open_journal(f"sqlite:///{home / '.data' / 'lastword' / 'lastword.db'}")
    try:
        with journal.programs.attending() if attended else _nobody():
            yield Queue(journal)
    finally:
        await journal.close()


@contextmanager
def _nobody():
    yield
