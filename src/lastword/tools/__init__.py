"""What a tool is: its manifest, its code, where it is found, and what it may reach while it runs.

`content` and `questions` are two vocabularies: what a tool may return, and what it may ask a person while it runs. The
room behind this one, `lastword.tools.guard`, holds back what a tool may not do.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.tools import content, questions
    from lastword.tools.context import State, StateOwner, ToolContext
    from lastword.tools.folder import Loading, Toolbox, ToolFolder, Unagreed
    from lastword.tools.manifest import Effect, Manifest, Parameter, ToolKey
    from lastword.tools.questions import QuestionAnswer, ToolQuestion
    from lastword.tools.registry import ToolRegistry, manifest_from, tool_id
    from lastword.tools.tool import Tool
    from lastword.tools.trust import Trust
else:
    __getattr__ = open_door(__name__)
