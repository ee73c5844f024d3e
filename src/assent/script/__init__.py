"""NuwaScript: the language a model writes and a person can read.

A row of rooms, each knowing only those before it:

    lexer ← errors, nodes ← mistakes ← parser                        from text to a tree
    limits, operators ← runtime ← binary, builtins                   what values can do, and what a run may use
    work, scopes, sites ← expressions ← steps ← program ← machine    from a tree to a run
    printer ← format                                                 from a tree back to text
    signatures, kinds ← checker, plan, prompt, grammar               what is known of a script before it runs

Nothing here knows what a tool is. The checker is given signatures; the machine hands each CALL to a host.
"""

from assent.script.checker import check
from assent.script.errors import CallFailed, PlacedError
from assent.script.format import format_script
from assent.script.grammar import script_grammar
from assent.script.limits import Limits
from assent.script.machine import Machine, Result
from assent.script.nodes import Script
from assent.script.parser import parse
from assent.script.plan import Argument, Step, plan, plan_text
from assent.script.prompt import script_prompt
from assent.script.runtime import Host, Site, Tool
from assent.script.signatures import Parameter, Signature, Signatures

__all__ = [
    "Argument",
    "CallFailed",
    "Host",
    "Limits",
    "Machine",
    "Parameter",
    "PlacedError",
    "Result",
    "Script",
    "Signature",
    "Signatures",
    "Site",
    "Step",
    "Tool",
    "check",
    "format_script",
    "parse",
    "plan",
    "plan_text",
    "script_grammar",
    "script_prompt",
]
