"""For those who write tools: `AssistantTool`, and the test functions of tools."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.author.authoring import AssistantTool as AssistantTool
    from lastword.author.authoring import TestApproval as TestApproval
    from lastword.author.authoring import TestExecute as TestExecute
    from lastword.author.tooltests import run_tool_tests as run_tool_tests
    from lastword.author.tooltests import tool_beside as tool_beside
else:
    __getattr__ = open_door(
        __name__,
        authoring="AssistantTool TestApproval TestExecute",
        tooltests="run_tool_tests tool_beside",
    )
