"""NuwaScript: the language a model writes and a person can read.

A row of rooms, each knowing only those before it:

    lexer ← errors, nodes ← nesting, mistakes ← parser               from text to a tree
    limits, operators ← runtime ← binary, arguments ← texts ← builtins    what values can do, and what a run may use
    work, scopes, sites ← expressions ← steps ← program ← machine    from a tree to a run; aside: large work in a thread
    printer ← format                                                 from a tree back to text
    signatures, kinds ← inference ← checker; plan, prompt, grammar   what is known of a script before it runs

Nothing here knows what a tool is. The checker is given signatures; the machine hands each CALL to a host.
"""

from lastword.script.aside import aside
from lastword.script.checker import check
from lastword.script.errors import CallFailed, PlacedError
from lastword.script.format import format_script
from lastword.script.grammar import script_grammar
from lastword.script.limits import ScriptLimits
from lastword.script.machine import Machine, Result
from lastword.script.nodes import Script
from lastword.script.parser import parse
from lastword.script.plan import Argument, Step, plan, plan_text
from lastword.script.prompt import script_prompt
from lastword.script.runtime import Host, Site, Tool
from lastword.script.signatures import Signature, SignatureParameter, Signatures

__all__ = [
    "Argument",
    "CallFailed",
    "Host",
    "Machine",
    "PlacedError",
    "Result",
    "Script",
    "ScriptLimits",
    "Signature",
    "SignatureParameter",
    "Signatures",
    "Site",
    "Step",
    "Tool",
    "aside",
    "check",
    "format_script",
    "parse",
    "plan",
    "plan_text",
    "script_grammar",
    "script_prompt",
]
