"""What a tool is: its manifest, its code, where it is found, and what it may reach while it runs.

`content` and `questions` are two vocabularies: what a tool may return, and what it may ask a person while it runs. The
room behind this one, `lastword.tools.guard`, holds back what a tool may not do.
"""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.tools import content as content
    from lastword.tools import questions as questions
    from lastword.tools.context import State as State
    from lastword.tools.context import StateOwner as StateOwner
    from lastword.tools.context import ToolContext as ToolContext
    from lastword.tools.folder import Loading as Loading
    from lastword.tools.folder import Toolbox as Toolbox
    from lastword.tools.folder import ToolFolder as ToolFolder
    from lastword.tools.folder import Unagreed as Unagreed
    from lastword.tools.manifest import Effect as Effect
    from lastword.tools.manifest import Manifest as Manifest
    from lastword.tools.manifest import Parameter as Parameter
    from lastword.tools.manifest import ToolKey as ToolKey
    from lastword.tools.questions import QuestionAnswer as QuestionAnswer
    from lastword.tools.questions import ToolQuestion as ToolQuestion
    from lastword.tools.registry import ToolRegistry as ToolRegistry
    from lastword.tools.registry import manifest_from as manifest_from
    from lastword.tools.registry import tool_id as tool_id
    from lastword.tools.tool import Tool as Tool
    from lastword.tools.trust import Trust as Trust
else:
    __getattr__ = open_door(__name__)
