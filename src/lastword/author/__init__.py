"""For those who write tools: `AssistantTool`, the test functions of tools, and the files of a new one."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.author.assistant_tool import AssistantTool, TestApproval, TestExecute
    from lastword.author.scaffold import NewTool
    from lastword.author.tool_tests import Checked, run_tool_tests, tool_beside
else:
    __getattr__ = open_door(__name__)
