"""Who asks the person at this terminal, when there is one. What draws cards and reads keys is loaded only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lastword.lazily import load_later
from lastword.terminal.screen import is_interactive

if TYPE_CHECKING:
    from lastword.terminal import approver
else:
    approver = load_later("lastword.terminal.approver")


def terminal_approver(*, plain: bool = False) -> approver.TerminalApprover | None:
    """An approver for this terminal; None when there is none with a person at it."""
    return approver.TerminalApprover(plain=plain or None) if is_interactive() else None
