"""What a tool is: its manifest, its code, where it is found, and what it may reach while it looks or runs."""

from typing import TYPE_CHECKING

from lastword.lazily import open_door

if TYPE_CHECKING:
    from lastword.tools.code import CODE_FILE as CODE_FILE
    from lastword.tools.code import MANIFEST_FILE as MANIFEST_FILE
    from lastword.tools.code import code_files as code_files
    from lastword.tools.code import code_of as code_of
    from lastword.tools.code import digest_of_folder as digest_of_folder
    from lastword.tools.content import MAX_BLOCK_BYTES as MAX_BLOCK_BYTES
    from lastword.tools.content import MAX_BLOCKS as MAX_BLOCKS
    from lastword.tools.content import MAX_RESULT_BYTES as MAX_RESULT_BYTES
    from lastword.tools.content import UNKNOWN_TYPE as UNKNOWN_TYPE
    from lastword.tools.content import Audio as Audio
    from lastword.tools.content import Block as Block
    from lastword.tools.content import BlockKind as BlockKind
    from lastword.tools.content import File as File
    from lastword.tools.content import Image as Image
    from lastword.tools.content import Text as Text
    from lastword.tools.content import ToolResult as ToolResult
    from lastword.tools.content import extension_of as extension_of
    from lastword.tools.content import true_kind as true_kind
    from lastword.tools.context import OnCancel as OnCancel
    from lastword.tools.context import Questioning as Questioning
    from lastword.tools.context import Reporting as Reporting
    from lastword.tools.context import ToolContext as ToolContext
    from lastword.tools.context import current as current
    from lastword.tools.descent import MARKER as MARKER
    from lastword.tools.descent import given_above as given_above
    from lastword.tools.descent import host_name as host_name
    from lastword.tools.descent import is_below as is_below
    from lastword.tools.descent import is_in_folder_above as is_in_folder_above
    from lastword.tools.descent import mark as mark
    from lastword.tools.descent import note_agent as note_agent
    from lastword.tools.descent import refuse_below as refuse_below
    from lastword.tools.foreign_ids import tool_id as tool_id
    from lastword.tools.guard import Guard as Guard
    from lastword.tools.guard import refuse_if_watched as refuse_if_watched
    from lastword.tools.loader import Loading as Loading
    from lastword.tools.loader import import_tool as import_tool
    from lastword.tools.loader import loading as loading
    from lastword.tools.loader import read_manifest as read_manifest
    from lastword.tools.loader import tool_folders as tool_folders
    from lastword.tools.looks import MAX_LOOKS as MAX_LOOKS
    from lastword.tools.looks import Look as Look
    from lastword.tools.looks import Looks as Looks
    from lastword.tools.looks import changed_files as changed_files
    from lastword.tools.looks import changed_state as changed_state
    from lastword.tools.manifest import COMMAND_NAMES as COMMAND_NAMES
    from lastword.tools.manifest import EFFECTS as EFFECTS
    from lastword.tools.manifest import MAX_ID_LENGTH as MAX_ID_LENGTH
    from lastword.tools.manifest import Effect as Effect
    from lastword.tools.manifest import Manifest as Manifest
    from lastword.tools.manifest import Parameter as Parameter
    from lastword.tools.manifest import ToolKey as ToolKey
    from lastword.tools.manifest import validator_for as validator_for
    from lastword.tools.questions import NOBODY as NOBODY
    from lastword.tools.questions import Closed as Closed
    from lastword.tools.questions import Declined as Declined
    from lastword.tools.questions import FieldKind as FieldKind
    from lastword.tools.questions import Given as Given
    from lastword.tools.questions import QuestionAnswer as QuestionAnswer
    from lastword.tools.questions import QuestionField as QuestionField
    from lastword.tools.questions import ToolQuestion as ToolQuestion
    from lastword.tools.questions import answer_from_texts as answer_from_texts
    from lastword.tools.questions import check_answer as check_answer
    from lastword.tools.questions import question_of as question_of
    from lastword.tools.registry import ToolChanged as ToolChanged
    from lastword.tools.registry import ToolRegistry as ToolRegistry
    from lastword.tools.scaffold import WHEN_APPROVAL as WHEN_APPROVAL
    from lastword.tools.scaffold import Plan as Plan
    from lastword.tools.scaffold import check_name as check_name
    from lastword.tools.scaffold import write_tool as write_tool
    from lastword.tools.schemas import manifest_from as manifest_from
    from lastword.tools.schemas import mcp_form as mcp_form
    from lastword.tools.signature import manifest_of as manifest_of
    from lastword.tools.signature import to_json as to_json
    from lastword.tools.state import State as State
    from lastword.tools.state import StateChange as StateChange
    from lastword.tools.state import StateMetadata as StateMetadata
    from lastword.tools.state import StateOwner as StateOwner
    from lastword.tools.tool import Function as Function
    from lastword.tools.tool import Tool as Tool
    from lastword.tools.toolbox import HERE as HERE
    from lastword.tools.toolbox import Answer as Answer
    from lastword.tools.toolbox import Toolbox as Toolbox
    from lastword.tools.toolbox import Unagreed as Unagreed
    from lastword.tools.toolbox import agree as agree
    from lastword.tools.toolbox import find_tools as find_tools
    from lastword.tools.trust import Trust as Trust
    from lastword.tools.trust import digest_of_text as digest_of_text
    from lastword.tools.trust import rule_name as rule_name
else:
    __getattr__ = open_door(
        __name__,
        code="CODE_FILE MANIFEST_FILE code_files code_of digest_of_folder",
        content="Audio Block BlockKind File Image MAX_BLOCKS MAX_BLOCK_BYTES MAX_RESULT_BYTES Text ToolResult "
        "UNKNOWN_TYPE extension_of true_kind",
        context="OnCancel Questioning Reporting ToolContext current",
        descent="MARKER given_above host_name is_below is_in_folder_above mark note_agent refuse_below",
        foreign_ids="tool_id",
        guard="Guard refuse_if_watched",
        loader="Loading import_tool loading read_manifest tool_folders",
        looks="Look Looks MAX_LOOKS changed_files changed_state",
        manifest="COMMAND_NAMES EFFECTS Effect MAX_ID_LENGTH Manifest Parameter ToolKey validator_for",
        questions="Closed Declined FieldKind Given NOBODY QuestionAnswer QuestionField ToolQuestion answer_from_texts "
        "check_answer question_of",
        registry="ToolChanged ToolRegistry",
        scaffold="Plan WHEN_APPROVAL check_name write_tool",
        schemas="manifest_from mcp_form",
        signature="manifest_of to_json",
        state="State StateChange StateMetadata StateOwner",
        tool="Function Tool",
        toolbox="Answer HERE Toolbox Unagreed agree find_tools",
        trust="Trust digest_of_text rule_name",
    )
