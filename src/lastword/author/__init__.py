"""For those who write tools: `AssistantTool`, the test functions of tools, and the files of a new one."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.author.assistant_tool import AssistantTool as AssistantTool
    from lastword.author.assistant_tool import TestApproval as TestApproval
    from lastword.author.assistant_tool import TestExecute as TestExecute
    from lastword.author.scaffold import NewTool as NewTool
    from lastword.author.tool_tests import Checked as Checked
    from lastword.author.tool_tests import run_tool_tests as run_tool_tests
    from lastword.author.tool_tests import tool_beside as tool_beside
else:
    __getattr__ = open_door(__name__)
