"""`lastword mcp approver`: the tool by which Claude Code asks for permission when nobody sits before it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import click

from lastword import ids
from lastword.cli import DONE
from lastword.commands.options import remembering, store_option
from lastword.hook import CLAUDE, Allowed, HookInput
from lastword.lazily import load_later
from lastword.tools import note_agent

if TYPE_CHECKING:
    from lastword.hook import asking
    from lastword.mcp import approver as approving
else:
    # The SDK takes a second to load, and `lastword mcp list` needs none of it.
    approving, asking = load_later("lastword.mcp.approver"), load_later("lastword.hook.asking")


@click.command(short_help="Answer what Claude Code asks with --permission-prompt-tool.")
@click.option(
    "--within", type=click.FloatRange(min=1, max=86_400), default=3_540.0, show_default=True, metavar="SECONDS",
    help="How long to wait for an answer.",
)  # fmt: skip
@store_option
def approver(within: float, store: str | None) -> int:
    """Answer what `claude -p --permission-prompt-tool` asks, over stdio: a card on the page of `lastword up`.

    In the configuration of Claude Code: the command `lastword mcp approver` as a server named lastword, and then
    --permission-prompt-tool mcp__lastword__approve.
    """
    asyncio.run(_serve(within, store))
    return DONE


async def _serve(within: float, store: str | None) -> None:
    note_agent()
    session = f"approver {ids.new()}"
    async with remembering(store) as journal:

        async def decide(tool: str, given: dict[str, Any], tool_use: str | None) -> dict[str, Any] | str:
            said = HookInput(
                agent=CLAUDE,
                event="PermissionRequest",
                session=session,
                tool=tool,
                arguments=given,
                cwd=os.getcwd(),
                tool_use=tool_use,
            )
            verdict = await asking.ask(journal, said, within)
            return verdict.arguments if isinstance(verdict, Allowed) else verdict.why

        await approving.run_approver(approving.ApproverServer(decide))
