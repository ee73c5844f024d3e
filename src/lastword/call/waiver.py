"""A tool's own rule for when nobody has to be asked: a pure function of the arguments, under the guard.

It can only make a question unnecessary, so whatever goes wrong with it asks. Only the value `False` waives: a rule that
raises, hangs, touches something, looks at something that may be different a moment later, or forgets to return has not
said that nobody need be asked.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

from lastword.call.looking import Finish, look
from lastword.call.setting import Setting
from lastword.consent import Call
from lastword.errors import LastWordError
from lastword.tools import Tool
from lastword.tools.guard import Guard, Observations

log = logging.getLogger("lastword")


async def waives(tool: Tool, call: Call, setting: Setting) -> bool:
    """Whether the tool's own rule says that these very arguments need nobody's yes."""
    if tool.needs_approval is None:
        return False
    looks = Observations(setting.state)
    guard = Guard(f"the approval rule of {tool.name}", looks, hears_glances=True)
    try:
        context = setting.context(tool, call.id, guard)
        said = await look(partial(_ask_rule, tool, call.arguments), guard, context, setting.limits.draw_timeout_seconds)
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as problem:
        why = problem.fact if isinstance(problem, LastWordError) else f"it raised {type(problem).__name__}"
        log.error("call %s: the approval rule of %s failed, so a person is asked: %s", call.id, tool.name, why)
        return False
    if guard.violations:
        why = f"it tried to {guard.violations[0]}"
    elif looks.are_too_many or looks.has_glanced or looks.taken():
        why = "it looked at files, folders or state, and may decide by the arguments alone"
    elif said is not False and said is not True:
        why = f"it returned a {type(said).__name__}, and not True or False"
    else:
        return said is False
    log.error("call %s: the approval rule of %s does not count, so a person is asked: %s", call.id, tool.name, why)
    return False


def _ask_rule(tool: Tool, arguments: bytes, finish: Finish) -> Any:
    assert tool.needs_approval is not None
    return finish(tool.needs_approval(**tool.bind_rule(arguments)))
