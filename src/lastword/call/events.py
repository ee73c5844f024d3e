"""What a session tells whoever listens: one type for each thing that happens to a call or a run. Data only.

A vocabulary: surfaces, hosts and adapters match these types. Who tells them is setting.py's business.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from lastword.consent import Answerer, ApprovalRequest, Outcome, UserAction
from lastword.tools import ToolQuestion


class Asked(msgspec.Struct, frozen=True):
    """A card waits for an answer."""

    request: ApprovalRequest


class Answered(msgspec.Struct, frozen=True):
    """A card was answered, here or elsewhere."""

    call_id: str
    action: UserAction
    by: Answerer


class QuestionAsked(msgspec.Struct, frozen=True):
    """A running tool asks the person something. It approves nothing."""

    question: ToolQuestion


class QuestionAnswered(msgspec.Struct, frozen=True):
    """A question of a running tool waits no longer."""

    call_id: str
    question_id: str
    how: Literal["given", "declined", "closed"]
    """What was given is the tool's to know: it may be a secret."""
    by: Answerer


class Started(msgspec.Struct, frozen=True):
    """A tool began to run."""

    call_id: str
    tool: str
    arguments: bytes = b"{}"
    """One JSON object, with secrets masked."""
    origin: str = ""
    not_asked: str = ""
    """Why nobody was asked, where a rule or a grant stood for a person: `your grant of 15 November, 3 of 10 calls`."""


class DeniedByRule(msgspec.Struct, frozen=True):
    """A rule denied a call, and nobody was asked. Its end follows."""

    call_id: str
    tool: str
    arguments: bytes
    """One JSON object, with secrets masked."""
    origin: str
    rule: str
    """Its name, with its file and line."""


class Reported(msgspec.Struct, frozen=True):
    """A tool said how it goes. The same id replaces the earlier line."""

    call_id: str
    message: str
    id: str | None
    fraction: float | None


class Finished(msgspec.Struct, frozen=True):
    """A call came to its end."""

    outcome: Outcome


class RunStarted(msgspec.Struct, frozen=True):
    """A script is being carried out."""

    run_id: str
    name: str | None
    text: str


class RunFinished(msgspec.Struct, frozen=True):
    """A script came to its end, or waits for a decision about a call in doubt."""

    run_id: str
    status: Literal["done", "failed", "cancelled", "waiting"]
    error: str | None


class Printed(msgspec.Struct, frozen=True):
    """A script wrote a line."""

    run_id: str
    line: str


Event = (
    Asked
    | Answered
    | QuestionAsked
    | QuestionAnswered
    | Started
    | DeniedByRule
    | Reported
    | Finished
    | RunStarted
    | RunFinished
    | Printed
)
