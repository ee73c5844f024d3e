"""NuwaScript: the language a model writes and a person can read.

A row of rooms, each knowing only those before it:

    lexer ← errors, nodes ← mistakes ← parser            from text to a tree
    limits, operators ← runtime ← binary, builtins       what values can do, and what a run may use
    scopes ← expressions ← steps ← program ← machine     from a tree to a run
    signatures ← checker, plan, prompt, grammar          what is known of a script and its tools before a run
    format                                               from a tree back to text

Nothing here knows what a tool is. The checker is given signatures; the machine hands each CALL to a host.
"""

from assent.script.checker import check
from assent.script.errors import CallFailed, PlacedError
from assent.script.limits import Limits
from assent.script.machine import Machine, Result
from assent.script.nodes import Script
from assent.script.parser import parse
from assent.script.runtime import Host, Site, Tool
from assent.script.signatures import Parameter, Signature, Signatures

__all__ = [
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
    "Tool",
    "check",
    "parse",
]
